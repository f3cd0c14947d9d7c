"""The pages of the documentation, and the commands that they show."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# links and paths

DOCS = sorted([*(ROOT / "docs").glob("*.md"), *(ROOT / "docs/results").glob("*.md")])


def prose(page):
    """Return the text of a page without blocks of code."""
    return re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)


# commands


SHOWN = [*sorted(ROOT.glob("*.md")), *DOCS]
SHOWN += sorted((ROOT / "examples").glob("*/README.md"))
STANDS_FOR_OTHERS = re.compile(r"\.\.\.|…|\||\[|--option|COMMAND")  # no command, but a description of commands


def code(page):
    """Yield the joined lines of blocks of code, and the code within sentences; and whether it is a block."""
    text = page.read_text(encoding="utf-8")
    for block in re.findall(r"^```\w*\n(.*?)^```", text, flags=re.M | re.S):
        yield from ((line, True) for line in block.replace("\\\n", " ").splitlines())
    yield from ((text, False) for text in re.findall(r"`([^`]+)`", re.sub(r"\s*\n\s*", " ", prose(page))))


def commands(program):
    """Return the arguments of each command of a program that a page shows, and whether it is in a block of code."""
    found = []
    for page in SHOWN:
        for line, block in code(page):
            for part in re.split(r"&&|\|\||;|\$ ", line.partition("  #")[0]):
                words = rf"^(?:\s*- (?:run: )?|\s*run: |[A-Z_]+=\S+ |\S*/|\s*)*{program} (.*)"
                match = re.match(words, part.strip().removesuffix(" || status=$?"))
                if match and not STANDS_FOR_OTHERS.search(match[1]):
                    found.append(pytest.param(match[1].partition(" > ")[0], block, id=f"{page.name}: {match[1]}"[:90]))
    return found
