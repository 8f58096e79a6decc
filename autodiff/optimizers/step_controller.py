"""The optimizer of the ArrayFlow paper, which finds its step size from the loss."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from compgraph.graph import to_values
from compgraph.values import require_history

from ..reverse import Gradients
from .base import Clip, Optimizer
from .former_name import accepts_rate, former_rate
from .parameters import Array

# Backward differences over the last four moving averages, oldest first: the first derivative to third order in the
# step, the second to second order.
FIRST = np.array([-1 / 3, 3 / 2, -3.0, 11 / 6])
SECOND = np.array([-1.0, 4.0, -5.0, 2.0])
GROW, SHRINK = 1.02, 0.99


class History(NamedTuple):
    """The history of the steps; all arrays have one number per step.

    Attributes
    ----------
    loss : numpy.ndarray
        The loss.
    average : numpy.ndarray
        The moving average of the loss.
    learning_rate : numpy.ndarray
        The size of the step.
    """

    loss: Array
    average: Array
    learning_rate: Array


History.rate = former_rate  # type: ignore[attr-defined]


@accepts_rate
class StepController(Optimizer):
    """Gradient descent with inertia that finds its step size from the loss: ArrayFlow's Algorithm 1.

    The loss is averaged over the last `window` steps. As long as the average falls (its first backward difference is
    negative), the step is multiplied by 1.02. When it rises ever faster (its first and second differences are positive), the
    step is multiplied by 0.99, and from then on it never grows again. In the paper's letters `window` is m and `learning_rate` is
    s0.

    Parameters
    ----------
    parameters, clip
        See `Optimizer`.
    learning_rate : float
        The size of the first step: a small one, since it grows.
    beta : float
        How much of a new gradient enters the direction of a step; the rest is inertia.
    inertia : {"average", "two gradients"}
        What the rest is. "average": the direction of the step before, so that the direction is a moving average of all
        gradients (the paper's equation 73); the first direction is the first gradient. "two gradients": the gradient of the
        step before, zero in the first step (Algorithm 1 as printed); it is stable only for much smaller steps, see Notes.
    window : int
        Over how many steps the loss is averaged. In the first steps it is over all so far, and the first loss counts twice.
    grow : {"falling", "accelerating"}
        When the step grows: while the average falls; or, as in ArrayFlow's own program, while it falls ever faster (its
        second difference is negative), which is rare, except by rounding errors in float32.
    fixed : bool
        Whether the step size stays constant.

    Attributes
    ----------
    growing : bool
        Whether the step has never shrunk.

    Raises
    ------
    TypeError, ValueError
        As `Optimizer`; TypeError also if the learning rate is a schedule.

    Notes
    -----
    A. Nicolae, "Deep learning framework from scratch using NumPy", arXiv:2011.08461, 2020. Differences are over four
    averages, with coefficients (-1/3, 3/2, -3, 11/6) and (-1, 4, -5, 2), in the precision of the loss.

    Where the largest curvature of the loss is L, steps larger than ``2 (2 - beta) / (beta L)`` diverge under equation 73, and
    with two gradients steps larger than ``1 / ((1 - beta) L)`` (for `beta` up to 3/4): with ``beta=0.05`` the first bound is 74
    times the second. A rise of the average is seen some steps late, and the factor 0.99 shrinks the step slowly.
    :doc:`/arrayflow` compares what both reach.

    Examples
    --------
    >>> import numpy as np
    >>> import compgraph as cg
    >>> from autodiff.reverse import gradient
    >>> x = cg.variable([3.0, -2.0], "x")
    >>> optimizer = StepController([x], learning_rate=1e-3)
    >>> for _ in range(1000):
    ...     loss = np.sqrt(np.mean((x - 1) ** 2) + 1e-6)
    ...     optimizer.step(gradient(loss), loss)
    >>> len(optimizer.history.loss), bool(optimizer.learning_rate > 1e-3), bool(np.all(np.abs(x.value - 1) < 0.01))
    (1000, True, True)
    """

    def __init__(
        self,
        parameters: Any,
        learning_rate: float = 1e-5,
        *,
        beta: float = 0.05,
        inertia: str = "average",
        window: int = 10,
        grow: str = "falling",
        fixed: bool = False,
        clip: Clip | None = None,
    ) -> None:
        if callable(learning_rate):
            raise TypeError("StepController finds its learning rate itself and takes no schedule; SGD takes one")
        if not 0 < beta <= 1:
            raise ValueError(f"beta must be in (0, 1], not {beta}")
        if not window >= 1:
            raise ValueError(f"window must be at least 1, not {window}")
        if grow not in ("falling", "accelerating"):
            raise ValueError(f"grow is 'falling' or 'accelerating', not {grow!r}; fixed=True keeps the step size constant")
        if inertia not in ("average", "two gradients"):
            raise ValueError(f"inertia is 'average' or 'two gradients', not {inertia!r}; beta=1 means no inertia")
        super().__init__(parameters, learning_rate, ("direction",), clip)
        self.inertia = inertia
        self.beta, self.grow, self.fixed, self.growing = float(beta), grow, bool(fixed), True
        self._losses, self._averages = np.zeros(window), np.zeros(len(SECOND))
        self._history: list[tuple[float, float, float]] = []

    @property
    def history(self) -> History:
        """The loss, its moving average and the step size, for each step so far."""
        return History(*np.array(self._history, float).reshape(-1, 3).T)

    def step(self, gradients: Any = None, loss: Any = None) -> None:
        """Find the size of the step, then take it.

        Parameters
        ----------
        gradients : Gradients, or tree
            As in `Optimizer.step`.
        loss : float or node
            The loss whose gradients they are.

        Raises
        ------
        TypeError
            If the loss is not given, or as in `Optimizer.step`.
        ValueError
            If the loss is not one finite number, or as in `Optimizer.step`; nothing is changed then.
        """
        if loss is None or isinstance(loss, Gradients):
            raise TypeError("StepController.step takes the gradients and the loss: optimizer.step(autodiff.gradient(loss), loss)")
        require_history(loss)
        number = np.asarray(to_values(loss))
        if number.size != 1 or number.dtype.kind not in "fiu" or not np.all(np.isfinite(number)):
            raise ValueError(f"the loss must be one finite real number, not {number}; nothing was updated")
        parameter_gradients = self._checked(gradients)
        self._observe(number.reshape(()))
        self._take(parameter_gradients, self.learning_rate)

    def _observe(self, loss: Array) -> None:
        """Add a loss to the averages, and change the step size by their differences."""
        if not self._history:
            dtype = loss.dtype if loss.dtype.kind == "f" else np.dtype(float)
            self._losses, self._averages = (np.full(a.size, loss, dtype) for a in (self._losses, self._averages))
        self._losses[:] = [*self._losses[1:], loss]
        # Means and differences are computed relative to the newest value: where all are equal, they are exactly zero.
        recent = self._losses[-len(self._history) - 2 :]
        self._averages[:] = [*self._averages[1:], recent[-1] + np.mean(recent - recent[-1])]
        rises = self._averages - self._averages[-1]
        first, second = (np.sum(c.astype(rises.dtype) * rises) for c in (FIRST, SECOND))
        if not self.fixed:
            if first > 0 and second > 0:
                self.learning_rate, self.growing = self.learning_rate * SHRINK, False
            elif self.growing and (first if self.grow == "falling" else second) < 0:
                self.learning_rate *= GROW
        self._history.append((float(loss), float(self._averages[-1]), self.learning_rate))

    def _move(self, p: Array, g: Array, kept: tuple[Array, ...], a: Array, b: Array, factors: tuple[float, ...]) -> None:
        (direction,) = kept
        if self.inertia == "two gradients":  # the kept array is the gradient of the previous step, 0 at first
            np.add(np.multiply(direction, 1 - self.beta, out=a), np.multiply(g, self.beta, out=b), out=a)
            np.copyto(direction, g)
            np.subtract(p, np.multiply(a, factors[0], out=a), out=p)
            return
        if self.steps:
            np.multiply(direction, 1 - self.beta, out=direction)
            np.add(direction, np.multiply(g, self.beta, out=a), out=direction)
        else:
            np.copyto(direction, g)
        np.subtract(p, np.multiply(direction, factors[0], out=a), out=p)

    def state_dict(self) -> dict[str, Any]:
        """As in `Optimizer.state_dict`, with the averages and the history."""
        own = {"losses": self._losses.copy(), "averages": self._averages.copy(), "growing": int(self.growing)}
        return super().state_dict() | own | {"history": np.array(self._history, float).reshape(-1, 3)}

    def _load_more(self, state: Mapping[str, Any]) -> None:
        losses, averages, history = (np.array(state[name]) for name in ("losses", "averages", "history"))
        growing = bool(state["growing"])
        if any(a.dtype.kind != "f" for a in (losses, averages, history)):
            raise ValueError("the state's losses, averages and history must be floating-point arrays")
        if losses.shape != self._losses.shape or averages.shape != self._averages.shape:
            raise ValueError(f"the state has averages over {losses.size} steps, not over {self._losses.size}")
        if history.shape[1:] != (3,):
            raise ValueError(f"the state has a history of shape {history.shape}; it has three numbers for each step")
        self._losses, self._averages, self.growing = losses, averages, growing
        self._history = [(float(loss), float(average), float(rate)) for loss, average, rate in history]

    def plot(self, axes: Any = None) -> Any:
        """Draw the loss and its average, and the size of the step, by Matplotlib.

        Parameters
        ----------
        axes : pair of matplotlib.axes.Axes, optional
            Where to draw them; a new figure by default.

        Returns
        -------
        matplotlib.figure.Figure
            The figure.

        Raises
        ------
        ImportError
            If Matplotlib is not installed.
        """
        if axes is None:
            try:
                from matplotlib import pyplot
            except ImportError as error:
                raise ImportError('plot needs Matplotlib: pip install "compgraph[examples]"') from error
            _, axes = pyplot.subplots(2, 1, sharex=True, layout="constrained")
        above, below = axes
        history = self.history
        above.plot(history.loss, linewidth=0.8, label="loss")
        above.plot(history.average, label=f"average of {self._losses.size}")
        below.plot(history.learning_rate, label="step size")
        below.set_xlabel("step")
        for axis, values in ((above, history.loss), (below, history.learning_rate)):
            if np.all(values > 0):
                axis.set_yscale("log")
            axis.legend()
        return above.figure
