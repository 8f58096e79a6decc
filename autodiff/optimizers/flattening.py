"""Conversion between nested arguments and SciPy's vector of float64."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from compgraph.values import Value, require_computed, require_history

from ..arguments import flatten, unflatten


class VectorLayout:
    """The positions of the numbers of a tree in a vector.

    Parameters
    ----------
    tree : object
        Real arrays, variables and numbers, nested in any way. Integers become float64; floating leaves keep their dtype.

    Attributes
    ----------
    start : numpy.ndarray
        The numbers of the tree, of dtype float64 and shape ``(n,)``.

    Raises
    ------
    TypeError
        If a leaf is complex, longdouble or not numeric, or the tree contains no numbers.
    """

    def __init__(self, tree: Any) -> None:
        leaves, self.structure = flatten(tree)
        arrays = [_as_real_array(leaf) for leaf in leaves]
        self.shapes = [a.shape for a in arrays]
        self.dtypes = [a.dtype for a in arrays]
        # Whether each leaf is a Python number, which `to_result` returns as a scalar instead of a 0-d array.
        self.leaf_is_number = [not isinstance(leaf, np.ndarray) for leaf in leaves]
        self.start = self.to_vector(unflatten(self.structure, arrays))
        if not self.start.size:
            raise TypeError("minimize: x0 contains no numbers")

    def to_vector(self, tree: Any) -> Any:
        """Return the numbers of a tree with this structure as one plain vector."""
        leaves, tree_structure = flatten(tree)
        if tree_structure != self.structure:
            raise ValueError(f"minimize: the tree nests as {tree_structure}, but x0 nests as {self.structure}")
        parts = [np.broadcast_to(leaf, shape) for leaf, shape in zip(leaves, self.shapes, strict=True)]
        return np.concatenate([np.ravel(p).astype(float) for p in parts]) if parts else np.zeros(0)

    def to_tree(self, vector: Any) -> Any:
        """Return the tree with the numbers of a vector; if the vector is a node, the leaves are nodes computed from it."""
        leaves, offset = [], 0
        for shape, dtype in zip(self.shapes, self.dtypes, strict=True):
            size = math.prod(shape)
            part = vector if size == len(vector) else vector[offset : offset + size]  # a graph gets no needless slice
            leaf = part.reshape(shape) if shape else part[0]
            leaves.append(leaf if leaf.dtype == dtype else leaf.astype(dtype))
            offset += size
        return unflatten(self.structure, leaves)

    def to_result(self, vector: object) -> Any:
        """Return the tree with the numbers of a vector, in new arrays; if the vector is a node, the leaves are nodes.

        A leaf that is a Python number in x0 becomes a scalar.
        """
        if isinstance(vector, Value):
            return self.to_tree(vector)
        leaves, structure = flatten(self.to_tree(np.asarray(vector)))
        leaf_values = [
            leaf[()] if is_number else np.array(leaf) for leaf, is_number in zip(leaves, self.leaf_is_number, strict=True)
        ]
        return unflatten(structure, leaf_values)

    def bound_vectors(self, bounds: dict[str, Any]) -> tuple[Any, Any]:
        """Return the lower and upper bounds as vectors, from a tree with a pair ``(low, high)`` for each leaf of x0."""
        try:
            leaf_bounds = self.structure.flatten_up_to(bounds)
            ends = [(-np.inf if low is None else low, np.inf if high is None else high) for low, high in leaf_bounds]
            low, high = (self.to_vector(unflatten(self.structure, list(side))) for side in zip(*ends, strict=True))
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"minimize: the bounds do not fit x0: {error}. Nest them as x0, with a pair (low, high) for each array; each of "
                "them is None, a number, or an array that broadcasts to it"
            ) from error
        return low, high


def _as_real_array(leaf: object) -> Any:
    require_history(leaf)
    if isinstance(leaf, (np.ma.MaskedArray, np.matrix)):
        raise TypeError(f"minimize: x0 contains a {type(leaf).__name__}. Pass a plain array (np.asarray)")
    require_computed(leaf, "minimize: x0")
    array = np.asarray(leaf.raw_value if isinstance(leaf, Value) else leaf)
    if array.dtype.kind in "iu":
        array = array.astype(float)
    if array.dtype.kind != "f" or array.dtype.itemsize > 8:
        raise TypeError(
            f"minimize: x0 contains {array.dtype}, but SciPy works in float64. Pass real numbers of at most that precision"
        )
    return array
