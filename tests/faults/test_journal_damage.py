"""A journal that is truncated, zeroed, flipped, missing, old or somebody else's: the memory files stay as they are.

Damage is done to a copy of one host's files; then a life begins on it. The daemon's own part (numbers that never come back,
what is said) is in ``tests/e2e/test_journal.py``.
"""

from __future__ import annotations

import random
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from support.hosts import Host, add, remove

from memd.errors import JournalTooNew, StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from support.hosts import Ending, Life
    from trio.testing import MockClock

    Damage = Callable[[bytes], bytes]

PAGE = 4096
COUNT = 60
REMOVED = "entry 7"

pytestmark = pytest.mark.slow


def cut_at(length: int) -> Damage:
    """Only so many bytes are left; below zero: so many are gone."""
    return lambda data: data[:length]


def zeros(page: int) -> Damage:
    """One page of zeros."""
    return lambda data: data[: page * PAGE] + bytes(PAGE) + data[(page + 1) * PAGE :]


def flips(seed: int, count: int = 1) -> Damage:
    """Some bits flipped."""

    def flip(data: bytes) -> bytes:
        rng, found = random.Random(seed), bytearray(data)
        for _ in range(count if data else 0):
            found[rng.randrange(len(found))] ^= 1 << rng.randrange(8)
        return bytes(found)

    return flip


def noise(page: int) -> Damage:
    """One page of random bytes."""
    return lambda data: data[: page * PAGE] + random.Random(page).randbytes(PAGE) + data[(page + 1) * PAGE :]


def damages(long: bool) -> Iterator[tuple[str, str, Damage]]:
    """Name, which of the journal's files, what is done to it."""
    for suffix in ("", "-wal"):
        for length in (
            0,
            1,
            15,
            16,
            31,
            32,
            99,
            100,
            512,
            PAGE - 1,
            PAGE,
            PAGE + 1,
            2 * PAGE,
            5 * PAGE + 7,
            -1,
            -PAGE,
            -33,
        ):
            yield f"cut at {length}", suffix, cut_at(length)
        for page in range(30 if long else 12):
            yield f"zeros in page {page}", suffix, zeros(page)
            yield f"noise in page {page}", suffix, noise(page)
        for seed in range(400 if long else 40):
            yield f"flip {seed}", suffix, flips(seed)
        for seed in range(40 if long else 5):
            yield f"100 flips {seed}", suffix, flips(seed, 100)


async def tell(life: Life) -> None:
    """A history with some of everything."""
    for number in range(COUNT):
        await life.add(f"entry {number}")
    await life.do(remove(REMOVED))
    await life.do(add("user", target="user"))


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("ending", ["stop", "crash"])
async def test_the_memory_files_survive_any_damage(
    tmp_path: Path, suite_profile: str, ending: Ending, autojump_clock: MockClock
) -> None:
    """Not a byte of them changes at the start, what is published is what they say, and writing goes on."""
    host = Host(tmp_path)
    async with host.life(ending) as life:
        await tell(life)
        texts = life.texts()
        whole = everything(tmp_path)  # with the log, which a process that ends takes in
    if ending == "stop":
        whole = everything(tmp_path)
    wrong, cases = [], 0
    for name, suffix, damage in damages(long=suite_profile == "long"):
        path = tmp_path / "state" / f"journal.db{suffix}"
        if path not in whole:
            continue
        restore(tmp_path, whole)
        cases += 1
        path.write_bytes(damage(whole[path]))
        wrong += [f"journal.db{suffix}, {name}: {line}" for line in await _judged(tmp_path, texts)]
    print(ending, cases)  # noqa: T201 - the long run's figures
    assert "" == "\n".join(wrong)
    assert cases > (60 if ending == "stop" else 120)


def everything(root: Path) -> dict[Path, bytes]:
    """Every file's bytes."""
    return {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}


def restore(root: Path, whole: dict[Path, bytes]) -> None:
    """The files as they were, in the directories as they are."""
    for path in root.rglob("*"):
        if path.is_file() and path not in whole:
            path.unlink()
    for path, data in whole.items():
        path.write_bytes(data)


async def _judged(at: Path, texts: list[str]) -> list[str]:
    host = Host(at)
    files = [at / "p" / "MEMORY.md", at / "p" / "USER.md"]
    before = [path.read_bytes() for path in files]
    found: list[str] = []
    try:
        await _live(host, files, before, texts, found)
    except* JournalTooNew:  # the damage is in the number; it is refused, and nothing touched
        assert before == [path.read_bytes() for path in files]
    except* Exception as group:  # noqa: BLE001 - whatever ends the daemon is a finding
        found.append(f"it ended with {_innermost(group)!r}")
    return found


async def _live(host: Host, files: list[Path], before: list[bytes], texts: list[str], found: list[str]) -> None:
    async with host.life() as life:
        await life.look()
        back = [REMOVED] if REMOVED in life.texts() else []  # all that is known of its removal may be what was damaged
        if before != [path.read_bytes() for path in files] and not back:
            found.append("a memory file was changed by the start")
        if sorted([*texts, *back]) != sorted(life.texts()) or life.texts("user") != ["user"]:
            found.append(f"published: {life.texts()}")
        await life.add("afterwards")
        with suppress(StoreError):  # a history that cannot be read is told as that
            await life.kinds()
            await life.profile.explain("entry 7")
    async with host.life() as life:
        if sorted([*texts, *back, "afterwards"]) != sorted(life.texts()):
            found.append(f"after another start: {life.texts()}")


def _innermost(error: BaseException) -> BaseException:
    return _innermost(error.exceptions[0]) if isinstance(error, BaseExceptionGroup) else error


@pytest.mark.parametrize("leftovers", [False, True])
async def test_a_missing_journal_beside_intact_files(
    tmp_path: Path, autojump_clock: MockClock, *, leftovers: bool
) -> None:
    """Its log alone is no journal."""
    host = Host(tmp_path)
    async with host.life("crash") as life:
        await tell(life)
        texts = life.texts()
    for path in host.journal_path.parent.iterdir():
        if path.name == "journal.db" or (not leftovers and path.name.startswith("journal.db")):
            path.unlink()
    assert [] == await _judged(tmp_path, texts)


async def test_yesterdays_backup(tmp_path: Path, autojump_clock: MockClock) -> None:
    """What the file has that the journal does not know is an outside edit; nothing of it goes, and what was removed stays so."""
    host = Host(tmp_path)
    async with host.life() as life:
        for number in range(5):
            await life.add(f"entry {number}")
    backup = host.journal_path.read_bytes()
    async with host.life() as life:
        await life.add("since then")
        await life.do(remove("entry 1"))
        texts = life.texts()
    host.journal_path.write_bytes(backup)
    async with host.life() as life:
        await life.look()
        assert texts == life.texts()
        assert "outside" == (await life.kinds())[-1]
    assert [] == [path.name for path in host.journal_path.parent.iterdir() if "damaged" in path.name]
