"""An HTTP endpoint of a model: JSON out, JSON in, and what goes wrong in between in our own words.

What comes in: a URL, headers, a body. What goes out: the decoded answer, or ``ReviewFailed``. What must not be here: what is in either,
keys in a message, retries (the schedule's business).

httpx comes with ``memd[models]`` and is imported when it is first needed: the core does without it.
"""

from __future__ import annotations

import email.utils
import importlib
import json
import os
import ssl
import time
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import trio

from memd.config import read_private
from memd.errors import ReviewFailed, SettingsError

if TYPE_CHECKING:
    from collections.abc import Mapping

MOST_BYTES = 4 * 1024 * 1024
"""Of one answer: a hundred times what the largest sensible one has."""
CONNECT_S = 10.0
SILENT_S = 90.0
"""Without a byte; the wall clock of the whole attempt is the runner's."""
BUSY = frozenset({408, 409, 425, 429})
"""Statuses below 500 that another attempt may well not get."""


async def post_json(url: str, headers: Mapping[str, str], body: Mapping[str, Any]) -> dict[str, Any]:
    """Send a request and read its answer.

    Raises:
        ReviewFailed: No answer, one that is no JSON object, or an error status; permanent where the request itself is wrong.
    """
    httpx = await trio.to_thread.run_sync(_httpx)  # a fifth of a second, the first time
    verify = await trio.to_thread.run_sync(_trusted) if url.startswith("https:") else False
    timeout = httpx.Timeout(SILENT_S, connect=CONNECT_S)
    try:
        async with (
            httpx.AsyncClient(timeout=timeout, verify=verify) as client,
            client.stream("POST", url, headers=dict(headers), json=body) as response,
        ):
            data = await _read(response)
    except httpx.InvalidURL as error:
        msg = f"{url} is no URL that can be asked: {error}"
        raise ReviewFailed(msg, permanent=True) from error
    except (httpx.HTTPError, httpx.StreamError) as error:
        msg = f"{url} does not answer: {type(error).__name__} {error}".rstrip()
        raise ReviewFailed(msg) from error
    if response.status_code != 200:
        raise _refused(url, response, data)
    return _decoded(url, data)


def read_key(name: str, setting: str) -> str:
    """An API key: from a file of our own, or by a bare name from systemd's credentials; ``""`` if none is set.

    Raises:
        ReviewFailed: It cannot be read; permanent. The message says where it was looked for, never what was found.
    """
    if not name:
        return ""
    credentials = os.environ.get("CREDENTIALS_DIRECTORY")
    path = Path(credentials, name) if credentials and "/" not in name else Path(name).expanduser()
    try:
        key = read_private(os.fspath(path)).strip()
    except (OSError, SettingsError) as error:
        msg = f"the key in {path} cannot be read: {error} ({setting})"
        raise ReviewFailed(msg, permanent=True) from error
    if not key or not key.isascii() or not key.isprintable():
        msg = f"the file {path} has no key in it: one line of printable ASCII is expected ({setting})"
        raise ReviewFailed(msg, permanent=True)
    return key


def _httpx() -> Any:
    try:
        return importlib.import_module("httpx")
    except ImportError as error:
        msg = "the reviewer needs httpx: pip install 'memd[models]'"
        raise ReviewFailed(msg, permanent=True) from error


@cache
def _trusted() -> ssl.SSLContext:
    """The certificates that this system trusts, read once: that takes a while."""
    return ssl.create_default_context()


async def _read(response: Any) -> bytes:
    data = bytearray()
    async for chunk in response.aiter_bytes():
        data += chunk
        if len(data) > MOST_BYTES:
            msg = f"the answer has more than {MOST_BYTES:,} bytes"
            raise ReviewFailed(msg, permanent=True)
    return bytes(data)


def _refused(url: str, response: Any, data: bytes) -> ReviewFailed:
    """An error status. Of the body only what names the error is told: it may repeat the key."""
    status = response.status_code
    named = _error_name(data)
    msg = f"{url} answered {status}{f' ({named})' if named else ''}"
    if status in BUSY or status >= 500:
        return ReviewFailed(msg, retry_after_s=_retry_after(response.headers.get("retry-after")))
    return ReviewFailed(msg, permanent=True)


def _error_name(data: bytes) -> str:
    try:
        error = json.loads(data)["error"]
        name = error.get("code") or error.get("type") or ""
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return ""
    return str(name)[:60] if isinstance(name, str | int) else ""


def _retry_after(value: str | None) -> float | None:
    """Seconds, or a date."""
    if not value:
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time_ns() / 1e9)
    except (ValueError, TypeError, OverflowError):
        return None


def _decoded(url: str, data: bytes) -> dict[str, Any]:
    try:
        found = json.loads(data)
    except (ValueError, RecursionError) as error:
        msg = f"{url} answered with something that is no JSON"
        raise ReviewFailed(msg) from error
    if not isinstance(found, dict):
        msg = f"{url} answered with JSON that is no object"
        raise ReviewFailed(msg)
    return found
