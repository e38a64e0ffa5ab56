"""Changes on a terminal: the words that go and come, in lines that fit.

What comes in: changes as the daemon tells them. What goes out: lines. What must not be here: where they come from.
"""

from __future__ import annotations

from memd.cli.text import cells, prefix, safe
from memd.cli.worddiff import word_diff

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from memd.cli.shell import Shell
    from memd.cli.worddiff import Run
    from memd_client import types

SIGNS = {"add": ("+", "green"), "remove": ("-", "red"), "replace": ("~", "yellow"), "edit": ("~", "yellow")}
WDIFF = {"same": ("", ""), "old": ("[-", "-]"), "new": ("{+", "+}")}  # as wdiff has it, where there is no colour
COLOURS = {"old": "red", "new": "green"}
INDENT = "    "
CONTEXT = 80  # characters shown of what stays, on either side of what changes
NARROWEST = 12


def show_changes(shell: Shell, changes: list[types.Change], *, full: bool = False) -> None:
    """Each change with the words that go and come; of long texts that stay, only what stands around them unless ``full``."""
    for change in changes:
        sign, colour = SIGNS.get(change.action, ("?", "dim"))
        shell.out(f"{shell.paint(sign, colour)} {shell.paint(f'{change.target} {safe(change.id)}', 'dim')}")
        runs = list(word_diff(safe(change.before or ""), safe(change.after or "")))
        for line in _lines(shell, runs if full else list(_shortened(runs))):
            shell.out(f"{INDENT}{line}".rstrip())


def _shortened(runs: list[Run]) -> Iterator[Run]:
    """The runs with the middle of each long one that stays left out."""
    for number, run in enumerate(runs):
        if run.kind != "same" or len(run.text) <= 2 * CONTEXT + 20:
            yield run
            continue
        head = run.text[:CONTEXT].rsplit(" ", 1)[0] if number else ""
        tail = run.text[-CONTEXT:].split(" ", 1)[-1] if number + 1 < len(runs) else ""
        if not head and not tail:
            yield run
            continue
        yield run._replace(text=f"{head}{' ' if head else ''}…{' ' if tail else ''}{tail}")


def _lines(shell: Shell, runs: list[Run]) -> list[str]:
    """The runs as lines. On a terminal they are broken where they would run over its edge and lose their indentation."""
    coloured = shell.coloured(shell.stdout)
    width = max(shell.width() - len(INDENT), NARROWEST) if shell.stdout.isatty() else None
    lines, used = [""], 0
    for run in runs:
        words = run.text if run.kind == "same" else run.text.rstrip()
        opening, closing = ("", "") if coloured else WDIFF[run.kind]
        pieces = (opening + words + closing).split("\n") if words else [""]
        for number, piece in enumerate(pieces):
            if number:
                lines.append("")
                used = 0
            for part in _broken(piece, width, used):
                if part is None:
                    lines[-1] = lines[-1].rstrip()
                    lines.append("")
                    used = 0
                    continue
                colour = COLOURS.get(run.kind)
                lines[-1] += shell.paint(part, colour) if colour and part else part
                used += cells(part)
        for number, blank in enumerate(run.text[len(words) :].split("\n")):
            if number:
                lines.append("")
                used = 0
            lines[-1] += blank
            used += len(blank)
    return lines


def _broken(text: str, width: int | None, used: int) -> Iterator[str | None]:
    """The text in parts, None between them where a new line begins; the first line has ``used`` columns already."""
    if width is None or used + cells(text) <= width:
        yield text
        return
    part = ""
    for word in _words(text):
        if used + cells(part) + cells(word.rstrip()) > width and (used or part):
            yield part.rstrip()
            yield None
            part, used = "", 0
        rest = word
        while cells(rest.rstrip()) > width:
            fits = prefix(rest, width)
            yield rest[:fits]
            yield None
            rest = rest[fits:]
        part += rest
    yield part if used + cells(part) <= width else part.rstrip()  # blanks at the edge have no room and say nothing


def _words(text: str) -> Iterator[str]:
    """Words with the blanks behind them."""
    start = 0
    while start < len(text):
        end = text.find(" ", start)
        if end < 0:
            yield text[start:]
            return
        while end < len(text) and text[end] == " ":
            end += 1
        yield text[start:end]
        start = end
