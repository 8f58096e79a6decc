"""Checks of the arguments of `Split`."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from compgraph.executor import needed, origins_of
from compgraph.guards import guards_of, warn_leaks
from compgraph.values import PlaceholderNode, Value, VariableNode, describe, require_history

from ...arguments import flatten
from .layout import is_operation


def client_of(client: Any) -> tuple[Any, bool]:
    """Return a Dask client, and whether this function created it; None stays None."""
    import distributed

    client_class: Any = distributed.Client

    if isinstance(client, str):
        return client_class(client, direct_to_workers=True), True
    if client is not None and not isinstance(client, client_class):
        raise TypeError(
            f"client is a dask.distributed.Client, the address of a scheduler, or None, not a {type(client).__name__}"
        )
    if client is not None and client.asynchronous:
        raise TypeError("Split waits for its results, so it takes no asynchronous client; make one with asynchronous=False")
    return client, False


def count_of(name: str, value: int) -> int:
    """Return an integer, checked to be at least 1."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(f"Split: {name} is a number from 1 on, not {value!r}")
    return value


def variables_of(tree: list[Any] | dict[str, Any]) -> tuple[list[Any], Any]:
    """Return the leaves of the nested parameters, and their structure."""
    leaves, structure = flatten(tree)
    if not leaves:
        raise TypeError("Split needs parameters, which are variables of the graph")
    for leaf in leaves:
        if not isinstance(leaf, VariableNode):
            raise TypeError(f"Split: parameters are variables (cg.variable), not a {type(leaf).__name__}")
    if len({id(leaf) for leaf in leaves}) < len(leaves):
        raise ValueError("Split: a parameter is given twice")
    return leaves, structure


def graph_of(output: NDArray[Any]) -> list[Any]:
    """Return the graph of the output, with the guards, in the order of recording."""
    require_history(output)
    if not isinstance(output, Value) or not is_operation(output):
        raise TypeError(f"Split: the output is a result of operations on nodes, not a {type(output).__name__}")
    if output.level:
        raise TypeError("Split cannot run a value that carries tangents")
    guards, escaped = guards_of(needed([output], origins_of))
    warn_leaks(escaped)
    checkable_guards = [guard for guard in guards if not any(map(_is_fed, needed([guard], origins_of)))]
    return needed([output, *checkable_guards], origins_of)


def _is_fed(item: object) -> bool:
    """Whether an item replaces a placeholder in a run of an executor with the same variables."""
    return isinstance(item, PlaceholderNode) and not hasattr(item, "declared")


def require_used(output: NDArray[Any], items: list[Any], parameters: list[Any]) -> None:
    """Raise if the output does not depend on a parameter."""
    known = frozenset(items)
    for parameter in parameters:
        if parameter not in known:
            raise ValueError(f"Split: the {describe(output)} does not depend on the parameter {parameter.name!r}; leave it out")
