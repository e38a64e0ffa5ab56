"""The reviewer ``openai``: any endpoint with OpenAI's ``/chat/completions``, by tool calls or by a JSON schema.

What comes in: an attempt. What goes out: what the desk accepted. What must not be here: HTTP (``endpoint``), the prompt's words.

Endpoints differ in what they really send: arguments that are empty, invalid or encoded twice, calls without an id, null for what is
optional, tools that nobody offered, answers that are cut off, filtered or refused. Each is answered as the tool would, or ends the attempt
with a reason; what was accepted before stays.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from memd.errors import ReviewFailed
from memd.jobs.reviewers.answers import INSTRUCTION, SCHEMA, operations_in
from memd.jobs.reviewers.desk import Desk
from memd.jobs.reviewers.endpoint import post_json, read_key
from memd.jobs.reviewers.offered import NAME, PARAMETERS, TEXT
from memd.jobs.reviewers.prompting import system_prompt, task_prompt

if TYPE_CHECKING:
    from memd.config import ProfileSettings
    from memd.jobs.ports import Attempt, Found, JobProfile

TOOL = {"type": "function", "function": {"name": NAME, "description": TEXT, "parameters": PARAMETERS}}


class OpenAiReviewer:
    """Of one profile's settings."""

    kind = "openai"

    def __init__(self, settings: ProfileSettings) -> None:
        self._set = settings.review.openai
        self._max_steps = settings.review.max_steps
        self.endpoint: str | None = self._set.base_url

    def __repr__(self) -> str:
        return f"<OpenAiReviewer {self.endpoint} {self._set.model}>"

    async def attempt(self, profile: JobProfile, attempt: Attempt, found: Found) -> str:
        """Review. ``ReviewFailed`` as the endpoint or the model has it."""
        desk = Desk(profile, attempt, found)
        system = system_prompt(profile, attempt.job.kind)
        task = task_prompt(profile, attempt)
        if self._set.mode == "json_schema":
            return await self._by_schema(desk, found, f"{system}\n\n{INSTRUCTION}", task)
        messages: list[dict[str, Any]] = [{"role": "system", "content": system}, {"role": "user", "content": task}]
        for _ in range(self._max_steps):
            said = await self._ask({"messages": messages, "tools": [TOOL]}, found)
            calls = said.get("tool_calls") or []
            if not calls:
                return _text(said.get("content"))
            messages.append({"role": "assistant", "content": said.get("content") or "", "tool_calls": calls})
            messages += self._answers(desk, calls)
            if desk.exhausted or _spent(found) >= attempt.tokens_left:
                return ""
        return ""

    def _answers(self, desk: Desk, calls: Any) -> list[dict[str, Any]]:
        """The answer to each call. A call without an id gets one, in the call as well, so that the two belong together."""
        answers = []
        for number, call in enumerate(calls if isinstance(calls, list) else []):
            if not isinstance(call, dict):
                continue
            function = call.get("function")
            name = function.get("name") if isinstance(function, dict) else None
            call["id"] = call.get("id") or f"call_{number}"
            if name == NAME and isinstance(function, dict):
                answer = desk.call(function.get("arguments"))
            else:
                answer = desk.failed(f"there is no tool {name!r}; the only one is {NAME!r}")
            answers.append(
                {"role": "tool", "tool_call_id": call["id"], "content": json.dumps(answer, ensure_ascii=False)}
            )
        return answers

    async def _by_schema(self, desk: Desk, found: Found, system: str, task: str) -> str:
        shape = {"type": "json_schema", "json_schema": {"name": "memory_operations", "schema": SCHEMA}}
        messages = [{"role": "system", "content": system}, {"role": "user", "content": task}]
        said = await self._ask({"messages": messages, "response_format": shape}, found)
        operations, summary = operations_in(_text(said.get("content")))
        for operation in operations:
            desk.call(operation)
            if desk.exhausted:
                break
        return summary

    async def _ask(self, body: dict[str, Any], found: Found) -> dict[str, Any]:
        """One step. Returns the message; what it cost is in ``found``."""
        key = read_key(self._set.api_key_file, "[review.openai] api_key_file")
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        url = f"{self._set.base_url.rstrip('/')}/chat/completions"
        answer = await post_json(url, headers, {"model": self._set.model, **body})
        found.used.steps += 1
        self._charge(answer, body, found)
        choices = answer.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}
        said = choice.get("message")
        if not isinstance(said, dict):
            msg = "the answer has no message in it"
            raise ReviewFailed(msg)
        _check_whole(choice, said)
        return said

    def _charge(self, answer: dict[str, Any], body: dict[str, Any], found: Found) -> None:
        usage = answer.get("usage")
        usage = usage if isinstance(usage, dict) else {}
        details = usage.get("prompt_tokens_details")
        found.used.model = _text(answer.get("model")) or self._set.model or None
        guess = len(json.dumps(body)) // 4  # an endpoint that does not count still costs
        found.used.input += _count(usage.get("prompt_tokens"), guess)
        found.used.output += _count(usage.get("completion_tokens"), 0)
        found.used.cached += _count(details.get("cached_tokens") if isinstance(details, dict) else None, 0)


def _check_whole(choice: dict[str, Any], said: dict[str, Any]) -> None:
    """Raise for an answer that is not one."""
    ended = choice.get("finish_reason")
    if ended == "content_filter":
        msg = "the endpoint filtered the model's answer"
        raise ReviewFailed(msg, permanent=True)
    if said.get("refusal"):
        msg = "the model refused"
        raise ReviewFailed(msg, permanent=True)
    if ended == "length":
        msg = "the model's answer was cut off: it ran out of tokens"
        raise ReviewFailed(msg)


def _spent(found: Found) -> int:
    return found.used.input + found.used.output


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _count(value: Any, otherwise: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else otherwise
