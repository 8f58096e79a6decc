"""Random numbers under `vmap`: an error, one draw that all batch elements share, or a different draw for each."""

from __future__ import annotations

import ctypes
import random
import sys
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compgraph.context import Setting
from compgraph.interception import (
    UNSEEDED,
    DrawMonitor,
    draw_handler,
    draw_unmonitored,
    generator_state,
    reachable_generators,
    with_draw_handler,
)

from ..arguments import flatten
from .batch_node import BatchNode
from .levels import is_batch
from .rules import map_elements, stack_results

RANDOMNESS = ("error", "different", "same")
_DRAW_MESSAGE = (
    "vmap: the function draws random numbers ({}), but runs once for the whole batch. Pass randomness='different' (a draw for "
    "each batch element) or randomness='same' (all share one draw), or draw before vmap and pass the numbers as an argument"
)
_UNSEEN_MESSAGE = (
    "vmap: the function draws random numbers from {}, which vmap cannot intercept: the global generator of a library, or a "
    "generator in an attribute, a list or a dictionary. Pass a numpy.random.Generator as an argument, draw before vmap, or pass "
    "randomness='same', so that all batch elements share one draw"
)
_ADVICE = {  # functions that write into an array or set a state cannot draw for each element
    "shuffle": "use x[rng.permutation(len(x))]",
    "seed": "seed before vmap, or make a generator inside the function: np.random.default_rng(seed)",
    "set_state": "set the state before vmap",
    "setstate": "set the state before vmap",
}
# The position of the parameter `size`, in functions that draw its numbers one after the other.
_SIZES = {
    **dict.fromkeys(
        ("random", "random_sample", "ranf", "sample", "standard_normal", "standard_exponential", "standard_cauchy"), 0
    ),
    **dict.fromkeys(("exponential", "rayleigh", "weibull", "power", "pareto", "poisson", "standard_gamma", "chisquare"), 1),
    **dict.fromkeys(("normal", "uniform", "laplace", "logistic", "gumbel", "lognormal", "integers", "randint", "binomial"), 2),
}


def draw_interception(randomness: str, level: int, batch_size: int) -> dict[ContextVar[Any], Any]:
    """The changes of the context of a vmap by which random draws inside it are intercepted."""
    outer = draw_handler()
    if randomness == "error":
        return with_draw_handler(_raise_for_draw)
    if randomness == "same":
        return with_draw_handler(outer)

    def intercept(name: str, draw: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if name in _ADVICE or kwargs.get("out") is not None:
            advice = _ADVICE.get(name, "omit out=")
            raise TypeError(f"vmap: random.{name} cannot run for each batch element (randomness='different'); {advice}")
        if name == UNSEEDED:
            raise TypeError(_UNSEEN_MESSAGE.format(name))
        draw_once = draw if outer is None else lambda *args, **kwargs: outer(name, draw, args, kwargs)
        is_python_random = isinstance(getattr(draw, "__self__", None), random.Random)
        with Setting(with_draw_handler(None)):
            return draw_unmonitored(_draw_each, name, draw_once, args, kwargs, level, batch_size, is_python_random)

    return with_draw_handler(intercept)


def _raise_for_draw(name: str, draw: object, args: object, kwargs: object) -> Any:
    raise TypeError(_UNSEEN_MESSAGE.format(name) if name == UNSEEDED else _DRAW_MESSAGE.format(name))


def _draw_each(
    name: str,
    draw: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    level: int,
    batch_size: int,
    is_python_random: bool = False,
) -> Any:
    """Draw for each batch element; at once if the function permits that."""
    leaves, _ = flatten((args, kwargs))
    if any(is_batch(x) and x.level == level for x in leaves):
        return map_elements(name, draw, args, kwargs)
    draws = None if is_python_random or any(map(is_batch, leaves)) else _draw_at_once(name, draw, args, kwargs, batch_size)
    if draws is None:
        if batch_size:
            draws = stack_results([draw(*args, **kwargs) for _ in range(batch_size)], name)
        else:
            draw_of_element = np.asarray(draw(*args, **kwargs))
            draws = np.empty((0, *draw_of_element.shape), draw_of_element.dtype)
    return _wrap_draws(name, draws, level)


def _wrap_draws(name: str, draws: NDArray[Any] | list[NDArray[Any]], level: int) -> Any:
    """Wrap draws as batched values; of a list, its items."""
    if isinstance(draws, list):
        return [_wrap_draws(name, part, level) for part in draws]
    if draws.dtype.kind not in "biufc":
        raise TypeError(
            f"vmap: random.{name} returns values of dtype {draws.dtype}, which cannot differ between batch elements. Draw "
            "indices instead"
        )
    return BatchNode.create_using(draws, level)


def _draw_at_once(name: str, draw: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], batch_size: int) -> Any:
    """Draw for the whole batch by one call with a larger `size`; None if the function does not permit that."""
    if name in ("rand", "randn"):
        return draw(batch_size, *args)
    position = _SIZES.get(name)
    if position is None:
        return None
    size = args[position] if len(args) > position else kwargs.get("size")
    if size is None and any(np.ndim(a) for a in (*args, *kwargs.values())):
        return None
    sizes = () if size is None else (size,) if isinstance(size, (int, np.integer)) else tuple(size)
    if len(args) > position:
        return draw(*args[:position], (batch_size, *sizes), *args[position + 1 :], **kwargs)
    return draw(*args, **{**kwargs, "size": (batch_size, *sizes)})


# ------------------------------------------------------------------------------ generators that cannot be intercepted


_GLOBAL: Any = np.random.mtrand._rand


class DrawWatch(DrawMonitor):
    """Detects draws from generators that cannot be intercepted, by comparing their states before and after the call.

    The global generator of `numpy.random` is always watched, because libraries draw from it. Draws of other threads are
    ignored, unless the function is known to reach it.
    """

    def __init__(self, f: object, arguments: Sequence[object]) -> None:
        reached = reachable_generators(f, arguments)
        self._generators = [generator for generator in reached if generator is not _GLOBAL]
        self._reaches_global = len(self._generators) < len(reached) or "scipy.stats" in sys.modules
        self._drawn_from: Any = None

    def start(self) -> None:
        """Store the current states."""
        self._before = _global_state(), [generator_state(generator) for generator in self._generators]

    def check(self) -> None:
        """Compare the states with the stored ones."""
        if self._drawn_from is None:
            shared, others = self._before
            if _global_state() != shared and (self._reaches_global or not DrawMonitor.other_threads_draw):
                self._drawn_from = _GLOBAL
            elif others:
                pairs = zip(self._generators, others, strict=True)
                self._drawn_from = next((generator for generator, state in pairs if generator_state(generator) != state), None)

    def require_unused(self) -> None:
        """Raise a TypeError if the function drew from a watched generator."""
        if self._drawn_from is not None:
            raise TypeError(_UNSEEN_MESSAGE.format(f"a {type(self._drawn_from).__name__}"))


_WORDS = 624  # the words of a Mersenne twister; the position among them follows
_words: Any = None  # the words of the global generator, as a view of its memory: `get_state` takes as long as a small vmap
_owner: Any = None  # the bit generator that `_words` belongs to, which the user may replace
_without_cache: Any = None  # a state of `_words` in which no second normal number was cached


def _global_state() -> Any:
    """A value that changes with every draw from the global generator."""
    global _words, _owner, _without_cache
    owner = _GLOBAL._bit_generator
    if owner is not _owner:
        _words, _owner = None, owner
        if isinstance(owner, np.random.MT19937):
            _words = (ctypes.c_uint32 * (_WORDS + 1)).from_address(owner.ctypes.state_address)
    if _words is None:
        return generator_state(_GLOBAL)
    state = _words[_WORDS], _words[0], _words[1]  # the position; all words are replaced after 624 draws
    if state != _without_cache:
        has_cached, cached = _GLOBAL.get_state()[3:]
        if has_cached:
            return state, cached
        _without_cache = state
    return state
