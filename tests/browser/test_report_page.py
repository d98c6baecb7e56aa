"""The page of a report in Chromium: quiet, complete, legible, alive."""

from __future__ import annotations

import base64
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver import ActionChains, Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.support.wait import WebDriverWait

from reports.figures.gantt import MOST_MARKS
from tests.browser.chromium import (
    console_lines,
    emulate,
    open_page,
    requested_addresses,
    set_width,
    wait_until_drawn,
)
from tests.browser.conftest import HOSTILE
from tests.reports.pages import read_page

pytestmark = pytest.mark.browser

# Visible texts with the contrast of their colour to what lies behind them (WCAG 2, "contrast ratio").
CONTRASTS = """
const shade = (text) => {
  const [r, g, b, a = 1] = text.match(/[\\d.]+/g).map(Number);
  const part = (v) => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; };
  return { light: 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b), a };
};
const behind = (element) => {
  for (let e = element; e; e = e.parentElement) {
    const found = shade(getComputedStyle(e).backgroundColor);
    if (found.a > 0) return found.light;
  }
  return 1;
};
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
const rows = [];
for (let node = walker.nextNode(); node; node = walker.nextNode()) {
  const element = node.parentElement;
  const text = node.textContent.trim();
  if (!text || element.closest("script, style, nav, .role-mark") || !element.checkVisibility()) continue;
  const style = getComputedStyle(element);
  const front = shade(element.closest("svg") ? style.fill : style.color).light;
  const back = behind(element);
  const ratio = (Math.max(front, back) + 0.05) / (Math.min(front, back) + 0.05);
  rows.push([text, ratio, Boolean(element.closest("svg"))]);
}
return rows;
"""


def contrasts(driver: Chrome) -> list[tuple[str, float, bool]]:
    """Every visible text, its contrast, and whether it belongs to a drawing."""
    return [(str(text), float(ratio), bool(drawn)) for text, ratio, drawn in driver.execute_script(CONTRASTS)]


def specs_of(page: Path) -> dict[str, Any]:
    """Data of a page's pictures."""
    return read_page(page.read_text(encoding="utf-8")).specs


def place_of(driver: Chrome, figure: str, x: float, y: float) -> tuple[float, float]:
    """Scroll to a place of a picture, given in the units of its axes, and find it in the window."""
    left, top = driver.execute_script(
        """
        const [name, x, y] = arguments;
        const view = document.getElementById(`figure-${name}`).view;
        const drawing = view.container().querySelector("canvas, svg");
        const at = () => {
          const box = drawing.getBoundingClientRect();
          const [left, top] = view.origin();
          const padding = view.padding();
          return [
            box.left + padding.left + left + view.scale("x")(x),
            box.top + padding.top + top + view.scale("y")(y),
          ];
        };
        window.scrollBy(0, at()[1] - window.innerHeight / 2);
        return at();
        """,
        figure,
        x,
        y,
    )
    return float(left), float(top)


def point_at(driver: Chrome, figure: str, x: float, y: float) -> str:
    """Move the pointer to a place of a picture, in the units of its axes, and read what it says there."""
    left, top = place_of(driver, figure, x, y)
    for nudge in (3, 0):  # a pointer that comes from elsewhere
        event = {"type": "mouseMoved", "x": left + nudge, "y": top}
        driver.execute_cdp_cmd("Input.dispatchMouseEvent", event)
    shown = WebDriverWait(driver, 20).until(
        lambda found: found.find_element(By.CSS_SELECTOR, "#vg-tooltip-element.visible")
    )
    return re.sub(r"\s+", " ", shown.text)


def test_it_loads_quietly_and_asks_for_nothing(browser: Chrome, small_page: Path) -> None:
    open_page(browser, small_page)
    set_width(browser, 600)
    assert console_lines(browser) == []
    assert requested_addresses(browser) == [small_page.resolve().as_uri()]
    live = browser.find_elements(By.CSS_SELECTOR, "figure.live .chart")
    assert len(live) == 7
    assert all(element.is_displayed() for element in live)
    assert not any(element.is_displayed() for element in browser.find_elements(By.CLASS_NAME, "still"))


def test_pointing_at_a_chunk_shows_its_numbers(browser: Chrome, small_page: Path) -> None:
    open_page(browser, small_page)
    chunk = max(specs_of(small_page)["timeline"]["datasets"]["chunks"], key=lambda row: (row["stage"], row["end"]))
    shown = point_at(browser, "timeline", (chunk["start"] + chunk["end"]) / 2, chunk["stage"])
    assert f"stage {chunk['stage']}" in shown
    assert f"wave {chunk['wave']}" in shown
    assert f"tokens {chunk['tokens']:,}" in shown
    assert f"tokens before {chunk['before']:,}" in shown
    for words, field in (("starts", "start"), ("ends", "end"), ("computes", "compute")):
        found = re.search(rf"{words} \(ms\) ([\d.]+)", shown)
        assert found is not None, shown
        assert float(found[1]) == pytest.approx(chunk[field], rel=1e-3)


def test_pointing_at_an_iteration_shows_its_numbers(browser: Chrome, served_page: Path) -> None:
    open_page(browser, served_page)
    assert console_lines(browser) == []
    assert len(browser.find_elements(By.CSS_SELECTOR, "figure.live .chart")) == 7
    iteration = specs_of(served_page)["timeline"]["datasets"]["chunks"][0]
    shown = point_at(browser, "timeline", (iteration["start"] + iteration["end"]) / 2, iteration["stage"])
    for words in ("iteration 0", "stage 0", "tokens 512"):
        assert words in shown


def test_the_mesh_shows_every_stage_once(browser: Chrome, small_page: Path) -> None:
    open_page(browser, small_page)
    assert stage_numbers(browser) == ["0", "1", "2", "3"]
    shown = point_at(browser, "mesh", 1, 0)
    assert "stage 1" in shown
    assert "die (row,column) 0,1" in shown


def stage_numbers(driver: Chrome) -> list[str]:
    """Numbers written on dies, sorted."""
    texts = driver.find_elements(By.CSS_SELECTOR, "#figure-mesh .chart g.mark-text.role-mark text")
    numbers = [text.text for text in texts if re.fullmatch(r"\d+", text.text)]
    return sorted(numbers, key=int)


@pytest.mark.parametrize("kind", ["small_page", "served_page"])
def test_texts_stay_legible_in_the_dark_and_on_paper(
    browser: Chrome, kind: str, request: pytest.FixtureRequest
) -> None:
    open_page(browser, request.getfixturevalue(kind))
    light = contrasts(browser)
    browser.execute_script("document.documentElement.removeAttribute('data-ready')")
    emulate(browser, scheme="dark")
    wait_until_drawn(browser)
    dark = contrasts(browser)
    assert [text for text, _, _ in dark] == [text for text, _, _ in light]
    emulate(browser, medium="print", scheme="dark")
    paper = contrasts(browser)
    assert [text for text, _, _ in paper] == [text for text, _, drawn in light if not drawn]
    for rows in (light, dark, paper):
        assert len(rows) > 100
        assert [row for row in rows if row[1] < 4.5] == []
    stills = browser.find_elements(By.CLASS_NAME, "still")
    assert len(stills) == 7
    assert all(still.is_displayed() for still in stills)
    assert all(browser.execute_script("return arguments[0].naturalWidth > 0", still) for still in stills)
    printed = base64.b64decode(browser.execute_cdp_cmd("Page.printToPDF", {})["data"])
    assert printed.startswith(b"%PDF")


def test_without_scripts_the_pictures_are_there(browser: Chrome, small_page: Path) -> None:
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        browser.get(small_page.resolve().as_uri())
        stills = browser.find_elements(By.CLASS_NAME, "still")
        assert len(stills) == 7
        assert all(still.is_displayed() for still in stills)
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def test_tables_are_sorted_by_number(browser: Chrome, small_page: Path) -> None:
    open_page(browser, small_page)
    table = next(
        found
        for found in browser.find_elements(By.CSS_SELECTOR, "table.sortable")
        if found.find_elements(By.XPATH, ".//button[.='tokens kept elsewhere']")
    )
    head = table.find_element(By.XPATH, ".//th[button='tokens kept elsewhere']")

    def stages() -> list[str]:
        return [cell.text for cell in table.find_elements(By.CSS_SELECTOR, "tbody td:first-child")]

    assert stages() == ["0", "1", "2", "3"]
    head.find_element(By.TAG_NAME, "button").click()
    assert stages() == ["2", "3", "0", "1"]
    assert head.get_attribute("aria-sort") == "ascending"
    head.find_element(By.TAG_NAME, "button").click()
    assert stages() == ["0", "1", "2", "3"]


@pytest.mark.parametrize("width", [1200, 600])
def test_256_stages_stay_usable(browser: Chrome, large_page: Path, width: int) -> None:
    open_page(browser, large_page)
    set_width(browser, width - 100)
    set_width(browser, width)
    assert console_lines(browser) == []
    assert stage_numbers(browser) == [str(stage) for stage in range(256)]
    boxes = browser.execute_script(
        """
        return [...document.querySelectorAll("#figure-mesh .chart g.mark-text.role-mark text")]
          .filter((text) => text.textContent)
          .map((text) => text.getBoundingClientRect()).map((box) => [box.left, box.right, box.top, box.height]);
        """
    )
    assert min(height for *_, height in boxes) >= 7
    rows: dict[int, list[tuple[float, float]]] = {}
    for left, right, top, _ in boxes:
        rows.setdefault(round(top), []).append((left, right))
    for row in rows.values():
        row.sort()
        assert all(right <= left for (_, right), (left, _) in pairwise(row))
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    chunks = specs_of(large_page)["timeline"]["datasets"]["chunks"]
    assert 0 < len(chunks) <= 2 * MOST_MARKS
    before = axis_of(browser)
    widest = max(chunks, key=lambda row: float(row["end"] - row["start"]))
    place = (widest["start"] + widest["end"]) / 2, widest["stage"]
    assert f"stage {widest['stage']}" in point_at(browser, "timeline", *place)
    left, top = place_of(browser, "timeline", *place)
    wheel = {"type": "mouseWheel", "deltaX": 0, "deltaY": -600, "x": left, "y": top}
    browser.execute_cdp_cmd("Input.dispatchMouseEvent", wheel)
    WebDriverWait(browser, 20).until(lambda found: axis_of(found)[1] - axis_of(found)[0] < before[1] - before[0])


def axis_of(driver: Chrome) -> tuple[float, float]:
    """First and last time that the timeline shows."""
    low, high = driver.execute_script("return document.getElementById('figure-timeline').view.scale('x').domain()")
    return float(low), float(high)


def test_hostile_names_are_words(browser: Chrome, hostile_page: Path) -> None:
    open_page(browser, hostile_page)
    assert browser.find_element(By.TAG_NAME, "h1").text == HOSTILE
    mark = browser.find_element(By.CSS_SELECTOR, "#figure-losses .chart g.mark-symbol.role-mark path")
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", mark)
    ActionChains(browser).move_to_element(mark).perform()
    shown = WebDriverWait(browser, 20).until(
        lambda found: found.find_element(By.CSS_SELECTOR, "#vg-tooltip-element.visible")
    )
    assert HOSTILE in shown.text
    assert browser.find_elements(By.CSS_SELECTOR, "b, img[src=x]") == []
    assert console_lines(browser) == []
