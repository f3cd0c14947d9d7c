"""Which benchmarks of an asv suite measure memory, and which folders are one."""

import pytest

from stele.errors import SteleError
from stele.subjects.programs import Asv, asv


@pytest.mark.parametrize(
    ("name", "phase"),
    [
        ("suite.TimeSuite.time_work(1)", "benchmark"),
        ("suite.time_memory", "benchmark"),
        ("suite.mem_list", "memory"),
        ("suite.peakmem_list('a', 2)", "memory"),
        ("suite.MemSuite.mem_list", "memory"),
    ],
)
def test_the_name_of_a_benchmark_says_what_it_measures(tmp_path, name, phase):
    timing = {"seconds": 1.0, "calls": 1, "rounds": 1}
    [cell] = Asv(("benchmarks",), tmp_path, timings={name: timing}).cells()
    assert cell == (name, phase)


def test_a_folder_without_benchmarks_is_refused(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(SteleError, match="--asv empty: it has no __init__.py"):
        asv.parse("empty", tmp_path)
    with pytest.raises(SteleError, match="--asv other: there is no such folder"):
        asv.parse("other", tmp_path)
