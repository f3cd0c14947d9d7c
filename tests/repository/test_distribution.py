"""The files beside the code agree with it."""

import re
import sys
from pathlib import Path
from types import SimpleNamespace

import yaml

from stele import files
from stele.environments import changes
from tests.support import scripts

ROOT = Path(__file__).parents[2]

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


def test_the_readme_of_a_package_index_has_no_relative_links(monkeypatch):
    interface = SimpleNamespace(MetadataHookInterface=object)
    monkeypatch.setitem(sys.modules, "hatchling.metadata.plugin.interface", interface)
    hook = scripts.load(ROOT / "scripts/readme.py", "readme")
    text = hook.without_relative_links((ROOT / "README.md").read_text(encoding="utf-8"))
    assert "The tutorial (`docs/your-model.md`) explains" in text
    assert "[Rosetta Stone](https://" in text
    assert not re.findall(r"\]\((?!https:)", text)
