"""Random numbers within vmap: refused, one draw that all examples share, or another for each."""

from __future__ import annotations

import ctypes
import random
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from compgraph.context import Setting
from compgraph.interception import (
    UNSEEDED,
    Watching,
    asked_for_draws,
    asking_for_draws,
    generators_behind,
    known,
    state_of,
)

from ..arguments import flatten
from .batch_node import BatchNode
from .examples import stacked
from .looping import each_example
from .values import is_batch

WAYS = ("error", "different", "same")
_REFUSED = (
    "vmap: random numbers are drawn by the function ({}), which runs once for all examples. Say what is meant: "
    "randomness='different' (another draw for each example) or 'same' (all share one draw); or draw outside, and pass "
    "the numbers as an argument"
)
_UNSEEN = (
    "vmap: the function draws random numbers from {}, of which vmap learns too late: one of the older kind (that of a library, "
    "if it is given none), or in an attribute, a list or a dictionary. Give a numpy.random.Generator as an argument of its own, "
    "or draw outside; with randomness='same' all examples share one draw"
)
_ORDERS = {  # the functions that write, or set a state: by what they are refused for a draw for each
    "shuffle": "use x[rng.permutation(len(x))]",
    "seed": "seed outside, or make a generator inside: np.random.default_rng(seed)",
    "set_state": "set it outside",
    "setstate": "set it outside",
}
# The position of `size` among the arguments of functions that fill it one number after the other.
_SIZES = {
    **dict.fromkeys(
        ("random", "random_sample", "ranf", "sample", "standard_normal", "standard_exponential", "standard_cauchy"), 0
    ),
    **dict.fromkeys(("exponential", "rayleigh", "weibull", "power", "pareto", "poisson", "standard_gamma", "chisquare"), 1),
    **dict.fromkeys(("normal", "uniform", "laplace", "logistic", "gumbel", "lognormal", "integers", "randint", "binomial"), 2),
}


def asking(randomness: str, level: int, count: int) -> Any:
    """The changes of the context of a vmap: who is asked where the function draws."""
    before = asked_for_draws()
    if randomness == "error":
        return asking_for_draws(_refuse)
    if randomness == "same":
        return asking_for_draws(before)

    def ask(name: str, draw: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        if name in _ORDERS or kwargs.get("out") is not None:
            raise TypeError(f"vmap: random.{name} is not supported with randomness='different'; {_ORDERS.get(name, 'omit out=')}")
        if name == UNSEEDED:
            raise TypeError(_UNSEEN.format(name))
        one = draw if before is None else lambda *args, **kwargs: before(name, draw, args, kwargs)
        is_pythons = isinstance(getattr(draw, "__self__", None), random.Random)
        with Setting(asking_for_draws(None)):
            return known(_different, name, one, args, kwargs, level, count, is_pythons)

    return asking_for_draws(ask)


def _refuse(name: str, draw: Any, args: Any, kwargs: Any) -> Any:
    raise TypeError(_UNSEEN.format(name) if name == UNSEEDED else _REFUSED.format(name))


def _different(
    name: str, draw: Callable[..., Any], args: Any, kwargs: Any, level: int, count: int, is_pythons: bool = False
) -> Any:
    """Draws, another for each example."""
    leaves, _ = flatten((args, kwargs))
    if any(is_batch(x) and x.level == level for x in leaves):
        return each_example(name, draw, args, kwargs)
    found = None if is_pythons or any(map(is_batch, leaves)) else _at_once(name, draw, args, kwargs, count)
    if found is None:
        found = stacked([draw(*args, **kwargs) for _ in range(count)], name) if count else np.empty((0, *np.shape(draw(*args))))
    return _of_each(name, found, level)


def _of_each(name: str, found: Any, level: int) -> Any:
    """What was drawn, as values that differ; of a list its items."""
    if isinstance(found, list):
        return [_of_each(name, part, level) for part in found]
    if found.dtype.kind not in "biufc":
        raise TypeError(f"vmap: random.{name} draws no numbers, which cannot be others for each example; draw indices")
    return BatchNode.create_using(found, level)


def _at_once(name: str, draw: Callable[..., Any], args: Sequence[Any], kwargs: Any, count: int) -> Any:
    """All draws by one call, where a size says how many; None where it does not."""
    if name in ("rand", "randn"):
        return draw(count, *args)
    place = _SIZES.get(name)
    if place is None:
        return None
    size = args[place] if len(args) > place else kwargs.get("size")
    if size is None and any(np.ndim(a) for a in (*args, *kwargs.values())):
        return None
    sizes = () if size is None else (size,) if isinstance(size, (int, np.integer)) else tuple(size)
    if len(args) > place:
        return draw(*args[:place], (count, *sizes), *args[place + 1 :], **kwargs)
    return draw(*args, **{**kwargs, "size": (count, *sizes)})


# ---------------------------------------------------------------------------------------- what is noticed afterwards


_SHARED: Any = np.random.mtrand._rand


class Watch(Watching):
    """The states of generators that cannot be replaced, to see whether the function has drawn from them.

    The one that all code shares is watched in any case, since libraries draw from it. If other threads do, that tells nothing,
    unless the function is seen to reach it.
    """

    def __init__(self, f: Any, arguments: Any) -> None:
        reached = generators_behind(f, arguments)
        self._generators = [generator for generator in reached if generator is not _SHARED]
        self._reaches_shared = len(self._generators) < len(reached) or "scipy.stats" in sys.modules
        self._drawn: Any = None

    def begin(self) -> None:
        """Take their states as they are."""
        self._before = _state_of_shared(), [state_of(generator) for generator in self._generators]

    def settle(self) -> None:
        """Remember one that was drawn from since."""
        if self._drawn is None:
            shared, others = self._before
            if _state_of_shared() != shared and (self._reaches_shared or not Watching.others_draw):
                self._drawn = _SHARED
            elif others:
                pairs = zip(self._generators, others, strict=True)
                self._drawn = next((generator for generator, state in pairs if state_of(generator) != state), None)

    def require_unused(self) -> None:
        """Raise if one of them was drawn from."""
        if self._drawn is not None:
            raise TypeError(_UNSEEN.format(f"a {type(self._drawn).__name__}"))


_WORDS = 624  # of the state of a Mersenne twister; a position among them follows
_words: Any = None  # those of the generator that all code shares, as they lie in memory: asked for, they take as long as a vmap
_owner: Any = None  # to whom they belong; another may be put in its place
_calm: Any = None  # what they were when no normal number was left over for the next draw


def _state_of_shared() -> Any:
    """What is another after a draw from the generator that all code shares."""
    global _words, _owner, _calm
    owner = _SHARED._bit_generator
    if owner is not _owner:
        _words, _owner = None, owner
        if isinstance(owner, np.random.MT19937):
            _words = (ctypes.c_uint32 * (_WORDS + 1)).from_address(owner.ctypes.state_address)
    if _words is None:
        return state_of(_SHARED)
    some = _words[_WORDS], _words[0], _words[1]  # after as many draws as there are words they are all new
    if some != _calm:
        is_left, left = _SHARED.get_state()[3:]
        if is_left:
            return some, left
        _calm = some
    return some
