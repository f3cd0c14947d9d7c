"""``stele schema``: the JSON Schema of a document that Stele writes for programs."""

import json
from dataclasses import dataclass
from typing import Any

from stele import documents
from stele.commands import options
from stele.text import align


@dataclass(frozen=True, kw_only=True)
class SchemaOptions:
    document: str | None = None


def add(commands: Any) -> None:
    summary = "print the JSON Schema of a document that Stele writes for programs"
    command = commands.add_parser("schema", help=summary, description=summary)
    command.add_argument("document", nargs="?", metavar="NAME", help="such as gate; default: list them")
    options.declare(command, schema, SchemaOptions)


def schema(chosen: SchemaOptions) -> int:
    """Print the schema, or the names of the documents. Returns 0."""
    if chosen.document is None:
        listed = documents.documents()
        print("\n".join(align([[name, document.title] for name, document in listed.items()])))
    else:
        print(json.dumps(documents.json_schema(chosen.document), indent=1, ensure_ascii=False))
    return 0
