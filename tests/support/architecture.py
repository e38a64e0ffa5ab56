"""The rules of ``memd/ARCHITECTURE.md`` as functions over a source tree.

What comes in: the root of a tree. What goes out: lists of sentences, one for each breach; empty is good. What must not be
here: knowledge of this very tree beyond the page that it reads, so that the rules can be tried on trees that break them.
"""

from __future__ import annotations

import ast
import builtins
import re
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MAX_LINES = 400
TOP_LEVEL = frozenset({"CHANGELOG.md", "LICENSE", "README.md", "client", "memd", "pyproject.toml", "systemd", "tests"})
LEFT_BY_TOOLS = frozenset({"__pycache__", "build", "dist", "node_modules", "target"})

_IMPURE = frozenset(
    {
        "asyncio",
        "fcntl",
        "filelock",
        "io",
        "logging",
        "os",
        "pathlib",
        "random",
        "secrets",
        "select",
        "shutil",
        "signal",
    }
    | {"socket", "sqlite3", "structlog", "subprocess", "tempfile", "threading", "time", "trio", "uuid"}
    | {"memd.config", "memd.deferred", "memd.logs"}
)
_RECORDS = frozenset({"memd.store.records", "memd.store.work"})
"""What of the store is mere shape, so that what is pure may use it."""
_BUILTIN_ERRORS = {
    name for name, it in vars(builtins).items() if isinstance(it, type) and issubclass(it, BaseException)
}


@dataclass(frozen=True)
class Import:
    """One import statement's module, dotted. ``typing_only``: it stands under ``if TYPE_CHECKING``."""

    module: str
    line: int
    typing_only: bool


@dataclass(frozen=True)
class Page:
    """What the page says: who may import whom or everything, what everyone may, which modules of ``profile/`` do I/O."""

    allowed: dict[str, frozenset[str]]
    everyone: frozenset[str]
    unbound: frozenset[str]
    io_half: frozenset[str]

    def below(self, layer: str) -> frozenset[str]:
        """Everything further down the path of ``layer``."""
        found: set[str] = set()
        pending = [layer]
        while pending:
            new = self.allowed.get(pending.pop(), frozenset()) - found
            found |= new
            pending.extend(new)
        return frozenset(found)


def read_page(root: Path) -> Page:
    text = (root / "memd/ARCHITECTURE.md").read_text()
    section = text.split("| who | may import |")[1].split("\n\n")[0]
    allowed: dict[str, frozenset[str]] = {}
    unbound = set()
    for who, what in re.findall(r"^\| (.*?) \| (.*?) \|$", section, re.MULTILINE):
        for name in re.findall(r"`(\w+)`", who) or [who]:
            allowed[name] = frozenset(re.findall(r"`(\w+)`", what))
            unbound |= {name} if what == "every layer" else set()
    half = text.split("I/O half:")[1].split(".\n")[0]
    return Page(allowed, allowed.pop("everyone"), frozenset(unbound), frozenset(re.findall(r"`(\w+)\.py`", half)))


def sources(root: Path, *parts: str) -> Iterator[tuple[str, ast.Module]]:
    """Path below the root and syntax tree of every Python file under ``parts``."""
    for part in parts:
        for path in sorted((root / part).rglob("*.py")):
            yield str(path.relative_to(root)), ast.parse(path.read_bytes(), str(path))


def imports(tree: ast.Module) -> Iterator[Import]:
    """Every import of a module, inside functions too; ``from memd import x`` counts as ``memd.x``."""
    for node, typing_only in _walk(tree, typing_only=False):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(alias.name, node.lineno, typing_only)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            for name in [f".{alias.name}" for alias in node.names] if base == "memd" else [""]:
                yield Import(base + name, node.lineno, typing_only)


def _walk(node: ast.AST, *, typing_only: bool) -> Iterator[tuple[ast.AST, bool]]:
    yield node, typing_only
    guarded = isinstance(node, ast.If) and ast.unparse(node.test) in {"TYPE_CHECKING", "typing.TYPE_CHECKING"}
    for child in ast.iter_child_nodes(node):
        yield from _walk(child, typing_only=typing_only or (guarded and child not in node.orelse))  # type: ignore[attr-defined]


def layer_of(path: str) -> str:
    """``memd/store/journal.py`` and ``memd.store.journal`` are of ``store``, ``memd/config.py`` is ``config``."""
    return re.split(r"[./]", path)[1]


def upstream_imports(root: Path) -> list[str]:
    """Imports inside ``memd`` that the table does not allow."""
    page = read_page(root)
    found = []
    for path, tree in sources(root, "memd"):
        here = layer_of(path)
        if here in page.unbound:
            continue
        direct = page.allowed.get(here, frozenset()) | page.everyone | {here}
        for it in imports(tree):
            # ``from memd import __version__`` is no layer.
            if not it.module.startswith("memd.") or it.module == "memd.__version__":
                continue
            there = layer_of(it.module)
            if there not in direct and not (it.typing_only and there in page.below(here)):
                found.append(f"{path}:{it.line}: {here} may not import {there}")
    return found


def impure_imports(root: Path) -> list[str]:
    """Imports of I/O, clocks, randomness or logging where there may be none."""
    page = read_page(root)
    found = []
    for path, tree in sources(root, "memd/protocol", "memd/scan", "memd/profile"):
        layer, name = path.split("/")[1:3]
        if layer == "profile" and name.removesuffix(".py") in page.io_half:
            continue
        for it in imports(tree):
            store = it.module.startswith("memd.store") and it.module not in _RECORDS
            if it.module in _IMPURE or it.module.split(".")[0] in _IMPURE or (store and not it.typing_only):
                found.append(f"{path}:{it.line}: imports {it.module} and has to be pure")
    return found


def client_imports(root: Path) -> list[str]:
    """What the thin client imports beside the standard library, itself and msgpack."""
    allowed = sys.stdlib_module_names | {"memd_client", "msgpack"}
    return [
        f"{path}:{it.line}: imports {it.module}"
        for path, tree in sources(root, "client/python")
        for it in imports(tree)
        if it.module.split(".")[0] not in allowed
    ]


def long_files(root: Path) -> list[str]:
    """Python files that are too long to hold in mind."""
    found = []
    for part in ("memd", "client", "tests"):
        for path in sorted((root / part).rglob("*.py")):
            lines = path.read_bytes().count(b"\n")
            if lines > MAX_LINES:
                found.append(f"{path.relative_to(root)}: {lines} lines, more than {MAX_LINES}")
    return found


def stray_exceptions(root: Path) -> list[str]:
    """Exception classes outside of the one file of their package."""
    homes = {"memd": "memd/errors.py", "client/python": "client/python/memd_client/errors.py"}
    found = []
    for package, home in homes.items():
        known = _BUILTIN_ERRORS | {
            node.name
            for path, tree in sources(root, package)
            if path == home
            for node in ast.walk(tree)
            if isinstance(node, ast.ClassDef)
        }
        for path, tree in sources(root, package):
            for node in ast.walk(tree):
                bases = {_last_name(base) for base in node.bases} if isinstance(node, ast.ClassDef) else set()
                if path != home and bases & known:
                    found.append(f"{path}:{node.lineno}: {node.name} belongs into {home}")  # type: ignore[attr-defined]
    return found


def broad_handlers(root: Path) -> list[str]:
    """``except Exception`` and wider, except where the error goes on after a clean-up."""
    found = []
    for path, tree in sources(root, "memd", "client/python"):
        for node in ast.walk(tree):
            if not isinstance(node, ast.ExceptHandler):
                continue
            caught = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
            names = {_last_name(it) for it in caught}
            last = node.body[-1]
            goes_on = isinstance(last, ast.Raise) and last.exc is None
            if names & {"", "Exception", "BaseException"} and not goes_on:
                found.append(f"{path}:{node.lineno}: catches everything")
    return found


def missing_docstrings(root: Path) -> list[str]:
    """Modules that do not say what they are."""
    return [
        f"{path}: no docstring"
        for path, tree in sources(root, "memd", "client", "tests")
        if not ast.get_docstring(tree)
    ]


def stray_top_level(root: Path) -> list[str]:
    """What stands at the top and was not agreed, or was agreed and is missing."""
    names = {path.name for path in root.iterdir() if not path.name.startswith(".")} - LEFT_BY_TOOLS
    names = {name for name in names if not name.endswith(".egg-info")}
    missing = [f"{name}: missing at the top level" for name in sorted(TOP_LEVEL - names)]
    return missing + [f"{name}: not agreed for the top level" for name in sorted(names - TOP_LEVEL)]


def _last_name(node: ast.expr | None) -> str:
    """``Error`` of ``module.Error``; the empty string for a bare ``except``."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
