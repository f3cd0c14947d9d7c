import pytest

from stele.commands import options
from tests.support.command_lines import parse


@pytest.mark.parametrize("text, value", [("90s", 90), ("20m", 1200), ("1.5h", 5400)])
def test_durations_are_parsed(text, value):
    assert options.parse_duration(text) == value


def test_a_model_of_the_user_computes_in_the_default_precision_of_its_framework():
    assert options.precision_of(None, tuned=False) == "default"
    assert options.precision_of("bf16", tuned=False) == "bf16"
    assert options.precision_of(None, tuned=True) == "fp32"


@pytest.mark.parametrize(("own", "threads", "expected"), [("3", None, 3), ("3", 1, 1), ("64", None, 3), ("a", None, 1)])
def test_the_users_number_of_threads_is_used_as_far_as_there_are_processors(monkeypatch, own, threads, expected):
    monkeypatch.setattr("stele.measuring.processors.count", lambda: 4)
    monkeypatch.setenv("OMP_NUM_THREADS", own)
    assert options.threads_of(threads, tuned=False) == expected
    assert options.threads_of(None) == 1


def test_the_allocator_is_that_of_the_c_library_by_default():
    assert parse("gate", "old", "new").pair.process.malloc == "plain"


def test_the_packages_of_a_project_are_those_of_with(tmp_path):
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "x"\nversion = "1"\ndependencies = ["toy<3"]\n')
    given = {"requirements": ("einops",), "with_project": tmp_path}
    found = options.ModelOptions(**given, python="3.11").of_arms()
    assert (found.requirements, found.python) == (("einops", "toy<3"), "3.11")
