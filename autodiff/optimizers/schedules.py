"""Learning rate schedules: functions of the number of previous steps. User-defined functions are schedules too."""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from .base import accepts_rate, check_range, rename_rate

Schedule = Callable[[int], float]


def _require_steps(name: str, steps: int) -> None:
    if not steps >= 1:
        raise ValueError(f"{name} must be at least 1, not {steps}")


class _RateSchedule:
    """A schedule with one learning rate."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(rename_rate(state))


@accepts_rate
@dataclass(frozen=True)
class Constant(_RateSchedule):
    """A learning rate that never changes.

    Parameters
    ----------
    learning_rate : float
        The learning rate.

    Examples
    --------
    >>> Constant(0.1)(1000)
    0.1
    """

    learning_rate: float

    def __call__(self, step: int) -> float:
        """The rate after `step` steps."""
        return self.learning_rate


@accepts_rate
@dataclass(frozen=True)
class StepDecay(_RateSchedule):
    """A learning rate that is multiplied by a factor every `every` steps.

    Parameters
    ----------
    learning_rate : float
        The rate at the start.
    every : int
        The number of steps between two decays.
    factor : float
        The factor of each decay.

    Examples
    --------
    >>> [StepDecay(1.0, every=2, factor=0.5)(step) for step in range(5)]
    [1.0, 1.0, 0.5, 0.5, 0.25]
    """

    learning_rate: float
    every: int
    factor: float = 0.1

    def __post_init__(self) -> None:
        _require_steps("every", self.every)

    def __call__(self, step: int) -> float:
        """The rate after `step` steps."""
        return self.learning_rate * self.factor ** (step // self.every)


@accepts_rate
@dataclass(frozen=True)
class Exponential(_RateSchedule):
    """A learning rate that is multiplied by a factor in every step.

    Parameters
    ----------
    learning_rate : float
        The rate at the start.
    factor : float
        The factor.

    Examples
    --------
    >>> [Exponential(1.0, 0.5)(step) for step in range(3)]
    [1.0, 0.5, 0.25]
    """

    learning_rate: float
    factor: float

    def __call__(self, step: int) -> float:
        """The rate after `step` steps."""
        return self.learning_rate * self.factor**step


@accepts_rate
@dataclass(frozen=True)
class Cosine(_RateSchedule):
    """A learning rate that decays from `learning_rate` to `final` along half a period of the cosine, and then is constant.

    Parameters
    ----------
    learning_rate : float
        The rate at the start.
    steps : int
        The number of steps until the rate is `final`.
    final : float
        The rate at the end.

    Notes
    -----
    I. Loshchilov and F. Hutter, "SGDR: stochastic gradient descent with warm restarts", ICLR 2017, without restarts.

    Examples
    --------
    >>> [round(Cosine(1.0, 4)(step), 3) for step in range(6)]
    [1.0, 0.854, 0.5, 0.146, 0.0, 0.0]
    """

    learning_rate: float
    steps: int
    final: float = 0.0

    def __post_init__(self) -> None:
        _require_steps("steps", self.steps)

    def __call__(self, step: int) -> float:
        """The rate after `step` steps."""
        wave = (1 + math.cos(math.pi * min(step / self.steps, 1))) / 2
        return self.final + (self.learning_rate - self.final) * wave


@accepts_rate
@dataclass(frozen=True)
class Polynomial(_RateSchedule):
    """A learning rate that decays from `learning_rate` to `final` by a power of the remaining steps, and then is constant.

    Parameters
    ----------
    learning_rate : float
        The rate at the start.
    steps : int
        The number of steps until the rate is `final`.
    final : float
        The rate at the end.
    power : float
        The positive exponent; with 1 the rate changes linearly.

    Examples
    --------
    >>> [Polynomial(1.0, 4, power=2.0)(step) for step in range(6)]
    [1.0, 0.5625, 0.25, 0.0625, 0.0, 0.0]
    """

    learning_rate: float
    steps: int
    final: float = 0.0
    power: float = 1.0

    def __post_init__(self) -> None:
        _require_steps("steps", self.steps)
        if not self.power > 0:
            raise ValueError(f"power must be positive, not {self.power}")

    def __call__(self, step: int) -> float:
        """The rate after `step` steps."""
        return self.final + (self.learning_rate - self.final) * math.pow(max(1 - step / self.steps, 0.0), self.power)


@dataclass(frozen=True)
class Piecewise:
    """A sequence of schedules, each of which counts steps from its start.

    Parameters
    ----------
    boundaries : sequence of int
        The numbers of steps at which the next schedule starts, increasing.
    pieces : sequence of float or callable
        The schedules, or constant rates; one more than boundaries.

    Examples
    --------
    >>> schedule = Piecewise([2, 4], [1.0, 0.1, Exponential(0.01, 0.5)])
    >>> [schedule(step) for step in range(6)]
    [1.0, 1.0, 0.1, 0.1, 0.01, 0.005]
    """

    boundaries: Sequence[int]
    pieces: Sequence[float | Schedule]

    def __post_init__(self) -> None:
        if len(self.pieces) != len(self.boundaries) + 1:
            raise ValueError(f"{len(self.boundaries)} boundaries need {len(self.boundaries) + 1} pieces, not {len(self.pieces)}")
        starts = [0, *self.boundaries]
        if any(before >= after for before, after in itertools.pairwise(starts)):
            raise ValueError(f"boundaries must be positive and increase, not {list(self.boundaries)}")

    def __call__(self, step: int) -> float:
        """The rate after `step` steps."""
        index = bisect.bisect_right(self.boundaries, step)
        piece: Any = self.pieces[index]
        return float(piece(step - (self.boundaries[index - 1] if index else 0)) if callable(piece) else piece)


@dataclass(frozen=True)
class WarmUp:
    """A schedule times a factor that increases linearly from `start` to 1 over the first `steps` steps.

    Parameters
    ----------
    schedule : float or callable
        The schedule, or a constant rate. It counts all steps, including the warm-up.
    steps : int
        The number of steps until the factor is 1.
    start : float
        The factor of the first step.

    Examples
    --------
    >>> [WarmUp(1.0, 4)(step) for step in range(6)]
    [0.0, 0.25, 0.5, 0.75, 1.0, 1.0]
    >>> WarmUp(Exponential(1.0, 0.5), 2)(1)
    0.25
    """

    schedule: float | Schedule
    steps: int
    start: float = 0.0

    def __post_init__(self) -> None:
        _require_steps("steps", self.steps)
        check_range("start", self.start, 0)

    def __call__(self, step: int) -> float:
        """The rate after `step` steps."""
        rate = self.schedule(step) if callable(self.schedule) else self.schedule
        return float(rate if step >= self.steps else rate * (self.start + (1 - self.start) * step / self.steps))
