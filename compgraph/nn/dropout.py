"""Dropout: a random mask, drawn at each call."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..frames import source_lines
from ..graph import as_operands
from ..guards import note_guard
from ..protocols import accept_name
from ..values import ConstantNode, Value
from .losses import as_plain_number

_where = accept_name(np.where)  # NumPy's function, bound here because the name in `np` is replaced within operators


def dropout(x: ArrayLike, rate: float, rng: np.random.Generator, *, name: str | None = None) -> Any:
    """Set random elements to zero, and scale the others to preserve the expected value (inverted dropout).

    Parameters
    ----------
    x : array_like
        Of any shape.
    rate : float
        The probability that an element is set to zero, in [0, 1).
    rng : numpy.random.Generator
        The generator, from which ``x.size`` random numbers are drawn. `autodiff.vmap` requires ``randomness=``.
    name : str, optional
        A name for the node.

    Returns
    -------
    array
        Of the shape and dtype of `x`; float64 for integers and booleans.

    Raises
    ------
    TypeError
        If `rng` is not a generator, or `rate` not a plain number.
    ValueError
        If `rate` is not in [0, 1).

    Warns
    -----
    RuntimeWarning
        When a `compgraph.Executor` is made of a graph that contains the mask, because each run would repeat the mask. With
        ``strict=True`` it raises a `compgraph.GuardError`. Record the graph in each step, or make the mask a placeholder:
        ``np.where(mask, x / (1 - rate), 0)``.

    Notes
    -----
    ``where(u >= rate, x / (1 - rate), 0)``, where u is uniform in [0, 1). N. Srivastava et al., "Dropout: a simple way to prevent
    neural networks from overfitting", Journal of Machine Learning Research 15 (2014). A function compiled by `compgraph.jit` that
    calls it runs as NumPy, and draws numbers in each call.

    Examples
    --------
    >>> import numpy as np
    >>> import compgraph as cg
    >>> cg.dropout([1.0, 2.0, 3.0, 4.0], 0.5, np.random.default_rng(0))
    array([2., 0., 0., 0.])
    """
    rate = as_plain_number("dropout", "rate", rate)
    if not 0 <= rate < 1:
        raise ValueError(f"dropout: rate must be in [0, 1), not {rate}")
    if not isinstance(rng, np.random.Generator):
        raise TypeError(f"dropout: rng must be a numpy.random.Generator, such as np.random.default_rng(0), not {rng!r}")
    (x,) = as_operands((x,))
    is_kept = rng.random(np.shape(x)) >= rate
    if isinstance(x, Value):
        guarded_true = ConstantNode.create_using(np.ones((), bool))  # each graph that contains this node has the guard
        note_guard("the mask that cg.dropout drew", None, (guarded_true,), None, source_lines.user_frame(1))
        is_kept = np.logical_and(is_kept, guarded_true)
    result = _where(is_kept, np.divide(x, 1 - rate), 0, name=name)
    return result if isinstance(result, Value) else result[()]
