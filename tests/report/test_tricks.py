"""The report of tricks."""

import re

import pytest

from tests.support.tricks import part


def table(capsys):
    """Return the cells of the table by trick."""
    text = capsys.readouterr().out.split("\nfake\n")[1]
    rows = [re.split("  +", line) for line in text.splitlines() if line]
    return {row[0]: row for row in rows[1:]}


@pytest.mark.slow
def test_the_table_has_the_accuracy_at_the_old_and_the_new_epochs_and_the_published_time(tricks, capsys):
    assert tricks() == 0
    rows = table(capsys)
    assert rows["baseline"][-1] == "75.0" and rows["device-augmentation"][-1] == "70.0"
    smoothing = rows["label-smoothing"]
    assert smoothing[1] == "[2.00 2.00 2.00]"
    assert smoothing[2] == "24" and smoothing[4] == "23"
    assert " 62.00 " in smoothing[3] and " 62.00 " in smoothing[5]
    assert smoothing[-1] == "59.0"
    assert len(rows["ema"]) == 8  # the article has no time for it alone


@pytest.mark.slow
def test_a_trick_that_a_framework_does_not_have_is_absent_with_the_reason(tricks, capsys):
    assert tricks() == 0
    assert "celu: absent, it has no CELU" in table(capsys)


@pytest.mark.slow
def test_the_tables_are_written_between_the_markers_of_a_page(tricks, tmp_path):
    path = tmp_path / "page.md"
    path.write_text(f"# Tricks\n{part('Not measured yet.')}")
    assert tricks(f"--write={path}") == 0
    text = path.read_text()
    assert "| label-smoothing |" in text and "**fake**: cnn, scale quick" in text and "Not measured" not in text
