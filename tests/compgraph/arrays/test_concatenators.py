"""``cg.r_``, ``cg.c_``, ``bmat`` and ``asmatrix``: NumPy's values, with a complete graph."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import compgraph as cg
from autodiff import check_grads
from autodiff.reverse import gradient
from tests.support.failures import Failures

X = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.5]])


class Numpys:
    """NumPy's functions of the same names, without the warning that there are better things than matrices."""

    def __getattr__(self, name: str) -> Any:
        warnings.simplefilter("ignore", PendingDeprecationWarning)
        return getattr(np, name)


JOINED: dict[str, Any] = {
    "vectors": lambda m, x: m.r_[x[0], x[1]],
    "one vector": lambda m, x: m.r_[x[0]],
    "numbers": lambda m, x: m.r_[x[0, 0], x[1, 1], 3],
    "a number beside a vector": lambda m, x: m.r_[1, x[0], x[1, 0], 2.5],
    "a 0-d array": lambda m, x: m.r_[x[0, 0].reshape(()), x[0]],
    "lists": lambda m, x: m.r_[[x[0, 0], 2.0, x[0, 1] ** 2], x[0], [1, 2]],
    "matrices": lambda m, x: m.r_[x, 2 * x],
    "other precision": lambda m, x: m.r_[x[0].astype(np.float32), np.arange(2), x[0, 0]],
    "single precision": lambda m, x: m.r_[x[0].astype(np.float32), 2.5, 1],
    "single precision, NumPy number": lambda m, x: m.r_[x[0].astype(np.float32), np.float64(2.5)],
    "complex": lambda m, x: np.abs(m.r_[x[0] * (1 + 2j), x[1], 1j]),
    "axis": lambda m, x: m.r_["1", x, x[:, :1]],
    "axis -1": lambda m, x: m.r_["-1", x, x[:, :1]],
    "least dimensions": lambda m, x: m.r_["0,2", x[0], x[1], [1, 2, 3]],
    "least dimensions, a number": lambda m, x: m.r_["1,2", x[0], x[1, 1], 2],
    "columns": lambda m, x: m.r_["0,2,0", x[0], x[1]],
    "columns side by side": lambda m, x: m.r_["1,2,0", x[0], x[1], [1, 2, 3]],
    "three dimensions": lambda m, x: m.r_["0,3,1", x, x[0, 0] * np.ones((2, 3))],
    "three dimensions, from the end": lambda m, x: m.r_["1,3,-2", x[0], x[1]],
    "three dimensions, 0": lambda m, x: m.r_["-1,3,0", x, 2 * x],
    "slices": lambda m, x: m.r_[0:3, x[0], 5:1:-2, 0:1:3j],
    "slices of columns": lambda m, x: m.r_["1,2,0", 0:3, x[0]],
    "slices of rows": lambda m, x: m.r_["0,2", 0:3, x[0]],
    "start": lambda m, x: m.r_[x[0, 0] : 4.2],
    "start alone": lambda m, x: m.r_[x[0, 0] : 1.2, x[0]],
    "start, nothing left": lambda m, x: m.r_[x[0, 0] : 0, x[0]],
    "step": lambda m, x: m.r_[0 : 1.9 : x[0, 0] / 3],
    "start and step": lambda m, x: m.r_[x[0, 0] / 3 : 4 : x[0, 1] / 7],
    "stop": lambda m, x: m.r_[0 : x[0, 2] + 0.2, x[0]],
    "count": lambda m, x: m.r_[x[0, 0] : x[0, 1] ** 2 : 5j],
    "a slice in c_": lambda m, x: m.c_[x[0, 0] : 3.5, x[0]],
    "c_": lambda m, x: m.c_[x[0], x[1]],
    "c_ of a matrix and a vector": lambda m, x: m.c_[x, x[:, 0]],
    "c_ of numbers": lambda m, x: m.c_[x[0, 0], 2, x[0, 1]],
    "c_ of lists": lambda m, x: m.c_[[x[0, 0], 1.0, 2.0], x[0], [4, 5, 6]],
    "c_ of matrices": lambda m, x: m.c_[x, [[1], [2]], x * x],
    "c_ with a directive": lambda m, x: m.c_["0", x[0], x[1]],
    "c_ of one": lambda m, x: m.c_[x[0]],
    "a row matrix": lambda m, x: m.r_["r", x[0], x[1]],
    "a column matrix": lambda m, x: m.r_["c", x[0], 1.0],
    "a matrix of matrices": lambda m, x: m.r_["r", x, x],
    "a text": lambda m, x: m.r_["x, x; x, x"],
    "bmat of a text": lambda m, x: m.bmat("x, x"),
    "bmat, names given": lambda m, x: m.bmat("a b; b, a", {"a": x}, {"a": 0, "b": 2 * x}),
    "bmat, of nested lists": lambda m, x: m.bmat([[x, 2 * x], [np.ones((2, 3)), x]]),
    "bmat of a row": lambda m, x: m.bmat([x, np.ones((2, 1))]),
    "bmat of a row of vectors": lambda m, x: m.bmat([x[0], x[1]]),
    "bmat of an array": lambda m, x: m.bmat(x[0]),
    "bmat of tuples": lambda m, x: m.bmat(((x[0], x[1]),)),
    "asmatrix": lambda m, x: m.asmatrix(x),
    "asmatrix of a vector": lambda m, x: m.asmatrix(x[0]),
    "asmatrix of a number": lambda m, x: m.asmatrix(x[0, 0]),
    "asmatrix of a list": lambda m, x: m.asmatrix([x[0, 0], 2.0]),
    "asmatrix, dtype": lambda m, x: m.asmatrix(x, dtype=np.float32),
    "asmatrix of more dimensions": lambda m, x: m.asmatrix(x[:, None]),
    "asmatrix of many ones": lambda m, x: m.asmatrix(x[:, None, :1]),
}


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
def test_concatenators_match_numpy_and_differences() -> None:
    with Failures("functions that join") as failures:
        for label in JOINED:
            with failures.case(label):
                check_joined(label)


def check_joined(label: str) -> None:
    """Compare a concatenation of nodes with NumPy's result, and its derivatives with finite differences."""
    call = JOINED[label]
    expected, result = np.asarray(call(Numpys(), X)), call(cg, cg.variable(X))
    assert isinstance(result, cg.Node)
    assert (result.shape, result.dtype) == (expected.shape, expected.dtype)
    assert np.array_equal(result.value, expected)
    plain = call(cg, X)
    assert not isinstance(plain, cg.Node)
    assert type(plain) is type(call(Numpys(), X))
    single = expected.dtype == np.float32 or "precision" in label
    check_grads(lambda x: call(cg, x).astype(float), [X], order=1 if single else 2, rtol=3e-2 if single else 1e-6)


def test_concatenator_stop_is_piecewise_constant() -> None:
    x = cg.variable(2.5)
    assert np.array_equal(cg.r_[0:x], [0.0, 1.0, 2.0])
    assert isinstance(cg.r_[0:x], cg.Node)


def test_concatenators_bad_requests_raise() -> None:
    x = cg.variable(X)
    for call in (
        lambda m, x: m.r_[x, "0,2"],
        lambda m, x: m.r_["a", x],
        lambda m, x: m.r_["0,b", x],
        lambda m, x: m.r_[x, x[0]],
        lambda m, x: m.asmatrix(np.stack([x, x])),
        lambda m, x: m.bmat([[x, x], [x]]),
    ):
        for module, array in ((Numpys(), X), (cg, x)):
            with pytest.raises(ValueError):  # noqa: PT011
                call(module, array)
    with pytest.raises(NameError, match="name 'there' is not defined"):
        cg.bmat("x, there")


def test_concatenators_of_plain_strings_and_lengths_match_numpy() -> None:
    a = np.ones((1, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PendingDeprecationWarning)
        assert np.array_equal(cg.r_["a; a"], np.bmat("a; a"))
        assert np.array_equal(cg.bmat("a, a"), np.bmat("a, a"))
    assert a.size == 2
    assert len(cg.r_) == len(np.r_) == len(cg.c_)


def test_numpy_concatenators_raise_for_converted_nodes() -> None:
    """Entries that NumPy converts to another dtype lose their history, which raises."""
    x = cg.variable(X)
    for call in (
        lambda: np.r_[x[0].astype(np.float32), x[1]],
        lambda: np.c_[x[0].astype(np.float32), x[1]],
    ):
        with pytest.raises(TypeError, match=r"its history is lost.*cg\.r_"):
            call()
    assert np.r_[x[0], 1.0].opname == "concatenate"


NUMPYS_OWN: dict[str, Any] = {
    "columns": lambda x: np.c_[x[0], x[1] * x[1], [1.0, 2.0, 3.0]],
    "numbers": lambda x: np.r_[x[0, 0], 1.0, x[1, 1] * x[1]],
    "two dimensions": lambda x: np.r_["0,2", x[0], x[1] * x[0]],
    "two dimensions, places": lambda x: np.r_["1,3,0", x[0], x[1] * x[0]],
    "an axis in front": lambda x: np.array(x[:, ::2], copy=None, subok=True, ndmin=4) * x[0, 0],
    "written into": lambda x: _negate(x * 1.0),
}


def _negate(y: Any) -> Any:
    np.array(y, copy=None, subok=True, ndmin=3)[0, 0] *= -y[1]
    return y


@pytest.mark.parametrize("call", NUMPYS_OWN.values(), ids=NUMPYS_OWN)
def test_concatenator_view_with_leading_axes_keeps_history(call: Any) -> None:
    """NumPy creates one silently, above all in ``np.c_`` and ``np.r_``."""
    assert np.array_equal(call(cg.variable(X)).value, call(X.copy()))
    check_grads(call, [X], order=2)
    with cg.no_graph():
        assert not isinstance(call(cg.variable(X)), cg.Node) or call is NUMPYS_OWN["written into"]


def test_numpy_view_of_other_kinds_has_no_history() -> None:
    x = cg.variable(X)
    for view in (np.ndarray.view(x), np.ndarray.__getitem__(x, slice(1)), np.ndarray.reshape(x, (1, *X.shape[::-1]))):
        with pytest.raises(TypeError, match="its history is lost"):
            view + 1
        with pytest.raises(AttributeError, match="no attribute 'raw_value'"):
            print(view.raw_value)
    with pytest.raises(AttributeError, match="no attribute 'color'"):
        print(x.color)


def test_kaiser_window_of_node_beta() -> None:
    for count in (1, 2, 5, 8.0):
        for beta in (0.0, 2.5, 14.0, np.float32(3.1)):
            node = cg.variable(beta)
            result, expected = cg.kaiser(count, node), np.kaiser(count, beta)
            assert isinstance(result, cg.Node)
            assert np.array_equal(result.value, expected)
            assert (result.shape, result.dtype) == (expected.shape, expected.dtype)
    check_grads(lambda beta: cg.kaiser(6, beta), [3.0], order=2)
    assert np.array_equal(cg.kaiser(4, 2.0), np.kaiser(4, 2.0))
    with pytest.raises(TypeError, match="M cannot be a node"):
        cg.kaiser(cg.variable(3.0), 2.0)
    with pytest.raises(ValueError, match="single number"):
        cg.kaiser(3, cg.variable([2.0]))


def test_require_memory_requirements() -> None:
    x = cg.variable(X)
    assert cg.require(x) is x
    assert cg.require(x, requirements=["C", "A", "W", "O"]) is x
    for requirements in ("F", ["FORTRAN", "W"], ["F_CONTIGUOUS"]):
        result = cg.require(x, requirements=requirements)
        assert result.flags.f_contiguous
        assert np.array_equal(gradient(result, x, adjoint=X)[x], X)
    assert cg.require(x[:, ::2], requirements="O").value.flags.owndata
    assert cg.require(cg.constant(X), requirements="W").flags.writeable
    assert cg.require([x[0, 0], 1], np.float32).dtype == np.float32
    with pytest.raises(TypeError, match="has no graph"):
        cg.require(x, requirements="E")
    with pytest.raises(ValueError, match="both"):
        cg.require(x, requirements=["C", "F"])
    with pytest.raises(KeyError):
        cg.require(x, requirements="Q")
    plain = cg.require(X, requirements="F")
    assert type(plain) is np.ndarray
    assert plain.flags.f_contiguous


def test_asanyarray_keeps_nodes_and_subclasses() -> None:
    x = cg.variable(X)
    assert cg.asanyarray(x) is x
    assert np.asanyarray(x) is x
    assert np.require(x, None, "C") is x
    masked = np.ma.masked_array([1.0, 2.0], [True, False])
    assert cg.asanyarray(masked) is masked
    for call in (lambda: np.asanyarray(x, dtype=np.float32) + 1, lambda: np.require(x, None, "F") + 1):
        with pytest.raises(TypeError, match="its history is lost"):
            call()
