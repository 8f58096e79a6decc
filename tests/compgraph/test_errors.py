"""`compgraph.errors`: public classes, their pickles, and the category and line of each warning."""

from __future__ import annotations

import ast
import importlib
import inspect
import os
import pickle
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import harmonic_mean
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import scipy.sparse.linalg

import autodiff as ad
import compgraph as cg
from autodiff.compat.hips import operators as hips
from autodiff.reverse import gradient

pytestmark = pytest.mark.portable

ROOT = Path(cg.__file__).resolve().parent.parent
ERRORS = [getattr(cg.errors, name) for name in cg.errors.__all__]
OF_AUTODIFF = [ad.DerivativeWarning, ad.DetachedGradientError, ad.LostGraphError]


# ------------------------------------------------------------------------------------------------------------ classes


def classes(base: type) -> Iterator[type]:
    """Yield the subclasses of an exception that the two packages define."""
    for each in base.__subclasses__():
        yield from classes(each)
        if each.__module__.partition(".")[0] in ("compgraph", "autodiff"):
            yield each


def test_warning_categories_are_public() -> None:
    assert {*classes(Warning)} == {each for each in ERRORS + OF_AUTODIFF if issubclass(each, Warning)}


def test_errors_with_public_module_are_importable() -> None:
    public = [each for each in classes(Exception) if each.__module__ in ("compgraph", "compgraph.errors", "autodiff")]
    assert {*public} == {*ERRORS, *OF_AUTODIFF}
    for each in public:
        assert getattr(importlib.import_module(each.__module__), each.__name__) is each
        assert each.__doc__


@pytest.mark.parametrize("name", ["BatchedValueError", "GuardError", "LeakError", "NonFiniteError"])
def test_error_class_of_earlier_import_path_is_same(name: str) -> None:
    assert getattr(cg, name) is getattr(cg.errors, name)
    assert getattr(cg, name).__module__ == "compgraph"  # the name in existing pickles


def leak() -> Any:
    return ad.grad(lambda x: x[0] + harmonic_mean(x))(np.array([1.0, 2.0]))


def hidden() -> Any:
    return ad.grad(lambda x: np.sum(x.__array_interface__))(np.ones(2))


def guarded() -> Any:
    x = cg.variable(1.0, "x")
    return cg.Executor(x if x > 0 else -x).run({"x": -1.0})


def batched() -> Any:
    return ad.vmap(lambda x: float(x))(np.ones(3))


def not_finite() -> Any:
    with np.errstate(divide="ignore"), cg.debug():
        return np.log(cg.variable([0.0, 1.0]))


def unsized() -> Any:
    return ad.grad(lambda x: len(x) * x)(2.0)


def lost() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ad.grad(lambda x: float(x) ** 2)(2.0)


def detached() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ad.grad(lambda x: x + float(x) ** 2, verify="first")(3.0)


RAISED = {
    leak: cg.errors.LeakError,
    hidden: cg.errors.HiddenError,
    guarded: cg.errors.GuardError,
    batched: cg.errors.BatchedValueError,
    not_finite: cg.errors.NonFiniteError,
    unsized: cg.errors.UnsizedError,
    lost: ad.LostGraphError,
    detached: ad.DetachedGradientError,
}


@pytest.mark.parametrize("program", RAISED, ids=lambda f: f.__name__)
def test_error_instances_can_be_pickled(program: Callable[[], Any]) -> None:
    with pytest.raises(RAISED[program]) as caught:
        program()
    copied = pickle.loads(pickle.dumps(caught.value))
    assert type(copied) is type(caught.value) is RAISED[program]
    assert str(copied) == str(caught.value)


def test_drawing_of_pickled_error_raises() -> None:
    with pytest.raises(cg.NonFiniteError) as caught:
        not_finite()
    assert caught.value.picture()
    with pytest.raises(ValueError, match="forward mode and pickled errors keep none"):
        pickle.loads(pickle.dumps(caught.value)).picture()


# ----------------------------------------------------------------------------------------------------------- warnings


def conversion() -> None:
    ad.grad(lambda x: x + float(x) ** 2)(3.0)  # here


def caught_error() -> None:
    def f(x: Any) -> Any:
        try:
            return harmonic_mean(x)
        except cg.LeakError:
            return x[0]

    ad.grad(f)(np.ones(2))  # here


def constant_from_a_node() -> None:
    x = cg.variable([1.3, 2.0])
    y = x * (float(x[0]) * 1.7)
    gradient(np.sum(y))  # here


def zero_derivative() -> None:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*this number has no derivative")
        ad.grad(lambda x, y: y * float(x), argnums=(0, 1))(3.0, 2.0)  # here


def zero_tangent() -> None:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*this number has no derivative")
        ad.jvp(lambda x: np.float64(float(x)) * cg.variable(1.0), (3.0,), (1.0,))  # here


def executor_of_a_leak() -> None:
    x = cg.variable(2.0, "x")
    y = x * float(x)
    cg.Executor(y)  # here


def subgraph_of_a_leak() -> None:
    x = cg.variable(2.0, "x")
    y = np.exp(x)
    z = y * float(y)
    cg.subgraph(z, y)  # here


def outdated_variable() -> None:
    a, x = cg.variable(2.0, "a"), cg.variable(3.0, "x")
    y = x * float(a)
    run = cg.Executor(y).run
    a[...] = 5.0
    run({x: 1.0})  # here


def rule_that_divides_by_zero() -> None:
    gradient(np.sum(np.sqrt(cg.variable([0.0, 1.0]))))  # here


def tangent_that_divides_by_zero() -> None:
    ad.jvp(np.sqrt, (np.zeros(2),), (np.ones(2),))  # here


def equal_eigenvalues() -> None:
    ad.grad(lambda a: np.linalg.eigh(a)[0][0])(np.eye(3))  # here


def defective_matrix() -> None:
    ad.grad(lambda a: np.real(np.linalg.eigvals(a)[0]))(np.array([[1.0, 1.0], [0.0, 1.0]]))  # here


def singular_values_of_zero() -> None:
    ad.grad(lambda a: np.sum(np.linalg.svd(a)[0][:, 2]))(np.diag([1.0, 2.0, 0.0, 0.0])[:, :3])  # here


def sparse_format() -> None:
    a = scipy.sparse.coo_array(np.diag([1.0, 2.0]))
    scipy.sparse.linalg.spsolve(a, cg.variable([1.0, 1.0]))  # here


def degrees_of_freedom() -> None:
    with np.errstate(all="ignore"):
        np.cov(cg.variable([[1.0]]))  # here


def ill_conditioned_fit() -> None:
    np.polyfit(cg.variable(np.ones(4)), np.ones(4), 3)  # here


def independent_output() -> None:
    hips.grad(lambda x: 3.0)(2.0)  # here


def real_input() -> None:
    hips.holomorphic_grad(lambda x: x**2)(2.0)  # here


def renamed() -> None:
    cg.EscapeError  # noqa: B018  # here


WARNED: dict[Callable[[], None], type[Warning]] = {
    **dict.fromkeys((conversion, caught_error, constant_from_a_node, zero_derivative, zero_tangent), cg.errors.LeakWarning),
    **dict.fromkeys((executor_of_a_leak, subgraph_of_a_leak, outdated_variable), cg.errors.GuardWarning),
    **dict.fromkeys((rule_that_divides_by_zero, tangent_that_divides_by_zero, equal_eigenvalues), ad.DerivativeWarning),
    **dict.fromkeys((defective_matrix, singular_values_of_zero), ad.DerivativeWarning),
    sparse_format: scipy.sparse.SparseEfficiencyWarning,
    degrees_of_freedom: RuntimeWarning,
    ill_conditioned_fit: np.exceptions.RankWarning,
    **dict.fromkeys((independent_output, real_input), UserWarning),
    renamed: DeprecationWarning,
}


def place_of(program: Callable[[], Any]) -> tuple[str, int]:
    """The file and the line marked in the source of a program."""
    lines, start = inspect.getsourcelines(program)
    return __file__, next(start + k for k, line in enumerate(lines) if line.rstrip().endswith("# here"))


@pytest.mark.parametrize("program", WARNED, ids=lambda f: f.__name__)
def test_warning_has_category_and_users_line(program: Callable[[], Any]) -> None:
    with warnings.catch_warnings(record=True) as records:
        warnings.simplefilter("always")
        program()
    assert {(w.category, w.filename, w.lineno) for w in records} == {(WARNED[program], *place_of(program))}


@pytest.mark.parametrize("program", [f for f, kind in WARNED.items() if kind.__module__ in ("compgraph.errors", "autodiff")])
@pytest.mark.parametrize("kind", ["exact", "RuntimeWarning"])
def test_warning_can_be_silenced_by_category(program: Callable[[], Any], kind: str) -> None:
    with warnings.catch_warnings(record=True) as records:
        warnings.simplefilter("always")
        warnings.filterwarnings("ignore", category=WARNED[program] if kind == "exact" else RuntimeWarning)
        program()
    assert not records


def compiled_in_the_background() -> None:
    f = cg.jit(lambda x: x * 2 + 1)
    for _ in range(4):
        f(np.ones(3))  # here
        f.wait()


def compiled_at_once() -> None:
    cg.jit(lambda x: x * 3 - 1).compile(np.ones(3))  # here


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="files have no owners here, so nothing is cached")
@pytest.mark.parametrize("program", [compiled_in_the_background, compiled_at_once], ids=lambda f: f.__name__)
def test_cache_warning_has_line_of_call(program: Callable[[], Any], tmp_path: Path, monkeypatch: Any) -> None:
    pytest.importorskip("llvmlite")
    tmp_path.chmod(0o777)
    monkeypatch.setenv("COMPGRAPH_CACHE", str(tmp_path))
    with warnings.catch_warnings(record=True) as records:
        warnings.simplefilter("always")
        program()
    assert [(w.category, w.filename, w.lineno) for w in records] == [(cg.errors.CompileWarning, *place_of(program))]


@pytest.mark.parametrize("program", [compiled_in_the_background, compiled_at_once], ids=lambda f: f.__name__)
def test_missing_compiler_warning_has_line_of_call(program: Callable[[], Any], monkeypatch: Any) -> None:
    pytest.importorskip("llvmlite")
    from compgraph.compiled.llvm import backend
    from compgraph.executor import fastest_backend

    def processor() -> Any:
        raise backend.NoCompilerError("the processor has neither AVX2 with FMA, nor NEON")

    monkeypatch.setattr(backend, "processor", processor)
    fastest_backend.cache_clear()
    try:
        with warnings.catch_warnings(record=True) as records:
            warnings.simplefilter("always")
            program()
    finally:
        fastest_backend.cache_clear()
    assert [(w.category, w.filename, w.lineno) for w in records] == [(cg.errors.CompileWarning, *place_of(program))]


def test_warning_calls_of_packages_use_user_line() -> None:
    """The packages call `warn_user` and `warn_at`, except for NumPy's warnings in `ops` and for deprecated names."""
    calls: list[str] = []
    for package in ("compgraph", "autodiff"):
        for path in sorted((ROOT / package).rglob("*.py")):
            if path.parts[-3:-1] == ("ops", "compositions"):
                continue
            nodes = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
            calls += [ast.unparse(node) for node in nodes if ast.unparse(node.func) in ("warnings.warn", "warn")]
    assert calls
    assert [call for call in calls if "DeprecationWarning" not in call] == []
