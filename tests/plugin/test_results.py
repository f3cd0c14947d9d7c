"""The results of a session, also of several processes."""

import pytest

from tests.support.suites import SECONDS, SUITE


@pytest.mark.slow
def test_the_suite_runs_under_xdist_and_its_table_is_complete(repository):
    done = repository(*SUITE, "-n", "2")
    assert "3 passed" in done.stdout, done.stdout + done.stderr
    assert "\ngru train, batch 64 " in done.stdout
    assert "\ngru infer, batch 64 " in done.stdout


@pytest.mark.slow
def test_the_line_about_environments_without_tests_is_shown_under_xdist(repository):
    done = repository(*(option for option in SUITE if "framework" not in option), "-k", "no_test", "-n", "2")
    assert done.stdout.count("not built: stele env make --all") == 1, done.stdout + done.stderr


def test_one_framework_has_a_line_for_each_task_and_phase_and_the_output_is_short(suite):
    """The suite in one framework has 25 tests, each with a line; its whole output has at most 60."""
    suite.add("steady")
    lines = suite("--framework=steady", "--task=gru").stdout.splitlines()
    at = [number for number, line in enumerate(lines) if line.startswith(("steady, smoke ", "gru "))]
    assert at == [at[0], at[0] + 1, at[0] + 2]
    assert len(lines) + 23 <= 60


@pytest.mark.slow
def test_tests_in_a_row_are_letters_on_one_line(suite):
    suite.add("steady")
    suite.add("better")
    done = suite("--framework=steady,better", "--task=resnet50", "-k", "training")  # they have other numbers
    assert "test_training.py FF" in done.stdout


def test_several_frameworks_have_a_table_for_each_phase_with_the_fastest_first(suite):
    suite.add("steady", seconds=[2 * value for value in SECONDS])
    suite.add("better")
    done = suite("--framework=steady,better", "--task=gru")
    table = done.stdout.partition("=== stele ===")[2]
    assert [line.split()[0] for line in table.splitlines() if "reviews/s" in line] == ["better", "steady"] * 2
    assert table.count("gru train, batch 64\n") == table.count("gru infer, batch 64\n") == 1
    assert table.count("peak memory") == 1  # in the header


@pytest.mark.slow
def test_a_notice_about_data_that_tasks_share_is_shown_once(suite):
    suite.add_oracle()
    done = suite("--framework=numpy", "--task=cnn,cifar-fast", "-k", "inference")
    assert done.stdout.count("cifar10 is synthetic") == 1
    assert done.stdout.count("1 passed") or done.stdout.count("2 passed"), done.stdout


@pytest.mark.slow
def test_the_tables_of_pytest_benchmark_are_shown_on_request(suite):
    suite.add("steady")
    options = ("--framework=steady", "--task=gru", "-k", "training")
    table = "benchmark 'gru train': 1 tests"
    assert table not in suite(*options).stdout
    for option in ("-v", "--benchmark-columns=min"):
        assert table in suite(*options, option).stdout


@pytest.mark.slow
def test_the_tables_of_other_tests_stay(suite):
    suite.add("steady")
    own = suite.folder / "test_own.py"
    own.write_text("def test_own(benchmark):\n    benchmark(len, [])\n")
    done = suite(str(own), "--framework=steady", "--task=gru", "-k", "training or own")
    assert "test_own" in done.stdout.partition("=== stele ===")[2]
    assert "benchmark 'gru train'" not in done.stdout
