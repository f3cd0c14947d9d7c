"""``stele schema``: the JSON Schema of a document that Stele writes for programs."""

import argparse
import json
from typing import Any

from stele import documents
from stele.text import align


def add(commands: Any) -> None:
    summary = "print the JSON Schema of a document that Stele writes for programs"
    command = commands.add_parser("schema", help=summary, description=summary)
    command.add_argument("document", nargs="?", metavar="NAME", help="such as gate; default: list them")
    command.set_defaults(command=schema)


def schema(arguments: argparse.Namespace) -> int:
    """Print the schema, or the names of the documents. Returns 0."""
    if arguments.document is None:
        listed = documents.documents()
        print("\n".join(align([[name, one.first.title] for name, one in listed.items()])))
    else:
        print(json.dumps(documents.json_schema(arguments.document), indent=1, ensure_ascii=False))
    return 0
