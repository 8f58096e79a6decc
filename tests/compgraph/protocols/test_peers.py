"""Nodes among other array types: dispatch, errors, and unchanged state after errors."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import compgraph as cg
from autodiff.reverse import gradient
from tests.support.failures import Failures

pytestmark = pytest.mark.portable

ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "//": operator.floordiv, "%": operator.mod,
    "**": operator.pow, "@": operator.matmul, "divmod": divmod,
}  # fmt: skip
COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
IN_PLACE: dict[str, Callable[[Any, Any], Any]] = {
    "+=": operator.iadd, "-=": operator.isub, "*=": operator.imul, "/=": operator.itruediv, "//=": operator.ifloordiv,
    "%=": operator.imod, "**=": operator.ipow, "@=": operator.imatmul,
}  # fmt: skip


@pytest.fixture
def x() -> Any:
    return cg.variable([1.0, 2.0, 3.0], "x")


def of_each_kind(values: Any) -> Iterator[Any]:
    """Nodes of every kind with these values."""
    yield cg.variable(values)
    yield cg.constant(values)
    yield cg.variable(values) * 1.0
    yield cg.constant(values) * 1.0


def lacks_history(node: Any) -> bool:
    """Whether an array is a node without a history, which raises when it is used."""
    if not isinstance(node, cg.Node):
        return False
    uses: list[Callable[[], Any]] = [
        lambda: node + 1,
        lambda: np.sum(node),
        lambda: np.exp(node),
        lambda: node[0],
        lambda: node.value,
    ]
    for use in uses:
        with pytest.raises(TypeError, match="history is lost"):
            use()
    return True


# --------------------------------------------------------------------------- peers with protocols of their own


class OptOutPeer:
    """A type that opts out of ufuncs and has operators of its own."""

    __array_ufunc__ = None
    __hash__ = None  # type: ignore[assignment]

    def answer(self, other: Any) -> tuple[str, str]:
        return "answered", type(other).__name__

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = answer
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __pow__ = __rpow__ = __matmul__ = __rmatmul__ = answer
    __divmod__ = __rdivmod__ = __lt__ = __le__ = __gt__ = __ge__ = answer
    __eq__ = __ne__ = answer  # type: ignore[assignment]


class OperatorlessPeer:
    """A type that opts out of ufuncs and has no operators."""

    __array_ufunc__ = None


class ProtocolPeer:
    """Has both protocols of its own."""

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        return "asked", ufunc.__name__, method, [type(value).__name__ for value in inputs]

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return "asked", function.__name__


def test_peer_with_array_ufunc_none_gets_operators() -> None:
    with Failures("operators") as failures:
        for symbol, operate in (ARITHMETIC | COMPARISONS).items():
            with failures.case(symbol):
                for node in of_each_kind([1.0, 2.0]):
                    assert operate(node, OptOutPeer()) == ("answered", type(node).__name__)
                    assert operate(OptOutPeer(), node) == ("answered", type(node).__name__)
                    scalar = np.sum(node)
                    assert operate(scalar, OptOutPeer()) == ("answered", type(scalar).__name__)


def test_peer_without_operators_raises(x: Any) -> None:
    for operate in ARITHMETIC.values():
        for pair in ((x, OperatorlessPeer()), (OperatorlessPeer(), x)):
            with pytest.raises(TypeError):
                operate(*pair)
    for function in (np.add, np.maximum, np.less, np.floor_divide):
        with pytest.raises(TypeError, match="__array_ufunc__=None"):
            function(x, OperatorlessPeer())
        with pytest.raises(TypeError, match="__array_ufunc__=None"):
            function(OperatorlessPeer(), x, out=x)


def test_peer_ufunc_protocol_is_called(x: Any) -> None:
    with Failures("operators") as failures:
        for symbol, operate in (ARITHMETIC | COMPARISONS).items():
            with failures.case(symbol):
                for node in (x, x * 1.0, x > 1, cg.constant(1.0), np.sum(x)):
                    result = operate(node, ProtocolPeer())
                    assert result[0] == "asked"
                    assert type(node).__name__ in result[3]
                    assert operate(ProtocolPeer(), node)[0] == "asked"


def test_peer_protocols_are_called_in_every_position(x: Any) -> None:
    peer = ProtocolPeer()
    calls: list[Callable[[], Any]] = [
        lambda: np.add(x, peer), lambda: np.add(peer, x), lambda: np.add(x, 1, out=peer),
        lambda: np.add(x, peer, dtype="float32"),
        lambda: np.multiply.reduce(x, out=peer), lambda: np.sin(x, out=peer), lambda: np.divmod(x, peer),
        lambda: np.isnan(x, out=peer),
        lambda: np.concatenate([x, peer]), lambda: np.dot(x, peer), lambda: np.dot(peer, x), lambda: np.where([True], peer, x),
        lambda: np.vstack([x, peer]), lambda: np.einsum("i,i", x, peer), lambda: np.clip(x, peer, None),
        lambda: np.sum(x, out=peer),
        lambda: np.copyto(peer, x), lambda: np.isclose(x, peer), lambda: np.add.outer(x, peer), lambda: np.linalg.solve(peer, x),
        lambda: np.append(peer, x), lambda: np.stack((peer, x)), lambda: np.allclose(x, peer),
    ]  # fmt: skip
    for position, call in enumerate(calls):
        assert call()[0] == "asked", position
    with cg.no_graph():
        for position, call in enumerate(calls):
            assert call()[0] == "asked", position


def test_peer_argument_of_method_raises(x: Any) -> None:
    """A method does not dispatch to the peer as the function does, so it raises."""
    for call in (lambda: x.dot(ProtocolPeer()), lambda: x.searchsorted(ProtocolPeer()), lambda: x.sum(out=ProtocolPeer())):
        with pytest.raises(TypeError):
            call()


def test_peer_is_called_for_empty_update(x: Any) -> None:
    """An in-place operator cannot return the peer's result, so it raises."""
    for peer in (OptOutPeer(), OperatorlessPeer(), ProtocolPeer()):
        for operate in IN_PLACE.values():
            with pytest.raises(TypeError):
                operate(x, peer)
    assert np.array_equal(x.value, [1, 2, 3])


class Priority:
    """`__array_priority__`, the older protocol: nodes keep precedence, because a plain result would lose the graph."""

    __array_priority__ = 1000.0

    def __radd__(self, other: Any) -> Any:
        return np.asarray(other)

    __rmul__ = __rmatmul__ = __rsub__ = __rtruediv__ = __radd__


def test_peer_priority_keeps_node_whole(x: Any) -> None:
    for symbol in ("+", "*", "@", "-", "/"):
        with pytest.raises(TypeError, match="a node computes with numbers, not with a Priority"):
            ARITHMETIC[symbol](x, Priority())
    for update in ("+=", "*=", "-="):
        with pytest.raises(TypeError, match="not with a Priority"):
            IN_PLACE[update](x, Priority())
    assert np.array_equal(x.value, [1, 2, 3])


class Convertible:
    """Nothing but a conversion to an array."""

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.array([4.0, 5.0, 6.0])


def test_convertible_object_is_an_operand(x: Any) -> None:
    peer, array = Convertible(), np.array([4.0, 5.0, 6.0])
    for symbol, operate in (ARITHMETIC | COMPARISONS).items():
        if symbol == "divmod":
            continue
        assert np.array_equal(operate(x, peer).value, operate(x.value, array)), symbol
        if symbol not in COMPARISONS:
            assert np.array_equal(operate(peer, x).value, operate(array, x.value)), symbol
    for function in (np.dot, np.maximum, np.outer, np.isclose):
        assert np.array_equal(function(x, peer).value, function(x.value, array))
    assert np.array_equal(np.concatenate([x, peer]).value, [1, 2, 3, 4, 5, 6])
    assert np.array_equal(gradient(np.sum(x * peer))["x"], array)
    x -= peer
    assert np.array_equal(x.value, [-3, -3, -3])


# -------------------------------------------------------------------------------------- other kinds of arrays


def test_masked_array_operand_raises(x: Any) -> None:
    """A node cannot have a mask, and masked values must not become visible."""
    masked = np.ma.array([1.0, 2.0, 3.0], mask=[False, True, False])
    for operate in (ARITHMETIC | COMPARISONS).values():
        for pair in ((x, masked), (masked, x), (np.sum(x), masked), (cg.constant(1.0), masked)):
            with pytest.raises(TypeError):
                operate(*pair)
    teaching = r"MaskedArray.*np\.asarray"
    for call in (
        lambda: x + masked,
        lambda: np.add(masked, x),
        lambda: np.concatenate([x, masked]),
        lambda: np.where([True, False, True], x, masked),
        lambda: np.dot(x, masked),
        lambda: x.dot(masked),
        lambda: np.vstack([x, masked]),
        lambda: np.einsum("i,i", x, masked),
        lambda: np.clip(x, masked, None),
        lambda: operator.iadd(x, masked),
        lambda: np.isclose(x, masked),
        lambda: x == masked,
    ):
        with pytest.raises(TypeError, match=teaching):
            call()
    assert np.array_equal(x.value, [1, 2, 3])
    assert np.array_equal(masked.mask, [False, True, False])


def test_masked_array_functions_reject_nodes(x: Any) -> None:
    calls: list[Callable[[], Any]] = [
        lambda: np.ma.array(x) + 1, lambda: np.ma.array(x).sum(), lambda: np.ma.masked_invalid(x), lambda: np.ma.sum(x),
        lambda: np.ma.exp(x),
        lambda: np.ma.concatenate([x, x]), lambda: np.ma.mean(x), lambda: np.ma.add(x, 1), lambda: np.ma.array(x) * x,
    ]  # fmt: skip
    for call in calls:
        with pytest.raises(TypeError):
            call()


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
def test_matrix_operand_raises() -> None:
    """Their ``*`` is a different operation."""
    x = cg.variable([[1.0, 2.0], [3.0, 4.0]])
    matrix = np.matrix([[1.0, 2.0], [3.0, 4.0]])
    for symbol, operate in (ARITHMETIC | COMPARISONS).items():
        with pytest.raises(TypeError, match=r"matrix.*np\.asarray"):
            operate(x, matrix)
        if symbol != "**":
            with pytest.raises(TypeError):
                operate(matrix, x)
    for call in (
        lambda: np.dot(x, matrix),
        lambda: np.matmul(matrix, x),
        lambda: np.concatenate([x, matrix]),
        lambda: x.dot(matrix),
    ):
        with pytest.raises(TypeError, match=r"matrix.*np\.asarray"):
            call()
    assert lacks_history(np.dot(matrix, x))
    with pytest.raises(TypeError):
        np.matrix(x)


class Subclass(np.ndarray):
    """An array type that adds nothing."""


def memory_map(tmp_path: Path) -> Any:
    array: Any = np.memmap(tmp_path / "numbers", dtype=float, mode="w+", shape=(3,))
    array[:] = [4.0, 5.0, 6.0]
    return array


@pytest.mark.parametrize("kind", ["memmap", "subclass"])
def test_other_subclass_is_an_operand(kind: str, tmp_path: Path, x: Any) -> None:
    peer: Any = memory_map(tmp_path) if kind == "memmap" else np.array([4.0, 5.0, 6.0]).view(Subclass)
    plain = np.asarray(peer)
    for symbol, operate in (ARITHMETIC | COMPARISONS).items():
        for result, expected in ((operate(x, peer), operate(x.value, plain)), (operate(peer, x), operate(plain, x.value))):
            for part, reference in zip(*(v if isinstance(v, tuple) else (v,) for v in (result, expected)), strict=True):
                assert isinstance(part, cg.Node), symbol
                assert np.array_equal(part.value, reference), symbol
    for call in (
        lambda a, b: np.dot(a, b), lambda a, b: np.outer(a, b), lambda a, b: np.concatenate([a, b]),
        lambda a, b: np.where([True, False, True], a, b),
        lambda a, b: np.einsum("i,i", a, b), lambda a, b: a.dot(b), lambda a, b: np.clip(a, b, None),
        lambda a, b: np.tensordot(a, b, 1),
    ):  # fmt: skip
        result = call(x, peer)
        assert isinstance(result, cg.Node)
        assert np.array_equal(result.value, call(x.value, plain))
    assert np.array_equal(gradient(np.sum(peer * x))["x"], plain)
    assert np.array_equal(gradient(np.dot(x, peer))["x"], plain)
    x += peer
    assert np.array_equal(x.value, [5, 7, 9])
    assert cg.variable(peer).value.__class__ is np.ndarray


def test_other_subclass_first_gives_unusable_result(tmp_path: Path) -> None:
    """NumPy dispatches to the first of two unrelated subclasses, which treats a node as an array: the result is unusable."""
    x, peer = cg.variable(np.ones((3, 3))), memory_map(tmp_path)
    for call in (
        lambda: np.concatenate([peer, x[0]]),
        lambda: np.stack([peer, x[0]]),
        lambda: np.vstack([peer, x]),
        lambda: np.append(peer, x),
        lambda: np.dot(peer, x),
    ):
        assert lacks_history(call())


@pytest.mark.parametrize("name", ["dot", "outer", "where", "einsum", "concatenate", "stack", "tensordot"])
def test_cg_functions_run_before_numpy_dispatch(name: str, tmp_path: Path, x: Any) -> None:
    """A function of compgraph sees its arguments before NumPy does, in whatever order they come."""
    peer = memory_map(tmp_path)
    calls: dict[str, Callable[[Any], Any]] = {
        "dot": lambda m: m.dot(peer, x),
        "outer": lambda m: m.outer(peer, x),
        "where": lambda m: m.where(peer, x, 0.0),
        "einsum": lambda m: m.einsum("i,i", peer, x),
        "concatenate": lambda m: m.concatenate([peer, x]),
        "stack": lambda m: m.stack([peer, x]),
        "tensordot": lambda m: m.tensordot(peer, x, 1),
    }
    result = calls[name](cg)
    assert isinstance(result, cg.Node)
    assert result.raw_value is not None
    assert any(operand is x for operand in result.operands)


@pytest.mark.parametrize("name", ["max", "sum", "mean", "sin", "stack of a list", "initial"])
def test_cg_functions_detect_nodes_in_lists_and_options(name: str) -> None:
    """In a list, or as an option, NumPy would read the numbers without recording."""
    x, y = cg.variable(2.0, "x"), cg.variable(3.0, "y")
    calls: dict[str, Callable[[], Any]] = {
        "max": lambda: cg.max([x, y]),
        "sum": lambda: cg.sum([x, y]),
        "mean": lambda: cg.mean([x, y]),
        "sin": lambda: cg.sin([x, y]),
        "stack of a list": lambda: cg.stack([[x, y], [1.0, 2.0]]),
        "initial": lambda: cg.sum(np.ones(3), initial=x),
    }
    result = calls[name]()
    assert isinstance(result, cg.Node), "the graph is lost without a word"
    assert "x" in gradient(np.sum(result))


def test_sparse_matrix_keeps_node_whole() -> None:
    x = cg.variable(np.ones((2, 2)))
    sparse = scipy.sparse.csr_array(np.eye(2))
    for symbol in ("@", "+", "-"):
        result = ARITHMETIC[symbol](x, sparse)
        assert isinstance(result, cg.Node)
        assert np.array_equal(result.value, ARITHMETIC[symbol](x.value, sparse))
    for symbol in ("+=", "*="):
        with pytest.raises(TypeError, match="csr_array"):
            IN_PLACE[symbol](x, sparse)
    assert np.array_equal(x.value, np.ones((2, 2)))


# ------------------------------------------------------------------------------- values that are not numbers

NO_NUMBERS: dict[str, Any] = {
    "str": "a", "bytes": b"a", "Decimal": Decimal(2), "datetime": np.datetime64("2020-01-01"),
    "timedelta": np.timedelta64(2, "s"), "dict": {"a": 1}, "set": {1}, "object": object(), "type": float, "function": len,
    "list of str": ["a", "b", "c"], "list of None": [None, 1.0, 2.0], "list of objects": [object()] * 3, "ellipsis": ...,
    "list of Decimals": [Decimal(1)] * 3,
}  # fmt: skip


@pytest.mark.parametrize("label", NO_NUMBERS)
def test_non_numeric_operand_raises(label: str, x: Any) -> None:
    other = NO_NUMBERS[label]
    teaching = r"a node computes with numbers, not with a .*convert it|unsupported operand|cannot use|did not contain a loop"
    for symbol, operate in ARITHMETIC.items():
        for pair in ((x, other), (other, x), (np.sum(x), other), (other, x > 1)):
            if pair[0] is other and label in ("str", "bytes") and symbol == "%":
                continue  # Python formats the string
            with pytest.raises(TypeError, match=teaching):
                operate(*pair)
    for call in (
        lambda: np.add(x, other), lambda: np.maximum(other, x), lambda: np.dot(x, other), lambda: np.concatenate([x, other]),
        lambda: np.where([True, False, True], x, other), lambda: np.clip(x, other, None), lambda: np.stack([x, other]),
        lambda: np.outer(x, other), lambda: x.dot(other), lambda: np.add(x, other, dtype="float32"), lambda: np.arctan2(other, x),
    ):  # fmt: skip
        with pytest.raises((TypeError, ValueError), match="a node computes with numbers, not with a"):
            call()
    for operate in IN_PLACE.values():
        with pytest.raises(TypeError):
            operate(x, other)
    assert np.array_equal(x.value, [1, 2, 3])


def test_none_operand_raises(x: Any) -> None:
    with Failures("operators") as failures:
        for symbol, operate in ARITHMETIC.items():
            for pair in ((x, None), (None, x), (np.sum(x), None)):
                with failures.case(symbol), pytest.raises((TypeError, ValueError)):
                    operate(*pair)


def test_none_as_array_argument_raises(x: Any) -> None:
    for call in (
        lambda: np.where([True, False, True], x, None),
        lambda: np.where(True, np.sum(x), None),
        lambda: np.add(x, None),
        lambda: np.stack([x[0], None]),
        lambda: np.concatenate([x, None]),
    ):
        with pytest.raises((TypeError, ValueError)):
            call()


OBJECTS: dict[str, Any] = {
    "objects": np.array([1, 2, 3], dtype=object),
    "fractions": np.array([Fraction(1, 2)] * 3),
    "timedeltas": np.array([1, 2, 3], "m8[s]"),
    "strings": np.array(["a", "b", "c"]),
    "records": np.zeros(3, [("a", float)]),
}


@pytest.mark.parametrize("label", OBJECTS)
def test_object_array_is_right_or_raises(label: str, x: Any) -> None:
    """They are refused, or the derivative that passes them is right; it is never quietly zero."""
    other = OBJECTS[label]
    calls: dict[str, Callable[[], Any]] = {
        "mul": lambda: x * other, "rmul": lambda: other * x, "add ufunc": lambda: np.add(x, other),
        "maximum": lambda: np.maximum(x, other),
        "where": lambda: np.where([True, True, True], x, other), "concatenate": lambda: np.concatenate([x, other])[:3],
        "clip": lambda: np.clip(x, None, other), "dot": lambda: np.dot(x, other), "sum": lambda: np.sum(x * other),
        "matmul": lambda: x @ other, "stack": lambda: np.stack([x, other])[0], "outer": lambda: np.outer(x, other)[:, 0],
        "dtype": lambda: np.add(x, x, dtype=other.dtype),
    }  # fmt: skip
    for name, call in calls.items():
        try:
            result = np.sum(call().astype(float) * 1.0)
            slope = gradient(result)["x"]
        except (TypeError, ValueError):
            continue
        assert np.all(slope != 0), f"{name}: the derivative is lost without a word"


def test_conversion_to_non_numeric_dtype_raises(x: Any) -> None:
    for node in (x, x * 2, np.sum(x), cg.constant(1)):
        for dtype in (object, str, bytes, "m8[s]", "M8[s]", [("a", float)]):
            with pytest.raises(TypeError, match=r"a node holds numbers.*node\.value"):
                node.astype(dtype)


# --------------------------------------------------------------------------------------- lists and tuples


def test_sequence_is_an_operand(x: Any) -> None:
    for other in ([4, 5, 6], (4, 5, 6), [4.0, 5, True], range(4, 7), [np.float32(4), 5, 6], [np.array(4.0), 5, 6]):
        for symbol, operate in ARITHMETIC.items():
            if symbol == "divmod":
                continue
            expected = operate(x.value, np.asarray(other))
            assert np.array_equal(operate(x, other).value, expected), symbol
            assert operate(x, other).dtype == expected.dtype
            assert np.array_equal(operate(other, x).value, operate(np.asarray(other), x.value)), symbol
    assert np.array_equal(gradient(np.sum(x ** [2, 3, 1]))["x"], [2, 12, 1])
    assert np.array_equal(gradient(np.sum([4, 5, 6] / x))["x"], [-4, -1.25, -6 / 9])
    with pytest.raises(ValueError, match="broadcast"):
        x * [1, 2]
    with pytest.raises(ValueError, match="inhomogeneous"):
        x * [[1], [1, 2]]


def test_list_changed_later_is_kept(x: Any) -> None:
    factors = [4.0, 5.0, 6.0]
    y = x * factors
    factors[0] = 100.0
    factors.append(1.0)
    assert np.array_equal(gradient(np.sum(y))["x"], [4, 5, 6])
    index, rows, columns, axes = [0, 2], [0], [1], [2, 0, 1]
    m = cg.variable(np.arange(24.0).reshape(2, 3, 4), "m")
    picked, elements, turned = x[index], m[0][rows, columns], np.transpose(m, axes)
    index[0], rows[0], columns[0] = 1, 1, 3
    axes.reverse()
    assert np.array_equal(gradient(np.sum(picked))["x"], [1, 0, 1])
    assert np.array_equal(np.argwhere(gradient(np.sum(elements))["m"]), [[0, 0, 1]])
    assert np.array_equal(gradient(turned, adjoint=turned.value)["m"], m.value)
    assert x[[]].shape == (0,)


def test_empty_sequence_operand(x: Any) -> None:
    with pytest.raises(ValueError, match="broadcast"):
        x * []
    assert np.array_equal(np.concatenate([x, []]).value, [1, 2, 3])
    assert (cg.variable(1.0) * []).shape == (0,)
    with pytest.raises(ValueError, match="at least one"):
        np.concatenate([])


def test_python_sum_and_max_of_nodes(x: Any) -> None:
    total = sum(x)
    assert isinstance(total, cg.Node)
    assert np.array_equal(gradient(total)["x"], [1, 1, 1])
    assert np.array_equal(gradient(max(x))["x"], [0, 0, 1])
    assert np.array_equal(gradient(min(x, key=lambda v: -v))["x"], [0, 0, 1])
    assert [float(v) for v in sorted(x, reverse=True)] == [3, 2, 1]


def test_error_changes_neither_node_nor_peer(x: Any) -> None:
    """Neither the node, nor its operands, nor the partner."""
    y = x * 2
    partner = np.zeros(4)
    for call in (
        lambda: y + partner, lambda: np.add(y, 1, out=partner), lambda: y @ partner, lambda: np.concatenate([y, partner], axis=1),
        lambda: y["a"], lambda: y.reshape(7), lambda: np.sum(y, axis=3), lambda: y + "a", lambda: np.where(y, partner, partner),
    ):  # fmt: skip
        with pytest.raises((TypeError, ValueError, IndexError)):
            call()
    assert y.args == (x, 2)
    assert y.opname == "mul"
    assert np.array_equal(y.value, [2, 4, 6])
    assert not partner.any()
    assert np.array_equal(gradient(np.sum(y))["x"], [2, 2, 2])


class Scaled(np.ndarray):
    """Arrays with an operator of their own."""

    __array_priority__ = 1000

    def __mul__(self, other: Any) -> Any:
        return np.asarray(other) * np.asarray(self) * 100

    __rmul__ = __mul__


def test_subclass_with_own_operators_raises(x: Any) -> None:
    """Arrays with operators of their own have unknown semantics and raise; other subclasses are arrays."""
    for call in (lambda a: x * a, lambda a: np.multiply(x, a), lambda a: np.hypot(a, x)):
        with pytest.raises(TypeError, match="operators of its own"):
            call(np.ones(3).view(Scaled))
        assert np.array_equal(call(np.ones(3).view(np.recarray)), call(np.ones(3)))


LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "repeated": lambda a: np.broadcast_to(a[:1, 0], 300),
    "backwards": lambda a: a[0][::-1],
    "a column": lambda a: a[:, 1],
    "every second": lambda a: np.repeat(a[0], 2)[::2],
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_ufuncs_have_the_bits_of_numpy_in_every_layout(layout: str) -> None:
    """NumPy has different loops for different strides."""
    rng = np.random.default_rng(0)
    array, other = LAYOUTS[layout](rng.uniform(0.5, 2.0, (300, 300))), rng.uniform(0.5, 2.0, 300)
    with Failures(layout) as failures:
        for function in (np.power, np.arctan2, np.matmul, np.hypot, np.multiply, operator.pow):
            with failures.case(function.__name__):
                assert np.array_equal(function(cg.variable(other), array), function(other, array))
                assert np.array_equal(function(array, cg.variable(other)), function(array, other))
