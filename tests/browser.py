"""A page as a browser shows it: what it asks of the network, and what an accessibility check (axe) says of it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

__all__ = ["Seen", "browser_pages"]

#: Debian's name first; a browser elsewhere is named by DASKCLUSTER_BROWSER.
NAMES = ("chromium", "chromium-browser", "google-chrome")
QUIET = [
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-gpu",
    "--disable-quic",
    "--disable-sync",
    "--no-first-run",
]


@dataclass
class Seen:
    """One page, opened.

    Attributes
    ----------
    requests : list of str
        Addresses that were asked for, but for those inside the page (data:) and the page itself.
    errors : list of str
        What the browser complains of: blocked sources, exceptions.
    violations : list of str
        Of axe's rules, with the element; empty where it finds nothing.
    """

    requests: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)


def find_browser() -> str | None:
    """The program, or None."""
    named = os.environ.get("DASKCLUSTER_BROWSER")
    return named or next(filter(None, map(shutil.which, NAMES)), None)


@contextmanager
def browser_pages() -> Iterator[Any]:
    """A function from the path of a page, and of a picture to make of it, to what is `Seen` of it.

    Skips the test where there is no browser, or nothing to drive it.
    """
    sync_api = pytest.importorskip("playwright.sync_api", reason="needs axe-playwright-python, of the extra test")
    program = find_browser()
    if program is None:
        pytest.skip("no browser: install chromium (Debian: apt install chromium), or name one: DASKCLUSTER_BROWSER")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, headless=True, chromium_sandbox=False, args=QUIET)
        try:
            yield lambda path, picture=None: _see(browser, path, picture)
        finally:
            browser.close()


def _see(browser: Any, path: Path, picture: Path | None) -> Seen:
    from axe_playwright_python.sync_playwright import Axe

    seen = Seen()
    # The pages forbid scripts, and axe is one.
    page = browser.new_page(bypass_csp=True, viewport={"width": 1000, "height": 800})
    address = path.as_uri()
    page.on("request", lambda request: seen.requests.append(request.url))
    page.on("console", lambda message: seen.errors.append(message.text))
    page.on("pageerror", lambda error: seen.errors.append(str(error)))
    page.goto(address)
    if picture is not None:
        page.screenshot(path=picture, full_page=True)
    seen.requests = [each for each in seen.requests if each != address and not each.startswith("data:")]
    for rule in Axe().run(page).response["violations"]:
        seen.violations += [f"{rule['id']}: {node['html'][:200]}" for node in rule["nodes"]]
    page.close()
    return seen
