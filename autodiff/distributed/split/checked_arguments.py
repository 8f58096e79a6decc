"""Checks of the arguments of `Split`."""

from __future__ import annotations

from typing import Any

from compgraph.executor import collect_dependencies, retrace_sources_of
from compgraph.guards import guards_of, warn_leaks
from compgraph.values import PlaceholderNode, Value, VariableNode, describe, require_history

from ...arguments import flatten
from .layout import is_operation


def resolve_client(client: Any) -> tuple[Any, bool]:
    """Return a Dask client, and whether this function created it; None stays None."""
    import distributed

    client_class: Any = distributed.Client

    if isinstance(client, str):
        return client_class(client, direct_to_workers=True), True
    if client is not None and not isinstance(client, client_class):
        raise TypeError(
            f"Split: client must be a dask.distributed.Client, the address of a scheduler or None, not {type(client).__name__}."
        )
    if client is not None and client.asynchronous:
        raise TypeError("Split: the client is asynchronous. Create it with asynchronous=False.")
    return client, False


def check_count(name: str, value: Any) -> int:
    """Return an integer, checked to be at least 1."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(f"Split: {name} must be an integer of at least 1, not {value!r}.")
    return value


def flatten_variables(tree: Any) -> tuple[list[Any], Any]:
    """Return the leaves of the nested parameters, and their structure."""
    leaves, structure = flatten(tree)
    if not leaves:
        raise TypeError("Split: there are no parameters. Pass variables of the graph.")
    for leaf in leaves:
        if not isinstance(leaf, VariableNode):
            raise TypeError(f"Split: parameters must be variables (cg.variable), not a {type(leaf).__name__}.")
    if len({id(leaf) for leaf in leaves}) < len(leaves):
        raise ValueError("Split: a parameter is passed twice.")
    return leaves, structure


def list_graph(output: Any) -> list[Any]:
    """Return the graph of the output, with the guards, in the order of recording."""
    require_history(output)
    if not isinstance(output, Value) or not is_operation(output):
        raise TypeError(f"Split: the output must be a result of operations on nodes, not a {type(output).__name__}.")
    if output.level:
        raise TypeError("Split: the output carries tangents. Pass its primal value.")
    guards, leaked_values = guards_of(collect_dependencies([output], retrace_sources_of))
    warn_leaks(leaked_values)
    checkable_guards = [guard for guard in guards if not any(map(_is_fed, collect_dependencies([guard], retrace_sources_of)))]
    return collect_dependencies([output, *checkable_guards], retrace_sources_of)


def _is_fed(item: Any) -> bool:
    """Whether an item replaces a placeholder in a run of an executor with the same variables."""
    return isinstance(item, PlaceholderNode) and not hasattr(item, "declared")


def require_used(output: Any, items: list[Any], parameters: list[Any]) -> None:
    """Raise if the output does not depend on a parameter."""
    reachable = frozenset(items)
    for parameter in parameters:
        if parameter not in reachable:
            raise ValueError(f"Split: the {describe(output)} does not depend on the parameter {parameter.name!r}. Leave it out.")
