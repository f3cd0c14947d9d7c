"""A report in Markdown."""

import re

import pytest

from stele.report import build, markdown, sources
from tests.support import gate_records

HOSTILE = "<script>alert(1)</script> |`\"'\\\u202e\n=1+1 [x](javascript:y) &amp;"
REGRESSED = gate_records.verdict(status="REGRESSED", message="30.0 % slower in 8 passes", ratio=(1.25, 1.3, 1.36))


@pytest.fixture
def read(tmp_path):
    """read(verdicts, **facts) -> the sources of the record of a gate."""

    def read(*verdicts, **facts):
        return sources.read([gate_records.gate(tmp_path / "gate.jsonl", verdicts=verdicts, passes=2, **facts)])

    return read


@pytest.fixture
def hostile(read):
    """The record of a gate in which every name has markup, quotes, a newline and a right-to-left mark."""
    verdict = {**REGRESSED, "task": HOSTILE, "metric": HOSTILE, "message": f"={HOSTILE}"}
    return read(verdict, old=HOSTILE, new=f"={HOSTILE}", cells=((HOSTILE, "train"),))


# Markdown


def test_markdown_has_the_sentence_first_then_what_did_not_pass_then_the_rest_folded(read):
    text = markdown.render(build.report(read(REGRESSED, gate_records.verdict(metric="control"))))
    parts = text.split("\n\n")
    assert parts[0] == "# REGRESSED: torch==2.12.0 to torch==2.13.0"
    assert parts[1].startswith("Do not upgrade yet: with torch==2.13.0, a step of cnn training takes 30.0 % longer")
    open_part, _, folded = text.partition("<details>")
    assert "| REGRESSED | cnn train | step |" in open_part and "| PASS |" not in open_part
    assert "| PASS | cnn train | control |" in folded
    assert text.count("<details>") == text.count("</details>") == text.count("<summary>") > 5


def test_markdown_is_short_enough_for_a_comment(read):
    verdicts = [gate_records.verdict(message="so many words " * 40) for _ in range(300)]
    assert len(markdown.render(build.report(read(*verdicts)))) < 65_536


def test_markdown_shows_names_literally(hostile):
    text = markdown.render(build.report(hostile))
    outside = re.sub(r"(?<!\\)`[^`\n]*`", "", text)  # code shows everything literally
    assert "<script" not in outside.replace("\\<", "") and "\u202e" not in text
    assert not re.search(r"(?<!\\)\[x\]", outside)
    rows = [line for line in outside.splitlines() if line.startswith("| REGRESSED")]
    columns = [len(re.findall(r"(?<!\\)\|", line)) for line in rows]
    assert columns == [len(re.findall(r"(?<!\\)\|", outside.splitlines()[outside.splitlines().index(rows[0]) - 1]))]
