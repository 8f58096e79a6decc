"""How SciPy's statistics take samples: along which axes, with what is done about nan, and in what shape results are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...graph import as_operand, gathered


def floating(x: Any) -> Any:
    """An array or a node, of floating numbers."""
    x = as_operand(gathered(x))
    return x if x.dtype.kind in "fc" else x.astype(float)


def checked_nan(name: str, nan_policy: str, *arrays: Any) -> None:
    """Honour what is asked for nan, or refuse it."""
    if nan_policy == "omit":
        raise TypeError(
            f'scipy.stats.{name}: nan_policy="omit" leaves elements out by their values, which is not recorded; choose them yourself, '
            "x[~np.isnan(x)]"
        )
    if nan_policy not in ("propagate", "raise"):
        raise ValueError("nan_policy must be one of {'propagate', 'raise', 'omit'}")
    if nan_policy == "raise" and any(np.any(np.isnan(a)) for a in arrays):
        raise ValueError("The input contains nan values")


@dataclass(frozen=True)
class Along:
    """Where samples lie in arrays of so many axes.

    Attributes
    ----------
    axis : None, int or tuple of int
        As users say.
    keepdims : bool
        Whether the axes stay in results, with length one.
    """

    axis: Any
    keepdims: bool = False

    def last(self, x: Any) -> Any:
        """An array with the elements of each sample along its last axis."""
        if self.axis is None:
            return np.reshape(x, (-1,))
        axes = self.axis if isinstance(self.axis, tuple) else (self.axis,)
        x = np.moveaxis(x, axes, range(-len(axes), 0))
        return np.reshape(x, (*x.shape[: x.ndim - len(axes)], -1)) if len(axes) > 1 else x

    def finished(self, result: Any, ndim: int) -> Any:
        """A result that has lost the axes of the samples, in the shape that is asked for."""
        if not self.keepdims:
            return result
        if self.axis is None:
            return np.reshape(result, (1,) * ndim)
        axes = self.axis if isinstance(self.axis, tuple) else (self.axis,)
        return np.expand_dims(result, tuple([a % ndim for a in axes]))


def statistic(name: str, axis: Any = 0) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Make a formula of a sample along the last axis one of samples along any."""

    def declared(formula: Callable[..., Any]) -> Callable[..., Any]:
        def called(a: Any, *, axis: Any = axis, nan_policy: str = "propagate", keepdims: bool = False, **options: Any) -> Any:
            a, along = floating(a), Along(axis, keepdims)
            checked_nan(name, nan_policy, a)
            return along.finished(formula(along.last(a), **options), a.ndim)

        return called

    return declared
