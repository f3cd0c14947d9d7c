"""The site of the releases opens from a folder in Chromium without a network, and draws every number."""

import re
import shutil

import pytest

from releases_of_abacus import CELLS, METRICS, TAGS, record, write_site

LINES = len(CELLS) * len(METRICS)


@pytest.fixture
def site(add_environment, monkeypatch, tmp_path):
    """The site in a folder from which it can be sent anywhere: everything else is gone."""
    record(add_environment, monkeypatch, tmp_path)
    write_site(tmp_path / "site")
    shutil.rmtree(tmp_path / ".stele")
    return tmp_path / "site"


def test_every_number_is_drawn_without_a_network(site, open_file):
    page = open_file(site / "index.html")
    page.get_by_role("link", name="abacus", exact=True).click()
    page.wait_for_url(re.compile("abacus-"))
    points = page.locator("circle.point")
    assert points.count() == LINES * len(TAGS)
    assert page.locator("line.interval").count() == len(CELLS) * (len(TAGS) - 1)  # the first is the reference
    assert page.locator("line.step").count() == len(CELLS)
    boxes = [point.bounding_box() for point in points.all()]
    assert all(box["width"] > 4 and box["height"] > 4 for box in boxes)
    assert len({(round(box["x"]), round(box["y"])) for box in boxes}) == len(boxes)  # none hides another


def test_the_x_axis_has_the_releases(site, open_file):
    page = open_file(site / "index.html")
    page.get_by_role("link", name="abacus", exact=True).click()
    texts = page.locator("svg").first.locator("text").all_text_contents()
    assert [text for text in texts if text.startswith("1.") and len(text) == 3] == [
        tag.removeprefix("abacus-") for tag in TAGS
    ]


def test_a_step_leads_to_its_line(site, open_file):
    page = open_file(site / "index.html")
    page.get_by_role("link", name="Duration of a step, gru train tuned").click()
    figure = page.locator(page.evaluate("location.hash"))
    assert figure.locator("text.change").text_content() == "+20.0 %"
    figure.locator("summary").click()
    assert figure.get_by_role("row", name="abacus-1.5 12.00 11.88 to 12.24 +20.0 %").is_visible()


@pytest.mark.parametrize("options", [{"color_scheme": "dark"}, {"viewport": {"width": 360, "height": 640}}])
def test_the_page_is_usable_in_the_dark_and_on_a_phone(site, open_file, options):
    [path] = site.glob("abacus-*.html")
    page = open_file(path, **options)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    back, text = (
        page.evaluate(f"getComputedStyle(document.body).{name}") for name in ("backgroundColor", "color")
    )
    assert contrast(back, text) >= 7


def contrast(*colors):
    """Return the contrast of two colours, from 1 to 21. Source: WCAG 2.2."""
    brightest, darkest = sorted(map(luminance, colors), reverse=True)
    return (brightest + 0.05) / (darkest + 0.05)


def luminance(color):
    parts = [int(part) / 255 for part in re.findall(r"\d+", color)[:3]]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))
