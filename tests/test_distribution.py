"""The files beside the code agree with it."""

import re
from pathlib import Path

import yaml

from stele import files
from stele.models import changes

ROOT = Path(__file__).parents[1]

PROJECT = files.parse_toml((ROOT / "pyproject.toml").read_text())["project"]


def test_the_citation_has_the_version_and_the_license_of_the_package():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert (citation["version"], citation["license"]) == (PROJECT["version"], PROJECT["license"])
    assert {"cff-version", "message", "title", "authors"} <= set(citation)


def test_the_changelog_begins_with_the_version_of_the_package():
    heading = (ROOT / "CHANGELOG.md").read_text().split("\n## ")[1].splitlines()[0]
    assert heading.startswith(PROJECT["version"])


def test_the_package_requires_no_framework():
    names = [re.match(r"[\w-]+", one)[0] for one in PROJECT["dependencies"]]
    assert names and not [name for name in names if changes.FRAMEWORKS.fullmatch(name)]
