"""The reviewer ``anthropic``: the Messages endpoint, with a tool, its stable prefix marked for the provider's cache.

What comes in: an attempt. What goes out: what the desk accepted. What must not be here: HTTP (``endpoint``), the prompt's words.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from memd.errors import ReviewFailed
from memd.jobs.reviewers.desk import Desk
from memd.jobs.reviewers.endpoint import post_json, read_key
from memd.jobs.reviewers.offered import NAME, PARAMETERS, TEXT
from memd.jobs.reviewers.prompting import system_prompt, task_prompt

if TYPE_CHECKING:
    from memd.config import ProfileSettings
    from memd.jobs.ports import Attempt, Found, JobProfile

VERSION = "2023-06-01"
MOST_TOKENS = 4096
"""Of one answer: twenty operations and a sentence need a quarter of it."""
TOOL = {"name": NAME, "description": TEXT, "input_schema": PARAMETERS}


class AnthropicReviewer:
    """Of one profile's settings."""

    kind = "anthropic"

    def __init__(self, settings: ProfileSettings) -> None:
        self._set = settings.review.anthropic
        self._max_steps = settings.review.max_steps
        self.endpoint: str | None = self._set.base_url

    def __repr__(self) -> str:
        return f"<AnthropicReviewer {self.endpoint} {self._set.model}>"

    async def attempt(self, profile: JobProfile, attempt: Attempt, found: Found) -> str:
        """Review. ``ReviewFailed`` as the endpoint or the model has it."""
        desk = Desk(profile, attempt, found)
        system = system_prompt(profile, attempt.job.kind)
        messages: list[dict[str, Any]] = [{"role": "user", "content": task_prompt(profile, attempt)}]
        for _ in range(self._max_steps):
            blocks = await self._ask(system, messages, found)
            uses = [one for one in blocks if one.get("type") == "tool_use"]
            if not uses:
                texts = [one.get("text") for one in blocks if one.get("type") == "text"]
                return "\n".join(text for text in texts if isinstance(text, str))
            messages += [{"role": "assistant", "content": blocks}, {"role": "user", "content": _answers(desk, uses)}]
            if desk.exhausted or found.used.input + found.used.output >= attempt.tokens_left:
                return ""
        return ""

    async def _ask(self, system: str, messages: list[dict[str, Any]], found: Found) -> list[dict[str, Any]]:
        key = read_key(self._set.api_key_file, "[review.anthropic] api_key_file")
        headers = {"anthropic-version": VERSION, **({"x-api-key": key} if key else {})}
        stable = [{"type": "text", "text": system, "cache_control": {"type": "ephemeral"}}]
        body = {
            "model": self._set.model,
            "max_tokens": MOST_TOKENS,
            "system": stable,
            "tools": [TOOL],
            "messages": messages,
        }
        answer = await post_json(f"{self._set.base_url.rstrip('/')}/v1/messages", headers, body)
        found.used.steps += 1
        self._charge(answer, found)
        ended, content = answer.get("stop_reason"), answer.get("content")
        if ended == "refusal":
            msg = "the model refused"
            raise ReviewFailed(msg, permanent=True)
        if ended == "max_tokens":
            msg = "the model's answer was cut off: it ran out of tokens"
            raise ReviewFailed(msg)
        if not isinstance(content, list):
            msg = "the answer has no content in it"
            raise ReviewFailed(msg)
        return [one for one in content if isinstance(one, dict)]

    def _charge(self, answer: dict[str, Any], found: Found) -> None:
        usage = answer.get("usage")
        usage = usage if isinstance(usage, dict) else {}
        cached = _count(usage, "cache_read_input_tokens")
        found.used.model = str(answer.get("model") or self._set.model)
        found.used.input += _count(usage, "input_tokens") + cached + _count(usage, "cache_creation_input_tokens")
        found.used.cached += cached
        found.used.output += _count(usage, "output_tokens")


def _answers(desk: Desk, uses: list[dict[str, Any]]) -> list[dict[str, Any]]:
    answers = []
    for number, use in enumerate(uses):
        use["id"] = use.get("id") or f"use_{number}"
        name = use.get("name")
        known = name == NAME
        answer = (
            desk.call(use.get("input"))
            if known
            else desk.failed(f"there is no tool {name!r}; the only one is {NAME!r}")
        )
        text = json.dumps(answer, ensure_ascii=False)
        answers.append(
            {"type": "tool_result", "tool_use_id": use["id"], "content": text, "is_error": not answer["success"]}
        )
    return answers


def _count(usage: dict[str, Any], name: str) -> int:
    value = usage.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else 0
