"""Animations of a sweep: numbers, text, the page in a browser, and images."""

from __future__ import annotations

import html
import re
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import autodiff
import compgraph as cg
from autodiff import numeric
from autodiff.rules.rule import by_function, rules
from autodiff.visualize import Animation, animate
from autodiff.visualize.animation import compute_layout
from autodiff.visualize.equations import format_number, format_operand, node_text, unique_names, unused_letter
from autodiff.visualize.sweep_steps import backward
from compgraph.graph import breadth_first
from tests.support.arguments import Case
from tests.support.browser import WIDTHS, opened, require_drawn, require_self_contained
from tests.support.cases.tables import CASES
from tests.support.graphviz import needs_graphviz, needs_images

variable: Callable[..., Any] = cg.variable

POINT = {"x": 0.5, "y": 4.0, "z": -2.3}


def formula(x: Any, y: Any, z: Any) -> Any:
    """The function of the tutorial."""
    return np.sin(x ** (y + z)) - 3 * np.log((x**2) * (y**3))


def tutorial(**options: Any) -> Animation:
    """Its animation, with names that begin at 0."""
    cg.reset()
    f = formula(*[variable(value, name) for name, value in POINT.items()])
    return animate(f, **options)


def short() -> Animation:
    """Return an animation of four frames."""
    return animate(np.sin(variable(0.5, "x")) * 2)


def words(node: Any, **options: Any) -> list[str]:
    """The texts of the frames of an animation."""
    return [str(frame) for frame in animate(node, **options).frames]


@contextmanager
def quiet() -> Iterator[None]:
    """Without the warnings of points where a derivative is infinite, which other tests look at."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


# ------------------------------------------------------------------------------------------ the numbers


def test_animation_numbers_match_central_differences() -> None:
    """Both modes, against plain NumPy."""
    expected = numeric.gradient(lambda *args: formula(*args), [np.array(v) for v in POINT.values()])
    reverse = tutorial()
    for x, slope in zip(sorted(reverse.sweep.result, key=lambda x: x.name), expected, strict=True):
        assert reverse.sweep.result[x] == pytest.approx(float(slope), rel=1e-7)
        (tangent,) = tutorial(mode="forward", wrt=x.name).sweep.result.values()
        assert tangent == pytest.approx(float(slope), rel=1e-7)


# ------------------------------------------------------------------------------------ what rules say


def steps_of(case: Case) -> list[Any]:
    """Return the steps of the sweep through a case."""
    variables = [variable(a) for a in case.args]
    with quiet():
        return [*backward(case.function(*variables), variables, None).steps]


def test_animation_formula_texts_are_each_used() -> None:
    """A formula that never evaluates to the number of its rule is wrong, and is never shown."""
    declared = {(rule.opname, k) for rule in rules.values() for k, text in enumerate(rule.texts) if text}
    assert len(declared) > 50
    missing = {*declared}
    for case in CASES:
        if any(opname == case.opname for opname, _ in missing):
            steps = steps_of(case)
            missing -= {(by_function[step.node.function].opname, step.position) for step in steps if step.text}
    assert missing == set()


def test_animation_shows_cotangent_times_derivative() -> None:
    """Elementwise operations show cotangent times derivative, in the first case of each."""
    first = {case.opname: case for case in reversed(CASES)}
    elementwise = {name: case for name, case in first.items() if name in rules and rules[name].kind == "elementwise"}
    shown = {name for name, case in elementwise.items() if any(step.local_derivative is not None for step in steps_of(case))}
    assert len(elementwise) > 100
    assert len(shown) > 0.95 * len(elementwise), {*elementwise} - shown


def test_animation_omits_wrong_formula_text() -> None:
    """The formula of a rule is shown only if it evaluates to the number of the rule."""

    @cg.primitive
    def cube(x: Any) -> Any:
        return x**3

    rule = autodiff.rule(cube, lambda g, out, x: 3 * x * x * g, kind="elementwise")
    for text, shown in (("3 * a**2", True), ("2 * a**2", False), ("g * 3 * a**2", True), ("a @ a", False)):
        rule.with_formula(text)
        (step,) = backward(cube(variable(2.0, "x")), None, None).steps
        assert (step.text == text) is shown


# ------------------------------------------------------------------------------------------ the equations


def test_animation_chain_rule_of_tutorial() -> None:
    """Names, numbers, the formula of the rule, and the sum where something had arrived."""
    lines = [str(frame) for frame in tutorial().frames]
    assert lines[0] == "The cotangent of the result is the start. ∂f/∂sub_0 = 1"
    assert lines[4] == (
        "log_0 passes its cotangent back to mul_0. ∂f/∂mul_0 += ∂f/∂log_0 · ∂log_0/∂mul_0 = −3 × 0.0625 = −0.1875. "
        "with ∂log_0/∂mul_0 = 1 / mul_0 = 1 / 16 = 0.0625"
    )
    assert lines[10] == (
        "pow_0 passes its cotangent back to its first operand, x. ∂f/∂x += ∂f/∂pow_0 · ∂pow_0/∂x = 0.95301 × 1.0465 = 0.9973. "
        "with ∂pow_0/∂x = add_0 · x^(add_0 − 1) = 1.7 · 0.5^(1.7 − 1) = 1.0465. ∂f/∂x = −12 + 0.9973 = −11.003"
    )
    assert lines[-1] == "The gradient is complete. ∂f/∂x = −11.003. ∂f/∂y = −2.4533. ∂f/∂z = −0.20332"
    assert len(lines) == 1 + 13 + 1  # an edge to a constant passes nothing


def test_animation_tangents_of_tutorial() -> None:
    """Forward mode, from the variable to the result."""
    lines = [str(frame) for frame in tutorial(mode="forward", wrt="x").frames]
    assert lines[0] == "The tangent of x is the start. ∂x/∂t = 1"
    assert "sin_0 takes the tangent of pow_0. ∂sin_0/∂t += ∂sin_0/∂pow_0 · ∂pow_0/∂t = 0.95301 × 1.0465 = 0.9973. " in lines[2]
    assert lines[-2].endswith("∂sub_0/∂t = 0.9973 + (−12) = −11.003")
    assert lines[-1] == "The tangent has arrived. ∂sub_0/∂t = −11.003"


def test_animation_vector_form() -> None:
    """Elementwise products, sums where an operand was repeated, matrices, and the shapes of the Jacobian."""
    cg.reset()
    w, x, b = variable(np.eye(2, 3), "w"), variable([[1.0], [2.0], [3.0]], "x"), variable(0.5, "b")
    text = "\n".join(words(np.sum(np.tanh(w @ x + b))))
    assert "∂f/∂tanh_0 += ∂f/∂sum_0 @ ∂sum_0/∂tanh_0 = [[1] [1]]. with ∂sum_0/∂tanh_0 = 1 for each element. " in text
    assert "cotangent (1) @ Jacobian (1, 2×1) → (2×1)" in text
    assert "∂f/∂add_0 += ∂f/∂tanh_0 ⊙ ∂tanh_0/∂add_0 = [[1] [1]] ⊙ " in text
    assert "with ∂tanh_0/∂add_0 = 1 − tanh(add_0)^2 = " in text
    assert "∂f/∂b += sum(∂f/∂add_0 ⊙ ∂add_0/∂b) = sum(" in text
    assert "with ∂f/∂matmul_0 @ ∂matmul_0/∂w = ∂f/∂matmul_0 @ xᵀ. cotangent (2×1) @ Jacobian (2×1, 2×3) → (2×3)" in text
    assert "with ∂f/∂matmul_0 @ ∂matmul_0/∂x = wᵀ @ ∂f/∂matmul_0" in text
    along = "\n".join(words(np.sum(np.tanh(w @ x + b)), mode="forward", wrt=x))
    assert "Jacobian (2×1, 3×1) @ tangent (3×1) → (2×1)" in along


def test_animation_of_complex_numbers() -> None:
    """A derivative that is not a factor is not shown as one; a real operand takes the real part."""
    cg.reset()
    z, r = variable(1 + 2j, "z"), variable(3.0, "r")
    lines = words(np.real(np.conj(z * r) * (1 + 1j)))
    assert "conj_0 passes its cotangent back to mul_0. ∂f/∂mul_0 += ∂f/∂conj_0 @ ∂conj_0/∂mul_0 = 1−1i" in lines
    assert any("∂f/∂r += Re(∂f/∂mul_0 · ∂mul_0/∂r) = Re((1−1i) × (1+2i)) = 3" in line for line in lines)


def test_animation_of_multi_output_operation() -> None:
    """The cotangents of an operation with several results are gathered before they are passed on."""
    cg.reset()
    x, y = variable(7.0, "x"), variable(2.0, "y")
    q, r = np.divmod(x, y)
    lines = words(q + r * x)
    assert "divmod_1, result 2 of divmod, passes its cotangent back. ∂f/∂divmod += ∂f/∂divmod_1 = (–, 7)" in lines
    assert any(line.endswith("∂f/∂divmod = (–, 7) + (1, –) = (1, 7)") for line in lines)
    assert lines[-1] == "The gradient is complete. ∂f/∂x = 8. ∂f/∂y = −21"
    assert words(q + r * x, mode="forward", wrt=x)[-1].endswith(" = 8")


def test_animation_repeated_operand_has_two_edges() -> None:
    """x * x passes two cotangents, along different edges."""
    x = variable(3.0, "x")
    animation = animate(x * x)
    first, second = animation.frames[1:3]
    assert first.arrow is not None
    assert second.arrow is not None
    assert first.arrow != second.arrow
    assert (first.derivative_text, second.derivative_text) == ("3", "6")


def test_animation_of_single_variable() -> None:
    """A graph of one node passes nothing."""
    assert words(variable(2.0, "x")) == [
        "The cotangent of the result is the start. ∂x/∂x = 1",
        "The gradient is complete. ∂x/∂x = 1",
    ]


def test_animation_seed_and_wrt_options() -> None:
    """The start of the sweep, and its variables."""
    x, y = variable([1.0, 2.0], "x"), variable(3.0, "y")
    weighed = animate(x * y, "x", seed=[10.0, 1.0])
    assert len(weighed) == 3
    np.testing.assert_array_equal(weighed.sweep.result[x], [30.0, 3.0])
    along = animate(x * y, x, mode="forward", seed=[0.0, 1.0])
    np.testing.assert_array_equal(next(iter(along.sweep.result.values())), [0.0, 3.0])


def test_animation_names_are_distinct() -> None:
    """Equal names are made distinct, constants are their numbers, and f is another letter if a node has that name."""
    cg.reset()
    f, g, h = variable(1.0, "f"), variable(2.0, "same"), variable(3.0, "same")
    product = f * g * h * 5
    names = unique_names(breadth_first(product))
    assert sorted(names.values()) == ["5", "f", "mul_0", "mul_1", "mul_2", "same", "same′"]
    assert unused_letter("f", names) == "F"
    assert words(product)[0].endswith("∂F/∂mul_2 = 1")
    product.name = "loss"
    assert words(product)[0].endswith("∂loss/∂loss = 1")


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (1.0, "1"), (-0.25, "−0.25"), (np.pi * 1e6, "3.1416e+06"), (np.nan, "nan"), (-np.inf, "−inf"), (1 - 2j, "1−2i"), (3, "3"),
        (True, "True"),
    ],
)  # fmt: skip
def test_animation_number_formatting(value: Any, shown: str) -> None:
    """Five digits, signs as in print."""
    assert format_number(value) == shown


def test_animation_abbreviates_arrays() -> None:
    """Long arrays are abbreviated in the middle; a node shows the shape of a long one."""
    assert format_operand(np.arange(9.0)) == "[0 1 … 8]"
    assert format_operand(np.zeros((9, 9))) == "[[0 0 … 0] [0 0 … 0] … [0 0 … 0]]"
    assert format_operand(-1.0) == "(−1)"
    assert node_text(np.full((9, 9), 0.123)) == "array 9×9"
    assert node_text(np.zeros((0, 3))) == "[]"


# --------------------------------------------------------------------------------------------- refusals


def test_animation_of_non_node_raises() -> None:
    """As by `gradient`."""
    with pytest.raises(TypeError, match="not a plain float"):
        animate(3.0)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="has no derivative: it is not floating"):
        animate(np.argmax(variable([1.0, 2.0])))


def test_animation_bad_options_raise() -> None:
    """Each with what to use instead."""
    x, y = variable(1.0, "x"), variable(2.0, "y")
    f = x * y
    with pytest.raises(ValueError, match="mode must be 'reverse' or 'forward', not 'both'"):
        animate(f, mode="both")
    with pytest.raises(ValueError, match="direction must be one of LR, TB, not 'up'"):
        animate(f, direction="up")
    with pytest.raises(ValueError, match=r"there are 2 nodes to start from: select one by wrt="):
        animate(f, mode="forward")
    with pytest.raises(ValueError, match="depends on no variable called 'q'"):
        animate(f, "q")
    with pytest.raises(ValueError, match=r"the cotangent of the result of mul .* has shape \(2,\)"):
        animate(f, seed=[1.0, 2.0])
    with pytest.raises(ValueError, match=r"the tangent of the variable .x. .* has shape \(2,\)"):
        animate(f, x, mode="forward", seed=[1.0, 2.0])
    c = cg.constant(3.0, "c")
    with pytest.raises(ValueError, match="constant; a tangent starts from a variable"):
        animate(x * c, c, mode="forward")


def test_animation_of_large_graph_raises() -> None:
    """With a limit that can be moved."""
    y = variable(1.0, "x")
    for _ in range(60):
        y = -y
    with pytest.raises(ValueError, match=r"the graph has 61 nodes, and an animation shows at most 60. .* limit="):
        animate(y)
    assert len(animate(y, limit=61)) == 62
    assert len(animate(y.operand_a)) == 61


def test_animation_of_written_nodes_raises() -> None:
    """The nodes no longer hold what the steps were computed with."""
    x = variable([1.0, 2.0], "x")
    a = x * 1.0
    b = a * 3
    a[0] = 5.0
    with pytest.raises(ValueError, match="an array was written into"):
        animate(np.sum(a * b))
    with pytest.raises(ValueError, match="an array was written into"):
        animate(np.sum(b))
    f = np.sum(x * x)
    with cg.no_graph():
        x -= 1.0
    with pytest.raises(ValueError, match=r"variable 'x' .* was updated after use"):
        animate(f)
    assert animate(np.sum(x * x)).sweep.result[x].tolist() == [0.0, 2.0]


def test_animation_operation_without_rule_raises() -> None:
    """As by `gradient`."""

    @cg.primitive
    def unknown(x: Any) -> Any:
        return x * 2

    with pytest.raises(TypeError, match="unknown has no derivative rule"):
        animate(unknown(variable(1.0)))


def test_animation_within_debug() -> None:
    """`cg.debug` has a different sweep with the same numbers."""
    with cg.debug():
        x = variable(2.0, "x")
        assert animate(x * x).sweep.result[x] == 4.0


def test_animation_warns_once() -> None:
    """An infinite derivative warns once, although the rule is called twice."""
    x = variable(0.0, "x")
    f = np.sqrt(x)
    with pytest.warns(RuntimeWarning, match="in the derivative of sqrt") as caught:
        animate(f)
    assert len(caught) == 1


# --------------------------------------------------------------------------------------------- the files


def test_save_writes_html_and_gif(tmp_path: Path) -> None:
    """The suffix selects the format; invalid arguments raise before a file is written."""
    animation = tutorial()
    with pytest.raises(ValueError, match=r"saved as \.html or \.gif, not 'x\.png'; single pictures by save_frames"):
        animation.save(tmp_path / "x.png")
    for ending in ("html", "gif"):
        with pytest.raises(ValueError, match="seconds must be positive, not 0"):
            animation.save(tmp_path / f"x.{ending}", seconds=0)
    assert list(tmp_path.iterdir()) == []


@needs_images
def test_save_gif_has_one_picture_per_frame(tmp_path: Path) -> None:
    """One picture per frame, all of equal size, each different from the one before."""
    from PIL import Image

    animation = short()
    animation.save(tmp_path / "y.gif", seconds=0.5)
    with Image.open(tmp_path / "y.gif") as gif:
        assert gif.n_frames == len(animation)
        before = None
        for place in range(gif.n_frames):
            gif.seek(place)
            assert gif.info["duration"] == (500 if place < gif.n_frames - 1 else 1000)
            pixels = np.asarray(gif.convert("RGB"))
            assert before is None or (pixels != before).any()
            before = pixels


@needs_images
def test_save_frames_writes_png_pictures(tmp_path: Path) -> None:
    """A row of pictures, neither blank nor clipped; the operation at work is green, and only while it is."""
    from matplotlib import image

    paths = short().save_frames(tmp_path / "new")
    assert [path.name for path in paths] == [f"frame-{k:03d}.png" for k in range(4)]
    green = []
    require_drawn(paths[0])
    for path in paths:
        pixels = np.round(image.imread(path)[..., :3] * 255).astype(int)
        border = np.concatenate([pixels[0], pixels[-1], pixels[:, 0], pixels[:, -1]])
        assert (border == 255).all()
        green.append(int((abs(pixels - [0x1A, 0x7F, 0x37]).sum(-1) < 12).sum()))
    assert green[1] > green[0] + 3000
    assert green[-1] < green[-2] - 3000


def test_save_gif_without_matplotlib_raises(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """GIF files raise without matplotlib, with advice; pages do not need it."""
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    animation = tutorial()
    with pytest.raises(ImportError, match=r'pip install "compgraph\[examples\]"'):
        animation.save(tmp_path / "x.gif")
    animation.save(tmp_path / "x.html")


def test_animation_module_is_imported_lazily() -> None:
    """Neither the animations nor Matplotlib are needed for a gradient."""
    code = "import sys, autodiff; sys.exit(any(m in sys.modules for m in ('autodiff.visualize', 'matplotlib', 'graphviz')))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


NAMES = [
    "<script>alert('x')</script>",
    "</script><img src=x>",
    "$a_b^{2}$",
    "$\\frac$",
    "\\frac",
    "a & b",
    '"',
    "名前",
    "\x00",
    "",
    "{{style}}",
]


def awkward() -> Any:
    """A graph whose names break a page that does not escape them."""
    f = np.sum(np.stack([variable(float(k), name) for k, name in enumerate(NAMES)]) ** 2)
    f.name = "</title><b>"
    return f


@needs_images
@pytest.mark.parametrize("wrt", ["$a_b^{2}$", pytest.param(None, marks=pytest.mark.slow)])
def test_animation_escapes_names(wrt: str | None, tmp_path: Path) -> None:
    """Nothing in a name is markup, or mathematics to Matplotlib."""
    animation = animate(awkward(), wrt)
    page = animation.html()
    assert page.count("<script") == 2
    assert "<img" not in page
    assert "<b>" not in page
    assert "{{style}}" in html.unescape(page)
    assert len(animation.save_frames(tmp_path)) == len(animation)


def test_animation_page_is_self_contained() -> None:
    """No address, no other file."""
    require_self_contained(tutorial().html())


@needs_graphviz
def test_animation_layout_is_equal_in_all_frames() -> None:
    """One layout serves all frames; its nodes do not overlap."""
    animation = tutorial()
    nodes = list(compute_layout(animation._drawing, "LR").nodes.values())
    assert len(nodes) == 15 + 13  # nodes, and labels of arrows
    boxes = [(*map(float, node["pos"].split(",")), 72 * float(node["width"]), 72 * float(node["height"])) for node in nodes]
    for k, (x, y, width, height) in enumerate(boxes):
        for a, b, w, h in boxes[:k]:
            assert abs(x - a) >= (width + w) / 2 - 0.01 or abs(y - b) >= (height + h) / 2 - 0.01


# ------------------------------------------------------------------------------------------ in a browser


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of the tutorial, which plays fast."""
    path = tmp_path_factory.mktemp("pages") / "tutorial.html"
    tutorial().save(path, seconds=0.02)
    return path


def state(page: Any) -> dict[str, Any]:
    """The displayed state of the page."""
    properties: dict[str, Any] = page.evaluate("""() => ({
        step: [...document.querySelectorAll('#steps li')].findIndex((li) => !li.hidden),
        visible: [...document.querySelectorAll('#steps li')].filter((li) => li.offsetParent).length,
        slider: Number(document.getElementById('slider').value),
        count: document.getElementById('count').textContent,
        announcement: document.getElementById('announcement').textContent,
        active: [...document.querySelectorAll('.node.active .first')].map((t) => t.textContent),
        edges: document.querySelectorAll('.arrow.active[marker-end]').length,
        labels: [...document.querySelectorAll('text.cotangent:not([hidden])')].map((t) => t.textContent),
        derivatives: Object.fromEntries([...document.querySelectorAll('.node')].map((n) =>
            [n.querySelector('.first').textContent, n.querySelector('.derivative text')?.textContent]).filter((p) => p[1])),
    })""")
    return properties


@pytest.mark.slow
def test_animation_page_controls(page_file: Path) -> None:
    """Forward, back, first, last and the slider."""
    with opened(page_file) as page:
        start = state(page)
        assert (start["step"], start["visible"], start["count"]) == (0, 1, "1 of 15")
        assert start["derivatives"] == {"sub_0": "∂ 1"}
        assert start["active"] == start["labels"] == []
        assert page.locator("#back").is_disabled()
        page.click("#forward")
        one = state(page)
        assert (one["step"], one["slider"], one["active"], one["edges"], one["labels"]) == (1, 1, ["sub_0"], 1, ["1"])
        assert one["announcement"].startswith("Frame 2 of 15. sub_0 passes its cotangent back to its first operand, sin_0.")
        page.click("#forward")
        page.click("#back")
        assert state(page) == one
        page.click("#first")
        assert state(page) == start
        page.click("#last")
        end = state(page)
        assert page.locator("#forward").is_disabled()
        assert len(end["labels"]) == 13
        assert {name: end["derivatives"][name] for name in "xyz"} == {"x": "∂ −11.003", "y": "∂ −2.4533", "z": "∂ −0.20332"}
        page.locator("#slider").fill("10")
        assert state(page)["step"] == 10
        assert state(page)["derivatives"]["x"] == "∂ −11.003"
        page.locator("#slider").fill("9")
        assert state(page)["derivatives"]["x"] == "∂ −12"


@pytest.mark.slow
def test_animation_page_plays_to_end(page_file: Path) -> None:
    """The page plays to its end and stops; a control pauses it; at the end it begins again."""
    with opened(page_file) as page:
        # Within one script, because the animation is short and a loaded machine may answer the next call after its end.
        labels = page.evaluate("""() => {
            document.getElementById('play').click();
            return [document.getElementById('play').ariaLabel, document.getElementById('announcement').ariaLive];
        }""")
        assert labels == ["Pause", "off"]
        page.wait_for_function("document.getElementById('slider').value === '14'")
        page.wait_for_function("document.getElementById('play').ariaLabel === 'Play'")
        assert page.locator("#announcement").get_attribute("aria-live") == "polite"
        page.keyboard.press("Home")
        assert state(page)["step"] == 0
        page.click("#last")
        page.click("#play")
        page.wait_for_function("Number(document.getElementById('slider').value) < 14")
        page.click("#back")
        assert page.locator("#play").get_attribute("aria-label") == "Play"
        step = state(page)["step"]
        page.wait_for_timeout(100)
        assert state(page)["step"] == step


@pytest.mark.slow
def test_animation_page_keys(page_file: Path) -> None:
    """Arrows, Home, End and space, wherever the focus is."""
    with opened(page_file) as page:
        for focus in ("body", "#slider", "#graph", "#forward"):
            page.keyboard.press("Home")
            page.locator(focus).focus()
            for key, place in (
                ("ArrowRight", 1),
                ("ArrowRight", 2),
                ("ArrowLeft", 1),
                ("End", 14),
                ("Home", 0),
                ("ArrowLeft", 0),
            ):
                page.keyboard.press(key)
                assert state(page)["step"] == place, (focus, key)
        page.locator("#play").focus()
        page.keyboard.press("Space")
        page.wait_for_function("document.getElementById('slider').value === '14'")
        page.locator("#graph").focus()
        page.keyboard.press("Space")  # begins again
        page.wait_for_function("document.getElementById('slider').value !== '14'")
        page.keyboard.press("Space")
        assert page.locator("#play").get_attribute("aria-label") == "Play"


@pytest.mark.slow
def test_animation_page_focus_is_visible_everywhere(page_file: Path) -> None:
    """The tab key visits the graph, its nodes and all controls; the focus has an outline, or a ring around a node."""
    with opened(page_file) as page:
        page.keyboard.press("ArrowRight")
        page.locator("#theme").focus()
        reached = []
        for _ in range(1 + 15 + 6):
            page.keyboard.press("Tab")
            reached.append(page.evaluate("document.activeElement.id"))
            script = """() => { const now = document.activeElement, ring = now.matches(".node") && now.querySelector(".ring");
                return ring ? getComputedStyle(ring).stroke !== "none" : parseFloat(getComputedStyle(now).outlineWidth) >= 2; }"""
            assert page.evaluate(script)
        assert [name for name in reached if not name.startswith("node-")] == [
            "graph", "first", "back", "play", "forward", "last", "slider",
        ]  # fmt: skip
        assert len(set(reached)) == len(reached)


@pytest.mark.slow
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("dark", [False, True])
def test_animation_page_widths_and_colors(page_file: Path, width: str, dark: bool) -> None:
    """Nothing is cut off or beside the page, what happens is in sight, and text has contrast."""
    with opened(page_file, width, dark) as page:
        for place in range(15):
            page.keyboard.press("ArrowRight")
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), place
            is_visible = page.evaluate("""() => {
                const edge = document.querySelector('.arrow.active'), graph = document.getElementById('graph');
                if (!edge) return true;
                const a = edge.getBoundingClientRect(), b = graph.getBoundingClientRect();
                const x = a.left + a.width / 2, y = a.top + a.height / 2;
                return x > b.left && x < b.right && y > b.top && y < b.bottom;
            }""")
            assert is_visible, place
        outside = page.evaluate("""() => {
            const frame = graph.getBoundingClientRect(), wrong = [];
            const left = frame.left + eye.x - 0.5, right = left + size.w * eye.scale + 1;
            const top = frame.top + eye.y - 0.5, bottom = top + size.h * eye.scale + 1;
            for (const node of document.querySelectorAll('.node')) {
                const box = node.querySelector('.shape').getBoundingClientRect();
                if (box.left < left || box.right > right) wrong.push(node.id);
                if (box.top < top || box.bottom > bottom) wrong.push(node.id);
                for (const text of node.querySelectorAll('text')) {
                    const words = text.getBoundingClientRect();
                    if (words.left < box.left || words.right > box.right) wrong.push(text.textContent);
                }
            }
            return wrong;
        }""")
        assert outside == []
        page.locator("#slider").fill("11")
        require_drawn(page.screenshot())
        assert min(contrasts(page).values()) >= 4.5, contrasts(page)


def contrasts(page: Any) -> dict[str, float]:
    """The contrast of each kind of text with its background, as WCAG defines it."""
    ratios: dict[str, float] = page.evaluate("""() => {
        const parse = (color) => color.match(/[\\d.]+/g).slice(0, 3).map(Number);
        const light = (color) => {
            const [r, g, b] = parse(color).map((v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
            return 0.2126 * r + 0.7152 * g + 0.0722 * b;
        };
        const ratio = (a, b) => (Math.max(light(a), light(b)) + 0.05) / (Math.min(light(a), light(b)) + 0.05);
        const get = (selector, property) => getComputedStyle(document.querySelector(selector))[property];
        const body = get('body', 'backgroundColor'), panel = get('#player', 'backgroundColor');
        const found = {
            heading: ratio(get('h1', 'color'), get('header', 'backgroundColor')),
            words: ratio(get('li:not([hidden]) .words', 'color'), panel),
            math: ratio(get('li:not([hidden]) .math', 'color'), panel),
            legend: ratio(get('#legend', 'color'), get('#legend', 'backgroundColor')),
            count: ratio(get('#count', 'color'), panel),
            label: ratio(get('text.cotangent', 'fill'), body),
            button: ratio(get('#play', 'color'), get('#play', 'backgroundColor')),
        };
        for (const node of document.querySelectorAll('.node')) {
            const fill = (selector) => getComputedStyle(node.querySelector(selector)).fill;
            found[node.id] = ratio(fill('.first'), fill('.shape'));
            const derivative = node.querySelector('.derivative:not(.empty)');
            if (derivative) found[`${node.id} derivative`] = ratio(fill('.derivative text'), fill('.derivative rect'));
        }
        return found;
    }""")
    return ratios


@pytest.mark.slow
def test_animation_page_names_are_text(tmp_path: Path) -> None:
    """A script in a name is text."""
    animate(awkward()).save(tmp_path / "awkward.html")
    with opened(tmp_path / "awkward.html") as page:
        shown = page.evaluate("[...document.querySelectorAll('.node .first')].map((t) => t.textContent)")
        assert "$a_b^{2}$" in shown
        assert any(name.startswith("<script>alert('x')") for name in shown)
        assert page.title() == "Reverse mode: the gradient of </title><b>"
        assert page.locator("img").count() == 0


@pytest.mark.slow
def test_animation_in_notebook_is_page_in_frame(tmp_path: Path) -> None:
    """The output in a notebook is the page, in a frame of its own, where it works."""
    shown = tutorial()._repr_html_()
    (tmp_path / "notebook.html").write_text(f"<!doctype html><meta charset=utf-8><title>n</title>{shown}", encoding="utf-8")
    with opened(tmp_path / "notebook.html") as page:
        inside = page.frames[1]
        inside.click("#forward")
        assert inside.locator("#count").text_content() == "2 of 15"
        require_drawn(page.screenshot())


def test_animation_repr_html_is_frame() -> None:
    animation = short()
    (page,) = re.findall(r'<iframe srcdoc="([^"]*)" ', animation._repr_html_())
    assert html.unescape(page) == animation.html()


def test_animation_names_are_formatted_as_in_drawing() -> None:
    """Names are formatted as in `visualize_at`; names that become equal are made distinct."""
    x, other = variable(1.0, "W_1"), variable(2.0, "W₁")
    assert set(unique_names([x, other]).values()) == {"W₁", "W₁′"}
    assert "∂f/∂W₁" in str(animate(cg.multiply(x, variable(2.0, "alpha"), name="f")).frames[-1])


def test_animation_title_names_variables() -> None:
    """The user's names, also for variables without an explicit name."""
    cg.reset()
    w, b = variable(2.0), variable(3.0, "b_1")
    assert "Reverse mode: the derivative of f with respect to w<" in animate(w * w).html()
    assert "Reverse mode: the gradient of f with respect to w and b₁<" in animate(w * b).html()
    assert "Forward mode: f as w moves<" in animate(w * w, mode="forward").html()
    many = animate(np.sum(np.stack([variable(1.0) for _ in range(9)])))
    assert "Reverse mode: the gradient of f<" in many.html()


@pytest.mark.slow
def test_animation_page_buttons_look_different(page_file: Path) -> None:
    """No two buttons show the same picture."""
    with opened(page_file) as page:
        icons = page.evaluate("[...document.querySelectorAll('.controls button')].map((b) => [b.id, b.innerHTML])")
        assert [name for name, _ in icons] == ["first", "back", "play", "forward", "last"]
        assert len({icon for _, icon in icons}) == 5
        lines = page.evaluate("[...document.querySelectorAll('.controls button')].map((b) => b.querySelector('.line') !== null)")
        assert lines == [True, True, False, True, True]  # play alone is filled


@pytest.mark.slow
def test_animation_page_on_phone_turns_graph(page_file: Path) -> None:
    """On a phone, layers are below each other."""
    for width, is_turned in (("desktop", False), ("phone", True)):
        with opened(page_file, width) as page:
            assert (page.evaluate("size.w / size.h") < 1) is is_turned
            page.click("#forward")
            assert state(page)["active"] == ["sub_0"]


def test_animation_dpi_sets_resolution_of_frames(tmp_path: Path) -> None:
    pillow = pytest.importorskip("PIL.Image")
    animation = animate(cg.multiply(variable(3.0, "x"), 5.0, name="f"))
    sizes = []
    for dpi in (75, 150, None):
        path = animation.save_frames(tmp_path / f"frames{dpi}", dpi=dpi)[0]
        with pillow.open(path) as image:
            sizes.append(image.size)
    assert sizes[1] == sizes[2]
    np.testing.assert_allclose(np.array(sizes[0]) * 2, sizes[1], atol=2)
    animation.save(tmp_path / "f.gif", dpi=75)
    with pillow.open(tmp_path / "f.gif") as image:
        assert image.size == sizes[0]
    with pytest.raises(ValueError, match="dpi must be positive"):
        animation.save_frames(tmp_path / "none", dpi=0)
    with pytest.raises(ValueError, match="a page has none"):
        animation.save(tmp_path / "f.html", dpi=75)
    assert not (tmp_path / "none").exists()
    assert not (tmp_path / "f.html").exists()
