"""Every public name of NumPy, called as a user of plain NumPy calls it: the value, and the first derivative.

Options, dtypes and higher orders of the operations that are recorded are in `tests/test_operations.py`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import compgraph as cg
from autodiff import numeric
from autodiff.forward import jvp
from autodiff.operators.grad import vjp
from tests.support import every_nondiff_name
from tests.support.arguments import Case
from tests.support.checks.rules import close, directions, product
from tests.support.every_name import EXAMPLES, MISCOUNTED, TABLES, UNSUPPORTED, Examples, agree, numbers, parts
from tests.support.failures import Failures

SURFACE: dict[str, list[str]] = json.loads((Path(__file__).parent / "numpy_surface.json").read_text())
REMOVED = {"np.row_stack"} if not hasattr(np, "row_stack") else set()  # what the NumPy at hand has no more
NONDIFF = every_nondiff_name.examples(SURFACE["nondiff"])

pytestmark = [
    pytest.mark.portable,
    pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning"),
    pytest.mark.filterwarnings("ignore:`row_stack` alias:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:numpy.fix is deprecated:DeprecationWarning"),
]


def cases(examples: Examples) -> list[Case]:
    """The examples as cases."""
    return [Case(name, label, function, tuple(args)) for name, some in examples.items() for label, function, *args in some]


def groups(tables: dict[str, Examples]) -> dict[str, Examples]:
    """The examples of each ufunc with its methods, and of each table of other names."""
    tables_by_group: dict[str, Examples] = {}
    for table, examples in tables.items():
        for name, some in examples.items():
            root = name.split(".")[1]
            tables_by_group.setdefault(f"np.{root}" if isinstance(getattr(np, root), np.ufunc) else table, {})[name] = some
    return tables_by_group


DIFF = groups(TABLES)
NONDIFF_GROUPS = groups({"functions and methods": NONDIFF})


@contextmanager
def unless_numpy_is_wrong(case: Case) -> Iterator[None]:
    """Ignore an error about a wrong value of NumPy itself, which `test_ufunc_methods` checks."""
    try:
        yield
    except RuntimeError as error:
        if case.opname not in MISCOUNTED or "differs from that of its steps" not in str(error):
            raise


@contextmanager
def unless_written_into_a_plain_array(first: bool) -> Iterator[None]:
    """Ignore the error of writing a node into an array made by the first argument, if the first argument is not a node."""
    try:
        yield
    except TypeError as error:
        if first or not any(text in str(error) for text in ("would write a node into a plain array", "ndarray.fill() takes")):
            raise


# ------------------------------------------------------------------------------- with a useful derivative


def test_differentiable_names_all_have_examples() -> None:
    assert set(EXAMPLES) == set(SURFACE["diff"]) - REMOVED
    assert all(EXAMPLES.values())
    assert set(UNSUPPORTED) <= set(EXAMPLES)


def test_unsupported_name_raises() -> None:
    with Failures("names that are not supported") as failures:
        for case in cases({name: EXAMPLES[name] for name in UNSUPPORTED}):
            with failures.case(str(case)), pytest.raises(TypeError, match=UNSUPPORTED[case.opname]):
                case.function(*map(cg.variable, case.args))


@pytest.mark.parametrize("group", DIFF)
def test_differentiable_name_matches_numpy_and_differences(group: str) -> None:
    with Failures(group) as failures:
        for case in cases({name: some for name, some in DIFF[group].items() if name not in UNSUPPORTED}):
            with failures.case(f"{case}, value"):
                check_value(case)
            with failures.case(f"{case}, derivatives"):
                check_derivatives(case)


def check_value(case: Case) -> None:
    """Compare the bits with NumPy's, with all arguments nodes and with each of them alone."""
    expected = case.function(*[x.copy() for x in case.args])
    result = case.function(*map(cg.variable, case.args))
    agree(result, expected)
    lost = [p for p in parts(result) if np.result_type(p).kind in "fc" and not isinstance(p, cg.Node)]
    assert not lost, f"{lost} has no graph"
    if len(case.args) > 1:
        for i in range(len(case.args)):
            with unless_written_into_a_plain_array(first=i == 0):
                agree(case.function(*[cg.variable(x) if i == k else x.copy() for k, x in enumerate(case.args)]), expected)


def check_derivatives(case: Case) -> None:
    """Compare cotangents and tangent with central differences, and with each other."""
    case = numbers(case)
    u, v = directions(case)
    with unless_numpy_is_wrong(case):
        pulled = vjp(case.function, *case.args)[1](u)
        for i, expected in enumerate(numeric.gradient(case.function, case.args, weights=u)):
            close(pulled[i], expected, 1e-6, f"cotangent {i}")
        tangent = jvp(case.function, case.args, v)[1]
        close(tangent, numeric.directional(case.function, case.args, v), 1e-6, "tangent")
        forward, reverse = product([u], [tangent]), product(pulled, v)
        size = 1 + sum(float(np.sum(np.abs(a * t))) for a, t in zip(pulled, v, strict=True))
        assert abs(forward - reverse) <= 1e-10 * size, f"<u, Jv> = {forward}, <J^T u, v> = {reverse}"


# ---------------------------------------------------------------------------- without a useful derivative


def test_other_names_all_have_examples() -> None:
    assert set(NONDIFF) == set(SURFACE["nondiff"])


def as_node(x: Any) -> Any:
    """An array of floats as a variable, of others as a constant."""
    return cg.variable(x) if x.dtype.kind == "f" else cg.constant(x)


@pytest.mark.filterwarnings("ignore:divide by zero:RuntimeWarning", "ignore:invalid value:RuntimeWarning")
@pytest.mark.parametrize("group", NONDIFF_GROUPS)
def test_other_name_matches_numpy(group: str) -> None:
    """Results equal NumPy's, recorded or plain, and have the right derivatives."""
    with Failures(group) as failures:
        for case in cases(NONDIFF_GROUPS[group]):
            with failures.case(str(case)):
                check_any_derivative(case)


def check_any_derivative(case: Case) -> None:
    """Compare the bits with NumPy's, and the derivatives by float arguments with central differences."""
    try:
        expected = case.function(*case.args)
    except TypeError:
        with pytest.raises(TypeError):
            case.function(*map(as_node, case.args))
        return
    nodes = [as_node(x) for x in case.args]
    result = case.function(*nodes)
    agree(result, expected)
    moving = [i for i, x in enumerate(case.args) if x.dtype.kind == "f"]
    floats = [p for p in parts(result) if isinstance(p, cg.Node) and p.dtype.kind == "f"]
    if not moving or not floats:
        return

    def among(*args: Any) -> Any:
        values = dict(zip(moving, args, strict=True))
        return numbers(case).function(*[values.get(i, x) for i, x in enumerate(case.args)])

    arrays = [case.args[i] for i in moving]
    u, v = directions(Case(case.opname, case.label, among, tuple(arrays)))
    for x, reference in zip(vjp(among, *arrays)[1](u), numeric.gradient(among, arrays, weights=u), strict=True):
        close(x, reference, 1e-6, "cotangent")
    close(jvp(among, arrays, v)[1], numeric.directional(among, arrays, v), 1e-6, "tangent")


def test_other_names_mostly_accept_an_example() -> None:
    """NumPy must accept at least one example of each name."""
    unseen = set()
    for name, some in NONDIFF.items():
        if all(_raises(function, args) for _, function, *args in some):
            unseen.add(name)
    assert unseen <= NO_NUMBERS


def _raises(function: Callable[..., Any], args: Any) -> bool:
    try:
        function(*args)
    except TypeError:
        return True
    return False


# NumPy has these for dates alone, or not at all.
NO_NUMBERS = {"np.isnat", "np.isnat.at", "np.ldexp.reduce", "np.ldexp.accumulate", "np.ldexp.reduceat"}
