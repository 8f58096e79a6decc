"""Random numbers within vmap: refused, one draw that all examples share, or another for each."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from compgraph.graph.context import Setting
from compgraph.interception import asked_for_draws, asking_for_draws, generators_behind

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
    "vmap: the function draws random numbers from a {}, of which vmap learns too late: one of the older kind (SciPy's, if it is "
    "given none), or in an attribute, a list or a dictionary. Give a numpy.random.Generator as an argument of its own, or draw "
    "outside; with randomness='same' all examples share one draw"
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


def asking(randomness: str, level: int, count: int, watch: Watch | None) -> Any:
    """The changes of the context of a vmap: who is asked where the function draws."""
    before = asked_for_draws()
    if randomness == "error":
        return asking_for_draws(_refuse)
    if randomness == "same":
        return asking_for_draws(before)

    def ask(name: str, draw: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        if name in _ORDERS or kwargs.get("out") is not None:
            raise TypeError(f"vmap: random.{name} is not supported with randomness='different'; {_ORDERS.get(name, 'omit out=')}")
        one = draw if before is None else lambda *args, **kwargs: before(name, draw, args, kwargs)
        is_pythons = isinstance(getattr(draw, "__self__", None), random.Random)
        try:
            with Setting(asking_for_draws(None)):
                return _different(name, one, args, kwargs, level, count, is_pythons)
        finally:
            if watch is not None:
                watch.begin()  # what is drawn with its knowledge may be of a generator that it watches

    return asking_for_draws(ask)


def _refuse(name: str, draw: Any, args: Any, kwargs: Any) -> Any:
    raise TypeError(_REFUSED.format(name))


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
    if found.dtype.kind not in "biufc":
        raise TypeError(f"vmap: random.{name} draws no numbers, which cannot be others for each example; draw indices")
    return BatchNode.create_using(found, level)


def _at_once(name: str, draw: Callable[..., Any], args: Sequence[Any], kwargs: Any, count: int) -> Any:
    """All draws by one call, where a size says how many; None where it does not."""
    if name in ("rand", "randn"):
        return draw(count, *args)
    place = _SIZES.get(name)
    if place is None or len(args) > place + 1:
        return None
    size = args[place] if len(args) > place else kwargs.get("size")
    if size is None and any(np.ndim(a) for a in (*args, *kwargs.values())):
        return None
    sizes = () if size is None else (size,) if isinstance(size, (int, np.integer)) else tuple(size)
    return draw(*args[:place], **{**kwargs, "size": (count, *sizes)})


# ---------------------------------------------------------------------------------------- what is noticed afterwards


class Watch:
    """The states of generators that cannot be replaced, to see whether the function has drawn from them."""

    def __init__(self, f: Any, arguments: Any) -> None:
        self._generators = generators_behind(f, arguments)
        self.begin()

    def begin(self) -> None:
        """Take their states as they are."""
        self._before = [(generator, _state(generator)) for generator in self._generators]

    def require_unused(self) -> None:
        """Raise if one of them was drawn from."""
        for generator, state in self._before:
            if _state(generator) != state:
                raise TypeError(_UNSEEN.format(type(generator).__name__))


def _state(generator: Any) -> str:
    if isinstance(generator, random.SystemRandom):  # which has none
        raise TypeError(_UNSEEN.format("SystemRandom"))
    if isinstance(generator, random.Random):
        return repr(generator.getstate())
    if isinstance(generator, np.random.RandomState):
        state: Any = generator.get_state(legacy=False)
        return repr(
            (state["state"], bytes(np.asarray(state["state"]["key"])) if "key" in state["state"] else None, state.get("gauss"))
        )
    return repr(generator.bit_generator.state)
