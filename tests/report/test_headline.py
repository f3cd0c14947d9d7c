"""The sentence at the top of a report."""

import pytest

from tests.support import gate_records
from tests.support.reports import REGRESSED, ROOT, parity_alone, report

# what it says


def test_the_sentence_of_a_regression_needs_no_knowledge_of_stele(folder):
    path = gate_records.gate(folder / "a.jsonl", verdicts=[REGRESSED, gate_records.verdict(metric="control")])
    top = report(path).headline
    assert top.status == "REGRESSED"
    assert top.sentence == (
        "Do not upgrade yet: with torch==2.13.0, a step of cnn training takes 30.0 % longer "
        "(98 % interval 25.0 to 36.0 %) than with torch==2.12.0."
    )
    assert "OLD and NEW differ in torch 2.12.0 → 2.13.0, numpy 2.0.0 → 2.1.0." in top.causes
    commands = [remedy.command for remedy in top.remedies]
    assert "--tolerance step=36% --margin step=36%" in commands
    assert "stele bisect torch 2.12.0 2.13.0 --task cnn --phase train --metric step" in commands


def test_the_release_that_is_worse_is_bisected_between_pinned_releases(folder):
    top = report(ROOT / "docs/results/gates/tensorflow-cpu-2.20.0-2.21.0.json").headline
    command = "stele bisect tensorflow-cpu 2.20.0 2.21.0 --task gru --phase train --metric first-step"
    assert command in [remedy.command for remedy in top.remedies]


def test_the_sentence_names_the_metric_that_grew_most(folder):
    worse = gate_records.verdict("gru", "infer", "host-memory", "REGRESSED", "twice", (1.9, 2.0, 2.1))
    top = report(gate_records.gate(folder / "a.jsonl", verdicts=[REGRESSED, worse])).headline
    assert "gru inference uses 2.0 times as much memory (98 % interval 1.9 to 2.1 times) as with" in top.sentence


@pytest.mark.parametrize(
    "status, beginning",
    [
        ("PASS", "From torch==2.12.0 to torch==2.13.0, nothing"),
        ("IMPROVED", "From torch==2.12.0 to torch==2.13.0, nothing"),
        ("INCONCLUSIVE", "The upgrade from torch==2.12.0 to torch==2.13.0 has no verdict yet: "),
        (
            "BROKEN",
            "Do not upgrade: torch==2.13.0 fails, or computes something different from torch==2.12.0.",
        ),
        ("MISSING", "Do not upgrade yet: torch==2.13.0 cannot run cnn training, which torch==2.12.0 can."),
    ],
)
def test_each_status_has_a_sentence_and_a_remedy(folder, status, beginning):
    path = gate_records.gate(folder / "a.jsonl", verdicts=[gate_records.verdict(status=status)])
    top = report(path).headline
    assert top.sentence.startswith(beginning)
    assert top.causes and top.remedies


def test_several_gates_have_the_sentence_of_the_worst(folder):
    gate_records.gate(folder / "a.jsonl", verdicts=[gate_records.verdict()])
    gate_records.gate(folder / "b.jsonl", verdicts=[REGRESSED])
    whole = report(folder)
    assert whole.headline.title == "2 gates: 1 REGRESSED, 1 PASS"
    assert whole.headline.sentence.startswith("The worst of 2 gates: Do not upgrade yet")
    names = [figure.table.name for one in whole.sections for figure in one.figures]
    assert len(set(names)) == len(names)


def test_a_gate_that_leaves_something_out_says_so_and_does_not_advise_the_upgrade(tmp_path):
    report = parity_alone(tmp_path / "a.jsonl", metrics={}, model={"spec": "m.py:model", "folder": "/"})
    missing = "inference, the time of a step, memory"
    assert report.headline.sentence == (
        "From torch==2.12.0 to torch==2.13.0, nothing that was judged "
        f"became worse by more than is allowed, and both compute the same. Not judged: {missing}."
    )
    [remedy] = report.headline.remedies
    assert remedy.text == f"Before you upgrade, judge the rest, too: {missing}. --phase and --metric select it."


def test_a_gate_of_one_release_with_itself_is_no_upgrade(tmp_path):
    report = parity_alone(tmp_path / "a.jsonl", new="torch==2.12.0")
    assert report.headline.sentence.startswith("OLD and NEW are the same, so this gate checks the machine")
    assert [remedy.text for remedy in report.headline.remedies] == [
        "Name the release that you want to upgrade to as NEW."
    ]
