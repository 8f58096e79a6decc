"""Objects that hold generators of random numbers, and that draw, in all ways in which code may reach them."""

from __future__ import annotations

import random
import sys
from collections import deque, namedtuple
from collections.abc import Iterator
from functools import lru_cache, partial
from types import ModuleType
from typing import Any

import numpy as np

import autodiff as ad

OLD = np.random.RandomState(3)
GENERATOR = np.random.default_rng(3)


class Meta(type):
    drawn_by_class = OLD.normal


class Drawing(metaclass=Meta):
    """Generators, and methods that draw, as attributes of a class."""

    normal = np.random.normal
    static = staticmethod(OLD.normal)
    partly = partial(OLD.normal, 0.0, 1.0)
    python = staticmethod(random.gauss)
    rng = np.random.default_rng(3)
    old = OLD
    mean = staticmethod(OLD.normal)  # has the name of a function that does not draw

    class Within:
        normal = OLD.normal

    def method(self) -> Any:
        return OLD.normal()

    def global_generator(self) -> Any:
        return GENERATOR.normal()

    def mean_added(self, x: Any) -> Any:
        return x + self.mean()

    @classmethod
    def of_class(cls) -> Any:
        return OLD.normal()

    @property
    def attribute(self) -> Any:
        return OLD.normal()

    def __call__(self) -> Any:
        return self.method()

    def __radd__(self, other: Any) -> Any:
        return other + OLD.normal()


class Derived(Drawing):
    pass


class Slots:
    __slots__ = ("empty", "rng")

    def __init__(self) -> None:
        self.rng = np.random.default_rng(3)


class Descriptor:
    def __get__(self, instance: Any, owner: Any) -> Any:
        return OLD.normal()


class Described:
    drawn = Descriptor()


def by_attribute() -> Any:
    return by_attribute.rng.normal()  # type: ignore[attr-defined]


by_attribute.rng = np.random.default_rng(3)  # type: ignore[attr-defined]


def by_name() -> Any:
    return OLD.normal()


def yielding() -> Iterator[Any]:
    while True:
        yield OLD.normal()


@lru_cache(maxsize=0)
def cached(number: int) -> Any:
    return OLD.normal()


OBJECT, DERIVED, SLOTS, FUNCTIONS, YIELDING = Drawing(), Derived(), Slots(), [by_name], yielding()
DICTIONARY: dict[str, Any] = {"class": Drawing}
CLASSES, NAMED, QUEUE = [Drawing], namedtuple("Named", "rng")(np.random.default_rng(3)), deque([np.random.default_rng(3)])
GRADIENT = ad.grad(lambda x: x * OLD.normal())
PACKAGE = ModuleType("drawing_package")
PACKAGE.inner = ModuleType("drawing_package.inner")  # type: ignore[attr-defined]
PACKAGE.inner.old = OLD
PACKAGE.Drawing = Drawing  # type: ignore[attr-defined]
sys.modules |= {"drawing_package": PACKAGE, "drawing_package.inner": PACKAGE.inner}
