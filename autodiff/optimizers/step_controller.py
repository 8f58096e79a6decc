"""The optimizer of the ArrayFlow paper, which adapts its step size to the loss."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from compgraph.graph import to_values
from compgraph.values import require_history

from ..reverse import Gradients
from .base import Clip, Optimizer, accepts_rate, former_rate
from .parameters import Array

# Coefficients of backward differences over the last four moving averages, oldest first: the first derivative to third order
# in the step, the second derivative to second order.
FIRST_DERIVATIVE = np.array([-1 / 3, 3 / 2, -3.0, 11 / 6])
SECOND_DERIVATIVE = np.array([-1.0, 4.0, -5.0, 2.0])
GROWTH_FACTOR, SHRINK_FACTOR = 1.02, 0.99


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
    """Gradient descent with inertia and an adaptive step size: ArrayFlow's Algorithm 1.

    The loss is averaged over the last `window` steps. While the average falls (its first backward difference is negative), the
    step size is multiplied by 1.02. While it rises at a growing rate (its first and second differences are positive), the step
    size is multiplied by 0.99. After a decrease, it never increases. In the paper, `window` is m and `learning_rate` is s0.

    Parameters
    ----------
    parameters, clip
        See `Optimizer`.
    learning_rate : float
        The initial step size, which should be small because it increases.
    beta : float
        The weight of a new gradient in the direction of a step; the inertia has weight ``1 - beta``.
    inertia : {"average", "two gradients"}
        The inertia. "average" is the direction of the previous step, so that the direction is a moving average of all
        gradients (the paper's equation 73); the first direction is the first gradient. "two gradients" is the gradient of the
        previous step, zero in the first step (Algorithm 1 as printed). It is stable only for much smaller steps, see Notes.
    window : int
        The number of steps over which the loss is averaged. In the first steps, all losses so far are averaged, and the first
        loss counts twice.
    grow : {"falling", "accelerating"}
        The condition for an increase of the step size: the average falls; or, as in ArrayFlow's program, it falls at a
        growing rate (its second difference is negative), which is rare, except by rounding errors in float32.
    fixed : bool
        Whether the step size stays constant.

    Attributes
    ----------
    growing : bool
        Whether the step size may still increase.

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
    times the second. A rise of the average is detected some steps late, and the factor 0.99 decreases the step size slowly.
    :doc:`/arrayflow` compares the results of both.

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
        parameters: object,
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
            raise TypeError("StepController adapts its learning rate and takes no schedule; use SGD with a schedule")
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
        self._losses, self._averages = np.zeros(window), np.zeros(len(SECOND_DERIVATIVE))
        self._history: list[tuple[float, float, float]] = []

    @property
    def history(self) -> History:
        """The loss, its moving average and the step size, for each step so far."""
        return History(*np.array(self._history, float).reshape(-1, 3).T)

    def step(self, gradients: Any = None, loss: object = None) -> None:
        """Adapt the step size, then update the parameters.

        Parameters
        ----------
        gradients : Gradients, or tree
            As in `Optimizer.step`.
        loss : float or node
            The loss of these gradients.

        Raises
        ------
        TypeError
            If the loss is missing, or as in `Optimizer.step`.
        ValueError
            If the loss is not one finite number, or as in `Optimizer.step`. Nothing is changed then.
        """
        if loss is None or isinstance(loss, Gradients):
            raise TypeError("StepController.step takes the gradients and the loss: optimizer.step(autodiff.gradient(loss), loss)")
        require_history(loss)
        number = np.asarray(to_values(loss))
        if number.size != 1 or number.dtype.kind not in "fiu" or not np.all(np.isfinite(number)):
            raise ValueError(f"the loss must be one finite real number, not {number}; nothing was updated")
        parameter_gradients = self._check_gradients(gradients)
        self._adapt_step_size(number.reshape(()))
        self._apply_step(parameter_gradients, self.learning_rate)

    def _adapt_step_size(self, loss: Array) -> None:
        """Add a loss to the averages, and adapt the step size to their differences."""
        if not self._history:
            dtype = loss.dtype if loss.dtype.kind == "f" else np.dtype(float)
            self._losses, self._averages = (np.full(a.size, loss, dtype) for a in (self._losses, self._averages))
        self._losses[:] = [*self._losses[1:], loss]
        # Means and differences are relative to the newest value, so that those of equal values are exactly zero.
        recent = self._losses[-len(self._history) - 2 :]
        self._averages[:] = [*self._averages[1:], recent[-1] + np.mean(recent - recent[-1])]
        relative_averages = self._averages - self._averages[-1]
        first, second = (
            np.sum(c.astype(relative_averages.dtype) * relative_averages) for c in (FIRST_DERIVATIVE, SECOND_DERIVATIVE)
        )
        if not self.fixed:
            if first > 0 and second > 0:
                self.learning_rate, self.growing = self.learning_rate * SHRINK_FACTOR, False
            elif self.growing and (first if self.grow == "falling" else second) < 0:
                self.learning_rate *= GROWTH_FACTOR
        self._history.append((float(loss), float(self._averages[-1]), self.learning_rate))

    def _update_block(self, p: Array, g: Array, slots: tuple[Array, ...], a: Array, b: Array, factors: tuple[float, ...]) -> None:
        (direction,) = slots
        if self.inertia == "two gradients":  # `direction` is the gradient of the previous step, 0 at first
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
        """Return the state of `Optimizer.state_dict`, with the averages and the history."""
        controller_state = {"losses": self._losses.copy(), "averages": self._averages.copy(), "growing": int(self.growing)}
        return super().state_dict() | controller_state | {"history": np.array(self._history, float).reshape(-1, 3)}

    def _load_extra_state(self, state: Mapping[str, Any]) -> None:
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
        """Plot the loss, its average and the step size with Matplotlib.

        Parameters
        ----------
        axes : pair of matplotlib.axes.Axes, optional
            The axes of both plots; a new figure by default.

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
        upper_axis, lower_axis = axes
        history = self.history
        upper_axis.plot(history.loss, linewidth=0.8, label="loss")
        upper_axis.plot(history.average, label=f"average of {self._losses.size}")
        lower_axis.plot(history.learning_rate, label="step size")
        lower_axis.set_xlabel("step")
        for axis, values in ((upper_axis, history.loss), (lower_axis, history.learning_rate)):
            if np.all(values > 0):
                axis.set_yscale("log")
            axis.legend()
        return upper_axis.figure
