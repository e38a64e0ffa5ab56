"""Parameters that no sane client would send, made from what ``rpc.discover`` says is right.

What comes in: JSON Schemas as msgspec writes them, a seeded ``Random``. What goes out: parameters with exactly one field
of a wrong type or out of bounds; or ones that fit or nearly fit and hold nasty values. What must not be here: sending.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator, Mapping, Sequence

Schema = dict[str, Any]

_BY_KIND: dict[str, Any] = {
    "string": "hostile",
    "integer": 7,
    "number": 1.5,
    "boolean": True,
    "array": [7],
    "object": {"hostile": 7},
}
_SAMPLES: dict[str, Any] = {"string": "x", "integer": 1, "boolean": False, "array": [], "object": {}}

TEXTS = (
    "",
    " ",
    "\n§\n",
    "§",
    "\x00",
    "\r\n",
    "\ufeff",
    "\u202e\u2066",
    "\U0001f4a3\u200d\U0001f4a3",
    "../../../etc/passwd",
    "%s %n {0} ${HOME} $(id)",
    "'; DROP TABLE revisions; --",
    "x" * 5000,
    "</memory-context>",
)
NUMBERS = (-(2**63), -1, 0, 1, 2, 2**31, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1, 1.0, 1e300)
_MIXED: tuple[Any, ...] = (None, True, "", 0, [], {}, [[[[]]]], {"a": {"b": {"c": []}}}, *_BY_KIND.values())


class Shape:
    """One method's parameters as their schema describes them."""

    def __init__(self, params: Schema) -> None:
        self._defs: dict[str, Schema] = params.get("$defs", {})
        self._root = params

    def sample(self) -> dict[str, Any]:
        """The fewest parameters that decode."""
        found = self._sample(self._root)
        assert isinstance(found, dict)
        return found

    def mistyped(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Every field in turn with every kind of value that it cannot take, and the field's name."""
        sample = self.sample()
        for name, schema in self._fields(self._root).items():
            for value in self._wrong(schema):
                yield name, {**sample, name: value}

    def nasty(self, rng: random.Random, real: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
        """Some parameters; ``real`` has values by the fields' names that mean something to the daemon."""
        fields = self._fields(self._root)
        required = self._resolve(self._root)["required"]
        chosen = [name for name in fields if name in required or rng.random() < 0.3]
        return {name: self._any(rng, fields[name], real.get(name, ())) for name in chosen}

    def _resolve(self, schema: Schema) -> Schema:
        ref = schema.get("$ref")
        return schema if ref is None else self._defs[ref.rpartition("/")[2]]

    def _options(self, schema: Schema) -> list[Schema]:
        """The alternatives that a schema allows; none means anything."""
        schema = self._resolve(schema)
        if "anyOf" in schema:
            return [found for option in schema["anyOf"] for found in self._options(option)]
        if "enum" in schema:
            return [{**schema, "type": "string"}]
        return [schema] if "type" in schema else []

    def _fields(self, schema: Schema) -> dict[str, Schema]:
        fields: dict[str, Schema] = self._resolve(schema).get("properties", {})
        return fields

    def _sample(self, schema: Schema) -> Any:
        options = self._options(schema)
        if not options:
            return None
        first = options[0]
        if "enum" in first:
            return first["enum"][0]
        if "properties" in first:
            return {name: self._sample(first["properties"][name]) for name in first["required"]}
        return _SAMPLES[first["type"]]

    def _wrong(self, schema: Schema) -> Iterator[Any]:
        options = self._options(schema)
        kinds = {option["type"] for option in options}
        if not kinds:
            return
        yield from (value for kind, value in _BY_KIND.items() if kind not in kinds)
        for option in options:
            yield from self._wrong_inside(option)

    def _wrong_inside(self, option: Schema) -> Iterator[Any]:
        """Values of the right kind that hold something wrong."""
        if "enum" in option:
            yield "hostile"
        if "minimum" in option:
            yield option["minimum"] - 1
        if "maximum" in option:
            yield option["maximum"] + 1
        if option["type"] == "array":
            yield from ([value] for value in self._wrong(option["items"]))
        if "properties" in option:
            sample = self._sample(option)
            for name, schema in option["properties"].items():
                yield from ({**sample, name: value} for value in self._wrong(schema))

    def _any(self, rng: random.Random, schema: Schema, real: Sequence[Any] = ()) -> Any:
        options = self._options(schema)
        if not options or rng.random() < 0.1:
            return rng.choice(_MIXED)
        if real and rng.random() < 0.7:
            return rng.choice(real)
        return self._fitting(rng, rng.choice(options))

    def _fitting(self, rng: random.Random, option: Schema) -> Any:
        kind = option["type"]
        if "enum" in option:
            return rng.choice(option["enum"])
        if kind == "array":
            return [self._any(rng, option["items"]) for _ in range(rng.randrange(4))]
        if "properties" in option:
            return {name: self._any(rng, schema) for name, schema in option["properties"].items() if rng.random() < 0.6}
        simple: dict[str, Sequence[Any]] = {"string": TEXTS, "integer": NUMBERS, "boolean": (True, False)}
        return rng.choice(simple.get(kind, _MIXED))
