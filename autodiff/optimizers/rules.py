"""The optimizers `SGD`, `AdaGrad`, `RMSProp`, `Adam` and `AdamW`."""

from __future__ import annotations

import math

import numpy as np

from .base import Clip, Optimizer, Rate, accepts_rate, check_range
from .parameters import Array


@accepts_rate
class SGD(Optimizer):
    """Gradient descent: plain, with momentum, or Nesterov's.

    Parameters
    ----------
    parameters, learning_rate, clip
        See `Optimizer`.
    momentum : float
        The part of the velocity that is kept from one step to the next.
    nesterov : bool
        Whether to use Nesterov's momentum (needs momentum, and no dampening).
    dampening : float
        ``1 - dampening`` is the factor of a new gradient in the velocity; the first gradient is added undamped.
    weight_decay : float
        This factor times the parameter is added to its gradient.

    Raises
    ------
    TypeError, ValueError
        As `Optimizer`.

    Notes
    -----
    ``v = momentum * v + (1 - dampening) * g``, then ``p -= learning_rate * v``, or with `nesterov` ``p -= learning_rate * (g +
    momentum * v)``; the first v is g. I. Sutskever et al., "On the importance of initialization and momentum in deep learning",
    ICML 2013, in PyTorch's form.

    Examples
    --------
    >>> import numpy as np
    >>> import compgraph as cg
    >>> from autodiff.reverse import gradient
    >>> x = cg.variable([1.0, -2.0], "x")
    >>> optimizer = SGD([x], learning_rate=0.1, momentum=0.9)
    >>> for _ in range(200):
    ...     optimizer.step(gradient(np.sum((x - 3) ** 2)))
    >>> print(np.round(x.value, 3))
    [3. 3.]
    """

    def __init__(
        self,
        parameters: object,
        learning_rate: Rate,
        momentum: float = 0.0,
        *,
        nesterov: bool = False,
        dampening: float = 0.0,
        weight_decay: float = 0.0,
        clip: Clip | None = None,
    ) -> None:
        self.momentum, self.nesterov = check_range("momentum", momentum, 0), bool(nesterov)
        self.dampening, self.weight_decay = check_range("dampening", dampening, 0), check_range("weight_decay", weight_decay, 0)
        if dampening and not momentum:
            raise ValueError("dampening needs momentum")
        if nesterov and (not momentum or dampening):
            raise ValueError("nesterov=True needs momentum, and no dampening. Pass momentum > 0 and dampening=0")
        super().__init__(parameters, learning_rate, ("velocity",) if momentum else (), clip)

    def _update_block(self, p: Array, g: Array, slots: tuple[Array, ...], a: Array, b: Array, factors: tuple[float, ...]) -> None:
        g = add_weight_decay(g, p, self.weight_decay, b)
        if slots:
            (v,) = slots
            if self.steps:
                np.multiply(v, self.momentum, out=v)
                v += np.multiply(g, 1 - self.dampening, out=a) if self.dampening else g
            else:
                np.copyto(v, g)
            g = np.add(g, np.multiply(v, self.momentum, out=a), out=a) if self.nesterov else v
        np.multiply(g, factors[0], out=a)
        np.subtract(p, a, out=p)


@accepts_rate
class AdaGrad(Optimizer):
    """Steps along the gradient, divided by the root of the sum of all squared gradients so far.

    Parameters
    ----------
    parameters, learning_rate, clip
        See `Optimizer`.
    epsilon : float
        A positive number added to the root, against division by zero.
    initial : float
        The initial value of the sum.
    weight_decay : float
        This factor times the parameter is added to its gradient.

    Raises
    ------
    TypeError, ValueError
        As `Optimizer`.

    Notes
    -----
    J. Duchi, E. Hazan and Y. Singer, "Adaptive subgradient methods for online learning and stochastic optimization", Journal
    of Machine Learning Research 12, 2011.

    Examples
    --------
    >>> optimizer = AdaGrad({"a": 1.0}, learning_rate=0.5)
    >>> optimizer.step({"a": 3.0})
    >>> print(round(optimizer.parameters["a"], 6))
    0.5
    """

    def __init__(
        self,
        parameters: object,
        learning_rate: Rate = 0.01,
        *,
        epsilon: float = 1e-10,
        initial: float = 0.0,
        weight_decay: float = 0.0,
        clip: Clip | None = None,
    ) -> None:
        self.epsilon, self.weight_decay = check_range("epsilon", epsilon, 0), check_range("weight_decay", weight_decay, 0)
        super().__init__(parameters, learning_rate, ("total",), clip)
        require_nonzero_epsilon(self, self.epsilon)
        for (total,) in self._slot_arrays:
            total[...] = check_range("initial", initial, 0)

    def _update_block(self, p: Array, g: Array, slots: tuple[Array, ...], a: Array, b: Array, factors: tuple[float, ...]) -> None:
        (total,) = slots
        g = add_weight_decay(g, p, self.weight_decay, b)
        np.add(total, np.multiply(g, g, out=a), out=total)
        divide_by_root(g, total, self.epsilon, a)
        a *= factors[0]
        np.subtract(p, a, out=p)


@accepts_rate
class RMSProp(Optimizer):
    """Steps along the gradient, divided by the root of a moving average of squared gradients.

    Parameters
    ----------
    parameters, learning_rate, clip
        See `Optimizer`.
    decay : float
        The part of the average that is kept in a step, in [0, 1).
    epsilon : float
        A positive number added to the root, against division by zero.
    momentum : float
        The part of the velocity that is kept from one step to the next.
    weight_decay : float
        This factor times the parameter is added to its gradient.

    Raises
    ------
    TypeError, ValueError
        As `Optimizer`.

    Notes
    -----
    T. Tieleman and G. Hinton, "Lecture 6.5: rmsprop", Coursera: Neural Networks for Machine Learning, 2012. Epsilon and
    momentum enter as in PyTorch: ``v = momentum * v + g / (sqrt(average) + epsilon)``, then ``p -= learning_rate * v``.

    Examples
    --------
    >>> optimizer = RMSProp({"a": 1.0}, learning_rate=0.1, decay=0.75)
    >>> optimizer.step({"a": 3.0})
    >>> print(round(optimizer.parameters["a"], 6))
    0.8
    """

    def __init__(
        self,
        parameters: object,
        learning_rate: Rate = 0.01,
        decay: float = 0.99,
        *,
        epsilon: float = 1e-8,
        momentum: float = 0.0,
        weight_decay: float = 0.0,
        clip: Clip | None = None,
    ) -> None:
        self.decay, self.epsilon = check_range("decay", decay, 0, 1), check_range("epsilon", epsilon, 0)
        self.momentum, self.weight_decay = check_range("momentum", momentum, 0), check_range("weight_decay", weight_decay, 0)
        super().__init__(parameters, learning_rate, ("square", "velocity") if momentum else ("square",), clip)
        require_nonzero_epsilon(self, self.epsilon)

    def _update_block(self, p: Array, g: Array, slots: tuple[Array, ...], a: Array, b: Array, factors: tuple[float, ...]) -> None:
        square, *velocity = slots
        g = add_weight_decay(g, p, self.weight_decay, b)
        update_average_square(square, g, self.decay, a)
        divide_by_root(g, square, self.epsilon, a)
        for v in velocity:
            np.multiply(v, self.momentum, out=v)
            np.add(v, a, out=v)
            np.copyto(a, v)
        a *= factors[0]
        np.subtract(p, a, out=p)


# ----------------------------------------------------------------- parts of several update rules


def add_weight_decay(g: Array, p: Array, decay: float, out: Array) -> Array:
    """Return ``g + decay * p`` in `out`, the gradient of the loss plus ``decay / 2 * sum(p**2)``; without decay, `g`."""
    if not decay:
        return g
    np.multiply(p, decay, out=out)
    np.add(out, g, out=out)
    return out


def update_average_square(square: Array, g: Array, decay: float, a: Array) -> None:
    """Compute ``square = decay * square + (1 - decay) * g**2`` in place; `a` is scratch."""
    np.multiply(g, g, out=a)
    a *= 1 - decay
    np.multiply(square, decay, out=square)
    np.add(square, a, out=square)


def divide_by_root(g: Array, square: Array, epsilon: float, out: Array) -> None:
    """Compute ``out = g / (sqrt(square) + epsilon)``."""
    np.sqrt(square, out=out)
    out += epsilon
    np.divide(g, out, out=out)


def require_nonzero_epsilon(optimizer: Optimizer, epsilon: float) -> None:
    """Raise a ValueError if a positive epsilon rounds to zero in a parameter's dtype, where a zero gradient would give 0 / 0."""
    for parameter in optimizer._parameters:
        if epsilon and not parameter.array.dtype.type(epsilon):
            raise ValueError(
                f"epsilon={epsilon:g} is zero in {parameter.array.dtype}, the dtype of parameter {parameter.name}; pass 1e-4"
            )


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
        divide_by_root(mean, greatest[0] if greatest else square, epsilon, a)
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
