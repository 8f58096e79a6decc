"""Pictures of graphs: content, escaping of text, renderers, and files."""

from __future__ import annotations

import gc
import html
import itertools
import json
import os
import random
import re
import string
import subprocess
import sys
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import compgraph as cg
from autodiff.reverse import gradient
from compgraph.view import render
from compgraph.view.colors import DARK, LIGHT, Theme, hex_of
from compgraph.view.drawing import draw_graph
from compgraph.view.labels import Labels, element_text, format_array, typeset_name
from compgraph.view.visualize import LIMIT, GraphPicture, visualize_at
from compgraph.view.write_history import steps_behind
from tests.support.graphviz import needs_graphviz, needs_images, needs_pygraphviz

# To a type checker x * 3 is a plain array, as NumPy declares it.
variable: Callable[..., Any] = cg.variable

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def bundled(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No ``dot`` on the PATH, so that the renderer in pygraphviz's wheel draws."""
    nothing = tmp_path / "nothing"
    nothing.mkdir()
    monkeypatch.setenv("PATH", str(nothing))


def install_dot(monkeypatch: pytest.MonkeyPatch, folder: Path, body: str) -> None:
    """Set the PATH to a folder with a ``dot`` that runs `body`."""
    folder.mkdir()
    program = folder / "dot"
    program.write_text(f"#!{sys.executable}\nimport sys\ndot = sys.stdin.read()\n{body}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))


def parse_svg(picture: GraphPicture) -> ElementTree.Element:
    """The SVG of a picture, parsed."""
    return ElementTree.fromstring(picture._repr_svg_() or "")


def labels(picture: GraphPicture) -> list[str]:
    """The labels as the SVG shows them, lines joined by newlines, in the order of the entries, the rest last."""
    groups = [group for group in parse_svg(picture).iter(f"{SVG}g") if group.get("class") == "node"]
    places = {group: int(re.sub(r"\D", "", group.get("id") or "") or len(groups)) for group in groups}
    groups.sort(key=places.__getitem__)
    lines = [[line.text or "" for line in group.iter(f"{SVG}text")] for group in groups]
    # SVG shows one of several spaces; Graphviz makes them no-break spaces.
    return ["\n".join(each).replace("\xa0", " ") for each in lines]


def declared_lines(picture: GraphPicture) -> list[str]:
    """The lines of the DOT text that declare a node, in the order of the entries."""
    return sorted(re.findall(r"^\t+(n\d+ \[.*)$", picture.source, re.MULTILINE), key=lambda line: int(line[1 : line.index(" ")]))


def texts(picture: GraphPicture) -> list[str]:
    """The labels in the DOT text, lines joined by newlines, in the order of the entries."""
    strings = []
    for line in declared_lines(picture):
        (label,) = re.findall(r'label=(<<.*?>(?= \w+=)|"(?:[^"\\]|\\.)*"|[^\s\]]+)', line)
        if label.startswith("<"):
            label = re.sub(r"<[^<>]*>", "", label[1:-1].replace("<br/>", "\n"))
        strings.append(html.unescape(label.strip('"').replace(r"\n", "\n")).replace("\xa0", " "))
    return strings


def edges(picture: GraphPicture) -> list[tuple[str, str]]:
    """The edges of the DOT text, as pairs of the nodes' places."""
    return re.findall(r"^\t(\w+) -> (\w+)", picture.source, re.MULTILINE)


# ------------------------------------------------------------------------------------------------ content


def test_drawing_labels_colors_and_edges() -> None:
    """The kind of a node determines its style."""
    cg.reset()
    x, c = variable(2.0, "x"), cg.constant(3.0, "c")
    picture = visualize_at(np.sin(x) * c)
    mul, sin, constant, leaf = declared_lines(picture)
    assert texts(picture) == ["×", "sin", "c", "x"]
    assert "label=c " in constant
    assert "label=x " in leaf
    for operation in (mul, sin):
        assert "fillcolor=purple3 fontcolor=white" in operation
        assert "shape=box" in operation
    assert "fillcolor=orange" in constant
    assert "fillcolor=lightblue" in leaf
    assert edges(picture) == [("n1", "n0"), ("n2", "n0"), ("n3", "n1")]


def test_drawing_omits_automatic_names() -> None:
    """Operations show their sign; those without a sign their opname."""
    x, y = variable([2.0, 1.0], "x"), variable([1.0, 3.0], "y")
    results = {
        "+": x + y,
        "−": x - y,
        "×": x * y,
        "/": x / y,
        "^": x**y,
        "@": x @ y,
        "√": np.sqrt(x),
        ">": x > y,
        "exp": np.exp(x),
    }
    for sign, result in results.items():
        assert result.name not in ("", sign)  # the name is generated when it is read, and does not count as a name by the user
        assert texts(visualize_at(result))[0] == sign
    assert texts(visualize_at(-x)) == ["−", "x"]


def test_drawing_operator_sign_is_larger_than_words() -> None:
    """Alone, and above a name, beside operands in ports or without."""
    x = variable(2.0, "x")
    named = [cg.multiply(x, x, name="y"), cg.negative(x, name="y")]
    for result in [x * x, -x, *named]:
        line = declared_lines(visualize_at(result))[0]
        assert re.search(r'point-size="19">[×−]</font>|fontsize=19', line)
    assert "19" not in declared_lines(visualize_at(np.sin(x)))[0]
    assert [texts(visualize_at(result))[0] for result in named] == ["×\ny", "−\ny"]


def test_drawing_names_leaves_as_in_code() -> None:
    """A variable without a name is named after the Python variable, or else automatically."""
    cg.reset()
    weight, bias = variable(2.0), variable(1.0)
    assert texts(visualize_at(weight + bias)) == ["+", "weight", "bias"]
    assert texts(visualize_at(np.sin(variable(1.0)))) == ["sin", "var_2"]
    named = variable(3.0, "w_1")
    assert texts(visualize_at(named)) == ["w₁"]
    buffer = cg.zeros(3)
    buffer[0] = weight
    assert texts(visualize_at(np.sum(buffer))) == ["sum", "buffer[0] =", "buffer", "weight"]


def test_drawing_shows_user_name_beside_opname() -> None:
    """The user's name is below the opname."""
    f = np.exp(variable(2.0, "x"))
    f.name = "growth"
    assert texts(visualize_at(f))[0] == "exp\ngrowth"


def test_drawing_has_one_edge_per_use() -> None:
    """x * x has two edges from x."""
    x = variable(2.0, "x")
    assert edges(visualize_at(x * x)) == [("n1", "n0"), ("n1", "n0")]


@needs_pygraphviz
@pytest.mark.usefixtures("bundled")
def test_drawing_keeps_parallel_edges() -> None:
    """Parallel edges are not merged by the renderer."""
    x = variable(2.0, "x")
    groups = [group.get("class") for group in parse_svg(visualize_at(x * x)).iter(f"{SVG}g")]
    assert groups.count("node") == 2
    assert groups.count("edge") == 2


def test_drawing_of_equally_named_variables() -> None:
    """Names need not be unique."""
    picture = visualize_at(variable(1.0, "x") + variable(2.0, "x"))
    assert len(declared_lines(picture)) == 3
    assert edges(picture) == [("n1", "n0"), ("n2", "n0")]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (3, "3"), (0.1 + 0.2, "0.3"), (-1.5, "−1.5"), (np.array([1.0, 2.0]), "[1 2]"),
        (np.ones((4, 2)), "(4, 2)"), (np.ones((1, 2)), "[1 1]"),
    ],
)  # fmt: skip
def test_drawing_shows_constant_as_number(value: Any, text: str) -> None:
    """A plain operand, or one without a name, shows its number; an array of more than a few its shape."""
    for constant in (value, cg.constant(value)):
        picture = visualize_at(variable(np.ones((4, 2)), "x") * constant)
        assert texts(picture) == ["×", "x", text]
        assert "fillcolor=orange" in declared_lines(picture)[2]
    assert texts(visualize_at(variable(np.ones((4, 2)), "x") * cg.constant(value, "c")))[2] == "c"
    # Not twice if values or shapes are shown.
    assert texts(visualize_at(variable(1.0, "x") * 3, values=True))[2] == "3"
    assert texts(visualize_at(variable(np.ones((4, 2)), "x") * np.ones((4, 2)), shapes=True))[2] == "(4, 2)"


def test_drawing_joins_outputs_of_one_operation() -> None:
    """divmod is one operation, between its two outputs and its operands."""
    x = variable(7.0, "x")
    quotient, remainder = divmod(x, 3.0)
    quotient.name, remainder.name = "q", "r"
    picture = visualize_at(quotient * remainder)
    joint = declared_lines(picture)[3]
    assert texts(picture) == ["×", "divmod\nq", "divmod\nr", "divmod", "x", "3"]
    assert "fillcolor=purple3" in joint
    assert edges(picture) == [("n1", "n0"), ("n2", "n0"), ("n3", "n1"), ("n3", "n2"), ("n4", "n3"), ("n5", "n3")]


def test_drawing_of_a_leaf() -> None:
    """A variable is a graph of one node."""
    picture = visualize_at(variable(1.0, "x"))
    assert len(declared_lines(picture)) == 1
    assert edges(picture) == []


def test_drawing_direction_option() -> None:
    """Left to right, or top to bottom; nothing else."""
    x = variable(1.0, "x")
    assert "rankdir=LR" in visualize_at(x).source
    assert "rankdir=TB" in visualize_at(x, direction="TB").source
    with pytest.raises(ValueError, match="direction must be one of LR, TB, not 'up'"):
        visualize_at(x, direction="up")


def arrow_ends(picture: GraphPicture) -> dict[int, list[list[float]]]:
    """For each entry where its arrows end, in the order of the operands: x and y from the top left."""
    layout = json.loads(render(picture.source, "json"))
    height = float(layout["bb"].split(",")[3])
    ends: dict[int, list[tuple[int, list[float]]]] = {}
    for edge in layout["edges"]:
        place = int(layout["objects"][edge["head"]]["name"][1:])
        x, y = map(float, edge["pos"].split()[0].removeprefix("e,").split(","))
        ends.setdefault(place, []).append((int(edge["id"].removeprefix("edge-")), [x, height - y]))
    return {place: [end for _, end in sorted(each)] for place, each in ends.items()}


@needs_pygraphviz
@pytest.mark.usefixtures("bundled")
@pytest.mark.parametrize(("direction", "axis"), [("LR", 1), ("TB", 0)])
def test_drawing_keeps_order_of_operands(direction: str, axis: int) -> None:
    """x - y and y - x are distinguishable, even where another layout is more convenient."""
    x, y, z = variable(0.5, "x"), variable(4.0, "y"), variable(2.0, "z")
    graphs = [np.sin(x ** (one - other)) * np.log(x**2 * y**3) for one, other in ((y, z), (z, y), (y, y))]
    choose = np.random.default_rng(0)
    for _ in range(8):
        nodes = [variable(1.0, name) for name in "abcd"]
        for kind, one, other in choose.integers(0, [[3, 99, 99]] * 10):
            first, second = nodes[one % len(nodes)], nodes[other % len(nodes)]
            nodes.append((first - second, np.sin(first), np.where(first > 0, second, 2.0))[kind])
        graphs.append(nodes[-1] - nodes[-2])
    for graph in graphs:
        for ends in arrow_ends(visualize_at(graph, direction=direction)).values():
            along = [end[axis] for end in ends]
            assert all(one + 1 < other for one, other in itertools.pairwise(along))


@pytest.mark.parametrize(
    ("thing", "word"), [(3.0, "float"), (np.ones(2), "ndarray"), (None, "NoneType"), ((variable(1.0),), "tuple")]
)
def test_drawing_of_non_node_raises(thing: Any, word: str) -> None:
    """A value without a graph raises an error with the name of its type."""
    with pytest.raises(TypeError, match=rf"draws a node, not a {word};"):
        visualize_at(thing)


def test_drawing_time_is_linear_in_nodes() -> None:
    """2**16 paths, 17 nodes: twice the time of 8 squarings, and not 256 times."""
    shortest = {}
    for count in (8, 16):
        y = variable(1.0, "x")
        for _ in range(count):
            y = y * y
        times = []
        for _ in range(20):
            start = time.process_time()
            picture = visualize_at(y)
            times.append(time.process_time() - start)
        assert len(declared_lines(picture)) == count + 1
        assert len(edges(picture)) == 2 * count
        shortest[count] = min(times)
    assert shortest[16] < 4 * shortest[8]


@pytest.mark.slow
def test_drawing_of_large_graph_is_limited() -> None:
    """The nodes nearest to the output are drawn, and the rest is counted."""
    y = x = variable(1.0, "x")
    for _ in range(20_000):
        y = y * x
    picture = visualize_at(y, limit=1000, fold=False)
    assert len(declared_lines(picture)) == 1000
    assert 'rest [label="… 19001 more"' in picture.source
    assert ("rest", "n999") in edges(picture)
    assert len(declared_lines(visualize_at(y, limit=3, fold=False))) == 3
    with pytest.raises(ValueError, match="limit must be at least 1"):
        visualize_at(y, limit=0)


@pytest.mark.slow
def test_drawing_limit_none_draws_everything() -> None:
    """limit=None draws everything; nothing is left out at the limit itself."""
    assert LIMIT < 500
    y = variable(1.0, "x")
    for _ in range(500):
        y = -y
    picture = visualize_at(y, limit=None, fold=False)
    assert len(declared_lines(picture)) == 501
    assert "rest" not in picture.source
    assert "rest" not in visualize_at(y, limit=501, fold=False).source
    assert "… 1 more" in visualize_at(y, limit=500, fold=False).source


# ------------------------------------------------------------------------------- values, shapes, cotangents


def test_drawing_shows_requested_details() -> None:
    """Value, shape, dtype and line of code, each on request, in this order."""
    y = np.sum(variable(np.arange(100.0), "x"))
    plain, full = visualize_at(y), visualize_at(y, values=True, shapes=True, dtypes=True, lines=True)
    assert "label=x " in declared_lines(plain)[1]
    assert "4950" not in plain.source
    assert r"\n4950\n()\nfloat64\ntest_visualize.py:" in declared_lines(full)[0]
    assert r'label="x\n[0 1 … 98 99]\n(100,)\nfloat64\ntest_visualize.py:' in declared_lines(full)[1]
    assert r'label="x\n(100,)"' in visualize_at(y, shapes=True).source


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.1 + 0.2, "0.3"),
        (-1e-9, "−1e−09"),
        (np.nan, "nan"),
        (3 - 4j, "3−4j"),
        (np.array([True, False]), "[True False]"),
        (np.zeros(0), "[]"),
        (np.zeros((2, 0)), "[[]\n []]"),
        (np.arange(6.0).reshape(2, 3), "[[0 1 2]\n [3 4 5]]"),
        (np.arange(80.0).reshape(8, 10), "[[0 1 … 8 9]\n [10 11 … 18 19]\n …\n [70 71 … 78 79]]"),
        (np.arange(8.0).reshape(2, 2, 2).astype("f4"), "[[[0 1]\n [2 3]]\n [[4 5]\n [6 7]]]"),
    ],
)
def test_drawing_abbreviates_values(value: Any, text: str) -> None:
    """All of a small array, the corners of a large one."""
    assert format_array(value) == text


def test_drawing_keeps_values_of_its_creation() -> None:
    """An update in place afterwards does not change it, neither in DOT nor in HTML."""
    x = variable([1.5, 2.0], "x")
    picture = visualize_at(x * 2, values=True)
    x -= 1.0
    assert "[1.5 2]" in picture.source
    assert "[1.5 2]" in picture.html()


def test_drawing_places_cotangents_on_arrows() -> None:
    """On the arrow out of a node; on the node itself where several arrows leave it, or none."""
    x, c = variable(3.0, "x"), cg.constant(2.0, "c")
    y = x * x
    z = np.sin(y) * c
    g = gradient(z, wrt=[x, y, z])
    source = visualize_at(z, adjoints=g).source
    slope = 2 * np.cos(9.0)
    assert re.search(rf'label2 \[label="{format_array(slope)}"', source)
    assert re.search(r"\tn3 -> label2 \[dir=none .*\n\tlabel2 -> n1", source)
    assert rf'label="x\n∂ = {format_array(6 * slope)}"' in source
    assert texts(visualize_at(z, adjoints=g))[0] == "×\n∂ = 1"
    assert visualize_at(z, adjoints={y: 7.25}).source.count("label=7.25") == 1


def test_drawing_abbreviates_cotangents() -> None:
    """Cotangents are written next to an arrow, in one line."""
    x = variable(np.arange(12.0).reshape(3, 4), "x")
    y = x * 2
    assert 'label="[0 … 11]"' in visualize_at(np.sum(y), adjoints={y: np.arange(12.0).reshape(3, 4)}).source


def test_drawing_cotangents_of_another_graph_raise() -> None:
    """Cotangents that would not be seen are a mistake."""
    with pytest.raises(ValueError, match="none of the cotangents belongs"):
        visualize_at(variable(1.0) * 2, adjoints={variable(1.0): 1.0})


def labelled_edges(picture: GraphPicture) -> set[tuple[str, str]]:
    """The edges, as pairs of texts; those with a label in one piece."""
    names = {f"n{place}": text for place, text in enumerate(texts(picture))}
    ends = edges(picture)
    onwards = dict(pair for pair in ends if pair[0].startswith("label"))
    return {(names[one], names[onwards.get(other, other)]) for one, other in ends if one not in onwards}


def test_drawing_shows_written_number_once() -> None:
    """A raw value in a write is one constant, at its arrow."""
    y = cg.zeros(3)
    y[0] = 5.0
    y[1] = variable(2.0, "x")
    picture = visualize_at(np.sum(y))
    assert "rest" not in picture.source
    assert sorted(texts(picture)) == ["5", "sum", "x", "y", "y[0] =", "y[1] ="]
    assert len(edges(picture)) == 5


def fill_in_loop(count: int, name: str | None = None) -> Any:
    """A loop that fills an array, each element from the one before."""
    x, w = variable(np.linspace(0.0, 1.0, count + 1), "x"), variable(0.9, "w")
    y = cg.zeros(count + 1)
    y[0] = x[0]
    for i in range(1, count + 1):
        y[i] = w * y[i - 1] + x[i]
    y.name = name
    return np.sum(y)


def test_drawing_of_loop_with_writes_is_acyclic() -> None:
    """Each write has an arrow from the array before it to the array after it; readers have one from the last write."""
    assert labelled_edges(visualize_at(fill_in_loop(2))) == {
        ("y", "y[0] ="), ("x", "[0]"), ("[0]", "y[0] ="),
        ("y[0] =", "[0]"), ("[0]", "×"), ("w", "×"), ("×", "+"), ("x", "[1]"), ("[1]", "+"), ("+", "y[1] ="),
        ("y[0] =", "y[1] ="),
        ("y[1] =", "[1]"), ("[1]", "×"), ("x", "[2]"), ("[2]", "+"), ("+", "y[2] ="), ("y[1] =", "y[2] ="), ("y[2] =", "sum"),
    }  # fmt: skip
    assert "rho[0] =" in texts(visualize_at(fill_in_loop(2, "rho"))) or "ρ[0] =" in texts(visualize_at(fill_in_loop(2, "rho")))


@pytest.mark.parametrize("count", [3, 50])
def test_drawing_folds_long_loop_with_writes(count: int) -> None:
    """One iteration is drawn, with the indices of the first and the last; also if all iterations use one variable."""
    picture = visualize_at(fill_in_loop(count), fold=True)
    inside = {f"[0 … {count - 1}]", "×", f"[1 … {count}]", "+", f"y[1 … {count}] ="}
    assert f"× {count}" in picture.source
    assert set(texts(picture)) == inside | {"x", "w", "y", "[0]", "y[0] =", "sum"}
    assert picture.source.count("style=dashed") == 2  # to the next iteration: the read value and the written array
    assert (visualize_at(fill_in_loop(count)).source == picture.source) is (count == 50)


def test_drawing_of_folded_loop_names_first_and_last_values() -> None:
    """Of constants and indices that are not the same in all parts the first and the last are named."""
    x = variable(np.arange(9.0), "x")
    steps = [np.sin(x[i] * (0.5 * i)) for i in range(1, 7)]
    assert {"[1 … 6]", "0.5 … 3"} <= set(texts(visualize_at(np.sum(np.stack(steps)), fold=True)))
    alternating = x
    for i in range(6):
        alternating = np.sin(alternating * (2.0 if i in (2, 3) else 5.0))
    assert "5 … 5" in texts(visualize_at(alternating, fold=True))


def test_drawing_of_view_after_write() -> None:
    """A read of a view after a write into its memory is a new view of the written array; an unaffected view is not."""
    x = variable(np.arange(6.0).reshape(2, 3), "x")
    y = cg.multiply(x, 1.0, name="y")
    row, other = y[1], y[0]
    row[:2] = x[0, :2]
    result = np.sum(row) + np.max(other)
    picture = visualize_at(result, values=True)
    assert labelled_edges(visualize_at(result)) == {
        ("x", "×\ny"), ("1", "×\ny"), ("×\ny", "y[1, :2] ="), ("x", "[0, :2]"), ("[0, :2]", "y[1, :2] ="),
        ("y[1, :2] =", "[1]"), ("[1]", "sum"), ("×\ny", "[0]"), ("[0]", "max"), ("sum", "+"), ("max", "+"),
    }  # fmt: skip
    # Values are those of the step: of the product before the write, of the view after it.
    assert {"×\ny\n[[0 1 2]\n [3 4 5]]", "y[1, :2] =\n[0 1]", "[1]\n[0 1 5]", "sum\n6"} <= set(texts(picture))


def test_drawing_of_written_array_is_last_write() -> None:
    """The drawn node of a written array is its last write."""
    y = cg.zeros(2)
    y[0] = variable(1.0, "x")
    y[1] = y[0]
    assert texts(visualize_at(y))[0] == "y[1] ="
    assert {("y[0] =", "[0]"), ("[0]", "y[1] ="), ("y[0] =", "y[1] =")} <= labelled_edges(visualize_at(y))


@pytest.mark.parametrize(
    ("place", "text"),
    [
        (lambda a: (a, 3), "3"), (lambda a: (a, -1), "−1"), (lambda a: (a, (slice(1, None), 2)), "1:, 2"),
        (lambda a: (a, (0, None)), "0, None"), (lambda a: (a, ...), "…"), (lambda a: (a, a > 3), "mask"),
        (lambda a: (a, ([0, 1], slice(None, None, 2))), "[0 1], ::2"),
        (lambda a: (a[1], slice(0, 2)), "1, :2"), (lambda a: (a[1:], 0), "1"), (lambda a: (a.T, 2), ":, 2"),
        (lambda a: (a[::2], slice(None)), "::2"), (lambda a: (a[:, 1:4][::-1], 1), "2, 1:4"),
        (lambda a: (a[:, ::-1], ...), ":, ::−1"), (lambda a: (a[2], a[2] > 3), "…"), (lambda a: (a.ravel(), slice(1, 8)), "…"),
        (lambda a: (a[1:3, 2:], (0, 1)), "1, 3"), (lambda a: (a[0:1], slice(None)), "0"),
        (lambda a: (np.lib.stride_tricks.as_strided(a, (3,), (48,)), ...), "…"),
    ],
)  # fmt: skip
def test_drawing_shows_index_of_write(place: Callable[[Any], Any], text: str) -> None:
    """The location of a write as the user wrote it; through a view, as an index into the array; otherwise an ellipsis."""
    array = np.arange(20.0).reshape(4, 5)
    window, index = place(array)
    place_label = element_text(array, window, index)
    assert place_label == text
    if not {"mask", "…", "None"} & set(re.split(r", ", place_label)):
        before = array.copy()
        window[index] = -1.0
        exec(f"before[{place_label.replace('−', '-').replace('[0 1]', '[0, 1]')}] = -1.0", {"before": before})
        np.testing.assert_array_equal(array, before)


def test_drawing_releases_graph() -> None:
    """It holds texts."""
    x = variable([1.0, 2.0])
    picture, reference = visualize_at(x * 2), weakref.ref(x)
    del x
    gc.collect()
    assert reference() is None
    assert "Computation graph" in picture.html()


# -------------------------------------------------------------------------------------- names and formulas


@pytest.mark.parametrize(
    ("name", "text"),
    [("W_1", "W₁"), ("alpha", "α"), ("theta_12", "θ₁₂"), ("Omega", "Ω"), ("x_ij", "xᵢⱼ"), ("é_0", "é₀")]
    + [
        (name, name)
        for name in ("x", "mul_0", "W__1", "_1", "W_", "x_b", "learning_rate", "alphabet", "W_1 ", "<b>_1", "W_²", "")
    ],
)
def test_drawing_formats_names_as_mathematics(name: str, text: str) -> None:
    """Subscripts and Greek letters are formatted; other names are unchanged."""
    assert typeset_name(name) == text
    assert (
        f"label={text} " in visualize_at(variable(1.0, name)).source
        or f'label="{text}" ' in visualize_at(variable(1.0, name)).source
    )


def test_drawing_formulas_of_operations() -> None:
    """Operations as mathematics, with the names of their operands."""
    x, w = variable([1.0, 2.0], "x"), variable([3.0, 4.0], "W_1")
    cases = {
        "x + W₁": x + w, "2 − x": 2 - x, "x · W₁": x * w, "x²": x**2, "x⁻¹": x**-1, "x ^ W₁": x**w, "x ^ 0.5": x**0.5,
        "x mod W₁": x % w, "x // 2": x // 2,
        "x @ W₁": x @ w, "−x": -x, "√x": np.sqrt(x), "sin(x)": np.sin(x), "x ≥ W₁": x >= w, "x[0]": x[0],
        "sum(x, axis=0)": np.sum(x, axis=0),
    }  # fmt: skip
    assert {formula(node) for node in cases.values()} == set(cases)
    assert formula(x) == ""


def formula(node: Any) -> str:
    """The formula of a node."""
    return Labels(steps_behind(node)).formula(node)


def test_drawing_formulas_of_unnamed_operands() -> None:
    """Operations without a name are written out, two deep, with the parentheses that are needed."""
    x, w = variable(2.0, "x"), variable(3.0, "w")
    y = cg.sin(x, name="y")
    cases = {
        "(x + w) · x": (x + w) * x, "x + w · x": x + w * x, "x − (w − x)": x - (w - x), "x − w − x": x - w - x,
        "(x · w)²": (x * w) ** 2, "(x²)³": (x**2) ** 3, "x ^ (w · x)": x ** (w * x), "−(x + w)": -(x + w),
        "y / (x · w)": y / (x * w),
        "exp(x + w)": np.exp(x + w), "x + exp(sin(…))": x + np.exp(np.sin(np.cos(x))), "x · (w + (…))": x * (w + (x - w)),
        "x + w + x": x + w + x, "x · w / x": x * w / x, "x / (w / x)": x / (w / x),
    }  # fmt: skip
    assert {text: formula(node) for text, node in cases.items()} == {text: text for text in cases}


# -------------------------------------------------------------------------------------- scopes and folding


def network(layers: int) -> Any:
    """A network whose layers are scopes with a scope inside."""
    h = x = variable(np.ones((2, 3)), "x")
    for i in range(1, layers + 1):
        with cg.scope(f"layer{i}"):
            with cg.scope("linear"):
                h = h @ variable(np.eye(3), f"W_{i}") + variable(np.zeros(3), f"b_{i}")
            h = np.tanh(h)
    return np.sum(h * x)


@needs_pygraphviz
@pytest.mark.usefixtures("bundled")
def test_drawing_scopes_are_boxes() -> None:
    """Open boxes contain the nodes created in them, nested ones included."""
    svg = parse_svg(visualize_at(network(2)))
    boxes = [group for group in svg.iter(f"{SVG}g") if group.get("class") == "cluster"]
    assert sorted(text.text or "" for box in boxes for text in box.iter(f"{SVG}text")) == ["layer1", "layer2", "linear", "linear"]


@needs_pygraphviz
@pytest.mark.usefixtures("bundled")
def test_drawing_closed_scope_is_one_node() -> None:
    """A closed box is one node that counts its content; arrows lead to it and from it, each once."""
    picture = visualize_at(network(2), scopes=["layer1", "layer2/linear"])
    assert re.search(r'box\d+ \[label="layer1\\n5 nodes"', picture.source)
    assert re.search(r'box\d+ \[label="linear\\n4 nodes"', picture.source)
    assert picture.source.count("subgraph") == 1
    everything = visualize_at(network(2), scopes="closed")
    assert "subgraph" not in everything.source
    assert len(labels(everything)) == 2 + 3  # two layers; x, mul and sum
    assert len(edges(everything)) == 5


def test_drawing_unknown_scope_raises() -> None:
    """With those that there are."""
    with pytest.raises(ValueError, match="no scope is called 'layer7'; those in the picture: 'layer1', 'layer1/linear'"):
        visualize_at(network(1), scopes=["layer7"])
    with pytest.raises(ValueError, match="'open', 'closed', or a list"):
        visualize_at(network(1), scopes="layer1")


def test_drawing_folds_equal_layers() -> None:
    """Fifty layers are drawn as one with a count; the first, whose input is not a layer, is drawn separately."""
    output = network(50)
    picture = visualize_at(output)
    assert "× 49" in picture.source
    assert "layer50" in picture.source
    assert "layer49" not in picture.source
    assert "W₂ … W₅₀" in picture.source
    assert picture.source.count("style=dashed") == 1
    assert len(declared_lines(picture)) == 2 * 5 + 3
    assert len(declared_lines(visualize_at(output, fold=False))) == 50 * 5 + 3


def test_drawing_folds_small_graphs_on_request_only() -> None:
    """Small graphs are folded only on request."""
    output = network(4)
    assert not re.search(r"× \d", visualize_at(output).source)
    assert "× 3" in visualize_at(output, fold=True).source


def test_drawing_does_not_fold_different_parts() -> None:
    """Different operations, and different shapes, are not part of a run."""
    y = variable(np.ones(3), "x")
    functions = [np.sin] * 10 + [np.cos] + [np.sin] * 10
    for function in functions:
        y = function(y)
    picture = visualize_at(y, fold=True)
    assert sorted(re.findall(r"× (\d+)", picture.source)) == ["10", "9"]
    sizes = variable(np.ones(8), "x")
    for _ in range(6):
        sizes = np.sin(sizes[1:])
    assert "×" not in visualize_at(sizes, fold=True).source


def test_drawing_of_folded_parts_keeps_edges() -> None:
    """Edges into and out of every folded part are connected to the part that is drawn."""
    x, y = variable(np.ones(2), "x"), variable(np.ones(2), "y")
    steps = []
    h = y
    for _ in range(40):
        h = np.tanh(h * x)
        steps.append(h)
    picture = visualize_at(np.sum(np.stack(steps)), fold=True)
    drawn_edges = labelled_edges(picture)
    assert ("x", "×") in drawn_edges
    assert ("tanh", "stack") in drawn_edges
    assert ("tanh", "×") in drawn_edges  # dashed: to the next step


def test_drawing_of_folded_parts_shows_marked_node() -> None:
    """Folding does not hide marked nodes."""
    nodes = [variable(1.0, "x")]
    for _ in range(100):
        nodes.append(np.sin(nodes[-1]))
    nodes[40].name = "here"
    assert re.search(r"here.*color=red", visualize_at(nodes[-1], mark=nodes[40]).source)


@pytest.mark.slow
@pytest.mark.usefixtures("bundled")
@pytest.mark.parametrize("layers", [1000])
def test_drawing_of_thousands_of_nodes_is_quick(layers: int) -> None:
    """Folded or cut off: about that, 0.15 s; at most four times that, since machines are shared."""
    network(layers)
    start = time.process_time()
    output = network(layers)
    recorded = time.process_time() - start
    for fold in (None, False):
        start = time.process_time()
        assert len(labels(visualize_at(output, fold=fold))) >= 13
        assert time.process_time() - start < 4 * recorded


# ------------------------------------------------------------------------------------------------ colors


def contrast(one: str, other: str) -> float:
    """Return the contrast ratio of two colors, from 1 to 21.

    Source: Web Content Accessibility Guidelines 2.2, "relative luminance" and "contrast ratio". Level AA requires 4.5 for
    text, and 3 for shapes that must be seen.
    """
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def luminance(color: str) -> float:
    text = hex_of(color)
    parts = [int(text[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("theme", [LIGHT, DARK])
def test_themes_have_sufficient_contrast(theme: Theme) -> None:
    """WCAG AA: 4.5 for text, 3 for what must be seen; the tutorial's colors are those of the light theme."""
    backgrounds = (theme.background, theme.box, theme.inner_box)
    for kind in ("variable", "constant", "operation", "active"):
        assert contrast(getattr(theme, kind), getattr(theme, f"{kind}_text")) >= 4.5
    for behind in backgrounds:
        for text in (theme.text, theme.muted, theme.cotangent):
            assert contrast(text, behind) >= 4.5
        for line in (theme.arrow, theme.mark, theme.box_line):
            assert contrast(line, behind) >= 3
    assert (LIGHT.variable, LIGHT.constant, LIGHT.operation) == ("lightblue", "orange", "purple3")


def test_contrast_matches_wcag_values() -> None:
    """Known values: equal colors, the extremes, and a gray."""
    assert contrast("white", "white") == 1
    assert contrast("black", "white") == 21
    assert contrast("white", "purple3") == pytest.approx(6.9, abs=0.05)
    assert contrast("#767676", "#ffffff") == pytest.approx(4.54, abs=0.005)


@needs_pygraphviz
@pytest.mark.usefixtures("bundled")
def test_dark_theme_and_unknown_theme(tmp_path: Path) -> None:
    """The background is dark; an unknown theme is refused."""
    picture = visualize_at(np.sin(variable(1.0, "x")), theme="dark")
    assert DARK.background in {shape.get("fill") for shape in parse_svg(picture).iter()}
    assert DARK.operation in picture.source
    with pytest.raises(ValueError, match="theme must be one of light, dark, not 'pink'"):
        visualize_at(variable(1.0), theme="pink")


# --------------------------------------------------------------------------------------------------- ids


@needs_pygraphviz
@pytest.mark.usefixtures("bundled")
def test_svg_elements_have_ids() -> None:
    """Nodes and arrows have their numbers as ids in the SVG, x * x two arrows."""
    x = variable(2.0, "x")
    y = x * x
    z = np.sin(y)
    graph = draw_graph(z)  # type: ignore[arg-type]
    groups = {group.get("id"): group for group in parse_svg(visualize_at(z)).iter(f"{SVG}g")}
    assert set(graph.numbers) == {x, y, z}
    assert set(graph.arrows) == {(z, 0), (y, 0), (y, 1)}
    ids = {f"node-{number}" for number in graph.numbers.values()} | {f"edge-{number}" for number in graph.arrows.values()}
    assert len(ids & set(groups)) == 6
    assert [text.text for text in groups[f"node-{graph.numbers[x]}"].iter(f"{SVG}text")] == ["x"]
    assert groups[f"edge-{graph.arrows[y, 1]}"].get("class") == "edge"


# ------------------------------------------------------------------------------------------------- names

NAMES = [
    "x", "", "node", "digraph", "-4.2", 'say "x"', '"', "back\\slash", "end\\", '\\"', '\\\\"', r"\N", r"\l\G\E", "a\nb",
    "<script>alert('x')</script>", "<b>x</b>", "<>", "a -> b", "-->", "x; y", "[label=z]", "{a|b}", "// x", "/* x */", "# x",
    "a & b", "&lt;", "&amp;", "&#38;", "&", "é ∇ 名 ∂θ 😀", "charset=", ' charset="latin-1" ', " two  spaces ", "%s {0} $x",
]  # fmt: skip


@needs_pygraphviz
@pytest.mark.usefixtures("bundled")
def test_drawing_escapes_names() -> None:
    """Names are escaped in DOT and HTML."""
    choose = random.Random(0)
    names = NAMES + ["".join(choose.choices(string.punctuation + "ab n", k=8)) for _ in range(60)]
    picture = visualize_at(np.stack([variable(1.0, name) for name in names]))
    assert labels(picture)[1:] == names


@needs_pygraphviz
@pytest.mark.usefixtures("bundled")
def test_drawing_escapes_names_of_operations() -> None:
    """The same for an operation, whose label has two lines."""
    operations = [-variable(1.0, "x") for _ in NAMES]
    for operation, name in zip(operations, NAMES, strict=True):
        operation.name = name
    shown = labels(visualize_at(np.stack(operations), fold=False))
    assert shown[1 : len(NAMES) + 1] == [f"−\n{name}".rstrip("\n") for name in NAMES]
    pairs = [variable(1.0, "x") - 1.0 for _ in NAMES]  # whose operands have ports
    for operation, name in zip(pairs, NAMES, strict=True):
        operation.name = name
    shown = labels(visualize_at(np.stack(pairs), fold=False))
    assert shown[1 : len(NAMES) + 1] == [f"−\n{name}".rstrip("\n") for name in NAMES]


@needs_pygraphviz
@pytest.mark.usefixtures("bundled")
def test_drawing_escapes_control_characters() -> None:
    """Control characters and lone surrogates have no place in SVG."""
    shown = {"a\0b": r"a\x00b", "\x1b[1m": r"\x1b[1m", "tab\t": r"tab\t", "\r": r"\r", "\u2028": r"\u2028", "\ud800": r"\ud800"}
    picture = visualize_at(np.stack([variable(1.0, name) for name in shown]))
    assert labels(picture)[1:] == list(shown.values())


# --------------------------------------------------------------------------------------------- renderers


@needs_pygraphviz
@pytest.mark.usefixtures("bundled")
def test_bundled_renderer_suppresses_font_warnings(capfd: pytest.CaptureFixture[str]) -> None:
    """Font warnings of the renderer are suppressed."""
    picture = visualize_at(np.sin(variable(1.0, "x")))
    assert parse_svg(picture).tag == f"{SVG}svg"
    assert {"lightblue", "#7d26cd"} <= {shape.get("fill") for shape in parse_svg(picture).iter()}
    assert capfd.readouterr() == ("", "")


@needs_pygraphviz
@pytest.mark.usefixtures("bundled")
def test_bundled_renderer_is_not_imported_from_current_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A module there that happens to have its name is left alone."""
    (tmp_path / "pygraphviz.py").write_text("raise SystemExit('the wrong module')")
    monkeypatch.chdir(tmp_path)
    assert labels(visualize_at(variable(1.0, "x"))) == ["x"]


@pytest.mark.usefixtures("bundled")
def test_bundled_renderer_is_found_on_sys_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A folder added to sys.path counts."""
    lines = [
        "class AGraph:",
        " def from_string(self, source): self.source = source",
        " def draw(self, **options): return b'ours'",
    ]
    (tmp_path / "pygraphviz.py").write_text("\n".join(lines))
    monkeypatch.syspath_prepend(tmp_path)
    assert visualize_at(variable(1.0, "x"))._repr_svg_() == "ours"


@needs_pygraphviz
@pytest.mark.usefixtures("bundled")
def test_bundled_renderer_failure_is_reported() -> None:
    """The error contains the message of the renderer's process."""
    with pytest.raises(RuntimeError, match=r"(?s)could not draw the graph: .*Invalid Input"):
        GraphPicture("digraph { [")._repr_svg_()


def test_dot_renders_source(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """``dot`` gets the source and its answer is the picture."""
    picture = visualize_at(variable(1.0, "é"))
    install_dot(monkeypatch, tmp_path / "bin", "print('drawn', *sys.argv[1:]); print(ascii(dot)); print('hm', file=sys.stderr)")
    assert picture._repr_svg_().splitlines() == ["drawn -Kdot -Tsvg", ascii(picture.source)]


def test_dot_stderr_is_suppressed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The stderr of ``dot`` is suppressed."""
    install_dot(
        monkeypatch, tmp_path / "bin", "print('hm', file=sys.stderr); sys.stdout.buffer.write(b'\\xff' + sys.argv[2].encode())"
    )
    visualize_at(variable(1.0, "x"), tmp_path / "f.png")
    assert (tmp_path / "f.png").read_bytes() == b"\xff-Tpng"
    assert capfd.readouterr() == ("", "")


def test_dot_failure_is_reported_and_writes_no_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The error contains the message of ``dot``."""
    install_dot(monkeypatch, tmp_path / "bin", "sys.exit('no such plugin')")
    with pytest.raises(subprocess.CalledProcessError, match="no such plugin"):
        visualize_at(variable(1.0, "x"), tmp_path / "f.png")
    assert not (tmp_path / "f.png").exists()


@pytest.mark.usefixtures("bundled")
@pytest.mark.parametrize("format", ["svg", "png", "pdf"])
def test_drawing_without_graphviz_raises_with_advice(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, format: str) -> None:
    monkeypatch.setitem(sys.modules, "pygraphviz", None)
    install = r'pip install "compgraph\[pictures\]"'
    with pytest.raises(ModuleNotFoundError, match=rf"^{format.upper()} is made by Graphviz.*{install}.*graph\.html"):
        visualize_at(np.sin(variable(1.0, "x")), tmp_path / f"f.{format}")
    assert not list(tmp_path.glob("f.*"))
    with pytest.raises(ModuleNotFoundError, match=install):
        GraphPicture("digraph {}")._repr_svg_()


@needs_pygraphviz
@pytest.mark.usefixtures("bundled")
def test_drawing_without_graphviz_has_pages(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    node = np.sin(variable(1.0, "x"))
    picture = visualize_at(node)
    assert picture._repr_html_() is None
    page, source = picture.html(), picture.source
    monkeypatch.setitem(sys.modules, "pygraphviz", None)
    again = visualize_at(node, tmp_path / "f.html")
    again.save(tmp_path / "f.dot")
    assert (tmp_path / "f.html").read_text() == page
    assert (tmp_path / "f.dot").read_text() == source
    assert again._repr_svg_() is None
    shown = ElementTree.fromstring(again._repr_html_() or "")
    assert shown.tag == "iframe"
    assert shown.get("srcdoc", "").split() == page.split()


def test_renderers_are_imported_lazily() -> None:
    """Importing the package does not wait for them."""
    code = "import sys, compgraph.view.visualize; print({'graphviz', 'pygraphviz'} & set(sys.modules))"
    environment = {**os.environ, "PYTHONPATH": str(Path(cg.__file__).parent.parent)}
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert process.stdout == "set()\n"


# ------------------------------------------------------------------------------------------------- files

BEGINNINGS = {"svg": b"<?xml", "png": b"\x89PNG\r\n", "pdf": b"%PDF-", "dot": b"digraph {", "html": b"<!DOCTYPE html>"}


@needs_pygraphviz
@pytest.mark.usefixtures("bundled")
@pytest.mark.parametrize("format", BEGINNINGS)
def test_save_format_follows_suffix(tmp_path: Path, format: str) -> None:
    """Every format, in either case of letters."""
    folder = tmp_path / "pictures"
    folder.mkdir()
    for name in (f"f.{format}", f"g.h.{format.upper()}"):
        picture = visualize_at(variable(1.0, "é"), str(folder / name))
        assert isinstance(picture, GraphPicture)
        assert (folder / name).read_bytes().startswith(BEGINNINGS[format])
    assert len(list(folder.iterdir())) == 2


@needs_pygraphviz
@pytest.mark.usefixtures("bundled")
def test_save_format_option_precedes_suffix(tmp_path: Path) -> None:
    """The file need not be called by its format."""
    x = variable(1.0, "x")
    visualize_at(x, tmp_path / "f.svg", format="png")
    assert (tmp_path / "f.svg").read_bytes().startswith(BEGINNINGS["png"])
    visualize_at(x).save(tmp_path / "plain", format="PDF")
    assert (tmp_path / "plain").read_bytes().startswith(BEGINNINGS["pdf"])


def test_save_dot_file_is_source(tmp_path: Path) -> None:
    """DOT is written as it is, in UTF-8."""
    picture = visualize_at(variable(1.0, "é"), tmp_path / "f.dot")
    assert (tmp_path / "f.dot").read_text(encoding="utf-8") == picture.source
    assert 'label="é"' in picture.source


@pytest.mark.parametrize(
    ("name", "format"), [("f.gif", None), ("f", None), ("f.", None), (".svg", None), ("f.svg", "bmp"), ("f.svg", "")]
)
def test_save_unknown_format_lists_formats(tmp_path: Path, name: str, format: str | None) -> None:
    """A format that is missing or unknown is refused before anything is written."""
    with pytest.raises(ValueError, match="is not one of svg, png, pdf, dot, html"):
        visualize_at(variable(1.0, "x"), tmp_path / name, format)
    assert list(tmp_path.iterdir()) == []


def test_save_format_without_file_raises() -> None:
    """An argument that would have no effect is an error."""
    with pytest.raises(ValueError, match="pass a filename too"):
        visualize_at(variable(1.0, "x"), format="png")


def test_save_missing_folder_raises_before_rendering(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The renderer is not started in vain."""
    install_dot(monkeypatch, tmp_path / "bin", f"open({str(tmp_path / 'was here')!r}, 'w').close()")
    with pytest.raises(FileNotFoundError, match=r"there is no folder '.*missing' to write 'f.svg' into"):
        visualize_at(variable(1.0, "x"), tmp_path / "missing" / "f.svg")
    assert not (tmp_path / "was here").exists()


@pytest.mark.usefixtures("bundled")
def test_save_leaves_no_temporary_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Rendering leaves nothing behind."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    for key in ("TMPDIR", "TEMP", "TMP"):
        monkeypatch.setenv(key, str(folder))
    visualize_at(variable(1.0, "x"))._repr_svg_()
    assert list(folder.iterdir()) == []


def test_drawing_repr_explains_display() -> None:
    """Where a picture cannot show itself, its repr helps."""
    assert "save('graph.svg')" in repr(visualize_at(variable(1.0, "x")))


@needs_graphviz
@pytest.mark.slow
def test_drawing_of_node_with_many_uses_is_quick(tmp_path: Path) -> None:
    """Without bounds Graphviz takes about a minute for this."""
    x = y = variable(0.5, "x")
    for _ in range(200):
        y = np.sin(y) * 1.01 + x
    start = time.process_time(), os.times().children_user
    visualize_at(y, tmp_path / "many.svg", fold=False)
    assert time.process_time() - start[0] + os.times().children_user - start[1] < 15


@needs_images
def test_dark_picture_background_fills_picture(tmp_path: Path) -> None:
    from matplotlib import image

    visualize_at(variable(0.5, "x") * 2, tmp_path / "dark.png", theme="dark")
    pixels = image.imread(tmp_path / "dark.png")[..., :3]
    edges = [pixels[0], pixels[-1], pixels[:, 0], pixels[:, -1]]
    assert max(float(edge.max()) for edge in edges) < 0.2


@needs_graphviz
def test_drawing_of_long_arrows_is_quick(tmp_path: Path) -> None:
    """A loop of sixty iterations, unfolded: routed arrows took Graphviz 20 s, straight ones take 1 s."""
    start = os.times().children_user
    visualize_at(fill_in_loop(60), tmp_path / "turns.svg", fold=False)
    assert os.times().children_user - start < 8


# ------------------------------------------------------------------------------------ resolution, tooltips, legend


def png_size(picture: bytes) -> tuple[int, int]:
    """The width and the height in the header of a PNG."""
    return int.from_bytes(picture[16:20]), int.from_bytes(picture[20:24])


@needs_graphviz
@pytest.mark.usefixtures("bundled")
def test_dpi_scales_png(tmp_path: Path) -> None:
    picture = visualize_at(np.sin(variable(1.0, "x")), tmp_path / "f.png")
    width, height = png_size((tmp_path / "f.png").read_bytes())
    for dpi in (48, 192, 288.0):
        picture.save(tmp_path / "g.png", dpi=dpi)
        sizes = png_size((tmp_path / "g.png").read_bytes())
        assert np.allclose(sizes, (width * dpi / 96, height * dpi / 96), atol=3)
    visualize_at(np.sin(variable(1.0, "x")), tmp_path / "h", "png", dpi=288)
    assert png_size((tmp_path / "h").read_bytes()) == sizes


def test_dpi_is_passed_to_dot(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    install_dot(monkeypatch, tmp_path / "bin", "print(*sys.argv[1:])")
    visualize_at(variable(1.0, "x"), tmp_path / "f.png", dpi=300)
    assert (tmp_path / "f.png").read_text() == "-Kdot -Tpng -Gdpi=300\n"


@needs_graphviz
@pytest.mark.usefixtures("bundled")
def test_dpi_without_effect_raises(tmp_path: Path) -> None:
    picture = visualize_at(np.sin(variable(1.0, "x")))
    for format in ("svg", "pdf", "dot", "html"):
        with pytest.raises(ValueError, match=f"dpi is the resolution of a PNG; {format.upper()} has none"):
            picture.save(tmp_path / f"f.{format}", dpi=200)
    for dpi in (0, -96, np.nan, np.inf):
        with pytest.raises(ValueError, match="dpi must be positive and finite"):
            picture.save(tmp_path / "f.png", dpi=dpi)
    with pytest.raises(ValueError, match="more pixels than Graphviz draws"):
        picture.save(tmp_path / "f.png", dpi=100_000)
    with pytest.raises(ValueError, match="dpi=200 is the resolution of a PNG file; pass a filename"):
        visualize_at(variable(1.0), dpi=200)
    assert not list(tmp_path.glob("f.*"))


def titles(picture: GraphPicture) -> dict[str | None, str | None]:
    """The titles in an SVG, by the id of the element."""
    return {group.get("id"): group.findtext(f"{SVG}title") for group in parse_svg(picture).iter(f"{SVG}g")}


@needs_graphviz
@pytest.mark.usefixtures("bundled")
def test_svg_nodes_have_tooltips() -> None:
    """Formula, shape and dtype, abbreviated value, and the user's line; nothing on arrows and boxes."""
    x = variable(np.arange(100.0), "x <&>")
    with cg.scope("layer"):
        y = np.sin(x) * 2.0
    picture = visualize_at(y, adjoints=gradient(cg.sum(y), wrt=[y]))
    texts = {(text or "").split("\n")[0]: (text or "").split("\n")[1:] for text in titles(picture).values() if text}
    assert texts.keys() == {"x <&>", "2", "sin(x <&>)", "sin(x <&>) · 2"}
    line = rf"{re.escape(Path(__file__).name)}:\d+: "
    for title, facts, code in (
        ("x <&>", ["(100,) float64", "[0 1 … 98 99]"], r"x = variable\(.*"),
        ("sin(x <&>) · 2", ["(100,) float64", "[0 1.683 … −1.147 −1.998]"], r"y = np\.sin\(x\) \* 2\.0"),
        ("2", ["() float64"], r"y = .*"),  # the number is not repeated
    ):
        *others, last = texts[title]
        assert others == facts
        assert re.fullmatch(line + code, last)
    assert not any(text for name, text in titles(picture).items() if not (name or "").startswith("node"))
    assert "<title>a</title>" in (GraphPicture("digraph { a }")._repr_svg_() or "")  # of DOT text, as Graphviz writes it


@needs_graphviz
@pytest.mark.usefixtures("bundled")
def test_svg_tooltips_escape_names() -> None:
    node = np.stack([variable(1.0, name) for name in NAMES])
    shown = [text.partition("\n() float64")[0] for name, text in titles(visualize_at(node)).items() if text and name != "node-0"]
    assert set(NAMES) - {""} <= set(shown)


def test_drawing_placeholders_have_dashed_border() -> None:
    (_, line) = declared_lines(visualize_at(np.sin(cg.placeholder((2,), name="p", example=[1.0, 2.0]))))
    assert "fillcolor=lightblue" in line
    assert 'style="filled,dashed"' in line
    assert "dashed" not in visualize_at(np.sin(variable(1.0, "x"))).source


@needs_graphviz
@pytest.mark.usefixtures("bundled")
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("direction", ["LR", "TB"])
def test_legend_names_drawn_kinds(theme: str, direction: str) -> None:
    x, p = variable([1.0, 2.0], "x"), cg.placeholder((2,), name="p", example=[1.0, 2.0])
    with cg.scope("layer"):
        f = np.sum(x * p + 3.0)
    picture = visualize_at(f, legend=True, theme=theme, direction=direction)
    (graph,) = [group for group in parse_svg(picture).iter(f"{SVG}g") if group.get("class") == "graph"]
    words = [(text.text or "").strip("\xa0") for text in graph.findall(f"{SVG}text")]
    assert words == ["variable", "placeholder", "constant", "operation"]
    fills = {hex_of(shape.get("fill") or "") for shape in graph.findall(f"{SVG}path")}
    colors = DARK if theme == "dark" else LIGHT
    assert {hex_of(color) for color in (colors.variable, colors.constant, colors.operation)} <= fills
    assert labels(picture) == labels(visualize_at(f, theme=theme, direction=direction))
    assert "placeholder" not in visualize_at(f).source


def test_legend_includes_drawn_cotangents() -> None:
    x = variable([1.0, 2.0], "x")
    f = np.sum(x * x)
    assert "cotangent" in visualize_at(f, adjoints=gradient(f), legend=True).source
    assert "cotangent" not in visualize_at(f, legend=True).source
    written: Any = cg.zeros(2)
    written[0] = x[0]
    assert "write in place" not in visualize_at(np.sum(written), legend=True).source  # writes are drawn as operations


@pytest.mark.parametrize(("legend", "kinds"), [(None, ["variable", "operation"]), (True, ["variable", "operation"]), (False, [])])
def test_page_legend_is_default(legend: bool | None, kinds: list[str]) -> None:
    page = visualize_at(np.sin(variable(1.0, "x")), legend=legend).html()
    (data,) = re.findall(r'<script id="data" type="application/json">(.*?)</script>', page, re.DOTALL)
    assert json.loads(data)["legend"] == kinds
