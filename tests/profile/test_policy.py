"""memd.profile.policy: what the scan and the settings make of a change."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from support.judged import (
    AGENT,
    ATTACK,
    DOUBTFUL,
    PERSON,
    REVIEW,
    SECRET,
    TOKEN,
    TOOL,
    USER,
    add,
    change,
    edit,
    found,
    guard,
    take,
)

from memd.errors import BlockedContent, PermissionDenied
from memd.profile.content import text_hash
from memd.profile.entries import Document, make_entry
from memd.profile.policy import OUTSIDE_RULE, blocked, gravest, needs_person, rule, rule_changes
from memd.profile.values import Caller, Change, Operation, Step


def step(text: str | None, before: str | None = None) -> Step:
    """What an operation does that puts one text in, or takes one out."""
    action = "remove" if text is None else "add" if before is None else "replace"
    return Step("applied", "e1", (Change(action, "e1", before, text, 0),), "Done.")  # type: ignore[arg-type]  # one of them


def documents(before: list[str], after: list[str]) -> tuple[Document, Document]:
    return (
        Document(entries=tuple(map(make_entry, before))),
        Document(entries=tuple(map(make_entry, after))),
    )


@pytest.mark.parametrize("caller", [AGENT, TOOL, USER, REVIEW, PERSON], ids=lambda one: one.origin + str(one.person))
@pytest.mark.parametrize("text", [ATTACK, SECRET])
def test_what_the_scan_refuses_nobody_may_write(caller: Caller, text: str) -> None:
    """Not even a person, and the refusal holds nothing of the text (FR-64)."""
    with pytest.raises(BlockedContent) as caught:
        rule(guard(), add(text), step(text), caller)
    error = caught.value
    (finding, *_) = error.extra["findings"]
    assert {"rule", "class", "severity", "start", "end", "reason"} == finding.keys()
    assert finding["rule"] in error.message
    assert TOKEN not in repr((error.message, error.extra))


def test_the_scan_comes_before_the_policy() -> None:
    """Refused text is not told as a matter of permission, and never staged (FR-61)."""
    with pytest.raises(BlockedContent):
        rule(guard(agent="refuse"), add(ATTACK), step(ATTACK), AGENT)
    with pytest.raises(BlockedContent):
        rule(guard(agent="stage"), add(ATTACK), step(ATTACK), AGENT)


@pytest.mark.parametrize("caller", [AGENT, USER, TOOL], ids=lambda one: one.origin)
def test_what_the_scan_doubts_waits_for_a_person(caller: Caller) -> None:
    """Also from an agent that speaks for a user."""
    ruling = rule(guard(tool="apply"), add(DOUBTFUL), step(DOUBTFUL), caller)
    assert (True, ()) == (ruling.staged, ruling.approved)
    assert ["invisible.zero-width"] == [one.rule for one in ruling.findings]
    assert "invisible.zero-width" in ruling.why


def test_a_person_has_decided_by_asking() -> None:
    """It is applied, counts as approved, and they are told what was found."""
    ruling = rule(guard(), add(DOUBTFUL), step(DOUBTFUL), PERSON)
    assert (False, (DOUBTFUL,)) == (ruling.staged, ruling.approved)
    (notice,) = ruling.notices
    assert ("approved", ["invisible.zero-width"]) == (notice.name, [one["rule"] for one in notice.data["findings"]])


def test_what_was_approved_before_is_no_longer_doubted() -> None:
    """By its text."""
    ruling = rule(guard(), add(DOUBTFUL), step(DOUBTFUL), AGENT, {text_hash(DOUBTFUL)})
    assert not ruling.staged


@pytest.mark.parametrize(
    ("caller", "operation", "setting"),
    [
        (TOOL, add("x"), "tool"),
        (AGENT, add("x"), "agent"),
        (USER, change("a", "x"), "user"),
        (REVIEW, add("x"), "review_add"),
        (REVIEW, change("a", "x"), "review_change"),
        (Caller(origin="flush"), add("x"), "flush_add"),
        (Caller(origin="flush"), take("a"), "flush_change"),
        (Caller(origin="import"), add("x"), "import"),
    ],
)
def test_each_origin_has_its_setting(caller: Caller, operation: Operation, setting: str) -> None:
    """apply applies, stage waits, refuse names origin and setting; a person is not made to wait, and is refused too."""
    done = step("x")
    assert not rule(guard(**{setting: "apply"}), operation, done, caller).staged
    waiting = rule(guard(**{setting: "stage"}), operation, done, caller)
    assert waiting.staged
    assert f"approval.{setting}" in waiting.why
    person = Caller(origin=caller.origin, person=True)
    ruling = rule(guard(**{setting: "stage"}), operation, done, person)
    assert (False, ["approved"]) == (ruling.staged, [one.name for one in ruling.notices])
    with pytest.raises(PermissionDenied) as caught:
        rule(guard(**{setting: "refuse"}), operation, done, caller)
    assert {"origin": caller.origin, "setting": f"approval.{setting}"} == caught.value.extra
    assert f"approval.{setting}" in caught.value.message


def test_the_defaults() -> None:
    """Tools and jobs' changes wait, everything else is applied (FR-63)."""
    rules = guard()
    waits = {
        (caller.origin, operation.action): rule(rules, operation, step("x"), caller).staged
        for caller in (USER, AGENT, TOOL, REVIEW, Caller(origin="flush"), Caller(origin="import"))
        for operation in (add("x"), take("x"))
    }
    assert {("tool", "add"), ("tool", "remove"), ("review", "remove"), ("flush", "remove")} == {
        key for key, value in waits.items() if value
    }


def test_what_changes_nothing_is_not_judged() -> None:
    """An attack that is there already is not put in again by a no-op."""
    assert not rule(guard(agent="refuse"), add(ATTACK), Step("unchanged", "e1", (), ""), AGENT).staged


def test_only_what_is_put_in_is_scanned() -> None:
    """An attack can be removed, and replaced by something else."""
    assert not rule(guard(), take("x"), step(None, ATTACK), AGENT).staged
    assert not rule(guard(), change("x", "fine"), step("fine", ATTACK), AGENT).staged


def test_a_warning_is_kept_and_told() -> None:
    """The rule, and where."""
    quoted = f'The phrase "{ATTACK}" is a classic example of a prompt injection attack.'
    ruling = rule(guard(), add(quoted), step(quoted), AGENT)
    assert {"warn"} == {one.severity for one in ruling.findings}
    assert {"scan_warning"} == {one.name for one in ruling.notices}
    assert not ruling.staged


def test_an_edit_does_not_bring_others_text_into_prompts() -> None:
    """It waits, unless a person makes it or has let the entry in; a replacement is the writer's own text."""
    rules = guard(outside="withhold")
    change_ = Change("edit", "e1", "by others", "by others!", 0, 1, "outside")
    edited = Step("applied", "e1", (change_,), "Edited.")
    assert "another program wrote" in rule(rules, edit("s", "s!"), edited, AGENT).why
    assert rule(rules, edit("s", "s!"), edited, AGENT).staged
    assert not rule(rules, edit("s", "s!"), edited, PERSON).staged
    assert not rule(rules, edit("s", "s!"), edited, AGENT, {text_hash("by others")}).staged
    assert not rule(guard(), edit("s", "s!"), edited, AGENT).staged
    replaced = Step("applied", "e1", (replace(change_, action="replace"),), "Replaced.")
    assert not rule(rules, change("by", "mine"), replaced, AGENT).staged


class TestChangesOfOneKind:
    """Undo, restore and import are applied or refused, and nothing else."""

    def test_what_would_wait_is_refused_with_advice(self) -> None:
        """By the scan, or by the setting."""
        doubtful = (Change("add", "e1", None, DOUBTFUL, 0),)
        with pytest.raises(BlockedContent, match="ask the user"):
            rule_changes(guard(), doubtful, AGENT)
        with pytest.raises(PermissionDenied, match=r"approval.agent.*ask the user"):
            rule_changes(guard(agent="stage"), (Change("add", "e1", None, "fine", 0),), AGENT)

    def test_a_person_may(self) -> None:
        """It counts as approved."""
        ruling = rule_changes(guard(user="stage"), (Change("add", "e1", None, DOUBTFUL, 0),), PERSON)
        assert (DOUBTFUL,) == ruling.approved

    def test_nothing_is_nothing(self) -> None:
        """Whatever the setting."""
        assert not rule_changes(guard(agent="refuse"), (), AGENT).staged

    def test_an_attack_does_not_come_back(self) -> None:
        """Not by a person either."""
        with pytest.raises(BlockedContent):
            rule_changes(guard(), (Change("add", "e1", None, ATTACK, 0),), PERSON)


class TestPrompts:
    """What an entry's text and origin mean for prompts."""

    @pytest.mark.parametrize("outside", ["apply", "withhold"])
    def test_what_is_refused_never_enters_one(self, outside: str) -> None:
        """Approved or not."""
        rules = guard(outside=outside)
        assert "override.earlier-orders" == rules.withheld_by(ATTACK, "user", {text_hash(ATTACK)})

    def test_what_is_doubted_enters_when_approved(self) -> None:
        """By its text."""
        rules = guard()
        assert "invisible.zero-width" == rules.withheld_by(DOUBTFUL, "agent", set())
        assert rules.withheld_by(DOUBTFUL, "agent", {text_hash(DOUBTFUL)}) is None

    def test_what_others_wrote_waits_where_that_is_wanted(self) -> None:
        """Only entries of origin outside, until they are approved."""
        rules = guard(outside="withhold")
        assert OUTSIDE_RULE == rules.withheld_by("fine", "outside", set())
        assert rules.withheld_by("fine", "outside", {text_hash("fine")}) is None
        assert rules.withheld_by("fine", "agent", set()) is None
        assert guard().withheld_by("fine", "outside", set()) is None
        assert "invisible.zero-width" == rules.withheld_by(DOUBTFUL, "outside", set())


@pytest.mark.parametrize(
    ("before", "after", "asked"),
    [
        (["aaaa", "bbbb"], [], True),
        ([], [], False),
        ([], ["a"], False),
        (["a" * 100], ["a" * 75], False),
        (["a" * 100], ["a" * 74], True),
        (["a" * 100], ["a" * 200], False),
    ],
)
def test_a_job_takes_away_a_quarter_at_most(before: list[str], after: list[str], asked: bool) -> None:
    """And never all."""
    assert asked is needs_person(*documents(before, after))


def test_the_gravest_finding_is_told_first() -> None:
    """And how many more there are."""
    findings = [found("w", "warn"), found("s", "stage"), found("r", "refuse")]
    assert "r" == getattr(gravest(findings), "rule", "")
    assert gravest(()) is None
    error = blocked(findings)
    assert "rule r" in error.message
    assert "and 2 more" in error.message
    assert 3 == len(error.extra["findings"])


def test_a_guard_says_whose_it_is() -> None:
    """For whoever looks at a running daemon."""
    assert repr(guard()).startswith("<Guard of p, <Scans of")
