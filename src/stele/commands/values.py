"""``stele values``: what tests, a function or a command computed in OLD and in NEW."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stele import files, schema, subjects
from stele.commands import options, screen
from stele.commands.gate import FOLDER
from stele.errors import SteleError
from stele.gate import behaviour_verdicts, outcome
from stele.gate import record as records
from stele.gate.entries import Header, MovedValue
from stele.gate.record import Record
from stele.measuring.answers import Value

SHOWN = 4  # numbers of an array
EPILOG = "Exit: 0 success; 2 usage or environment; 4 internal error."


@dataclass(frozen=True, kw_only=True)
class ValuesOptions:
    record: Path | None = None  # None: the newest one
    json: Path | None = None


def add(commands: Any) -> None:
    about = "the values of tests that differ between OLD and NEW, to write them into the tests"
    command = commands.add_parser("values", help=about, description=about, epilog=EPILOG)
    command.add_argument("record", nargs="?", type=Path, metavar="RECORD", help=f"default: the newest in {FOLDER}")
    command.add_argument("--json", type=Path, metavar="FILE", help="write both values of each as JSON")
    options.declare(command, values, ValuesOptions)


def values(chosen: ValuesOptions) -> int:
    """Print each value that is not equal, with its test, the old and the new value, and how far it moved."""
    record = newest() if chosen.record is None else read(chosen.record)
    program = subjects.of_header(record.header)
    if not isinstance(program, subjects.Program):
        raise SteleError(f"{record.path} is a gate of networks, which has no values. Name a gate of tests.")
    moved = behaviour_verdicts.moved_values(program, behaviour_verdicts.passes_of(record))
    if chosen.json is not None:
        files.write_output_text(chosen.json, schema.document({"values": moved}))
    lines = [line for each in moved for line in lines_of(each)]
    screen.print_lines(lines or ["All values are equal in OLD and in NEW."])
    return 0


def read(path: Path) -> Record:
    """Return a record. Raises SteleError if the file is not one."""
    if not files.is_file(path):
        raise SteleError(f"There is no record {path}.")
    record = records.read(path)
    outcome.check(record.header, Header, str(path))
    return record


def newest() -> Record:
    """Return the newest record of a program. Raises SteleError if there is none."""
    for path in sorted(FOLDER.glob("*.jsonl"), reverse=True):
        record = read(path)
        if "program" in record.header:
            return record
    raise SteleError(f"No record of tests in {FOLDER}. Make one with: stele gate OLD NEW -- pytest tests")


def lines_of(value: MovedValue) -> list[str]:
    return [
        f"{value.item}  {value.name}",
        f"    {text_of(value.old)} → {text_of(value.new)}  ({value.message})",
    ]


def text_of(value: Value) -> str:
    """Return a value as a short text: some of the numbers of an array."""
    if "text" in value:
        return value["text"]
    numbers = [f"{number:.9g}" if isinstance(number, float) else str(number) for number in value["numbers"]]
    if len(numbers) == 1:
        return numbers[0]
    more = f", … ({'x'.join(map(str, value['shape']))})" if len(numbers) > SHOWN else ""
    return f"[{', '.join(numbers[:SHOWN])}{more}]"
