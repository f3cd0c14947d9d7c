"""The decision code of other tools, unmodified, on steps of launches: does the tool report NEW as slower?

Each function takes launches of OLD and of NEW. A launch is a list of step times in seconds.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from stele.releases import trend

SUITE = """
import json
import pytest
from pytest_stele.replay import clock, replay

STEPS = json.loads(open("steps.json").read())

@pytest.mark.benchmark(timer=clock)
@pytest.mark.parametrize("number", range(len(STEPS)))
def test_steps(benchmark, number):
    replay(benchmark, STEPS[number])
"""
HOOK = """
import json

def pytest_unconfigure(config):
    names = [name for name, _ in config._benchmarksession.performance_regressions]
    open("regressions.json", "w").write(json.dumps(names))
"""


def pytest_benchmark(pairs: list[tuple[list[float], list[float]]], threshold: str) -> list[bool]:
    """Return what ``--benchmark-compare-fail`` reports of each pair, through the plugin with a replaying timer."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "test_steps.py").write_text(SUITE)
        (folder / "conftest.py").write_text(HOOK)
        (folder / "pytest.ini").write_text("[pytest]\n")
        for arm, option in (
            (0, ["--benchmark-save=old"]),
            (1, ["--benchmark-compare", f"--benchmark-compare-fail={threshold}"]),
        ):
            (folder / "steps.json").write_text(json.dumps([pair[arm] for pair in pairs]))
            command = [
                sys.executable,
                "-m",
                "pytest",
                "-q",
                "-p",
                "no:cacheprovider",
                "--benchmark-columns=min",
                *option,
            ]
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
            if done.returncode not in (0, 1):  # 1: a test regressed
                raise SystemExit(f"pytest-benchmark failed in the study:\n{done.stdout}{done.stderr}")
        names = json.loads((folder / "regressions.json").read_text())
    flagged = {int(name.rpartition("[")[2].partition("]")[0]) for name in names}
    return [number in flagged for number in range(len(pairs))]


def asv_continuous(old: list[list[float]], new: list[list[float]], *, factor: float) -> bool:
    """Return what asv reports for five samples of each round."""
    from asv._stats import is_different
    from asv_runner.statistics import compute_stats

    samples = [[step for launch in arm for step in launch[:5]] for arm in (old, new)]
    (before, first), (after, second) = [compute_stats(arm, 1) for arm in samples]
    return bool(is_different(*samples, first, second)) and after > factor * before


def pyperf(old: list[list[float]], new: list[list[float]]) -> bool:
    """Return what ``pyperf compare_to`` reports for three values of each process."""
    from pyperf._utils import is_significant

    first, second = [[step for launch in arm for step in launch[:3]] for arm in (old, new)]
    significant, _ = is_significant(first, second)
    return bool(significant) and sum(second) / len(second) > sum(first) / len(first)


def otava(series: list[list[float]], change: int) -> list[bool]:
    """Return whether Otava finds an increase within two launches of where NEW begins, in its own environment."""
    answers = trend.otava(series)
    if answers is None:
        raise SystemExit("Otava could not be installed. Check the network connection.")
    return [any(abs(index - change) <= 2 and after > before for index, before, after in points) for points in answers]
