"""``python tests/bench fidelity``: what is left in memory after thirty sessions that said what is known.

What comes in: options; a seed. What goes out: for each reviewer the durable facts that are kept, the passing ones that are not, the
corrections that took, the room that is used, the tokens that were sent, how much of a prompt is the next one's beginning, and how many
bytes of a frozen snapshot changed inside a session, which must be none. Runs offline with ``rules`` and with a scripted model that does
as it should; with a real endpoint where ``--endpoint`` names one. What must not be here: reviewers.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer
from itertools import pairwise, takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from support.daemon import DaemonProcess

from memd_client import Client

if TYPE_CHECKING:
    from collections.abc import Sequence

TURNS = 4
WAIT_MS = 120_000
PASSING = (
    "Please run the tests once more.", "The build failed with a timeout again.", "For now use the other branch.",
    "What does this function do?", "haha, I always forget that comma", "Suppose we had ten servers.",
    "Rename the file to notes.txt.", "Thanks, that works!",
)  # fmt: skip
NAMES = ("gateway", "mirror", "runner", "tracker", "archive", "monitor", "registry", "printer", "router", "database")


@dataclass(frozen=True)
class Fact:
    """Something durable: what a person says, and the words by which it is known in memory; what it corrects, if anything."""

    said: str
    mark: str
    operation: dict[str, Any]
    wrong: str = ""


@dataclass
class Story:
    """What is said in each session, and what should be left."""

    sessions: list[list[str | Fact]] = field(default_factory=list)
    durable: list[Fact] = field(default_factory=list)
    corrections: list[Fact] = field(default_factory=list)


@dataclass
class Score:
    """Of one reviewer."""

    kept: int = 0
    updated: int = 0
    stale: int = 0
    passing: int = 0
    chars: int = 0
    tokens: int = 0
    prefix: float = 0.0
    changed_bytes: int = 0


def story(seed: str, sessions: int, durable: int, corrections: int) -> Story:
    """Facts and their corrections over sessions, the corrections later than what they correct, amid what passes."""
    rng = random.Random(seed)
    made = Story(sessions=[[] for _ in range(sessions)])
    for number in range(durable):
        name, port = f"{NAMES[number % len(NAMES)]}{number}", 8000 + number
        at = rng.randrange(sessions // 2)
        fact = Fact(
            f"Remember that the {name} listens on port {port}.", f"{port}", _add(f"The {name} listens on port {port}")
        )
        made.sessions[at].append(fact)
        if number < corrections:
            better = port + 1000
            text = f"The {name} is on port {better}, not {port}"
            corrected = Fact(
                f"No, that's wrong: {text[0].lower()}{text[1:]}.",
                f"{better}",
                _replace(f"on port {port}", text),
                fact.mark,
            )
            made.sessions[rng.randrange(sessions // 2, sessions)].append(corrected)
            made.corrections.append(corrected)
        else:
            made.durable.append(fact)
    for said in made.sessions:
        said += [rng.choice(PASSING) for _ in range(max(0, TURNS - len(said)))]
        rng.shuffle(said)
    return made


def run(made: Story, settings: str, model: Model | None = None) -> Score:
    """All sessions one after the other, each reviewed as it goes; then what is left."""
    score, snapshots = Score(), []
    with DaemonProcess(config=settings) as daemon:
        daemon.start()
        with Client(daemon.socket, autostart=False, timeout=60) as client:
            for number, said in enumerate(made.sessions):
                if model is not None:
                    model.wanted = [one.operation for one in said if isinstance(one, Fact)]
                session = client.session_open(key=f"s{number}")
                before = session.snapshot.text
                _hold(client, session.session, said)
                after = client.session_snapshot(session.session).snapshot.text
                score.changed_bytes += sum(one != other for one, other in zip(before, after, strict=False)) + abs(
                    len(before) - len(after)
                )
                snapshots.append(before)
                client.session_close(session.session)
            entries = [entry.text for store in client.memory_read().stores.values() for entry in store.entries]
            score.tokens = sum(job.tokens.input + job.tokens.output for job in client.jobs_list(limit=1000).jobs)
    text = "\n".join(entries)
    score.kept = sum(fact.mark in text for fact in made.durable)
    score.updated = sum(fact.mark in text for fact in made.corrections)
    score.stale = sum(f"listens on port {fact.wrong}" in text for fact in made.corrections)
    score.passing = sum(any(word.rstrip(".!?") in entry for word in PASSING) for entry in entries)
    score.chars = len(text)
    shares = [_shared(one, other) / len(one) for one, other in pairwise(snapshots) if one]
    score.prefix = sum(shares) / max(1, len(shares))
    return score


def _shared(one: str, other: str) -> int:
    """Characters that both begin with: what a provider's cache can keep."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _hold(client: Client, session: str, said: Sequence[str | Fact]) -> None:
    for number, one in enumerate(said):
        client.turn_begin(session, f"t{number}", user=True)
        text = one.said if isinstance(one, Fact) else one
        client.turn_end(
            session, f"t{number}", messages=[{"role": "user", "content": text}, {"role": "assistant", "content": "Ok."}]
        )
    job = client.jobs_run(session=session)
    client.jobs_wait(job.id, timeout_ms=WAIT_MS)


class Model:
    """An endpoint that wants what it is told to, once for each review."""

    def __init__(self) -> None:
        self.wanted: list[dict[str, Any]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                wanted, outer.wanted = outer.wanted, []
                answer = json.dumps(_answer(wanted, len(json.dumps(body)) // 4)).encode()
                self.send_response(200)
                self.send_header("content-length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_: Any) -> None:
                """Quiet: the table is what is printed."""

        self._server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def _answer(wanted: Sequence[dict[str, Any]], tokens: int) -> dict[str, Any]:
    calls = [
        {"id": f"c{number}", "type": "function", "function": {"name": "memory", "arguments": json.dumps(one)}}
        for number, one in enumerate(wanted)
    ]
    message = {"role": "assistant", "content": "" if calls else "done", **({"tool_calls": calls} if calls else {})}
    usage = {"prompt_tokens": tokens, "completion_tokens": 20 * len(calls)}
    return {"choices": [{"message": message, "finish_reason": "stop"}], "usage": usage}


def _add(text: str) -> dict[str, Any]:
    return {"action": "add", "target": "memory", "content": text}


def _replace(old: str, text: str) -> dict[str, Any]:
    return {"action": "replace", "target": "memory", "old_text": old, "content": text}


def settings_of(reviewer: str, url: str = "", model: str = "") -> str:
    """Reviews on demand only, their changes applied: staging is another matter."""
    chosen = f'[review]\nreviewer = "{reviewer}"\ninterval = 1000\nidle_s = 0\n[approval]\nreview_change = "apply"\n'
    return chosen + (f'[review.openai]\nbase_url = "{url}"\nmodel = "{model}"\n' if url else "")


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; status 1 if a frozen snapshot changed."""
    parser = argparse.ArgumentParser(prog="python tests/bench fidelity", description=__doc__)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--sessions", type=int, default=30)
    parser.add_argument("--durable", type=int, default=24, help="facts that should be left, corrected ones included")
    parser.add_argument("--corrections", type=int, default=6)
    parser.add_argument("--endpoint", help="base URL of a real OpenAI-compatible endpoint, which is asked as well")
    parser.add_argument("--model", default="", help="its model")
    chosen = parser.parse_args(arguments)
    made = story(chosen.seed, chosen.sessions, chosen.durable, chosen.corrections)
    found = {"rules": run(made, settings_of("rules"))}
    model = Model()
    found["scripted"] = run(made, settings_of("openai", model.url), model)
    model.close()
    if chosen.endpoint:
        found["endpoint"] = run(made, settings_of("openai", chosen.endpoint, chosen.model))
    print(
        f"{'':10} {'kept':>9} {'updated':>9} {'stale':>6} {'passing':>8} {'chars':>6} {'tokens':>8} {'prefix':>7} {'changed':>8}"
    )
    for name, score in found.items():
        kept, updated = f"{score.kept}/{len(made.durable)}", f"{score.updated}/{len(made.corrections)}"
        print(
            f"{name:10} {kept:>9} {updated:>9} {score.stale:>6} {score.passing:>8} {score.chars:>6} {score.tokens:>8}"
            f" {score.prefix:>7.1%} {score.changed_bytes:>8}"
        )
    return int(any(score.changed_bytes for score in found.values()))


if __name__ == "__main__":
    sys.exit(main())
