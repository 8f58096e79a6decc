"""Views and their operands share memory: writes into either are visible in the other, in all modes.

The table is computed: it has every case of an operation or public name whose result shares memory with an argument when
plain NumPy runs it.
"""

from __future__ import annotations

import functools
import itertools
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest

import compgraph as cg
from autodiff import grad, jvp, rule
from tests.support.failures import Failures

Array = np.ndarray[Any, Any]


def parts_of(result: Any) -> list[Any]:
    """The arrays in what an operation returned."""
    if isinstance(result, (tuple, list)):
        return [part for each in result for part in parts_of(each)]
    return [result]


def is_shared(function: Callable[..., Any], args: tuple[Any, ...]) -> bool:
    """Whether a part of the result shares memory with the first argument."""
    first, *others = [np.array(a) for a in args]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        outputs = parts_of(function(first, *others))
    return any(isinstance(part, np.ndarray) and np.shares_memory(part, first) for part in outputs)


def usable(args: Sequence[Any]) -> bool:
    """Whether there is something to fill: a real array, with an axis."""
    return np.ndim(args[0]) > 0 and np.size(args[0]) > 0 and np.asarray(args[0]).dtype.kind == "f"


MOST = 3
COPIED = {"np.lib.stride_tricks.as_strided", "np.asmatrix"}  # of nodes these are copies, as their documentation says


def iterate_sharing_examples() -> Iterator[tuple[str, Callable[..., Any], tuple[Any, ...]]]:
    """The examples that share memory: a few per operation, and every example of a public name."""
    from tests.support import every_name
    from tests.support.cases import tables as cases

    counts: Counter[str] = Counter()
    for case in (*cases.CASES, *cases.COMPOSED_CASES):
        if counts[case.opname] < MOST and usable(case.args) and is_shared(case.function, case.args):
            counts[case.opname] += 1
            yield f"{case.opname} {case.label}", case.function, case.args
    for name, examples in every_name.EXAMPLES.items():
        for label, function, *args in examples:
            if name not in COPIED and usable(args) and is_shared(function, tuple(args)):
                yield f"{name} {label}", function, tuple(args)


@functools.cache
def sharing_table() -> dict[str, tuple[Callable[..., Any], tuple[Any, ...]]]:
    """Return the examples by label."""
    return {label: (function, args) for label, function, args in iterate_sharing_examples()}


PROGRAMS: dict[str, Callable[[Callable[[Any], Any], Any, Any], Any]] = {
    "a view, then a fill": lambda view, a, x: read(view(a), fill(a, np.sin(x))),
    "a view between two fills": lambda view, a, x: (fill(a, x), read(view(a), fill(a, np.sin(x))))[1],
    "two fills, then a view": lambda view, a, x: (fill(a, x), fill(a, np.sin(x)), read(view(a)))[2],
    "reads before and after": lambda view, a, x: both(view(a), lambda: fill(a, np.cos(x)), lambda: fill(a, a * x)),
    "views of each moment": lambda view, a, x: sum(
        [read(v) for v in (view(a), fill(a, x) or view(a), fill(a, a * a) or view(a))]
    ),
    "a part is filled": lambda view, a, x: read(view(a), fill(a[..., :1], np.exp(x[..., :1]))),
}
BUFFERS: dict[str, Callable[[Any], Any]] = {
    "zeros_like": np.zeros_like,
    "floor": lambda x: np.floor(x / 100 + 0.3),
    "full_like": lambda x: np.full_like(x, 0.5),
    "of no derivative": lambda x: np.sign(x / 100 + 0.3) * 2.0,
    "of a derivative": lambda x: x * 2,
}


def fill(a: Any, value: Any) -> None:
    """Write into all of an array."""
    a[...] = value


def read(view: Any, *_: None) -> Any:
    """A number that depends on every element, by its own weight."""
    parts = [v.real + 2 * v.imag if v.dtype.kind == "c" else v for v in parts_of(view)]
    return sum([np.sum(np.sin(v) * np.linspace(1, 2, np.size(v)).reshape(np.shape(v))) for v in parts])


def both(view: Any, *writes: Callable[[], None]) -> Any:
    """A sum of reads of a view between writes."""
    total = 0.0
    for write in writes:
        total = total + read(view)
        write()
    return total + 3 * read(view)


def central(f: Callable[[Any], Any], x: Array, direction: Array, step: float) -> Any:
    """The slope of plain NumPy."""
    return (f(x + step * direction) - f(x - step * direction)) / (2 * step)


def check(program: Any, blank: Any, function: Any, args: tuple[Any, ...], second: bool) -> None:
    """Values as NumPy's, reverse and forward mode and, if asked for, second order as by differences."""
    first, *others = [np.array(a) for a in args]
    direction = np.cos(np.arange(first.size)).reshape(first.shape)

    def f(x: Any) -> Any:
        return program(lambda a: function(a, *others), blank(x), x)

    slope = central(f, first, direction, 1e-6)
    value, tangent = jvp(f, [first], [direction])
    assert float(value) == float(f(first))
    assert np.isclose(tangent, slope, rtol=1e-6, atol=1e-7)
    assert np.isclose(np.sum(grad(f)(first) * direction), slope, rtol=1e-6, atol=1e-7)
    if not second:
        return

    def along(x: Any) -> Any:
        return np.sum(grad(f)(x) * direction)

    curve = (f(first + 1e-4 * direction) - 2 * f(first) + f(first - 1e-4 * direction)) / 1e-8
    assert np.isclose(np.sum(grad(along)(first) * direction), curve, rtol=1e-4, atol=1e-4)
    assert np.isclose(jvp(along, [first], [direction])[1], curve, rtol=1e-4, atol=1e-4)


def check_examples(first: bool) -> None:
    """Check the first case of each operation by all programs, or all other cases."""
    labels = set()
    with Failures("views") as failures:
        for label, (function, args) in sharing_table().items():
            is_first = label.split()[0] not in labels
            labels.add(label.split()[0])
            if is_first is not first:
                continue
            number = sum(map(ord, label))
            for at, (name, program) in enumerate(PROGRAMS.items()):
                buffer = list(BUFFERS)[(number + at) % len(BUFFERS)]
                with failures.case(f"{label}: {name}, {buffer}"):
                    check(program, BUFFERS[buffer], function, args, (number + at) % 3 == 0)


def test_shared_memory_views_and_fills() -> None:
    check_examples(first=True)


@pytest.mark.exhaustive
def test_shared_memory_further_views_and_fills() -> None:
    check_examples(first=False)


OVERLAPPING: dict[str, Callable[[Any], Any]] = {
    "broadcast_to": lambda a: np.broadcast_to(a, (2, *a.shape)),
    "broadcast_arrays": lambda a: np.broadcast_arrays(a, np.ones((2, *a.shape)))[0],
    "sliding_window_view": lambda a: np.lib.stride_tricks.sliding_window_view(a, 2, axis=-1),
}
ZEROS: dict[str, Callable[[Any], Any]] = {
    "in C order": np.zeros_like,
    "of no tangent": lambda x: cg.zeros(x.shape),
    "complex, of no tangent": lambda x: cg.zeros(x.shape, complex),
    "in Fortran order": lambda x: np.zeros_like(x, order="F"),
    "complex": lambda x: np.zeros_like(x, dtype=complex),
    "complex, in Fortran order": lambda x: np.zeros_like(x, dtype=complex, order="F"),
}
VIEWS_OF_VIEW: dict[str, Callable[[Any], Any]] = {
    "itself": lambda v: v,
    "real": lambda v: v.real,
    "imag": lambda v: v.imag,
    "a part, turned": lambda v: v[..., ::-1].T[1:],
}


def check_overlapping_view(overlapping: str, layout: str, view_name: str) -> None:
    """Check the second order of a view whose buffer receives a value with a tangent."""

    def program(view: Callable[[Any], Any], a: Any, x: Any) -> Any:
        fixed = view(a)
        fill(a, np.sin(x) * (1 + 0.5j) if a.dtype.kind == "c" else np.sin(x))
        late = fixed if view_name == "imag" and a.dtype.kind == "f" else VIEWS_OF_VIEW[view_name](fixed)
        return read(late) + read(late * late)

    x = np.array([[0.3, 0.5, 0.7], [0.2, 0.9, 1.1]])
    check(program, ZEROS[layout], OVERLAPPING[overlapping], (x,), True)


def test_shared_memory_overlapping_views_second_order() -> None:
    with Failures("overlapping views") as failures:
        for overlapping, layout, view_name in itertools.product(OVERLAPPING, ZEROS, VIEWS_OF_VIEW):
            with failures.case(f"{overlapping}, {layout}, {view_name}"):
                check_overlapping_view(overlapping, layout, view_name)


def test_shared_memory_table_of_views_is_complete() -> None:
    """NumPy decides which results are views; these functions return views."""
    names = {label.split()[0] for label in sharing_table()}
    views = {"broadcast_to", "diagonal", "sliding_window_view", "real", "ravel", "reshape", "einsum", "astype", "diff", "rot90"}
    assert names >= views | {"np.broadcast_arrays", "np.linalg.diagonal", "np.atleast_2d", "np.asanyarray", "np.ndarray.view"}
    read_only = [f(np.array(args[0])) for label, (f, args) in sharing_table().items() if label.split()[0] == "broadcast_to"]
    assert read_only
    assert not any(v.flags.writeable for v in read_only)


def test_constant_view_is_never_written() -> None:
    """Views of constants have no derivative, so their writes are not checked."""
    view = np.broadcast_to(cg.constant([1.0, 2.0]), (3, 2))
    assert "Inert" in type(view).__name__


def test_primitive_outputs_share_no_memory() -> None:
    """An output that is the operand itself is copied, so that a write into it is applied once."""
    both = cg.primitive(opname="itself_and_twice")(lambda x: (x, x * 2))
    rule(both, lambda g, out, x: (0 if g[0] is None else g[0]) + (0 if g[1] is None else 2 * g[1]))

    def f(x: Any) -> Any:
        y = x * 3
        first, second = both(y)
        first[...] = 5
        return np.sum(y * y) + np.sum(first) + np.sum(second)

    x = np.array([1.0, 2.0])
    assert np.array_equal(grad(f)(x), 18 * x + 6)
