"""Random programs replayed by an executor with new values: results equal those of the eager program bit for bit.

A program is a list of steps. Each step takes operands from pools of matrices, vectors and scalars and adds its result to
them. The program is recorded once, on placeholders and variables. Its outputs, with first and second derivatives, are
replayed with new values and lengths, and compared with calls of the function on these.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import compgraph as cg
from autodiff.reverse import gradients
from tests.support.for_each import for_each, sampled

pytestmark = pytest.mark.portable

Array = np.ndarray[Any, Any]
Leaves = dict[str, Any]


@pytest.fixture(autouse=True)
def _forget() -> None:
    cg.reset()


# --------------------------------------------------------------------------------------------- the steps

# Of matrices x, y with four columns, vectors v, w of length four, scalars s, t, and the leaves.
MATRICES: list[Callable[..., Any]] = [
    lambda x, y, v, s, leaves: np.sin(x),
    lambda x, y, v, s, leaves: np.tanh(x * s),
    lambda x, y, v, s, leaves: -x,
    lambda x, y, v, s, leaves: x + y,
    lambda x, y, v, s, leaves: x - 2 * y,
    lambda x, y, v, s, leaves: x * v,
    lambda x, y, v, s, leaves: v - x,
    lambda x, y, v, s, leaves: x + s,
    lambda x, y, v, s, leaves: x / (1 + y * y),
    lambda x, y, v, s, leaves: np.arctan2(x, 2 + np.abs(y)),
    lambda x, y, v, s, leaves: x.T.T * x,
    lambda x, y, v, s, leaves: x[::-1],
    lambda x, y, v, s, leaves: x[::-1] + y,
    lambda x, y, v, s, leaves: (x.T + v[:, None]).T,
    lambda x, y, v, s, leaves: x[:, [2, 0, 3, 3]],
    lambda x, y, v, s, leaves: x[:, ::-1] * y,
    lambda x, y, v, s, leaves: x - np.mean(x, axis=0),
    lambda x, y, v, s, leaves: x - np.max(x, axis=1, keepdims=True),
    lambda x, y, v, s, leaves: cg.softmax(x, axis=1),
    lambda x, y, v, s, leaves: np.cumsum(np.tanh(x), axis=0),
    lambda x, y, v, s, leaves: np.where(x > y, x, 0.5 * y),
    lambda x, y, v, s, leaves: np.where(x > s, x, y[::-1]),
    lambda x, y, v, s, leaves: np.concatenate([x[1:], y[:1]]),
    lambda x, y, v, s, leaves: np.roll(x, 1, axis=0),
    lambda x, y, v, s, leaves: np.tanh(x @ leaves["C"]),
    lambda x, y, v, s, leaves: np.tanh(np.linalg.inv(leaves["C"] @ leaves["C"].T + 2 * np.eye(4)) @ x.T).T,
    lambda x, y, v, s, leaves: np.sort(x, axis=0),
    lambda x, y, v, s, leaves: leaves["C"][leaves["rows"]],
    lambda x, y, v, s, leaves: np.tanh(x) * v[leaves["rows"]][:, None],
    lambda x, y, v, s, leaves: np.take_along_axis(x, leaves["rows"][:, None], axis=1) * y,
    lambda x, y, v, s, leaves: np.stack([x[:, 0], y[:, 1], x[:, 2], y[:, 3]], axis=1),
    lambda x, y, v, s, leaves: np.modf(x)[0] * y,
    lambda x, y, v, s, leaves: np.divmod(x, 1.5)[1],
    lambda x, y, v, s, leaves: np.concatenate([x[:, 2:], y[:, :2]], axis=1),
    lambda x, y, v, s, leaves: np.tanh(np.einsum("ij,jk,k->ij", x, leaves["C"], v)),
    lambda x, y, v, s, leaves: v * np.ones_like(x),
    lambda x, y, v, s, leaves: np.sqrt(x * x + np.exp(-y * y)),
    lambda x, y, v, s, leaves: np.flip(np.atleast_2d(x)),
    lambda x, y, v, s, leaves: np.real(x) * np.copy(y),
]
VECTORS: list[Callable[..., Any]] = [
    lambda x, y, v, s, leaves: np.tanh(np.sum(x, axis=0)),
    lambda x, y, v, s, leaves: np.mean(x * y, axis=0),
    lambda x, y, v, s, leaves: x[leaves["j"]],
    lambda x, y, v, s, leaves: leaves["C"][leaves["j"]] * v,
    lambda x, y, v, s, leaves: leaves["C"].T[1],
    lambda x, y, v, s, leaves: x[-1] * s,
    lambda x, y, v, s, leaves: np.tanh(leaves["C"] @ v),
    lambda x, y, v, s, leaves: v[::-1] + s,
    lambda x, y, v, s, leaves: np.linalg.solve(np.eye(4) * 9 + leaves["C"], v),
    lambda x, y, v, s, leaves: np.cumsum(v) / 4,
    lambda x, y, v, s, leaves: np.tanh(x.T @ y)[2],
    lambda x, y, v, s, leaves: np.bincount(leaves["rows"], x[:, 0], minlength=4) / (1 + np.sum(y * y)),
    lambda x, y, v, s, leaves: cg.logsumexp(x, axis=0) / 4,
    lambda x, y, v, s, leaves: np.diagonal(leaves["C"]) * v,
]
SCALARS: list[Callable[..., Any]] = [
    lambda x, y, v, s, leaves: np.tanh(np.sum(x)),
    lambda x, y, v, s, leaves: np.mean(x),
    lambda x, y, v, s, leaves: np.tanh(v @ v),
    lambda x, y, v, s, leaves: v[leaves["j"]],
    lambda x, y, v, s, leaves: x[leaves["j"], leaves["j"]] * s,
    lambda x, y, v, s, leaves: np.max(x),
    lambda x, y, v, s, leaves: np.sin(np.linalg.norm(v)),
    lambda x, y, v, s, leaves: 0.5 * s + 1,
    lambda x, y, v, s, leaves: s**2 - 3,
]


def _column(b: Any, x: Any, v: Any, s: Any, leaves: Leaves) -> None:
    column = b[:, 1]
    column += s


def _through_transposed(b: Any, x: Any, v: Any, s: Any, leaves: Leaves) -> None:
    b.T[2][1:] *= 0.5


WRITES: list[Callable[..., Any]] = [
    lambda b, x, v, s, leaves: b.__setitem__(slice(1, None), x[1:]),
    lambda b, x, v, s, leaves: b.__setitem__(0, v),
    lambda b, x, v, s, leaves: b.__setitem__((Ellipsis, [0, 2]), x[:, :2]),
    lambda b, x, v, s, leaves: b.__setitem__((slice(None), 3), s),
    lambda b, x, v, s, leaves: b.__setitem__(slice(None, None, 2), b[::2] * s),
    lambda b, x, v, s, leaves: b.__iadd__(x),
    lambda b, x, v, s, leaves: b.__setitem__(Ellipsis, b[::-1]),
    _column,
    _through_transposed,
]


class Program:
    """A random function of the leaves.

    Parameters
    ----------
    seed : int
        Which.
    writing : bool
        Whether arrays are written into; such programs are bound to their lengths.
    """

    def __init__(self, seed: int, writing: bool) -> None:
        self.seed, self.writing = seed, writing

    def __call__(self, leaves: Leaves) -> list[Any]:
        """The outputs."""
        choose = np.random.default_rng(self.seed)
        matrices, vectors, scalars = [leaves["x"]], [leaves["v"]], [leaves["s"]]
        buffers: list[Any] = []

        def one_of(values: list[Any]) -> Any:
            return values[max(choose.integers(len(values)), choose.integers(len(values)))]

        for _ in range(choose.integers(4, 25)):
            some = (one_of(matrices), one_of(matrices), one_of(vectors), one_of(scalars), leaves)
            kind = choose.integers(12)
            if self.writing and kind in (0, 1, 2):
                if not buffers or choose.integers(3) == 0:
                    buffers.append(np.zeros_like(some[0]) if choose.integers(2) else np.copy(some[0]))
                b = one_of(buffers)
                one_of(WRITES)(b, *some[1:])
                matrices.append(one_of([b * 1.5, b, b[::-1]]))
            elif kind in (3, 4):
                vectors.append(one_of(VECTORS)(*some))
            elif kind in (5, 6):
                scalars.append(one_of(SCALARS)(*some))
            else:
                matrices.append(one_of(MATRICES)(*some))
        fed = leaves["j"] + np.sum(leaves["rows"])  # so that no leaf is out of use
        return [matrices[-1], one_of(matrices), vectors[-1], scalars[-1] * fed, one_of(matrices)]


def with_derivatives(outputs: list[Any], wrt: list[Any]) -> list[Any]:
    """The outputs, with the gradients of a loss made of all of them, and second derivatives."""
    loss = sum(np.sum(np.tanh(part)) for part in outputs) + sum(np.sum(np.sin(leaf)) for leaf in wrt)
    first = gradients(loss, wrt)
    second = gradients(sum(np.sum(np.sin(part)) for part in first), wrt)
    return [*outputs, loss, *first, *second]


def values(seed: int, n: int) -> Leaves:
    """Values of the leaves."""
    rng = np.random.default_rng(seed)
    return {
        "x": rng.normal(size=(n, 4)),
        "v": rng.normal(size=4),
        "s": rng.normal(),
        "C": rng.normal(size=(4, 4)),
        "rows": rng.integers(4, size=n),
        "j": int(rng.integers(2)),
    }


def record_program(program: Program, at: Leaves) -> tuple[Leaves, list[Any]]:
    """The program over placeholders, and over variables with values."""
    leaves = {
        "x": cg.placeholder((None, 4), name="x"),
        "v": cg.variable(at["v"], "v"),
        "s": cg.placeholder((), name="s"),
        "C": cg.variable(at["C"], "C"),
        "rows": cg.placeholder((None,), np.int64, name="rows"),
        "j": cg.placeholder((), np.int64, name="j"),
    }
    return leaves, with_derivatives(program(leaves), [leaves[name] for name in "xvsC"])


def by_eager(program: Program, at: Leaves) -> list[Any]:
    """The values, computed as they come."""
    leaves = {name: cg.variable(value) if name in "xvsC" else cg.constant(value) for name, value in at.items()}
    return [np.array(node.value) for node in with_derivatives(program(leaves), [leaves[name] for name in "xvsC"])]


# --------------------------------------------------------------------------------------------- the checks

# With arrays that are written into, x keeps its two rows, and no index is fed another value.
LENGTHS = (3, 200, 3, 4)


def fed(program: Program, run: int) -> Leaves:
    """Values for one run of a program."""
    if not program.writing:
        return values(1000 * program.seed + run, LENGTHS[run])
    return {**values(1000 * program.seed + run, 2), "rows": np.array([0, 1]), "j": 1}


def assert_as_eager(outputs: list[Any], program: Program, at: Leaves) -> None:
    """The outputs, the loss and its gradients are the same bits; second derivatives may be summed in another order."""
    expected = by_eager(program, at)
    for i, (a, e) in enumerate(zip(outputs, expected, strict=True)):
        assert np.shape(a) == e.shape
        assert np.asarray(a).dtype == e.dtype
        if i < len(expected) - 4:
            np.testing.assert_array_equal(a, e)
        else:
            np.testing.assert_allclose(a, e, rtol=1e-7, atol=1e-7)


@sampled
@for_each("writing", [True, False])
@for_each("simplify", [True, False])
@for_each("seed", range(8))
def test_executor_runs_match_eager(writing: bool, simplify: bool, seed: int) -> None:
    program = Program(seed, writing)
    leaves, nodes = record_program(program, fed(program, 0))
    executor = cg.Executor(nodes, simplify=simplify)
    snapshots: list[tuple[list[Any], list[Array]]] = []
    for run in range(len(LENGTHS)):
        at = fed(program, run)
        feed = {leaves[name] if run % 2 else name: value for name, value in at.items()}
        if run % 2:  # a variable that is updated counts as one that is fed
            for name in "vC":
                del feed[leaves[name]]
                leaves[name][...] = at[name]
        outputs = executor.run(feed)
        assert_as_eager(outputs, program, at)
        snapshots.append((outputs, [np.array(part) for part in outputs]))
        for before, copies in snapshots:
            for a, e in zip(before, copies, strict=True):
                np.testing.assert_array_equal(a, e, err_msg="a later run wrote into a result")


INDEX_CASES = [(bool((seed + k) % 2), seed) for k in range(2) for seed in range(12)]


@for_each(("fuse", "seed"), INDEX_CASES[:4], rest=INDEX_CASES[4:])
def test_executor_other_write_indices_match_eager_or_raise(fuse: bool, seed: int) -> None:
    program = Program(seed, writing=True)
    leaves, nodes = record_program(program, fed(program, 0))
    executor = cg.Executor(nodes, fuse=fuse)
    messages: list[str] = []
    for run in range(6):
        at = values(500 + 10 * seed + run, 2)
        try:
            outputs = executor.run({leaves[name]: value for name, value in at.items()})
        except cg.GuardError as error:
            messages.append(str(error))
            continue
        assert_as_eager(outputs, program, at)
    assert all("write" in message or "np." in message for message in messages)


def test_executor_in_threads_with_own_values() -> None:
    program = Program(3, writing=False)
    leaves, nodes = record_program(program, fed(program, 0))
    executor = cg.Executor(nodes)
    points = [values(seed, 200) for seed in range(8)]
    results: list[Any] = [None] * len(points)

    def work(k: int) -> None:
        for _ in range(5):
            results[k] = executor.run({leaves[name]: value for name, value in points[k].items()})

    threads = [threading.Thread(target=work, args=(k,)) for k in range(len(points))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for actual, at in zip(results, points, strict=True):
        assert_as_eager(actual, program, at)
