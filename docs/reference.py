"""Writes the pages of the reference that are generated from the code: options of pytest, exit codes, and schemas.

python docs/reference.py writes docs/schemas.md and the tables of docs/protocol.md, which are committed. The build of
the site writes the others.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from pytest_stele.options import OPTIONS
from stele import __main__ as entry_point
from stele import documents, files
from stele.commands import examples
from stele.measuring.run import Framework, Options, Outcome
from stele.report import page

EXIT = re.compile(r"(\d+) ([^;]*)")


def write(folder: Path) -> None:
    """Write the pages into ``folder``."""
    for name, text in {"options": options(), "exit-codes": exit_codes()}.items():
        files.write_text(folder / f"{name}.md", text + "\n")


def options() -> str:
    """Return the page of the options of the pytest plugin."""
    rows = [[f"`{' '.join([one.flag, one.keywords.get('metavar', '')]).strip()}`", one.help] for one in OPTIONS]
    about = "`pytest --help` prints the same. In Stele's own repository, the options have short names: `--framework`."
    return f"# Options of pytest\n\n{about}\n\n{page.table(['option', 'meaning'], rows)}"


def exit_codes() -> str:
    """Return the page of the exit codes: of all commands, and of those that say more."""
    parts = ["# Exit codes", page.table(["code", "meaning"], codes(entry_point.EXIT_CODES))]
    for name, parser in examples.parsers(entry_point.parser()):
        text = (parser.epilog or "").partition("\n\nExamples:")[0]
        if name and text.startswith("Exit:"):
            parts += [f"## stele {name}", page.table(["code", "meaning"], codes(text))]
    return "\n\n".join(parts)


def codes(text: str) -> Iterator[list[str]]:
    """Yield each code and its meaning from the text at the end of ``--help``."""
    for code, meaning in EXIT.findall(" ".join(text.split())):
        yield [code, meaning.strip().rstrip(".")]


def fill_protocol(path: Path) -> None:
    """Write the tables of the answers of a worker, and of the options of a request, into docs/protocol.md."""
    for part in (*documents.parts_of(Framework), *documents.parts_of(Options), *documents.parts_of(Outcome)):
        page.fill(path, f"*{part.title}*: {part.text}\n\n{documents.table(part.keys)}", by=part.title)


if __name__ == "__main__":
    files.write_text(Path(__file__).with_name("schemas.md"), documents.page())
    fill_protocol(Path(__file__).with_name("protocol.md"))
