"""The import order: packages that a package may import, and modules that a module of a package may import."""

from __future__ import annotations

import ast
import sys
from functools import cache
from pathlib import Path

import compgraph
from tests.support.failures import Failures

ROOT = Path(compgraph.__file__).resolve().parent.parent

# Import order: a sub-package may import those before it.
COMPGRAPH = ["array_types", "ops", "frames", "context", "tracing", "storage", "values", "interpreters", "bind", "graph", "trees"]
COMPGRAPH += ["guards", "inplace", "arrays", "protocols", "executor", "nn", "interception"]
COMPGRAPH += ["scipy", "view", "compiled", "serialization", "printing", "profiling"]
LAST_OF_COMPGRAPH = ["linalg", "fft", "emath", "debugging", "versions", "autodiff", "errors"]
PROGRAMS = ["__main__", "_stubs"]  # they read both packages, and nothing imports them
AUTODIFF = ["numeric", "arguments", "rules", "batching", "grads", "forward", "reverse", "operators", "custom"]
LAST_OF_AUTODIFF = ["checks", "formulas", "optimizers", "visualize", "distributed", "compat"]
TOP_LEVEL_MODULES = {f"compgraph.{name}" for name in ("array_types", "bind", "graph", "interpreters")}  # imported by all
BESIDE = [  # pairs of sub-packages that do not import each other
    {"inplace", "arrays"},
    {"protocols", "executor"},
    {"nn", "interception"},
    {"printing", "profiling"},
    {"compiled", "serialization"},
]
# These import the core, register with it, or wrap its methods; no package of the core imports them.
OUTSIDE = {"view", "printing", "profiling", "serialization", "compiled", "debugging"}
CORE = [subpackage for subpackage in COMPGRAPH if subpackage not in OUTSIDE]
# Third-party packages other than NumPy that sub-packages of the core import.
OTHERS = {
    "trees": {"optree"},
    "scipy": {"scipy"},
    "interception": {"scipy"},
}
ORDER = {"compgraph": COMPGRAPH + LAST_OF_COMPGRAPH, "autodiff": AUTODIFF + LAST_OF_AUTODIFF}


def modules(with_init: bool = False) -> list[Path]:
    """All modules of both packages; the two ``__init__`` modules that export the public names only `with_init`."""
    return [
        p
        for package in ("compgraph", "autodiff")
        for p in sorted((ROOT / package).rglob("*.py"))
        if with_init or p.parent.parent != ROOT or p.name != "__init__.py"
    ]


def name_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def statements(path: Path) -> list[tuple[str, str]]:
    """Imports of project modules: from which module, and which name."""
    name = name_of(path).split(".")
    package = name if path.name == "__init__.py" else name[:-1]
    pairs = []
    for statement in ast.walk(ast.parse(path.read_text())):
        if isinstance(statement, ast.Import):
            pairs += [alias.name.rpartition(".")[::2] for alias in statement.names]
        elif isinstance(statement, ast.ImportFrom):
            base = package[: len(package) - statement.level + 1] if statement.level else []
            source = ".".join([*base, *([statement.module] if statement.module else [])])
            pairs += [(source, alias.name) for alias in statement.names]
    return [(source, name) for source, name in pairs if source.split(".")[0] in ("compgraph", "autodiff")]


def others(path: Path) -> set[str]:
    """Third-party packages that a module imports anywhere, without NumPy."""
    tree = [*ast.walk(ast.parse(path.read_text()))]
    names = {alias.name for each in tree if isinstance(each, ast.Import) for alias in each.names}
    names |= {each.module for each in tree if isinstance(each, ast.ImportFrom) and not each.level and each.module}
    return {name.partition(".")[0] for name in names} - {*sys.stdlib_module_names, "numpy", "compgraph", "autodiff"}


@cache
def imported(path: Path) -> set[str]:
    """The project's modules that a module imports, as ``package.subpackage.module``."""
    full = {(source, f"{source}.{name}") for source, name in statements(path)}
    return {name if _is_module(name) else source for source, name in full}


def _is_module(name: str) -> bool:
    path = ROOT / Path(*name.split("."))
    return path.is_dir() or path.with_suffix(".py").exists()


def subpackage_of(name: str) -> str:
    return name.split(".")[1]


def test_imports_follow_allowed_direction() -> None:
    with Failures("imports") as failures:
        for path in modules():
            with failures.case(name_of(path)):
                check_arrows(path)


def check_arrows(path: Path) -> None:
    """Fail if a module imports from a package that is later in the order, or on the same level."""
    package, subpackage = name_of(path).split(".")[:2]
    if subpackage in PROGRAMS:
        return
    order = ORDER[package]
    assert subpackage in order, f"{subpackage} has no place in the import order"
    last = LAST_OF_COMPGRAPH if package == "compgraph" else LAST_OF_AUTODIFF
    for other in imported(path):
        assert other.split(".")[1:2] not in [[program] for program in PROGRAMS], f"{other} is a program"
        if other.split(".")[0] != package:
            assert package == "autodiff", f"compgraph must not import {other}"
        elif subpackage_of(other) != subpackage and subpackage not in last:
            assert order.index(subpackage_of(other)) < order.index(subpackage), f"{subpackage} precedes {subpackage_of(other)}"
            assert not any({subpackage, subpackage_of(other)} <= pair for pair in BESIDE), (
                f"{subpackage} is on the level of {subpackage_of(other)}"
            )


def test_imports_of_core_exclude_outer_packages() -> None:
    with Failures("imports") as failures:
        for path in modules():
            package, subpackage = name_of(path).split(".")[:2]
            if package == "compgraph" and subpackage in CORE:
                with failures.case(name_of(path)):
                    assert not {subpackage_of(other) for other in imported(path) if "." in other} & OUTSIDE
                    assert others(path) <= OTHERS.get(subpackage, set())


def test_imports_of_view_by_backend_are_limited() -> None:
    importers = [name_of(p) for p in modules() if any(f"{o}.".startswith("compgraph.view.") for o in imported(p))]
    assert [name for name in importers if name.startswith("compgraph.compiled")] == ["compgraph.compiled.llvm.program_drawing"]


def test_imports_of_modules_are_private_to_package() -> None:
    """Other packages import from the package, whose ``__init__`` exports names for them."""
    with Failures("imports") as failures:
        for path in modules():
            with failures.case(name_of(path)):
                check_that_private_modules_are_left_alone(path)


def check_that_private_modules_are_left_alone(path: Path) -> None:
    """Fail if a module imports from a module of another sub-package, or a name that its ``__init__`` does not export."""
    mine = name_of(path if path.name == "__init__.py" else path.parent)
    for source, name in statements(path):
        subpackage = ROOT / Path(*source.split("."))
        is_near = f"{mine}.".startswith(f"{source.rpartition('.')[0]}.") or mine.startswith("compgraph.ops.")
        if is_near or source in TOP_LEVEL_MODULES:
            continue
        assert subpackage.is_dir(), f"{source} is private to its sub-package"
        if len(source.split(".")) > 1 and not f"{mine}.".startswith(f"{source}."):
            assert name in _shown(subpackage / "__init__.py") or source == "autodiff.grads", f"{source} does not show {name}"


@cache
def _shown(path: Path) -> set[str]:
    """The names that the ``__init__`` of a sub-package imports or defines for others, and its own sub-packages."""
    body = ast.parse(path.read_text()).body
    imports = {alias.asname or alias.name for s in body if isinstance(s, ast.ImportFrom) for alias in s.names}
    definitions = {s.name for s in body if isinstance(s, (ast.FunctionDef, ast.ClassDef)) and not s.name.startswith("_")}
    return imports | definitions | {p.name for p in path.parent.iterdir() if p.is_dir()}


def test_imports_have_no_cycle() -> None:
    arrows = {name_of(p): imported(p) for p in modules() if p.name != "__init__.py"}
    order: set[str] = set()
    while len(order) < len(arrows):
        ready = {m for m, others in arrows.items() if m not in order and all(o in order or o not in arrows for o in others)}
        assert ready, f"a cycle among {sorted(set(arrows) - order)}"
        order |= ready


def test_import_collection_finds_imports() -> None:
    assert "compgraph.graph" in imported(ROOT / "compgraph" / "protocols" / "ufuncs.py")
    assert "autodiff.rules" in imported(ROOT / "autodiff" / "grads" / "elementwise_functions.py")
    assert "compgraph.graph" in imported(ROOT / "autodiff" / "reverse" / "gradient.py")
    assert "compgraph.values.node" in imported(ROOT / "compgraph" / "values" / "__init__.py")
