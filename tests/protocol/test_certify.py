"""The sequence by which a client proves itself."""

from __future__ import annotations

import msgpack
import pytest

from memd.protocol.certify import STEPS, Certification, difference


def test_each_step_takes_what_the_one_before_gave() -> None:
    """So that a client only hands on."""
    assert [one.gives for one in STEPS[:-1]] == [one.takes for one in STEPS[1:]]


def test_messagepack_keeps_every_value() -> None:
    """What is asked for can be done; the texts are valid UTF-8."""
    for one in STEPS:
        assert difference(one.takes, msgpack.unpackb(msgpack.packb(one.takes))) is None


def test_a_run_ends_with_the_last_step() -> None:
    """Each right value leads to the next step."""
    run = Certification("r")
    seen = []
    for one in STEPS:
        seen.append(run.expected)
        assert run.problem(one.takes) is None
    assert [one.name for one in STEPS] == seen
    assert run.expected is None


def test_a_wrong_value_leaves_a_run_where_it_is() -> None:
    """It can be tried again."""
    run = Certification("r")
    assert "value: True expected, got 1" == run.problem(1)
    assert "rpc.certify.flag" == run.expected


@pytest.mark.parametrize(
    ("expected", "got", "problem"),
    [
        (1, 1.0, "value: 1 expected, got 1.0"),
        ([1, [2]], [1, [3]], "value[1][0]: 2 expected, got 3"),
        ([1], [1, 2], "value: 1 items expected, got 2"),
        ({"a": 1}, {"b": 1}, "value: keys missing: ['a'], keys too many: ['b']"),
        ({"a": {"b": "x"}}, {"a": {"b": "é"}}, r"value['a']['b']: 'x' expected, got '\xe9'"),
        ([], {}, "value: [] expected, got {}"),
        ("x" * 90, "y", "value: " + "'" + "x" * 59 + "… (str) expected, got 'y'"),
        ({"a": 1}, {"a": 1}, None),
    ],
)
def test_differences_are_told_by_place(expected: object, got: object, problem: str | None) -> None:
    """The first one, and short."""
    assert problem == difference(expected, got)
