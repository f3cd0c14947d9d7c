"""Every sentence of three pages of the documentation names what checks it: a new sentence without a test fails here.

``promises.txt`` has the sentences in full. Indented below each are its checks: a test as FILE::TEST, whose FILE is in
tests/ (scripts/models runs those of tests/frameworks), or a program of this repository. ``nothing: REASON`` is for a
sentence that promises nothing about Stele. Figures with a machine and a date are in sections of their own, which are
left out.
"""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests"
PAGES = ("docs/your-model.md", "docs/gate.md", "docs/changed.md")
FIGURES = ("How long it takes, and how exact it is", "How long a verdict takes", "Where the time goes")
NOTHING = "nothing: "


def sentences(page):
    """Return the sentences of a page in Markdown, without those of FIGURES. A row of a table is one; code is none."""
    text = re.sub(r"^```.*?^```$", "", page, flags=re.M | re.S)
    text = re.sub(r"^\|.*\n\| *---.*", "", text, flags=re.M)  # the head of a table
    sections = [section.partition("\n") for section in re.split(r"^##? ", text, flags=re.M)]
    parts = [part for heading, _, body in sections if heading not in FIGURES for part in blocks(body)]
    return [sentence for part in parts for sentence in split(part)]


def blocks(text):
    """Return paragraphs, items of lists and rows of tables, each as one line."""
    apart = re.sub(r"^ *(?:- |\d+\. |(?=\|))", "\n", text, flags=re.M)
    return [line for part in re.split(r"\n\s*\n", apart) if (line := " ".join(part.split()))]


def split(line):
    return [line] if line.startswith("|") else re.split(r"(?<=[.!?]) |(?<=[.!?]\)) ", line)


@cache
def promises():
    """Return {sentence: checks} of promises.txt."""
    table = {}
    for entry in re.split(r"\n\s*\n", Path(__file__).with_name("promises.txt").read_text(encoding="utf-8").strip()):
        lines = entry.splitlines()
        sentence = " ".join(line for line in lines if not line.startswith(" "))
        assert sentence not in table, f"twice: {sentence}"
        table[sentence] = [line.strip() for line in lines if line.startswith(" ")]
    return table


@cache
def names_in(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def exists(check):
    file, of_test, name = check.partition("::")
    if of_test:
        return (TESTS / file).is_file() and name in names_in(TESTS / file)
    return check.startswith(NOTHING) or (ROOT / file).is_file()


def said():
    return [one for page in PAGES for one in sentences((ROOT / page).read_text(encoding="utf-8"))]


def test_every_sentence_names_what_checks_it():
    missing = [sentence for sentence in said() if not promises().get(sentence)]
    assert not missing, "Add them to tests/repository/promises.txt, each with the tests that check it"


def test_every_promise_is_a_sentence_of_a_page():
    assert not promises().keys() - {*said()}


@pytest.mark.slow
def test_what_checks_a_sentence_exists():
    assert not {check for checks in promises().values() for check in checks if not exists(check)}


PAGE = """# Title
A first sentence. Another
one (with `code`.) A third: with more?

## Rows
| a | b |
| --- | --- |
| `1` | A row. Still the row |
- An item. **Bold.** With it.
1. A number

## How long a verdict takes
It took 3 s.
```console
no sentence.
```
"""


def test_a_page_is_split_into_sentences():
    assert sentences(PAGE) == [
        "A first sentence.", "Another one (with `code`.)", "A third: with more?",
        "| `1` | A row. Still the row |", "An item.", "**Bold.** With it.", "A number",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("check", "there"),
    [
        ("repository/test_promises.py::test_a_page_is_split_into_sentences", True),
        ("repository/test_promises.py::test_nothing", False),
        ("test_none.py::test_nothing", False),
        ("scripts/examples", True),
        ("scripts/none", False),
        ("nothing: a link", True),
        ("nothing", False),
    ],
)
def test_a_check_is_looked_up(check, there):
    assert exists(check) is there
