"""Modules that were renamed: old pickles name them by their old names, and an import by such a name finds the new module."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

# Old module names in pickles, of version 0.1 and later, and the present ones.
MOVED = {
    "autodiff.arguments.derived": "autodiff.arguments.derived_functions",
    "compgraph.operations": "compgraph.ops",
    "compgraph.adapters": "compgraph.ops.callables",
    "compgraph.copied": "compgraph.serialization.copied_guards",
    "compgraph.convolutions": "compgraph.nn.convolutions",
    "compgraph.finding": "compgraph.serialization.pickled_functions",
    "compgraph.functions": "compgraph.nn",
    "compgraph.memory": "compgraph.storage",
    "compgraph.nodes": "compgraph.values",
    "compgraph.serialization.carried": "compgraph.serialization.pickled_functions",
    "compgraph.serialization.functions": "compgraph.serialization.pickled_functions",
    "compgraph.tracing.refusals": "compgraph.tracing.leak_errors",
    "compgraph.values.kinds": "compgraph.values.node_kinds",
    "compgraph.pickling": "compgraph.serialization.graphs",
    "compgraph.pooling": "compgraph.nn.pooling",
    "compgraph.recipes": "compgraph.guards.recipes",
    "compgraph.refusals": "compgraph.tracing.leak_errors",
    "compgraph.replay": "compgraph.executor.retrace",
}

# Classes that pickles name, by their old names.
RENAMED: dict[str, str] = {
    "DiffersError": "BatchedValueError",
    "Escape": "Leak",
    "EscapeError": "LeakError",
    "InputNode": "ArgumentNode",
    "InputScalarNode": "ArgumentScalarNode",
    "Joint": "MultiOutput",
    "UnreadNode": "UntrackedNode",
    "UnreadScalarNode": "UntrackedScalarNode",
    "Watch": "UntrackedGuard",
}


class Moved:
    """The last finder and loader of `importlib`, which finds modules by their old names."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """The specification for an old name of `MOVED`; None for all others."""
        return ModuleSpec(name, Moved) if name in MOVED else None  # type: ignore[arg-type]

    @staticmethod
    def create_module(spec: ModuleSpec) -> None:
        """Return None, which lets Python make an empty module."""

    @staticmethod
    def exec_module(module: Any) -> None:
        """Let attributes of the old module be looked up in the new one."""
        there = importlib.import_module(MOVED[module.__name__])

        def look_up(name: str) -> Any:
            return getattr(there, RENAMED.get(name, name))

        module.__getattr__ = look_up


sys.meta_path.append(Moved)
