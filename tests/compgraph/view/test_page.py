"""The HTML page of a graph, in a browser: complete, controlled by mouse, touch and keys, and safe from script injection."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import compgraph as cg
from autodiff.reverse import gradient
from compgraph.graph import breadth_first
from compgraph.view.colors import DARK, LIGHT, hex_of
from tests.support.browser import WIDTHS, opened, require_drawn, require_self_contained

variable: Callable[..., Any] = cg.variable

NASTY = [
    "<script>document.title='owned'</script>", "</script><script>document.title='owned'</script>",
    "<!--", "-->", "%%DATA%%",
    "<img src=x onerror=\"document.title='owned'\">", "&lt;b&gt;",
    '"quotes"', "'single'", "back\\slash", "a\nb", "\u2028", "\ud800",
    "${1+1}", "`x`", "]]>", "é ∇ 名 😀",
]  # fmt: skip


def expression() -> Any:
    """f = sin(x · y) / y², with names."""
    x, y = variable(0.5, "x"), variable([1.0, 2.0], "y_1")
    product = x * y
    product.name = "theta"
    return np.sin(product) / y**2


def layered(layers: int = 2) -> Any:
    """Layers as scopes, with a scope inside."""
    h = x = variable(np.ones((2, 3)), "x")
    for i in range(1, layers + 1):
        with cg.scope(f"layer{i}"):
            with cg.scope("linear"):
                h = h @ variable(np.eye(3), f"W_{i}") + variable(np.zeros(3), f"b_{i}")
            h = np.tanh(h)
    return np.sum(h * x)


@contextmanager
def shown(folder: Path, node: Any, width: str = "desktop", dark: bool = False, **options: Any) -> Iterator[Any]:
    """The page of a graph, in the browser."""
    path = folder / "graph.html"
    cg.visualize_at(node, path, **options)
    with opened(path, width, dark) as page:
        yield page


def scale(page: Any) -> float:
    """How large the graph is drawn."""
    return float(page.evaluate("eye.scale"))


def rect(page: Any, selector: str) -> dict[str, float]:
    """Where something is on the screen."""
    box: dict[str, float] = page.locator(selector).first.bounding_box()
    return box


# ------------------------------------------------------------------------------------------- without a browser


def test_page_is_self_contained() -> None:
    """No address, and nothing to be loaded."""
    require_self_contained(cg.visualize_at(expression()).html())


def test_page_data_cannot_end_script() -> None:
    """For any names, the data is one element and contains the original strings."""
    text = cg.visualize_at(np.stack([variable(1.0, name) for name in NASTY])).html()
    (data,) = re.findall(r'<script id="data" type="application/json">(.*?)</script>', text, re.DOTALL)
    labels = [entry["label"] for entry in json.loads(data)["entries"]]
    assert labels[1:] == [name.replace("\u2028", r"\u2028").replace("\ud800", r"\ud800") for name in NASTY]
    assert text.count("<script") == 2
    assert text.encode()


def test_page_of_plain_dot_text_raises() -> None:
    with pytest.raises(ValueError, match="make it with visualize_at"):
        cg.GraphPicture("digraph {}").html()


# ----------------------------------------------------------------------------------------------------- content


@pytest.mark.slow
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("dark", [False, True])
def test_page_shows_all_nodes(tmp_path: Path, width: str, dark: bool) -> None:
    """All nodes lie within the picture, at every width, in the colors of the theme."""
    with shown(tmp_path, expression(), width, dark) as page:
        frame = rect(page, "#graph")
        nodes = page.locator(".node")
        assert nodes.count() == 7
        for k in range(nodes.count()):
            box = nodes.nth(k).bounding_box()
            assert box["x"] >= frame["x"]
            assert box["y"] >= frame["y"]
            assert box["x"] + box["width"] <= frame["x"] + frame["width"]
            assert box["y"] + box["height"] <= frame["y"] + frame["height"]
        theme = DARK if dark else LIGHT
        color = page.evaluate("getComputedStyle(document.querySelector('.operation .shape')).fill")
        assert "#" + "".join(f"{int(part):02x}" for part in re.findall(r"\d+", color)) == hex_of(theme.operation)
        assert page.evaluate("document.documentElement.scrollWidth") <= WIDTHS[width][0]
        require_drawn(page.screenshot())


@pytest.mark.slow
@pytest.mark.parametrize("direction", ["LR", "TB"])
def test_page_arrows_lead_from_operands_to_operations(tmp_path: Path, direction: str) -> None:
    """Nodes are in the requested direction and in the order of operands, without overlaps."""
    with shown(tmp_path, layered(3), direction=direction, fold=False) as page:
        links = page.evaluate("links.map(l => [[l.from.x, l.from.y, l.from.w, l.from.h], [l.to.x, l.to.y], l.points])")
        along = 0 if direction == "LR" else 1
        for source, target, points in links:
            assert source[along] + source[along + 2] < target[along]
            assert points[0][along] == pytest.approx(source[along] + source[along + 2])
            assert points[-1][along] == pytest.approx(target[along])
        ends = """[...document.querySelectorAll(".arrow:not(.loop-carried)")].map((path) => {
            const [end, near] = [0, 0.5].map((back) => path.getPointAtLength(path.getTotalLength() - back));
            return [end.x - near.x, end.y - near.y]; })"""
        heads = page.evaluate(ends)
        assert len(heads) == len(links)
        assert all(head[along] > abs(head[1 - along]) for head in heads)
        assert not re.search(r"([\d.]+ [\d.]+)L\1(?![\d.])", page.locator(".arrow").first.get_attribute("d"))
        boxes = page.evaluate("items.map(i => [i.x, i.y, i.w, i.h])")
        for k, (x, y, w, h) in enumerate(boxes):
            for a, b, c, d in boxes[:k]:
                assert x >= a + c or a >= x + w or y >= b + d or b >= y + h


@pytest.mark.slow
def test_page_keeps_order_of_operands(tmp_path: Path) -> None:
    """x - y and y - x are distinguishable."""
    x, y = variable(1.0, "x"), variable(2.0, "y")
    for first, second in ((x, y), (y, x)):
        with shown(tmp_path, np.sin(first) - np.cos(second)) as page:
            ends = page.evaluate(
                "links.filter(l => l.to.number === 0).map(l => [l.from.entry.details.opname, l.points.at(-1)[1]])"
            )
            assert [name for name, _ in sorted(ends, key=lambda end: end[1])] == ["sin", "cos"]
            x, y = y, x


@pytest.mark.slow
def test_page_shows_folded_loops_and_omitted_nodes(tmp_path: Path) -> None:
    """A folded loop has its box and its back edge; omitted nodes are counted."""
    with shown(tmp_path, layered(40)) as page:
        assert page.get_by_role("button", name="part repeated 39 times").count() == 1
        assert page.locator(".arrow.loop-carried").count() == 1
    with shown(tmp_path, layered(4), limit=3) as page:
        assert "more" in page.locator("#rest").text_content()


@pytest.mark.slow
def test_page_names_are_inert_text(tmp_path: Path) -> None:
    """Names are text in the picture, the panel, the hint and the labels for readers aloud."""
    with shown(tmp_path, np.stack([variable(1.0, name) for name in NASTY])) as page:
        for k in range(1, len(NASTY) + 1):
            page.locator(f"#node-{k}").dispatch_event("click")
            page.locator(f"#node-{k}").dispatch_event("pointerover")
        assert page.title() == "Computation graph"
        assert page.locator("#node-1 text").text_content() == NASTY[0]
        assert page.locator("#view img, #panel img, #view script, #panel script").count() == 0


# ---------------------------------------------------------------------------------------------------- controls


@pytest.mark.slow
def test_page_zooms_and_pans(tmp_path: Path) -> None:
    """Buttons, wheel, dragging and keys."""
    with shown(tmp_path, expression()) as page:
        whole = scale(page)
        page.get_by_role("button", name="Zoom in").click()
        assert scale(page) == pytest.approx(whole * 1.25)
        page.get_by_role("button", name="Zoom out").click()
        assert scale(page) == pytest.approx(whole)
        page.mouse.move(400, 300)
        before = page.evaluate("[(400 - eye.x) / eye.scale, (300 - graph.getBoundingClientRect().top - eye.y) / eye.scale]")
        page.mouse.wheel(0, -300)
        page.wait_for_function(f"eye.scale > {whole}")
        after = page.evaluate("[(400 - eye.x) / eye.scale, (300 - graph.getBoundingClientRect().top - eye.y) / eye.scale]")
        assert after == pytest.approx(before)  # the point under the pointer stays there
        place = rect(page, "#node-0")
        page.mouse.move(20, 700)
        page.mouse.down()
        page.mouse.move(70, 680, steps=4)
        page.mouse.up()
        assert rect(page, "#node-0")["x"] == pytest.approx(place["x"] + 50, abs=1)
        assert page.locator("#panel").is_hidden()
        page.get_by_role("button", name="Fit").click()
        assert scale(page) == pytest.approx(whole)
        page.locator("#graph").focus()
        for key in ("+", "-", "ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "+", "0"):
            page.keyboard.press(key)
        assert scale(page) == pytest.approx(whole)
        page.keyboard.press("ArrowLeft")
        assert page.evaluate("eye.x") > 0


@pytest.mark.slow
def test_page_pinch_zooms(tmp_path: Path) -> None:
    """Pinch to zoom."""
    with shown(tmp_path, expression(), "phone") as page:
        whole = scale(page)
        finger = """(kind, id, x) => graph.dispatchEvent(new PointerEvent(kind,
            {pointerId: id, clientX: x, clientY: 400, pointerType: "touch", bubbles: true}))"""
        for kind, number, x in [("down", 8, 150), ("down", 9, 250), ("move", 9, 350), ("up", 8, 150), ("up", 9, 350)]:
            page.evaluate(f"([kind, id, x]) => ({finger})(kind, id, x)", [f"pointer{kind}", number, x])
        assert scale(page) == pytest.approx(2 * whole)


@pytest.mark.slow
def test_page_search_finds_names_and_operations(tmp_path: Path) -> None:
    """Search matches names, operations and names as written; Enter selects the next match."""
    with shown(tmp_path, expression()) as page:
        query = page.get_by_role("searchbox")
        for words, count in [
            ("sin", "1 found"),
            ("y_1", "1 found"),
            ("y₁", "1 found"),
            ("THETA", "1 found"),
            ("nothing", "none"),
            ("", ""),
        ]:
            query.fill(words)
            assert page.locator("#found").text_content() == count
        query.fill("i")
        total = page.locator(".node.found").count()
        assert total > 1
        query.press("Enter")
        assert page.locator("#found").text_content() == f"1 of {total}"
        for _ in range(total):
            query.press("Enter")
        assert page.locator("#found").text_content() == f"1 of {total}"
        page.locator("#graph").focus()
        page.keyboard.press("/")
        assert page.evaluate("document.activeElement.id") == "query"


@pytest.mark.slow
def test_page_search_opens_closed_boxes(tmp_path: Path) -> None:
    """Selecting a match in a closed box opens the box."""
    with shown(tmp_path, layered(), scopes="closed") as page:
        assert page.locator(".node").count() == 3
        page.get_by_role("searchbox").fill("W_2")
        page.get_by_role("searchbox").press("Enter")
        assert page.locator(".node.found text").text_content() == "W₂"
        assert page.locator(".node").count() > 3


@pytest.mark.slow
def test_page_hover_shows_value_and_shape(tmp_path: Path) -> None:
    """A hint at the pointer, which leaves with it, or with Escape."""
    with shown(tmp_path, expression()) as page:
        page.get_by_role("button", name=re.compile("^y₁, variable")).hover()
        hint = page.get_by_role("tooltip")
        first, line = (hint.text_content() or "").rsplit("\n", 1)
        assert first == "y₁\n(2,) float64\n[1 2]"
        assert re.match(r"test_page\.py:\d+: x, y = variable", line)
        page.keyboard.press("Escape")
        assert hint.is_hidden()
        page.get_by_role("button", name=re.compile("^sin, ")).hover()
        assert hint.is_visible()
        page.mouse.move(5, 790)
        assert hint.is_hidden()


@pytest.mark.slow
@pytest.mark.parametrize("width", WIDTHS)
def test_page_click_opens_panel(tmp_path: Path, width: str) -> None:
    """Formula, value, cotangent and line of code; and the way to the neighbors."""
    output = expression()
    nodes = [node for node in breadth_first(output) if isinstance(node, cg.Node) and not isinstance(node, cg.ConstantNode)]
    with shown(tmp_path, output, width, adjoints=gradient(output, wrt=nodes)) as page:
        panel = page.locator("#panel")
        page.get_by_role("button", name=re.compile("^mul, θ")).click()
        text = panel.inner_text()
        for words in ("θ = x · y₁", "[0.5 1]", "(2,) float64", "test_page.py:", "product = x * y", "Cotangent"):
            assert words in text
        assert f"{np.cos(0.5):.6g}" in text  # the cotangent of the product: cos(x y) / y²
        frame = rect(page, "#panel")
        assert frame["x"] + frame["width"] <= WIDTHS[width][0] + 1
        require_drawn(page.screenshot())
        panel.get_by_role("button", name="x", exact=True).click()
        assert panel.locator("h2").text_content() == "x"
        assert page.evaluate("document.activeElement.getAttribute('data-place')") is not None
        page.keyboard.press("Escape")
        assert panel.is_hidden()


@pytest.mark.slow
@pytest.mark.parametrize("direction", ["LR", "TB"])
def test_page_boxes_open_and_close(tmp_path: Path, direction: str) -> None:
    """Boxes open one at a time in place, or all together; nested ones too."""
    with shown(tmp_path, layered(), direction=direction) as page:
        everything = page.locator(".node").count()
        first = page.get_by_role("button", name="scope layer1", exact=True)
        assert first.get_attribute("aria-expanded") == "true"
        place = first.bounding_box()
        first.click(position={"x": 30, "y": 12})
        first = page.get_by_role("button", name="scope layer1, 5 nodes")
        assert first.get_attribute("aria-expanded") == "false"
        assert page.locator(".node").count() == everything - 5
        assert abs(first.bounding_box()["x"] - place["x"]) < 20
        first.click()
        assert page.locator(".node").count() == everything
        page.get_by_role("button", name="Close all").click()
        assert page.locator(".node").count() == 3
        assert page.locator(".box").count() == 0
        require_drawn(page.screenshot())
        page.get_by_role("button", name="Open all").click()
        assert page.locator(".node").count() == everything
        assert page.locator(".box").count() == 4
        assert page.get_by_role("button", name="Open all").is_disabled()


@pytest.mark.slow
def test_page_turn_button_changes_direction(tmp_path: Path) -> None:
    """From left to right, or from top to bottom."""
    with shown(tmp_path, layered()) as page:
        across = page.evaluate("size.w / size.h")
        page.get_by_role("button", name="Turn").click()
        assert page.evaluate("size.w / size.h") < 1 < across


@pytest.mark.slow
def test_page_works_by_keyboard(tmp_path: Path) -> None:
    """Tab visits the nodes in the order of computation, focus is visible, Enter opens the panel and closes boxes."""
    with shown(tmp_path, layered()) as page:
        page.locator("#graph").focus()
        stops = []
        for _ in range(page.locator(".node, .title").count()):
            page.keyboard.press("Tab")
            stops.append(page.evaluate("document.activeElement.getAttribute('aria-label').split(',')[0]"))
            ring = page.evaluate("getComputedStyle(document.activeElement.querySelector('.ring')).stroke")
            assert ring != "none"
        assert stops[0] == "x"
        assert stops[-1] == "sum"
        assert stops.index("scope layer1") < stops.index("scope layer2")
        assert stops.count("scope linear") == 2
        page.keyboard.press("Enter")
        assert page.locator("#panel h2").text_content().startswith("sum")
        page.keyboard.press("Escape")
        page.get_by_role("button", name="scope layer1", exact=True).focus()
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.getAttribute('aria-expanded')") == "false"
        page.keyboard.press(" ")
        assert page.evaluate("document.activeElement.getAttribute('aria-expanded')") == "true"


@pytest.mark.slow
def test_page_controls_have_accessible_names(tmp_path: Path) -> None:
    """Labels for screen readers."""
    with shown(tmp_path, layered()) as page:
        unnamed = """[...document.querySelectorAll("button, input, [tabindex], [role=button]")].filter(
            (e) => !(e.getAttribute("aria-label") || e.getAttribute("aria-labelledby") || e.textContent.trim()))"""
        assert page.evaluate(f"{unnamed}.length") == 0
        assert page.evaluate("document.documentElement.lang") == "en"


@pytest.mark.slow
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_page_theme_option_and_button(tmp_path: Path, theme: str) -> None:
    """An explicit theme precedes the browser's; the button changes it."""
    with shown(tmp_path, expression(), dark=theme == "light", theme=theme) as page:
        assert page.evaluate("getComputedStyle(document.documentElement).colorScheme") == theme
        other = "Dark" if theme == "light" else "Light"
        page.get_by_role("button", name=other).click()
        assert page.evaluate("getComputedStyle(document.documentElement).colorScheme") == other.lower()
        require_drawn(page.screenshot())


@pytest.mark.slow
def test_page_lays_out_large_graph_quickly(tmp_path: Path) -> None:
    """Hundreds of nodes that do not repeat take less than a second in the browser."""
    choose = np.random.default_rng(0)
    nodes = [variable(1.0, f"v_{k}") for k in range(5)]
    for _ in range(1000):
        one, other = choose.integers(max(0, len(nodes) - 12), len(nodes), 2)
        nodes.append(np.cos(nodes[one] - nodes[other]))
    with shown(tmp_path, nodes[-1]) as page:
        assert page.evaluate("(() => { const start = performance.now(); show(); return performance.now() - start; })()") < 1000
        assert page.locator(".node").count() == 300
        require_drawn(page.screenshot())


@pytest.mark.slow
def test_page_on_narrow_screen_turns_graph(tmp_path: Path) -> None:
    """A narrow screen lays the graph out along the screen until it is turned; a wide one uses the requested direction."""
    with shown(tmp_path, expression(), "phone") as page:
        assert page.evaluate("across")
        turned = scale(page)
        page.get_by_role("button", name="Turn").click()
        assert not page.evaluate("across")
        assert scale(page) < turned
        page.set_viewport_size({"width": 400, "height": 820})
        page.wait_for_function("graph.getBoundingClientRect().width > 390")
        page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        assert not page.evaluate("across")
    with shown(tmp_path, expression()) as page:
        assert not page.evaluate("across")


@pytest.mark.slow
def test_page_labels_are_not_covered(tmp_path: Path) -> None:
    """Cotangent labels are crossed by no arrow and covered by no node."""
    output = expression()
    nodes = [node for node in breadth_first(output) if isinstance(node, cg.Node) and not isinstance(node, cg.ConstantNode)]
    with shown(tmp_path, output, adjoints=gradient(output, wrt=nodes)) as page:
        assert page.locator("text.cotangent").count() >= 3
        crossed = page.evaluate("""[...document.querySelectorAll("text.cotangent")].filter((text) => {
            const { x, y, width, height } = text.getBBox();
            return [...document.querySelectorAll(".arrow")].some((path) => {
                for (let at = 0; at < path.getTotalLength(); at += 1) {
                    const point = path.getPointAtLength(at);
                    if (point.x > x && point.x < x + width && point.y > y && point.y < y + height) return true;
                }
                return false;
            });
        }).length""")
        assert crossed == 0


@pytest.mark.slow
def test_page_fits_graph_on_resize(tmp_path: Path) -> None:
    """With the window and the panel, unless the reader has moved the view."""
    with shown(tmp_path, expression()) as page:
        whole = scale(page)
        page.set_viewport_size({"width": 700, "height": 340})
        page.wait_for_function(f"eye.scale < {whole} && Math.abs(eye.scale - fitting()) < 1e-9")
        small = scale(page)
        page.get_by_role("button", name=re.compile("^mul, θ")).click()
        page.wait_for_function(f"eye.scale < {small} && Math.abs(eye.scale - fitting()) < 1e-9")
        page.keyboard.press("Escape")  # closes the hint, if open, then the panel
        page.keyboard.press("Escape")
        page.wait_for_function(f"Math.abs(eye.scale - {small}) < 1e-9")
        page.get_by_role("button", name="Zoom in").click()
        chosen = scale(page)
        page.set_viewport_size({"width": 1280, "height": 800})
        page.wait_for_function("graph.getBoundingClientRect().width > 1200")
        page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        assert scale(page) == chosen
        page.get_by_role("button", name="Fit").click()
        assert scale(page) == pytest.approx(whole)


@pytest.mark.slow
def test_page_in_hidden_tab_fits_when_shown(tmp_path: Path) -> None:
    cg.visualize_at(expression(), tmp_path / "graph.html")
    frame = '<iframe src="graph.html" width="900" height="500"></iframe>'
    notebook = tmp_path / "notebook.html"
    notebook.write_text(f'<!doctype html><meta charset=utf-8><title>n</title><div id="tab" style="display:none">{frame}</div>')
    with opened(notebook) as page:
        page.evaluate("document.getElementById('tab').style.display = 'block'")
        inner = page.frames[1]
        inner.wait_for_function("graph.getBoundingClientRect().width > 800 && Math.abs(eye.scale - fitting()) < 1e-9")
        assert inner.evaluate("eye.scale") > 0.3


@pytest.mark.slow
@pytest.mark.parametrize("legend", [None, False])
def test_page_legend_can_be_disabled(tmp_path: Path, legend: bool | None) -> None:
    with shown(tmp_path, expression(), legend=legend) as page:
        assert page.locator("#legend").is_visible() == (legend is None)
        assert page.locator("#legend li").all_inner_texts() == ([] if legend is False else ["variable", "constant", "operation"])
