"""Clipping of gradients, by value or by norm."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compgraph.values import Value

from ..arguments import flatten, unflatten
from ..reverse import Gradients


def clip_by_value(gradients: Any, limit: float) -> Any:
    """Clip each element of the gradients to the interval from ``-limit`` to `limit`.

    Parameters
    ----------
    gradients : Gradients, or tree
        A result of ``autodiff.reverse.gradient``, or arrays nested in any way.
    limit : float
        The maximum absolute value of an element.

    Returns
    -------
    Gradients, or tree
        New arrays, with the nesting of `gradients`.

    Raises
    ------
    ValueError
        If the limit is not positive and finite, or a gradient is NaN.
    TypeError
        If a gradient is complex, or a node.

    Examples
    --------
    >>> import numpy as np
    >>> clip_by_value({"w": np.array([3.0, -0.5])}, 1.0)
    {'w': array([ 1. , -0.5])}
    """
    limit = _require_positive(limit)

    def clip_arrays(arrays: list[Any]) -> list[Any]:
        if any(a.dtype.kind == "c" for a in arrays):
            raise TypeError("clip_by_value: complex numbers are not ordered; use clip_by_norm")
        return [np.clip(a, -limit, limit) for a in arrays]

    return _map_arrays(gradients, clip_arrays, allow_infinite=True)


def clip_by_norm(gradients: Any, limit: float) -> Any:
    """Scale each gradient down to a norm (the root of its sum of squares) of at most `limit`.

    Parameters
    ----------
    gradients : Gradients, or tree
        A result of ``autodiff.reverse.gradient``, or arrays nested in any way.
    limit : float
        The maximum norm of an array.

    Returns
    -------
    Gradients, or tree
        The gradients, with the same nesting; arrays with a larger norm are scaled to `limit`.

    Raises
    ------
    ValueError
        If the limit is not positive and finite, or a gradient is infinite or NaN.
    TypeError
        If a gradient is a node.

    Examples
    --------
    >>> import numpy as np
    >>> clip_by_norm([np.array([3.0, 4.0]), np.array([0.5])], 1.0)
    [array([0.6, 0.8]), array([0.5])]
    """
    limit = _require_positive(limit)
    return _map_arrays(gradients, lambda arrays: [_scale_down(a, _norm([a]), limit) for a in arrays])


def clip_by_global_norm(gradients: Any, limit: float) -> Any:
    """Scale all gradients by one factor, so that their common norm is at most `limit`, with unchanged direction.

    Parameters
    ----------
    gradients : Gradients, or tree
        A result of ``autodiff.reverse.gradient``, or arrays nested in any way.
    limit : float
        The maximum norm: the root of the sum of the squares of all elements.

    Returns
    -------
    Gradients, or tree
        The gradients, with the same nesting, scaled down if the norm is larger.

    Raises
    ------
    ValueError
        If the limit is not positive and finite, or a gradient is infinite or NaN.
    TypeError
        If a gradient is a node.

    Notes
    -----
    R. Pascanu, T. Mikolov and Y. Bengio, "On the difficulty of training recurrent neural networks", ICML 2013.

    Examples
    --------
    >>> import numpy as np
    >>> clip_by_global_norm([np.array([3.0]), np.array([4.0])], 1.0)
    [array([0.6]), array([0.8])]
    """
    limit = _require_positive(limit)

    def scale_arrays(arrays: list[Any]) -> list[Any]:
        norm = _norm(arrays)
        return [_scale_down(a, norm, limit) for a in arrays]

    return _map_arrays(gradients, scale_arrays)


def _map_arrays(gradients: NDArray[Any] | list[Any], clip: Callable[[list[Any]], list[Any]], allow_infinite: bool = False) -> Any:
    """Apply `clip` to the list of all arrays; raise for NaN, and unless `allow_infinite` for infinity."""

    def check_and_clip(leaves: list[Any]) -> list[Any]:
        if any(isinstance(leaf, Value) for leaf in leaves):
            raise TypeError(
                "gradients that are nodes (create_graph=True) are not clipped: they would leave the graph. Pass values"
            )
        arrays = [np.asarray(leaf) for leaf in leaves]
        if any(np.any(np.isnan(a)) if allow_infinite else not np.all(np.isfinite(a)) for a in arrays):
            kind = "NaN" if allow_infinite else "infinite or NaN"
            raise ValueError(f"a gradient is {kind} and cannot be clipped. `with cg.debug():` finds its origin")
        return clip(arrays)

    if isinstance(gradients, Gradients):
        return gradients.map_jointly(check_and_clip)
    leaves, structure = flatten(gradients)
    return unflatten(structure, check_and_clip(leaves))


def _require_positive(limit: float) -> float:
    if not 0 < limit < np.inf:
        raise ValueError(f"the limit must be positive and finite, not {limit}")
    return float(limit)


def _norm(arrays: list[Any]) -> float:
    """Return the root of the sum of squares, scaled by the largest element against overflow and underflow."""
    largest = max((float(np.max(np.abs(a), initial=0)) for a in arrays), default=0.0)
    if not largest:
        return 0.0
    norm = largest * math.sqrt(sum(float(np.sum(np.square(np.abs(a) / largest), dtype=float)) for a in arrays))
    if norm == math.inf:
        raise ValueError("the norm of the gradients overflows float64. Clip the elements first (clip_by_value)")
    return norm


def _scale_down(array: NDArray[Any], norm: float, limit: float) -> Any:
    return array * (limit / norm) if norm > limit else array
