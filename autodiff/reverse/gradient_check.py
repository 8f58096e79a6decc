"""`check_gradient`: compare gradients with central differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from compgraph.context import run_isolated
from compgraph.graph import to_values
from compgraph.guards import collecting_leaks
from compgraph.interception import intercept
from compgraph.tracing import Tracing, retracing
from compgraph.values import ArgumentNode, Value, new_leaf

from .. import numeric
from ..numeric import detached_gradient_error, require_arguments
from .gradient import gradient


def check_gradient(
    f: Callable[..., Any], args: Sequence[Any], gradients: Sequence[Any] | None = None, rtol: float = 1e-4, atol: float = 1e-6
) -> bool:
    """Check whether gradients agree with central differences.

    Parameters
    ----------
    f : callable
        A function of the arguments that returns a number, or an array whose elements are summed. It is called with plain
        arrays, and with nodes if `gradients` is None; it may write into them.
    args : list or tuple of array_like
        The point; integers become floats.
    gradients : list or tuple of array_like, optional
        The gradients to check, one per argument; computed by reverse accumulation by default.
    rtol, atol : float
        The tolerance relative to the largest element of each gradient, and the absolute one.

    Returns
    -------
    bool

    Raises
    ------
    TypeError
        If `args` or `gradients` is not a tuple or list, or an argument is not an array.
    ValueError
        If the number of gradients, or the shape of one, differs from that of the arguments.
    DetachedGradientError
        If `gradients` is None, the gradient is wrong, and values left the graph or the result is not a node.

    See Also
    --------
    autodiff.check_grads : names the operation with the error, in both modes and any order.

    Examples
    --------
    >>> check_gradient(lambda x, y: x * y, [2.0, 3.0], [3.0, 2.0])
    True
    >>> check_gradient(lambda x, y: x * y, [2.0, 3.0], [3.0, 2.1])
    False
    """
    _require_argument_types(f, args, gradients)
    args = [numeric.plain(a) for a in args]
    has_leaks, leaks = False, []
    if gradients is None:

        def run() -> Any:
            with Tracing(), intercept(f), collecting_leaks() as leaks:
                inputs = [new_leaf(a.copy(), ArgumentNode, None) for a in args]
                return inputs, f(*inputs), leaks

        inputs, out, leaks = retracing(lambda: run_isolated(run))
        has_leaks = not all(leak.is_text for leak in leaks) or (out is not None and not isinstance(out, Value))
        if out is None or isinstance(out, Value):
            derivatives = gradient(out, inputs, unused="zero")
            gradients = [derivatives[x] for x in inputs]
        else:
            gradients = [np.zeros_like(a) for a in args]
    if len(gradients) != len(args):
        raise ValueError(f"{len(args)} arguments have {len(args)} gradients, not {len(gradients)}")
    are_close = True
    for position, (actual_gradient, expected) in enumerate(zip(gradients, numeric.gradient(f, args), strict=True)):
        if np.shape(actual_gradient) != expected.shape:
            raise ValueError(
                f"gradient {position} has shape {np.shape(actual_gradient)}, argument {position} has {expected.shape}"
            )
        magnitude = np.max(np.abs(expected), initial=0)
        is_close = bool(np.all(np.abs(np.asarray(to_values(actual_gradient)) - expected) <= atol + rtol * magnitude))
        if not is_close and has_leaks:
            raise detached_gradient_error(position, actual_gradient, expected, leaks)
        are_close = are_close and is_close
    return are_close


def _require_argument_types(f: ArrayLike | Callable[..., Any], args: Any, gradients: object) -> None:
    """Raise a TypeError unless the arguments of `check_gradient` have the right types."""
    if not callable(f):
        raise TypeError(f"check_gradient: the function comes first, not a {type(f).__name__}: check_gradient(f, [x])")
    require_arguments("check_gradient", args)
    if gradients is not None and not isinstance(gradients, (tuple, list)):
        raise TypeError(
            f"check_gradient: gradients is a list with an entry per argument, not a {type(gradients).__name__}. For "
            "one argument pass [g], where g is its gradient"
        )
    for position, argument in enumerate(args):
        if not isinstance(argument, np.ndarray) and numeric.plain(argument).dtype.kind not in "fc":
            raise TypeError(
                f"check_gradient: argument {position} is a {type(argument).__name__}, not an array of numbers; "
                "autodiff.check_grads takes nested arguments"
            )
