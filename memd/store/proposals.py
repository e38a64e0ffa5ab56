"""Proposals and approvals in the journal: what waits for a person, and which texts a person let into prompts.

What comes in: the journal. What goes out: records; fewer rows where they are past keeping. What must not be here: what a
proposal does, when it is settled. Runs in the journal's thread, between groups.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from memd.store.records import ProposalRecord

if TYPE_CHECKING:
    from memd.store.journal import Journal

SETTLED = 1000
"""Settled proposals that a profile keeps, so that ``explain`` can tell what became of them."""
APPROVED = 10_000
"""Approved texts that a store keeps: ten times as many as it may have entries."""

_decoder = msgspec.msgpack.Decoder(ProposalRecord)


def proposals_of(journal: Journal, profile: str) -> list[ProposalRecord]:
    """Every proposal of a profile, oldest first. What is damaged is left out."""
    rows = journal.connection.execute("SELECT body FROM proposal WHERE profile=? ORDER BY us, id", (profile,))
    found = []
    for (body,) in rows:
        try:
            found.append(_decoder.decode(body))
        except msgspec.DecodeError:
            continue
    return found


def approved_of(journal: Journal, store: int) -> set[bytes]:
    """SHA-256 of the texts that a person let into prompts."""
    return {row[0] for row in journal.connection.execute("SELECT text_hash FROM approved WHERE store=?", (store,))}


def prune_proposals(journal: Journal, old_us: int) -> int:
    """Delete what was settled before ``old_us`` or is too much; inside the caller's transaction."""
    run = journal.connection.execute
    deleted = run("DELETE FROM proposal WHERE settled_us IS NOT NULL AND settled_us<?", (old_us,)).rowcount
    for (profile,) in run("SELECT DISTINCT profile FROM proposal").fetchall():
        extra = "SELECT id FROM proposal WHERE profile=? AND settled_us IS NOT NULL ORDER BY settled_us DESC LIMIT -1 OFFSET ?"
        deleted += run(
            f"DELETE FROM proposal WHERE profile=? AND id IN ({extra})",  # noqa: S608 - constant
            (profile, profile, SETTLED),
        ).rowcount
    for (store,) in run("SELECT DISTINCT store FROM approved").fetchall():
        extra = "SELECT text_hash FROM approved WHERE store=? ORDER BY us DESC LIMIT -1 OFFSET ?"
        deleted += run(
            f"DELETE FROM approved WHERE store=? AND text_hash IN ({extra})",  # noqa: S608 - constant
            (store, store, APPROVED),
        ).rowcount
    return deleted
