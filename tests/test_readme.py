"""What README says is so."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from memd.cli.parser import build_parser
from memd.config import load

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
PAGES = ["README.md", "systemd/README.md", "client/PROTOCOL.md"]


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def verbs() -> Iterator[list[str]]:
    """Every ``memd …`` command of the shell blocks, without its comment."""
    for block in blocks("sh"):
        for line in re.findall(r"^memd (.*?)(?:\s+#.*)?$", block, re.MULTILINE):
            yield [word.strip('"') for word in re.findall(r'"[^"]*"|\S+', line)]


@pytest.mark.parametrize("name", ["demo", "tests"])
def test_the_two_commands_are_marked_for_ci(name: str) -> None:
    """``.ci/run`` runs what stands there, so that it stays true; each is one line."""
    (command,) = re.findall(rf"^<!-- {name} -->\n```sh\n(.*?)\n```$", README, re.MULTILINE | re.DOTALL)
    assert "\n" not in command
    assert f'"$(readme {name})"' in (ROOT / ".ci/run").read_text()


def test_every_verb_shown_exists() -> None:
    """With the options that are shown."""
    shown = [words for words in verbs() if words != ["--help"]]
    assert len(shown) >= 6
    for words in shown:
        build_parser().parse_args(words)


def test_the_settings_shown_are_accepted(tmp_path: Path) -> None:
    """As they stand there."""
    file = tmp_path / "config.toml"
    file.write_text("\n".join(blocks("toml")))
    file.chmod(0o600)
    settings = load(str(file), {"HOME": "/home/u"})
    assert settings.profiles["assistant"].dir == "/home/u/.assistant/memories"
    assert (settings.review.reviewer, settings.review.fallback) == ("openai", ("rules",))


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    """Those into this repository."""
    text = (ROOT / page).read_text()
    links = [link.split("#")[0] for link in re.findall(r"\]\(([^)]+)\)", text)]
    inside = [link for link in links if link and not link.startswith("http")]
    assert [link for link in inside if not (ROOT / page).parent.joinpath(link).exists()] == []


@pytest.mark.parametrize("script", [".ci/run", "client/demo.sh"])
def test_scripts_can_be_run(script: str) -> None:
    """They are executable and parse."""
    path = ROOT / script
    assert path.stat().st_mode & 0o111
    subprocess.run(["bash", "-n", str(path)], check=True)
