"""The report in a browser: nothing runs, nothing is fetched, nothing is wider than the screen."""

from __future__ import annotations

import os

import pytest

from assets.report_page.figures import Figures, read_figures
from assets.report_page.page import render_page
from assets.root import Root
from tests.assets.catalog.test_report_page import HOSTILE, with_sample
from tests.dagster_project.test_browser import CHROMIUM, FLAGS

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.xdist_group("browser")]
ATTACK = f'{HOSTILE}</details><svg/onload="document.title=1"><script>document.title=1</script>'


@pytest.fixture(scope="module")
def browser():
    sync_api = pytest.importorskip("playwright.sync_api")
    if not CHROMIUM.exists():
        message = f"{CHROMIUM} is not installed (apt-get install chromium)"
        if os.environ.get("CI") == "true":
            pytest.fail(message)
        pytest.skip(message)
    with sync_api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=str(CHROMIUM), args=FLAGS)
        yield opened
        opened.close()


@pytest.mark.parametrize("width", [400, 1280])
def test_hostile_text_stays_text_on_every_screen(grown, browser, tmp_path, width):
    figures: Figures = with_sample(read_figures(*grown), ATTACK)
    path = tmp_path / "report.html"
    path.write_text(render_page(figures), encoding="utf-8")
    page = browser.new_page(viewport={"width": width, "height": 900})
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(path.as_uri())
    page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    assert asked == [path.as_uri()]
    assert page.title() != "1"
    assert page.evaluate("document.scripts.length + document.images.length") == 0
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert "<script>alert(1)</script>" in page.locator("pre").first.inner_text()
    letters = "one => parseFloat(getComputedStyle(one).fontSize)"
    sizes = page.evaluate(f"[...document.querySelectorAll('.histogram text')].map({letters})")
    assert set(sizes) == {12}
    page.close()


def test_an_empty_root_says_so(grown, tmp_path):
    _, settings = grown
    page = render_page(read_figures(Root(str(tmp_path / "none")), settings))
    assert "Nothing has landed yet." in page
    assert "<section" not in page
