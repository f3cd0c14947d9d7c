"""``stele baseline`` as a user runs it."""

from stele import __main__ as entry_point
from stele.gate import baseline
from tests.gate.test_baseline import compare, launches


def test_without_a_baseline_the_verdict_names_the_command_that_saves_one(run, tmp_path):
    [verdict] = compare(launches(run), tmp_path)
    assert "no baseline torch-cnn-train-cpu-fp32.json. Save one with: pytest perf_tests" in verdict.message


def test_the_command_promotes_and_names_missing_candidates(run, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert entry_point.main(["baseline", "promote"]) == 2
    assert "There are no saved candidates in baselines." in capsys.readouterr().err
    baseline.save(launches(run))
    assert entry_point.main(["baseline", "promote", "torch-gru-train"]) == 2
    assert "Unknown candidate 'torch-gru-train" in capsys.readouterr().err
    assert entry_point.main(["baseline", "promote"]) == 0
    assert capsys.readouterr().out.endswith("/torch-cnn-train-cpu-fp32.json\n")
