"""Copies: what is kept of a message, what a reviewer sees of it."""

from __future__ import annotations

from memd.jobs.copies import Said, Source, records_of, shown, texts_of

MESSAGES = [
    Said("system", "you are helpful"),
    Said("user", "run it"),
    Said("assistant", "running"),
    Said("tool", body="key sk-1 and more"),
    Said("user", "see this", body="a document"),
    Said("assistant"),
    Said("user", "go on", synthetic=True),
]


def test_what_is_kept() -> None:
    """Not the host's own instructions, not what says nothing; bodies apart; numbers count everything."""
    texts = texts_of(MESSAGES)
    assert ["run it", "running", "key sk-1 and more", "see this", "a document", "go on"] == texts
    masked = [text.replace("sk-1", "[secret:x]") for text in texts]
    records = records_of(MESSAGES, masked, Source("p", "s", 10, 7, turn="t", user_turn=True))
    assert [11, 12, 13, 14, 16] == [one.number for one in records]
    assert ["run it", "running", "", "see this", "go on"] == [one.text for one in records]
    assert ["", "", "key [secret:x] and more", "a document", ""] == [one.withheld for one in records]
    assert {("s", "p", 7, "t", True)} == {(one.owner, one.profile, one.us, one.turn, one.user_turn) for one in records}
    assert [False, False, False, False, True] == [one.synthetic for one in records]


def test_without_a_turn_the_role_tells() -> None:
    """A flush is handed a whole conversation: what a person said is the user's, what was made up for him is not."""
    records = records_of(MESSAGES, texts_of(MESSAGES), Source("p", "j-1", 1, 7))
    assert [True, False, False, True, False] == [one.user_turn for one in records]


def test_what_is_shown() -> None:
    """Sizes in place of bodies, unless the settings let bodies through."""
    records = records_of(MESSAGES, texts_of(MESSAGES), Source("p", "s", 1, 7))
    assert ["run it", "running", "[tool result, 17 characters]", "see this\n[document, 10 characters]", "go on"] == [
        shown(one, bodies=False) for one in records
    ]
    assert ["key sk-1 and more", "see this\na document"] == [shown(one, bodies=True) for one in records[2:4]]
