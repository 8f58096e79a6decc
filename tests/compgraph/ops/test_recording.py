"""Recorded results equal NumPy's bit for bit; operations that cannot be recorded raise."""

from __future__ import annotations

import contextlib
import io
import itertools
import operator
import pickle
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

import autodiff as ad
import compgraph as cg
from autodiff.reverse import gradient
from compgraph import ops
from compgraph.protocols.functions import HANDLERS
from tests.support.arguments import DESCENDING
from tests.support.failures import Failures
from tests.support.for_each import for_each, sampled

pytestmark = [
    pytest.mark.portable,
    pytest.mark.filterwarnings("ignore:numpy.fix is deprecated:DeprecationWarning"),  # from NumPy 2.5 on
]

Array = np.ndarray[Any, Any]

FLOATING = ("float16", "float32", "float64", "longdouble", "complex64", "complex128")
INTEGRAL = ("bool", "int32", "int64", "uint8")
DTYPES = (*FLOATING, *INTEGRAL)

# ------------------------------------------------------------------------------------------- comparison


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Infinities and nans are among the data on purpose."""
    with np.errstate(all="ignore"):
        yield


def assert_bits(actual: Any, expected: Any, what: str) -> None:
    """Same shape, dtype, sign of zero, and value; nans are equal where both are nan."""
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.dtype == expected.dtype, f"{what}: dtype {actual.dtype}, NumPy gives {expected.dtype}"
    assert actual.shape == expected.shape, f"{what}: shape {actual.shape}, NumPy gives {expected.shape}"
    parts = [(actual, expected)]
    if actual.dtype.kind == "c":
        parts = [(actual.real, expected.real), (actual.imag, expected.imag)]
    for a, b in parts:
        assert np.array_equal(a, b, equal_nan=a.dtype.kind == "f"), f"{what}: {actual!r}, NumPy gives {expected!r}"
        if a.dtype.kind == "f":
            real = ~np.isnan(a)
            assert np.array_equal(np.signbit(a)[real], np.signbit(b)[real]), f"{what}: sign of zero"


def assert_recorded(actual: Any, expected: Any, what: str) -> None:
    """`actual` is what NumPy returned, as nodes with a graph."""
    if isinstance(expected, (tuple, list)):
        assert type(actual) is type(expected), f"{what}: {type(actual)}, NumPy gives {type(expected)}"
        assert len(actual) == len(expected), what
        for k, (a, b) in enumerate(zip(actual, expected, strict=True)):
            assert_recorded(a, b, f"{what}[{k}]")
        return
    assert isinstance(actual, cg.Node), f"{what}: a plain {type(actual)}"
    assert_bits(actual.raw_value, expected, what)
    assert_bits(np.asarray(actual), expected, f"{what} (its own memory)")
    assert actual.is_scalar == isinstance(expected, np.generic), f"{what}: NumPy gives a {type(expected).__name__}"


def outcome(call: Callable[..., Any], *args: Any) -> Any:
    """The result of a call, or the exception it raised."""
    try:
        return call(*args)
    except Exception as error:
        return error


def assert_same_outcome(actual: Any, expected: Any, what: str) -> None:
    """As `assert_recorded`; where NumPy raises, a node does so too, with an exception of the same kind."""
    if isinstance(expected, Exception):
        family = next(k for k in (TypeError, ValueError, IndexError, ArithmeticError, Exception) if isinstance(expected, k))
        assert isinstance(actual, family), f"{what}: {actual!r}, NumPy raises {expected!r}"
        return
    if isinstance(actual, Exception):
        raise AssertionError(f"{what}: raised where NumPy gives {expected!r}") from actual
    assert_recorded(actual, expected, what)


# ------------------------------------------------------------------------------------------------ data


def numbers(shape: tuple[int, ...], dtype: str, seed: int = 0) -> Array:
    """Numbers of a dtype: ordinary ones, integers, halves, zeros of both signs, infinities, nan, large and tiny ones."""
    kind = np.dtype(dtype).kind
    rng = np.random.default_rng([seed, len(shape), *shape])
    count = int(np.prod(shape))
    ordinary = rng.normal(size=count) * 3
    if kind in "biu":
        return (np.abs(ordinary) if kind == "u" else ordinary * 2).astype(dtype).reshape(shape)
    special = np.array([0.0, -0.0, 1.0, -1.0, 2.0, 0.5, -0.5, 3.0, np.inf, -np.inf, np.nan, 60000.0, 6e-8, -2.5, 1.5])
    chosen = np.where(rng.uniform(size=count) < 0.4, rng.choice(special, count), ordinary)
    if kind == "c":
        return (chosen + 1j * rng.permutation(ordinary)).astype(dtype).reshape(shape)
    return chosen.astype(dtype).reshape(shape)


def strided(dtype: str, seed: int) -> Array:
    return numbers((6, 8), dtype, seed)[::2, ::-2]


LAYOUTS: dict[str, Callable[[str, int], Array]] = {
    "0-d": lambda dtype, seed: numbers((), dtype, seed),
    "vector": lambda dtype, seed: numbers((4,), dtype, seed),
    "long vector": lambda dtype, seed: numbers((37,), dtype, seed),
    "matrix": lambda dtype, seed: numbers((3, 4), dtype, seed),
    "zero-size": lambda dtype, seed: numbers((0, 4), dtype, seed),
    "Fortran": lambda dtype, seed: np.asfortranarray(numbers((3, 4), dtype, seed)),
    "strided": strided,
    "three axes": lambda dtype, seed: numbers((2, 3, 4), dtype, seed),
    "other byte order": lambda dtype, seed: numbers((4,), dtype, seed).astype(np.dtype(dtype).newbyteorder()),
}


def node_of(array: Array) -> Any:
    """A node over the very memory of `array`, so that both see the same layout."""
    if array.dtype.kind in "fc":
        return cg.variable(array, copy=False)
    return cg.ConstantNode.wrap(array)


def scalar_node(array: Array) -> Any:
    """A node that NumPy would have as a scalar, with the value of a 0-d array."""
    return node_of(array)[()]


# ------------------------------------------------------------------------------------------- operators

BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "//": operator.floordiv,
    "%": operator.mod, "**": operator.pow, "@": operator.matmul, "divmod": divmod, "&": operator.and_,
    "|": operator.or_, "^": operator.xor, "<<": operator.lshift, ">>": operator.rshift,
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
UNARY: dict[str, Callable[[Any], Any]] = {"-": operator.neg, "+": operator.pos, "abs": abs, "~": operator.invert}


def test_operators_are_all_tested() -> None:
    special = {name for name in dir(np.ndarray) if name.startswith("__r") and f"__{name[3:]}" in dir(np.ndarray)}
    assert special == {f"__r{name}__" for name in ops.BINARY_OPERATORS}
    assert len(BINARY) == len(ops.BINARY_OPERATORS) + len(ops.COMPARISONS)
    assert len(UNARY) == len(ops.UNARY_OPERATORS)


def laid_out(layout: str) -> Callable[[str], Array]:
    return lambda dtype: LAYOUTS[layout](dtype, 7)


# The other operand of an operator, by the dtype of the node where it is a function.
PARTNERS: dict[str, Any] = {
    **{f"array, {layout}": laid_out(layout) for layout in ("0-d", "vector", "matrix", "zero-size", "strided")},
    "float32 array": lambda dtype: numbers((4,), "float32", 8),
    "float64 array": lambda dtype: numbers((3, 1), "float64", 8),
    "complex array": lambda dtype: numbers((4,), "complex64", 8),
    "int array": lambda dtype: numbers((4,), "int64", 8),
    "bool array": lambda dtype: numbers((4,), "bool", 8),
    "list": [1.5, -2.0, 0.0, 3.0],
    "nested list": [[1, 2, 3, 4], [0, 1, 0, 1], [2, 2, 2, 2]],
    "tuple": (2, 3, -1, 0),
    "int": 2, "zero": 0, "negative int": -3, "float": 2.5, "half": 0.5, "bool": True, "complex": 1 - 2j, "inf": np.inf,
    **{f"np.{t.__name__}": t(3) for t in (np.float16, np.float32, np.float64, np.longdouble, np.complex64, np.complex128)},
    **{f"np.{t.__name__}": t(2) for t in (np.int8, np.int64, np.uint16, np.bool_)},
    "element": lambda dtype: numbers((4,), dtype, 5)[1],
}  # fmt: skip


def partner_of(dtype: str, name: str) -> Any:
    partner = PARTNERS[name]
    return partner(dtype) if callable(partner) else partner


@pytest.mark.parametrize("symbol", BINARY)
@sampled
@for_each(("dtype", "partner"), itertools.product(DTYPES, PARTNERS))
@for_each("layout", [layout for layout in LAYOUTS if layout != "long vector"])
def test_operator_matches_numpy(symbol: str, dtype: str, partner: str, layout: str) -> None:
    check_operator(symbol, LAYOUTS[layout](dtype, 3), partner_of(dtype, partner))


def check_operator(symbol: str, array: Array, other: Any) -> None:
    """Compare an operator on a node with the operator on the array, with the partner on either side."""
    operate, node = BINARY[symbol], node_of(array)
    left, right = outcome(operate, array, other), outcome(operate, other, array)
    assert_same_outcome(outcome(operate, node, other), left, "node on the left")
    assert_same_outcome(outcome(operate, other, node), right, "node on the right")
    if isinstance(other, np.ndarray):
        assert_same_outcome(outcome(operate, node, node_of(other)), left, "two nodes")
    if array.ndim == 0:
        scalar = scalar_node(array)
        if symbol == "*" and isinstance(other, list | tuple) and array.dtype.kind in "iu":  # NumPy's integers repeat a sequence
            for result in (operate(scalar, other), operate(other, scalar)):
                assert (type(result), len(result)) == (type(other), len(other) * max(0, int(array)))
            return
        assert_same_outcome(outcome(operate, scalar, other), left, "scalar on the left")
        assert_same_outcome(outcome(operate, other, scalar), right, "scalar on the right")


@pytest.mark.parametrize("symbol", UNARY)
def test_unary_operator_matches_numpy(symbol: str) -> None:
    operate = UNARY[symbol]
    with Failures(symbol) as failures:
        for dtype, (layout, make) in itertools.product(DTYPES, LAYOUTS.items()):
            with failures.case(f"{dtype}, {layout}"):
                array = make(dtype, 3)
                expected = outcome(operate, array)
                assert_same_outcome(outcome(operate, node_of(array)), expected, "variable")
                assert_same_outcome(outcome(operate, cg.ConstantNode.wrap(array)), expected, "constant")
                if array.ndim == 0:
                    assert_same_outcome(outcome(operate, scalar_node(array)), expected, "scalar")


SPECIAL = (0.0, -0.0, 1.0, -1.0, 2.0, 1 / 3, np.inf, -np.inf, np.nan, 65000.0, -2.5)
NUMBERS: tuple[Any, ...] = (
    0, 1, -2, 3, 2**53 + 1, 2**70, 10**400, 0.0, -0.0, 0.1, 0.5, 1e308, np.inf, np.nan, True, False, 1j, 0j, complex(np.inf, 1),
    np.float64(0.1), np.float32(0.1), np.float16(3), np.int8(-2), np.uint64(2**63), np.longdouble(0.1), np.complex64(1j),
)  # fmt: skip


@pytest.mark.parametrize("symbol", BINARY)
@sampled
@for_each(("value", "other"), itertools.product(SPECIAL, NUMBERS))
@for_each("dtype", ["float32", "float64", "complex128"])
def test_operator_on_special_numbers_matches_numpy(symbol: str, value: float, other: Any, dtype: str) -> None:
    """Where Python's numbers, NumPy's scalars and arrays of no axes differ, a node is like the array; a power is as NumPy's."""
    operate, whole = BINARY[symbol], np.array(value).astype(dtype)
    pythons = isinstance(other, (int, float)) and not isinstance(other, np.generic)
    for node in (node_of(whole), scalar_node(whole)):
        what = "scalar" if node.is_scalar else "0-d"
        array = whole[()] if node.is_scalar and is_power_of_scalars(symbol, dtype) else whole
        like = whole if isinstance(other, complex) else array
        assert_same_outcome(outcome(operate, node, other), outcome(operate, like, other), f"{what} node on the left")
        like = array if pythons else whole  # NumPy's scalars, on the left, call the ufunc
        assert_same_outcome(outcome(operate, other, node), outcome(operate, other, like), f"{what} node on the right")


@pytest.mark.parametrize("symbol", BINARY)
@sampled
@for_each(("value", "second"), itertools.product(SPECIAL, SPECIAL))
@for_each("dtype", ["float32", "float64", "complex128"])
def test_operator_on_two_special_nodes(symbol: str, value: float, second: float, dtype: str) -> None:
    operate, left, right = BINARY[symbol], np.array(value).astype(dtype), np.array(second).astype(dtype)
    expected = outcome(operate, left[()], right[()] if is_power_of_scalars(symbol, dtype) else right)
    for node in (node_of(left), scalar_node(left)):
        assert_same_outcome(outcome(operate, node, scalar_node(right)), expected, "scalar" if node.is_scalar else "0-d")


def is_power_of_scalars(symbol: str, dtype: str) -> bool:
    """Whether NumPy computes scalars of a dtype otherwise than arrays."""
    return symbol == "**" and dtype != "complex128"


def test_python_scalars_are_weakly_typed() -> None:
    for dtype in ("float16", "float32", "complex64"):
        for node in (cg.variable(numbers((3,), dtype)), cg.variable(np.ones((), dtype)), cg.variable(np.ones((), dtype))[()]):
            for result in (node + 1.5, 2 * node, node**2, 2.0**node, node / 3, 1 - node, node * True):
                assert result.dtype == dtype
    assert (np.float64(2) * cg.variable(np.float32(1))).dtype == "float64"
    assert (cg.variable(np.float32(1))[()] * np.float64(2)).dtype == "float64"


def test_integer_scalar_repeats_sequence() -> None:
    scalar = scalar_node(np.array(2))
    for sequence in ([1.5, 2.0], (2, 3)):
        assert scalar * sequence == sequence * scalar == sequence * 2


def test_power_with_modulus_raises() -> None:
    with pytest.raises(TypeError):
        pow(cg.variable(2.0), 2, 5)


# -------------------------------------------------------------------------------------------- indexing

INDICES: dict[str, Any] = {
    "int": 1, "negative": -1, "NumPy int": np.int64(2), "slice": slice(0, 2), "reversed": slice(None, None, -1),
    "ellipsis": ..., "new axis": None, "pair": (1, 2), "int and slice": (1, slice(1, None)),
    "tuple of slices": (slice(1), slice(2)), "list": [0, 2, 0], "array": np.array([[0, 1], [2, 2]]),
    "two lists": ([0, 1], [1, 2]), "mask": "mask", "row mask": [True, False, True], "empty tuple": (), "nothing": [],
    "new axis inside": (slice(None), None, 1), "empty slice": slice(3, 0),
    "ellipsis and int": (..., 1), "array and slice": (np.array([2, 0]), slice(None, None, 2)), "True": True,
    "out of range": 9, "too many": (0, 0, 0), "float": 1.5,
}  # fmt: skip


def test_index_matches_numpy() -> None:
    with Failures("indices") as failures:
        for dtype, layout in itertools.product([*FLOATING, "int64"], ("matrix", "Fortran", "strided")):
            array = LAYOUTS[layout](dtype, 1)
            for label, raw_index in INDICES.items():
                with failures.case(f"{label}, {dtype}, {layout}"):
                    index = np.isfinite(array) if label == "mask" else raw_index
                    expected = outcome(operator.getitem, array, index)
                    assert_same_outcome(outcome(operator.getitem, node_of(array), index), expected, layout)


def test_index_of_scalar_node() -> None:
    for dtype in FLOATING:
        array = numbers((), dtype, 2)
        for index in ((), ..., None, (None, ...), 0, np.bool_(True)):
            expected = outcome(operator.getitem, array, index)
            assert_same_outcome(outcome(operator.getitem, node_of(array), index), expected, str(index))
            assert_same_outcome(outcome(operator.getitem, scalar_node(array), index), expected, str(index))


def test_nodes_as_indices() -> None:
    array = numbers((3, 4), "float64")
    x = node_of(array)
    row, column = cg.constant(2), cg.constant([1, 3])
    mask = x > 0.5
    cases: list[tuple[Any, Any]] = [
        (row, 2), ((row, 1), (2, 1)), (column[0], 1), ((slice(None), column), (slice(None), [1, 3])),
        ((row, column), (2, [1, 3])), (mask, array > 0.5), (slice(row, None), slice(2, None)), ([row, 0], [2, 0]),
    ]  # fmt: skip
    for with_nodes, plain in cases:
        assert_recorded(x[with_nodes], array[plain], str(plain))
    assert_recorded(cg.constant(array)[column - 1], array[[0, 2]], "constant")
    with pytest.raises(IndexError):
        x[x]


def test_iteration_and_unpacking_give_nodes() -> None:
    array = numbers((3, 4), "float32")
    rows = list(node_of(array))
    assert_recorded(rows, list(array), "rows")
    first, *rest = node_of(array[0])
    assert_recorded([first, *rest], list(array[0]), "elements")
    assert_recorded(list(reversed(node_of(array))), list(reversed(array)), "reversed")
    assert_recorded([a + b for a, b in zip(node_of(array[0]), array[1], strict=True)], list(array[0] + array[1]), "zip")
    with pytest.raises(TypeError):
        iter(cg.variable(1.0))
    assert len(node_of(array)) == 3


def test_contains_compares_values() -> None:
    x = cg.variable([1.0, 2.0, np.nan])
    assert 2.0 in x
    assert cg.constant(1) in x
    assert 3.0 not in x
    assert np.nan not in x
    assert "a" not in x


# ---------------------------------------------------------------------------------------------- ufuncs

UFUNCS: dict[str, Any] = {name: f for name in np.__all__ if isinstance(f := getattr(np, name), np.ufunc)}
RECORDED_UFUNCS = {name for name, f in UFUNCS.items() if f in ops.OPNAMES}


OPERANDS = [layout for layout in LAYOUTS if layout not in ("long vector", "three axes")]


@pytest.mark.parametrize("name", sorted(name for name in RECORDED_UFUNCS if UFUNCS[name].nin == 1))
@sampled
@for_each("dtype", DTYPES)
@for_each("layout", OPERANDS)
def test_unary_ufunc_matches_numpy(name: str, dtype: str, layout: str) -> None:
    check_ufunc(name, LAYOUTS[layout](dtype, 2))


@pytest.mark.parametrize("name", sorted(name for name in RECORDED_UFUNCS if UFUNCS[name].nin > 1))
@sampled
@for_each(
    ("dtype", "partner"),
    itertools.product(
        DTYPES, ["array, 0-d", "array, vector", "array, matrix", "list", "int", "float", "np.float32", "float64 array"]
    ),
)
@for_each("layout", OPERANDS)
def test_binary_ufunc_matches_numpy(name: str, dtype: str, partner: str, layout: str) -> None:
    check_ufunc(name, LAYOUTS[layout](dtype, 2), partner_of(dtype, partner))


def check_ufunc(name: str, array: Array, *rest: Any) -> None:
    """Compare a ufunc with a node among its operands with the ufunc of plain arrays."""
    ufunc, named = UFUNCS[name], getattr(cg, name)
    expected = outcome(ufunc, array, *rest)
    assert_same_outcome(outcome(ufunc, node_of(array), *rest), expected, "NumPy's name")
    assert_same_outcome(outcome(partial(named, name="given"), node_of(array), *rest), expected, "our name")
    if rest:
        reflected = outcome(ufunc, *rest, array)
        assert_same_outcome(outcome(ufunc, *rest, node_of(array)), reflected, "reflected")
        if isinstance(rest[0], np.ndarray):
            assert_same_outcome(outcome(ufunc, node_of(array), node_of(rest[0])), expected, "two nodes")
    if array.ndim == 0:
        assert_same_outcome(outcome(ufunc, scalar_node(array), *rest), expected, "scalar")


def test_ufuncs_are_all_recorded() -> None:
    assert set(UFUNCS) == RECORDED_UFUNCS


@pytest.mark.filterwarnings("ignore:'where' used without 'out':UserWarning")  # before NumPy 2.4.4 even where it is True
@pytest.mark.parametrize(
    "options",
    [{"dtype": "float32"}, {"dtype": "longdouble"}, {"order": "F"}, {"casting": "unsafe", "dtype": "float16"}, {"where": True}],
)
def test_ufunc_options_match_numpy(options: dict[str, Any]) -> None:
    a, b = numbers((3, 4), "float64"), numbers((4,), "float64", 1)
    for ufunc in (np.add, np.multiply, np.sin, np.exp, np.maximum, np.hypot):
        args = (a, b)[: ufunc.nin]
        expected = ufunc(*args, **options)
        result = ufunc(*map(node_of, args), **options)
        assert_recorded(result, expected, ufunc.__name__)
        assert result.flags.f_contiguous == expected.flags.f_contiguous
        assert_recorded(getattr(cg, ufunc.__name__)(*map(node_of, args), name="n", **options), expected, ufunc.__name__)


def test_ufunc_axes_match_numpy() -> None:
    array = numbers((3, 3), "float64")
    for ufunc in (np.matmul, np.vecdot, np.add):
        for options in (
            {"axes": [(1, 0), (1, 0), (0, 1)]},
            {"axes": [0, 1]},
            {"axes": (0, 1, ())},
            {"axis": 0},
            {"keepdims": True},
        ):

            def call(x: Any, ufunc: Any = ufunc, options: Any = options) -> Any:
                return ufunc(x, x, **options)

            assert_same_outcome(outcome(call, node_of(array)), outcome(call, array), f"{ufunc} {options}")


def test_ufunc_options_keep_piecewise_constant() -> None:
    x = cg.variable([1.5, 2.5], "x")
    for ufunc in (np.floor, np.rint, np.sign):
        assert np.array_equal(gradient(ufunc(x, dtype="float32") * x)["x"], ufunc(x.value, dtype="float32"))


def test_ufunc_where_raises() -> None:
    x = cg.variable([1.0, 2.0])
    with pytest.raises(TypeError, match=r"where=.*np\.where"):
        np.add(x, 1.0, where=np.array([True, False]))
    with pytest.raises(TypeError, match="where="):
        np.add(x, 1.0, where=x > 1)


REDUCING: dict[Any, str] = {
    np.add: "sum", np.multiply: "prod", np.maximum: "max", np.minimum: "min", np.logical_and: "all", np.logical_or: "any",
}  # fmt: skip


@pytest.mark.parametrize("ufunc", REDUCING, ids=lambda u: u.__name__)
def test_ufunc_reduce_matches_numpy(ufunc: Any) -> None:
    with Failures(f"{ufunc.__name__}.reduce") as failures:
        for dtype in (*FLOATING, "int32", "bool"):
            with failures.case(dtype):
                check_reduce(ufunc, dtype)


def check_reduce(ufunc: Any, dtype: str) -> None:
    """Compare a reduction of nodes, with each option and of small shapes, with that of arrays."""
    array = LAYOUTS["three axes"](dtype, 4)
    for options in (
        {},
        {"axis": None},
        {"axis": (0, 2)},
        {"axis": -1, "keepdims": True},
        {"where": np.isfinite(array), "initial": 1},
    ):
        if "initial" in options and ufunc in (np.logical_and, np.logical_or):
            continue
        expected = outcome(lambda x: ufunc.reduce(x, **options), array)  # noqa: B023
        assert_same_outcome(outcome(lambda x: ufunc.reduce(x, **options), node_of(array)), expected, str(options))  # noqa: B023
    for small in (numbers((), dtype, 1), numbers((0, 2), dtype, 1), numbers((4,), dtype, 1)):
        assert_same_outcome(outcome(ufunc.reduce, node_of(small)), outcome(ufunc.reduce, small), f"shape {small.shape}")
    assert ufunc.reduce(node_of(array)).opname == REDUCING[ufunc]


UFUNC_METHODS: dict[str, Callable[[Any], Any]] = {
    "accumulate": lambda x: np.add.accumulate(x),
    "outer": lambda x: np.add.outer(x, x),
    "outer with an array": lambda x: np.add.outer(np.ones(2), x),
    "reduceat": lambda x: np.add.reduceat(x, [0, 1]),
    "reduce of subtract": lambda x: np.subtract.reduce(x),
    "reduce of hypot": lambda x: np.hypot.reduce(x),
    "initial of logical_and": lambda x: np.logical_and.reduce(x, initial=True),
    "outer of comparison": lambda x: np.less.outer(x, x),
}


def test_ufunc_methods_are_recorded() -> None:
    array = np.array([1.0, 2.0, 3.0])
    with Failures("ufunc methods") as failures:
        for label, call in UFUNC_METHODS.items():
            with failures.case(label):
                assert_recorded(call(cg.variable(array)), call(array), label)


def test_ufunc_at_writes_into_writable_nodes() -> None:
    """See tests of `inplace` for its meaning; a constant, a variable that would lose a node, and a plain array refuse."""
    x, plain = cg.variable([1.0, 2.0, 3.0]), np.ones(3)
    y = x * 2
    np.add.at(y, [0], x[:1])
    assert np.array_equal(y.value, [3, 4, 6])
    for target, words in ((x, "cannot be written into variable"), (cg.constant([1.0, 2.0, 3.0]), "never changes")):
        with pytest.raises(TypeError, match=words):
            np.add.at(target, [0], y[:1])
        assert np.array_equal(target.value, [1, 2, 3])
    with pytest.raises(TypeError, match=r"np\.add\.at"):
        np.add.at(plain, [0, 1, 2], x)
    assert np.array_equal(plain, np.ones(3))


def test_frompyfunc_receives_elements() -> None:
    x = cg.variable([1.0, 2.0])
    first, second = np.frompyfunc(lambda a: a * a, 1, 1)(x)
    assert gradient(first + second)[x].tolist() == [2.0, 4.0]
    assert gradient(np.vectorize(lambda a: a * a)(x))[x].tolist() == [2.0, 4.0]  # calls the function on elements of the node


# ------------------------------------------------------------------------------------------- functions


SHAPES: dict[str, tuple[int, ...]] = {
    "m": (3, 4), "n": (4, 3), "v": (4,), "w": (4,), "u": (3,), "t": (2, 3, 4), "s": (), "e": (0, 3), "one": (1, 4), "q": (4, 4),
}  # fmt: skip


class Data:
    """Arrays of one dtype; records the names of the arrays used."""

    def __init__(self, dtype: str, layout: str, nodes: frozenset[str] = frozenset()) -> None:
        self._arrays: dict[str, Any] = {}
        self._dtype, self._layout, self._nodes = dtype, layout, nodes
        self.used: dict[str, None] = {}

    def __getattr__(self, name: str) -> Any:
        if name not in SHAPES:
            raise AttributeError(name)
        self.used[name] = None
        if name not in self._arrays:
            array = self.laid_out(numbers(SHAPES[name], self._dtype, 11 + len(name) + ord(name[0])))
            self._arrays[name] = node_of(array) if name in self._nodes else array
        return self._arrays[name]

    def laid_out(self, array: Array) -> Array:
        if self._layout == "Fortran":
            return np.asfortranarray(array)
        if self._layout == "strided" and array.ndim:
            wide = np.repeat(array, 2, axis=-1)
            return wide[..., ::2]
        return array

    @property
    def mask(self) -> Array:
        return np.arange(12).reshape(3, 4) % 3 > 0


Call = Callable[[Any, Any], Any]

FUNCTIONS: dict[str, list[Call]] = {
    "sum": [
        lambda f, a: f(a.m), lambda f, a: f(a.m, 0), lambda f, a: f(a.m, axis=-1, keepdims=True),
        lambda f, a: f(a.t, axis=(0, 2)),
        lambda f, a: f(a.m, axis=()), lambda f, a: f(a.s), lambda f, a: f(a.e), lambda f, a: f(a.e, axis=0),
        lambda f, a: f(a.m, dtype="complex128"), lambda f, a: f(a.m, 1, "longdouble"), lambda f, a: f(a.m, initial=2),
        lambda f, a: f(a.m, initial=a.m.max()), lambda f, a: f(a.m, where=a.mask), lambda f, a: f(a.m, where=a.m > 0),
        lambda f, a: f(a=a.m, axis=1), lambda f, a: f(a.m, 5),
    ],
    "mean": [
        lambda f, a: f(a.m), lambda f, a: f(a.m, 0), lambda f, a: f(a.t, (0, 1)), lambda f, a: f(a.m, keepdims=True),
        lambda f, a: f(a.m, dtype="complex128"), lambda f, a: f(a.m, where=a.mask), lambda f, a: f(a.s),
    ],
    "prod": [
        lambda f, a: f(a.m), lambda f, a: f(a.m, 0), lambda f, a: f(a.t, (0, 1)), lambda f, a: f(a.m, axis=1, keepdims=True),
        lambda f, a: f(a.m, initial=a.m[0, 0]), lambda f, a: f(a.m, where=a.mask), lambda f, a: f(a.e),
    ],
    "max": [
        lambda f, a: f(a.m), lambda f, a: f(a.m, 0), lambda f, a: f(a.t, (0, 1)), lambda f, a: f(a.m, axis=1, keepdims=True),
        lambda f, a: f(a.m, initial=1), lambda f, a: f(a.m, where=a.mask, initial=a.m[0, 0]), lambda f, a: f(a.s),
        lambda f, a: f(a.e), lambda f, a: f(a.e, initial=0),
    ],
    "min": [
        lambda f, a: f(a.m), lambda f, a: f(a.m, 0), lambda f, a: f(a.t, (0, 1)), lambda f, a: f(a.m, axis=1, keepdims=True),
        lambda f, a: f(a.m, initial=1), lambda f, a: f(a.m, where=a.mask, initial=a.m[0, 0]), lambda f, a: f(a.e),
    ],
    "var": [
        lambda f, a: f(a.m), lambda f, a: f(a.m, 0), lambda f, a: f(a.m, ddof=1), lambda f, a: f(a.m, correction=1, axis=1),
        lambda f, a: f(a.m, where=a.mask), lambda f, a: f(a.m, axis=0, mean=a.m[:1] * 2),
        lambda f, a: f(a.t, (0, 1), keepdims=True),
    ],
    "std": [
        lambda f, a: f(a.m), lambda f, a: f(a.m, 0), lambda f, a: f(a.m, ddof=1), lambda f, a: f(a.m, correction=1, axis=1),
        lambda f, a: f(a.m, where=a.mask), lambda f, a: f(a.m, axis=0, mean=a.m[:1] * 2),
        lambda f, a: f(a.t, (0, 1), keepdims=True),
    ],
    "clip": [
        lambda f, a: f(a.m, -1, 1), lambda f, a: f(a.m, None, a.v), lambda f, a: f(a.m, a.s, None), lambda f, a: f(a.m, a.v, a.w),
        lambda f, a: f(a.m, min=0), lambda f, a: f(a.m, max=a.v), lambda f, a: f(a.m, min=a.s, max=a.v), lambda f, a: f(a.m),
        lambda f, a: f(a.m, a_min=0, a_max=1), lambda f, a: f(a.s, 0, 1), lambda f, a: f(a.m, a_min=0),
        lambda f, a: f(a.m, a_min=0, min=1),
        lambda f, a: f(a.m, [-1, 0, 1, 2], None), lambda f, a: f(a.m, -1, 1, dtype="complex128"), lambda f, a: f(a.m, None, None),
    ],
    "where": [
        lambda f, a: f(a.mask, a.m, a.v), lambda f, a: f(a.m > 0, a.m, 0), lambda f, a: f(a.mask, 1.5, a.m),
        lambda f, a: f(True, a.s, a.v),
        lambda f, a: f(a.m), lambda f, a: f(a.m, a.m, a.v), lambda f, a: f([True, False, True, True], a.v, [1, 2, 3, 4]),
        lambda f, a: f(a.mask, a.m),
    ],
    "dot": [
        lambda f, a: f(a.m, a.n), lambda f, a: f(a.m, a.v), lambda f, a: f(a.v, a.w), lambda f, a: f(a.s, a.m),
        lambda f, a: f(a.m, 2),
        lambda f, a: f(a.t, a.n), lambda f, a: f(a.v, [1, 2, 3, 4]), lambda f, a: f(a.m, a.m), lambda f, a: f(a.m, b=a.n),
        lambda f, a: f(a.e, a.u), lambda f, a: f(a=a.m, b=a.v),
    ],
    "inner": [lambda f, a: f(a.m, a.v), lambda f, a: f(a.v, a.w), lambda f, a: f(a.m, a.t), lambda f, a: f(2, a.m),
    lambda f, a: f(a.s, a.s)],
    "outer": [lambda f, a: f(a.v, a.u), lambda f, a: f(a.m, a.v), lambda f, a: f(a.s, a.v), lambda f, a: f([1, 2], a.v)],
    "vdot": [lambda f, a: f(a.v, a.w), lambda f, a: f(a.m, a.m), lambda f, a: f(a.v, [1j, 2, 3, 4]), lambda f, a: f(a.v, a.u)],
    "tensordot": [
        lambda f, a: f(a.m, a.n, 1), lambda f, a: f(a.m, a.m), lambda f, a: f(a.m, a.n, axes=([0, 1], [1, 0])),
        lambda f, a: f(a.v, a.u, 0),
        lambda f, a: f(a.t, a.m, axes=([1, 2], [0, 1])),
    ],
    "copy": [lambda f, a: f(a.m), lambda f, a: f(a.m, "F"), lambda f, a: f(a.m, order="C"), lambda f, a: f(a.s)],
    "reshape": [
        lambda f, a: f(a.m, (4, 3)), lambda f, a: f(a.m, -1), lambda f, a: f(a.m, (2, -1), "F"), lambda f, a: f(a.m, shape=(12,)),
        lambda f, a: f(a.m, (6, 2), order="A"), lambda f, a: f(a.s, (1, 1)), lambda f, a: f(a.e, (3, 0)), lambda f, a: f(a.m, 5),
        lambda f, a: f(a.m, (12,), copy=True),
    ],
    "ravel": [lambda f, a: f(a.m), lambda f, a: f(a.m, "F"), lambda f, a: f(a.m, order="K"), lambda f, a: f(a.s)],
    "transpose": [lambda f, a: f(a.m), lambda f, a: f(a.t, (2, 0, 1)), lambda f, a: f(a.t, axes=[-1, 0, 1]), lambda f, a: f(a.v)],
    "permute_dims": [lambda f, a: f(a.t, (2, 0, 1))],
    "squeeze": [lambda f, a: f(a.one), lambda f, a: f(a.one, 0), lambda f, a: f(a.one, axis=(0,)), lambda f, a: f(a.m, 0),
    lambda f, a: f(a.m)],
    "expand_dims": [lambda f, a: f(a.m, 0), lambda f, a: f(a.m, (0, -1)), lambda f, a: f(a.s, 0), lambda f, a: f(a.m, axis=1)],
    "swapaxes": [lambda f, a: f(a.t, 0, 2), lambda f, a: f(a.t, axis1=-1, axis2=1)],
    "moveaxis": [lambda f, a: f(a.t, 0, -1), lambda f, a: f(a.t, [0, 1], [1, 2]), lambda f, a: f(a.t, source=2, destination=0)],
    "broadcast_to": [lambda f, a: f(a.v, (3, 4)), lambda f, a: f(a.s, (2, 2)), lambda f, a: f(a.one, shape=(2, 3, 4)),
    lambda f, a: f(a.m, 4)],
    "real": [lambda f, a: f(a.m), lambda f, a: f(a.s)],
    "imag": [lambda f, a: f(a.m), lambda f, a: f(a.s)],
    "concatenate": [
        lambda f, a: f((a.m, a.one)), lambda f, a: f([a.m, a.m], 1), lambda f, a: f((a.m, a.v), axis=None),
        lambda f, a: f((a.m, a.n), None),
        lambda f, a: f((a.v, [1, 2], a.w)), lambda f, a: f((a.m, a.one), dtype="complex128"), lambda f, a: f(a.t),
        lambda f, a: f(a.t, axis=1),
        lambda f, a: f([a.m, a.one], dtype="float32", casting="unsafe"), lambda f, a: f((a.m, a.v)), lambda f, a: f([]),
        lambda f, a: f((a.m,)), lambda f, a: f((a.s, a.s)),
    ],
    "concat": [lambda f, a: f((a.m, a.one))],
    "stack": [
        lambda f, a: f((a.v, a.w)), lambda f, a: f([a.v, a.w], 1), lambda f, a: f((a.m, a.m), axis=-1),
        lambda f, a: f(arrays=(a.v, a.w)),
        lambda f, a: f((a.s, 1.0, a.s)), lambda f, a: f((a.v, a.w), dtype="complex128"), lambda f, a: f((a.v, a.u)),
        lambda f, a: f(a.m),
    ],
    "einsum": [
        lambda f, a: f("ij,jk", a.m, a.n), lambda f, a: f("ij->", a.m), lambda f, a: f("ij,j->i", a.m, a.v),
        lambda f, a: f("ii", a.q),
        lambda f, a: f("...j,j->...", a.t, a.v), lambda f, a: f(a.m, [0, 1], a.n, [1, 2], [0, 2]), lambda f, a: f(a.m, [0, 1]),
        lambda f, a: f(a.t, [..., 1], a.v, [1], [...]), lambda f, a: f("ij,jk,k->i", a.m, a.n, a.u, optimize=True),
        lambda f, a: f("i,i", a.v, [1, 2, 3, 4]), lambda f, a: f("ij,jk", a.m, a.n, dtype="complex128"),
        lambda f, a: f("i,j", a.v, a.w, order="F"),
        lambda f, a: f("ij,jk", a.m, a.m), lambda f, a: f(a.m, [30, 2]), lambda f, a: f(a.q, [3, 3]),
    ],
    "argmax": [lambda f, a: f(a.m), lambda f, a: f(a.m, 0), lambda f, a: f(a.m, axis=1, keepdims=True), lambda f, a: f(a.e)],
    "argmin": [lambda f, a: f(a.m), lambda f, a: f(a.m, 0), lambda f, a: f(a.m, axis=1, keepdims=True)],
    "argsort": [lambda f, a: f(a.m), lambda f, a: f(a.m, 0), lambda f, a: f(a.m, axis=None, kind="stable"),
    lambda f, a: f(a.m, stable=True), lambda f, a: f(a.m, descending=True)],
    "all": [lambda f, a: f(a.m), lambda f, a: f(a.m, 0), lambda f, a: f(a.m, axis=1, keepdims=True),
    lambda f, a: f(a.m, where=a.mask)],
    "any": [lambda f, a: f(a.m), lambda f, a: f(a.m, 0), lambda f, a: f(a.m > 1, axis=1), lambda f, a: f(a.m, where=a.mask)],
    "round": [lambda f, a: f(a.m), lambda f, a: f(a.m, 1), lambda f, a: f(a.m, decimals=-1), lambda f, a: f(a.s, 2)],
    "around": [lambda f, a: f(a.m, 1)],
    "fix": [lambda f, a: f(a.m), lambda f, a: f(a.s)],
    "count_nonzero": [lambda f, a: f(a.m), lambda f, a: f(a.m, 0), lambda f, a: f(a.m, axis=1, keepdims=True)],
    "searchsorted": [
        lambda f, a: f(np.arange(5.0), a.m), lambda f, a: f([0, 1, 2], a.s, "right"),
        lambda f, a: f(a.v, a.m, sorter=np.argsort(a.v)),
        lambda f, a: f(a.v, [1.0, 2.0]),
    ],
    "isclose": [lambda f, a: f(a.v, a.w), lambda f, a: f(a.m, a.v, 0.5), lambda f, a: f(a.m, a.m, equal_nan=True),
    lambda f, a: f(a.m, 1, atol=1)],
    "nonzero": [lambda f, a: f(a.m), lambda f, a: f(a.s)],
    "flatnonzero": [lambda f, a: f(a.m)],
    "zeros_like": [lambda f, a: f(a.m), lambda f, a: f(a.m, "float32"), lambda f, a: f(a.m, shape=(2,)), lambda f, a: f(a.s)],
    "ones_like": [lambda f, a: f(a.m), lambda f, a: f(a.m, "float32"), lambda f, a: f(a.m, order="F"), lambda f, a: f(a.s)],
    "isposinf": [lambda f, a: f(a.m)],
    "isneginf": [lambda f, a: f(a.m)],
    "digitize": [lambda f, a: f(a.m, np.arange(3.0)), lambda f, a: f(a.m, [0, 1], right=True),
    lambda f, a: f([1.0, 2.0], abs(a.v)[:1])],
    "amax": [lambda f, a: f(a.m, 0)],
    "amin": [lambda f, a: f(a.m, 0)],
    "split": [lambda f, a: f(a.m, 3), lambda f, a: f(a.m, [1], 1), lambda f, a: f(a.m, 2, axis=1), lambda f, a: f(a.m, 5)],
    "array_split": [lambda f, a: f(a.m, 2), lambda f, a: f(a.v, 3), lambda f, a: f(a.m, [1, 3], axis=1)],
    "hsplit": [lambda f, a: f(a.m, 2), lambda f, a: f(a.v, [1])],
    "vsplit": [lambda f, a: f(a.m, 3)],
    "dsplit": [lambda f, a: f(a.t, 2)],
    "vstack": [lambda f, a: f((a.m, a.v)), lambda f, a: f([a.v, a.w]), lambda f, a: f([a.s, 2.0]), lambda f, a: f(a.t)],
    "hstack": [lambda f, a: f((a.m, a.m)), lambda f, a: f([a.v, a.u]), lambda f, a: f([a.s, 2.0])],
    "dstack": [lambda f, a: f((a.m, a.m)), lambda f, a: f([a.v, a.w])],
    "column_stack": [
        lambda f, a: f((a.v, a.w)), lambda f, a: f([a.m, a.u]), lambda f, a: f([a.s, a.s]), lambda f, a: f([a.v, [1, 2, 3, 4]]),
        lambda f, a: f(a.m), lambda f, a: f([a.v, a.u]),
    ],
    "unstack": [lambda f, a: f(a.m), lambda f, a: f(a.m, axis=1)],
    "matrix_transpose": [lambda f, a: f(a.t), lambda f, a: f(a.v)],
    "rollaxis": [lambda f, a: f(a.t, 2), lambda f, a: f(a.t, 0, 3)],
    "atleast_1d": [lambda f, a: f(a.s), lambda f, a: f(a.m), lambda f, a: f(a.s, a.v)],
    "atleast_2d": [lambda f, a: f(a.s), lambda f, a: f(a.v), lambda f, a: f(a.s, a.v)],
    "atleast_3d": [lambda f, a: f(a.s), lambda f, a: f(a.v), lambda f, a: f(a.m, a.t)],
    "broadcast_arrays": [
        lambda f, a: f(a.m, a.v), lambda f, a: f(a.s, a.u), lambda f, a: f(a.m), lambda f, a: f(a.v, [1, 2, 3, 4]),
        lambda f, a: f(a.m, a.n),
    ],
    "append": [lambda f, a: f(a.m, a.v), lambda f, a: f(a.m, a.one, 0), lambda f, a: f([1, 2], a.v), lambda f, a: f(a.v, 3.0)],
}  # fmt: skip

# Functions of submodules: without a version in compgraph.
SUBMODULES: dict[str, list[Call]] = {
    "linalg.outer": [lambda f, a: f(a.v, a.u), lambda f, a: f(a.m, a.v)],
    "linalg.matmul": [lambda f, a: f(a.m, a.n), lambda f, a: f(a.t, a.n), lambda f, a: f(a.v, 2.0)],
    "linalg.tensordot": [lambda f, a: f(a.m, a.n, axes=1), lambda f, a: f(a.m, a.m)],
    "linalg.matrix_transpose": [lambda f, a: f(a.t)],
}


def test_cases_cover_recorded_functions_only() -> None:
    """The rest is compared in `test_functions_accept_nodes_in_every_position`."""
    assert set(FUNCTIONS) <= set(ops.public_functions())


def check_function(function: Any, named: Any, calls: list[Call], dtype: str, layout: str, what: str) -> None:
    """Compare each call on plain arrays with the same call where any of the arrays are nodes."""
    for position, call in enumerate(calls):
        plain = Data(dtype, layout)
        expected = outcome(call, function, plain)
        used = list(plain.used)
        for count in range(1, len(used) + 1):
            for nodes in itertools.combinations(used, count):
                label = f"{what}, call {position}, nodes {nodes}"
                result = outcome(call, function, Data(dtype, layout, frozenset(nodes)))
                assert_function(result, expected, label)
        if named is None or not used:
            continue
        result = outcome(call, lambda *args, **kw: named(*args, name="given", **kw), Data(dtype, layout, frozenset(used)))
        assert_function(result, expected, f"cg.{what}, call {position}")
        if isinstance(result, cg.Node):
            assert result.name == "given", what
        elif isinstance(result, (tuple, list)):
            names = [getattr(node, "name", f"given_{k}") for k, node in enumerate(result)]
            assert names == [f"given_{k}" for k in range(len(result))], what


def assert_function(actual: Any, expected: Any, what: str) -> None:
    """Like `assert_same_outcome`; plain arrays among several arguments of ``atleast_1d`` and similar functions stay plain."""
    if isinstance(expected, (tuple, list)) and isinstance(actual, (tuple, list)):
        assert type(actual) is type(expected), what
        assert any(isinstance(part, cg.Node) for part in actual) or not actual, f"{what}: no node"
        for a, b in zip(actual, expected, strict=True):
            assert_bits(getattr(a, "raw_value", a), b, what)
        return
    assert_same_outcome(actual, expected, what)


@pytest.mark.parametrize("name", FUNCTIONS)
@sampled
@for_each("dtype", [*FLOATING, "int64", "bool"])  # a graph counts by integers, and decides by booleans
@for_each("layout", ["C", "Fortran", "strided"])
def test_function_matches_numpy(name: str, dtype: str, layout: str) -> None:
    check_function(getattr(np, name), getattr(cg, name), FUNCTIONS[name], dtype, layout, name)


@pytest.mark.parametrize("name", SUBMODULES)
def test_submodule_function_matches_numpy(name: str) -> None:
    function = operator.attrgetter(name)(np)
    with Failures(name) as failures:
        for dtype in FLOATING:
            with failures.case(dtype):
                check_function(function, None, SUBMODULES[name], dtype, "C", name)


def test_lists_of_nodes_keep_graph() -> None:
    x = cg.variable([1.0, 2.0, 3.0], "x")
    s = cg.variable(2.0, "s")
    calls: dict[str, Callable[[Any, Any], Any]] = {
        "operator": lambda x, s: x * [s, s, 1.0],
        "reflected operator": lambda x, s: (s, 1.0, s) * x,
        "comparison": lambda x, s: x < [s, s, s],
        "ufunc": lambda x, s: np.maximum(x, [s, 0.0, s]),
        "ufunc with options": lambda x, s: np.add(x, [s, 0.0, s], dtype="float64"),
        "matmul": lambda x, s: x @ [s, s, s],
        "dot": lambda x, s: np.dot(x, [s, s, s]),
        "where": lambda x, s: np.where([True, False, True], [s, s, s], x),
        "clip": lambda x, s: np.clip(x, [s, s, s], None),
        "concatenate": lambda x, s: np.concatenate([[s, 1.0], x]),
        "stack": lambda x, s: np.stack([[s, s, s], x]),
        "append": lambda x, s: np.append(x, [s]),
        "einsum": lambda x, s: np.einsum("i,i", x, [s, s, s]),
        "nested": lambda x, s: x - [[s, 0.0, s], [0.0, s, x[0]]],
        "column_stack": lambda x, s: np.column_stack([x, [s, s, s]]),
        "vstack": lambda x, s: np.vstack([x, [s, s, s]]),
        "hstack": lambda x, s: np.hstack(([s, 1.0], x)),
        "dstack": lambda x, s: np.dstack([x, [s, s, s]]),
        "broadcast_arrays": lambda x, s: np.broadcast_arrays(x, [s, s, s])[1],
        "atleast_2d": lambda x, s: np.atleast_2d(x, [s, s, s])[1],
        "array_split": lambda x, s: np.split(np.concatenate([x, [s]]), 2)[1],
    }
    for label, call in calls.items():
        result = call(x, s)
        assert_recorded(result, call(x.value, s.value), label)
        assert s in ancestors(result), f"{label}: the graph of the node in the list is lost"


def ancestors(node: Any) -> set[Any]:
    """Everything a node was computed from."""
    nodes, waiting = set(), [node]
    while waiting:
        current = waiting.pop()
        if current not in nodes:
            nodes.add(current)
            waiting += [current.args[p] for p in current.parent_argnums]
    return nodes


def test_option_given_as_node_raises() -> None:
    x, order = cg.variable([[1.0, 2.0]]), cg.constant(1.5)
    for call in (
        lambda: np.linalg.norm(x, ord=order),
        lambda: np.linalg.norm(x, order),
        lambda: np.isclose(x, x, rtol=cg.variable(0.1)),
    ):
        with pytest.raises(TypeError, match=r"cannot be a node; pass node\.value"):
            call()


def test_duplicate_or_unknown_argument_raises() -> None:
    x = cg.variable([1.0])
    calls: list[Callable[[], Any]] = [
        lambda: np.sum(x, 0, axis=0),  # type: ignore[call-overload]
        lambda: np.sum(x, nonsense=1),  # type: ignore[call-overload]
        lambda: np.transpose(x, None, 1),  # type: ignore[call-overload]
    ]
    for call in calls:
        with pytest.raises(TypeError):
            call()


def test_named_functions_without_nodes_are_numpys() -> None:
    a = numbers((3, 4), "float32")
    for name, calls in FUNCTIONS.items():
        for call in calls[:2]:
            expected = outcome(call, getattr(np, name), Data("float32", "C"))
            result = outcome(call, getattr(cg, name), Data("float32", "C"))
            assert type(result) is type(expected), name
            if not isinstance(expected, (tuple, list, Exception)):
                assert_bits(result, expected, name)
    assert cg.sum(a).__class__ is np.float32
    named = cg.exp(a, name="e")
    assert_recorded(named, np.exp(a), "exp")
    assert named.name == "e"
    with pytest.raises(AttributeError, match="nonsense"):
        _ = cg.nonsense


def test_named_function_of_plain_sequences() -> None:
    for name, arguments in {
        "concatenate": ([[1.0, 2.0], [3.0]],), "hstack": ([[1.0, 2.0], [3.0]],), "stack": ([[1.0, 2.0], [3.0, 4.0]],),
        "vstack": ([[1.0, 2.0], [3.0, 4.0]],), "column_stack": (([1.0, 2.0], [3.0, 4.0]),), "sum": ([1.0, 2.0],),
        "append": ([1.0], [2.0, 3.0]), "where": ([True, False], [1.0, 2.0], 0.0), "einsum": ("i,i", [1.0, 2.0], [3.0, 4.0]),
        "add": ([1, 2], 3), "max": ((1, 2),), "atleast_1d": (2.0,), "outer": ([1.0, 2.0], [3.0]), "clip": ([1.0, 5.0], 2.0, 3.0),
    }.items():  # fmt: skip
        result = getattr(cg, name)(*arguments, name="given")
        assert_recorded(result, getattr(np, name)(*arguments), name)
        assert result.name == "given"


def test_stop_gradient_of_sequence() -> None:
    x = cg.variable(2.0, "x")
    assert_recorded(cg.stop_gradient([x, 1.0]), np.array([2.0, 1.0]), "list")
    assert gradient(np.sum(cg.stop_gradient([x, 1.0]) * x))["x"] == 3


# -------------------------------------------------------------------------------- methods and attributes


def paired(x: Any) -> Any:
    """The complex dtype of pairs of real numbers, or the dtype of the parts; the same dtype if neither exists."""
    kind = {"f": "c", "c": "f"}.get(x.dtype.kind)
    size = x.dtype.itemsize * 2 if kind == "c" else x.dtype.itemsize // 2
    return np.dtype(f"{kind}{size}") if kind and size > 4 - (kind == "f") else x.dtype


METHODS: dict[str, list[Callable[[Any], Any]]] = {
    "sum": [lambda x: x.sum(), lambda x: x.sum(0), lambda x: x.sum(axis=1, keepdims=True), lambda x: x.sum(-1, "complex128")],
    "mean": [lambda x: x.mean(), lambda x: x.mean(0), lambda x: x.mean(axis=1, keepdims=True)],
    "prod": [lambda x: x.prod(), lambda x: x.prod(0), lambda x: x.prod(axis=1, initial=2)],
    "max": [lambda x: x.max(), lambda x: x.max(0), lambda x: x.max(axis=1, keepdims=True), lambda x: x.max(initial=0)],
    "min": [lambda x: x.min(), lambda x: x.min(0), lambda x: x.min(axis=1, keepdims=True)],
    "var": [lambda x: x.var(), lambda x: x.var(0), lambda x: x.var(axis=1, ddof=1)],
    "std": [lambda x: x.std(), lambda x: x.std(0), lambda x: x.std(axis=1, ddof=1)],
    "dot": [lambda x: x.dot(x.T), lambda x: x.dot(2.0), lambda x: x.dot([1, 2, 3, 4])],
    "ravel": [lambda x: x.ravel(), lambda x: x.ravel("F"), lambda x: x.ravel(order="K")],
    "squeeze": [lambda x: x.squeeze(), lambda x: x[:1].squeeze(0), lambda x: x[None].squeeze(axis=(0,))],
    "swapaxes": [lambda x: x.swapaxes(0, 1)],
    "clip": [lambda x: x.clip(-1, 1), lambda x: x.clip(min=0), lambda x: x.clip(max=1), lambda x: x.clip(None, 2),
    lambda x: x.clip(0)],
    "argmax": [lambda x: x.argmax(), lambda x: x.argmax(0), lambda x: x.argmax(axis=1, keepdims=True)],
    "argmin": [lambda x: x.argmin(), lambda x: x.argmin(0)],
    "argsort": [lambda x: x.argsort(), lambda x: x.argsort(0), lambda x: x.argsort(axis=None, kind="stable"),
    lambda x: x.argsort(axis=0, **DESCENDING)],
    "all": [lambda x: x.all(), lambda x: x.all(0), lambda x: x.all(axis=1, keepdims=True)],
    "any": [lambda x: x.any(), lambda x: x.any(0)],
    "round": [lambda x: x.round(), lambda x: x.round(1), lambda x: x.round(decimals=-1)],
    "nonzero": [lambda x: x.nonzero()],
    "searchsorted": [lambda x: x.ravel().searchsorted(1.0), lambda x: x[0].searchsorted([0, 1], "right")],
    "conj": [lambda x: x.conj()],
    "conjugate": [lambda x: x.conjugate()],
    "reshape": [
        lambda x: x.reshape(4, 3), lambda x: x.reshape((2, 6)), lambda x: x.reshape(-1), lambda x: x.reshape(4, 3, order="F"),
        lambda x: x.reshape([12, 1]), lambda x: x.reshape((-1, 2), copy=True), lambda x: x.reshape(5, 5),
        lambda x: x[:1, :1].reshape(()),
    ],
    "transpose": [lambda x: x.transpose(), lambda x: x.transpose(1, 0), lambda x: x.transpose((1, 0)),
    lambda x: x.transpose(None)],
    "astype": [
        lambda x: x.astype("float32"), lambda x: x.astype(int), lambda x: x.astype(complex), lambda x: x.astype(bool),
        lambda x: x.astype("float64", order="F"), lambda x: x.astype("float64", copy=False),
        lambda x: x.astype("int8", casting="safe"),
        lambda x: x.astype(">f8"), lambda x: x.astype("float16", "C", "unsafe", False, True),
    ],
    "copy": [lambda x: x.copy(), lambda x: x.copy("F"), lambda x: x.copy(order="K")],
    "flatten": [lambda x: x.flatten(), lambda x: x.flatten("F"), lambda x: x.flatten(order="A")],
    "view": [
        lambda x: x.view(), lambda x: x.view(x.dtype),
        lambda x: x[:, :2].view(paired(x)), lambda x: x[..., :1].view(paired(x)), lambda x: x[:0].view(paired(x)),
        lambda x: x[0].view(paired(x)),
    ],
    "T": [lambda x: x.T, lambda x: x[0].T],
    "mT": [lambda x: x.mT, lambda x: x[0].mT],
    "real": [lambda x: x.real, lambda x: x[0].real],
    "imag": [lambda x: x.imag, lambda x: x[0].imag],
    "__copy__": [lambda x: x.__copy__()],
    "cumsum": [lambda x: x.cumsum(), lambda x: x.cumsum(0), lambda x: x.cumsum(axis=1)],
    "cumprod": [lambda x: x.cumprod(), lambda x: x.cumprod(0), lambda x: x.cumprod(axis=1)],
    "diagonal": [lambda x: x.diagonal(), lambda x: x.diagonal(1), lambda x: x.diagonal(axis1=1, axis2=0)],
    "trace": [lambda x: x.trace(), lambda x: x.trace(1), lambda x: x.trace(offset=-1)],
    "take": [lambda x: x.take([0, 2]), lambda x: x.take(1, axis=1), lambda x: x.take([[0, 1]], 0), lambda x: x.take(99)],
    "repeat": [lambda x: x.repeat(2), lambda x: x.repeat([1, 0, 2], axis=0)],
    "compress": [lambda x: x.compress([True, False, True], axis=0), lambda x: x.compress([False, True])],
    "argpartition": [lambda x: x.argpartition(1), lambda x: x.argpartition(1, axis=0)],
    "choose": [lambda x: (x > 0).choose([x, -x]), lambda x: (x > 0).choose([1, 2])],
}  # fmt: skip

# Attributes that say something about the memory, as plain values.
UNSUPPORTED_METHODS = set(ops.UNSUPPORTED_METHODS) - set(ops.METHODS)
PLAIN_ATTRIBUTES = {
    "base",
    "ctypes",
    "data",
    "device",
    "dtype",
    "flags",
    "itemsize",
    "nbytes",
    "ndim",
    "shape",
    "size",
    "strides",
}
UNSUPPORTED_ATTRIBUTES = {"flat"}
SPECIAL_METHODS = {name for name in dir(np.ndarray) if name.startswith("__")}


def test_ndarray_attributes_all_have_policy() -> None:
    policies: list[set[str]] = [
        set(METHODS) - UNSUPPORTED_METHODS, set(ops.PLAIN_METHODS), set(ops.WRITING_METHODS), UNSUPPORTED_METHODS,
        PLAIN_ATTRIBUTES, UNSUPPORTED_ATTRIBUTES,
    ]  # fmt: skip
    ordinary = {name for name in dir(np.ndarray) if name not in SPECIAL_METHODS}
    assert set().union(*policies) - SPECIAL_METHODS == ordinary
    assert sum(map(len, policies)) == len(set().union(*policies)), "a name is in two tables"


def test_method_matches_numpy() -> None:
    calls = [(name, k, call) for name in METHODS if name not in UNSUPPORTED_METHODS for k, call in enumerate(METHODS[name])]
    with Failures("methods") as failures:
        for dtype, layout in itertools.product([*FLOATING, "int64", "bool"], ("matrix", "Fortran", "strided")):
            array = LAYOUTS[layout](dtype, 6)
            for name, k, call in calls:
                with failures.case(f"{name}, call {k}, {dtype}, {layout}"):
                    expected, result = outcome(call, array), outcome(call, node_of(array))
                    assert_same_outcome(result, expected, name)
                    if isinstance(expected, np.ndarray) and name != "choose":  # made of other functions: the layout may differ
                        assert result.flags.f_contiguous == expected.flags.f_contiguous
                        assert result.flags.c_contiguous == expected.flags.c_contiguous


def test_scalar_method_matches_numpy() -> None:
    of_axes = {"dot", "searchsorted", "swapaxes", "reshape", "astype", "compress", "argpartition"}
    with Failures("methods of scalars") as failures:
        for dtype, name in itertools.product(FLOATING, sorted(set(METHODS) - UNSUPPORTED_METHODS - of_axes)):
            with failures.case(f"{name}, {dtype}"):
                array, call = numbers((), dtype, 3), METHODS[name][0]
                expected = outcome(call, array)
                assert_same_outcome(outcome(call, node_of(array)), expected, f"{name} of a 0-d array")
                result = outcome(call, scalar_node(array))
                assert isinstance(result, Exception) == isinstance(expected, Exception), name
                if isinstance(result, cg.Node):
                    assert_bits(result.raw_value, expected, f"{name} of a scalar")


def test_unsupported_method_raises() -> None:
    nodes = (cg.variable([[1.0, 2.0]]), cg.variable([1.0]) * 2, cg.constant([1, 2]), cg.variable(1.0)[()])
    with Failures("methods") as failures:
        for name, node in itertools.product(sorted(UNSUPPORTED_METHODS), nodes):
            with failures.case(f"{name}, {node!r}"), pytest.raises(TypeError, match=rf"{name} is not supported on nodes"):
                getattr(node, name)()


def test_dtype_none_is_numpys_default() -> None:
    x = cg.variable([1.0, 2.0])
    assert np.array_equal(x.view(None), x.value.view(None))
    assert np.array_equal(x.astype(complex).view(None), [1.0, 0.0, 2.0, 0.0])


def test_unsupported_views_raise() -> None:
    for node in (cg.variable([1.0, 2.0]), cg.variable([1.0, 2.0]) * 2, cg.constant([1, 2])):
        for dtype in ("int32", "complex64", "uint8", ">f8", ">c16", "V8"):
            with pytest.raises(TypeError, match="only real and complex dtypes of the same precision"):
                node.view(dtype)
        for call in (lambda x: x.view(np.recarray), lambda x: x.view(type=np.matrix), lambda x: x.view(np.matrix)):
            with pytest.raises(TypeError, match="would lose the graph"):
                call(node)


def test_view_as_ndarray_is_recorded() -> None:
    for call in (lambda x: x.view(np.ndarray), lambda x: x.view(type=np.ndarray)):
        x = cg.variable([1.0, 2.0])
        (slope,) = gradient(np.sum(call(x) * [3.0, 5.0]), x).values()
        np.testing.assert_array_equal(slope, [3.0, 5.0])


def test_flat_keeps_graph() -> None:
    """Conversions that would lose the graph raise. Reads and writes are tested in `inplace`."""
    x = cg.variable([[1.0, 2.0], [3.0, 4.0]])
    assert isinstance(x.flat[1], cg.Node)
    assert all(isinstance(element, cg.Node) for element in x.flat)
    for take in (np.array, np.asarray, lambda flat: np.ones((2, 2)).__setitem__(..., flat)):
        with pytest.raises(TypeError, match=r"x\.flat of a node cannot be converted to an array.*ravel"):
            take(x.flat)


def test_plain_attributes_match_numpy() -> None:
    with Failures("attributes") as failures:
        for name, (layout, make) in itertools.product(sorted(PLAIN_ATTRIBUTES - {"data", "ctypes", "flags"}), LAYOUTS.items()):
            with failures.case(f"{name}, {layout}"):
                array = make("float32", 1)
                result = getattr(node_of(array), name)
                assert not isinstance(result, cg.Node)
                if name != "base":
                    assert result == getattr(array, name)


def test_plain_methods_match_numpy(tmp_path: Any) -> None:
    array = numbers((3, 4), "float64")
    x = node_of(array)
    assert x.item(1) == array.item(1)
    assert x.item((1, 2)) == array.item(1, 2)
    assert type(x.item(0)) is float
    assert np.array_equal(x.tolist(), array.tolist(), equal_nan=True)
    assert type(cg.variable(1.0).tolist()) is float
    assert x.tobytes() == array.tobytes()
    assert x.tobytes("F") == array.tobytes("F")
    x.tofile(tmp_path / "x")
    assert np.array_equal(np.fromfile(tmp_path / "x"), array.ravel(), equal_nan=True)
    assert np.array_equal(pickle.loads(x.dumps()).value, array, equal_nan=True)


def test_plain_functions_match_numpy() -> None:
    array = numbers((3, 4), "float32")
    x = node_of(array)
    calls: list[Callable[[Any], Any]] = [
        np.array2string, np.array_repr, np.array_str, np.shape, np.ndim, np.size, np.result_type, np.common_type,
        np.min_scalar_type, np.iscomplexobj, np.isrealobj, lambda x: np.can_cast(x.dtype, "float64"),
        lambda x: np.may_share_memory(x, x),
        lambda x: np.shares_memory(x, x[0]), lambda x: np.allclose(x, x, equal_nan=True), lambda x: np.array_equal(x, x),
        lambda x: np.array_equiv(x, x[0]), lambda x: np.einsum_path("ij,ij", x, x)[0], lambda x: np.size(x, 1),
        lambda x: np.array_equal([x, x], [x, x], equal_nan=True), lambda x: np.result_type(x, 2.0, np.float64),
    ]  # fmt: skip
    for call in calls:
        result, expected = call(x), call(array)
        assert type(result) is type(expected)
        assert result == expected
    assert isinstance(np.empty_like(x), cg.Node)  # its values are arbitrary, but nodes may be written into it
    assert np.empty_like(x, shape=(2,)).shape == (2,)
    buffer = io.BytesIO()
    np.savez(buffer, x, second=x)
    buffer.seek(0)
    with np.load(buffer) as loaded:
        assert np.array_equal(loaded["second"], array, equal_nan=True)
        assert np.array_equal(loaded["arr_0"], array, equal_nan=True)
    text = io.StringIO()
    np.savetxt(text, x)
    assert text.getvalue().count("\n") == 3
    buffer = io.BytesIO()
    np.save(buffer, x)
    buffer.seek(0)
    assert np.array_equal(np.load(buffer), array, equal_nan=True)


# ------------------------------------------------------------------------------------------- everything

MODULES = {"np": np, "np.linalg": np.linalg, "np.fft": np.fft}
EVERYTHING: dict[str, Any] = {
    f"{prefix}.{name}": f
    for prefix, module in MODULES.items()
    for name in module.__all__
    if callable(f := getattr(module, name)) and not isinstance(f, type)
}
# They change or print settings, or read and write files.
NOT_CALLED = {
    f"np.{name}"
    for name in (
        "fromfile", "genfromtxt", "getbufsize", "info", "load", "loadtxt", "save", "savetxt", "savez", "savez_compressed",
        "set_printoptions", "setbufsize", "seterr", "seterrcall", "show_config", "show_runtime", "test", "printoptions",
        "fromregex",
    )
}  # fmt: skip
PLAIN_NAMES = {f"np.{f.__name__}" for f in ops.PLAIN_FUNCTIONS}

POSITIONS: dict[str, Callable[..., Any]] = {
    "matrix": lambda f, a, m, v, s: f(m),
    "vector": lambda f, a, m, v, s: f(v),
    "scalar": lambda f, a, m, v, s: f(s),
    "two matrices": lambda f, a, m, v, s: f(m, m),
    "two vectors": lambda f, a, m, v, s: f(v, v),
    "two scalars": lambda f, a, m, v, s: f(s, s),
    "three vectors": lambda f, a, m, v, s: f(v, v, v),
    "three scalars": lambda f, a, m, v, s: f(s, s, s),
    "matrix and vector": lambda f, a, m, v, s: f(m, v[:2]),
    "matrix and 0": lambda f, a, m, v, s: f(m, 0),
    "vector and 1": lambda f, a, m, v, s: f(v, 1),
    "matrix and shape": lambda f, a, m, v, s: f(m, (2, 2)),
    "matrix and two numbers": lambda f, a, m, v, s: f(m, 0, 1),
    "plain matrix first": lambda f, a, m, v, s: f(a, m),
    "plain vector first": lambda f, a, m, v, s: f(a[0], v[:2]),
    "plain vectors, then one": lambda f, a, m, v, s: f(a[0], a[1], v[:2]),
    "mask first": lambda f, a, m, v, s: f(a > 1, m),
    "mask and two": lambda f, a, m, v, s: f(a > 1, m, m),
    "indices second": lambda f, a, m, v, s: f(m, np.array([0, 1])),
    "indices for each": lambda f, a, m, v, s: f(m, np.array([[0, 1], [1, 0]]), 1),
    "indices, values and axis": lambda f, a, m, v, s: f(m, np.array([[0, 1], [1, 0]]), m, 1),
    "sequence of vectors": lambda f, a, m, v, s: f((v, v)),
    "function first": lambda f, a, m, v, s: f(np.sum, 0, m),
    "functions of masks": lambda f, a, m, v, s: f(v, [np.asarray(v) > 1], [1.0]),
    "masks and choices": lambda f, a, m, v, s: f([np.asarray(v) > 1, np.asarray(v) < 0], [v, v]),
    "function, matrix, axes": lambda f, a, m, v, s: f(np.sum, m, [0]),
    "dtype second": lambda f, a, m, v, s: f(m, np.float32),
    "subscripts first": lambda f, a, m, v, s: f("ij", m),
    "wide": lambda f, a, m, v, s: f(m, ((1, 1), (0, 2))),
}


def loss(result: Any) -> str | None:
    """The fault of a result, if any: a floating array without a graph, or a node without a history."""
    if isinstance(result, (tuple, list)):
        return next((wrong for part in result if (wrong := loss(part))), None)
    if isinstance(result, cg.Node):
        try:
            assert result.raw_value is not None
        except TypeError:
            return "a node without history"
        return None
    dtype = getattr(result, "dtype", None)
    if isinstance(result, (np.ndarray, np.generic)) and dtype is not None and dtype.kind in "fc":
        return f"a plain {type(result).__name__} of dtype {dtype}"
    return "a plain float" if isinstance(result, (float, complex)) else None


class ProtocolCallCounter:
    """Count the calls of a node's protocol methods by NumPy."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.times = 0
        for protocol in ("__array_function__", "__array_ufunc__"):
            monkeypatch.setattr(cg.Node, protocol, self.counting(getattr(cg.Node, protocol)))

    def counting(self, answer: Callable[..., Any]) -> Callable[..., Any]:
        def asked(node: Any, *args: Any, **kwargs: Any) -> Any:
            self.times += 1
            return answer(node, *args, **kwargs)

        return asked


def inputs(kind: str) -> tuple[Any, Any, Any]:
    """A matrix, a vector and a number as nodes of a kind."""
    matrix, vector, scalar = np.array([[4.0, 1.0], [1.0, 3.0]]), np.array([1.0, 2.0, 3.0]), np.array(2.0)
    if kind == "variable":
        return cg.variable(matrix), cg.variable(vector), cg.variable(scalar)
    if kind == "constant":
        return cg.constant(matrix), cg.constant(vector), cg.constant(scalar)
    if kind == "complex":
        return tuple(cg.variable(a + 1j)[...] for a in (matrix, vector, scalar))  # type: ignore[return-value]
    return cg.variable(matrix) * 1.0, cg.variable(vector) * 1.0, cg.variable(scalar) * 1.0


# np.vecdot(v, v, v), whose out= is its operand: each product reads elements that the previous one overwrote.
# np.dot with a 0-d out= returns a scalar, not out; np.rot90(m, k) computes k %= 4 in place.
SLIPS_OF_NUMPY = {("np.vecdot", "three vectors"), ("np.dot", "three scalars"), *[("np.rot90", label) for label in POSITIONS]}
# Both results are written into one array, where NumPy keeps sometimes the first and sometimes the second: raises.
SLIPS_OF_NUMPY |= {("np.modf", "three vectors"), ("np.modf", "three scalars")}
# Before NumPy 2.4.5, matrix products whose out= is an operand read elements already overwritten.
_matrix = np.eye(2)
if not np.array_equal(np.vecmat(np.eye(2, dtype=bool), _matrix, _matrix), np.eye(2)):
    SLIPS_OF_NUMPY |= {("np.vecmat", "mask and two"), ("np.matvec", "mask and two")}
# Some of their arguments stay plain and are returned unchanged; or the result has positions, not numbers.
PARTLY_PLAIN = {f"np.{name}" for name in ("atleast_1d", "atleast_2d", "atleast_3d", "broadcast_arrays", "meshgrid")}
PARTLY_PLAIN |= {"np.modf", "np.divmod"}  # of plain numbers, with out= for one of two results
PARTLY_PLAIN |= {"np.real_if_close"}  # only its tolerance is a node
UNUSED = {("np.trapezoid", "plain vectors, then one")}  # dx, which the points in x replace


KINDS = ("operation", "variable", "constant", "complex")
CALLED = {name: function for name, function in EVERYTHING.items() if name not in NOT_CALLED and name not in PLAIN_NAMES}


@pytest.mark.filterwarnings("ignore")
@sampled
@for_each(("position", "name"), itertools.product(POSITIONS, CALLED))
@for_each("kind", KINDS)
def test_functions_never_lose_graph(position: str, name: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every function, with nodes as any argument: calls that NumPy dispatches are recorded, or raise.

    Plain arrays stay unchanged, and nodes are written as NumPy writes arrays.
    """
    protocol_calls = ProtocolCallCounter(monkeypatch)
    function, call, array = CALLED[name], POSITIONS[position], np.array([[4.0, 1.0], [1.0, 3.0]])
    nodes, before, plain = inputs(kind), inputs(kind), array.copy()
    result = outcome(call, function, plain, *nodes)
    is_plain = name in PARTLY_PLAIN or (name, position) in UNUSED
    if protocol_calls.times:
        assert is_plain or not loss(result)
        assert np.array_equal(plain, array), "it wrote into a plain array"
    assert not isinstance(result, RecursionError)
    written = [n.value.copy() for n in before]
    if not isinstance(result, Exception):
        outcome(call, function, array.copy(), *written)
    if (name, position) not in SLIPS_OF_NUMPY:
        for node, expected in zip(nodes, written, strict=True):
            assert np.array_equal(node.value, expected, equal_nan=True)


# They take integers, or three axes: no position fits.
CONVERSIONS = {"np.asanyarray", "np.require"}  # see `test_functions_without_dispatch_give_plain_or_unusable`
OF_OTHER_SHAPES = {
    f"np.{name}"
    for name in ("dsplit", "packbits", "searchsorted", "unpackbits", "unravel_index", "bincount", "polyfit", "linalg.tensorinv")
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["variable", "complex"])
def test_functions_accept_nodes_in_every_position(kind: str) -> None:
    """Recorded results equal NumPy's bit for bit, and every recorded operation occurs in some case."""
    recorded = set()
    left_out = {*CONVERSIONS, "np.empty_like"}  # what empty_like holds is arbitrary
    cases = itertools.product([(name, f) for name, f in CALLED.items() if name not in left_out], POSITIONS.items())
    with Failures(f"functions of {kind} nodes") as failures:
        for (name, function), (label, position) in cases:
            with failures.case(f"{name}, {label}"):
                nodes = inputs(kind)
                expected = outcome(position, function, np.array([[4.0, 1.0], [1.0, 3.0]]), *[n.value.copy() for n in nodes])
                result = outcome(position, function, np.array([[4.0, 1.0], [1.0, 3.0]]), *nodes)
                if any(isinstance(part, cg.Node) for part in (result if isinstance(result, (tuple, list)) else [result])):
                    recorded.add(name)
                    if (name, label) not in SLIPS_OF_NUMPY:
                        assert_function(result, expected, name)
    if kind == "variable":
        integers = {name for name, f in UFUNCS.items() if all(set(t) <= set("?bBhHiIlLqQnNpPO->mM") for t in f.types)}
        missing = {f"np.{name}" for name in set(ops.public_functions()) - integers} - recorded
        assert missing - {"np.empty_like", "np.fill_diagonal", "np.put_along_axis"} <= OF_OTHER_SHAPES


UNSUPPORTED = {
    name: f
    for name, f in EVERYTHING.items()
    if hasattr(f, "_implementation") and f not in HANDLERS and f not in ops.ALIASES and name not in NOT_CALLED
}


@pytest.mark.filterwarnings("ignore")
def test_unsupported_function_raises() -> None:
    """The error has the function's own name, and what to use instead."""
    with Failures("functions") as failures:
        for name, function in UNSUPPORTED.items():
            with failures.case(name):
                errors = [outcome(call, function, np.ones((2, 2)), *inputs("operation")) for call in POSITIONS.values()]
                refusals = [str(e) for e in errors if isinstance(e, TypeError) and "not supported on nodes" in str(e)]
                full_name = f"{function.__module__}.{function.__name__}".replace("numpy", "np")
                assert any(f"{full_name} is not supported on nodes" in text and "use " in text for text in refusals)


def test_functions_without_dispatch_give_plain_or_unusable() -> None:
    """The documented limit: conversions return plain arrays, or nodes that raise when used."""
    x = cg.variable([1.0, 2.0])
    for name in ("array", "asarray", "ascontiguousarray", "asfortranarray"):
        result = getattr(np, name)(x)
        assert type(result) is np.ndarray
        assert np.array_equal(result, [1, 2])
    assert np.asanyarray(x) is x
    for raw in (np.array(x, subok=True), np.asanyarray(x, dtype="float32"), np.require(x, "float32")):
        for use in (
            lambda r: r + 1,
            lambda r: np.sin(r),
            lambda r: np.sum(r),
            lambda r: r[0],
            lambda r: r.sum(),
            lambda r: r.T,
            lambda r: r.name,
        ):
            with pytest.raises(TypeError, match="outside of the graph"):
                use(raw)


TYPES: dict[str, Callable[[Any], Any]] = {
    "matrix": lambda x: np.matrix(x),
}


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
def test_unsupported_types_reject_nodes(name: str) -> None:
    with pytest.raises(TypeError, match="not supported"):
        TYPES[name](cg.variable([[1.0, 2.0], [3.0, 4.0]]))


# ----------------------------------------------------------------------------------------- writing, out=


def test_out_plain_array_raises() -> None:
    x = cg.variable([1.0, 2.0])
    a = np.zeros(2)
    calls: list[Callable[[], Any]] = [
        lambda: np.add(x, 1, out=a),
        lambda: np.add(x, 1, a),
        lambda: np.sin(x, out=(a,)),
        lambda: np.sum(x, out=a[0:1].reshape(())),
        lambda: np.sum(x, 0, None, a[0:1].reshape(())),
        lambda: np.add.reduce(x, out=a[:1].reshape(())),
        lambda: x.sum(out=a[:1].reshape(())),
        lambda: np.clip(x, 0, 1, out=a),
        lambda: x.clip(0, 1, out=a),
        lambda: np.concatenate([x[:1], x[:1]], out=a),
        lambda: np.stack([x[0], x[0]], out=a),
        lambda: np.dot(np.eye(2), x, out=a),
        lambda: np.einsum("i->i", x, out=a),
        lambda: np.divmod(x, 2, out=(a, a)),
        lambda: np.copyto(a, x),
        lambda: np.copyto(dst=a, src=x),
        lambda: np.round(x, 0, a),
    ]
    for call in calls:
        with pytest.raises(TypeError, match="graph"):
            call()
    assert not a.any()
    a += 1  # NumPy itself is not changed
    with cg.no_graph():
        np.add(x, 1, out=a)
        np.copyto(a[:1], x[1:])
    assert np.array_equal(a, [2, 3])


OUT_CALLS: list[Callable[[Any, Any], Any]] = [
    lambda a, t: np.add([1.0, 1.0], 1, out=t),
    lambda a, t: np.sin(a, out=t),
    lambda a, t: np.divmod(a, 2, out=(t, np.empty_like(t))),
    lambda a, t: np.divmod(a, 2, out=(t, None)),
    lambda a, t: np.sum([[1.0, 2.0]], axis=0, out=t),
    lambda a, t: np.copyto(t, 1.0),
    lambda a, t: np.concatenate([[1.0], [2.0]], out=t),
    lambda a, t: np.hypot.accumulate(a, out=t),
    lambda a, t: np.sin(a, out=t, where=[True, False]),
]


@pytest.mark.parametrize("call", OUT_CALLS)
def test_out_operation_is_written(call: Callable[[Any, Any], Any]) -> None:
    x, array = cg.variable([1.0, 2.0]), np.array([2.0, 4.0])
    expected = call(x.value, array)
    for context in (contextlib.nullcontext(), cg.no_graph()):
        y, before, c = x * 2, x * 2, cg.constant([5.0, 6.0])
        with context:
            result = call(x.value, y)
            with pytest.raises(TypeError, match="never changes"):
                call(x.value, c)
        assert np.array_equal(y.value, array)
        assert np.array_equal(c.value, [5, 6])
        assert np.array_equal(before.value, [2, 4])
        if expected is None:
            assert result is None
        else:
            assert (result[0] if isinstance(result, tuple) else result) is y


def test_out_variable_is_updated() -> None:
    w, a = cg.variable([1.0, 2.0]), np.array([3.0, 4.0])
    sequence_number = w.sequence_number
    assert np.add(a, 1, out=w) is w
    assert np.array_equal(w.value, [4, 5])
    assert w.sequence_number > sequence_number
    assert np.multiply(w.value, 2, out=(w,)) is w
    np.sum([[1.0, 2.0], [3.0, 4.0]], axis=0, out=w)
    assert np.array_equal(w.value, [4, 6])
    np.concatenate([[7.0], [8.0]], out=w)
    np.clip(w.value, 0, 7.5, out=w)
    assert np.array_equal(w.value, [7, 7.5])
    np.copyto(w, a)
    np.copyto(dst=w, src=9.0, where=[True, False])
    assert np.array_equal(w.value, [9, 4])
    np.multiply(w, 2, out=w)  # from itself and plain numbers, as w *= 2
    assert np.array_equal(w.value, [18, 8])
    fraction, whole = np.modf(w, out=(None, w))
    assert isinstance(fraction, cg.Node)
    assert whole is w
    x = cg.variable([1.0, 1.0])
    before = w.value.copy()
    for call in (
        lambda: np.add(x, 1, out=w),
        lambda: np.add(w, x, out=w),
        lambda: np.concatenate([x[:1], x[:1]], out=w),
        lambda: np.stack([x[0], 1.0], out=w),
        lambda: np.copyto(w, x),
        lambda: np.copyto(w, [x[0], 1.0]),
    ):
        with pytest.raises(TypeError, match="cannot be written into variable"):
            call()
    assert np.array_equal(w.value, before)
    with cg.no_graph():
        np.add(x, 1, out=w)
    assert np.array_equal(w.value, [2, 2])


def test_writing_functions_accept_nodes_or_raise() -> None:
    """Variables and operations accept writes, and constants raise; plain arrays do not accept nodes."""
    array = np.array([[4.0, 1.0], [1.0, 3.0]])
    writes: dict[str, Callable[[Any, Any], None]] = {
        "put": lambda a, v: np.put(a, 0, v),
        "place": lambda a, v: np.place(a, np.asarray(a) > 1, v),
        "putmask": lambda a, v: np.putmask(a, np.asarray(a) > 1, v),
        "fill_diagonal": lambda a, v: np.fill_diagonal(a, v),
        "put_along_axis": lambda a, v: np.put_along_axis(a, np.array([[0], [1]]), v, 1),
        "copyto": lambda a, v: np.copyto(a, v),
    }
    for position, write in writes.items():
        expected = array.copy()
        write(expected, 7.0)
        for node in (cg.variable(array), cg.variable(array) * 1):
            write(node, 7.0)
            assert np.array_equal(node.value, expected)
        target = cg.variable(array) * 1
        write(target, cg.variable(7.0))
        assert np.array_equal(target.value, expected)
        constant, plain = cg.constant(array), array.copy()
        with pytest.raises(TypeError, match="never changes"):
            write(constant, 7.0)
        if position != "fill_diagonal":  # NumPy does not dispatch on its value
            with pytest.raises(TypeError, match="keeps numbers and no graph"):
                write(plain, cg.variable(7.0))
        with pytest.raises(TypeError, match="cannot be written into variable"):
            write(cg.variable(array), cg.variable(7.0))
        assert np.array_equal(constant.value, array)
        assert np.array_equal(plain, array)


def test_shuffling_is_recorded() -> None:
    """NumPy swaps the items of an array one at a time, unless it is a plain ndarray."""
    x = cg.variable(np.arange(9.0))
    vector, weights = x * 2, np.arange(1.0, 10)
    np.random.default_rng(0).shuffle(vector)
    assert not np.array_equal(vector.value, x.value * 2)
    assert np.array_equal(np.sort(vector.value), x.value * 2)
    assert np.array_equal(gradient(np.sum(vector * weights))[x], 2 * weights[np.argsort(vector.value)])
    with pytest.raises(TypeError, match="cannot be written into variable"):
        np.random.default_rng(0).shuffle(x)
    assert np.array_equal(x.value, np.arange(9))


@for_each("name", ["real", "imag", "T", "ravel", "reshape", "ellipsis", "new axis"])
def test_view_of_complex_scalar_is_a_new_array(name: str) -> None:
    """NumPy's scalars share no memory with their views, so writes into these do not change the scalar."""
    views: dict[str, Any] = {
        "real": lambda v: v.real, "imag": np.imag, "T": lambda v: v.T, "ravel": lambda v: v.ravel(),
        "reshape": lambda v: v.reshape(1), "ellipsis": lambda v: v[...], "new axis": lambda v: v[None],
    }  # fmt: skip

    def f(x: Any) -> Any:
        v = (x + 0j)[0] * x.sum()
        w = views[name](v)
        w += 1
        return np.abs(v + 2 * np.sum(w * 1j))

    x = np.array([1.0, 2.0])
    assert f(cg.variable(x)).value == f(x)
    value, slope = ad.value_and_grad(f)(x)
    assert value == f(x)
    differences = [(f(x + h) - f(x - h)) / 2e-6 for h in 1e-6 * np.eye(2)]
    np.testing.assert_allclose(slope, differences, rtol=1e-6)


@for_each("axis", [0, 1, -1])
def test_shuffling_rows_within_operators_matches_numpy(axis: int) -> None:
    """NumPy swaps views of the rows of a traced array, which duplicates rows; the draws after it are the same as well."""
    captured = np.random.default_rng(4)

    def shuffle(x: Any) -> Any:
        rows, buffer, rng = x * 2, np.arange(9.0).reshape(3, 3), np.random.default_rng(3)
        rng.shuffle(rows, axis=axis)
        rng.shuffle(buffer, axis)
        captured.bit_generator.state = np.random.PCG64(4).state
        captured.shuffle(rows)
        np.random.seed(0)  # noqa: NPY002
        np.random.shuffle(rows)  # noqa: NPY002
        return rows * buffer * rng.normal()

    x = np.arange(9.0).reshape(3, 3)
    assert np.array_equal(ad.vjp(shuffle, x)[0], shuffle(x))
    assert np.array_equal(ad.jvp(shuffle, (x,), (x,))[1], shuffle(x))


# ---------------------------------------------------------------------------------------- node attributes


def test_node_attributes_describe_its_operation() -> None:
    x, a = cg.variable([1.0, 2.0], "x"), np.array([3.0, 4.0])
    y = x * a
    assert y.opname == "mul"
    assert y.args[0] is x
    assert y.args[1].__class__ is np.ndarray, "a copy, since it may be written into"
    np.testing.assert_array_equal(y.args[1], a)
    assert y.parent_argnums == (0,)
    z = np.sum(y, axis=0, keepdims=True)
    assert z.opname == "sum"
    assert z.options == {"axis": 0, "keepdims": True}
    assert z.operands == (y,)
    assert (a * x).parent_argnums == (1,)
    assert (x * x).parent_argnums == (0, 1)


def test_operands_are_older_than_result() -> None:
    x = cg.variable([1.0, 2.0])
    nodes = [x, x + 1, np.sin(x), np.add(x, x), x.sum(), x[0], -x, x > 1, np.concatenate([x, x]), *divmod(x, 2), *np.split(x, 2)]
    nodes += [cg.sum(x * x), x.T, x.astype("float32"), cg.relu(x), x @ x, np.where(x > 1, x, 0)]
    for node in nodes:
        for position in node.parent_argnums:
            operand = node.args[position]
            assert operand.sequence_number < node.sequence_number
            assert all(operand.args[p].sequence_number < operand.sequence_number for p in operand.parent_argnums)
    assert len({node.sequence_number for node in nodes}) == len(nodes)


def test_piecewise_constant_operations_are_recorded() -> None:
    x = cg.variable([1.0, -2.0, 0.5])
    nodes = [
        x > 0,
        x == x,
        x.argmax(),
        np.floor(x),
        np.sign(x),
        np.isnan(x),
        np.argsort(x),
        x.astype(int),
        np.round(x),
        x // 1,
        ~(x > 0),
    ]
    for node in nodes:
        assert isinstance(node, cg.OperationalNode)
        assert x in ancestors(node)
        assert node.opname


def test_no_graph_matches_numpy() -> None:
    array = numbers((3, 4), "float32")
    x = node_of(array)
    calls: list[Callable[[Any], Any]] = [
        lambda x: x + 1, lambda x: 1 - x, lambda x: x @ x.T, lambda x: -x, lambda x: x > 0, lambda x: x[0],
        lambda x: x[0, 0], lambda x: x.sum(),
        lambda x: np.sin(x), lambda x: np.maximum(x, 0), lambda x: np.sum(x, axis=0), lambda x: np.concatenate([x, x]),
        lambda x: x.T,
        lambda x: x.reshape(-1), lambda x: x.astype("float64"), lambda x: np.where(x > 0, x, 0),
        lambda x: divmod(x, 2)[0], lambda x: x.copy(),
        lambda x: np.einsum("ij->j", x), lambda x: np.split(x, 3)[1], lambda x: abs(x),
        lambda x: np.broadcast_arrays(x, 1)[0], lambda x: x.real,
        lambda x: np.column_stack([x, x]), lambda x: x[x > 0], lambda x: x.flatten(), lambda x: np.clip(x, 0, 1),
        lambda x: np.add.reduce(x),
        lambda x: cg.exp(x), lambda x: cg.sum(x, name="s"), lambda x: x**2, lambda x: np.var(x, axis=0),
        lambda x: np.zeros_like(x),
    ]  # fmt: skip
    for position, call in enumerate(calls):
        assert isinstance(call(x), cg.Node)
        with cg.no_graph():
            result, expected = call(x), call(array)
        assert type(result) is type(expected), position
        assert_bits(result, expected, str(position))


@pytest.mark.parametrize(
    "call",
    [
        lambda edges: np.histogram2d([1.0, 2], [1.0, 2], edges),
        lambda edges: np.histogram2d([1.0, 2], [1.0, 2], [edges, edges]),
        lambda edges: np.histogramdd(np.ones((3, 2)), [3, edges]),
        lambda edges: np.histogramdd(cg.variable(np.ones((3, 2))), [3, [edges[0], 2.0]]),
    ],
)
def test_histogram_bins_of_several_axes_as_node_raise(call: Any) -> None:
    with pytest.raises(TypeError, match="bins= cannot be a node"):
        call(cg.variable([0.0, 1.0, 2.0]))


@pytest.mark.parametrize("sequence", [list, tuple])
def test_option_containing_node_raises(sequence: Any) -> None:
    x = cg.variable([0.0, 1.0, 2.0])
    for call in (
        lambda: np.histogram(x, sequence([x[0], x[2]])),
        lambda: np.histogram(x, bins=sequence([x[0], x[2]])),
        lambda: np.histogram(x, 3, range=sequence([x[0], x[2]])),
        lambda: np.histogram_bin_edges(x, range=sequence([x[0], 1.0])),
    ):
        with pytest.raises(TypeError, match="cannot be a node"):
            call()


@pytest.mark.parametrize("bins", [3, (2, 3), [2, np.array([0.0, 1.0, 3.0])], [0.0, 1.0, 2.0, 4.0]], ids=str)
def test_histogram_outputs_match_numpy(bins: Any) -> None:
    x, y = np.array([0.5, 1.5, 2.5, 0.1]), np.array([0, 1, 2, 3])
    expected, result = np.histogram2d(x, y, bins), np.histogram2d(cg.variable(x), y, bins)
    several = np.histogramdd([cg.variable(x), y], 3)
    assert [type(part) for part in several[1]] == [type(several[0])] * 2
    expected, result = (*expected, *np.histogramdd([x, y], 3)[1]), (*result, *several[1])
    for one, other in zip(expected, result, strict=True):
        assert np.array_equal(one, other)
        assert one.dtype == other.dtype
