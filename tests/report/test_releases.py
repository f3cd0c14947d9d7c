"""The pages of the releases: what is drawn, and where. tests/browser opens them in Chromium."""

import re

import pytest

from stele import __main__ as entry_point
from stele.releases import history, trend
from stele.report import releases as pages
from tests.support.releases_of_abacus import record, write_site


@pytest.fixture
def abacus(add_environment, monkeypatch, tmp_path):
    record(add_environment, monkeypatch, tmp_path)


def test_a_history_without_numbers_says_how_to_measure(monkeypatch, tmp_path):
    monkeypatch.setattr(trend, "graphs", lambda asv: iter(()))
    pages.write_site(tmp_path, tmp_path)
    assert "stele releases run" in (tmp_path / "index.html").read_text()


@pytest.mark.slow
def test_names_from_outside_are_escaped(abacus, tmp_path, monkeypatch):
    bad = "<script>alert(1)</script>\u202e"
    graph = next(trend.graphs(history.publish()))
    monkeypatch.setattr(trend, "graphs", lambda asv: iter([graph._replace(framework=bad, cell=bad, unit=bad)]))
    pages.write_site(tmp_path / "site", history.HTML)
    texts = [path.read_text() for path in (tmp_path / "site").iterdir()]
    assert len(texts) == 2
    assert not any("<script>alert" in text or "\u202e" in text for text in texts)


@pytest.mark.slow
def test_a_page_asks_for_nothing_from_elsewhere(abacus, tmp_path):
    for path in write_site(tmp_path / "site").iterdir():
        text = re.sub(r"<script>.*?</script>", "", path.read_text(), flags=re.DOTALL)
        assert re.findall(r"""(?:src|href)="(?!#|data:,|index\.html|abacus-)([^"]*)""", text) == []
        assert "default-src 'none'" in text and "url(" not in text and "@import" not in text


@pytest.mark.slow
def test_a_page_has_the_scripts_of_charts_only_if_it_has_charts(abacus, tmp_path):
    counts = {path.name: path.read_text().count("<script>") for path in write_site(tmp_path / "site").iterdir()}
    assert counts.pop("index.html") == 1
    assert list(counts.values()) == [2]


@pytest.mark.slow
def test_tables_of_two_cells_with_like_names_have_names_of_their_own(abacus, tmp_path, monkeypatch):
    graph = next(trend.graphs(history.publish()))
    twins = [graph._replace(cell=cell) for cell in ("net.py:a b", "net.py:a-b")]
    monkeypatch.setattr(trend, "graphs", lambda asv: iter(twins))
    pages.write_site(tmp_path / "site", history.HTML)
    index = (tmp_path / "site/index.html").read_text()
    for target in re.findall(r'href="(abacus-[^"#]*)#([^"]*)"', index):
        assert (tmp_path / "site" / target[0]).read_text().count(f'id="{target[1]}"') == 1


@pytest.mark.slow
@pytest.mark.parametrize("verb", ["report", "publish"])
def test_the_command_writes_the_site_and_says_where(abacus, tmp_path, capsys, verb):
    assert entry_point.main(["releases", verb, "--site", str(tmp_path / "site")]) == 0
    assert f"site: {tmp_path / 'site' / 'index.html'}" in capsys.readouterr().err
    assert (tmp_path / "site/index.html").exists()
