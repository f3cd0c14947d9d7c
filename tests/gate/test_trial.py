"""A record is resumed only by a trial of the same content and options."""

import pytest

from stele.measuring import content, measure
from stele.measuring.run import Origin
from tests.support.gates import INPUTS, answer, entries, measure_arms, slower


def test_a_record_of_another_version_of_stele_is_refused(gate, monkeypatch, capsys):
    gate()
    monkeypatch.setattr(content, "of_package", lambda package: "0123")
    assert gate("--resume") == 2
    assert "because what it measured has changed: Stele itself changed." in capsys.readouterr().err


def test_a_record_of_other_data_is_refused(gate, monkeypatch, capsys):
    gate()
    other = {**INPUTS, "data_origin": Origin(origin="official", fingerprint="1")}
    monkeypatch.setattr(measure, "inputs", lambda task: (other, None))
    assert gate("--resume") == 2
    message = "the data of gru was official 0 seeded and is now official 1 seeded."
    assert message in capsys.readouterr().err


def test_passes_of_two_contents_are_never_pooled(gate, monkeypatch, capsys):
    measured = []

    def measure_and_change(*about):
        measured.append(about)
        if len(measured) == 2:  # in the middle of the second pass
            monkeypatch.setattr(content, "of_package", lambda package: "0")
        return measure_arms(*about)

    answer(monkeypatch, measure_and_change)
    assert gate() == 2
    assert "changed during the measurement: Stele itself changed." in capsys.readouterr().err
    assert [launch["key"] for launch in entries()[1]] == [["long", "gru infer", 0]]


def test_a_record_of_a_different_machine_is_refused(gate, monkeypatch, capsys):
    gate()
    monkeypatch.setattr("stele.measuring.machine.processor", lambda: "Abacus 3000")
    assert gate("--resume") == 2
    assert "its processor was" in capsys.readouterr().err


def test_an_arm_that_changed_its_release_is_refused(gate, capsys):
    gate(new={"seconds": slower(1.05)})
    path, _ = entries()
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(line.replace('{"scripted":"1.0"}', '{"scripted":"0.9"}') for line in lines[:2]))
    assert gate("--resume", new={"seconds": slower(1.05)}) == 2
    assert "was {'scripted': '0.9'}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("recorded", "now", "said"),
    [
        ((), ("--metric=import",), "made with --metric step; now --metric import."),
        (("--metric=step,import",), (), "made with --metric step,import; now --metric step."),
        ((), ("--seed", "7"), "made without --seed; now --seed 7."),
        (("--seed=7", "--threads=1"), ("--budget=9m",), "made with --seed 7; now without --seed."),
        (
            (),
            ("--scale", "study", "--seed=7"),
            "made without --scale; now --scale study and without --seed; now",
        ),
    ],
)
def test_a_record_of_different_options_is_refused_and_they_are_named_as_they_were_typed(
    gate, capsys, recorded, now, said
):
    gate(*recorded)
    assert gate("--resume", *now) == 2
    error = capsys.readouterr().err
    # where the default is another number of threads, their option is named, too
    assert f"it was {said}" in error.replace(" and with --threads 1; now without --threads", "")
    assert "with the options of the record" in error and "an older one" not in error


@pytest.mark.slow
def test_an_older_record_that_may_fit_is_named(gate, capsys):
    gate("--seed=7")
    path, _ = entries()
    older = path.rename(path.with_name(f"20200101-000000{path.name[15:]}"))
    gate()
    assert gate("--seed=7", "--resume") == 2
    assert f"an older one may fit: --resume {older}" in capsys.readouterr().err
    assert gate("--seed=7", "--resume", str(older)) == 0
