"""Nodes: kinds, names, operands, updates in place, and errors."""

from __future__ import annotations

import asyncio
import copy
import itertools
import math
import operator
import threading
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import compgraph as cg
from autodiff.forward import jvp
from autodiff.operators.grad import grad
from autodiff.reverse import gradient
from compgraph.graph import topological_order
from tests.support.failures import Failures

pytestmark = pytest.mark.portable

FLOATING = ("float16", "float32", "float64", "longdouble", "complex64", "complex128")


@pytest.fixture(autouse=True)
def _fresh_names() -> None:
    cg.reset()


# ----------------------------------------------------------------------------------------------- kinds


def test_nodes_of_every_kind_are_arrays() -> None:
    x, c = cg.variable([1.0, 2.0]), cg.constant([3.0, 4.0])
    kinds = {"VariableNode": x, "ConstantNode": c, "OperationalNode": x + c}
    for name, node in kinds.items():
        kind = getattr(cg, name)
        assert type(node) is kind
        assert isinstance(node, cg.Node)
        assert isinstance(node, np.ndarray)
        assert type(node.value) is np.ndarray
    assert isinstance(np.sum(x), cg.OperationalNode)
    assert isinstance(x > 1, cg.OperationalNode)


def test_leaf_has_no_operation() -> None:
    for leaf in (cg.variable(1.0), cg.constant(1.0)):
        assert leaf.opname is None
        assert leaf.operands == ()
        assert leaf.operand_a is None
        assert leaf.operand_b is None


@pytest.mark.parametrize("folder", ["dask", "numba"])
def test_scalar_is_float_for_user_code_in_folder_named_like_a_library(folder: str, tmp_path: Path) -> None:
    names: dict[str, Any] = {"x": np.sum(cg.variable([1.0, 2.0]))}
    exec(compile("is_float, cls = isinstance(x, float), x.__class__", str(tmp_path / folder / "script.py"), "exec"), names)
    assert names["is_float"]
    assert names["cls"] is np.float64


def test_create_using_makes_nodes_of_class() -> None:
    x = cg.VariableNode.create_using([1, 2], "x")
    assert type(x) is cg.VariableNode
    assert x.dtype == np.float64
    assert x.name == "x"
    c = cg.ConstantNode.create_using([3.0, 4.0], "c")
    assert type(c) is cg.ConstantNode
    assert c.name == "c"
    node = cg.OperationalNode.create_using([4.0, 6.0], "add", x, c, name="total")
    assert isinstance(node, cg.OperationalNode)
    assert (node.opname, node.name) == ("add", "total")
    assert node.operands == (x, c)
    assert np.array_equal(node.value, [4, 6])
    g = gradient(np.sum(node * node))
    assert np.array_equal(g[x], [8, 12])
    unary = cg.OperationalNode.create_using(np.exp(x.value), "exp", x)
    assert unary.name == "exp_0"
    assert unary.operands == (x,)
    assert unary.operand_b is None
    assert np.array_equal(gradient(unary)[x], np.exp([1.0, 2.0]))
    with pytest.raises(ValueError, match=r"no operation is called 'nonsense'.*cg\.primitive"):
        cg.OperationalNode.create_using(1.0, "nonsense", x)


def test_create_using_integers_keeps_derivative() -> None:
    """The value of an operation on variables is floating, also where it was written as an integer."""
    x = cg.variable(2.0, "x")
    y = cg.variable(3.0, "y")
    node = cg.OperationalNode.create_using(6, "mul", x, y)
    g = gradient(node * 1.0)
    assert (g[x], g[y]) == (3, 2)


# ----------------------------------------------------------------------------------------------- values


@pytest.mark.parametrize("dtype", FLOATING)
def test_variable_keeps_floating_dtype(dtype: str) -> None:
    for value in (
        np.ones((2, 3), dtype),
        np.dtype(dtype).type(1.5),
        np.asfortranarray(np.ones((2, 3), dtype)),
        np.zeros((0,), dtype),
    ):
        x = cg.variable(value)
        assert x.dtype == dtype
        assert x.shape == np.shape(value)
        assert np.array_equal(x.value, value)
        assert np.isfortran(x) == np.isfortran(value)


def test_variable_converts_other_numbers_to_float() -> None:
    for value in (3, True, [1, 2], np.arange(3), np.array([True, False]), np.uint8(3), [[1, 2.5]], (1, 2), range(3)):
        assert cg.variable(value).dtype == np.float64  # type: ignore[arg-type]
    assert cg.variable(1j).dtype == np.complex128
    assert cg.variable([1, 2], dtype="float32").dtype == np.float32
    assert cg.variable(1.5, dtype=np.complex64).dtype == np.complex64
    assert cg.variable(2).shape == ()


@pytest.mark.parametrize(
    "value",
    [None, "1.0", ["a"], object(), Decimal(1), Fraction(1, 2), {"a": 1},
     np.datetime64("2020-01-01"), np.array([1.0], object), {1.0}],
    ids=lambda v: type(v).__name__,
)  # fmt: skip
def test_variable_and_constant_of_non_numbers_raise(value: Any) -> None:
    for make in (cg.variable, cg.constant, cg.VariableNode.create_using, cg.ConstantNode.create_using):
        with pytest.raises(TypeError, match="number"):
            make(value)


def test_variable_of_ragged_values_raises() -> None:
    with pytest.raises(ValueError, match="inhomogeneous"):
        cg.variable([[1.0], [1.0, 2.0]])  # type: ignore[list-item]
    for dtype in (int, bool, "S3", object):
        with pytest.raises(TypeError, match="floating or complex"):
            cg.variable(1.0, dtype=dtype)
    with pytest.raises(TypeError, match=r"MaskedArray.*np\.asarray"):
        cg.variable(np.ma.array([1.0]))
    with pytest.raises(TypeError, match=r"MaskedArray.*np\.asarray"):
        cg.constant(np.ma.array([1.0]))


def test_variable_copy_option() -> None:
    a = np.array([1.0, 2.0])
    x = cg.variable(a)
    x += 1
    assert np.array_equal(a, [1, 2])
    y = cg.variable(a, copy=False)
    y -= 1
    assert np.array_equal(a, [0, 1])
    assert np.shares_memory(y.value, a)
    assert np.array_equal(y.value, a)
    strided = np.arange(12.0).reshape(3, 4)[::2, ::-1]
    assert cg.variable(strided, copy=False).strides == strided.strides
    with pytest.raises(ValueError, match=r"copy=False.*int64.*float64"):
        cg.variable(np.arange(3), copy=False)
    with pytest.raises(ValueError, match=r"copy=False.*float64.*float32"):
        cg.variable(a, dtype="float32", copy=False)
    assert cg.variable([1, 2], copy=False).dtype == np.float64
    assert cg.variable(3, copy=False).dtype == np.float64


def test_variable_without_copy_of_graph_memory_raises() -> None:
    """The memory of another node is never shared: a write into one would change the other without a record."""
    x = cg.variable([1.0, 2.0], "x")
    y = x * x
    for node in (x, y):
        try:
            shared = cg.variable(node, copy=False)
        except (TypeError, ValueError):
            continue
        shared += 100
    assert np.array_equal(gradient(y)[x], [2, 4])
    assert np.array_equal(y.value, [1, 4])


def test_variable_of_read_only_memory_update_raises() -> None:
    a = np.array([1.0, 2.0])
    a.flags.writeable = False
    w = cg.variable(a, copy=False)
    sequence_number = w.sequence_number
    with pytest.raises(ValueError, match="read-only"):
        w += 1
    assert w.sequence_number == sequence_number
    assert np.array_equal(a, [1, 2])


def test_constant_copies_and_keeps_dtype() -> None:
    a = np.arange(3)
    c = cg.constant(a)
    assert c.dtype == np.int64
    a[0] = 9
    assert np.array_equal(c.value, [0, 1, 2])
    assert cg.constant(True).dtype == bool
    assert cg.constant(2.5).shape == ()
    with pytest.raises(ValueError, match="read-only"):
        c.value[0] = 1


def test_constant_keeps_memory_layout() -> None:
    """Sums follow the order of memory, so the last digits depend on the layout."""
    rng = np.random.default_rng(0)
    a = np.asfortranarray(rng.normal(size=(50, 70)).astype("float32"))
    assert np.isfortran(cg.constant(a))
    assert np.sum(cg.constant(a)).value == np.sum(a)


def test_value_shares_memory() -> None:
    x = cg.variable([1.0, 2.0])
    assert np.shares_memory(x.value, x)
    assert x.value.flags.owndata or x.value.base is not None
    y = x * 2
    assert np.shares_memory(y.value, y)
    assert type(np.sum(x).value) is np.ndarray
    assert np.sum(x).value.shape == ()


# ----------------------------------------------------------------------------------------------- names


def test_names_are_automatic() -> None:
    assert [cg.variable(1.0).name for _ in range(3)] == ["var_0", "var_1", "var_2"]
    assert [cg.constant(1.0).name for _ in range(2)] == ["const_0", "const_1"]
    x = cg.variable(1.0, "x")
    assert x.name == "x"
    assert cg.variable(1.0).name == "var_3", "a given name takes no number"
    first, second = x + 1, x + 2
    assert (second.name, first.name) == ("add_0", "add_1"), "operations are named when first asked"
    assert first.name == "add_1"
    assert [(x * 2).name, (x / 2).name, (x - 1).name, (x**2).name, (-x).name, abs(x).name] == [
        "mul_0", "div_0", "sub_0", "pow_0", "neg_0", "abs_0",
    ]  # fmt: skip
    cg.reset()
    assert cg.variable(1.0).name == "var_0"
    assert (x + 1).name == "add_0"
    assert first.name == "add_1", "a name once given stays"


def test_opnames_of_operations() -> None:
    x, m = cg.variable([1.0, 2.0]), cg.variable([[1.0, 2.0], [3.0, 4.0]])
    expected = {
        "add": x + x, "sub": x - x, "mul": x * x, "div": x / x, "pow": x**2, "neg": -x, "dot": np.dot(m, x), "matmul": m @ x,
        "sum": x.sum(), "mean": np.mean(x), "max": x.max(), "exp": np.exp(x), "log": np.log(x), "abs": abs(x), "getitem": x[0],
        "transpose": m.T, "greater": x > 1, "floor_divide": x // 2, "remainder": x % 2, "reshape": m.reshape(4),
        "where": np.where(x > 1, x, 0),
        "concatenate": np.concatenate([x, x]), "einsum": np.einsum("i,i", x, x), "astype": x.astype("float32"), "copy": x.copy(),
        "argmax": x.argmax(), "real": x.real, "divmod": divmod(x, 2)[0], "conj": np.conj(x), "relu": cg.relu(x),
    }  # fmt: skip
    assert {name: node.opname for name, node in expected.items()} == {name: name for name in expected}


def test_names_given_by_user() -> None:
    x = cg.variable([1.0, 2.0])
    assert cg.sin(x, name="wave").name == "wave"
    assert cg.add(x, 1, name="more").name == "more"
    assert cg.relu(x, name="kept").name == "kept"
    x.name = "renamed"
    assert x.name == "renamed"
    total = x.sum()
    total.name = "total"
    assert total.name == "total"
    assert cg.atleast_1d(x, name="other").name == "other"
    assert x.name == "renamed", "an argument that NumPy hands back keeps its own name"
    first, second = cg.split(x, 2, name="half")
    assert (first.name, second.name) == ("half_0", "half_1")


def test_names_are_unique_over_threads() -> None:
    names: list[str] = []
    threads = [threading.Thread(target=lambda: names.extend(cg.variable(0.0).name for _ in range(500))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(names)) == 4000


# --------------------------------------------------------------------------------------------- operands


def test_operands_of_unary_and_binary_operations() -> None:
    x, y = cg.variable(2.0, "x"), cg.variable(3.0, "y")
    node = x * y
    assert node.operands == (x, y)
    assert node.operand_a is x
    assert node.operand_b is y
    for unary in (-x, np.sin(x), x.sum(), x.reshape(1), x.astype("float32"), x[()], np.sum(x, axis=()), x.copy()):
        assert unary.operands == (x,)
        assert unary.operand_a is x
        assert unary.operand_b is None


def test_operands_become_constants_on_access() -> None:
    x = cg.variable([1.0, 2.0])
    a = np.array([3.0, 4.0])
    node = x * a
    b = node.operand_b
    assert isinstance(b, cg.ConstantNode)
    np.testing.assert_array_equal(b.value, a)
    assert node.operand_b is b, "always the same one"
    assert node.operands == (x, b)
    assert b.name == "const_0"
    reflected = 5.0 - x
    assert isinstance(reflected.operand_a, cg.ConstantNode)
    assert reflected.operand_a.value == 5
    assert reflected.operand_b is x
    listed = x * [5, 6]
    assert np.array_equal(listed.operand_b.value, [5, 6])
    three = np.where([True, False], x, 0.0)
    assert len(three.operands) == 3
    assert three.operands[1] is x


def test_operands_of_operations_with_many() -> None:
    x, y, z = (cg.variable([float(k)]) for k in range(3))
    assert np.concatenate([x, y, z, [4.0]]).operands[:3] == (x, y, z)
    assert len(np.concatenate([x, y, z, [4.0]]).operands) == 4
    assert np.einsum("i,i,i", x, y, z).operands == (x, y, z)
    mask = x > 0
    assert np.sum(x, where=mask).operands == (x, mask)
    assert x[cg.constant(0)].operands[0] is x
    assert np.clip(x, None, y).operands == (x, y)


def test_operands_of_multi_output_operation() -> None:
    x = cg.variable([5.0, 7.0], "x")
    quotient, rest = divmod(x, 2.0)
    for part in (quotient, rest):
        assert part.operands[0] is x
        assert part.operand_b.value == 2
        assert all(isinstance(operand, cg.Node) for operand in part.operands)
    assert np.array_equal(gradient(np.sum(rest))["x"], [1, 1])


def test_operands_access_changes_nothing() -> None:
    """Neither the value nor the dtype of a derivative, nor of a graph computed again."""
    rng = np.random.default_rng(1)
    a = rng.normal(size=7).astype("float32")
    functions: list[Callable[[Any], Any]] = [
        lambda x: x * 2.7, lambda x: 2.7 * x, lambda x: x**3, lambda x: x / 0.3, lambda x: 1.1 - x, lambda x: x * [1.1] * 7,
        lambda x: divmod(x, 0.7)[1], lambda x: np.where(a > 0, x, 1.1), lambda x: np.maximum(x, 0.1), lambda x: 1.5**x,
    ]  # fmt: skip
    for position, function in enumerate(functions):
        x, y = cg.variable(a), cg.variable(a)
        untouched, inspection = function(x), function(y)
        assert inspection.operands
        assert inspection.operand_a is not None
        for create_graph in (False, True):
            expected, result = (gradient(n, create_graph=create_graph)[v] for n, v in ((untouched, x), (inspection, y)))
            assert result.dtype == expected.dtype == np.float32, position
            assert np.array_equal(np.asarray(result), np.asarray(expected)), position
        args = [getattr(arg, "raw_value", arg) for arg in inspection.args]
        again = inspection.function(*args, **inspection.options)
        assert np.asarray(again).dtype == inspection.dtype, position


def test_operands_are_complete_nodes() -> None:
    """The constant for a raw operand can be computed with, shown, and rejected like any other constant."""
    x = cg.variable([1.0, 2.0])
    for raw in (2.5, 3, True, 2j, np.float32(1.5), [1.0, 2.0], np.array([1.0, 2.0])):
        c = (x * raw).operand_b
        assert isinstance(c, cg.ConstantNode)
        calls: list[Callable[[Any], Any]] = [
            lambda c: c.copy(), lambda c: c.flatten(), lambda c: c.astype(complex), lambda c: c[...],
            lambda c: c.reshape(-1), lambda c: c.T,
            lambda c: c.sum(), lambda c: c + 1, lambda c: np.sin(c), lambda c: c.real, lambda c: c.ravel(),
            lambda c: -c if c.dtype != bool else c,
            lambda c: c.mean(),
        ]  # fmt: skip
        for position, call in enumerate(calls):
            assert np.array_equal(call(c).value, call(np.asarray(raw))), (raw, position)
        assert repr(c).startswith("ConstantNode(")
        assert c.value.shape == np.shape(raw)
        with pytest.raises(TypeError, match="constant"):
            c += 1
        with pytest.raises(TypeError, match="constant"):
            c[...] = 1


# ------------------------------------------------------------------------------------------------ ticks


def test_sequence_numbers_increase() -> None:
    x = cg.variable(1.0)
    y = x * 2
    z = y + x
    assert x.sequence_number < y.sequence_number < z.sequence_number
    assert isinstance(x.sequence_number, int)
    before = z.sequence_number
    x += 1
    assert x.sequence_number > before
    assert (x + 1).sequence_number > x.sequence_number
    assert cg.variable(0.0).memory is None


# ---------------------------------------------------------------------------------------------- updates


def updates() -> dict[str, Callable[[Any], Any]]:
    """Every way to update an array of two numbers in place."""
    return {
        "+=": lambda w: operator.iadd(w, 1),
        "-=": lambda w: operator.isub(w, [0.5, 1.5]),
        "*=": lambda w: operator.imul(w, np.array([2.0, 3.0])),
        "/=": lambda w: operator.itruediv(w, 2),
        "//=": lambda w: operator.ifloordiv(w, 2),
        "%=": lambda w: operator.imod(w, 2),
        "**=": lambda w: operator.ipow(w, 2),
        "@=": lambda w: operator.imatmul(w, np.array([[1.0, 2.0], [3.0, 4.0]])),
        "[...] =": lambda w: operator.setitem(w, ..., 7),
        "[0] =": lambda w: operator.setitem(w, 0, 7.5),
        "[:] =": lambda w: operator.setitem(w, slice(None), [7, 8]),
        "[mask] =": lambda w: operator.setitem(w, np.array([True, False]), 0),
        "[list] =": lambda w: operator.setitem(w, [1, 0], [5, 6]),
        "fill": lambda w: w.fill(3),
        "put": lambda w: w.put([1], [9]),
        "sort": lambda w: w.sort(),
        "partition": lambda w: w.partition(1),
        "copyto": lambda w: np.copyto(w, [4, 5]),
        "out": lambda w: np.add([1, 2], 3, out=w, casting="unsafe"),
    }


def test_variable_is_updated_in_place() -> None:
    with Failures("updates") as failures:
        for label, dtype in itertools.product(updates(), ["float32", "float64", "complex128"]):
            with failures.case(f"{label}, {dtype}"):
                cg.reset()
                update, array = updates()[label], np.array([3.0, 2.0], dtype)
                if dtype == "complex128" and label in ("//=", "%="):
                    continue
                w = cg.variable(array)
                same, sequence_number, buffer = w, w.sequence_number, w.value
                update(w)
                update(array)
                assert w is same
                assert np.array_equal(w.value, array)
                assert w.dtype == dtype
                assert np.shares_memory(w.value, buffer)
                assert w.sequence_number > sequence_number
                assert w.name == "var_0"


def test_augmented_assignment_keeps_variable() -> None:
    w = original = cg.variable([1.0, 2.0], "w")
    g = np.array([10.0, 20.0])
    w -= 0.1 * g
    assert w is original
    assert np.array_equal(w.value, [0, 0])
    scalar = original = cg.variable(2.0)
    scalar *= 3
    assert scalar is original
    assert float(scalar) == 6


def test_variable_update_with_node_raises() -> None:
    w, x = cg.variable([1.0, 2.0], "w"), cg.variable([3.0, 4.0])
    calls: dict[str, Callable[[], Any]] = {
        "+=": lambda: operator.iadd(w, x),
        "+= operation": lambda: operator.iadd(w, x * 2),
        "+= list": lambda: operator.iadd(w, [x[0], 1.0]),
        "[...] =": lambda: operator.setitem(w, ..., x),
        "[0] =": lambda: operator.setitem(w, 0, x[0]),
        "[...] = list": lambda: operator.setitem(w, ..., [x[0], 1.0]),
        "[...] = tuples": lambda: operator.setitem(w, ..., ((x[0], 1.0),)),
        "itself": lambda: operator.iadd(w, w),
        "fill": lambda: w.fill(x[0]),
        "put": lambda: w.put([0], [x[0]]),
        "constant": lambda: operator.iadd(w, cg.constant([1.0, 1.0])),
    }
    for label, call in calls.items():
        sequence_number = w.sequence_number
        with pytest.raises(TypeError, match=r"written into variable 'w'.*no_graph"):
            call()
        assert np.array_equal(w.value, [1, 2]), label
        assert w.sequence_number == sequence_number, label
    with cg.no_graph():
        w -= 0.5 * x
        w[0] = x[1]
        w[...] = [w[0], x[0]]
    assert np.array_equal(w.value, [4, 3])
    w[cg.constant([0])] = 9.0
    assert w.value[0] == 9


def test_variable_update_invalidates_old_graphs() -> None:
    w = cg.variable([1.0, 2.0], "w")
    old = np.sum(w * w)
    w[0] = 5.0
    with pytest.raises(ValueError, match="updated in place"):
        gradient(old)
    assert np.array_equal(gradient(np.sum(w * w))["w"], [10, 4])


def test_variable_update_failing_midway_invalidates_old_graphs() -> None:
    """The array was written before the error: a sweep must not use the new values in place of the old."""
    w = cg.variable([2.0, 3.0], "w")
    loss = np.sum(w * w)
    with pytest.raises(FloatingPointError), np.errstate(over="raise"):
        w *= 1e308
    assert not np.array_equal(w.value, [2, 3])
    with pytest.raises(ValueError, match="updated in place"):
        gradient(loss)


def test_variable_update_failing_early_changes_nothing() -> None:
    w = cg.variable([1.0, 2.0])
    for call, error in (
        (lambda: operator.iadd(w, 1j), TypeError),
        (lambda: operator.iadd(w, [1.0, 2.0, 3.0]), ValueError),
        (lambda: operator.iadd(w, "a"), TypeError),
        (lambda: operator.iadd(w, None), TypeError),
        (lambda: operator.setitem(w, 5, 1.0), IndexError),
        (lambda: operator.setitem(w, ..., [1.0, 2.0, 3.0]), ValueError),
        (lambda: operator.setitem(w, ..., "a"), ValueError),
        (lambda: operator.setitem(w, "a", 1.0), IndexError),
        (lambda: operator.ilshift(w, 1), TypeError),
    ):
        with pytest.raises(error):
            call()
        assert np.array_equal(w.value, [1, 2])


def test_operation_is_written_in_place() -> None:
    with Failures("updates") as failures:
        for label in updates():
            with failures.case(label):
                x = cg.variable([3.0, 2.0])
                for target in (x * 1.0, x.copy(), (x * 1.0)[::-1], cg.array([3.0, 2.0])):
                    same, array, buffer, sequence_number = target, target.value.copy(), target.value, target.sequence_number
                    updates()[label](target)
                    updates()[label](array)
                    assert target is same
                    assert np.array_equal(target.value, array)
                    assert np.shares_memory(target.value, buffer)
                    assert target.sequence_number == sequence_number
                assert np.array_equal(x.value, [3, 2])


def test_variable_view_updates_variable() -> None:
    with Failures("updates") as failures:
        for label in updates():
            with failures.case(label):
                x, array = cg.variable([5.0, 3.0, 2.0]), np.array([5.0, 3.0, 2.0])
                loss, sequence_number = np.sum(x * x), x.sequence_number
                updates()[label](x[:0:-1])
                updates()[label](array[:0:-1])
                assert np.array_equal(x.value, array)
                assert x.sequence_number > sequence_number
                with pytest.raises(ValueError, match="updated in place"):
                    gradient(loss)


def test_constant_is_never_written() -> None:
    with Failures("updates") as failures:
        for label in updates():
            with failures.case(label):
                target = cg.constant([3.0, 2.0])
                with pytest.raises(TypeError, match=r"constant.*never changes.*use"):
                    updates()[label](target)
                assert np.array_equal(target.value, [3, 2])
                assert target.memory is None


@pytest.mark.parametrize("label", ["+=", "*=", "[...] =", "[mask] =", "sort", "copyto", "out"])
def test_constant_view_is_read_only(label: str) -> None:
    target = cg.constant([5.0, 3.0, 2.0])
    with pytest.raises(ValueError, match="read-only"):
        updates()[label](target[1:])
    assert np.array_equal(target.value, [5, 3, 2])


def test_constant_error_has_its_name() -> None:
    c = cg.constant([1.0, 2.0], "pinned")
    with pytest.raises(TypeError, match="constant 'pinned'"):
        c += 1


def test_attributes_are_read_only() -> None:
    for node in (cg.variable([[1.0, 2.0]]), cg.constant([[1.0, 2.0]]), cg.variable([[1.0, 2.0]]) * 1):
        for name, value in {"shape": (2, 1), "dtype": "int64", "strides": (8, 8), "T": 1.0, "mT": 1.0}.items():
            with pytest.raises(TypeError, match=rf"\.{name} of a node"):
                setattr(node, name, value)
        with pytest.raises(TypeError, match="no imaginary part to set"):
            node.imag = 1.0
        with pytest.raises(AttributeError):
            node.nonsense = 1
        assert node.shape == (1, 2)
        assert np.array_equal(node.value, [[1, 2]])
    constant = cg.constant([1 + 1j])
    for name in ("real", "imag", "flat"):
        with pytest.raises((TypeError, ValueError), match=r"never changes|read-only"):
            setattr(constant, name, 7.0)
    assert constant.value[0] == 1 + 1j
    with pytest.raises(AttributeError, match="nonsense"):
        _ = cg.variable(1.0).nonsense  # type: ignore[attr-defined]


# ---------------------------------------------------------------------------------------------- scalars


@pytest.mark.parametrize("dtype", FLOATING)
def test_scalar_node_behaves_as_numpy_scalar(dtype: str) -> None:
    x = cg.variable(np.array([1.0, 2.0], dtype))
    for make in (lambda: np.sum(x), lambda: x[0], lambda: x @ x, lambda: np.max(x), lambda: cg.variable(x.value[0]) + 1):
        s = original = make()
        assert s.shape == ()
        value = s.value.copy()
        s += 1
        assert s is not original
        assert isinstance(s, cg.OperationalNode)
        assert np.array_equal(original.value, value)
        assert s.value == value + 1
        assert s.dtype == dtype
        s *= 2
        s -= 0.5
        s /= 2
        s **= 2
        assert s.value == (((value + 1) * 2 - 0.5) / 2) ** 2
        for write in (lambda s=original: operator.setitem(s, (), 1.0), lambda s=original: operator.setitem(s, ..., 1.0)):
            with pytest.raises(TypeError, match=r"scalar.*item assignment"):
                write()
        with pytest.raises(TypeError):
            original.sort()
        with pytest.raises(TypeError):
            original.fill(1.0)
        assert np.array_equal(original.value, value)


def test_scalar_rebinding_keeps_derivative() -> None:
    x = cg.variable([1.0, 2.0, 3.0], "x")
    total = x[0]
    for element in x[1:]:
        total += element * element
    total **= 2
    assert float(total) == 196
    assert np.array_equal(gradient(total)["x"], [28, 112, 168])


def test_zero_dimensional_array_is_not_a_scalar() -> None:
    """It is written in place, as NumPy's 0-d arrays are."""
    x = cg.variable(1.0)
    for node in (cg.zeros(()), cg.zeros(())[...], np.reshape(cg.zeros(1), ())):
        original = node
        node += x
        assert node is original
        assert gradient(node)[x] == 1
    for node in (x[...], x.T, np.reshape(x, ())):
        original = node
        node += 1
        assert node is original
    assert x.value == 4


# ------------------------------------------------------------------------------------------- conversions


def test_scalar_node_conversions() -> None:
    x = cg.variable(2.75)
    for node in (x, x * 1, np.sum(x), cg.constant(2.75), cg.variable(np.float32(2.75))[()], cg.variable(np.longdouble(2.75)) * 1):
        assert float(node) == 2.75
        assert type(float(node)) is float
        assert int(node) == 2
        assert complex(node) == 2.75
        assert bool(node) is True
        assert np.isclose(np.sqrt(node), math.sqrt(2.75))
        assert math.floor(node) == 2
        assert math.ceil(node) == 3
    assert complex(cg.variable(1 + 2j)) == 1 + 2j
    assert bool(cg.variable(0.0)) is False
    assert bool(x > 2)
    assert not x < 2
    assert "a" * cg.constant(3).item() == "aaa"
    assert [10, 20, 30][cg.constant(1)] == 20
    assert list(range(np.argmax(cg.variable([1.0, 3.0])))) == [0]
    assert math.sqrt(cg.constant(2.75)) == math.sqrt(2.75)
    with pytest.raises(cg.LeakError, match=r"math\.sqrt\(\) takes .*Use np\.sqrt"):
        math.sqrt(x)
    with pytest.raises(TypeError):
        [10, 20][cg.variable(1.0)]
    with pytest.raises(TypeError):
        float(cg.variable([1.0, 2.0]))
    with pytest.raises(ValueError, match="ambiguous"):
        bool(cg.variable([1.0, 2.0]))
    with pytest.raises(TypeError):
        len(cg.variable(1.0))


def test_scalar_node_round() -> None:
    s = cg.variable(2.675)
    assert type(round(s)) is int
    assert round(s) == 3
    assert isinstance(round(s, 2), cg.Node)
    assert float(round(s, 1)) == 2.7
    assert float(round(np.sum(s), 1)) == 2.7
    with pytest.raises(TypeError, match=r"np\.round"):
        round(cg.variable([1.0, 2.0]))


@pytest.mark.parametrize("dtype", FLOATING)
def test_scalar_node_formatting(dtype: str) -> None:
    value = np.array(3.14159, dtype)
    nodes = [cg.variable(value), cg.constant(value), cg.variable(value) * 1, np.sum(cg.variable(value))]
    for node in nodes:
        for spec in ("", ".3f", "10.2e", "+.1f", "%"):
            if np.dtype(dtype).kind == "c" and spec == "%":
                continue
            assert format(node, spec) == format(value[()], spec), spec
        assert f"{node:.2f}".startswith("3.14")
        assert str(node) == str(value)
        assert f"{node!s}" == str(value)
    assert "%.3f" % cg.variable(1.5) == "1.500"  # noqa: UP031


def test_array_node_formatting() -> None:
    a = np.array([[1.0, 2.5], [3.0, 4.0]])
    x = cg.variable(a)
    assert str(x) == str(a)
    assert f"{x}" == f"{a}"
    with pytest.raises(TypeError):
        f"{x:.2f}"
    assert str(cg.variable(np.zeros((0, 3)))) == str(np.zeros((0, 3)))
    assert str(cg.constant([True, False])) == "[ True False]"


def test_node_repr() -> None:
    x = cg.variable([1.0, 2.0], "x")
    assert repr(x) == "VariableNode([1., 2.], name='x', dtype=float64)"
    assert repr(cg.constant(1)) == "ConstantNode(1, name='const_0', dtype=int64)"
    assert repr(np.sum(x)) == "ScalarNode(3., name='sum_0', dtype=float64)"
    assert repr(x * 2).startswith("OperationalNode([2., 4.], name='mul_0'")
    long = repr(cg.variable(np.arange(100000.0)))
    assert len(long) < 400
    for dtype in FLOATING:
        assert dtype in repr(cg.variable(np.zeros((2, 0, 3), dtype))) or dtype == "longdouble"


# ---------------------------------------------------------------------------------------------- hashing


def test_nodes_hash_by_identity() -> None:
    x, y = cg.variable([1.0, 2.0]), cg.variable([1.0, 2.0])
    nodes = [x, y, x + y, x + y, np.sum(x), x > y, cg.constant(1), cg.constant(1)]
    table = {node: k for k, node in enumerate(nodes)}
    assert [table[node] for node in nodes] == list(range(len(nodes)))
    assert len(set(nodes)) == len(nodes)
    assert x in {x}
    assert y not in {x}
    hash_value = hash(x)
    x += 1
    assert hash(x) == hash_value
    assert [y, x].index(y) == 0


def test_node_equality_is_elementwise() -> None:
    x = cg.variable([1.0, 2.0])
    assert np.array_equal((x == [1.0, 3.0]).value, [True, False])
    assert np.array_equal((x != x).value, [False, False])
    assert not np.any(x == None)  # noqa: E711
    for other in ("a", b"a", np.str_("a"), object(), Ellipsis, Fraction(5), Decimal(5), {}, {1, 2}):
        assert np.array_equal(np.asarray(x == other), [False, False]), other
        assert np.array_equal(np.asarray(x != other), [True, True]), other
    assert np.array_equal(np.asarray(x == Fraction(2)), [False, True])
    assert cg.variable(1.0) != "auto"
    for other in ("a", None, object()):
        with pytest.raises(TypeError):
            x < other  # noqa: B015


# ----------------------------------------------------------------------------------- copies, serialising


def test_node_copies() -> None:
    x = cg.variable([1.0, 2.0], "x")
    y = copy.copy(x)
    assert isinstance(y, cg.OperationalNode)
    assert not np.shares_memory(x.value, y.value)
    assert np.array_equal(gradient(np.sum(y * y))["x"], [2, 4])
    assert np.array_equal(copy.deepcopy(x.value), [1, 2])


# --------------------------------------------------------------------------------------------- no_graph


def test_no_graph_as_context() -> None:
    x = cg.variable([1.0, 2.0])
    with cg.no_graph():
        assert type(x * 2) is np.ndarray
        assert type(np.sum(x)) is np.float64
        assert type(x[0]) is np.float64
        assert type(x > 1) is np.ndarray
        with cg.no_graph():
            assert type(-x) is np.ndarray
        assert type(x @ x) is np.float64
        y = cg.variable(3.0)
        assert isinstance(y, cg.VariableNode), "leaves can still be made"
        x -= 0.5
    assert isinstance(x * 2, cg.OperationalNode)
    with pytest.raises(ZeroDivisionError), cg.no_graph():
        raise ZeroDivisionError
    assert isinstance(x * 2, cg.OperationalNode)


def test_no_graph_as_decorator() -> None:
    x = cg.variable([1.0, 2.0])

    @cg.no_graph()
    def infer(z: Any) -> Any:
        return z * 2

    for _ in range(3):
        assert type(infer(x)) is np.ndarray
        assert isinstance(x * 2, cg.OperationalNode)

    @cg.no_graph()
    def recurse(depth: int) -> Any:
        return recurse(depth - 1) if depth else x * 2

    assert type(recurse(5)) is np.ndarray
    assert isinstance(x * 2, cg.OperationalNode)


def test_no_graph_decorator_of_generator_raises_or_is_active() -> None:
    """A call only creates an iterator or a coroutine: the context would end before their first line runs."""
    x = cg.variable(1.0)

    def values() -> Any:
        yield x * 2

    async def compute() -> Any:
        return x * 2

    for function, run in ((values, next), (compute, asyncio.run)):
        try:
            silent: Any = cg.no_graph()(function)
        except TypeError:
            continue
        assert not isinstance(run(silent()), cg.Node)  # type: ignore[operator]


def test_scalar_item_assignment_message_names_node() -> None:
    """Also in a function that is differentiated."""

    def write(z: Any) -> Any:
        z[0][()] = 1.0
        return z

    for differentiate in (lambda: grad(write)(np.ones(2)), lambda: jvp(write, (np.ones(2),), (np.ones(2),))):
        with pytest.raises(TypeError, match=r"shape \(\), float64\) is a scalar.*item assignment") as caught:
            differentiate()
        assert "None" not in str(caught.value)


def test_no_graph_is_per_thread() -> None:
    x = cg.variable(1.0)
    checks: list[bool] = []
    inside, finish = threading.Event(), threading.Event()

    def compute() -> None:
        inside.wait(5)
        checks.append(isinstance(x * 2, cg.Node))
        finish.set()

    thread = threading.Thread(target=compute)
    thread.start()
    with cg.no_graph():
        inside.set()
        assert finish.wait(5)
        assert not isinstance(x * 2, cg.Node)
    thread.join()
    assert checks == [True]


def test_no_graph_is_per_task() -> None:
    x = cg.variable(1.0)

    async def silent(ready: asyncio.Event, go: asyncio.Event) -> bool:
        with cg.no_graph():
            ready.set()
            await go.wait()
            return isinstance(x * 2, cg.Node)

    async def recording(ready: asyncio.Event, go: asyncio.Event) -> bool:
        await ready.wait()
        is_recorded = isinstance(x * 2, cg.Node)
        go.set()
        return is_recorded

    async def both() -> list[bool]:
        ready, go = asyncio.Event(), asyncio.Event()
        return list(await asyncio.gather(silent(ready, go), recording(ready, go)))

    assert asyncio.run(both()) == [False, True]


# ------------------------------------------------------------------------------------------- weird inputs


def test_variable_of_large_and_odd_numbers() -> None:
    assert float(cg.variable(2**63)) == 2.0**63
    assert float(cg.variable(-(2**62))) == -(2.0**62)
    with pytest.raises((TypeError, OverflowError)):
        cg.variable(10**400)
    x = cg.variable(1.0)
    assert float(x * 2**100) == 2.0**100
    with np.errstate(over="ignore"):
        assert np.isinf(float(cg.variable(1e308) * 10))
    assert np.isnan(float(cg.variable(np.nan)))
    assert cg.variable(np.ones((1,) * 32)).ndim == 32
    assert cg.variable(np.zeros((3, 0, 2))).sum().value == 0


def test_leaf_made_from_node_copies_value() -> None:
    """Leaves copy the value of a node."""
    x = cg.variable([1.0, 2.0], "x")
    for make in (cg.variable, cg.constant):
        leaf = make(x * 2)
        assert leaf.operands == ()
        assert np.array_equal(leaf.value, [2, 4])
        assert not np.shares_memory(leaf.value, x.value)


def test_node_array_protocols() -> None:
    x = cg.variable([1.0, 2.0])
    assert type(np.asarray(x)) is np.ndarray
    assert np.asarray(x, dtype="float32").dtype == np.float32
    assert x.__array_namespace__() is np
    assert memoryview(x).shape == (2,)
    assert np.from_dlpack(x).tolist() == [1, 2]
    assert x.__array_interface__["shape"] == (2,)
    assert x.device == "cpu"


@pytest.mark.parametrize(
    "call",
    [
        lambda x, out: cg.sin(x),
        lambda x, out: cg.sin(x, name="s"),
        lambda x, out: np.add.outer(x, x),
        lambda x, out: np.sin(x, out=out),
        lambda x, out: cg.add(x, x, out=out),
        lambda x, out: operator.iadd(out, x),
        lambda x, out: x + x,
    ],
)
def test_node_line_is_that_of_user(call: Callable[[Any, Any], Any]) -> None:
    """However an operation is recorded, its line is in this file, not in the package."""
    lines = [
        node.line for node in topological_order([call(cg.variable([1.0, 2.0], "x"), cg.zeros(2))]) if isinstance(node, cg.Node)
    ]
    assert lines
    assert all(f'File "{__file__}"' in line for line in lines)


def test_dir_omits_unsupported_attributes() -> None:
    names = {*dir(cg.variable(1.0))}
    assert {"value", "sum", "T"} <= names
    assert not names & {"block_until_ready", "cpu", "cuda"}
