"""Derivatives with opaque nodes, whose numbers no code can read without a record, against those with ordinary nodes."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np

import autodiff as ad
import compgraph as cg
from autodiff import forward
from autodiff.forward import jvp
from autodiff.reverse import gradient
from compgraph.graph import to_values
from compgraph.values import Value, is_tracer
from tests.support.arguments import Case


def random_like(array: Any, rng: np.random.Generator) -> Any:
    array = np.asarray(to_values(array))
    numbers = rng.normal(size=array.shape) + (1j * rng.normal(size=array.shape) if array.dtype.kind == "c" else 0)
    return np.asarray(numbers, array.dtype)


def derivatives(case: Case, is_strict: bool) -> dict[str, Any]:
    """The results of all modes, with a variable in place of each argument."""
    rng = np.random.default_rng(zlib.crc32(f"{case.opname}: {case.label}".encode()))
    tangents = [random_like(x, rng) for x in case.args]
    variables = [cg.variable(x) for x in case.args]
    out = case.function(*variables)
    assert is_tracer(out) is is_strict
    u = random_like(out, rng)
    first = gradient(out, variables, adjoint=u, create_graph=True)
    along = sum(np.sum(np.real(first[x] * t)) for x, t in zip(variables, tangents, strict=True))
    results = {"value": out, **{f"first {i}": first[x] for i, x in enumerate(variables)}, "along": along}
    if isinstance(along, Value) and any(isinstance(n, cg.VariableNode) for n in cg.topological_order([along])):
        second = gradient(along, variables, unused="zero")
        results |= {f"second {i}": second[x] for i, x in enumerate(variables)}
    results["value and tangent"] = jvp(case.function, variables, tangents)
    results["tangent of a tangent"] = jvp(lambda *xs: jvp(case.function, xs, tangents)[1], variables, tangents)
    is_real = all(x.dtype.kind == "f" for x in (out, *variables))
    if is_real and out.size <= 12 and sum(x.size for x in variables) <= 24:
        positions = tuple(range(len(variables)))
        results["jacrev"] = ad.jacrev(case.function, positions)(*variables)
        results["jacfwd"] = ad.jacfwd(case.function, positions)(*variables)
    if is_real and len(variables) == 1:
        results["carried"] = forward.jacobian(case.function(forward.variables(case.args[0])))
    return {name: to_values(value) for name, value in results.items()}


def plain(value: Any) -> list[Any]:
    if isinstance(value, (tuple, list)):
        return [leaf for part in value for leaf in plain(part)]
    return [np.asarray(to_values(value))]


def check_opaque(case: Case) -> None:
    """A rule that computed from `np.asarray(node)` would raise here, or differ from the rule on ordinary nodes."""
    cg.interception(False)  # NumPy's and SciPy's own functions
    try:
        _compare(case)
    finally:
        cg.interception(True)


def _compare(case: Case) -> None:
    with np.errstate(all="ignore"):
        expected = derivatives(case, is_strict=False)
        with cg.strict():
            results = derivatives(case, is_strict=True)
        assert results.keys() == expected.keys()
        for name in expected:
            for one, other in zip(plain(results[name]), plain(expected[name]), strict=True):
                assert (one.dtype, one.shape) == (other.dtype, other.shape), name
                assert np.array_equal(one, other, equal_nan=True), name
