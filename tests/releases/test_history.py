"""Numbers of releases: measured side by side, written in asv's format, and read by asv."""

import json
import math
import re

import pytest

from stele import environments
from stele.commands import releases as releases_command
from stele.releases import campaign, history
from tests.support.histories import CELL, TAGS, request


def test_the_failure_of_a_cell_is_saved_beside_the_numbers_of_other_cells(machine):
    timed = machine(dict.fromkeys(TAGS, 1.0))
    campaign.measure_releases(TAGS, request())
    history.save(TAGS[0], history.current_place(), {"step": {"gru train tuned": None}})
    history.save(TAGS[0], history.current_place(), {"step": {"cnn infer tuned": 0.1}})
    assert history.recorded_cells(TAGS[0], history.current_place(), "step") == {
        CELL,
        "gru train tuned",
        "cnn infer tuned",
    }
    assert history.numbers(TAGS[0], history.current_place())["step"] == {
        CELL: pytest.approx(0.01),
        "cnn infer tuned": 0.1,
    }
    campaign.measure_releases(TAGS, request())
    assert len(timed) == 3


def test_a_damaged_file_is_reported_and_renamed(machine, capsys):
    machine(dict.fromkeys(TAGS, 1.0))
    campaign.measure_releases(TAGS, request())
    path = history.file(TAGS[0], history.current_place())
    path.write_text('{"results": [')
    assert history.numbers(TAGS[0], history.current_place()) is None
    assert re.search(r"is damaged: .* It was renamed to \w+-virtualenv-py[\d.]+\.damaged", capsys.readouterr().err)
    assert not path.exists() and path.with_suffix(".damaged").exists()


@pytest.mark.slow
def test_other_modes_have_lines_of_their_own(machine):
    path = environments.folders()[1] / "abacus.toml"
    path.write_text(path.read_text() + '[modes.plain]\nlabel = "plain"\n[modes.slow]\nlabel = "slow"\n')
    environments.described.cache_clear()
    assert releases_command.parse_modes("tuned,slow") == ("tuned", "slow")
    timed = machine(dict.fromkeys(TAGS, 1.0))
    for _ in range(2):
        assert campaign.measure_releases(TAGS, request(modes=("tuned", "slow")))
        assert set(history.numbers(TAGS[0], history.current_place())["step"]) == {CELL, "gru infer slow"}
    assert len(timed) == 6  # not measured again


def test_asv_tracks_the_metrics_that_stele_measures():
    history.benchmarks.cache_clear()  # another test has modes of its own
    benchmarks = {benchmark["name"]: benchmark for benchmark in history.benchmarks()}
    assert set(benchmarks) == {
        f"recipes.track_{name}" for name in ("step", "first_step", "import", "host_memory", "device_memory", "error")
    }
    step = benchmarks["recipes.track_step"]
    assert (step["unit"], step["version"], step["type"]) == ("seconds", "1", "track")
    assert step["param_names"] == ["task", "phase", "mode"]
    assert history.cell_names(step["params"])[:3] == [
        "cnn train tuned",
        "cnn train as-shipped",
        "cnn infer tuned",
    ]


def test_result_files_have_the_same_names_as_asvs(machine):
    machine(dict.fromkeys(TAGS, 1.0))
    campaign.measure_releases(TAGS[:1], request())
    [path] = [path for path in history.RESULTS.glob("*/*.json") if path.name != "machine.json"]
    content = json.loads(path.read_text())
    assert content["env_name"] == history.current_place().environment
    assert content["params"]["machine"] == path.parent.name
    assert set(content["params"]) == {"machine", "os", "arch", "cpu", "num_cpu", "ram", "python"}
    value = content["results"]["recipes.track_error"][0]
    assert value is None or all(math.isnan(number) for number in value)
