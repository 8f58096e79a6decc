"""Pages of a profile in a browser: complete, controlled by clicks, keys and searches, and self-contained."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import compgraph as cg
from autodiff.reverse import gradient
from compgraph.view.colors import DARK, LIGHT, hex_of
from tests.support.browser import WIDTHS, opened, require_drawn, require_self_contained

variable: Callable[..., Any] = cg.variable
NASTY = "</script><b>&'\" {{data}} \u2028 名"


def profiled() -> cg.Profile:
    """Two layers in scopes, forward and backward; a name that could end a script."""
    x = variable(np.linspace(0.1, 1.0, 200 * 200).reshape(200, 200))
    with cg.profile() as p:
        for _ in range(3):
            with cg.scope("layer"):
                y = np.tanh(x @ x)
            with cg.scope(NASTY.replace("/", "|")):
                z = np.exp(-y)
            gradient(np.sum(z))
    return p


PAGES = {"flame": lambda p: p.flamegraph(), "memory": lambda p: p.memory()}


@pytest.mark.parametrize("name", PAGES)
def test_profile_pages_are_self_contained(name: str) -> None:
    text = PAGES[name](profiled()).html()
    require_self_contained(text)
    assert text.count("<script") == text.count("</script>") == 2
    (data,) = re.findall(r'<script id="data" type="application/json">(.*?)</script>', text, re.DOTALL)
    assert json.loads(data)


def test_flame_graph_frames_are_nested() -> None:
    (data,) = re.findall(r'<script id="data" type="application/json">(.*?)</script>', profiled().flamegraph().html(), re.DOTALL)
    whole = json.loads(data)
    queue, names = [whole], set()
    for frame in queue:
        names.add(frame["name"])
        assert sum(part["seconds"] for part in frame["parts"]) <= frame["seconds"] * (1 + 1e-9)
        queue.extend(frame["parts"])
    assert {"whole", "forward", "backward", "layer", "profiled", "matmul", "tanh (backward)", "between operations"} <= names


def test_profile_pages_are_saved(tmp_path: Path) -> None:
    p = profiled()
    path = tmp_path / "p.html"
    page = p.flamegraph(path)
    assert path.read_text() == page.html()
    assert "<iframe srcdoc=" in page._repr_html_()
    assert "notebook" in repr(page)
    with pytest.raises(ValueError, match=r"ends in \.html"):
        p.memory(tmp_path / "p.png")
    with pytest.raises(FileNotFoundError, match="no folder"):
        p.memory(tmp_path / "none" / "p.html")


@pytest.mark.slow
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("name", PAGES)
def test_profile_pages_show_everything(tmp_path: Path, name: str, width: str, dark: bool) -> None:
    path = tmp_path / "p.html"
    PAGES[name](profiled()).save(path)
    theme = DARK if dark else LIGHT
    with opened(path, width, dark) as page:
        assert page.evaluate("document.documentElement.scrollWidth") <= WIDTHS[width][0]
        color = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert "#" + "".join(f"{int(part):02x}" for part in re.findall(r"\d+", color)) == hex_of(theme.background)
        require_drawn(page.screenshot())
        if name == "flame":
            boxes = page.evaluate("[...document.querySelectorAll('.frame')].map(f => { const r = f.getBoundingClientRect(); "
                                  "return [r.left, r.right, r.top, r.bottom]; })")  # fmt: skip
            frame = page.locator("#flame").bounding_box()
            assert len(boxes) > 8
            for left, right, top, bottom in boxes:
                assert frame["x"] - 1 <= left <= right <= frame["x"] + frame["width"] + 1
                assert frame["y"] - 1 <= top <= bottom <= frame["y"] + frame["height"] + 1
        else:
            assert page.locator(".holders li").count() >= 3
            assert page.locator("#peak span").bounding_box()["x"] >= 0
            assert page.locator(".sweep").count() == 4  # three, and the one of the legend


@pytest.mark.slow
def test_flame_graph_responds_to_controls(tmp_path: Path) -> None:
    path = tmp_path / "p.html"
    profiled().flamegraph(path)
    with opened(path) as page:
        page.locator('.frame[aria-label^="matmul: "]').click()
        assert page.locator(".chosen").inner_text() == "matmul"
        assert page.locator(".chosen").bounding_box()["width"] == pytest.approx(
            page.locator("#flame").bounding_box()["width"], abs=2
        )
        message = page.locator("#announcement").inner_text()
        assert "matmul: " in message
        assert "3 calls" in message
        assert "test_pages.py" in message
        page.keyboard.press("Escape")
        assert page.locator(".chosen").inner_text() == "whole"
        page.locator("#query").fill("tanh")
        assert page.locator(".found").count() >= 2
        assert page.locator("#found").inner_text().endswith("found")
        page.locator("#query").fill("")
        assert page.locator(".found").count() == 0


@pytest.mark.slow
def test_memory_curve_responds_to_controls(tmp_path: Path) -> None:
    p = profiled()
    path = tmp_path / "p.html"
    p.memory(path)
    with opened(path) as page:
        peak = page.locator("#peak span").inner_text()
        assert peak.startswith("peak ")
        first = page.locator(".holders li").first.inner_text()
        assert p.held[0].operation in first
        assert p.held[0].line in first
        plot = page.locator("#plot").bounding_box()
        page.mouse.move(plot["x"] + plot["width"] / 2, plot["y"] + plot["height"] / 2)
        assert re.fullmatch(r"[\d.]+ ?[kMG]?B? at [\d.]+ (ms|µs|s)", page.locator("#cursor span").inner_text())
