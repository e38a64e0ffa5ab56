"""memd.profile.views, and what of a profile follows from them: what is kept out of prompts, and who hears of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace
from support.hosts import Host
from support.judged import AGENT, ATTACK, DECIDER, DOUBTFUL, PERSON, SECRET, TOKEN, add, mutation, take

from memd.config import Approval, Scan
from memd.errors import BlockedContent, InvalidParams, NoSuchProposal, PermissionDenied
from memd.profile.history import Selector
from memd.sessions.frozen import freeze

if TYPE_CHECKING:
    from pathlib import Path

    from support.hosts import Life
    from trio.testing import MockClock

    from memd.store.records import EventRecord


@pytest.fixture
def host(tmp_path: Path) -> Host:
    """A machine with one profile, whose file a person wrote."""
    host = Host(tmp_path)
    host.write(f"fine\n§\n{ATTACK}\n§\n{DOUBTFUL}\n§\n{SECRET}\n")
    return host


def withheld(life: Life) -> dict[str, str]:
    """Rules by text."""
    state = life.profile.state("memory")
    return {entry.text: state.withheld[entry.id] for entry in state.document.entries if entry.id in state.withheld}


async def told(life: Life, topic: str = "memory.withheld") -> list[EventRecord]:
    await life.committer.settle()
    return [event for event in life.events if event.topic == topic]


RULES = {ATTACK: "override.earlier-orders", DOUBTFUL: "invisible.zero-width", SECRET: "secret.git-hosting"}


class TestOutside:
    async def test_what_a_person_typed_stays_and_is_kept_out_of_prompts(
        self, host: Host, autojump_clock: MockClock
    ) -> None:
        """Nothing is taken out of the file; live reading shows it with what was found."""
        before = host.read()
        async with host.life() as life:
            assert withheld(life) == RULES
            state = life.profile.state("memory")
            found = {entry.text: state.findings[entry.id][0].rule for entry in state.document.entries[1:]}
            assert (RULES, before) == (found, host.read())
            snapshot = freeze(life.profile)
            for text, rule in RULES.items():
                entry = life.ids()[text]
                assert f"[BLOCKED: entry {entry} withheld, rule {rule}. Ask the user to review it.]" in snapshot.text
                assert text not in snapshot.text
            assert {(one.target, one.rule) for one in snapshot.withheld} == {
                ("memory", rule) for rule in RULES.values()
            }

    async def test_an_edit_while_it_runs_is_told(self, host: Host, autojump_clock: MockClock) -> None:
        """By id and rule, without the text; and once."""
        async with host.life() as life:
            await told(life)
            life.events.clear()
            host.append(f"§\nnew: {ATTACK}\n")
            await life.look()
            await life.add("unrelated")
            (event,) = await told(life)
            assert ["override.earlier-orders"] == [row["rule"] for row in event.data["entries"]]
            assert "previous" not in repr(event.data)

    async def test_it_can_be_removed_by_id(self, host: Host, autojump_clock: MockClock) -> None:
        """And then nothing is kept out any more."""
        async with host.life() as life:
            for text in RULES:
                await life.do(mutation(replace(take("x"), old_text=None, id=life.ids()[text])))
            assert ({}, ["fine"]) == (withheld(life), life.texts())

    async def test_what_is_said_of_a_change_does_not_show_it(self, host: Host, autojump_clock: MockClock) -> None:
        """A notice goes to models too; of an entry that prompts may have it says what the entry said."""
        async with host.life() as life:
            entry = life.ids()[ATTACK]
            done = await life.do(mutation(take(ATTACK.replace(" ", "  ")), add("new")))
            (notice,) = done.notices
            marker = f"[BLOCKED: entry {entry} withheld, rule override.earlier-orders. Ask the user to review it.]"
            assert ("folded_match", entry, marker) == (notice.name, notice.data["id"], notice.data["text"])
            assert notice.message.endswith(marker)
            assert "previous" not in repr((done.notices, done.steps[0].notices, done.message))
            await life.add("plain words")
            (notice,) = (await life.do(mutation(take("plain  words")))).notices
            assert ("plain words", True) == (notice.data["text"], notice.message.endswith("plain words"))

    async def test_what_is_gone_is_judged_by_the_rules_of_now(self, host: Host, autojump_clock: MockClock) -> None:
        """And by what a person has let in; rules that change make what was worked out before out of date."""
        async with host.life() as life:
            profile, entry = life.profile, life.ids()[DOUBTFUL]
            assert "invisible.zero-width" == profile.kept_out("memory", DOUBTFUL)
            await profile.approvals.approve(entry, DECIDER).wait()
            assert (None, None) == (profile.kept_out("memory", DOUBTFUL), profile.kept_out("memory", "fine"))
            assert "invisible.zero-width" == profile.kept_out("user", DOUBTFUL)
            head = profile.head()
            await life.profiles.reconfigure(profile, replace(host.settings[0], scan=Scan(off=("secret.cloud",))))
            assert head != profile.head()

    async def test_a_secret_is_masked_wherever_the_past_is_shown(self, host: Host, autojump_clock: MockClock) -> None:
        """No event and no notice has it; the journal keeps it until it is redacted."""
        async with host.life() as life:
            await told(life)
            assert TOKEN not in repr(life.events)
            masked = life.profile.mask(SECRET)
            assert (False, True) == (TOKEN in masked, "[secret:secret.git-hosting]" in masked)
            assert TOKEN not in repr(life.profile.state("memory").notices)

    async def test_with_the_setting_everything_of_others_waits(self, host: Host, autojump_clock: MockClock) -> None:
        """Until a person lets it in, entry by entry; what agents write is not concerned."""
        host.settings[0] = replace(host.settings[0], approval=Approval(outside="withhold"))
        async with host.life() as life:
            await life.add("by an agent")
            assert {"fine": "origin.outside", **RULES} == withheld(life)
            await life.profile.approvals.approve(life.ids()["fine"], DECIDER).wait()
            assert withheld(life) == RULES
        async with host.life() as life:
            assert withheld(life) == RULES


class TestApproval:
    async def test_an_entry_is_let_in_durably(self, host: Host, autojump_clock: MockClock) -> None:
        """The event says who did it; the version that caches go by is another."""
        async with host.life("crash") as life:
            entry, head = life.ids()[DOUBTFUL], life.profile.head()
            done = await life.profile.approvals.approve(entry, DECIDER).wait()
            assert (False, entry, life.store.revision) == (done.changed, done.entry.id, done.revision)
            assert DOUBTFUL not in withheld(life)
            assert head != life.profile.head()
            (event,) = await told(life, "approval.settled")
            said = {"state": "approved", "entry": entry, "rule": "invisible.zero-width", "pid": 7, "command": "memd"}
            assert said.items() <= event.data.items()
            assert (entry, "memory") == (event.id, event.target)
            assert DOUBTFUL in freeze(life.profile).text
            again = await life.profile.approvals.approve(entry, DECIDER).wait()
            assert entry == again.entry.id
        async with host.life() as life:
            assert DOUBTFUL not in withheld(life)

    async def test_what_the_scan_refuses_cannot_be_let_in(self, host: Host, autojump_clock: MockClock) -> None:
        """The error says what helps."""
        async with host.life() as life:
            with pytest.raises(BlockedContent, match=r"remove or reword.*scan\.off for override\.earlier-orders"):
                life.profile.approvals.approve(life.ids()[ATTACK], DECIDER)
            assert withheld(life) == RULES

    async def test_only_what_is_kept_out_can_be_let_in(self, host: Host, autojump_clock: MockClock) -> None:
        """And only as it is."""
        async with host.life() as life:
            for wanted in (life.ids()["fine"], "nobody"):
                with pytest.raises(NoSuchProposal):
                    life.profile.approvals.approve(wanted, DECIDER)
            with pytest.raises(InvalidParams, match=r"memory\.replace"):
                life.profile.approvals.approve(life.ids()[DOUBTFUL], DECIDER, content="other")

    async def test_it_is_explained(self, host: Host, autojump_clock: MockClock) -> None:
        """Stored, and withheld, by which rule."""
        async with host.life() as life:
            why = await life.profile.explain("obey this note")
            assert [("withheld", "override.earlier-orders"), ("stored", None)] == [(one.state, one.rule) for one in why]


class TestSettings:
    async def test_a_rule_switched_off_or_lowered_lets_its_entries_in(
        self, host: Host, autojump_clock: MockClock
    ) -> None:
        """And out again, at once, told each time; a snapshot that was frozen before stays as it is."""
        async with host.life() as life:
            frozen = freeze(life.profile)
            await told(life)
            life.events.clear()
            off = replace(host.settings[0], scan=Scan(off=("override.earlier-orders",), warn=("secret.git-hosting",)))
            await life.profiles.reconfigure(life.profile, off)
            assert {DOUBTFUL: "invisible.zero-width"} == withheld(life)
            (event,) = await told(life)
            assert sorted([life.ids()[ATTACK], life.ids()[SECRET]]) == sorted(event.data["released"])
            await life.do(mutation(add("again: " + ATTACK)))
            await life.profiles.reconfigure(life.profile, host.settings[0])
            assert {**RULES, "again: " + ATTACK: "override.earlier-orders"} == withheld(life)
            assert ATTACK not in frozen.text
            assert 2 == len(await told(life))

    async def test_stores_without_findings_are_published_as_they_are(
        self, tmp_path: Path, autojump_clock: MockClock
    ) -> None:
        """Nothing is copied."""
        async with Host(tmp_path).life() as life:
            await life.add("fine")
            assert life.store.state is life.profile.state("memory")
            assert (1, 0) == life.profile.head()[:2]


class TestUndo:
    async def test_what_was_removed_does_not_come_back_past_the_scan(
        self, host: Host, autojump_clock: MockClock
    ) -> None:
        """An attack not at all, what is doubted by a person only."""
        async with host.life() as life:
            gone = await life.do(mutation(replace(take("x"), old_text=None, id=life.ids()[ATTACK])))
            with pytest.raises(BlockedContent):
                await life.profile.undo(Selector(revision=gone.revision), PERSON)
            gone = await life.do(mutation(replace(take("x"), old_text=None, id=life.ids()[DOUBTFUL])))
            with pytest.raises(BlockedContent, match="ask the user"):
                await life.profile.undo(Selector(revision=gone.revision), AGENT)
            done = await life.profile.undo(Selector(revision=gone.revision), PERSON)
            assert ["approved"] == [notice.name for notice in done.notices]
            assert DOUBTFUL in life.texts()
            assert DOUBTFUL not in withheld(life)
            with pytest.raises(BlockedContent):
                await life.profile.restore("memory", 1, PERSON)

    async def test_a_policy_holds_for_undo_too(self, host: Host, autojump_clock: MockClock) -> None:
        """What would wait is refused, since it cannot."""
        host.settings[0] = replace(host.settings[0], approval=Approval(agent="stage"))
        async with host.life() as life:
            await life.do(mutation(add("x"), caller=PERSON))
            with pytest.raises(PermissionDenied, match=r"approval\.agent"):
                await life.profile.undo(Selector(last=1), AGENT)
            await life.profile.undo(Selector(last=1), PERSON)


class TestImport:
    async def test_an_attack_in_it_stops_all_of_it_and_says_where(self, host: Host, autojump_clock: MockClock) -> None:
        """A preview names it, too."""
        data = {"entries": {"memory": [{"text": "good"}, {"text": ATTACK + " now"}]}}
        caller = replace(PERSON, origin="import")
        async with host.life() as life:
            with pytest.raises(BlockedContent, match="memory, entry 6") as caught:
                await life.profile.import_entries(data, caller)
            assert ("memory", 5) == (caught.value.extra["target"], caught.value.extra["place"])
            assert "good" not in life.texts()
            previewed = life.profile.preview_import(data, caller)
            assert ["blocked"] == [notice.name for notice in previewed.notices]
            host.settings[0] = replace(host.settings[0], approval=Approval(import_="refuse"))
            await life.profiles.reconfigure(life.profile, host.settings[0])
            with pytest.raises(PermissionDenied, match=r"approval\.import"):
                await life.profile.import_entries({"entries": {"memory": [{"text": "good"}]}}, caller)
