"""One operation, one place: no module outside of the table and of named registries decides by an operation."""

from __future__ import annotations

import textwrap

import pytest

from tests.support.failures import Failures
from tests.support.operation_mentions import mentions, mentions_in
from tests.test_imports import modules, name_of

# The table and the derivative rules.
TABLES = ("compgraph.ops", "autodiff.grads")
# Modules and packages that may name operations, and the reason: most are registries with one purpose, keyed by operation.
REGISTRIES = {
    "compgraph": "public names that are imported on first use",
    "compgraph._stubs": "parameters of functions that old versions of NumPy lack",
    "compgraph.arrays.creation": "constructors of arrays like a node",
    "compgraph.compiled.engines": "counterparts in other libraries, and NumPy's conversions of their operands",
    "compgraph.compiled.llvm": "lowerings of functions, and the code and cost of the compiler's elementwise instructions",
    "compgraph.guards.guarded_errors": "errors of Python's operators",
    "compgraph.guards.guarded_shapes": "functions that guards evaluate",
    "compgraph.interception.math_functions": "counterparts of the functions of math, cmath and statistics",
    "compgraph.printing.calls": "methods and keywords in the text of a call",
    "compgraph.printing.notation": "commands of LaTeX",
    "compgraph.printing.symbolic_arrays": "names that formulas of the table may use",
    "compgraph.protocols.class_views": "methods of arrays that NumPy implements without ufuncs",
    "compgraph.protocols.functions": "handlers of calls with nodes",
    "compgraph.protocols.hints": "names of other packages",
    "compgraph.scipy": "policies: the table of SciPy's functions",
    "compgraph.serialization.graphs": "former names of options, in earlier pickles",
    "autodiff.batching.rules": "batching rules",
    "autodiff.operators.contractions": "subscripts of products",
    "autodiff.operators.taylor": "recurrences of Taylor coefficients",
    "autodiff.operators.sparsity_patterns": "patterns of sparse Jacobians",
}


def registry_of(name: str) -> str | None:
    """The registry that contains a module: the module itself, or a package of it; `compgraph` is its ``__init__`` alone."""
    parts = name.split(".")
    prefixes = [".".join(parts[:count]) for count in range(len(parts), 1, -1)]
    return next((prefix for prefix in (name, *prefixes) if prefix in REGISTRIES), None)


def test_mentions_of_operations_are_in_table_or_registries() -> None:
    used = set()
    with Failures("modules") as failures:
        for path in modules(with_init=True):
            name = name_of(path)
            if f"{name}.".startswith(tuple(f"{table}." for table in TABLES)):
                continue
            with failures.case(name):
                named = mentions(path)
                registry = registry_of(name)
                if registry is None:
                    assert named == [], "state this in the entry of the operation (`ops.OpSpec`), or in a registry by operation"
                elif named:
                    used.add(registry)
    assert set(REGISTRIES) - used == set()


@pytest.mark.parametrize(
    "source",
    [
        "SMOOTH = frozenset({np.sin, other})",
        "TABLE = {np.linalg.det: 1}",
        "TABLE = {ops.NUMPY.tile: 1}",
        "NAMES = ('cumsum', 'cumprod', 'other')",
        "TABLE = dict.fromkeys(('argmin', 'argmax'), 1)",
        "NAMES = 'cumsum cumprod argmin other'.split()",
        "def f(x):\n    return x.function is np.std",
        "def f(x):\n    return x.function in (np.sum, ops.power)",
        "def f(x):\n    if x.opname == 'logaddexp':\n        return 1",
        "def f(opname):\n    return opname not in ('add', 'other')",
        "class C:\n    def f(self):\n        return self.function is not numpy.fft.fft2",
    ],
)
def test_mentions_find_decision_by_operation(source: str) -> None:
    assert len(mentions_in(source)) == 1


def test_mentions_leave_calls_and_other_names() -> None:
    source = """
        __all__ = ["cumsum", "cumprod"]
        _asarray, _where = np.asarray, np.where
        MODES = ("full", "same", "valid")
        DTYPES = frozenset({np.float64, np.float32})
        TABLE = {"first": np.sin(1.0), "second": lambda x: np.cos(x)}

        def f(x, mode):
            y = bind(np.add, (np.sin(x), 1))
            return y if mode == "mean" and x.function is ops.getitem else functools.reduce(np.maximum, [x, y])
    """
    assert mentions_in(textwrap.dedent(source)) == []
