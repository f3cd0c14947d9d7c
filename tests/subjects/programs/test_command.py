"""The options of a command."""

import pytest

from stele.errors import SteleError
from stele.subjects.programs import command


def test_directions_are_by_name():
    directions = command.parse_directions(("higher=speed,accuracy", "lower=loss"))
    assert directions == {"speed": "higher", "accuracy": "higher", "loss": "lower"}


@pytest.mark.parametrize("text", ["speed", "more=speed", "higher=", "higher=a,,b"])
def test_another_form_of_a_direction_is_refused(text):
    with pytest.raises(SteleError, match=f"--better {text} is not of the form higher=NAME,NAME or lower=NAME"):
        command.parse_directions((text,))


def test_a_report_that_is_a_folder_is_refused(tmp_path):
    with pytest.raises(SteleError, match="is a folder. Name the JSON file that the command writes"):
        command.parse(("python", "x.py"), tmp_path, str(tmp_path), ())
