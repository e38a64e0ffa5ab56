"""The base of typed results: a map of the wire with its fields as attributes.

What comes in: a map, and the annotations of a subclass, which are its schema. What goes out: an object whose attributes
are the fields, nested maps made records where the annotation names one. What must not be here: fields.

Not dataclasses, named tuples or typed dicts on purpose: importing their modules costs more than a whole call.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, ClassVar

LIST, MAP, OPTIONAL = "list[", "dict[str, ", " | None"


class Record:
    """A map of the wire. Fields this client does not know are kept; absent optional ones are None.

    A field named like a keyword has a trailing underscore. Annotations are strings here, of four shapes: a name,
    ``list[…]``, ``dict[str, …]`` and ``… | None``.
    """

    _kinds: ClassVar[dict[str, type[Record]]] = {}  # every subclass by name
    _schema: ClassVar[dict[str, str] | None] = None  # fields to convert, worked out when first needed
    _wire: dict[str, Any]

    def __init_subclass__(cls) -> None:
        cls._kinds[cls.__name__] = cls

    def __init__(self, wire: dict[str, Any]) -> None:
        self.__dict__.update(wire)
        self.__dict__["_wire"] = wire
        for name, annotation in self._converted().items():
            value = wire.get(name.rstrip("_"))
            if value is not None:
                self.__dict__[name] = self._typed(value, annotation)

    def as_dict(self) -> dict[str, Any]:
        """The map as it came, with fields this client does not know."""
        return self._wire

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Record) and type(other) is type(self) and self._wire == other._wire

    __hash__ = None  # type: ignore[assignment] # it holds a map, and is none either

    def __repr__(self) -> str:
        fields = ", ".join(f"{key}={value!r:.60}" for key, value in self._wire.items())
        return f"<{type(self).__name__} {fields}>"

    @classmethod
    def _converted(cls) -> dict[str, str]:
        if "_schema" not in cls.__dict__ or cls._schema is None:
            fields: dict[str, str] = {}
            for base in reversed(cls.__mro__):
                if issubclass(base, Record) and base is not Record:
                    fields.update(base.__annotations__)
            cls._schema = {
                name: text for name, text in fields.items() if _innermost(text) in cls._kinds or name[-1] == "_"
            }
        return cls._schema

    @classmethod
    def _typed(cls, value: Any, annotation: str) -> Any:
        text = annotation.removesuffix(OPTIONAL)
        if text.startswith(LIST):
            return [cls._typed(item, text[len(LIST) : -1]) for item in value]
        if text.startswith(MAP):
            return {key: cls._typed(item, text[len(MAP) : -1]) for key, item in value.items() if item is not None}
        kind = cls._kinds.get(text)
        return kind(value) if kind else value


def _innermost(annotation: str) -> str:
    return annotation.removesuffix(OPTIONAL).rsplit("[", 1)[-1].rstrip("]").removeprefix("str, ")
