"""Random numbers whose parameters are nodes: a draw as a function of its parameters.

A draw from a location-scale family is ``loc + scale * z``, where z is a draw from the standard distribution and does not
depend on the parameters (Kingma and Welling, "Auto-encoding variational Bayes", 2014). NumPy draws with the plain numbers, and
z is computed back from the draw; so the numbers, and the state of the generator, are NumPy's own. Families without such a
formula refuse nodes.
"""

from __future__ import annotations

import functools
import random
import threading
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, Self

import numpy as np

from ..context import layered_variable
from ..frames import frame_up
from ..graph import stack_nested, to_values
from ..inplace import contains_node
from ..tracing import is_tracing
from ..values import BUFFERS, NUMERIC, as_buffer, unwrap_buffer
from .libraries import is_library

Formula = Callable[..., Any]


def _moved(drawn: Any, loc: Any, scale: Any) -> Any:
    """``loc + scale * z``, whose value is `drawn`."""
    standard = _safe(drawn - to_values(loc), to_values(scale))
    return loc + scale * standard


def _safe(numerator: Any, scale: Any) -> Any:
    """``numerator / scale``, the standard draw; a scale of 0 raises, since the draw then does not tell it."""
    if np.any(np.equal(scale, 0)):
        raise TypeError(
            "a draw of scale 0 does not tell the standard draw, by which it follows its scale. Draw that: "
            "loc + scale * rng.normal()"
        )
    return numerator / scale


def _scaled(drawn: Any, scale: Any) -> Any:
    return scale * _safe(drawn, to_values(scale))


def _powered(drawn: Any, a: Any) -> Any:
    """``z ** (1 / a)``, whose value is `drawn`."""
    return (drawn ** to_values(a)) ** (1 / a)


def _triangular(drawn: Any, left: Any, mode: Any, right: Any) -> Any:
    """The inverse of the triangular distribution function, at the probability of the value `drawn`."""
    a, c, b = map(to_values, (left, mode, right))
    rises = drawn < c
    with np.errstate(all="ignore"):
        u = np.where(rises, (drawn - a) ** 2 / ((b - a) * (c - a)), 1 - (b - drawn) ** 2 / ((b - a) * (b - c)))
    low = left + np.sqrt(np.where(rises, u, 0.25) * (right - left) * np.where(rises, mode - left, 1.0))
    high = right - np.sqrt(np.where(rises, 0.25, 1 - u) * (right - left) * np.where(rises, 1.0, right - mode))
    return np.where(rises, low, high)


# For each family: its parameters with their defaults (None: required), and the draw as a function of its value and of them.
FAMILIES: dict[str, tuple[dict[str, Any], Formula]] = {
    **dict.fromkeys(("normal", "laplace", "logistic", "gumbel"), ({"loc": 0.0, "scale": 1.0}, _moved)),
    "uniform": ({"low": 0.0, "high": 1.0}, lambda v, low, high: _moved(v, low, high - low)),
    "exponential": ({"scale": 1.0}, _scaled),
    "rayleigh": ({"scale": 1.0}, _scaled),
    "lognormal": ({"mean": 0.0, "sigma": 1.0}, lambda v, mean, sigma: np.exp(_moved(np.log(v), mean, sigma))),
    "weibull": ({"a": None}, _powered),
    "power": ({"a": None}, _powered),
    "pareto": ({"a": None}, lambda v, a: _powered(v + 1, a) - 1),
    "triangular": ({"left": None, "mode": None, "right": None}, _triangular),
}

REFUSED = (
    "beta", "binomial", "chisquare", "dirichlet", "f", "gamma", "geometric", "hypergeometric", "logseries", "multinomial",
    "multivariate_hypergeometric", "multivariate_normal", "negative_binomial", "noncentral_chisquare", "noncentral_f", "poisson",
    "standard_gamma", "standard_t", "vonmises", "wald", "zipf", "permutation", "permuted", "choice",
)  # fmt: skip


def drawing(name: str, original: Any) -> Any:
    """A drawing function that takes nodes for parameters."""
    parameters, formula = FAMILIES[name]

    def draw(*args: Any, **kwargs: Any) -> Any:
        if not (any(map(contains_node, args)) or any(map(contains_node, kwargs.values()))):
            return fresh_draw(original(*args, **kwargs), frame_up(1))
        drawn = original(*to_values(args), **to_values(kwargs))
        given = dict(zip(parameters, args, strict=False)) | kwargs
        return formula(drawn, *[stack_nested(given.get(key, default)) for key, default in parameters.items()])

    return draw


def refusing(name: str, original: Any) -> Any:
    """A drawing function that refuses nodes."""

    def draw(*args: Any, **kwargs: Any) -> Any:
        if any(map(contains_node, args)) or any(map(contains_node, kwargs.values())):
            raise TypeError(
                f"random numbers by {name} do not follow their parameters by a formula that has a derivative. Draw "
                "standard ones and move them (mean + L @ rng.standard_normal(n)), draw indices (x[rng.permutation(len(x))]), or "
                "give plain parameters (node.value)"
            )
        return fresh_draw(original(*args, **kwargs), frame_up(1))

    return draw


def making(name: str, original: Any) -> Any:
    """Wrap a random function none of whose parameters may be a node. C code writes into the memory of a buffer as ``out=``."""

    @functools.wraps(original)
    def draw(*args: Any, **kwargs: Any) -> Any:
        if is_tracing():
            into = next((value for value in (*args, *kwargs.values()) if type(value) in BUFFERS), None)
            if into is not None:
                original(*map(unwrap_buffer, args), **{key: unwrap_buffer(value) for key, value in kwargs.items()})
                return into
        return fresh_draw(original(*args, **kwargs), frame_up(1))

    return draw


def fresh_draw(drawn: Any, frame: Any) -> Any:
    """Drawn numbers; a promotable array for user code within a function that is differentiated."""
    if type(drawn) is not np.ndarray or not is_tracing() or drawn.dtype.kind not in NUMERIC:
        return drawn
    while frame.f_back is not None and frame.f_code.co_filename == __file__:
        frame = frame.f_back
    return drawn if is_library(frame.f_code.co_filename) else as_buffer(drawn)


_STANDARD = (
    "rand", "randn", "randint", "random", "random_sample", "ranf", "sample", "random_integers", "integers", "standard_cauchy",
    "standard_exponential", "standard_normal",
)  # fmt: skip
ANSWERS: dict[str, Callable[[str, Any], Any]] = {
    **dict.fromkeys(FAMILIES, drawing), **dict.fromkeys(REFUSED, refusing), **dict.fromkeys(_STANDARD, making)
}  # fmt: skip


# Who is asked where a number is drawn, as ``ask(name, draw, args, kwargs)``; None where the numbers are simply drawn.
_asked: ContextVar[Callable[..., Any] | None] = layered_variable("asked for draws", None)
_NO_DRAWS = frozenset({"bit_generator"})
_LEGACY = ("bytes", "shuffle", "seed", "set_state")
_PYTHONS = (
    "random", "uniform", "triangular", "gauss", "normalvariate", "lognormvariate", "expovariate", "vonmisesvariate",
    "gammavariate", "betavariate", "paretovariate", "weibullvariate", "binomialvariate", "randint", "randrange", "choice",
    "choices", "sample", "shuffle", "getrandbits", "randbytes", "seed", "setstate",
)  # fmt: skip


def asked_for_draws() -> Callable[..., Any] | None:
    """Who is asked where a number is drawn; None where nobody is."""
    return _asked.get()


def asking_for_draws(ask: Callable[..., Any] | None) -> dict[Any, Any]:
    """The changes of a context in which ``ask(name, draw, args, kwargs)`` runs in place of ``draw(*args, **kwargs)``.

    That is so for the functions of `numpy.random` and of Python's `random`, where they are exchanged, and for generators that are
    seen as lent.
    """
    return {_asked: ask}


# NumPy and SciPy draw for themselves, to estimate something; what other libraries draw may well be what they are called for.
_FOR_THEMSELVES = frozenset({"numpy", "scipy", "compgraph", "autodiff"})


def asking(name: str, draw: Any) -> Any:
    """A drawing function that asks first."""

    @functools.wraps(draw)
    def drawn(*args: Any, **kwargs: Any) -> Any:
        ask = _asked.get()
        if ask is None or str(frame_up(1).f_globals.get("__name__")).partition(".")[0] in _FOR_THEMSELVES:
            return known(draw, *args, **kwargs)
        return ask(name, draw, args, kwargs)

    return drawn


UNSEEDED = "a generator that is made without a seed"


def _asking_system(urandom: Any) -> Any:
    """``os.urandom`` as Python's `random` calls it: for its SystemRandom, by which generators that are given no seed find one."""

    @functools.wraps(urandom)
    def drawn(size: int) -> Any:
        ask = _asked.get()
        if ask is None:
            return urandom(size)
        frame = frame_up(1)
        while frame.f_globals.get("__name__") in ("random", "secrets") and frame.f_back is not None:
            frame = frame.f_back
        return urandom(size) if is_library(frame.f_code.co_filename) else ask(UNSEEDED, urandom, (size,), {})

    return drawn


def draws() -> list[tuple[dict[str, Any], str, Any]]:
    """The names of drawing functions that are exchanged only where somebody is asked: namespace, name, and the function."""
    spaces = (vars(np.random), _LEGACY), (vars(random), _PYTHONS)
    found = [(space, name, asking(name, space[name])) for space, names in spaces for name in names if name in space]
    return [*found, (vars(random), "_urandom", _asking_system(vars(random)["_urandom"]))]


class Watching:
    """One who looks, after a function has run, whether it drew from generators that ask nobody; on entering it begins to.

    Draws that somebody was asked for, or that other threads made, may be from the same generators. So around each the watches of
    all threads are told: before, to look now (`settle`); and after, to begin anew (`begin`).

    Attributes
    ----------
    others_draw : bool
        Whether a thread was seen to draw that runs no such function. Its draws are told of, but one that it had begun when the
        names were exchanged.
    """

    others_draw = False

    def begin(self) -> None:
        """Take the states of the generators as they are."""
        raise NotImplementedError

    def settle(self) -> None:
        """Look whether one of them was drawn from since."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        with _watching:
            self.begin()
            _watches.append((self, threading.get_ident()))
        return self

    def __exit__(self, *exception: object) -> None:
        with _watching:
            _watches.remove((self, threading.get_ident()))
            self.settle()


_watches: list[tuple[Watching, int]] = []  # with the threads that they are of
_watching = threading.RLock()


def known(draw: Any, /, *args: Any, **kwargs: Any) -> Any:
    """``draw(*args, **kwargs)``, which no `Watching` holds against its function."""
    if not _watches:
        return draw(*args, **kwargs)
    with _watching:
        told, own = [watch for watch, _ in _watches], threading.get_ident()
        if all(thread != own for _, thread in _watches):
            Watching.others_draw = True
        for watch in told:
            watch.settle()
        try:
            return draw(*args, **kwargs)
        finally:
            for watch in told:
                watch.begin()


class Generator(np.random.Generator):
    """A generator whose methods take nodes for parameters, over the bit generator of another.

    Attributes
    ----------
    _is_seeded : bool
        Whether it was made from a seed within the function that is differentiated, so that it draws the same numbers each time.
    """

    _is_seeded = False

    def __getattribute__(self, name: str) -> Any:
        found = np.random.Generator.__getattribute__(self, name)
        if name.startswith("_") or name in _NO_DRAWS:
            return found
        draw = ANSWERS[name](name, found) if name in ANSWERS else found
        ask = _asked.get()
        return draw if ask is None or self._is_seeded else functools.partial(_by, ask, name, draw)

    def __reduce__(self) -> Any:
        return np.random.Generator(self.bit_generator).__reduce__()


def _by(ask: Callable[..., Any], name: str, draw: Any, /, *args: Any, **kwargs: Any) -> Any:
    return ask(name, draw, args, kwargs)


def following(generator: np.random.Generator, is_seeded: bool = False) -> Generator:
    """A `Generator` over the bits of `generator`: it draws the same numbers, and advances the same state."""
    made = Generator(generator.bit_generator)
    made._is_seeded = is_seeded
    return made
