"""Looking at wire structs.

What comes in: modules, structs. What goes out: what they are made of. What must not be here: expectations.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from types import ModuleType


def structs(module: ModuleType) -> list[type[msgspec.Struct]]:
    """The structs that a module defines."""
    return [
        value
        for value in vars(module).values()
        if inspect.isclass(value) and issubclass(value, msgspec.Struct) and value.__module__ == module.__name__
    ]


def lossless(struct: type[msgspec.Struct]) -> bool:
    """True if leaving defaults out drops None only."""
    return all(field.default is None for field in msgspec.structs.fields(struct) if not field.required)
