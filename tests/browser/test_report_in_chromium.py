"""The report in Chromium: open, hover, filter, sort, print; names that execute nothing; contrast and landmarks."""

import json
import time

import pytest

from stele import __main__ as entry_point
from stele.measuring import store
from tests.support import gate_records
from tests.support.reports import EXPLANATION, training
from tests.support.runs import changed

HOSTILE = "<script>document.title='executed'</script><img src=x onerror=\"document.title='executed'\">'\u202e\n{{7*7}}"
REGRESSED = gate_records.verdict(status="REGRESSED", message="30.0 % slower in 8 passes", ratio=(1.25, 1.3, 1.36))
VERDICTS = [REGRESSED, gate_records.verdict("gru", "infer"), gate_records.verdict(metric="control")]
SCHEMES = ("light", "dark")
PHONE = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}


@pytest.fixture
def page_of(tmp_path, open_file):
    """page_of(path, **options) -> the report of a file or folder in Chromium, with all charts drawn."""
    pytest.importorskip("vl_convert", reason="Install it with: pip install 'pytest-stele[report]'")

    def page_of(path, **options):
        written = tmp_path / "report.html"
        assert entry_point.main(["report", str(path), "--html", str(written)]) == 0
        assert written.stat().st_size < 2_000_000
        page = open_file(written, **options)
        page.wait_for_selector("html[data-complete]", timeout=60_000, state="attached")
        return page

    return page_of


@pytest.fixture
def page(page_of, tmp_path):
    return page_of(gate_records.gate(tmp_path / "gate.jsonl", passes=6, factor=1.3, verdicts=VERDICTS))


def drawn(page, table):
    """Return how many rows the charts of a table show."""
    return page.eval_on_selector_all(f".chart[data-table={table}]", "all => all.map(one => Number(one.dataset.drawn))")


def test_every_chart_is_drawn_from_all_rows_of_its_table(page):
    charts = page.locator(".chart")
    assert charts.count() == page.locator(".chart svg").count() > 10
    assert drawn(page, "table-launches-cnn-train-long") == [24, 24, 24]
    points = page.locator(".chart[data-table=table-launches-cnn-train-long]").first.locator(".mark-symbol path")
    assert points.count() >= 24
    assert page.locator("#scripts").count() == 0


def test_the_operations_of_an_explanation_are_drawn_and_nothing_in_a_name_is_executed(page_of, tmp_path):
    record = gate_records.gate(tmp_path / "gate.jsonl", verdicts=VERDICTS)
    explanation = json.loads(json.dumps(EXPLANATION))
    explanation["cells"]["cnn train"]["operations"][0]["name"] = HOSTILE
    (tmp_path / "gate.explanation.json").write_text(json.dumps(explanation))
    page = page_of(record)
    chart = page.locator(".chart[data-table=table-operations-cnn-train]")
    assert chart.locator(".mark-rect path").count() == 3
    assert "changed by +4.00 ms a step: 80% of the change" in page.locator("header, main").first.inner_text()
    assert page.title() != "executed"


def test_the_trainings_to_an_accuracy_are_drawn(page_of, run, tmp_path):
    for seed, accuracy in enumerate([0.59, 0.61, 0.62]):
        store.save(training(run, "torch", seed, accuracy), tmp_path / "runs")
    page = page_of(tmp_path / "runs")
    assert page.locator(".chart svg").count() == 2
    assert drawn(page, "table-accuracy-cifar-fast-cpu-closed-2-seeds") == [3]


def test_the_heat_map_shows_the_errors_and_no_missing_number(page):
    marks = page.locator(".chart[data-table=table-parity-cnn] .role-mark.mark-text text")
    texts = " ".join(marks.all_text_contents())
    assert "e-0" in texts and "null" not in texts


def test_the_pointer_shows_the_numbers_of_a_point(page):
    chart = page.locator(".chart[data-table=table-launches-cnn-train-long]").first
    chart.scroll_into_view_if_needed()
    chart.locator(".mark-symbol[role=graphics-object] path, .mark-symbol path").first.hover(force=True)
    page.wait_for_selector("#vg-tooltip-element.visible")
    text = page.locator("#vg-tooltip-element").inner_text()
    assert "step, ms" in text and "2026-01-02T" in text


def test_a_filter_hides_rows_and_points(page):
    page.fill("#filter", "NEW, repeat")
    page.wait_for_selector("#count:not(:empty)", state="attached")
    assert drawn(page, "table-launches-cnn-train-long") == [6, 6, 6]
    assert page.locator("#table-launches-cnn-train-long tbody tr:not([hidden])").count() == 6
    page.fill("#filter", "")
    page.wait_for_selector("#count:empty", state="attached")
    assert drawn(page, "table-launches-cnn-train-long") == [24, 24, 24]


def test_a_filter_with_the_name_of_a_cell_leaves_its_tables_complete(page):
    page.fill("#filter", "gru infer")
    page.wait_for_selector("#count:not(:empty)", state="attached")
    assert drawn(page, "table-launches-gru-infer-long") == [24, 24, 24]
    assert not page.locator("#table-launches-cnn-train-long").is_visible()


def test_the_keyboard_sorts_a_table_in_both_directions(page):
    header = page.locator("#table-verdicts th button", has_text="NEW / OLD")
    column = "#table-verdicts tbody td:nth-child(5)"
    header.focus()
    page.keyboard.press("Enter")
    assert page.locator(column).all_inner_texts() == ["1", "1", "1.3"]
    assert page.locator("#table-verdicts th[aria-sort=ascending]").count() == 1
    page.keyboard.press("Enter")
    assert page.locator(column).all_inner_texts() == ["1.3", "1", "1"]


def test_the_first_tab_stop_leads_to_the_charts(page):
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the charts and tables"
    page.keyboard.press("Enter")
    assert page.url.endswith("#sections")


@pytest.mark.parametrize("scheme", SCHEMES)
def test_verdict_cause_and_remedy_are_visible_without_scrolling(page_of, tmp_path, scheme):
    path = gate_records.gate(tmp_path / "gate.jsonl", passes=2, verdicts=VERDICTS)
    page = page_of(path, viewport={"width": 1280, "height": 800}, color_scheme=scheme)
    for name in (".badge", "h1", "#why", "#next", "header li:last-child >> nth=-1", "header .soft"):
        box = page.locator(name).first.bounding_box()
        assert box["y"] >= 0 and box["y"] + box["height"] <= 800, name


def test_a_phone_needs_no_sideways_scrolling(page_of, tmp_path):
    page = page_of(gate_records.gate(tmp_path / "gate.jsonl", passes=2, verdicts=VERDICTS), **PHONE)
    assert page.evaluate("document.documentElement.scrollWidth") == 390


@pytest.mark.parametrize("options", [*({"color_scheme": scheme} for scheme in SCHEMES), PHONE], ids=[*SCHEMES, "phone"])
def test_contrast_names_and_landmarks_have_no_fault(page_of, tmp_path, options):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="pip install 'pytest-stele[browser]'")
    page = page_of(gate_records.gate(tmp_path / "gate.jsonl", passes=2, factor=1.3, verdicts=VERDICTS), **options)
    result = axe.Axe().run(page)
    assert result.violations_count == 0, result.generate_report()


def test_a_printed_report_has_its_charts_and_tables(page):
    page.emulate_media(media="print")
    assert page.locator("nav").is_hidden() and page.locator(".chart svg").first.is_visible()
    assert page.pdf().startswith(b"%PDF")


def test_names_from_outside_execute_nothing_in_a_gate(page_of, tmp_path):
    hostile = {**REGRESSED, "task": HOSTILE, "message": HOSTILE}
    path = gate_records.gate(
        tmp_path / "gate.jsonl",
        passes=2,
        old=HOSTILE,
        new=HOSTILE,
        cells=((HOSTILE, "train"),),
        verdicts=[hostile],
    )
    page = page_of(path)
    assert_harmless(page)
    assert "<script>document.title" in page.locator("h1").inner_text()
    assert "\u202e" not in page.content()


def test_names_from_outside_execute_nothing_in_runs(page_of, tmp_path, run):
    for number in range(2):
        facts = {"versions": {HOSTILE: HOSTILE}, "flags": {HOSTILE: HOSTILE}, "label": HOSTILE}
        run = changed(run, environment=HOSTILE, when=f"2026-01-0{number + 2}T00:00:00+00:00", **facts)
        store.save(run, tmp_path / "runs")
    page = page_of(tmp_path / "runs")
    page.locator(".chart .mark-symbol path").first.hover(force=True)
    assert_harmless(page)


def assert_harmless(page):
    assert "executed" not in page.title()[:9] and page.locator("img").count() == 0
    assert page.locator("body script").count() == 2  # the page's own


def test_five_thousand_launches_are_written_and_answer_quickly(tmp_path, open_file):
    """The limits are generous, because other processes may run beside this test."""
    pytest.importorskip("vl_convert", reason="Install it with: pip install 'pytest-stele[report]'")
    path, written = tmp_path / "gate.jsonl", tmp_path / "report.html"
    gate_records.gate(path, passes=313, verdicts=VERDICTS)
    started = time.monotonic()
    assert entry_point.main(["report", str(path), "--html", str(written)]) == 0
    assert time.monotonic() - started < 15
    assert written.stat().st_size < 2_000_000
    page = open_file(written)
    assert page.evaluate("document.documentElement.dataset.ready") == "yes"
    assert page.evaluate("performance.getEntriesByType('navigation')[0].domInteractive") < 5000
    page.wait_for_selector("html[data-complete]", timeout=120_000, state="attached")
    assert drawn(page, "table-launches-cnn-train-long") == [1252, 1252, 1252]
