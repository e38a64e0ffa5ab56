"""The reviewer ``command``: a program that is given the task as JSON and answers with operations.

What comes in: an attempt. What goes out: what the desk accepted. What must not be here: which program it is (settings).

It runs in a process group of its own, in an empty directory that is its own, with a few environment variables and no descriptor of
ours; when it is over, or takes too long, the whole group is ended. ``MEMD_CONTEXT=job`` keeps what it starts from reviewing in turn.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import tempfile
from typing import TYPE_CHECKING, Any

import trio

from memd.errors import ReviewFailed
from memd.jobs.copies import shown
from memd.jobs.reviewers.answers import INSTRUCTION, operations_in
from memd.jobs.reviewers.desk import MOST_OPERATIONS, Desk, shown_entry
from memd.jobs.reviewers.prompting import system_prompt
from memd.profile.values import TARGETS

if TYPE_CHECKING:
    from memd.config import ProfileSettings
    from memd.jobs.ports import Attempt, Found, JobProfile

MOST_BYTES = 256 * 1024
"""Of the program's output."""
PASSED_ON = ("HOME", "LANG", "LC_ALL", "PATH", "TZ", "USER", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME")
"""What a program may need to find its own settings and login."""


class CommandReviewer:
    """Of one profile's settings."""

    kind = "command"
    endpoint: str | None = None

    def __init__(self, settings: ProfileSettings) -> None:
        self._argv = settings.review.command.argv
        self._timeout_s = settings.review.command.timeout_s

    def __repr__(self) -> str:
        return f"<CommandReviewer {self._argv[:1]}>"

    async def attempt(self, profile: JobProfile, attempt: Attempt, found: Found) -> str:
        """Have the program review. ``ReviewFailed`` if it cannot be run, fails, or says nothing of use."""
        desk = Desk(profile, attempt, found)
        asked = json.dumps(_task(profile, attempt), ensure_ascii=False).encode("utf-8", "surrogatepass")
        with tempfile.TemporaryDirectory(prefix="memd-review-") as directory:  # 0700
            output = await self._run(asked, directory)
        found.used.steps += 1
        operations, summary = operations_in(output.decode("utf-8", "replace"))
        for operation in operations:
            desk.call(operation)
            if desk.exhausted:
                break
        return summary

    async def _run(self, asked: bytes, directory: str) -> bytes:
        name = self._argv[0] if self._argv else ""
        try:
            process = await trio.lowlevel.open_process(
                list(self._argv),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                cwd=directory,
                env=_environment(),
                start_new_session=True,
            )
        except (OSError, ValueError, IndexError) as error:
            msg = f"the program {name!r} cannot be run: {error} ([review.command] argv)"
            raise ReviewFailed(msg, permanent=True) from error
        try:
            with trio.fail_after(self._timeout_s):
                output = await _talk(process, asked)
                status = await process.wait()
        except trio.TooSlowError:
            msg = f"the program {name!r} took longer than {self._timeout_s} s ([review.command] timeout_s)"
            raise ReviewFailed(msg) from None
        finally:
            await _end(process)
        if status != 0:
            msg = f"the program {name!r} ended with {status}"
            raise ReviewFailed(msg)
        return output


async def _talk(process: trio.Process, asked: bytes) -> bytes:
    """Hand over the task and read the answer, at the same time: neither side may wait for the other."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_send, process, asked)
        output = await _receive(process)
        if len(output) > MOST_BYTES:
            nursery.cancel_scope.cancel()
    if len(output) > MOST_BYTES:
        msg = f"the program wrote more than {MOST_BYTES:,} bytes"
        raise ReviewFailed(msg, permanent=True)
    return output


async def _send(process: trio.Process, asked: bytes) -> None:
    if process.stdin is not None:
        with contextlib.suppress(trio.BrokenResourceError):  # it need not read to the end
            await process.stdin.send_all(asked)
        await process.stdin.aclose()


async def _receive(process: trio.Process) -> bytes:
    output = bytearray()
    if process.stdout is not None:
        async for chunk in process.stdout:
            output += chunk
            if len(output) > MOST_BYTES:
                break
    return bytes(output)


async def _end(process: trio.Process) -> None:
    """End the whole group, whatever it still does."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    with trio.CancelScope(shield=True):
        await process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                await stream.aclose()


def _environment() -> dict[str, str]:
    return {**{name: os.environ[name] for name in PASSED_ON if name in os.environ}, "MEMD_CONTEXT": "job"}


def _task(profile: JobProfile, attempt: Attempt) -> dict[str, Any]:
    """What the program reads."""
    bodies = profile.settings.review.tool_bodies
    states = {target: profile.state(target) for target in TARGETS if getattr(profile.settings.stores, target)}
    return {
        "version": 1,
        "kind": attempt.job.kind,
        "prompt": f"{system_prompt(profile, attempt.job.kind)}\n\n{INSTRUCTION}",
        "entries": [
            {
                "target": target,
                "id": one.id,
                "text": shown_entry(one, state.withheld),
                "hash": one.hash,
                "origin": one.origin,
            }
            for target, state in states.items()
            for one in state.document.entries
        ],
        "messages": [
            {"role": one.role, "content": shown(one, bodies=bodies), "number": one.number, "synthetic": one.synthetic}
            for one in attempt.messages
        ],
        "usage": {
            target: {"chars": state.usage.chars, "limit": state.usage.limit, "free": state.usage.free}
            for target, state in states.items()
        },
        "max_operations": MOST_OPERATIONS,
    }
