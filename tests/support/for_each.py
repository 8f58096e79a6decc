"""Tests of many cases in one item of pytest, which report every failing case by name."""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import wraps
from itertools import chain, cycle, islice, product
from typing import Any

import pytest

import compgraph as cg
from tests.support.failures import Failures

Test = Callable[..., None]
Place = tuple[int, ...]  # the position of a case along each axis

PARTS = pytest.mark.parametrize("part", ["sample", pytest.param("rest", marks=pytest.mark.exhaustive)])


def for_each(
    names: str | tuple[str, ...], values: Iterable[Any], ids: Any = None, rest: Iterable[Any] = ()
) -> Callable[[Test], Test]:
    """Call a test for each value, like ``pytest.mark.parametrize``, but as one item of pytest.

    Stacked decorators make a cross product. Each case has its own warning filters, ``np.errstate``, names of nodes and
    ``monkeypatch``. Other fixtures are shared. A case that skips itself does not skip the others. A test without cases fails.

    Parameters
    ----------
    names : str or tuple of str
        The parameters of the test; several take the elements of each value.
    values : iterable
        Their values. A mapping gives its keys.
    ids : iterable or callable, optional
        Names of the values, for the report of failures.
    rest : iterable, optional
        Further values, for the exhaustive tests only.

    Examples
    --------
    >>> @for_each("seed", range(4), rest=range(4, 40))
    ... def test_random_programs(seed): ...
    """
    parameters = tuple([name.strip() for name in names.split(",")]) if isinstance(names, str) else tuple(names)
    few = list(values)
    axis = _Axis(parameters, [*few, *rest], len(few), ids)

    def decorate(test: Test) -> Test:
        loop = getattr(test, "loop", _Loop(test))
        return _as_test(replace(loop, axes=(axis, *loop.axes)), test)

    return decorate


def sampled(test: Test) -> Test:
    """Run a sample of a cross product by default, and mark the rest as exhaustive.

    The sample has each value of the longest axis, and each combination of the values of the other axes.
    """
    decorated: Any = test
    return _as_test(replace(decorated.loop, is_sampled=True), test)


@dataclass(frozen=True)
class _Axis:
    """Values of parameters: the first few for the default run, the others for the exhaustive one."""

    parameters: tuple[str, ...]
    values: list[Any]
    few: int
    ids: Any

    def arguments(self, place: int) -> dict[str, Any]:
        value = self.values[place]
        return dict(zip(self.parameters, (value,) if len(self.parameters) == 1 else value, strict=True))

    def name(self, place: int) -> str:
        if callable(self.ids):
            return str(self.ids(self.values[place]))
        if self.ids is not None:
            return str(list(self.ids)[place])
        return "-".join([_name(parameter, value, place) for parameter, value in self.arguments(place).items()])


def _name(parameter: str, value: Any, place: int) -> str:
    name = str(getattr(value, "__name__", value))
    return name if "<" not in name and len(name) <= 60 else f"{parameter}{place}"


@dataclass(frozen=True)
class _Loop:
    """A test of one case, and the axes of the cases."""

    body: Test
    axes: tuple[_Axis, ...] = ()
    is_sampled: bool = False

    @property
    def has_rest(self) -> bool:
        return self.is_sampled or any(axis.few < len(axis.values) for axis in self.axes)

    def places(self, part: str) -> list[Place]:
        few = [axis.few for axis in self.axes]
        sample = {*(_sample(few) if self.is_sampled else product(*map(range, few)))}
        everything = product(*[range(len(axis.values)) for axis in self.axes])
        return [place for place in everything if (place in sample) == (part == "sample")]

    def signature(self) -> inspect.Signature:
        """The fixtures for pytest: the parameters of the body that have no axis, and the part."""
        axis_names = {name for axis in self.axes for name in axis.parameters}
        fixtures = [p for name, p in inspect.signature(self.body).parameters.items() if name not in axis_names]
        part = [inspect.Parameter("part", inspect.Parameter.KEYWORD_ONLY)] if self.has_rest else []
        return inspect.Signature([*fixtures, *part])

    def run(self, part: str, args: tuple[Any, ...], fixtures: dict[str, Any]) -> None:
        skips, places = [], self.places(part)
        with Failures(self.body.__name__) as failures:
            for place in places:
                pairs = list(zip(self.axes, place, strict=True))
                arguments = {name: value for axis, k in pairs for name, value in axis.arguments(k).items()}
                cg.reset()
                with failures.case(", ".join([axis.name(k) for axis, k in pairs])), pytest.MonkeyPatch.context() as monkeypatch:
                    own = {"monkeypatch": monkeypatch} if "monkeypatch" in fixtures else {}
                    try:
                        self.body(*args, **{**fixtures, **own, **arguments})
                    except pytest.skip.Exception as reason:
                        skips.append(str(reason))
        if len(skips) == len(places):
            pytest.skip(skips[-1])


def _sample(lengths: list[int]) -> Iterator[Place]:
    """Indices that cover the longest axis once, or all combinations of the other axes, whichever are more.

    The combinations are shuffled, since the longest axis may itself be a cross product whose period fits theirs.
    """
    longest, generator = lengths.index(max(lengths)), random.Random(0)
    others = list(product(*[range(n) for k, n in enumerate(lengths) if k != longest]))
    shuffled = chain.from_iterable(generator.sample(others, len(others)) for _ in range(max(lengths)))
    for k, other in islice(zip(cycle(range(lengths[longest])), shuffled), max(lengths[longest], len(others))):
        yield (*other[:longest], k, *other[longest:])


def _as_test(loop: _Loop, test: Test) -> Test:
    """Return a loop as a function that pytest can collect, with the marks of a test."""

    @wraps(test)
    def run(*args: Any, part: str = "sample", **fixtures: Any) -> None:
        loop.run(part, args, fixtures)

    looped: Any = run
    has_mark = "loop" in vars(test) and vars(test)["loop"].has_rest
    looped.loop, looped.__signature__ = loop, loop.signature()
    return PARTS(looped) if loop.has_rest and not has_mark else looped
