"""`cg.profile`: counts, times and bytes of known programs; behavior outside, in threads, generators and after errors."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import inspect
import re
import threading
import time
import tracemalloc
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import autodiff as ad
import compgraph as cg
from autodiff.batching.batch_node import BatchNode
from autodiff.forward.tangent_node import TangentNode
from autodiff.reverse import gradient, gradients
from compgraph.compiled import Jitted
from compgraph.context.layers import is_fast_path

variable: Callable[..., Any] = cg.variable
SIDE = 40  # of matrices: 12,800 bytes
BYTES = SIDE * SIDE * 8


def matrix(name: str | None = None) -> Any:
    return variable(np.linspace(0.1, 1.0, SIDE * SIDE).reshape(SIDE, SIDE), name)


def rows(p: cg.Profile, by: str = "operation") -> dict[str, Any]:
    """The rows of a table by name."""
    return {row.name: row for row in p.table(by=by, limit=None).rows}


def calls(p: cg.Profile) -> dict[str, int]:
    return {name: row.calls for name, row in rows(p).items()}


# ---------------------------------------------------------------------------------------------- counts


def test_profile_counts_known_program() -> None:
    x = matrix("x")
    with cg.profile() as p:
        for _ in range(3):
            y = np.sum(np.tanh(x @ x) * 2.0 + x)
            gradient(y)
    assert calls(p) == {
        **dict.fromkeys(("matmul", "tanh", "mul", "add", "sum"), 3),
        **{f"{name} (backward)": 3 for name in ("matmul", "tanh", "mul", "add", "sum")},
    }
    entries = rows(p)
    assert {name: entries[name].bytes for name in ("matmul", "tanh", "mul", "add", "sum")} == {
        "matmul": 3 * BYTES, "tanh": 3 * BYTES, "mul": 3 * BYTES, "add": 3 * BYTES, "sum": 0,
    }  # fmt: skip
    assert entries["matmul (backward)"].bytes >= 3 * BYTES
    assert entries["tanh (backward)"].bytes == 3 * BYTES


def test_profile_lines_are_those_of_forward_operation() -> None:
    x = matrix()
    start = inspect.currentframe().f_lineno  # type: ignore[union-attr]
    with cg.profile() as p:
        y = np.tanh(x)  # start + 2
        z = np.sum(y * y)  # start + 3
        gradient(z)
    entries = rows(p, "line")
    assert {name: row.calls for name, row in entries.items()} == {
        f"test_profile.py:{start + 2}": 2,
        f"test_profile.py:{start + 3}": 4,
    }


def test_profile_scopes_include_their_content() -> None:
    x = matrix()
    with cg.profile() as p:
        with cg.scope("outer"):
            with cg.scope("inner"):
                y = np.tanh(x)
            z = np.exp(y)
        gradient(np.sum(z))
    entries = rows(p, "scope")
    assert {name: row.calls for name, row in entries.items()} == {"outer": 4, "outer/inner": 2, "(no scope)": 2}
    assert entries["outer"].bytes == 4 * BYTES - _passed_on(entries)


def _passed_on(entries: dict[str, Any]) -> int:
    """Bytes of cotangents that rules passed on or computed in place: at most one array."""
    rest = 4 * BYTES - entries["outer"].bytes
    assert rest in (0, BYTES)
    return int(rest)


@pytest.mark.parametrize("compute", [lambda x: x.T, lambda x: x[3:], lambda x: np.reshape(x, -1), lambda x: x.ravel()])
def test_profile_views_allocate_nothing(compute: Any) -> None:
    x = matrix()
    y = np.tanh(x)
    with cg.profile() as p:
        z = compute(y)
    assert [row.bytes for row in p.table().rows] == [0]
    assert p.peak == 0
    assert z.size


def test_profile_copies_of_plain_operands_count() -> None:
    x, plain = matrix(), np.ones((SIDE, SIDE))
    with cg.profile() as p:
        y = x * plain
    assert rows(p)["mul"].bytes == 2 * BYTES
    assert y.size


def test_profile_counts_operations_within_no_graph() -> None:
    x = matrix()
    with cg.profile() as p, cg.no_graph():
        np.tanh(x)
        np.sum(x)
    assert calls(p) == {"tanh": 1, "sum": 1}
    assert all("test_profile.py" in name for name in rows(p, "line"))


def test_profile_multi_output_operation_is_one_call() -> None:
    x = variable(np.eye(20) + 0.1)
    with cg.profile() as p:
        q, r = np.linalg.qr(x)
        gradient(np.sum(q) + np.sum(r))
    assert calls(p)["linalg_qr"] == 1
    assert calls(p)["linalg_qr (backward)"] == 1
    assert rows(p)["linalg_qr"].bytes == 2 * 20 * 20 * 8


def test_profile_writes_forward_and_backward() -> None:
    x = matrix()
    with cg.profile() as p:
        y = np.zeros_like(x)
        y[2:5] = np.tanh(x)[2:5]
        g = gradient(np.sum(y * y))[x]
    assert calls(p)["setitem"] == 1
    assert calls(p)["setitem (backward)"] == 1
    assert calls(p)["tanh (backward)"] == 1
    expected = np.zeros((SIDE, SIDE))
    expected[2:5] = (2 * np.tanh(x.value) * (1 - np.tanh(x.value) ** 2))[2:5]
    np.testing.assert_allclose(g, expected)


def test_profile_recorded_derivatives_have_steps() -> None:
    """With ``create_graph`` a rule records operations, within its entry and at the line of the differentiated operation."""
    x = matrix()
    with cg.profile() as p:
        y = np.sum(np.tanh(x))
        line = inspect.currentframe().f_lineno - 1  # type: ignore[union-attr]
        (g,) = gradients(y, [x])
    entries = rows(p)
    assert entries["tanh (backward)"].calls == 1
    assert entries["mul"].calls >= 1
    assert entries["tanh (backward)"].own < entries["tanh (backward)"].time
    assert f"test_profile.py:{line}" in rows(p, "line")
    assert g.shape == x.shape


def test_profile_forward_mode_and_vmap() -> None:
    a = np.linspace(0.1, 1.0, 5 * 300).reshape(5, 300)
    with cg.profile() as p:
        ad.jvp(lambda x: np.sum(np.tanh(x)), (a,), (a,))
    assert calls(p) == {"tanh (tangent)": 1, "sum (tangent)": 1}
    with cg.profile() as p:
        ad.vmap(lambda x: np.sum(np.tanh(x)))(a)
    assert calls(p) == {"tanh (vmap)": 1, "sum (vmap)": 1}
    assert rows(p)["tanh (vmap)"].bytes == a.nbytes


def test_profile_jit_and_executor_are_one_entry() -> None:
    @cg.jit
    def f(x: Any) -> Any:
        return np.tanh(x) * 2.0 + x

    a = np.ones((SIDE, SIDE))
    f.compile(a)
    x = variable(a, "x")
    run = cg.Executor(np.tanh(x) * 2.0)
    run.run({x: a})
    with cg.profile() as p:
        f(a)
        run.run({x: a})
    entries = rows(p)
    assert len(entries) == 2
    assert entries["Executor.run"].calls == 1
    (name,) = entries.keys() - {"Executor.run"}
    assert name.startswith("<jit of ")
    assert all("test_profile.py" in line for line in rows(p, "line"))


def test_profile_does_not_change_results() -> None:
    def f(x: Any) -> Any:
        return np.sum(np.tanh(x @ x) * 2.0 + np.exp(-x)[3:] @ np.ones((SIDE, 2)) @ np.ones((2, SIDE)) @ x.T[:, :SIDE].sum())

    x = matrix()
    expected = gradient(np.sum(np.tanh(x @ x) * 2.0 + np.exp(-x)))[x]
    with cg.profile():
        derivative = gradient(np.sum(np.tanh(x @ x) * 2.0 + np.exp(-x)))[x]
        by_operator = ad.grad(lambda v: np.sum(np.tanh(v @ v) * 2.0 + np.exp(-v)))(x.value)
    assert np.array_equal(derivative, expected)
    assert np.array_equal(by_operator, expected)


# ------------------------------------------------------------------------------------------------------ time


def test_profile_parts_sum_to_at_most_the_whole() -> None:
    x = matrix()
    start = time.perf_counter()
    with cg.profile() as p:
        for _ in range(20):
            gradient(np.sum(np.tanh(x @ x)))
        time.sleep(0.02)
    took = time.perf_counter() - start
    table = p.table(limit=None)
    assert 0.02 < p.seconds <= took
    assert sum(row.own for row in table.rows) == pytest.approx(p.operations_seconds)
    assert p.operations_seconds + table.rest == pytest.approx(p.seconds)
    assert table.rest >= 0.02
    assert sum(row.share for row in table.rows) < 1


def test_profile_time_is_that_of_operation() -> None:
    @cg.primitive
    def slow(x: Any) -> Any:
        time.sleep(0.02)
        return x * 1.0

    @ad.rule(slow)
    def slow_grad(cotangent: Any, out: Any, x: Any) -> Any:
        time.sleep(0.04)
        return cotangent

    x = matrix()
    with cg.profile() as p:
        gradient(np.sum(slow(x)))
    entries = rows(p)
    assert 0.02 <= entries["slow"].own < p.seconds
    assert 0.04 <= entries["slow (backward)"].own < p.seconds
    assert p.table().rows[0].name == "slow (backward)"


# ---------------------------------------------------------------------------------------------------- memory


def test_profile_peak_matches_tracemalloc() -> None:
    """The peak of a chain whose cotangents are freed on the way, to within a few temporary arrays of operations."""
    n = 100_000
    x = variable(np.linspace(0.1, 1.0, n))

    def run() -> Any:
        y = x
        for _ in range(10):
            y = np.tanh(y) * 1.5
        return gradient(np.sum(y))

    run()
    gc.collect()
    tracemalloc.start()
    run()
    gc.collect()
    before, _ = tracemalloc.get_traced_memory()
    tracemalloc.reset_peak()
    run()
    _, highest = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    with cg.profile() as p:
        run()
    assert abs(p.peak - (highest - before)) <= 4 * 8 * n
    assert p.peak >= 20 * 8 * n


def test_profile_names_holders_of_peak() -> None:
    x = matrix()
    with cg.profile() as p:
        big = np.concatenate([x] * 10)
        line = inspect.currentframe().f_lineno - 1  # type: ignore[union-attr]
        small = np.tanh(x)
        del big
        np.exp(small)
    assert p.peak == 11 * BYTES
    assert [(h.operation, h.line, h.bytes) for h in p.held] == [
        ("concatenate", f"test_profile.py:{line}", 10 * BYTES),
        ("tanh", f"test_profile.py:{line + 2}", BYTES),
    ]
    assert "np.concatenate" in p.held[0].place


def test_profile_sweep_frees_memory() -> None:
    x = matrix()
    with cg.profile() as p:
        y = np.tanh(x)
        z = y * 2.0
        reference = weakref.ref(z.raw_value)
        del z
        assert reference() is None
        del y
        for _ in range(50):
            gradient(np.sum(np.tanh(x) * 2.0))
    assert BYTES <= p.peak <= 6 * BYTES
    assert all(total >= 0 for _, total in p._ledger.curve)
    assert p._ledger.curve[-1][1] <= p.peak


def test_profile_long_curve_is_shortened_and_keeps_peak() -> None:
    x = variable(np.ones(256))
    with cg.profile() as p:
        arrays = [x + 1.0 for _ in range(30)]
        arrays.clear()
        for _ in range(9000):
            x + 1.0
    assert p.peak == 30 * 2048
    assert len(p._ledger.curve) < 6000
    assert max(total for _, total in p._ledger.curve) == p.peak
    times = [at for at, _ in p._ledger.curve]
    assert times == sorted(times)


# ------------------------------------------------------------------------------- blocks, threads, generators, errors


EXCHANGED = [(TangentNode, "process"), (BatchNode, "process"), (cg.Executor, "run"), (Jitted, "__call__")]


def test_profile_restores_patched_functions() -> None:
    before = [vars(owner)[name] for owner, name in EXCHANGED]
    with cg.profile():
        assert all(vars(owner)[name] is not own for (owner, name), own in zip(EXCHANGED, before, strict=True))
        with cg.profile():
            pass
        assert not is_fast_path()
    assert [vars(owner)[name] for owner, name in EXCHANGED] == before
    assert is_fast_path()


def test_profile_restores_patched_functions_after_interrupted_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(is_profiled: bool) -> None:
        if is_profiled:
            raise KeyboardInterrupt

    before = [vars(owner)[name] for owner, name in EXCHANGED]
    with monkeypatch.context() as patch:
        patch.setattr("compgraph.profiling.recorder._set_patches", interrupt)
        with pytest.raises(KeyboardInterrupt):
            cg.profile().__enter__()
    gc.collect()
    with cg.profile() as p:
        ad.jvp(np.sin, (np.ones(2),), (np.ones(2),))
    assert calls(p) == {"sin (tangent)": 1}
    assert [vars(owner)[name] for owner, name in EXCHANGED] == before


def test_profile_ends_on_error() -> None:
    x = matrix()

    @cg.primitive
    def bad(x: Any) -> Any:
        return x * 1.0

    @ad.rule(bad)
    def bad_grad(cotangent: Any, out: Any, x: Any) -> Any:
        raise ZeroDivisionError("a rule")

    with cg.profile() as p:
        with pytest.raises(ValueError, match="matmul"):
            x @ np.ones(3)
        with pytest.raises(ZeroDivisionError):
            gradient(np.sum(bad(np.tanh(x))))
        np.exp(x)
    assert calls(p)["exp"] == 1
    assert "exp" in {entry.operation for entry in p._root.steps.values()}  # not a step of the failed sweep
    with pytest.raises(ZeroDivisionError), cg.profile() as p:
        gradient(np.sum(bad(np.tanh(x))))
    assert calls(p)["tanh"] == 1
    assert is_fast_path()


def test_profile_nested_blocks() -> None:
    x = matrix()
    with cg.profile() as outer:
        a = np.tanh(x)
        with cg.profile() as inner:
            b = np.exp(a)
            del a
        c = b * 2.0
        del b, c
    assert calls(inner) == {"exp": 1}
    assert calls(outer) == {"tanh": 1, "exp": 1, "mul": 1}
    assert inner.peak == BYTES
    assert outer.peak == 3 * BYTES  # tanh(x) is an operand of exp
    assert all(total >= 0 for p in (inner, outer) for _, total in p._ledger.curve)


def test_profile_accumulates_within_one_thread() -> None:
    x = matrix()
    p = cg.profile()
    for _ in range(2):
        with p:
            np.tanh(x)
    assert calls(p) == {"tanh": 2}
    assert p.peak == BYTES
    with p, p:
        np.tanh(x)
    assert calls(p) == {"tanh": 3}
    errors = []

    def enter() -> None:
        with pytest.raises(RuntimeError, match="in another thread") as error, p:
            pass
        errors.append(error)

    with p:
        thread = threading.Thread(target=enter)
        thread.start()
        thread.join()
        np.tanh(x)
    assert len(errors) == 1
    assert calls(p) == {"tanh": 4}
    with p, pytest.raises(ValueError, match="still running"):
        p.table()
    assert is_fast_path()


def test_profile_ignores_other_threads() -> None:
    x = matrix()
    with cg.profile() as p:
        context = contextvars.copy_context()
        for target in (lambda: np.tanh(x), lambda: context.run(lambda: gradient(np.sum(np.exp(x))))):
            thread = threading.Thread(target=target)
            thread.start()
            thread.join()
        np.sin(x)
    assert calls(p) == {"sin": 1}


def test_profile_is_per_task() -> None:
    x = matrix()

    async def one(name: str) -> cg.Profile:
        with cg.profile() as p:
            for _ in range(3):
                getattr(np, name)(x)
                await asyncio.sleep(0)
        return p

    async def both() -> list[cg.Profile]:
        return await asyncio.gather(one("tanh"), one("exp"))

    assert [calls(p) for p in asyncio.run(both())] == [{"tanh": 3}, {"exp": 3}]


def test_profile_of_generator_counts_while_it_runs() -> None:
    x = matrix()
    profiles = []

    def steps() -> Iterator[None]:
        with cg.profile() as p:
            profiles.append(p)
            for _ in range(2):
                np.tanh(x)
                yield

    for _ in steps():
        np.exp(x)
        gradient(np.sum(np.exp(x)))
    assert calls(profiles[0]) == {"tanh": 2}


def test_profile_within_debug() -> None:
    x = variable([1.0, 0.0])
    with cg.profile() as p, cg.debug():
        gradient(np.sum(np.tanh(x)))
        with np.errstate(divide="ignore"), pytest.raises(cg.NonFiniteError, match="log"):
            np.log(x)
    assert calls(p)["tanh"] == 1
    assert calls(p)["tanh (backward)"] == 1


# ----------------------------------------------------------------------------------------------------- tables


def test_profile_tables() -> None:
    x = matrix()
    with cg.profile() as p:
        np.sum(np.tanh(x @ x))
    text = str(p)
    assert text.splitlines()[0].split() == ["operation", "calls", "time", "own", "share", "bytes"]
    assert re.search(r"^tanh +1 .*12\.8 kB$", text, re.M)
    assert re.search(r"^between operations +", text, re.M)
    assert "... 2 more" in str(p.table(limit=1))
    assert [row.name for row in p.table(sort="name").rows] == ["matmul", "sum", "tanh"]
    assert [row.bytes for row in p.table(sort="bytes").rows] == [BYTES, BYTES, 0]
    assert p.table()._repr_html_().count("<tr>") == 6
    for wrong in ({"sort": "speed"}, {"by": "file"}, {"limit": 0}):
        with pytest.raises(ValueError, match="must be"):
            p.table(**wrong)  # type: ignore[arg-type]


def test_profile_distinguishes_files_of_equal_name(tmp_path: Any) -> None:
    x = matrix()
    for folder in ("a", "b"):
        path = tmp_path / folder / "same.py"
        path.parent.mkdir()
        path.write_text("import numpy as np\ndef f(x): return np.tanh(x)\n")
    namespaces: list[dict[str, Any]] = []
    for folder in ("a", "b"):
        path = tmp_path / folder / "same.py"
        namespaces.append({})
        exec(compile(path.read_text(), str(path), "exec"), namespaces[-1])
    with cg.profile() as p:
        for names in namespaces:
            names["f"](x)
    assert [row.name for row in p.table(by="line", sort="name").rows] == [f"{tmp_path / f / 'same.py'}:2" for f in ("a", "b")]


def test_profile_of_empty_block() -> None:
    with cg.profile() as p:
        pass
    assert p.table().rows == []
    assert p.peak == 0
    assert p.held == []
    assert "nothing was allocated" in p.memory().html()
    assert "between operations" in p.flamegraph().html()


def test_profile_lines_unavailable() -> None:
    x = matrix()
    cg.record_lines(False)
    try:
        with cg.profile() as p:
            gradient(np.sum(np.tanh(x)))
    finally:
        cg.record_lines()
    assert list(rows(p, "line")) == ["(line not known)"]
    assert "tanh" in p.flamegraph().html()


def test_profile_counts_each_read_in_loop() -> None:
    """The profiler reports each read, although their cotangents are joined at the end."""
    x = matrix()
    with cg.profile() as p:
        total = 0.0
        for i in range(12):
            total = total + x[i, 0] * x[i, 1]
        g = gradient(total)[x]
    assert calls(p)["getitem"] == calls(p)["getitem (backward)"] == 24
    assert g[3, 0] == x.value[3, 1]
