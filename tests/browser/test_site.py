"""The site of the releases opens from a folder in Chromium without a network, and draws every number."""

import re
import shutil

import pytest

from tests.support.releases_of_abacus import CELLS, METRICS, TAGS, record, write_site

LINES = len(CELLS) * len(METRICS)


@pytest.fixture
def site(add_environment, monkeypatch, tmp_path):
    """The site in a folder from which it can be sent anywhere: everything else is gone."""
    record(add_environment, monkeypatch, tmp_path)
    write_site(tmp_path / "site")
    shutil.rmtree(tmp_path / ".stele")
    return tmp_path / "site"


@pytest.fixture
def abacus(site, open_file):
    """The page of the framework, reached from the index, with all charts drawn."""
    page = open_file(site / "index.html")
    page.get_by_role("link", name="abacus", exact=True).click()
    page.wait_for_url(re.compile("abacus-"))
    page.wait_for_selector("html[data-complete]", timeout=60_000, state="attached")
    return page


def test_every_number_is_drawn_without_a_network(abacus):
    assert abacus.locator(".chart svg").count() == LINES
    points = abacus.locator(".mark-symbol path")
    assert points.count() == LINES * len(TAGS)
    boxes = [point.bounding_box() for point in points.all()]
    assert all(box["width"] > 4 and box["height"] > 4 for box in boxes)
    assert len({(round(box["x"]), round(box["y"])) for box in boxes}) == len(boxes)  # none hides another


def test_intervals_levels_and_steps_are_drawn(abacus):
    chart = abacus.locator("#figure-step-gru-train-tuned-abacus .chart")
    # for each release a level, for all but the reference an interval, and one step
    assert chart.locator(".role-mark.mark-rule line").count() == len(TAGS) + len(TAGS) - 1 + 1
    assert chart.locator(".role-mark.mark-text text").all_text_contents() == ["+20.0 %"]


def test_the_x_axis_has_the_releases(abacus):
    texts = abacus.locator(".chart svg").first.locator(".role-axis-label text").all_text_contents()
    assert texts[: len(TAGS)] == [tag.removeprefix("abacus-") for tag in TAGS]


def test_a_step_leads_to_its_line(site, open_file):
    page = open_file(site / "index.html")
    page.get_by_role("link", name="Duration of a step, gru train tuned").click()
    figure = page.locator(page.evaluate("location.hash"))
    figure.locator("summary").click()
    assert figure.get_by_role("row", name="1.5 12 11.88 12.24 12 +20.0 %").is_visible()
    page.get_by_role("link", name="All frameworks").click()
    page.wait_for_url(re.compile("index.html"))


@pytest.mark.parametrize("options", [{"color_scheme": "dark"}, {"viewport": {"width": 360, "height": 640}}])
def test_the_page_is_usable_in_the_dark_and_on_a_phone(site, open_file, options):
    [path] = site.glob("abacus-*.html")
    page = open_file(path, **options)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    back, text = (page.evaluate(f"getComputedStyle(document.body).{name}") for name in ("backgroundColor", "color"))
    assert contrast(back, text) >= 7


def contrast(*colors):
    """Return the contrast of two colours, from 1 to 21. Source: WCAG 2.2."""
    brightest, darkest = sorted(map(luminance, colors), reverse=True)
    return (brightest + 0.05) / (darkest + 0.05)


def luminance(color):
    parts = [int(part) / 255 for part in re.findall(r"\d+", color)[:3]]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))
