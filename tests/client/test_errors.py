"""memd_client.errors: one class per wire error, and what unknown ones become."""

from __future__ import annotations

from memd.errors import wire_errors
from memd_client import errors


def test_every_wire_error_has_its_class() -> None:
    """Same name, same code, same answer to whether trying again may help."""
    expected = {cls.wire_name: (cls.code, cls.retryable) for cls in wire_errors()}
    assert expected == {name: (cls.code, cls.retryable) for name, cls in errors.BY_NAME.items()}


def test_a_known_name_gives_its_class() -> None:
    error = errors.from_wire({"code": 25, "name": "conflict", "message": "changed", "data": {"current": "x"}})
    assert isinstance(error, errors.Conflict)
    assert {"current": "x"} == error.data
    assert "<Conflict conflict: changed>" == repr(error)


def test_an_unknown_name_keeps_what_it_said() -> None:
    """A newer daemon may have errors this client does not know."""
    said = {"code": 99, "name": "new_trouble", "message": "hm", "retryable": True, "data": {"a": 1}}
    error = errors.from_wire(said)
    assert type(error) is errors.MemdError
    assert said == error.as_dict()


def test_an_error_of_no_shape_is_still_an_error() -> None:
    assert "the daemon sent an error that is no map: [0, 'x']" == str(errors.from_wire([0, "x"]))


def test_a_map_that_lacks_everything_is_still_an_error() -> None:
    error = errors.from_wire({"data": None, "code": "x"})
    assert (0, "", "", {}) == (error.code, error.name, error.message, error.data)
