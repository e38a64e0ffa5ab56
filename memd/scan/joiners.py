"""Where U+200C and U+200D belong: RFC 5892 CONTEXTJ, with what scripts need beyond host names, and emoji sequences.

What comes in: a text and the place of a joiner. What goes out: whether it belongs there. What must not be here: other marks.
"""

from __future__ import annotations

import re
import unicodedata

ZWJ = "\u200d"
JOINERS = "\u200c\u200d"
VIRAMA = 9  # canonical combining class, as in RFC 5892, A.1 and A.2

# Scripts whose letters join, and whose orthography uses a joiner to break or to show the joining: Arabic, Syriac, Mandaic, N'Ko,
# Mongolian, Phags-pa, Adlam, Rohingya.
CURSIVE = re.compile(
    "[\u0600-\u06ff\u0700-\u074f\u0750-\u077f\u07c0-\u07ff\u0840-\u085f\u0860-\u08ff\u1800-\u18af\ua840-\ua87f"
    "\ufb50-\ufdff\ufe70-\ufefc\U00010d00-\U00010d3f\U0001e900-\U0001e95f]"
)
# Scripts with conjuncts, where a joiner also stands before the virama (Bengali ya-phalaa, Kannada repha) or between letters.
CONJUNCTS = re.compile(
    "[\u0900-\u0dff\u0f00-\u0fff\u1000-\u109f\u1700-\u17ff\u1900-\u1cff\ua800-\ua9ff\uaa00-\uabff\U00011000-\U000118ff]"
)
PICTOGRAPHS = re.compile(
    "[\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff]"
)
MODIFIERS = re.compile("[\ufe0f\U0001f3fb-\U0001f3ff]")


def is_pictograph(char: str) -> bool:
    """Whether the character can be part of an emoji; the empty text cannot."""
    return PICTOGRAPHS.match(char) is not None


def allowed_joiner(text: str, at: int) -> bool:
    """Whether the joiner at this place is one that a script or an emoji sequence needs."""
    before, after = text[at - 1 : at] if at else "", text[at + 1 : at + 2]
    if not before or before in JOINERS or (after and after in JOINERS):
        return False
    if unicodedata.combining(before) == VIRAMA:
        return True
    if CURSIVE.match(before) or CONJUNCTS.match(before):
        return not after or not after.isascii() or not after.isalnum()
    return text[at] == ZWJ and is_pictograph(after) and _ends_pictograph(text, at)


def _ends_pictograph(text: str, at: int) -> bool:
    """Whether a pictograph with at most a selector and a skin tone ends here."""
    last = at - 1
    while last > max(at - 3, 0) and MODIFIERS.match(text[last]):
        last -= 1
    return is_pictograph(text[last])
