"""Which entries are others in other words."""

from __future__ import annotations

import pytest

from memd.profile.rewording import Rewordings


def _reworded(old: list[str], file: list[str], *, clearly: bool = False) -> int:
    return Rewordings(file, set(file) - set(old)).count(old, clearly=clearly)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (["port 8080", "host alpha"], ["port 8081", "host alpha"], 1),
        (["port 8080", "host alpha"], ["PORT 8080", "HOST ALPHA"], 2),
        (["port 8080", "host alpha"], ["port 8081"], 1),
        (["port 8080"], ["something new", "port 8081", "more of it"], 1),
        (["port 8080"], ["port 8081", "port 8082"], 1),
        (["port 8080", "port 8081"], ["port 8082"], 1),
        (["port 8080", "port 8081"], ["port 8082", "port 8083"], 2),
        # the same ones, others, or not in the place of the old one
        (["port 8080", "host alpha"], ["host alpha", "port 8080"], 0),
        (["port 8080", "host alpha"], ["host alpha", "port 8081"], 0),
        (["port 8080", "host alpha"], ["host omega", "port 8081"], 1),
        (["port 8080", "host alpha"], ["port 8080", "lunch at noon"], 0),
        ([], ["port 8080"], 0),
        (["port 8080"], [], 0),
    ],
)
def test_rewordings_are_counted_in_order_and_in_place(old: list[str], new: list[str], expected: int) -> None:
    """Each entry counts once, between the same neighbours."""
    assert expected == _reworded(old, new)


def test_only_what_no_version_had_is_clearly_a_rewording() -> None:
    """An older wording may be one that the writer read."""
    assert 0 == Rewordings(["port 8081"], set()).count(["port 8080"], clearly=True)
    assert 1 == Rewordings(["port 8081"], {"port 8081"}).count(["port 8080"], clearly=True)
    assert 1 == Rewordings(["port 8081"], set()).count(["port 8080"])


@pytest.mark.parametrize(
    ("old", "file", "expected"),
    [
        (["lunch is at noon", "the port is 8080"], ["lunch is at noon", "the port is 8081"], 1),
        (["the host is alpha", "the port is 8080"], ["the host is alpha", "the port is 8081"], 1),
        (["the port is 8070", "the port is 8080"], ["the port is 8070", "the port is 8081"], 0),
        (["the port is 8080"], ["the port is 8081", "the port is 8082"], 0),
    ],
)
def test_one_more_of_a_kind_is_no_clear_rewording(old: list[str], file: list[str], expected: int) -> None:
    """If the file has others that it is about as like as it is like the old wording."""
    assert expected == _reworded(old, file, clearly=True)
    assert 1 == _reworded(old, file)


def test_what_it_is_says_how_much_there_is() -> None:
    assert "<Rewordings among 2 texts>" == repr(Rewordings(["a", "b"], {"b"}))
