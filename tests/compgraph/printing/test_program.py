"""Graphs as lines of Python: the text runs, gives the same bits, and lists its omissions."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import autodiff as ad
import compgraph as cg
from autodiff.reverse import gradient
from compgraph.executor import NumPyBackend, Schedule
from compgraph.printing.calls import as_slices
from compgraph.values import Node
from tests.support.checks.program import again, same

variable: Callable[..., Any] = cg.variable


def codes(listing: cg.Listing) -> list[str]:
    """The lines without their comments."""
    return [line.split("  #")[0].rstrip() for line in str(listing).splitlines()]


def test_program_runs_with_other_inputs() -> None:
    x = variable(2.0, "x")
    listing = cg.program(np.sin(x) * x)
    names = listing.names | {"x": 3.0}
    exec(str(listing), names)
    assert eval(listing.result, names) == np.sin(3.0) * 3.0


def test_program_comments_have_shapes_and_lines() -> None:
    x = variable(np.ones((2, 3)), "x")
    text = str(cg.program(cg.sum(np.tanh(x), name="loss")))
    assert text.splitlines()[0].endswith("# (2, 3) float64, variable, test_program.py:" + text.splitlines()[0].rpartition(":")[2])
    assert "v0 = np.tanh(x)    # (2, 3) float64, test_program.py:" in text
    assert text.splitlines()[-1].startswith("loss = np.sum(v0)  # () float64, test_program.py:")
    assert repr(cg.program(x)) == str(cg.program(x))


def test_program_names_are_valid_identifiers() -> None:
    x, y = variable(1.0, "lambda"), variable(2.0, "my name")
    z = cg.multiply(x, y, name="np")
    assert codes(cg.program(cg.add(z, variable(3.0, "v0"), name="my name"))) == [
        "lambda_", "my_name", "v0", "np_ = lambda_ * my_name", "my_name_2 = np_ + v0",
    ]  # fmt: skip


def test_program_results_nest() -> None:
    x = variable([1.0, 2.0], "x")
    a, b = np.sin(x), np.cos(x)
    listing = cg.program({"a": a, "rest": [b, (x,)]})
    assert codes(listing)[-1] == listing.result == "{'a': v0, 'rest': [v1, (x,)]}"
    outputs = again(listing)
    assert same(outputs["a"], a)
    assert same(outputs["rest"][1][0], x)


def written(x: Any) -> Any:
    """Writes of several forms, some into views."""
    b = cg.zeros((3, 4))
    b[0] = x
    column = b[:, 1]
    column *= 3
    b[1:, ::2] += x[0]
    b[[0, 2], [1, 3]] = x[:2]
    np.add(x, 1.0, out=b[2])
    b.T[1][0] = x[3]
    b.sort(axis=1)
    b.reshape(2, 6)[1, ::-2] = 0.5
    return b


def test_program_writes_are_in_order() -> None:
    x = variable([1.0, 2.0, 3.0, 4.0], "x")
    b = written(x)
    total = np.sum(b * b)
    b[0, 0] = 100.0
    listing = cg.program(total)
    assert same(again(listing), total)
    assert not any("100" in line for line in codes(listing))
    assert same(again(cg.program(b)), b)
    assert any("100" in line for line in codes(cg.program(b)))
    assert codes(listing)[1:3] == ["v0 = np.zeros((3, 4))", "v0[0] = x"]


def test_program_matches_statements_of_executor_code() -> None:
    """One generator writes both: each statement of the one stores or defines, calls and indexes as that of the other."""
    x = variable([1.0, 2.0, 3.0, 4.0], "x")
    total = np.sum(written(x) * np.tanh(x)[:, None][:3])
    executed = NumPyBackend().compile(Schedule.of([total], [], [x])).source
    lines = [line.strip() for line in executed.splitlines()[1:-1]]
    kinds = ["store" if "[" in line.split(" = ")[0] else "define" for line in lines if not line.startswith("x")]
    listed = [line for line in codes(cg.program(total)) if " = " in line]
    assert ["store" if "[" in line.split(" = ")[0] else "define" for line in listed] == kinds
    assert {"store", "define"} == {*kinds}


def test_program_does_not_write_into_inputs() -> None:
    start = np.arange(4.0) + 1
    f: Any = ad.grad(lambda x: inner(x))

    def inner(x: Any) -> Any:
        x[1:] *= x[0]
        listings.append(cg.program(np.sum(x)))
        return np.sum(x)

    listings: list[cg.Listing] = []
    f(start)
    assert np.array_equal(start, [1, 2, 3, 4])
    assert again(listings[0]) == again(listings[0]) == 10.0


def test_program_of_loop_with_writes() -> None:
    x = variable(0.9, "x")
    b = cg.empty(6)
    b[0] = 1.0
    for i in range(1, 6):
        b[i] = np.tanh(b[i - 1] * x)
    assert same(again(cg.program(b[5])), b[5])
    text = codes(cg.program(b[5], fold=True))
    assert "v0[1] = v3" in text
    assert "..." in text


@pytest.mark.parametrize(
    ("part", "text"),
    [
        (lambda a: a[1:3], (slice(1, 3), slice(None))),
        (lambda a: a[::2, 1], (slice(None, None, 2), 1)),
        (lambda a: a[2], (2, slice(None))),
        (lambda a: a[1, 2:], (1, slice(2, None))),
        (lambda a: a.T, None),
        (lambda a: a[::-1], None),
        (lambda a: a.reshape(-1)[::3], None),
        (lambda a: a.view(np.int64), None),
        (lambda a: a[:0], None),
    ],
)
def test_as_slices_of_windows(part: Any, text: Any) -> None:
    from compgraph.storage import layout_in

    a = np.arange(12.0).reshape(4, 3)
    index = as_slices(a, layout_in(a, part(a)))
    if text is None:
        assert index is None or np.array_equal(a[index], part(a))
    else:
        assert np.array_equal(a[index], part(a))
        assert index == text


def test_program_scopes_are_blocks() -> None:
    h = variable(np.ones((2, 2)), "h")
    with cg.scope("net"):
        with cg.scope("first"):
            h = np.tanh(h)
        h = h + 1.0
    listing = cg.program(h * 2.0)
    assert codes(listing)[1:] == [
        "with cg.scope('net'):",
        "    with cg.scope('first'):",
        "        v0 = np.tanh(h)",
        "    v1 = v0 + 1.0",
        "v2 = v1 * 2.0",
    ]
    names = listing.names | {"h": variable(np.ones((2, 2)))}
    exec(str(listing), names)
    assert names["v0"].scope == ("net", "first")


def test_program_lists_guards() -> None:
    x = variable(2.0, "x")
    y = x * 3
    z = np.sin(x) if y > 1 else np.cos(x)
    text = str(cg.program(z))
    assert "# bool(a result of greater) gave True, test_program.py:" in text
    assert "# bool(v0 > 1) gave True, test_program.py:" in str(cg.program([y, z]))
    w = x * float(y)
    assert "numbers left the graph here" in str(cg.program(w))


def layers(count: int) -> Any:
    """A chain of equal layers."""
    h = variable(np.ones((4, 3)), "X")
    for i in range(count):
        h = np.tanh(h @ variable(np.eye(3), f"W_{i}"))
    return h


def test_program_counts_common_subexpressions() -> None:
    h = layers(40)
    listing = cg.program(h)
    assert not listing.is_whole
    assert len(codes(listing)) < 15
    assert "the last 2 lines 37 more times, and then:" in str(listing)  # the first layer reads X, and is none of them
    assert "37 more, used in lines that are left out" in str(listing)
    with pytest.raises(NameError):
        again(listing)
    whole = cg.program(h, fold=False)
    assert whole.is_whole
    assert same(again(whole), h)
    assert cg.program(layers(4)).is_whole


def test_program_limit() -> None:
    x = variable(1.0, "x")
    for _ in range(20):
        x = np.sin(np.cos(x) + 1)
    for limit in (1, 2, 7):
        lines = codes(cg.program(x, limit=limit, fold=False))
        assert lines[0] == "..."
        assert len(lines) == limit + 1
    assert "54 earlier lines" in str(cg.program(x, limit=7, fold=False))
    assert cg.program(x, limit=61, fold=False).is_whole
    for limit in (0, -3):
        with pytest.raises(ValueError, match="at least 1"):
            cg.program(x, limit=limit)


def test_program_of_non_node_raises() -> None:
    for wrong in (1.0, np.ones(3), [cg.variable(1.0), "x"], None):
        with pytest.raises(TypeError, match="program takes nodes"):
            cg.program(wrong)

    def inside(x: Any) -> Any:
        with pytest.raises(TypeError, match="vmap"):
            cg.program(x * 2)
        return x

    ad.vmap(inside)(np.ones(3))


def test_program_notes_updated_variable() -> None:
    x = variable(1.0, "x")
    y = x * 2
    assert "updated" not in str(cg.program(y))
    x += 1
    assert "updated since it was read" in str(cg.program(y))


def test_program_constants_and_options() -> None:
    x = variable(np.ones(6, np.float32), "x")
    y = x * np.float64(0.1) + np.inf + cg.constant(3.0)
    assert same(again(cg.program(y)), y)
    z = np.where(np.arange(6) > 2, x, -x).astype(np.float16)[np.array([0, 5, 5]), None, ...]
    assert same(again(cg.program(z)), z)
    r = np.roll(x, shift=(variable(2.0) > 1).astype(int))
    assert isinstance(r, Node)
    assert same(again(cg.program(r)), r)


def test_program_of_gradient() -> None:
    x = variable([0.3, 0.7], "x")
    (dx,) = (gradient(np.sum(np.sin(x) * x), [x], create_graph=True)[x],)
    assert same(again(cg.program(dx)), dx)


def test_program_calls_primitive_by_name() -> None:
    @cg.primitive
    def my_own(x: Any, power: int = 2) -> Any:
        return x**power

    y: Any = my_own(variable([1.0, 3.0], "x"), power=3)
    listing = cg.program(y)
    assert codes(listing)[-1].startswith("v0 = my_own(x")
    assert same(again(listing), y)


def test_program_of_long_chain_needs_no_recursion() -> None:
    x = variable(1.0, "x")
    for _ in range(5 * sys.getrecursionlimit()):
        x = np.sin(x)
    assert len(codes(cg.program(x))) < 10
    assert "earlier" in str(cg.program(x, fold=False))
