"""Characters of other scripts read as the Latin letters that they look like (UTS #39).

What comes in: a folded view. What goes out: the view in Latin letters. What must not be here: data (``confusables.txt`` is
generated), a judgement whether mixing scripts is bad.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import resources

from memd.scan.spans import Edit, View

OTHER = re.compile(r"[^\x00-\x7f]")


@cache
def looks() -> dict[str, str]:
    """Each character that looks like Latin letters, with those."""
    found = {}
    for line in resources.files("memd.scan").joinpath("confusables.txt").read_text("ascii").splitlines():
        if not line.startswith("#"):
            look, *codes = line.split()
            found.update({chr(int(code, 16)): look for code in codes})
    return found


def latin(view: View) -> View:
    """The view with look-alikes replaced, or itself if it has none."""
    if view.text.isascii():
        return view
    table = looks()
    return view.edited(Edit(it.start(), it.end(), table[it[0]]) for it in OTHER.finditer(view.text) if it[0] in table)
