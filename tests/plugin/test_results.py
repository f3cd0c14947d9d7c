"""The results of a session, also of several processes."""

from tests.support.suites import SUITE


def test_the_suite_runs_under_xdist_and_its_table_is_complete(repository):
    done = repository(*SUITE, "-n", "2")
    assert "3 passed" in done.stdout, done.stdout + done.stderr
    assert "gru train, batch 64, smoke" in done.stdout
    assert "gru infer, batch 64, smoke" in done.stdout
