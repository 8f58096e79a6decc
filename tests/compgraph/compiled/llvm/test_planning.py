"""Planning of loop nests: rematerialization, the vectorized axis, and strided loads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import compgraph as cg
from autodiff.reverse import gradients
from tests.support.for_each import for_each, sampled
from tests.support.machine_code import assert_same, compiled, program_of

pytest.importorskip("llvmlite")
from compgraph.compiled.llvm.backend import LLVMBackend
from compgraph.compiled.llvm.buffer_ir import BufferView, Map, dense_view
from compgraph.compiled.llvm.planning import accumulate_early
from compgraph.executor import passes

Array = np.ndarray[Any, Any]


@pytest.fixture(autouse=True)
def _backend(monkeypatch: pytest.MonkeyPatch) -> None:
    cg.reset()
    monkeypatch.setitem(passes.BACKENDS, "llvm", LLVMBackend())


def both(nodes: list[Any], at: Array, rtol: float = 1e-12) -> Any:
    """The program of some nodes, whose results were compared with NumPy's."""
    machine = compiled(nodes)
    for actual, expected in zip(machine.run({"x": at}), cg.Executor(nodes).run({"x": at}), strict=True):
        assert np.shape(actual) == np.shape(expected)
        assert np.asarray(actual).dtype == np.asarray(expected).dtype
        np.testing.assert_allclose(actual, expected, rtol=rtol, atol=rtol)
    return program_of(machine)


def variable(shape: tuple[int, ...], dtype: Any = np.float64) -> tuple[Any, Array]:
    rng = np.random.default_rng(7)
    x = cg.placeholder(shape, dtype, name="x", example=rng.standard_normal(shape))
    return x, rng.standard_normal(shape).astype(dtype)


# --------------------------------------------------------------------------------------------- computed again


def test_pairwise_differences_need_no_memory() -> None:
    x, at = variable((60, 3))
    d = x[:, None] - x[None]
    out = np.sum(np.sqrt(np.sum(d * d, axis=-1) + 0.01))
    program = both([out, *gradients(out, [x])], at)
    assert program._plan.size < 60 * 60 * 3 * 8


def test_rematerialized_value_read_as_view_stays_right() -> None:
    x, at = variable((31, 3))
    d = x[:, None] - x[None]
    e = -(d * 2.0)
    nodes = [np.sum(d * d, -1), np.sum(d, 0), np.sum(np.transpose(d, (1, 0, 2)) * e, 1), np.sum(e, 0), np.sum(e[::-1] * d, -1)]
    both(nodes, at)


def test_rematerialization_keeps_value_that_is_a_result() -> None:
    x, at = variable((20, 3))
    d = x[:, None] - x[None]
    both([d, np.sum(d * d, -1), np.sum(d, 0)], at)


def test_rematerialization_skips_values_written_later() -> None:
    x, at = variable((24, 3))
    y = x * 1.5
    d = y[:, None] - y[None]
    first = np.sum(d * d, axis=-1)
    y[3:] *= 2.0
    second = np.sum(d * np.sqrt(first + 1.0)[..., None], axis=0)
    out = np.sum(second * y)
    both([first, second, out, *gradients(out, [x])], at)


def test_rematerialization_keeps_operands_of_products_and_calls() -> None:
    x, at = variable((16, 3))
    d = x[:, None] - x[None]
    both([np.sum(d * d, -1), d @ np.ones((3, 2)), np.sort(d, axis=0, kind="heapsort"), np.sum(d, 1)], at)


def test_rematerialization_of_dependent_values() -> None:
    x, at = variable((20, 3))
    a = x[:, 0]
    d = a[:, None] - a
    w = np.sum(x, 1)
    e = d * w  # in a nest of its own, which nothing of it needs
    c = np.sum(x * w[:, None], 1)
    program = both([np.sum(e * c, 0)], at)
    assert program._plan.size < 20 * 20 * 8


def test_rematerialization_of_long_chain_is_bounded() -> None:
    x, at = variable((4, 3))
    y = x * 1.0
    for is_sum in np.random.default_rng(0).random(1200) < 0.5:  # in no order that is a loop
        y = y + 0.001 if is_sum else y * 0.999
    both([np.sum(y - np.sum(y, 0), 1)], at, rtol=1e-9)


# --------------------------------------------------------------------------------------------- vectors


STEPS = [1, -1, 2, -2, 3, -3, 4, -4, 5, -5]


@sampled
@for_each("step", STEPS)
@for_each("dtype", [np.float64, np.float32, np.int32, np.bool_])
def test_strided_loads_and_stores(step: int, dtype: Any) -> None:
    kind = np.dtype(dtype)
    rng = np.random.default_rng(1)
    x = cg.placeholder((260,), kind, name="x", example=np.ones(260, kind))
    at = rng.integers(0, 2, 260).astype(kind) if kind.kind in "bi" else rng.standard_normal(260).astype(kind)
    nodes = [x[::step] == x[::-step][: len(x[::step])], x[::step] | x[5] if kind.kind in "bi" else x[::step] + 1]
    if kind.kind == "f":
        y, z = np.zeros_like(x), np.zeros_like(x)
        y[::step] = x[::step]
        z[: len(x[::step])] = x[::step]
        nodes += [y, z]
    program = both(nodes, at)
    assert program.report == []


SHAPES = [(50, 3), (3, 50), (50, 2, 2), (9, 9, 3), (2, 2, 40), (17, 1), (1, 17), (8, 8), (100, 7)]


@sampled
@for_each("shape", SHAPES)
@for_each("dtype", [np.float64, np.float32])
def test_reductions_of_short_axes_match_numpy(shape: tuple[int, ...], dtype: Any) -> None:
    x, at = variable(shape, dtype)
    nodes = [
        np.sum(np.exp(x * 0.5), -1),
        np.sum(x * x, 0),
        np.max(x, -1),
        np.mean(x.T, 0),
        x.T * 2,
        np.sum(x[::-1, ..., ::-1] * x),
    ]
    nodes += gradients(np.sum(nodes[0] ** 2) + np.sum(nodes[1]), [x])
    both(nodes, at, 1e-12 if dtype == np.float64 else 1e-4)


@pytest.mark.parametrize("order", ["C", "F", "strided", "reversed", "broadcast"])
def test_planning_reads_inputs_of_any_layout(order: str) -> None:
    whole = np.random.default_rng(0).standard_normal((60, 90))
    at = {
        "C": whole[:20, :30].copy(),
        "F": np.asfortranarray(whole[:20, :30]),
        "strided": whole[::3, ::3],
        "reversed": whole[:20, :30][::-1, ::-1],
        "broadcast": np.broadcast_to(whole[0, :30], (20, 30)),
    }[order]
    x = cg.placeholder((20, 30), name="x", example=np.ones((20, 30)))
    both([np.exp(x) * 2, np.sum(x, 0), np.sum(x * x, 1), x.T + 1, np.sum(x[:, None] - x[None], 0)], at)


# --------------------------------------------------------------------------------------------- early accumulation


def test_updates_of_one_cotangent_are_not_stored() -> None:
    x, at = variable((200,))
    y = x * 1.0
    for _ in range(60):
        y = np.concatenate([x[:1], x[1:] * np.tanh(y[:-1])])
    program = both(gradients(np.sum(y), [x]), at)
    assert program._plan.size < 2 * 60 * 200 * 8  # each tanh; 3 if the updates are stored


@for_each("seed", range(12))
def test_accumulation_keeps_order_of_writes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, at = variable((80,))
    y, parts = x * 1.5, []
    for _ in range(30):
        start, stop = sorted(rng.choice(81, 2, replace=False).tolist())
        index = [slice(start, stop), slice(None), rng.integers(0, 80, 40), slice(None, None, -1), (None, slice(start, stop))]
        part = y[index[rng.integers(5)]]
        parts.append(np.sin(part) * rng.normal())
        if rng.random() < 0.2:
            y[start:stop] *= 1 + 0.1 * np.sum(parts[-1])
        if rng.random() < 0.3:
            y = y * np.cos(np.sum(parts[rng.integers(len(parts))]))
    out = sum(np.sum(part * part) for part in parts) + np.sum(y)
    both([out, *gradients(out, [x])], at, rtol=1e-9)


def _sums_after(steps: list[Any], inputs: list[BufferView], sums: list[BufferView]) -> list[Array]:
    """The sums after some copies and additions; they are undefined (nan) before their first write."""
    memory = {view.buffer: np.full(50, float(number)) for number, view in enumerate(inputs, 1)}
    memory |= {view.buffer: np.full(50, np.nan) for view in sums}
    for step in steps:
        values = [memory[operand.buffer] if isinstance(operand, BufferView) else operand for operand in step.operands]
        memory[step.out.buffer] = sum(values) + np.zeros(50)
    return [memory[view.buffer] for view in sums]


@for_each("seed", range(40))
def test_accumulate_early_of_random_sums_keeps_results(seed: int) -> None:
    rng, double = np.random.default_rng(seed), np.dtype(np.float64)
    inputs, sums = ([dense_view(double, (50,)) for _ in range(count)] for count in (2, 4))
    steps, operands = list[Any](), list(inputs)
    for number in rng.integers(len(sums), size=60).tolist():
        out = sums[number]
        if out not in operands:
            steps.append(Map("copy", (0.0,), out, double, is_write=True))
            operands.append(out)
        else:
            others = [view for view in operands if view is not out]
            steps.append(Map("add", (out, others[rng.integers(len(others))]), out, double, is_write=True))
    reordered = accumulate_early(steps)
    assert sorted(map(id, reordered)) == sorted(map(id, steps))
    for actual, expected in zip(_sums_after(reordered, inputs, sums), _sums_after(steps, inputs, sums), strict=True):
        np.testing.assert_array_equal(actual, expected)


@for_each(
    "index", [slice(1, None), slice(None, -2), slice(3, 17), slice(None), slice(2, 5), slice(None, None, 2), np.s_[1:-1, 2]]
)
def test_scatter_of_slices_has_signs_of_zeros(index: Any) -> None:
    x, at = variable((20, 4) if isinstance(index, tuple) else (20,))
    at[:5] = -0.0
    out = np.sum(x[index] ** 2)
    (gradient,) = gradients(out, [x])
    machine = compiled([gradient])
    assert_same(machine.run({"x": at}), cg.Executor([gradient]).run({"x": at}))


def test_carried_sum_is_stored_by_its_nest() -> None:
    x, at = variable((20, 20))
    h, y = np.ones(20), x * 0.05
    for _ in range(100):
        h = np.tanh(y @ h + 0.5)
    program = both(gradients(np.sum(h), [x]), at)
    loops = program.source.split("repeat")[1:]
    assert any("for (20, 20): multiply; add; copy" in loop for loop in loops)
    assert not any("    for (400,): copy" in loop for loop in loops)
