"""memd.jobs.reviewing: who reviews, by the settings."""

from __future__ import annotations

from typing import Any

import pytest
from support.jobs import FakeProfile

from memd.jobs.reviewing import workers_for


@pytest.mark.parametrize(
    ("review", "kinds"),
    [
        ({}, ["rules"]),
        ({"reviewer": "off"}, []),
        ({"reviewer": "client"}, ["rules"]),
        ({"reviewer": "client", "fallback": ["rules"]}, ["rules"]),
        ({"reviewer": "off", "fallback": ["rules"]}, ["rules"]),
        ({"reviewer": "rules", "fallback": ["rules"]}, ["rules"]),
    ],
)
def test_the_chosen_one_comes_first(review: dict[str, Any], kinds: list[str]) -> None:
    assert kinds == [worker.kind for worker in workers_for(FakeProfile(review=review))]
