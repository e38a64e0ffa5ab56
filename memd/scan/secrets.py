"""Whether a run of characters is a live secret or only stands where one would.

What comes in: a value. What goes out: its entropy, and whether it is a placeholder, a hash in its usual form or a word. What must
not be here: the shapes of tokens (rules.toml).
"""

from __future__ import annotations

import math
import re
from collections import Counter

PLACEHOLDER = re.compile(
    r"x{3,}|\*{3,}|\.{3}|…|<[^>]*>|\$\{?\w|\{\{|%\w+%|example|sample|dummy|placeholder|changeme|change_me|your|redacted"
    r"|insert|todo|none$|null$|true$|false$|(?:abc|123|test|fake|foo|bar){3,}|\[secret:",
    re.IGNORECASE,
)
# A value that is read from somewhere: a call, an attribute, a subscript, a path.
REFERENCE = re.compile(
    r"^[A-Za-z_][\w.]*[(\[]|^(?:os|env|process|self|config|settings|secrets)\.|^[~.]?/|^[a-z]+://|^@|^\\?\$"
)


def entropy(value: str) -> float:
    """Shannon's entropy in bits for each character; 0 for nothing."""
    total = len(value)
    return -sum(n / total * math.log2(n / total) for n in Counter(value).values())


def is_live(value: str, least: float) -> bool:
    """Whether the value is random enough, and no placeholder."""
    if PLACEHOLDER.search(value) or REFERENCE.match(value):
        return False
    return least <= 0 or (entropy(value) >= least and mixed(value))


def mixed(value: str) -> bool:
    """Whether it has a digit, or capitals and signs amid its letters, as generated passwords do and words do not."""
    if not any(it.isalpha() for it in value):
        return False
    turns = len(re.findall(r"[a-z][A-Z]", value))
    sign = any(not it.isalnum() for it in value.strip(".,;:!?-_"))
    return any(it.isdigit() for it in value) or turns >= 3 or (turns > 0 and sign)
