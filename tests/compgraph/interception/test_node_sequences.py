"""Lists that hold nodes, at the top level: NumPy functions record them as `cg.array` does."""

from __future__ import annotations

import itertools
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import autodiff as ad
import compgraph as cg
from autodiff.reverse import gradient

pandas = pytest.importorskip("pandas", reason="pandas is optional")

POINT = np.array([0.7, 1.9])


# Programs of two scalars and of a vector of both.
PROGRAMS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "det of array": lambda a, b, v: np.linalg.det(np.array([[a, 1], [2, b]])) * a,
    "det of list": lambda a, b, v: np.linalg.det([[a, 1], [2, b]]) * a,
    "solve": lambda a, b, v: np.linalg.solve([[a, 1], [2, b]], [a, 1.0]),
    "rotation": lambda a, b, v: np.array([[np.cos(a), -np.sin(a)], [np.sin(a), np.cos(a)]]) @ np.array([b, 1.0]),
    "asarray": lambda a, b, v: np.asarray((a, b), dtype=float) ** 2,
    "asanyarray": lambda a, b, v: np.asanyarray([v, v * b]) * v,
    "options": lambda a, b, v: np.array([a, b * a], dtype=np.float64, copy=True, order="F", ndmin=2) @ v,
    "list of arrays": lambda a, b, v: np.array([v, [1.0, 2.0], v * a]).T @ np.ones(3) * v,
    "comprehension": lambda a, b, v: np.array([[v[i] * v[j] for i in range(2)] for j in range(2)]) * b,
    "objects": lambda a, b, v: np.sum(np.array([a, b], dtype=object) * 2) * a,
    "objects of arrays": lambda a, b, v: np.sum(np.array([v, v], dtype=object) * 2) * a,
    "concatenate": lambda a, b, v: np.concatenate([[a], [b], v]) ** 2,
    "vstack": lambda a, b, v: np.vstack([[a, b], [b, 1.0]]) @ v,
    "hstack": lambda a, b, v: np.hstack([a, [b, 2.0], v]) ** 2,
    "column_stack": lambda a, b, v: np.column_stack([[a, b], [b, 1.0]]) @ v,
    "stack": lambda a, b, v: np.stack([[a, b], v], axis=1) @ v,
    "block": lambda a, b, v: np.block([[a, b], [1.0, b]]) @ v,
    "sum": lambda a, b, v: np.sum([a, b, a * b]) * a,
    "mean": lambda a, b, v: np.mean([[a, b], [b, b * b]], axis=0) * v,
    "extremes": lambda a, b, v: np.max([a, b]) * np.min([a * 3, b]),
    "dot": lambda a, b, v: np.dot([a, b], [b, 2.0]) * np.inner([a, 1.0], [b, a]),
    "norm": lambda a, b, v: np.linalg.norm([a, b]) * a,
    "cross": lambda a, b, v: np.cross([a, b, 1.0], [1.0, 2.0, b]),
    "where": lambda a, b, v: np.where([True, False], [a, b], [b, a]) * v,
    "einsum": lambda a, b, v: np.einsum("i,i", [a, b], [b, b]),
    "polynomials": lambda a, b, v: np.polyval([a, b, 1.0], 2.0) + np.poly1d([a, b])(b) + np.polynomial.Polynomial([1, a, b])(a),
    "gradient": lambda a, b, v: np.gradient([a, b, a * b]) @ np.array([1.0, 2.0, 3.0]),
    "full": lambda a, b, v: np.full((2, 2), a) @ v + np.full_like(POINT, b),
    "fromiter": lambda a, b, v: np.fromiter((b * a**k for k in range(3)), float) + np.fromiter([a, b, 1.0], float, count=3),
    "arange": lambda a, b, v: np.arange(a, 5.0, 1.0)[:3] * b,
    "options of plain arrays": lambda a, b, v: np.sum(POINT, initial=a) + np.pad(POINT, 1, constant_values=b),
    "vander": lambda a, b, v: np.vander([a, b], 3) @ np.array([1.0, 2.0, 3.0]),
    "operator of a node": lambda a, b, v: v + [a, b] - (b, 1.0),  # noqa: RUF005
}  # fmt: skip


def value_of(name: str, point: Any) -> Any:
    return np.sum(PROGRAMS[name](point[0], point[1], point))


@pytest.mark.parametrize("name", PROGRAMS)
def test_list_of_nodes_is_recorded(name: str) -> None:
    x = cg.variable(POINT, "x")
    slopes = gradient(value_of(name, x))[x]
    steps = 1e-6 * np.eye(2)
    assert np.allclose(slopes, [(value_of(name, POINT + s) - value_of(name, POINT - s)) / 2e-6 for s in steps], atol=1e-6)
    a, b = cg.variable(POINT[0], "a"), cg.variable(POINT[1], "b")
    parts = gradient(np.sum(PROGRAMS[name](a, b, np.stack([a, b]))))
    assert np.allclose([parts[a], parts[b]], slopes)


ERRORS: dict[str, Callable[[Any, Any], Any]] = {
    "ufunc": lambda a, b: np.sin([a, b]),
    "method of a ufunc": lambda a, b: np.maximum.reduce([a, b]),
    "operator of a plain array": lambda a, b: np.ones(2) * [a, b],
    "operator in place": lambda a, b: POINT.copy().__iadd__([a, b]),
    "matmul": lambda a, b: np.matmul([[a, b]], POINT),
    "method of a plain array": lambda a, b: POINT.dot([a, b]),
    "fill": lambda a, b: np.zeros(2).fill(a),
    "vectorize": lambda a, b: np.vectorize(lambda t: t * a)([1.0, 2.0]),
    "masked": lambda a, b: np.ma.array([a, b]),
    "matrix": lambda a, b: np.matrix([[a, b]]),
}


@pytest.mark.parametrize("name", ERRORS)
@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
def test_list_in_unpatched_call_raises(name: str) -> None:
    a, b = cg.variable(POINT[0], "a"), cg.variable(POINT[1], "b")
    with pytest.raises(cg.LeakError, match="takes the numbers of the"):
        ERRORS[name](a, b)


def test_plain_list_and_single_node_are_not_recorded() -> None:
    a, v = cg.variable(2.0), cg.variable(POINT)
    for array in (np.array(v), np.asarray(v), np.array(a), np.array([1.0, 2.0]), np.array([v.tolist()]), np.asarray([[1], [2]])):
        assert type(array) is np.ndarray
    with cg.no_graph():
        assert type(np.array([a, a])) is np.ndarray
    assert "%.1f %s" % (a, f"{a:.2f}") == "2.0 2.00"  # noqa: UP031
    np.testing.assert_allclose([a, a], [2.0, 2.0])
    assert np.allclose([a, a], 2.0)
    assert pandas.DataFrame({"u": [a, a]}).shape == (2, 1)


def test_list_of_nodes_in_threads_and_strict() -> None:
    a, arrays = cg.variable(2.0), []
    thread = threading.Thread(target=lambda: arrays.append(np.array([a, a])))
    thread.start()
    thread.join()
    with cg.strict():
        arrays.append(np.array([a, a]))
    for array in arrays:
        assert gradient(np.sum(array * array))[a] == 8


def test_list_of_nodes_with_early_bound_names(tmp_path: Path) -> None:
    program = """
from numpy import array
import numpy as np
numpys = array
def keep(default=np.array): return default
import autodiff as ad
import compgraph as cg
from autodiff.reverse import gradient
assert np.array is numpys
space = {}
exec("from numpy import asarray", space)
x = cg.variable(2.0)
assert gradient(np.sum(array([x, x * x])))[x] == 5
from numpy import array as later
cg.interception(False)
for call in (array, later, np.array, keep()):
    try:
        call([x, x])
    except cg.LeakError:
        continue
    raise AssertionError
assert np.array is array is numpys is not later
cg.interception(True)
assert gradient(np.sum(array([x, x * x])))[x] == gradient(np.sum(later([x, x * x])))[x] == 5
try:
    keep()([x, x])
except cg.LeakError as error:
    assert "keep()" in str(error)
with cg.patched_numpy():
    assert isinstance(np.array(x), cg.Node)
assert type(np.array(x)) is np.ndarray and isinstance(np.array([x]), cg.Node)
"""
    path = tmp_path / "program.py"
    path.write_text(program)
    subprocess.run([sys.executable, "-c", f"import runpy; runpy.run_path({str(path)!r})"], check=True)
    subprocess.run([sys.executable, "-c", program.replace('"keep()" in', '"numbers of" in')], check=True)  # without source


@pytest.mark.parametrize("call", ["np.array", "np.asarray", "np.full(2, {})", "imported", "np.vstack([np.array({})])"])
def test_list_with_the_first_variable_of_a_program_is_recorded(call: str) -> None:
    """Python looks up the function before the variable in its argument is created."""
    expression = call.replace("{}", "cg.variable(2.0)") if "full" in call else call.replace("{}", "[cg.variable(2.0), 1.0]")
    expression = expression if "(" in expression else f"{expression}([cg.variable(2.0), 1.0])"
    program = f"""
import numpy as np
from numpy import array as imported
import compgraph as cg
node = {expression}
assert isinstance(node, cg.Node), type(node)
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_fromiter_consumes_count_elements() -> None:
    def f(x: Any) -> Any:
        endless = itertools.count(1)
        first = np.fromiter(endless, float, 3)
        nodes = np.fromiter((x[k % 3] for k in itertools.count()), float, 2)
        return (x * first).sum() * next(endless) + nodes.sum()

    x = np.array([1.0, 2.0, 3.0])
    np.testing.assert_allclose(ad.grad(f)(x), [5, 9, 12])


def test_vectorized_function_gets_python_numbers_of_plain_operands() -> None:
    """As in NumPy, so that the type of an element steers the function alike with and without nodes."""
    f = np.vectorize(lambda a, n, name: a * (2 if type(n) is int else 100) * (1 if type(name) is str else 100))
    x = np.array([1.0, 2.0])
    assert f(x, [1, 2], "b").tolist() == [2.0, 4.0]
    assert ad.grad(lambda v: np.sum(f(v, [1, 2], "b")))(x).tolist() == [2.0, 2.0]
    with pytest.raises(ZeroDivisionError):
        ad.grad(lambda v: np.sum(np.vectorize(lambda a, n: a / (1 / n))(v, [0, 1])))(x)


@pytest.mark.parametrize("name", ["r_", "c_", "mgrid", "ogrid"])
def test_indexers_have_the_truth_value_of_numpy(name: str) -> None:
    expected = bool(getattr(np, name))
    assert ad.grad(lambda x: x if bool(getattr(np, name)) == expected else -x)(1.0) == 1


def test_vectorized_function_of_excluded_arguments_is_called_once() -> None:
    double = np.vectorize(lambda a: a * 2, excluded=[0, "b"])
    np.testing.assert_array_equal(ad.grad(lambda x: double(x).sum())(np.ones(3)), [2, 2, 2])


VECTORIZED: dict[str, Callable[[Any], Any]] = {
    "vector to number": lambda x: np.vectorize(lambda v: v @ v, signature="(n)->()")(x.reshape(2, 3)),
    "two outputs": lambda x: np.vectorize(np.linalg.qr, signature="(m,n)->(m,k),(k,n)")(
        x[:4].reshape(2, 2) + np.diag([1.0, 2.0])
    )[1],
    "loop axes": lambda x: np.vectorize(np.linalg.inv, signature="(n,n)->(n,n)")(
        np.stack([[x[:2], x[2:4]], [x[1:3], x[5:3:-1]]])
    ),
    "broadcast": lambda x: np.vectorize(lambda a, b: a * b.sum(), signature="(),(n)->()")(x[:2], x.reshape(2, 3)),
    "plain operand": lambda x: np.vectorize(lambda m, v: m @ v, signature="(m,n),(n)->(m)")(np.eye(3)[:2] + 1, x.reshape(2, 3)),
    "keyword, excluded": lambda x: np.vectorize(
        lambda a, power, b: a**power + b, signature="(n),()->(n)", excluded=["power"], otypes=[float]
    )(x.reshape(2, 3), power=2, b=[1.0, 2.0]),
}


@pytest.mark.parametrize("name", VECTORIZED)
def test_vectorized_function_with_signature_keeps_graph(name: str) -> None:
    x = np.array([0.3, 1.4, -0.7, 2.1, 0.9, -1.2])

    def f(x: Any) -> Any:
        return np.sin(VECTORIZED[name](x)).sum()

    np.testing.assert_array_equal(ad.value_and_grad(f)(x)[0], f(x))
    ad.check_grads(f, (x,), order=2)
    np.testing.assert_allclose(ad.vmap(f)(np.stack([x, 2 * x])), [f(x), f(2 * x)])


@pytest.mark.parametrize(
    ("signature", "message"),
    [("(n),(n)->()", "wrong number of positional"), ("(n,n)->()", "does not have enough"), ("(n)->(),()", "number of outputs")],
)
def test_vectorized_function_with_another_signature_raises(signature: str, message: str) -> None:
    f = np.vectorize(lambda v: v @ v, signature=signature)
    for call in (f, ad.grad(f)):
        with pytest.raises((TypeError, ValueError), match=message):
            call(np.ones(3))


class Table:
    """A container that NumPy converts by ``__array__``, as data frames."""

    def __init__(self, values: Any) -> None:
        self.values = values

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return self.values if dtype is None else self.values.astype(dtype)


@pytest.mark.parametrize(
    "convert", [np.array, np.asarray, np.asanyarray, np.asarray_chkfinite, lambda t: np.asarray(t, np.float32)]
)
def test_containers_of_nodes_are_converted(convert: Any) -> None:
    x = np.array([1.0, 2.0, 3.0])
    np.testing.assert_allclose(ad.grad(lambda x: np.sum(convert(Table(x * x)) * x))(x), 3 * x * x)
    np.testing.assert_allclose(ad.jacfwd(lambda x: convert(Table(x * x)) * x)(x), np.diag(3 * x * x))
    assert convert(Table(x)).tolist() == x.tolist()


def test_numpy_code_is_recorded_after_a_captured_numpy_function_was_called() -> None:
    """The call patches names in NumPy's module, before `np.diff` of that module runs on nodes for the first time."""
    program = """
import numpy as np
import autodiff as ad
class Table:
    def __init__(self, values):
        self.values = values
    def __array__(self, dtype=None, copy=None):
        return self.values
def slope(convert):
    return ad.grad(lambda x: np.sum(convert(Table(x * x)) * np.diff(x, prepend=0.0)))(np.array([1.0, 3.0]))
assert slope(np.asarray_chkfinite).tolist() == [3.0 - 9.0, 9.0 + 12.0]
"""
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize("limits", [{"min": 0, "max": 2.5}, {"a_min": 0, "a_max": 2.5}, {"max": 2.5}])
def test_clip_takes_all_arguments_by_keyword(limits: dict[str, float]) -> None:
    x = np.array([1.0, 2.0, 3.0])
    np.testing.assert_array_equal(ad.grad(lambda x: np.clip(a=x, **limits).sum())(x), [1, 1, 0])
