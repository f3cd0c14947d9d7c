"""The JSON documents that Stele writes, as a page and as JSON Schema. Both are made of the types of the documents.

The description and the unit of a key are in the type, as ``stele.schema.about`` has them; the text of a document is the
docstring of its type. JSON Schema: https://json-schema.org/draft/2020-12.
"""

import inspect
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, is_typeddict

import msgspec
from msgspec.inspect import Type

from stele.environments.packages import Difference
from stele.environments.state import EnvironmentsFile
from stele.errors import SteleError
from stele.explain.document import ExplanationFile
from stele.fleet.campaign import CampaignFile
from stele.fleet.status import StatusFile
from stele.gate.baseline import Baseline
from stele.gate.calibration import CalibrationFile
from stele.gate.entries import ENTRIES, GateFile, RecordHeader, Verdict
from stele.measuring.conditions import Conditions
from stele.measuring.content import Groups
from stele.measuring.lock import Holder
from stele.measuring.machine import Machine
from stele.measuring.run import Options, Origin, Run, RunFile
from stele.measuring.settings import Settings
from stele.parity.accuracy import BandsFile
from stele.parity.capabilities import CapabilitiesFile
from stele.parity.defaults import DefaultsFile
from stele.parity.ladder import LadderFile
from stele.releases.bisection import BisectionFile
from stele.releases.measuring import NumbersFile
from stele.report.published import PublishedFile
from stele.report.releases import NightFile
from stele.report.time_to_accuracy import ResultsFile
from stele.schema import SCHEMA
from stele.statistics import Estimate
from stele.subjects import ModelRequest
from stele.text import unknown_message

DIALECT = "https://json-schema.org/draft/2020-12/schema"
ABOUT = """
Every JSON document that Stele writes for programs is an object with `"schema": 1`. This page lists the keys of each
document. `stele schema NAME` prints them as [JSON Schema](https://json-schema.org). Tests compare what is written
with it. A key is always present unless its meaning starts with "Only". An unknown value is null, never 0. Times are
in seconds, sizes in bytes, shares in fractions. The number of the schema increases when a key is renamed or removed,
or changes its meaning. Ignore keys that you do not know.

A reader that finds another number than 1 reports an error.
"""
END = """
## Other formats
- The files in `.stele/asv` are asv's. The files of `--benchmark-json` are pytest-benchmark's.
- The files of `stele time-to-accuracy --dawnbench` and `--mlperf` have the formats of DAWNBench and of
  mlperf-logging.
- Messages between host and worker have the version of the protocol: `docs/protocol.md`.
- Golden numbers, `src/stele_suite/golden/<task>.npz`, are arrays; `src/stele/parity/golden_numbers.py` describes
  their names.
- The index of data sets in the user's cache and the launches of `checks/study` have no schema number. They are
  internal.
"""


class Document(NamedTuple):
    title: str
    kind: type
    numbered: bool = True  # whether it is a file or an output, with a schema number; else a part of others
    lines: tuple[type, ...] = ()  # a file of JSON lines has these after the first

    @property
    def name(self) -> str:
        """The name on the command line, such as ``time-to-accuracy``."""
        return self.title.removeprefix("stele ").removesuffix(" --json").lower().replace(" ", "-")


DOCUMENTS = (
    Document("stele env list --json", EnvironmentsFile),
    Document("stele gate --json", GateFile),
    Document("Content", Groups, numbered=False),
    Document("Settings", Settings, numbered=False),
    Document("Machine", Machine, numbered=False),
    Document("Conditions", Conditions, numbered=False),
    Document("Origin", Origin, numbered=False),
    Document("Estimate", Estimate, numbered=False),
    Document("Verdict", Verdict, numbered=False),
    Document("Difference", Difference, numbered=False),
    Document("Options", Options, numbered=False),
    Document("Model", ModelRequest, numbered=False),
    Document("Gate record", RecordHeader, lines=tuple(dict.fromkeys(ENTRIES.values()))),
    Document("Run", RunFile),
    Document("stele time-to-accuracy --json", ResultsFile),
    Document("Baseline", Baseline),
    Document("stele explain --json", ExplanationFile),
    Document("stele bisect --json", BisectionFile),
    Document("stele nightly --json", NightFile),
    Document("stele calibrate --json", CalibrationFile),
    Document("stele parity --json", LadderFile),
    Document("Accuracy bands", BandsFile),
    Document("Recorded defaults", DefaultsFile),
    Document("stele capabilities --json", CapabilitiesFile),
    Document("stele releases measure", NumbersFile),
    Document("Published results", PublishedFile),
    Document("Lock of the machine", Holder),
    Document("Status of a fleet", StatusFile),
    Document("Request of a fleet", CampaignFile),
)
NAMES: dict[object, str] = {
    msgspec.inspect.StrType: "string",
    msgspec.inspect.FloatType: "number",
    msgspec.inspect.IntType: "integer",
    msgspec.inspect.BoolType: "boolean",
    msgspec.inspect.DateType: "string",
    msgspec.inspect.DictType: "object",
    msgspec.inspect.StructType: "object",
    msgspec.inspect.DataclassType: "object",
    msgspec.inspect.TypedDictType: "object",
    msgspec.inspect.NamedTupleType: "array",
    msgspec.inspect.AnyType: "",
}
OBJECTS = (msgspec.inspect.StructType, msgspec.inspect.DataclassType, msgspec.inspect.TypedDictType)
ARRAYS = (msgspec.inspect.ListType, msgspec.inspect.VarTupleType)


class Key(NamedTuple):
    name: str
    type: str  # such as "number or null"; empty for any
    unit: str
    meaning: str  # Markdown


class Part(NamedTuple):
    """The table of the keys of a type."""

    title: str
    text: str
    keys: tuple[Key, ...]


def documents() -> dict[str, Document]:
    """Return the documents by their names on the command line."""
    return {document.name: document for document in DOCUMENTS}


def titles() -> dict[type, str]:
    """Return the titles of the types that have a place of their own on the page."""
    return {document.kind: document.title for document in DOCUMENTS} | {Run: "Run"}


def parts_of(kind: type, *, beside: Iterable[type] = ()) -> Iterator[Part]:
    """Yield the table of a type, and those of the types in it that have no place elsewhere, nor are ``beside`` it."""
    listed = {kind, *titles(), *beside} - ({Run} if kind is RunFile else set())
    waiting = [kind]
    while waiting:
        facts: Any = msgspec.inspect.type_info(waiting.pop(0))
        keys = tuple(Key(field.encode_name, *described(field.type)) for field in facts.fields)
        yield Part(facts.cls.__name__, inspect.getdoc(facts.cls) or "", keys)
        inner = [type_ for field in facts.fields for type_ in types_in(field.type) if type_ not in listed]
        waiting += dict.fromkeys(inner)
        listed.update(inner)


def described(kind: Type) -> tuple[str, str, str]:
    """Return the type of a key as text, its unit, and its meaning, with the table of its objects."""
    facts = (kind.extra_json_schema or {}) if isinstance(kind, msgspec.inspect.Metadata) else {}
    by_type = titles()
    tables = [f"see *{by_type.get(type_, type_.__name__)}*" for type_ in dict.fromkeys(types_in(kind))]
    meaning = "; ".join(filter(None, [facts.get("description", ""), *tables]))
    return type_text(kind), facts.get("unit", ""), meaning


def types_in(kind: Any) -> Iterator[type]:
    """Yield the types with keys of their own that a type consists of."""
    if isinstance(kind, OBJECTS):
        yield kind.cls
        return
    for name in ("type", "item_type", "value_type"):
        if hasattr(kind, name):
            yield from types_in(getattr(kind, name))
    for part in (*getattr(kind, "types", ()), *getattr(kind, "item_types", ())):
        yield from types_in(part)


def type_text(kind: Any) -> str:
    """Return ``number or null``, ``array of objects`` and so on; empty for any type."""
    if isinstance(kind, msgspec.inspect.Metadata):
        return type_text(kind.type)
    if isinstance(kind, msgspec.inspect.UnionType):
        rest = [item for item in kind.types if not isinstance(item, msgspec.inspect.NoneType)]
        return " or ".join([*map(type_text, rest), *(["null"] if len(rest) < len(kind.types) else [])])
    if isinstance(kind, ARRAYS):
        items = type_text(kind.item_type)
        return f"array of {items}s" if items in NAMES.values() and items else "array"
    return NAMES.get(type(kind), "array")


def page() -> str:
    """Return docs/schemas.md."""
    blocks = ["# JSON documents", ABOUT]
    for document in DOCUMENTS:
        first, *parts = parts_of(document.kind)
        if document.numbered:
            first = first._replace(keys=(Key("schema", "integer", "", "1"), *first.keys))
        for line in document.lines:
            parts += parts_of(line, beside=document.lines)
        unique = {part.title: part for part in parts}.values()
        blocks += [section(f"## {document.title}", first), *(section(f"### {part.title}", part) for part in unique)]
    return "\n\n".join(block.strip() for block in [*blocks, END]) + "\n"


def section(heading: str, part: Part) -> str:
    text = f"{heading}\n{part.text}".strip()
    return f"{text}\n\n{table(part.keys)}"


def table(keys: Iterable[Key]) -> str:
    rows = ["".join(f"| {text} " if text else "| " for text in (f"`{key.name}`", *key[1:])) + "|" for key in keys]
    return "\n".join(["| key | type | unit | meaning |", "| --- | --- | --- | --- |", *rows])


def json_schema(name: str) -> dict[str, Any]:
    """Return the JSON Schema of a document. Raises SteleError, with the nearest name, if there is none.

    Every key is always there, but for those of a TypedDict that says otherwise.
    """
    if name not in documents():
        raise SteleError(unknown_message("document", name, documents()))
    document = documents()[name]
    kinds = [document.kind, *document.lines]
    _, definitions = msgspec.json.schema_components(kinds, ref_template="#/$defs/{name}")
    optional = {definition.__name__ for kind in kinds for definition in every_type(kind) if is_typeddict(definition)}
    for title, definition in definitions.items():
        if title not in optional:
            definition["required"] = list(definition["properties"])
    whole = definitions.pop(document.kind.__name__)
    if document.numbered:
        whole["properties"] = {"schema": {"const": SCHEMA}, **whole["properties"]}
        whole["required"] = ["schema", *whole["required"]]
    if document.lines:
        whole = {"anyOf": [whole, *({"$ref": f"#/$defs/{definition.__name__}"} for definition in document.lines)]}
    return {"$schema": DIALECT, **whole, "title": document.title, "$defs": definitions}


def every_type(kind: type) -> set[type]:
    """Return a type and all types with keys that it consists of."""
    waiting, types = [kind], {kind}
    while waiting:
        facts: Any = msgspec.inspect.type_info(waiting.pop())
        inner = {type_ for field in facts.fields for type_ in types_in(field.type)} - types
        types |= inner
        waiting += inner
    return types
