"""Adam and AdamW."""

from __future__ import annotations

import math

import numpy as np

from .base import Clip, Optimizer, Rate, check_range
from .former_name import accepts_rate
from .parameters import Array
from .rules import add_weight_decay, require_nonzero_epsilon, update_average_square


@accepts_rate
class Adam(Optimizer):
    """Steps along a moving average of the gradients, divided by the root of a moving average of their squares.

    Parameters
    ----------
    parameters, learning_rate, clip
        See `Optimizer`.
    betas : pair of float
        The decay of the average of gradients, and of the average of squares: each in [0, 1).
    epsilon : float
        A positive number added to the root, against division by zero.
    weight_decay : float
        This factor times the parameter is added to its gradient. (`AdamW` shrinks the parameter instead.)
    amsgrad : bool
        Whether to divide by the root of the maximum of the averages of squares so far.

    Raises
    ------
    TypeError, ValueError
        As `Optimizer`.

    Notes
    -----
    D. P. Kingma and J. Ba, "Adam: a method for stochastic optimization", ICLR 2015; S. J. Reddi, S. Kale and S. Kumar, "On
    the convergence of Adam and beyond", ICLR 2018. Both averages are bias-corrected, since they begin at zero.

    Examples
    --------
    >>> import numpy as np
    >>> from autodiff import grad
    >>> parameters = {"w": np.array([2.0, -1.0]), "b": np.array(0.5)}
    >>> slope = grad(lambda p: np.sum(p["w"] ** 2) + p["b"] ** 2)
    >>> optimizer = Adam(parameters, learning_rate=0.05)
    >>> for _ in range(500):
    ...     optimizer.step(slope(parameters))
    >>> bool(np.all(np.abs(parameters["w"]) < 1e-3))
    True
    """

    _decoupled = False

    def __init__(
        self,
        parameters: object,
        learning_rate: Rate = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        *,
        epsilon: float = 1e-8,
        weight_decay: float = 0.0,
        amsgrad: bool = False,
        clip: Clip | None = None,
    ) -> None:
        try:
            first, second = betas
        except (TypeError, ValueError):
            raise TypeError(f"betas must be a pair of numbers, such as (0.9, 0.999), not {betas!r}") from None
        self.betas = (check_range("betas[0]", first, 0, 1), check_range("betas[1]", second, 0, 1))
        self.epsilon, self.weight_decay = check_range("epsilon", epsilon, 0), check_range("weight_decay", weight_decay, 0)
        super().__init__(parameters, learning_rate, ("mean", "square", "greatest") if amsgrad else ("mean", "square"), clip)
        require_nonzero_epsilon(self, self.epsilon)

    def _factors(self, rate: float) -> tuple[float, ...]:
        # rate * (m / c1) / (sqrt(v / c2) + epsilon), rearranged so that the corrections c1, c2 multiply numbers, not arrays
        c1, c2 = (1 - beta ** (self.steps + 1) for beta in self.betas)
        return rate * math.sqrt(c2) / c1, self.epsilon * math.sqrt(c2), 1 - rate * self.weight_decay

    def _update_block(self, p: Array, g: Array, slots: tuple[Array, ...], a: Array, b: Array, factors: tuple[float, ...]) -> None:
        mean, square, *greatest = slots
        size, epsilon, shrink = factors
        if not self._decoupled:
            g = add_weight_decay(g, p, self.weight_decay, b)
        np.subtract(g, mean, out=a)
        a *= 1 - self.betas[0]
        np.add(mean, a, out=mean)
        update_average_square(square, g, self.betas[1], a)
        for maximum in greatest:
            np.maximum(maximum, square, out=maximum)
        np.sqrt(greatest[0] if greatest else square, out=a)
        a += epsilon
        np.divide(mean, a, out=a)
        a *= size
        if self._decoupled and self.weight_decay:
            np.multiply(p, shrink, out=p)
        np.subtract(p, a, out=p)


@accepts_rate
class AdamW(Adam):
    """`Adam` with weight decay that is not part of the gradient: ``p *= 1 - learning_rate * weight_decay``, then Adam's step.

    Parameters
    ----------
    parameters, learning_rate, betas, epsilon, amsgrad, clip
        As in `Adam`.
    weight_decay : float
        A step subtracts ``learning_rate * weight_decay`` times the parameter.

    Raises
    ------
    TypeError, ValueError
        As `Optimizer`.

    Notes
    -----
    I. Loshchilov and F. Hutter, "Decoupled weight decay regularization", ICLR 2019.

    Examples
    --------
    >>> optimizer = AdamW([1.0], learning_rate=0.1, weight_decay=0.5)
    >>> optimizer.step([0.0])
    >>> print(optimizer.parameters)
    [0.95]
    """

    _decoupled = True

    def __init__(
        self,
        parameters: object,
        learning_rate: Rate = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        *,
        epsilon: float = 1e-8,
        weight_decay: float = 0.01,
        amsgrad: bool = False,
        clip: Clip | None = None,
    ) -> None:
        super().__init__(parameters, learning_rate, betas, epsilon=epsilon, weight_decay=weight_decay, amsgrad=amsgrad, clip=clip)
