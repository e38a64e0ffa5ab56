"""The vectors of the fence. Other languages' clients can copy this file: it uses nothing but the data and their own two doors."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.vectors import VECTORS, by_name, load

from memd_client.scrub import Scrubber, fenced
from memd_client.types import Fence

SCRUBBER = load("scrubber")
FENCED: list[dict[str, Any]] = json.loads((VECTORS / "scrubber.json").read_text(encoding="utf-8"))["fenced"]


def stream(scrubber: Scrubber, chunks: list[str]) -> list[str]:
    """What each chunk gives, and then what the end gives."""
    return [*(scrubber.feed(chunk) for chunk in chunks), scrubber.close()]


@pytest.mark.parametrize("item", SCRUBBER, ids=by_name)
def test_as_it_is_cut_there(item: dict[str, Any]) -> None:
    """Each chunk gives exactly that: no part of a block, and what is surely no part of one at once."""
    assert item["gives"] == stream(Scrubber(Fence(item["fence"])), item["chunks"])


@pytest.mark.parametrize("item", SCRUBBER, ids=by_name)
def test_at_any_other_cut(item: dict[str, Any]) -> None:
    """Whole, character by character, in two at every place, and again by the same scrubber: the same comes out."""
    text = "".join(item["chunks"])
    cuts = [[text], list(text), *([text[:at], text[at:]] for at in range(len(text)))]
    scrubber = Scrubber(Fence(item["fence"]))
    assert [item["out"]] * len(cuts) == ["".join(stream(scrubber, cut)) for cut in cuts]


@pytest.mark.parametrize("item", SCRUBBER, ids=by_name)
def test_the_vector_agrees_with_itself(item: dict[str, Any]) -> None:
    """``out`` is all that ``gives`` gives, and there is a reason."""
    assert (item["out"], len(item["chunks"]) + 1) == ("".join(item["gives"]), len(item["gives"]))
    assert item["reason"]


@pytest.mark.parametrize("item", FENCED, ids=by_name)
def test_what_is_put_into_a_fence(item: dict[str, Any]) -> None:
    """And taken out again, as one block."""
    fence = Fence(item["fence"])
    assert item["out"] == fenced(item["text"], fence)
    assert "before  after" == "".join(stream(Scrubber(fence), [f"before {item['out']} after"]))
