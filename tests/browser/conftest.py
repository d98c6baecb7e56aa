"""A browser for all tests of this folder, and pages to open in it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver import Chrome

from instances.instance import Instance
from instances.plan import Plan
from reports import report
from reports.inputs import Records
from tests.browser.chromium import chromium, emulate, find_browser
from tests.builders import small_document
from tests.reports.results import replayed_result, served_result, spilling_result
from tests.solver.benchmark.making import record

REQUIRE = "WAFERPLAN_REQUIRE_BROWSER"
HOSTILE = "</script><img src=x onerror=alert(1)><b>bold</b>"


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    """One Chromium for all tests; without it they are skipped, or fail where it is asked for."""
    programs = find_browser()
    if programs is None:
        reason = f"needs chromium and chromedriver (Debian: apt-get install chromium chromium-driver); {REQUIRE}=1 asks"
        if os.environ.get(REQUIRE) == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    with chromium(programs, tmp_path_factory.mktemp("profile")) as driver:
        yield driver


@pytest.fixture(autouse=True)
def _plain_screen(browser: Chrome) -> None:
    """Every test starts with a light screen of 1200 pixels and empty logs."""
    emulate(browser)
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    browser.get("about:blank")
    for kind in ("browser", "performance"):
        browser.get_log(kind)


@pytest.fixture(scope="session")
def small_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four stages, two of which lend memory."""
    return report(spilling_result(), tmp_path_factory.mktemp("small")).html


@pytest.fixture(scope="session")
def large_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """256 stages on 16 x 16 dies, 8 requests of 8 chunks."""
    document: dict[str, Any] = small_document(
        hardware__rows=16,
        hardware__columns=16,
        model__layers=[{"pattern": ["layer"], "repeat": 256}],
        workload__requests=8,
        pipeline__stages=256,
    )
    instance = Instance.read(document)
    snake = [(row, column if row % 2 == 0 else 15 - column) for row in range(16) for column in range(16)]
    plan = Plan(
        instance=instance.fingerprint, batch=1, layers=(1,) * 256, placement=tuple(snake), chunks={"2048": (256,) * 8}
    )
    return report(replayed_result(instance, plan), tmp_path_factory.mktemp("large")).html


@pytest.fixture(scope="session")
def served_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four requests served in iterations: a program in place of a plan."""
    return report(served_result(), tmp_path_factory.mktemp("served")).html


@pytest.fixture(scope="session")
def hostile_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A benchmark whose names try to become elements."""
    runs = (record(instance=HOSTILE, suite="s"), record(instance="other", fingerprint="g", suite="s"))
    return report(Records(HOSTILE, runs), tmp_path_factory.mktemp("hostile")).html
