"""A headless browser for the tests of pages: `opened` loads a file and fails on console errors and network requests."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

CANDIDATES = ("chromium", "chromium-browser", "google-chrome", "chrome")
HOW_TO_GET_IT = "Chromium is not installed: install the system package `chromium`, or set CHROMIUM to the path of the program"
# Pages send no network requests; these options keep the browser from sending its own.
ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip
WIDTHS = {"phone": (390, 844), "desktop": (1280, 800)}


def chromium() -> str:
    """Return the path of Chromium, or skip the test."""
    executable = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, CANDIDATES)), None)
    if executable is None:
        pytest.skip(HOW_TO_GET_IT)
    return executable


@contextmanager
def opened(page_file: Path, width: str = "desktop", dark: bool = False) -> Iterator[Any]:
    """Load a page at a width of `WIDTHS`; errors on its console and requests of other files fail the test."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="pip install playwright")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=ARGUMENTS)
        size = dict(zip(("width", "height"), WIDTHS[width], strict=True))
        context = browser.new_context(viewport=size, color_scheme="dark" if dark else "light")
        page = context.new_page()
        messages: list[str] = []
        page.on("console", lambda message: messages.append(message.text) if message.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: messages.append(str(error)))
        page.on("requestfailed", lambda request: messages.append(f"failed: {request.url}"))
        page.on(
            "request", lambda r: None if r.url.startswith(("file:", "data:", "blob:")) else messages.append(f"requested: {r.url}")
        )
        page.goto(page_file.resolve().as_uri())
        try:
            yield page
            assert messages == []
        finally:
            browser.close()


def require_self_contained(page: str) -> None:
    """Fail if a page contains a URL or loads another file."""
    assert re.findall(r'\b(?:src|href)\s*=|url\((?!#)|@import|https?://(?!www\.w3\.org/2000/svg")', page) == []


def require_drawn(picture: Path | bytes, colors: int = 8) -> None:
    """Fail if a screenshot is blank, that is, has fewer than some number of colors."""
    import io

    import numpy as np
    from matplotlib import image

    pixels = image.imread(io.BytesIO(picture) if isinstance(picture, bytes) else picture, format="png")
    red, green, blue = (np.moveaxis(pixels[..., :3], -1, 0) * 255).astype(np.uint32)
    assert np.count_nonzero(np.bincount(((red << 16) + (green << 8) + blue).ravel())) >= colors
