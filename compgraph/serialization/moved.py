"""Aliases of renamed modules. Old pickles contain the old names, and an import of an old name finds the new module."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

# Old module names, since version 0.1, and the present ones.
MOVED = {
    "autodiff.arguments.labelled_arrays": "autodiff.arguments.labeled_arrays",
    "autodiff.operators.joint": "autodiff.operators.trace",
    "autodiff.operators.joined_outputs": "autodiff.operators.trace",
    "autodiff.optimizers.pieces": "autodiff.optimizers.rules",
    "autodiff.optimizers.shared_updates": "autodiff.optimizers.rules",
    "autodiff.optimizers.adam": "autodiff.optimizers.rules",
    "autodiff.arguments.derived": "autodiff.arguments.derived_functions",
    "autodiff.distributed.parallel.mean": "autodiff.distributed.data_parallel",
    "compgraph.arrays.memory_layouts": "compgraph.arrays.creation",
    "compgraph.ops.compositions.moving": "compgraph.ops.compositions.array_manipulation",
    "compgraph.ops.compositions.selection": "compgraph.ops.compositions.array_manipulation",
    "compgraph.operations": "compgraph.ops",
    "compgraph.adapters": "compgraph.ops.callables",
    "compgraph.copied": "compgraph.serialization.graphs",
    "compgraph.convolutions": "compgraph.nn.convolutions",
    "compgraph.finding": "compgraph.serialization.pickled_functions",
    "compgraph.functions": "compgraph.nn",
    "compgraph.memory": "compgraph.storage",
    "compgraph.nodes": "compgraph.values",
    "compgraph.scipy.signal.filters": "compgraph.scipy.signal",
    "compgraph.scipy.sparse.linalg.systems_and_functions": "compgraph.scipy.sparse.linalg",
    "compgraph.scipy.spatial.shapes": "compgraph.scipy.spatial",
    "compgraph.scipy.stats.multivariate": "compgraph.scipy.stats.replaced_functions",
    "compgraph.serialization.copied_guards": "compgraph.serialization.graphs",
    "compgraph.serialization.pickled_guards": "compgraph.serialization.graphs",
    "compgraph.serialization.sent_guards": "compgraph.serialization.graphs",
    "compgraph.serialization.carried": "compgraph.serialization.pickled_functions",
    "compgraph.serialization.functions": "compgraph.serialization.pickled_functions",
    "compgraph.trees.tree_flattening": "compgraph.trees",
    "compgraph.tracing.refusals": "compgraph.tracing.leak_errors",
    "compgraph.values.traceable_buffers": "compgraph.values.traced_values",
    "compgraph.values.kinds": "compgraph.values.node_kinds",
    "compgraph.pickling": "compgraph.serialization.graphs",
    "compgraph.pooling": "compgraph.nn.pooling",
    "compgraph.recipes": "compgraph.guards.recipes",
    "compgraph.refusals": "compgraph.tracing.leak_errors",
    "compgraph.replay": "compgraph.executor.retrace",
}

# Old names of classes and functions in pickles, and the present ones.
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
    "_guard": "_rebuild_guard",
    "_loaded": "_rebuild_guards",
}

# Former opnames in pickles, and the present ones.
RENAMED_OPERATIONS = {"added_at": "scatter_add", "laid": "scatter_to_buffer"}


class Moved:
    """An import hook for old module names: a finder and loader, last in `sys.meta_path`."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Return the specification for an old name of `MOVED`, and None for others."""
        return ModuleSpec(name, Moved) if name in MOVED else None  # type: ignore[arg-type]

    @staticmethod
    def create_module(spec: ModuleSpec) -> None:
        """Return None, which lets Python make an empty module."""

    @staticmethod
    def exec_module(module: Any) -> None:
        """Forward attribute lookup to the new module."""
        target = importlib.import_module(MOVED[module.__name__])

        def look_up(name: str) -> Any:
            return getattr(target, RENAMED.get(name, name))

        module.__getattr__ = look_up


sys.meta_path.append(Moved)
