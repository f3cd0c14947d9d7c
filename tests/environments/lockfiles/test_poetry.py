"""Versions in the notation of Poetry."""

import pytest

from stele.environments.lockfiles import read


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("^3.10", "<4,>=3.10"),
        ("^0.4.1", "<0.5,>=0.4.1"),
        ("^0.0.3", "<0.0.4,>=0.0.3"),
        ("~3.10", "<3.11,>=3.10"),
        ("~3", "<4,>=3"),
        ("3.11", "==3.11.*"),
        (">=3.10,<3.13", "<3.13,>=3.10"),
        ("^3.9 || ~3.12", "<3.13,>=3.12"),
        ("*", None),
    ],
)
def test_versions_in_the_notation_of_poetry_are_translated(text, expected):
    content = f'[[package]]\nname = "torch"\nversion = "2.5.1"\n[metadata]\npython-versions = "{text}"'
    assert read("poetry.lock", content).python == expected
