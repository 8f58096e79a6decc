"""Drawings of compiled programs: boxes of fused nests, loops with trip counts, NumPy calls."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import autodiff as ad
import compgraph as cg
from compgraph.view import Drawing, ProgramOptions
from compgraph.view.visualize import drawing_of_program

pytest.importorskip("llvmlite")

ALL = ProgramOptions(limit=None, shapes=False, dtypes=False, scopes="open", fold=False)


def drawing(f: Any, *args: Any, options: ProgramOptions = ALL) -> Drawing:
    """The drawing of a function that is compiled for some arguments."""
    return drawing_of_program(cg.jit(f, cache=False).compile(*args), options)


def arrows(picture: Drawing) -> set[tuple[str, str]]:
    """The labels at both ends of the arrows within an iteration."""
    return {(picture.entries[a.source].label, picture.entries[a.target].label) for a in picture.arrows if not a.loop_carried}


def kinds(picture: Drawing, kind: str) -> list[str]:
    return [entry.label for entry in picture.entries if entry.kind == kind]


def recurrence(x: Any, factor: Any) -> Any:
    y = x.copy()
    for i in range(1, len(y)):
        y[i] += factor * np.tanh(y[i - 1])
    return np.sum(y * y)


def test_drawing_shows_fused_nest_as_box() -> None:
    picture = drawing(lambda x, y: (np.exp(np.tanh(x) * y), 2 * y), np.ones((3, 4)), np.ones((3, 4)))
    (box,) = picture.boxes
    assert (box.title, box.count, box.closed) == ("each of 3 × 4", 1, False)
    assert {entry.label for entry in picture.entries if entry.box == 0} == {"tanh", "×", "exp", "2 × ·"}
    assert arrows(picture) == {
        ("x", "tanh"), ("tanh", "×"), ("y", "×"), ("×", "exp"), ("exp", "result 1"),
        ("y", "2 × ·"), ("2 × ·", "result 2"),
    }  # fmt: skip
    (product,) = (entry for entry in picture.entries if entry.label == "2 × ·")
    assert (product.details["title"], product.details["opname"]) == ("2 × ·", "multiply")
    assert {entry.label for entry in picture.entries if entry.has_symbol} == {"×"}
    assert all(entry.details["title"] for entry in picture.entries)
    assert kinds(picture, "variable") == ["x", "y"]
    assert kinds(picture, "result") == ["result 1", "result 2"]


def test_drawing_names_arguments() -> None:
    nested = drawing(lambda x, p: x * p["a"] + p["b"], np.ones(3), {"a": np.ones(3), "b": np.ones(3)})
    assert kinds(nested, "variable") == ["x", "p 1", "p 2"]
    several = drawing(lambda *rest: rest[0] + rest[1], np.ones(3), np.ones(3))
    assert kinds(several, "variable") == ["rest 1", "rest 2"]


def test_drawing_single_step_has_no_box() -> None:
    picture = drawing(lambda a, b: a @ b, np.ones((40, 50)), np.ones((50, 60)))
    assert not picture.boxes
    assert arrows(picture) == {("a", "@"), ("b", "@"), ("@", "result")}


def test_drawing_distinguishes_sum_from_addition() -> None:
    picture = drawing(lambda x: np.sum(x + 1.0, axis=0), np.ones((3, 4)), options=ProgramOptions(None, True, True, "open", None))
    assert kinds(picture, "operation") == ["· + 1\n(3, 4)\nfloat64", "sum\n(4,)\nfloat64"]


def test_drawing_joins_blocked_sum() -> None:
    picture = drawing(lambda x: np.sum(np.sqrt(x)), np.ones(1_000_000))
    assert any("tiles" in box.title for box in picture.boxes)
    assert arrows(picture) == {("x", "√"), ("√", "sum"), ("sum", "sum"), ("sum", "result")}


def test_drawing_shows_trip_count_of_loop() -> None:
    picture = drawing(recurrence, np.ones(400), np.array(0.5))
    (loop,) = (number for number, box in enumerate(picture.boxes) if box.count > 1)
    assert (picture.boxes[loop].title, picture.boxes[loop].count) == ("399 iterations", 399)
    inner = [number for number, box in enumerate(picture.boxes) if box.parent == loop]
    inside = [number for number, entry in enumerate(picture.entries) if entry.box in (loop, *inner)]
    assert "tanh" in {picture.entries[number].label for number in inside}
    (again,) = (arrow for arrow in picture.arrows if arrow.loop_carried)
    assert again.source in inside
    assert again.target in inside
    assert ("factor", "×") in arrows(picture)


def test_drawing_of_gradient_shows_both_loops() -> None:
    picture = drawing(ad.value_and_grad(recurrence), np.ones(400), np.array(0.5))
    assert [box.title for box in picture.boxes if box.count > 1] == ["399 iterations", "399 iterations"]
    assert kinds(picture, "result") == ["result 1", "result 2"]


def test_drawing_shows_calls_of_numpy() -> None:
    def f(x: Any) -> Any:
        if x[0] > 0:
            x = x * 2
        return np.exp(np.sort(x, kind="heapsort")), np.linalg.svd(np.outer(x, x))[1]

    picture = drawing(f, np.array([2.0, 1.0]))
    assert "sort" in kinds(picture, "called")
    assert any("check" in label for label in kinds(picture, "operation"))
    assert {("sort", "exp"), ("· > 0", "check")} <= arrows(picture)
    called = next(entry for entry in picture.entries if entry.label == "sort")
    assert "test_program_drawing.py" in called.details["line"]
    assert sum(target == "result 2" for _, target in arrows(picture)) == 1


@pytest.mark.parametrize(
    "options", [ProgramOptions(300, False, False, "open", None), ProgramOptions(300, False, False, "closed", None)]
)
def test_drawing_collapses_many_operations(options: ProgramOptions) -> None:
    def f(x: Any) -> Any:
        for _ in range(40):
            x = np.sin(x) * 1.1
        return x

    picture = drawing(f, np.ones(5), options=options)
    assert all(box.closed for box in picture.boxes)
    assert not picture.omitted_nodes
    source = cg.visualize_at(cg.jit(f).compile(np.ones(5))).source
    assert "80 nodes" in source
    assert "tanh" not in source


def test_drawing_limit_counts_omitted_nodes() -> None:
    def f(x: Any) -> Any:
        for _ in range(40):
            x = np.sin(x) * 1.1
        return x

    picture = drawing(f, np.ones(5), options=ProgramOptions(10, False, False, "open", False))
    assert len(kinds(picture, "operation")) == 10
    assert picture.omission_label == "… 70 more"


def test_drawing_of_executor_after_run() -> None:
    x = cg.placeholder((3,), name="x")
    executor = cg.Executor(np.tanh(x * 2), jit=True)
    with pytest.raises(ValueError, match="run an Executor with jit=True"):
        cg.visualize_at(executor)
    executor.run({"x": np.ones(3)})
    assert "tanh" in cg.visualize_at(executor).source
    plain = cg.Executor(np.tanh(x * 2))
    plain.run({"x": np.ones(3)})
    with pytest.raises(ValueError, match="draw a node"):
        cg.visualize_at(plain)


def test_drawing_is_written_in_every_format(tmp_path: Path) -> None:
    compiled = cg.jit(recurrence).compile(np.ones(400), np.array(0.5))
    for theme in ("light", "dark"):
        for ending in ("svg", "png", "html"):
            cg.visualize_at(compiled, tmp_path / f"{theme}.{ending}", theme=theme, direction="TB")
            assert (tmp_path / f"{theme}.{ending}").stat().st_size > 1000
    texts = [text.text for text in ElementTree.parse(tmp_path / "light.svg").iter("{http://www.w3.org/2000/svg}text")]
    assert {"399 iterations", "tanh", "x", "factor", "result"} <= set(texts)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"values": True}, "no values"),
        ({"lines": True}, "no lines"),
        ({"mark": cg.variable(1.0)}, "no mark"),
        ({"scopes": ["layer1"]}, "'open' or 'closed'"),
        ({"direction": "RL"}, "direction"),
        ({"limit": 0}, "limit"),
        ({"format": "png"}, "filename"),
    ],
)
def test_drawing_graph_only_options_raise(options: dict[str, Any], message: str) -> None:
    compiled = cg.jit(np.tanh).compile(np.ones(3))
    with pytest.raises(ValueError, match=message):
        cg.visualize_at(compiled, **options)


def test_drawing_without_program_raises() -> None:
    with pytest.raises(ValueError, match="Call compile"):
        cg.visualize_at(cg.jit(np.tanh))
