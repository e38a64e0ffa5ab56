"""The readings of a folded text that undo a disguise: letters spaced out or joined, mark-up in words, digits for letters.

What comes in: a folded view. What goes out: other views of it. What must not be here: rules, decoding of whole runs.
"""

from __future__ import annotations

import html
import re
from typing import TYPE_CHECKING

from memd.scan.decoding import without_percent
from memd.scan.folding import folded
from memd.scan.spans import Edit, View

if TYPE_CHECKING:
    from collections.abc import Iterator

# Three and more single characters with a blank between them are one word; two blanks end it.
SPACED = re.compile(r"(?<!\S)\S(?:[ \t]\S(?!\S)){2,}+")
CJK = r"[\u3040-\u30ff\u3400-\u9fff\uff66-\uff9f]"
SPACED_CJK = re.compile(rf"(?<={CJK})[ \t\u3000]+(?={CJK})")
JOINED = re.compile(
    r"(?<![^\W_])[^\W\d_](?:[-._·•*|/~+][^\W\d_]){2,}+(?![^\W_])|(?<![^\W_])[^\W\d_]-[^\W\d_](?![^\W_])"
)
TAG = re.compile(r"</?[A-Za-z][^<>]{0,80}>|<!--\s*-->")
ENTITY = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z]{2,8});")
EMPHASIS = re.compile(r"[*`~]++|(?<![^\W_])_+(?=[^\W_])|(?<=[^\W_])_+(?![^\W_])")
LEET = str.maketrans("4@31!05$7", "aaeiiosst")
LEET_CHARS = re.compile(r"[4@31!05$7]++")


def unwrapped(view: View) -> View:
    """Without percent signs, character references, tags, emphasis, and with the letters of a word together again."""
    if "%" in view.text:
        view = _refolded(without_percent(view))
    if "&" in view.text:
        view = _refolded(
            view.edited(Edit(it.start(), it.end(), html.unescape(it[0])) for it in ENTITY.finditer(view.text))
        )
    if "<" in view.text:
        view = view.edited(Edit(it.start(), it.end(), "") for it in TAG.finditer(view.text))
    view = view.edited(Edit(it.start(), it.end(), "") for it in EMPHASIS.finditer(view.text))
    return view.edited(_together(view.text))


def _refolded(view: View) -> View:
    """What was decoded in place may be of any script and form."""
    if view.text.isascii():
        return view
    edits = ((n, folded(it)) for n, it in enumerate(view.text) if not it.isascii())
    return view.edited(Edit(n, n + 1, to) for n, to in edits if to != view.text[n])


def _together(text: str) -> Iterator[Edit]:
    """Separators between single letters go; of the wider gaps between spelled-out words one blank stays."""
    edits = [Edit(at, at + 1, "") for it in JOINED.finditer(text) for at in range(it.start() + 1, it.end(), 2)]
    spelled = [it.span() for it in SPACED.finditer(text)]
    edits += [Edit(at, at + 1, "") for start, end in spelled for at in range(start + 1, end, 2)]
    if not text.isascii():
        edits += [Edit(*it.span(), "") for it in SPACED_CJK.finditer(text)]
    done = 0
    for edit in sorted(edits):
        if edit.start >= done:
            yield edit
            done = edit.end


def without_leet(view: View) -> View:
    """Digits and signs read as the letters that they look like."""
    return view.edited(Edit(it.start(), it.end(), it[0].translate(LEET)) for it in LEET_CHARS.finditer(view.text))
