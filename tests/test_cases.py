"""The list of field cases: every test that it names is there."""

from __future__ import annotations

import ast
import tomllib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

TESTS = Path(__file__).parent
CASES: dict[str, Any] = tomllib.loads((TESTS / "data" / "cases.toml").read_text())


@cache
def collected(path: str) -> frozenset[str]:
    """The tests of a file, as pytest names them."""
    file = TESTS / path
    return frozenset(_tests(ast.parse(file.read_text()).body, "")) if file.is_file() else frozenset()


def _tests(body: Sequence[ast.stmt], within: str) -> Iterator[str]:
    for item in body:
        if isinstance(item, ast.ClassDef) and item.name.startswith("Test"):
            yield from _tests(item.body, f"{within}{item.name}::")
        elif isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef) and item.name.startswith("test_"):
            yield within + item.name


@pytest.mark.parametrize("case", CASES)
def test_what_holds_is_tested(case: str) -> None:
    """By at least one test, all of which there are."""
    assert {"holds", "tests"} == CASES[case].keys()
    assert CASES[case]["holds"]
    assert CASES[case]["tests"]
    assert [] == [name for name in CASES[case]["tests"] if name.split("::", 1)[1] not in collected(name.split("::")[0])]


def test_they_are_in_order() -> None:
    """So that one is found, and none is there twice under a number written otherwise."""
    numbers = [int(case.removeprefix("FR-")) for case in CASES]
    assert sorted(numbers) == numbers
    assert len(set(numbers)) == len(numbers)
