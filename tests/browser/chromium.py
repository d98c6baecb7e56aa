"""A headless Chromium, driven by Selenium: only local files, only what the page says."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.support.wait import WebDriverWait

NAMES = ("chromium", "chromium-browser", "google-chrome")
PATIENCE_S = 120
FLAGS = (
    "headless",
    "no-sandbox",
    "disable-gpu",
    "disable-quic",
    "no-first-run",
    "disable-background-networking",
    "disable-component-update",
    "disable-sync",
    "disable-dev-shm-usage",
    "hide-scrollbars",
)
"""Without a screen, and without services of its own that would ask the network."""


def find_browser() -> tuple[str, str] | None:
    """Programs of the browser and its driver; None where one of them is missing."""
    browser = next((path for name in NAMES if (path := shutil.which(name))), None)
    driver = shutil.which("chromedriver")
    return None if browser is None or driver is None else (browser, driver)


@contextmanager
def chromium(programs: tuple[str, str], profile: Path, *, width: int = 1200) -> Iterator[Chrome]:
    """A browser with a profile of its own that logs its console and its network."""
    options = ChromeOptions()
    options.binary_location = programs[0]
    for flag in (*FLAGS, f"user-data-dir={profile}", f"window-size={width},900"):
        options.add_argument(f"--{flag}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = Chrome(options=options, service=Service(programs[1]))
    try:
        driver.get("about:blank")
        driver.get_log("performance")  # what the start page of the browser loaded
        yield driver
    finally:
        driver.quit()


def open_page(driver: Chrome, page: Path) -> None:
    """Load a report and wait until everything is drawn."""
    driver.get(page.resolve().as_uri())
    wait_until_drawn(driver)


def wait_until_drawn(driver: Chrome) -> None:
    """Wait for the page's own mark: the width that it is drawn for."""
    WebDriverWait(driver, PATIENCE_S).until(
        lambda found: found.execute_script(
            "return document.documentElement.dataset.ready === String(window.innerWidth)"
        )
    )


def emulate(driver: Chrome, *, medium: str = "", scheme: str = "light") -> None:
    """Show the page as on a light or dark screen, or as printed."""
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": medium, "features": features})


def set_width(driver: Chrome, width: int) -> None:
    """Give the page so many pixels, and wait until it is drawn anew."""
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_script("document.documentElement.removeAttribute('data-ready')")
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    wait_until_drawn(driver)


def console_lines(driver: Chrome) -> list[str]:
    """What the console says, warnings included."""
    return [f"{entry['level']}: {entry['message']}" for entry in driver.get_log("browser")]


def requested_addresses(driver: Chrome) -> list[str]:
    """Everything that the page asked for, but for data that it holds itself."""
    found: list[str] = []
    for entry in driver.get_log("performance"):
        event: dict[str, Any] = json.loads(entry["message"])["message"]
        if event["method"] == "Network.requestWillBeSent":
            found.append(str(event["params"]["request"]["url"]))
    return [address for address in found if not address.startswith(("data:", "blob:"))]
