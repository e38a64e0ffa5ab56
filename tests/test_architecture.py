"""The tree keeps the rules of ``memd/ARCHITECTURE.md``, and each rule notices when it is broken."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support import architecture

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[1]
DISPATCHER = "memd/dispatch/dispatcher.py"
WORKING = "memd/jobs/working.py"

RULES = [
    architecture.upstream_imports,
    architecture.impure_imports,
    architecture.client_imports,
    architecture.long_files,
    architecture.stray_exceptions,
    architecture.missing_docstrings,
    architecture.stray_top_level,
]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_tree_keeps_the_rule(rule: Callable[[Path], list[str]]) -> None:
    """Nothing to report."""
    assert rule(ROOT) == []


def test_everything_is_caught_in_two_places_only() -> None:
    """Where a handler's bug becomes a reply, and a reviewer's the outcome of its job; anywhere else it would hide one."""
    places = architecture.broad_handlers(ROOT)
    assert {place.split(":")[0] for place in places} == {DISPATCHER, WORKING}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A small tree without a flaw, with the real page."""
    files = {
        "memd/ARCHITECTURE.md": (ROOT / "memd/ARCHITECTURE.md").read_text(),
        "memd/errors.py": '"""d"""\nclass MemdError(Exception):\n    pass\n',
        "memd/daemon.py": '"""d"""\nimport memd.store.journal\nimport memd.transport.listener\n',
        "memd/dispatch/dispatcher.py": '"""d"""\ntry:\n    pass\nexcept Exception:\n    pass\n',
        "memd/profile/writer.py": '"""d"""\nimport trio\nfrom memd.store import journal\n',
        "memd/profile/merge.py": '"""d"""\nfrom memd.profile import values\nfrom memd.store.records import X\n',
        "memd/store/journal.py": '"""d"""\nfrom memd import __version__, errors\nimport os\n',
        "client/python/memd_client/errors.py": '"""d"""\nclass ConnectionLost(OSError):\n    pass\n',
        "client/python/memd_client/client.py": '"""d"""\nimport socket\nimport msgpack\n',
        "tests/test_x.py": '"""d"""\n',
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "systemd").mkdir()
    for name in ("CHANGELOG.md", "LICENSE", "README.md", "pyproject.toml", ".gitignore"):
        (tmp_path / name).write_text("")
    return tmp_path


def test_a_tree_without_a_flaw_passes(tree: Path) -> None:
    """The rules do not fire on what is allowed."""
    assert [breach for rule in RULES for breach in rule(tree)] == []
    assert len(architecture.broad_handlers(tree)) == 1


@pytest.mark.parametrize(
    ("file", "line", "breach"),
    [
        ("memd/store/journal.py", "from memd.profile import writer", "store may not import profile"),
        ("memd/store/journal.py", "import memd.dispatch.table", "store may not import dispatch"),
        ("memd/store/journal.py", "from memd import profile", "store may not import profile"),
        ("memd/store/journal.py", "def f():\n    import memd.daemon", "store may not import daemon"),
        (
            "memd/store/journal.py",
            "if TYPE_CHECKING:\n    from memd.profile import values",
            "store may not import profile",
        ),
        ("memd/store/journal.py", "from memd.paths import state_dir", "store may not import paths"),
        ("memd/transport/listener.py", "import memd.dispatch.table", "transport may not import dispatch"),
        ("memd/dispatch/dispatcher.py", "import memd.store.files", "dispatch may not import store"),
        ("memd/sessions/registry.py", "import memd.protocol.types", "sessions may not import protocol"),
        ("memd/protocol/decode.py", "import memd.profile.aliases", "protocol may not import profile"),
        ("memd/cli/main.py", "import memd.store.files", "cli may not import store"),
        ("memd/errors.py", "import memd.store.files", "errors may not import store"),
    ],
)
def test_an_import_against_the_table_is_found(tree: Path, file: str, line: str, breach: str) -> None:
    """At the top, in a function, under any spelling."""
    add(tree / file, line)
    (found,) = architecture.upstream_imports(tree)
    assert found.endswith(breach)
    assert found.startswith(file)


def test_a_type_from_further_down_may_be_named(tree: Path) -> None:
    """It is what the layer between hands through; importing it at run time is not allowed."""
    add(tree / DISPATCHER, "if TYPE_CHECKING:\n    from memd.store.records import EventRecord")
    assert architecture.upstream_imports(tree) == []


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("memd/protocol/decode.py", "import trio"),
        ("memd/protocol/decode.py", "from os import path"),
        ("memd/protocol/decode.py", "import os.path"),
        ("memd/protocol/decode.py", "from memd.deferred import Ticket"),
        ("memd/protocol/decode.py", "from memd import logs"),
        ("memd/scan/engine.py", "from time import monotonic"),
        ("memd/profile/merge.py", "def f():\n    import random"),
        ("memd/profile/merge.py", "import memd.store.journal"),
    ],
)
def test_io_in_a_pure_module_is_found(tree: Path, file: str, line: str) -> None:
    """Also deep inside, and through memd's own modules."""
    add(tree / file, line)
    (found,) = architecture.impure_imports(tree)
    assert found.startswith(file)


@pytest.mark.parametrize(
    ("rule", "file", "text"),
    [
        (architecture.client_imports, "client/python/memd_client/client.py", "import msgspec"),
        (architecture.client_imports, "client/python/memd_client/client.py", "from memd.errors import NotFound"),
        (architecture.long_files, "memd/store/journal.py", "x = 1\n" * 400),
        (architecture.long_files, "tests/test_x.py", "x = 1\n" * 400),
        (architecture.long_files, "client/python/memd_client/client.py", "x = 1\n" * 400),
        (architecture.stray_exceptions, "memd/store/journal.py", "class Full(OSError):\n    pass"),
        (architecture.stray_exceptions, "memd/store/journal.py", "class Full(errors.MemdError):\n    pass"),
        (architecture.stray_exceptions, "client/python/memd_client/client.py", "class A(ConnectionLost):\n    pass"),
        (architecture.missing_docstrings, "memd/store/files.py", "x = 1"),
        (architecture.missing_docstrings, "tests/test_y.py", "x = 1"),
        (architecture.stray_top_level, "docs/x.md", ""),
        (architecture.stray_top_level, "setup.py", ""),
    ],
)
def test_a_breach_is_found(tree: Path, rule: Callable[[Path], list[str]], file: str, text: str) -> None:
    """Exactly one, and it names the place."""
    path = tree / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text((path.read_text() if path.exists() else "") + text)
    (found,) = rule(tree)
    assert found.split("/")[0].split(":")[0] == file.split("/", maxsplit=1)[0]


def test_a_missing_part_of_the_top_level_is_found(tree: Path) -> None:
    """The list is exact."""
    (tree / "LICENSE").unlink()
    assert architecture.stray_top_level(tree) == ["LICENSE: missing at the top level"]


@pytest.mark.parametrize(
    ("clause", "count"),
    [
        ("except Exception:\n    pass", 1),
        ("except BaseException as e:\n    pass", 1),
        ("except:\n    pass", 1),
        ("except (OSError, Exception):\n    pass", 1),
        ("except Exception as e:\n    raise ValueError from e", 1),
        ("except BaseException:\n    clean()\n    raise", 0),
        ("except (OSError, ValueError):\n    pass", 0),
    ],
)
def test_a_handler_that_catches_everything_is_found(tree: Path, clause: str, count: int) -> None:
    """A clean-up that lets the error go on is none."""
    add(tree / "memd/store/journal.py", f"try:\n    pass\n{clause}")
    assert len(architecture.broad_handlers(tree)) == 1 + count


def add(path: Path, text: str) -> None:
    """Append to a file of the small tree, which may not exist yet."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text((path.read_text() if path.exists() else '"""d"""\n') + text + "\n")
