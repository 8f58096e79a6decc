"""The documentation builds without a warning, and its pages work in a browser."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.support.browser import opened, require_drawn

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[2]
HOW_TO_GET_IT = 'pip install ".[docs]"'
PATIENCE = 900  # seconds for a build, on a machine with much else to do

NAMES = ["index", "tutorial", "how_it_works", "comparison", "numpy", "leaks", "special_points", "howto/debug", "contributing"]
NAMES += ["examples", *(f"notebooks/{path.stem}" for path in sorted((ROOT / "notebooks").glob("*.ipynb")))]
NAMES += ["reference/compgraph", "reference/generated/compgraph.Node", "reference/generated/autodiff.optimizers.minimize"]
# Elements beyond the right edge of the window that cannot be reached by scrolling their box.
CLIPPED = """() => [...document.querySelectorAll("main *, article *")].filter(e => {
    if (e.getBoundingClientRect().right <= innerWidth + 1 || !e.getClientRects().length) return false;
    for (let box = e; box; box = box.parentElement)
        if (["auto", "scroll"].includes(getComputedStyle(box).overflowX)) return false;
    return true;
}).map(e => e.outerHTML.slice(0, 100))"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the built pages. Parallel tests build them once: the first process builds, the others wait."""
    for module in ("sphinx", "furo", "myst_nb", "numpydoc", "sphinx_copybutton"):
        pytest.importorskip(module, reason=HOW_TO_GET_IT)
    place = tmp_path_factory.getbasetemp()
    place = place.parent if "PYTEST_XDIST_WORKER" in os.environ else place  # what the workers of one run have in common
    return once(place / "site", build)


def once(folder: Path, make: Callable[[Path], str]) -> Path:
    """The pages in a folder that one of several processes builds; it stores errors there, which the others raise."""
    report = folder / "said.txt"
    try:
        folder.mkdir()
    except FileExistsError:
        end = time.monotonic() + PATIENCE
        while not report.exists():
            assert time.monotonic() < end, f"the build in {folder} did not finish"
            time.sleep(0.2)
    else:
        errors = "the build was broken off"
        try:
            errors = make(folder)
        finally:
            (folder / "being said.txt").write_text(errors)
            (folder / "being said.txt").replace(report)  # at once, so that no process reads a partial file
    assert report.read_text() == ""
    return folder / "html"


def build(folder: Path) -> str:
    """Build the pages, and return what went wrong; a warning of Sphinx does."""
    # In a copy, since Sphinx writes the list of the reference's pages beside their source, and tests run side by side.
    for path in ROOT.iterdir():
        if path.name == "docs":
            shutil.copytree(path, folder / "docs", ignore=shutil.ignore_patterns("_build", "generated", "notebooks"))
        elif path.is_file():
            shutil.copy(path, folder)
        else:
            (folder / path.name).symlink_to(path)
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", "docs", "html"]
    process = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    return process.stderr if process.returncode else ""


def look(page: Any) -> None:
    """A page as a whole is as wide as the window, nothing is cut off, and every picture was loaded."""
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.evaluate(CLIPPED) == []
    assert page.evaluate("[...document.images].every(i => i.complete && i.naturalWidth > 0)")
    require_drawn(page.screenshot())


@pytest.mark.parametrize("width", ["phone", "desktop"])
def test_docs_pages_are_not_clipped(built: Path, width: str) -> None:
    with opened(built / "index.html", width) as page:
        for name in NAMES:
            page.goto((built / f"{name}.html").as_uri())
            assert page.locator("h1").count() == 1, name
            look(page)


def test_docs_dark_page(built: Path) -> None:
    with opened(built / "tutorial.html", dark=True) as page:
        look(page)


@pytest.mark.parametrize("name", ["index", "tutorial"])
def test_docs_search_box_finds_pages(built: Path, name: str) -> None:
    with opened(built / f"{name}.html") as page:
        box = page.locator("input[name=q]").first
        box.fill("checkpoint")
        box.press("Enter")
        page.wait_for_selector("#search-results li")
        assert "checkpoint" in page.locator("#search-results").inner_text().lower()
        page.locator("#search-results li a").first.click()
        assert "checkpoint" in page.locator("article").inner_text().lower()


def test_docs_copy_button_leaves_out_prompts_and_outputs(built: Path) -> None:
    with opened(built / "tutorial.html") as page:
        page.evaluate("document.addEventListener('copy', () => { window.copied = document.activeElement.value; })")
        block = page.locator("div.highlight", has_text=">>>").first
        block.hover()
        block.locator("button.copybtn").click()
        prompted = [line[4:] for line in block.locator("pre").inner_text().splitlines() if line.startswith((">>> ", "... "))]
        assert page.evaluate("window.copied").splitlines() == prompted


def test_docs_phone_menu(built: Path) -> None:
    with opened(built / "index.html", "phone") as page:
        link = page.locator(".sidebar-drawer a", has_text="Tutorial")
        assert not page.evaluate("e => e.getBoundingClientRect().right > 0", link.element_handle())
        page.locator("label[for=__navigation]:visible").first.click()
        link.click()
        assert page.locator("h1").inner_text().startswith("Tutorial")


def test_docs_reference_links_to_entries(built: Path) -> None:
    with opened(built / "reference" / "autodiff.html") as page:
        page.locator("article a", has_text="value_and_grad").first.click()
        assert "parameters" in page.locator("article").inner_text().lower()
        look(page)


def test_docs_layout_check_detects_clipping(built: Path) -> None:
    with opened(built / "tutorial.html") as page:
        page.evaluate("document.querySelector('article').insertAdjacentHTML('beforeend', '<p style=\"width: 9999px\">x</p>')")
        with pytest.raises(AssertionError):
            look(page)


def test_docs_pages_are_built_once(tmp_path: Path) -> None:
    """Any number of processes build once, and all raise the error."""
    calls: list[Path] = []

    def slowly(folder: Path) -> str:
        calls.append(folder)
        time.sleep(0.3)
        return "a warning" if folder.name == "wrong" else ""

    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(lambda _: once(tmp_path / "right", slowly), range(4))) == {tmp_path / "right" / "html"}
        futures = [pool.submit(once, tmp_path / "wrong", slowly) for _ in range(4)]
        assert all("a warning" in str(each.exception()) for each in futures)
    assert calls == [tmp_path / "right", tmp_path / "wrong"]
