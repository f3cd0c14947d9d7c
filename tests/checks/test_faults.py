"""The fault campaign, checks/faults: its list covers every group, and its page has every fault."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
GROUPS = ("worker", "host", "files", "load", "release")


def listed_faults():
    """Return {group.fault: title} as the campaign lists them."""
    command = [sys.executable, "-m", "checks", "faults", "--list"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return dict(line.split(": ", 1) for line in done.stdout.splitlines())


def titles_on_page():
    """Return {group: titles} of the tables of docs/results/faults.md."""
    page = (ROOT / "docs/results/faults.md").read_text(encoding="utf-8")
    sections = dict(re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", page, flags=re.M | re.S))
    return {
        group: re.findall(r"^\| (.*?) \| (?:passed|failed|not run) \|", section, flags=re.M)
        for group, section in sections.items()
    }


def test_the_list_of_faults_covers_every_group():
    faults = listed_faults()
    assert {fault.partition(".")[0] for fault in faults} == set(GROUPS)
    assert all(faults.values())
    assert len(set(faults.values())) == len(faults)


def test_the_page_of_faults_has_every_fault_of_the_list_in_its_order():
    page, faults = titles_on_page(), listed_faults()
    for group in GROUPS:
        titles = [title for fault, title in faults.items() if fault.startswith(f"{group}.")]
        assert [title.replace("\\", "") for title in page[group]] == titles
