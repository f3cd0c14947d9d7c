"""Chromium without a network: every request but one to a file is refused and counted, and so is every console error."""

import os
import shutil

import pytest

CHROMIUM = os.environ.get("STELE_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")


@pytest.fixture(scope="session")
def chromium():
    """A browser. Without one, or without playwright, these tests are skipped."""
    playwright = pytest.importorskip("playwright.sync_api", reason="Install it with: pip install playwright")
    if CHROMIUM is None:
        pytest.skip("chromium is not on PATH. Install it with: apt-get install chromium")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def open_file(chromium):
    """open_file(path, **options) -> a page of Chromium. It must have no error and refuse no request."""
    contexts, problems = [], []

    def refuse(route):
        if route.request.url.startswith(("file:", "data:")):
            route.continue_()
        else:
            problems.append(f"request: {route.request.url}")
            route.abort()

    def open_file(path, **options):
        contexts.append(chromium.new_context(**options))
        page = contexts[-1].new_page()
        page.route("**/*", refuse)
        page.on("console", lambda message: message.type == "error" and problems.append(message.text))
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.goto(path.absolute().as_uri())
        return page

    yield open_file
    for context in contexts:
        context.close()
    assert problems == []
