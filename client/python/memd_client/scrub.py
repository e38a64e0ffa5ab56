r"""The fence: recalled text goes into a prompt inside it, and is taken out of what the model says.

What it is: ``fenced`` wraps, ``Scrubber`` removes. What comes in: the fence of a session, text to recall, a model's output in
chunks of any size. What goes out: text. What must not be here: I/O, and rules about anything but the session's own two marks.

A block is an opening mark, text without marks, and a closing mark. Exactly blocks are removed; all else is the model's own text
and comes out as it came in: other tags, the marks of other sessions, one mark without the other. Of two opening marks in a row
only the second begins a block, since what was handed out has none inside. An opening mark directly before a backtick
is quoted as code, so that it is a mention and begins nothing. ``client/vectors/scrubber.json`` has all this as data.

    >>> from memd_client.types import Fence
    >>> fence = Fence({"open": "<memory-note 5f0c>", "close": "</memory-note 5f0c>"})  # session_open(...).fence
    >>> prompt = f"{fenced('Deploys are on Fridays', fence)}\n\nWhen do we deploy?"
    >>> scrubber = Scrubber(fence)
    >>> chunks = ["Your notes say <memory-no", "te 5f0c>\nDeploys are on Fr", "idays\n</memory-note 5f0c>: ", "Friday <memo"]
    >>> [scrubber.feed(chunk) for chunk in chunks], scrubber.close()
    (['Your notes say ', '', ': ', 'Friday '], '<memo')
"""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from memd_client.types import Fence


def fenced(text: str, fence: Fence) -> str:
    """Recalled text for the user turn, with the fence around it on lines of its own; ``""`` for no text.

    Marks of this fence inside the text are taken out, until none is left: they would end the block early.

    Raises:
        ValueError: The marks cannot be told apart.
    """
    opens, closes = _marks(fence)
    while opens in text or closes in text:  # what is left may join to another
        text = text.replace(opens, "").replace(closes, "")
    return f"{opens}\n{text}\n{closes}" if text else ""


class Scrubber:
    """Takes a session's blocks out of one stream of text at a time; ``close`` ends a stream and makes ready for the next.

    Text is held back only while it may still turn into a block: a part of the opening mark at the end of what has arrived, or all that
    follows an opening mark. Time is linear in the text.

    Args:
        fence: The session's, from ``session.open``.

    Raises:
        ValueError: The marks cannot be told apart.
    """

    def __init__(self, fence: Fence) -> None:
        opens, closes = _marks(fence)
        self._begin = re.compile(f"{re.escape(opens)}(?=[^`])", re.DOTALL)  # what follows has to be known
        self._any = re.compile(f"{re.escape(closes)}|{self._begin.pattern}", re.DOTALL)
        self._opens, self._closes = opens, closes
        self._block: list[str] = []  # from an opening mark on; empty outside
        self._tail = ""  # the end of what has arrived, if it may be the beginning of a mark

    def __repr__(self) -> str:
        held = sum(map(len, self._block)) + len(self._tail)
        return f"<Scrubber {'in a block, ' if self._block else ''}{held} characters held>"

    def feed(self, chunk: str) -> str:
        """The part of what has arrived that is surely the model's own and was not returned before."""
        text, at, own = self._tail + chunk, 0, list[str]()
        while mark := (self._any if self._block else self._begin).search(text, at):
            before = text[at : mark.start()]
            at = mark.end()
            if mark.group() == self._closes:
                self._block = []
                continue
            own += [*self._block, before]  # outside, or an opening mark that nothing has closed
            self._block = [mark.group()]
        end = len(text) - self._uncertain(text[at:])
        (self._block or own).append(text[at:end])
        self._tail = text[end:]
        return "".join(own)

    def close(self) -> str:
        """The rest: a block that was never closed is the model's own text. Afterwards a new stream begins."""
        rest = "".join([*self._block, self._tail])
        self._block, self._tail = [], ""
        return rest

    def _uncertain(self, text: str) -> int:
        """How many characters at the end may be the beginning of a mark; a whole opening mark is, until it is known what follows."""
        longest = max(len(self._opens), len(self._closes))
        for length in range(min(longest, len(text)), 0, -1):
            end = text[-length:]
            if self._opens.startswith(end) or (self._block and self._closes.startswith(end)):
                return length
        return 0


def _marks(fence: Fence) -> tuple[str, str]:
    opens, closes = fence.open, fence.close
    if not opens or not closes or opens in closes or closes in opens:
        msg = f"fence: {opens!r} and {closes!r} cannot be told apart; hand over the fence of session.open as it came"
        raise ValueError(msg)
    return opens, closes
