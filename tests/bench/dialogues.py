"""``python tests/bench dialogues``: precision and recall of the reviewer ``rules`` on the labelled dialogues, by language.

What comes in: nothing. What goes out: a table for each half; exit status 1 if ``--check`` is given and a target is missed on the half
that no phrase was made for. What must not be here: phrases, dialogues.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).parents[1]))

from support.dialogues import Half, Kept, Turn, scores, turns

from memd.jobs.reviewers.rules import facts

if TYPE_CHECKING:
    from collections.abc import Sequence

HALVES: tuple[Half, ...] = ("rules", "report")
LEAST_PRECISION, LEAST_RECALL = 0.97, 0.60


def keep(turn: Turn) -> list[Kept]:
    """What the reviewer keeps of a turn; of what a person said only."""
    return [(kept.target, kept.text) for kept in facts(turn.text)] if turn.role == "user" else []


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="python tests/bench dialogues", description=__doc__)
    parser.add_argument("--check", action="store_true", help="exit status 1 if a target is missed")
    chosen = parser.parse_args(arguments)
    missed = False
    for half in HALVES:
        every = list(turns(half))
        print(f"{half}: {len(every)} turns")
        for lang, score in scores(every, keep).items():
            print(
                f"  {lang:4} precision {score.precision:6.1%}  recall {score.recall:6.1%}"
                f"  ({score.hits} of {score.wanted}, {score.wrong} wrong)"
            )
            if (half, lang) == ("report", "all"):
                missed = score.precision < LEAST_PRECISION or score.recall < LEAST_RECALL
    print(f"{'MISS' if missed else 'ok  '}  report: precision >= {LEAST_PRECISION:.0%}, recall >= {LEAST_RECALL:.0%}")
    return int(chosen.check and missed)


if __name__ == "__main__":
    sys.exit(main())
