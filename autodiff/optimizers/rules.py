"""Update rules: how far, and where, a gradient moves its parameter."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .base import Clip, Optimizer, Rate, in_range
from .parameters import Array


def _decayed(g: Array, p: Array, decay: float, out: Array) -> Array:
    """The gradient of the loss plus ``decay / 2`` times the sum of squares."""
    if not decay:
        return g
    np.multiply(p, decay, out=out)
    np.add(out, g, out=out)
    return out


class SGD(Optimizer):
    """Gradient descent: plain, with momentum, or Nesterov's.

    Parameters
    ----------
    parameters, rate, clip
        See `Optimizer`.
    momentum : float
        How much of the last step's velocity is kept.
    nesterov : bool
        Whether to step along the velocity as it will be (needs momentum without dampening).
    dampening : float
        By how much a new gradient is made smaller before it enters the velocity, but for the first.
    weight_decay : float
        How much of the parameter is added to its gradient.

    Raises
    ------
    TypeError, ValueError
        As `Optimizer`.

    Notes
    -----
    ``v = momentum * v + (1 - dampening) * g``, then ``p -= rate * v``, or with `nesterov` ``p -= rate * (g + momentum *
    v)``; the first v is g. I. Sutskever et al., "On the importance of initialization and momentum in deep learning", ICML
    2013, in the form that PyTorch has.

    Examples
    --------
    >>> import numpy as np
    >>> import compgraph as cg
    >>> from autodiff.reverse import gradient
    >>> x = cg.variable([1.0, -2.0], "x")
    >>> optimizer = SGD([x], rate=0.1, momentum=0.9)
    >>> for _ in range(200):
    ...     optimizer.step(gradient(np.sum((x - 3) ** 2)))
    >>> print(np.round(x.value, 3))
    [3. 3.]
    """

    def __init__(
        self,
        parameters: Any,
        rate: Rate,
        momentum: float = 0.0,
        *,
        nesterov: bool = False,
        dampening: float = 0.0,
        weight_decay: float = 0.0,
        clip: Clip | None = None,
    ) -> None:
        self.momentum, self.nesterov = in_range("momentum", momentum, 0), bool(nesterov)
        self.dampening, self.weight_decay = in_range("dampening", dampening, 0), in_range("weight_decay", weight_decay, 0)
        if dampening and not momentum:
            raise ValueError("dampening is of use only with momentum")
        if nesterov and (not momentum or dampening):
            raise ValueError("nesterov=True needs momentum, and no dampening")
        super().__init__(parameters, rate, ("velocity",) if momentum else (), clip)

    def _move(self, p: Array, g: Array, kept: tuple[Array, ...], a: Array, b: Array, factors: tuple[float, ...]) -> None:
        g = _decayed(g, p, self.weight_decay, b)
        if kept:
            (v,) = kept
            if self.steps:
                np.multiply(v, self.momentum, out=v)
                v += np.multiply(g, 1 - self.dampening, out=a) if self.dampening else g
            else:
                np.copyto(v, g)
            g = np.add(g, np.multiply(v, self.momentum, out=a), out=a) if self.nesterov else v
        np.multiply(g, factors[0], out=a)
        np.subtract(p, a, out=p)


class AdaGrad(Optimizer):
    """Steps divided by the root of the sum of all squared gradients.

    Parameters
    ----------
    parameters, rate, clip
        See `Optimizer`.
    epsilon : float
        What is added to the root.
    initial : float
        What the sum begins with.
    weight_decay : float
        How much of the parameter is added to its gradient.

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
    >>> optimizer = AdaGrad({"a": 1.0}, rate=0.5)
    >>> optimizer.step({"a": 3.0})
    >>> print(round(optimizer.parameters["a"], 6))
    0.5
    """

    def __init__(
        self,
        parameters: Any,
        rate: Rate = 0.01,
        *,
        epsilon: float = 1e-10,
        initial: float = 0.0,
        weight_decay: float = 0.0,
        clip: Clip | None = None,
    ) -> None:
        self.epsilon, self.weight_decay = in_range("epsilon", epsilon, 0), in_range("weight_decay", weight_decay, 0)
        super().__init__(parameters, rate, ("total",), clip)
        _require_seen(self, self.epsilon)
        for (total,) in self._kept:
            total[...] = in_range("initial", initial, 0)

    def _move(self, p: Array, g: Array, kept: tuple[Array, ...], a: Array, b: Array, factors: tuple[float, ...]) -> None:
        (total,) = kept
        g = _decayed(g, p, self.weight_decay, b)
        np.add(total, np.multiply(g, g, out=a), out=total)
        np.sqrt(total, out=a)
        a += self.epsilon
        np.divide(g, a, out=a)
        a *= factors[0]
        np.subtract(p, a, out=p)


class RMSProp(Optimizer):
    """Steps divided by the root of a moving average of squared gradients.

    Parameters
    ----------
    parameters, rate, clip
        See `Optimizer`.
    decay : float
        How much of the average is kept in a step.
    epsilon : float
        What is added to the root.
    momentum : float
        How much of the last step's velocity is kept.
    weight_decay : float
        How much of the parameter is added to its gradient.

    Raises
    ------
    TypeError, ValueError
        As `Optimizer`.

    Notes
    -----
    T. Tieleman and G. Hinton, "Lecture 6.5: rmsprop", Coursera: Neural Networks for Machine Learning, 2012; epsilon and
    momentum where PyTorch has them.

    Examples
    --------
    >>> optimizer = RMSProp({"a": 1.0}, rate=0.1, decay=0.75)
    >>> optimizer.step({"a": 3.0})
    >>> print(round(optimizer.parameters["a"], 6))
    0.8
    """

    def __init__(
        self,
        parameters: Any,
        rate: Rate = 0.01,
        decay: float = 0.99,
        *,
        epsilon: float = 1e-8,
        momentum: float = 0.0,
        weight_decay: float = 0.0,
        clip: Clip | None = None,
    ) -> None:
        self.decay, self.epsilon = in_range("decay", decay, 0, 1), in_range("epsilon", epsilon, 0)
        self.momentum, self.weight_decay = in_range("momentum", momentum, 0), in_range("weight_decay", weight_decay, 0)
        super().__init__(parameters, rate, ("square", "velocity") if momentum else ("square",), clip)
        _require_seen(self, self.epsilon)

    def _move(self, p: Array, g: Array, kept: tuple[Array, ...], a: Array, b: Array, factors: tuple[float, ...]) -> None:
        square, *velocity = kept
        g = _decayed(g, p, self.weight_decay, b)
        _average_square(square, g, self.decay, a)
        np.sqrt(square, out=a)
        a += self.epsilon
        np.divide(g, a, out=a)
        for v in velocity:
            np.multiply(v, self.momentum, out=v)
            np.add(v, a, out=v)
            np.copyto(a, v)
        a *= factors[0]
        np.subtract(p, a, out=p)


class Adam(Optimizer):
    """Steps along a moving average of gradients, divided by the root of one of their squares.

    Parameters
    ----------
    parameters, rate, clip
        See `Optimizer`.
    betas : pair of float
        How much of each average is kept in a step.
    epsilon : float
        What is added to the root.
    weight_decay : float
        How much of the parameter is added to its gradient; `AdamW` takes it from the parameter itself.
    amsgrad : bool
        Whether to divide by the root of the greatest average there was.

    Raises
    ------
    TypeError, ValueError
        As `Optimizer`.

    Notes
    -----
    D. P. Kingma and J. Ba, "Adam: a method for stochastic optimization", ICLR 2015; S. J. Reddi, S. Kale and S. Kumar, "On
    the convergence of Adam and beyond", ICLR 2018. Both averages are corrected for having begun at zero.

    Examples
    --------
    >>> import numpy as np
    >>> from autodiff import grad
    >>> parameters = {"w": np.array([2.0, -1.0]), "b": np.array(0.5)}
    >>> slope = grad(lambda p: np.sum(p["w"] ** 2) + p["b"] ** 2)
    >>> optimizer = Adam(parameters, rate=0.05)
    >>> for _ in range(500):
    ...     optimizer.step(slope(parameters))
    >>> bool(np.all(np.abs(parameters["w"]) < 1e-3))
    True
    """

    _decoupled = False

    def __init__(
        self,
        parameters: Any,
        rate: Rate = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        *,
        epsilon: float = 1e-8,
        weight_decay: float = 0.0,
        amsgrad: bool = False,
        clip: Clip | None = None,
    ) -> None:
        first, second = betas
        self.betas = (in_range("betas[0]", first, 0, 1), in_range("betas[1]", second, 0, 1))
        self.epsilon, self.weight_decay = in_range("epsilon", epsilon, 0), in_range("weight_decay", weight_decay, 0)
        super().__init__(parameters, rate, ("mean", "square", "greatest") if amsgrad else ("mean", "square"), clip)
        _require_seen(self, self.epsilon)

    def _factors(self, rate: float) -> tuple[float, ...]:
        # rate * (m / c1) / (sqrt(v / c2) + epsilon), with the corrections taken out of the arrays
        c1, c2 = (1 - beta ** (self.steps + 1) for beta in self.betas)
        return rate * math.sqrt(c2) / c1, self.epsilon * math.sqrt(c2), 1 - rate * self.weight_decay

    def _move(self, p: Array, g: Array, kept: tuple[Array, ...], a: Array, b: Array, factors: tuple[float, ...]) -> None:
        mean, square, *greatest = kept
        size, epsilon, shrunk = factors
        if not self._decoupled:
            g = _decayed(g, p, self.weight_decay, b)
        np.subtract(g, mean, out=a)
        a *= 1 - self.betas[0]
        np.add(mean, a, out=mean)
        _average_square(square, g, self.betas[1], a)
        for most in greatest:
            np.maximum(most, square, out=most)
        np.sqrt(greatest[0] if greatest else square, out=a)
        a += epsilon
        np.divide(mean, a, out=a)
        a *= size
        if self._decoupled and self.weight_decay:
            np.multiply(p, shrunk, out=p)
        np.subtract(p, a, out=p)


class AdamW(Adam):
    """`Adam` with weight decay that is no part of the gradient: ``p *= 1 - rate * weight_decay``, then Adam's step.

    Parameters
    ----------
    parameters, rate, betas, epsilon, amsgrad, clip
        As of `Adam`.
    weight_decay : float
        How much of the parameter is taken away in a step, times the rate.

    Raises
    ------
    TypeError, ValueError
        As `Optimizer`.

    Notes
    -----
    I. Loshchilov and F. Hutter, "Decoupled weight decay regularization", ICLR 2019.

    Examples
    --------
    >>> optimizer = AdamW([1.0], rate=0.1, weight_decay=0.5)
    >>> optimizer.step([0.0])
    >>> print(optimizer.parameters)
    [0.95]
    """

    _decoupled = True

    def __init__(
        self,
        parameters: Any,
        rate: Rate = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        *,
        epsilon: float = 1e-8,
        weight_decay: float = 0.01,
        amsgrad: bool = False,
        clip: Clip | None = None,
    ) -> None:
        super().__init__(parameters, rate, betas, epsilon=epsilon, weight_decay=weight_decay, amsgrad=amsgrad, clip=clip)


def _average_square(square: Array, g: Array, decay: float, a: Array) -> None:
    """Let the squares of a gradient into their average."""
    np.multiply(g, g, out=a)
    a *= 1 - decay
    np.multiply(square, decay, out=square)
    np.add(square, a, out=square)


def _require_seen(optimizer: Optimizer, epsilon: float) -> None:
    """Raise if epsilon vanishes in a parameter's dtype, where a gradient of zero would then make NaN."""
    for parameter in optimizer._parameters:
        if epsilon and not parameter.array.dtype.type(epsilon):
            raise ValueError(
                f"epsilon={epsilon:g} is zero in {parameter.array.dtype}, as parameter {parameter.name} is; give 1e-4"
            )
