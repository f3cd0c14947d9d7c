"""The options of the plugin."""

import pytest

from pytest_stele import options

CONFLICTING = ("--device", "--seed", "--runs", "--threads", "--framework", "--task", "--scale", "--launches")


def test_every_option_starts_with_stele():
    assert all(option.flag.startswith("--stele-") and option.dest.startswith("stele_") for option in options.OPTIONS)


@pytest.mark.slow
def test_no_option_conflicts_with_another_plugin(repository):
    lines = "\n".join(f"    parser.addoption({name!r}, help='mine')" for name in CONFLICTING)
    (repository.folder / "conftest.py").write_text(f"def pytest_addoption(parser):\n{lines}\n")
    (repository.folder / "test_nothing.py").write_text(
        "def test_nothing(pytestconfig): assert pytestconfig.option.seed == '3'"
    )
    done = repository("--seed=3")
    assert "1 passed" in done.stdout, done.stdout + done.stderr


@pytest.mark.slow
def test_an_option_that_changes_nothing_is_refused(repository):
    (repository.folder / "test_nothing.py").write_text("def test_nothing(): pass")
    done = repository("--stele-threads=1")
    assert done.returncode == 4
    assert "--stele-threads has no effect: these tests are not Stele's." in done.stdout + done.stderr
    assert "1 passed" in repository().stdout
