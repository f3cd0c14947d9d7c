"""The file of ``stele explain --json`` and ``stele gate --explain``: what was found, to be read again."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypedDict

from stele import schema
from stele.errors import SteleError
from stele.explain.comparison import Comparison, Operation


class Document(NamedTuple):
    """What OLD and NEW do in a step. ``cells`` has an entry for each cell, such as "cnn train"."""

    old: str
    new: str
    cells: dict[str, Comparison]
    differs: Sequence[str]

    def as_json(self) -> dict[str, Any]:
        """Return the content that docs/schemas.md describes."""
        cells = {
            name: {**one._asdict(), "operations": [operation._asdict() for operation in one.operations]}
            for name, one in self.cells.items()
        }
        return {"old": self.old, "new": self.new, "cells": cells, "differs": list(self.differs)}


class OperationFacts(TypedDict):
    name: str
    old: float
    new: float
    old_calls: float
    new_calls: float


class CellFacts(TypedDict):
    old: float
    new: float
    profiled_old: float
    profiled_new: float
    operations: list[OperationFacts]


class Content(TypedDict):
    old: str
    new: str
    cells: dict[str, CellFacts]
    differs: list[str]


def read(content: Any, source: str) -> Document:
    """Return the Document of a file. Raises SteleError, which names the file, if it is not one."""
    try:
        facts = schema.unwrap(content)
        schema.check(facts, Content, "it")
        if not all(min(one["old"], one["profiled_old"]) > 0 for one in facts["cells"].values()):
            raise ValueError("a step takes no time")
    except ValueError as error:
        raise SteleError(f"{source} is not an explanation: {error}.") from None
    cells = {name: to_comparison(one) for name, one in facts["cells"].items()}
    return Document(facts["old"], facts["new"], cells, facts["differs"])


def to_comparison(facts: Mapping[str, Any]) -> Comparison:
    """Return a Comparison without the keys of newer versions."""
    operations = tuple(
        Operation(**{name: one[name] for name in Operation._fields}) for one in facts["operations"]
    )
    numbers = {name: facts[name] for name in Comparison._fields if name != "operations"}
    return Comparison(**numbers, operations=operations)
