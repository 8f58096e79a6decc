"""Mentions of operations in source: code that decides by the name or the function of an operation."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import autodiff.grads  # noqa: F401 (registers the operations of rules)
from compgraph import ops
from compgraph.scipy.policy import register_imported

_NAMESPACES = frozenset({"np", "numpy", "NUMPY"})
# Indexing, arguments of operators, barriers of derivatives: parts of how graphs work, which NumPy does not have as functions.
_MECHANISMS = frozenset({"getitem", "input_of", "stop_gradient"})
_UNMENTIONED = frozenset({"__all__", "__slots__"})  # names of Python, not of operations
_SUBMODULES = {"linalg": np.linalg, "fft": np.fft, "emath": np.emath}


class Mention(NamedTuple):
    """Code that names an operation."""

    line: int
    text: str


@cache
def functions_of_numpy() -> frozenset[str]:
    """The names of NumPy's functions of arrays, as in source."""
    others = {spec.function for spec in ops.UNDISPATCHED if spec.external in ("print options", "settings")}
    names = {f"np.{name}" for name in np.__all__ if _is_function(f := getattr(np, name)) and f not in others}
    for module, namespace in _SUBMODULES.items():
        names |= {f"np.{module}.{name}" for name in namespace.__all__ if _is_function(getattr(namespace, name))}
    return frozenset(names)


def _is_function(value: object) -> bool:
    return callable(value) and not isinstance(value, type) and getattr(type(value), "__hash__", None) is not None


@cache
def functions_of_package() -> frozenset[str]:
    """The names of the recorded functions that `compgraph.ops` exports, except those that the packages are built from."""
    recorded = {spec.function for spec in ops.OPERATIONS}
    return frozenset(n for n in ops.__all__ if _is_function(f := getattr(ops, n)) and f in recorded) - _MECHANISMS


@cache
def names_of_operations() -> frozenset[str]:
    """The opnames, and the names of NumPy's functions."""
    register_imported()
    return frozenset(ops.OPNAMES.values()) | {name.rpartition(".")[2] for name in functions_of_numpy()}


def function_name(expression: ast.AST) -> str | None:
    """The name of an operation that an expression evaluates to: ``np.sin``, ``ops.NUMPY.sin``, ``ops.power``."""
    if not isinstance(expression, ast.Attribute):
        return None
    holder = expression.value
    if isinstance(holder, ast.Name) and holder.id == "ops":
        return expression.attr if expression.attr in functions_of_package() else None
    module = ""
    if isinstance(holder, ast.Attribute) and holder.attr in _SUBMODULES:
        module, holder = f"{holder.attr}.", holder.value
    base = holder.attr if isinstance(holder, ast.Attribute) else getattr(holder, "id", None)
    name = f"np.{module}{expression.attr}"
    return name if base in _NAMESPACES and name in functions_of_numpy() else None


def mentions(path: Path) -> list[Mention]:
    """The lines of a module that decide by an operation."""
    return mentions_in(path.read_text())


def mentions_in(source: str) -> list[Mention]:
    """The lines of source that decide by an operation: comparisons with one, and collections with one or with several names.

    A call of a function, and a function passed as an argument, decide nothing.
    """
    tree = ast.parse(source)
    found = [*_comparisons(tree), *_collections(tree)]
    return sorted(set(found))


def _comparisons(tree: ast.Module) -> Iterator[Mention]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.Compare):
            continue
        sides = [node.left, *node.comparators]
        elements = [e for side in sides for e in (side.elts if isinstance(side, (ast.Tuple, ast.Set, ast.List)) else (side,))]
        functions = [name for e in elements if (name := function_name(e)) is not None]
        is_of_opname = any(ast.unparse(side).endswith("opname") for side in sides)
        strings = [e.value for e in elements if isinstance(e, ast.Constant) and isinstance(e.value, str)] if is_of_opname else []
        if functions or any(each in names_of_operations() for each in strings):
            yield Mention(node.lineno, ast.unparse(node))


def _collections(tree: ast.Module) -> Iterator[Mention]:
    for statement in tree.body:
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) or _is_parallel_assignment(statement):
            continue
        targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
        if any(isinstance(target, ast.Name) and target.id in _UNMENTIONED for target in targets):
            continue
        for node in ast.walk(statement):
            if _lists_operations(node):
                yield Mention(node.lineno, ast.unparse(node)[:100])


def _lists_operations(node: Any) -> bool:
    """Whether an expression is a collection of functions or names, or a text of names."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str) and _is_list_of_names(node.value)
    elements = node.keys if isinstance(node, ast.Dict) else getattr(node, "elts", ())
    return isinstance(node, (ast.Dict, ast.Set, ast.List, ast.Tuple)) and _names_operations([e for e in elements if e])


def _is_list_of_names(text: str) -> bool:
    """Whether a text is a list of names, of which most are operations: ``"cumsum cumprod argmin".split()``."""
    words = text.split()
    return len(words) > 2 and 2 * sum(word in names_of_operations() for word in words) > len(words)


def _is_parallel_assignment(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Tuple)


def _names_operations(elements: list[ast.expr]) -> bool:
    """Whether a collection has a function among its elements, or consists of names of which most are operations."""
    if any(function_name(e) is not None for e in elements):
        return True
    strings = [e.value for e in elements if isinstance(e, ast.Constant) and isinstance(e.value, str)]
    named = [each for each in strings if each in names_of_operations()]
    return len(named) >= 2 and 2 * len(named) > len(elements)
