"""Tests that go through their parameters in one run, and report each that fails."""

from __future__ import annotations

import inspect
import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from functools import wraps
from typing import Any

import pytest

from tests.support.failures import Failures

Test = Callable[..., None]


def for_each(names: str | tuple[str, ...], values: Iterable[Any], ids: Any = None) -> Callable[[Test], Test]:
    """Call a test for each value, like ``pytest.mark.parametrize``, but as one item of pytest.

    Decorators above each other make a cross product. Each call has warning filters and a ``monkeypatch`` of its own. Other
    fixtures are shared. A case that skips itself does not skip the others.

    Parameters
    ----------
    names : str or tuple of str
        The parameters of the test; several take the elements of each value.
    values : iterable
        Their values. A mapping gives its keys.
    ids : iterable or callable, optional
        Names for the report of failures.
    """
    parameters = tuple([part.strip() for part in names.split(",")]) if isinstance(names, str) else tuple(names)

    def decorate(test: Test) -> Test:
        own = [_Axis(parameters, values, ids), *getattr(test, "axes", [])]
        return _loop(test, getattr(test, "body", test), own, sampled=False)

    return decorate


def sampled(test: Test) -> Test:
    """Run a sample of a cross product by default, and mark the rest as exhaustive.

    The sample has each value of the longest axis once, and all combinations of the values of the others.
    """
    body: Any = test
    rest = pytest.param("rest", marks=pytest.mark.exhaustive)
    return pytest.mark.parametrize("part", ["sample", rest])(_loop(test, body.body, body.axes, sampled=True))


class _Axis:
    """Values of parameters, with their names."""

    def __init__(self, parameters: tuple[str, ...], values: Iterable[Any], ids: Any) -> None:
        self.parameters = parameters
        self.values = list(values)
        self.ids = ids

    def __len__(self) -> int:
        return len(self.values)

    def arguments(self, place: int) -> dict[str, Any]:
        value = self.values[place]
        return dict(zip(self.parameters, (value,) if len(self.parameters) == 1 else value, strict=True))

    def name(self, place: int) -> str:
        if callable(self.ids):
            return str(self.ids(self.values[place]))
        if self.ids is not None:
            return str(list(self.ids)[place])
        return "-".join(_name(name, value, place) for name, value in self.arguments(place).items())


def _name(parameter: str, value: Any, place: int) -> str:
    if value is None or isinstance(value, (str, int, float, complex)):
        return str(value)
    name = getattr(value, "__name__", "<")
    return f"{parameter}{place}" if "<" in name else name


def _sample(lengths: list[int]) -> set[tuple[int, ...]]:
    """Positions that go once through the longest axis, and through all combinations of the others."""
    longest = lengths.index(max(lengths))
    others = [k for k in range(len(lengths)) if k != longest]
    found = set()
    for count in range(max(lengths[longest], math.prod([lengths[k] for k in others]))):
        places = [count % lengths[longest]] * len(lengths)
        rest = count
        for k in others:
            rest, places[k] = divmod(rest, lengths[k])
        found.add(tuple(places))
    return found


def _places(axes: list[_Axis], part: str) -> Iterator[tuple[int, ...]]:
    """The positions along all axes: of everything, of a sample, or of the rest."""
    lengths = [len(axis) for axis in axes]
    sample = _sample(lengths)
    for places in itertools.product(*map(range, lengths)):
        if part == "all" or (places in sample) == (part == "sample"):
            yield places


def _loop(test: Test, body: Test, axes: list[_Axis], sampled: bool) -> Test:
    @wraps(test)
    def loop(*args: Any, part: str = "all", monkeypatch: Any = None, **fixtures: Any) -> None:
        skipped, count = "", 0
        with Failures(body.__name__) as failures:
            for places in _places(axes, part):
                pairs = list(zip(axes, places, strict=True))
                given = {name: value for axis, place in pairs for name, value in axis.arguments(place).items()}
                with (
                    failures.case(", ".join([axis.name(place) for axis, place in pairs])),
                    nullcontext() if monkeypatch is None else monkeypatch.context() as own,
                ):
                    if monkeypatch is not None:
                        given["monkeypatch"] = own
                    count += 1
                    try:
                        body(*args, **given, **fixtures)
                    except pytest.skip.Exception as reason:
                        skipped, count = str(reason), count - 1
        if skipped and not count:
            pytest.skip(skipped)

    looped: Any = loop
    taken = {name for axis in axes for name in axis.parameters}
    kept = [p for name, p in inspect.signature(body).parameters.items() if name not in taken]
    if sampled:
        kept.append(inspect.Parameter("part", inspect.Parameter.KEYWORD_ONLY))
    looped.__signature__ = inspect.Signature(kept)
    looped.axes, looped.body = axes, body
    return loop
