"""A report as a page."""

from html.parser import HTMLParser

import pytest

from stele.report import build, exports, html, sources
from tests.support import gate_records
from tests.support.reports import NAME, parity_alone


def test_a_gate_of_parity_alone_has_no_launches_and_no_minutes(tmp_path):
    report = parity_alone(tmp_path / "a.jsonl")
    assert report.headline.causes[0] == "The only check passed."
    assert report.facts[0].startswith("No launch was timed. Parity took 24 seconds on Abacus 3000,")
    text = html.render(report)
    assert "0 launches" not in text and "0 minutes" not in text and "1 checks" not in text


class Texts(HTMLParser):
    """The texts that a page shows, and its titles."""

    def __init__(self):
        super().__init__()
        self.found, self.titles, self.inside = [], [], []

    def handle_starttag(self, tag, attributes):
        self.inside.append(tag)
        self.titles += [value for name, value in attributes if name == "title"]

    def handle_endtag(self, tag):
        while self.inside and self.inside.pop() != tag:
            pass

    def handle_data(self, data):
        if not {"script", "style"} & set(self.inside[-1:]):
            self.found.append(data.strip())


@pytest.mark.parametrize("name", [NAME, " ".join(["torch==2.13.0"] * 700), f"<b>{NAME}</b>"])
def test_a_long_name_is_shortened_and_the_whole_is_its_title(tmp_path, name):
    cells = [(name, "train")]
    verdicts = [
        gate_records.verdict(name, "train", status="INCONCLUSIVE", message=f"{name} is noisy", ratio=(0.9, 1.0, 1.3)),
        gate_records.verdict(name, "all", "parity", ratio=None),
    ]
    path = gate_records.gate(tmp_path / "a.jsonl", passes=2, old=name, new=f"{name}2", cells=cells, verdicts=verdicts)
    report = build.report(sources.read([path]))
    page = Texts()
    page.feed(html.render(report))
    in_commands = [text for text in page.found if text.startswith("stele ")]
    assert max(map(len, set(page.found) - set(in_commands))) < 1500
    assert any(name in title for title in page.titles)
    assert in_commands  # whole, so that they can be pasted
    for file in exports.to_csv(report):
        (tmp_path / f"{file}.csv").write_text("")  # its name is not too long
