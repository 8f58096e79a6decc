"""Random numbers whose parameters are nodes: reparametrization of draws.

A draw from a location-scale family is ``loc + scale * z``, where z is a draw from the standard distribution and does not
depend on the parameters (Kingma and Welling, "Auto-encoding variational Bayes", 2014). NumPy draws with the plain parameters, and
z is recovered from the draw, so numbers and generator states equal NumPy's. Families without such a formula raise for nodes.
"""

from __future__ import annotations

import functools
import random
import threading
from collections.abc import Callable
from contextvars import ContextVar
from types import FrameType
from typing import Any, Self

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from ..array_types import Operand
from ..context import layered_variable
from ..frames import frame_up
from ..graph import stack_nested, to_values
from ..inplace import contains_node
from ..tracing import is_tracing
from ..values import BUFFERS, NUMERIC, Value, as_buffer, unwrap_buffer
from .callers import is_library

Function = Callable[..., Any]
Draw = Callable[..., Any]
DrawHandler = Callable[[str, Draw, tuple[Any, ...], dict[str, Any]], Any]  # handler(name, draw, args, kwargs)


# ------------------------------------------------------------------------------------------- reparametrization


def _shift_and_scale(draw: Operand, loc: object, scale: object) -> Any:
    """``loc + scale * z``, whose value is `draw`."""
    standard = _divide_by_scale(draw - to_values(loc), to_values(scale))
    return loc + scale * standard


def _divide_by_scale(numerator: Operand, scale: Operand) -> Any:
    """``numerator / scale``, the standard draw; raises for a scale of 0, from which it cannot be computed."""
    if np.any(np.equal(scale, 0)):
        raise TypeError(
            "a draw with scale 0 has no derivative with respect to its scale: the standard draw cannot be computed from it. "
            "Write loc + scale * rng.normal() instead"
        )
    return numerator / scale


def _scale(draw: Operand, scale: object) -> Any:
    return scale * _divide_by_scale(draw, to_values(scale))


def _take_root(draw: object, a: Any) -> Any:
    """``z ** (1 / a)``, whose value is `draw`."""
    return (draw ** to_values(a)) ** (1 / a)


def _triangular_quantile(draw: object, left: Any, mode: Any, right: Any) -> Any:
    """The inverse of the triangular distribution function, at the probability of the value `draw`."""
    a, c, b = map(to_values, (left, mode, right))
    is_rising = draw < c
    with np.errstate(all="ignore"):
        u = np.where(is_rising, (draw - a) ** 2 / ((b - a) * (c - a)), 1 - (b - draw) ** 2 / ((b - a) * (b - c)))
    low = left + np.sqrt(np.where(is_rising, u, 0.25) * (right - left) * np.where(is_rising, mode - left, 1.0))
    high = right - np.sqrt(np.where(is_rising, 0.25, 1 - u) * (right - left) * np.where(is_rising, 1.0, right - mode))
    return np.where(is_rising, low, high)


# For each family: parameters with defaults (None: required), and the reparametrization as a function of draw and parameters.
FAMILIES: dict[str, tuple[dict[str, Any], Function]] = {
    **dict.fromkeys(("normal", "laplace", "logistic", "gumbel"), ({"loc": 0.0, "scale": 1.0}, _shift_and_scale)),
    "uniform": ({"low": 0.0, "high": 1.0}, lambda v, low, high: _shift_and_scale(v, low, high - low)),
    "exponential": ({"scale": 1.0}, _scale),
    "rayleigh": ({"scale": 1.0}, _scale),
    "lognormal": ({"mean": 0.0, "sigma": 1.0}, lambda v, mean, sigma: np.exp(_shift_and_scale(np.log(v), mean, sigma))),
    "weibull": ({"a": None}, _take_root),
    "power": ({"a": None}, _take_root),
    "pareto": ({"a": None}, lambda v, a: _take_root(v + 1, a) - 1),
    "triangular": ({"left": None, "mode": None, "right": None}, _triangular_quantile),
}

UNSUPPORTED = (
    "beta", "binomial", "chisquare", "dirichlet", "f", "gamma", "geometric", "hypergeometric", "logseries", "multinomial",
    "multivariate_hypergeometric", "multivariate_normal", "negative_binomial", "noncentral_chisquare", "noncentral_f", "poisson",
    "standard_gamma", "standard_t", "vonmises", "wald", "zipf", "permutation", "permuted", "choice",
)  # fmt: skip


def _reparametrize(name: str, original: Draw) -> Draw:
    """A drawing function whose parameters may be nodes."""
    parameters, formula = FAMILIES[name]

    def draw(*args: object, **kwargs: object) -> Any:
        if not (any(map(contains_node, args)) or any(map(contains_node, kwargs.values()))):
            return _draw_as_buffer(original(*args, **kwargs), frame_up(1))
        value = original(*to_values(args), **to_values(kwargs))
        arguments = dict(zip(parameters, args, strict=False)) | kwargs
        return formula(value, *[stack_nested(arguments.get(key, default)) for key, default in parameters.items()])

    return draw


def _raise_for_nodes(name: str, original: Draw) -> Draw:
    """A drawing function that raises for nodes."""

    def draw(*args: object, **kwargs: object) -> Any:
        if any(map(contains_node, args)) or any(map(contains_node, kwargs.values())):
            raise TypeError(
                f"random {name}: a parameter is a node, and the draw is not a differentiable function of its parameters. Draw "
                "standard numbers and transform them (mean + L @ rng.standard_normal(n)), draw indices "
                "(x[rng.permutation(len(x))]), or pass plain parameters (node.value)"
            )
        return _draw_as_buffer(original(*args, **kwargs), frame_up(1))

    return draw


def _return_buffers(name: str, original: Draw) -> Draw:
    """A drawing function whose parameters cannot be nodes; ``out=`` may be a buffer, into whose memory C code writes."""

    @functools.wraps(original)
    def draw(*args: object, **kwargs: object) -> Any:
        if is_tracing():
            out = next((value for value in (*args, *kwargs.values()) if type(value) in BUFFERS), None)
            if out is not None:
                original(*map(unwrap_buffer, args), **{key: unwrap_buffer(value) for key, value in kwargs.items()})
                return out
        return _draw_as_buffer(original(*args, **kwargs), frame_up(1))

    return draw


def _permute_rows(name: str, original: Draw) -> Draw:
    """A shuffle that permutes nodes and buffers by one index. NumPy swaps views of their rows instead, which duplicates rows."""

    @functools.wraps(original)
    def shuffle(x: Any, *args: int, **kwargs: int) -> None:
        if not (isinstance(x, Value) or type(x) in BUFFERS) or not x.ndim:
            original(x, *args, **kwargs)
            return
        axis = normalize_axis_index(next(iter((*args, *kwargs.values())), 0), x.ndim)
        order = np.arange(x.shape[axis])
        original(order)
        x[...] = x[(slice(None),) * axis + (order,)]

    return shuffle


def _draw_as_buffer(numbers: object, frame: FrameType) -> Any:
    """Random numbers; a buffer for user code within a function that is differentiated."""
    if type(numbers) is not np.ndarray or not is_tracing() or numbers.dtype.kind not in NUMERIC:
        return numbers
    while frame.f_back is not None and frame.f_code.co_filename == __file__:
        frame = frame.f_back
    return numbers if is_library(frame.f_code.co_filename) else as_buffer(numbers)


_STANDARD = (
    "rand", "randn", "randint", "random", "random_sample", "ranf", "sample", "random_integers", "integers", "standard_cauchy",
    "standard_exponential", "standard_normal",
)  # fmt: skip
_PATCHES: dict[str, Callable[[str, Draw], Draw]] = {
    **dict.fromkeys(FAMILIES, _reparametrize), **dict.fromkeys(UNSUPPORTED, _raise_for_nodes),
    **dict.fromkeys(_STANDARD, _return_buffers), "shuffle": _permute_rows,
}  # fmt: skip
NUMPY_DRAWS = frozenset(_PATCHES)


def wrap_draw(name: str, original: Draw) -> Draw:
    """The function that replaces one of ``np.random`` (of `NUMPY_DRAWS`) within a function that is differentiated."""
    patched = _with_draw_handler(name, _PATCHES[name](name, original))
    patched.for_compiled = _with_draw_handler(name, original)  # type: ignore[attr-defined]
    return patched


# ------------------------------------------------------------------------------------------------ draw handlers

_handler: ContextVar[DrawHandler | None] = layered_variable("draw handler", None)
_NO_DRAWS = frozenset({"bit_generator"})
_LEGACY = ("bytes", "seed", "set_state")
_PYTHON_DRAWS = (
    "random", "uniform", "triangular", "gauss", "normalvariate", "lognormvariate", "expovariate", "vonmisesvariate",
    "gammavariate", "betavariate", "paretovariate", "weibullvariate", "binomialvariate", "randint", "randrange", "choice",
    "choices", "sample", "shuffle", "getrandbits", "randbytes", "seed", "setstate",
)  # fmt: skip


def draw_handler() -> DrawHandler | None:
    """The handler that replaces each draw, ``handler(name, draw, args, kwargs)``; None otherwise."""
    return _handler.get()


def with_draw_handler(handler: DrawHandler | None) -> dict[Any, Any]:
    """The context changes by which ``handler(name, draw, args, kwargs)`` replaces ``draw(*args, **kwargs)``.

    The handler runs for patched functions of `numpy.random` and of Python's `random`, and for borrowed generators.
    """
    return {_handler: handler}


# Modules whose draws are not handled: they are internal. Draws of other libraries may determine their results.
_INTERNAL_DRAWS = frozenset({"numpy", "scipy", "compgraph", "autodiff"})


def _with_draw_handler(name: str, draw: Draw) -> Draw:
    """A drawing function that runs the current draw handler instead, if any."""

    @functools.wraps(draw)
    def handled_draw(*args: object, **kwargs: object) -> Any:
        handler = _handler.get()
        if handler is None or str(frame_up(1).f_globals.get("__name__")).partition(".")[0] in _INTERNAL_DRAWS:
            return draw_unmonitored(draw, *args, **kwargs)
        return handler(name, draw, args, kwargs)

    return handled_draw


UNSEEDED = "a generator made without a seed"  # the name of a draw from the system's entropy


def _with_entropy_handler(urandom: Callable[[int], bytes]) -> Callable[[int], bytes]:
    """``os.urandom`` as Python's `random` calls it: for its SystemRandom, which seeds generators made without a seed."""

    @functools.wraps(urandom)
    def handled_draw(size: int) -> bytes:
        handler = _handler.get()
        if handler is None:
            return urandom(size)
        frame = frame_up(1)
        while frame.f_globals.get("__name__") in ("random", "secrets") and frame.f_back is not None:
            frame = frame.f_back
        entropy: bytes = urandom(size) if is_library(frame.f_code.co_filename) else handler(UNSEEDED, urandom, (size,), {})
        return entropy

    return handled_draw


def handled_draw_patches() -> list[tuple[dict[str, Any], str, Any]]:
    """The drawing functions that are patched only where there is a draw handler: namespace, name, and the patch."""
    patches = [
        (namespace, name, _with_draw_handler(name, namespace[name]))
        for namespace, names in ((vars(np.random), _LEGACY), (vars(random), _PYTHON_DRAWS))
        for name in names
        if name in namespace
    ]
    return [*patches, (vars(random), "_urandom", _with_entropy_handler(vars(random)["_urandom"]))]


# ------------------------------------------------------------------------------------------------ draw monitors


class DrawMonitor:
    """A context that checks on exit whether generators without a draw handler were used in it.

    Draws by a handler or by other threads may use the same generators. So the monitors of all threads are suspended for each of
    these draws: `check` runs before it, and `start` after it.

    Attributes
    ----------
    other_threads_draw : bool
        Whether a thread without a monitor has drawn. A draw that began before the names were patched is not detected.
    """

    other_threads_draw = False

    def start(self) -> None:
        """Record the states of the generators."""
        raise NotImplementedError

    def check(self) -> None:
        """Record whether a state differs from the one that `start` has recorded."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        with _monitor_lock:
            self.start()
            _monitors.append((self, threading.get_ident()))
        return self

    def __exit__(self, *exception: object) -> None:
        with _monitor_lock:
            _monitors.remove((self, threading.get_ident()))
            self.check()


_monitors: list[tuple[DrawMonitor, int]] = []  # with their threads
_monitor_lock = threading.RLock()


def draw_unmonitored(draw: Draw, /, *args: object, **kwargs: object) -> Any:
    """Call ``draw(*args, **kwargs)`` with all monitors suspended."""
    if not _monitors:
        return draw(*args, **kwargs)
    with _monitor_lock:
        suspended, thread_id = [monitor for monitor, _ in _monitors], threading.get_ident()
        if all(thread != thread_id for _, thread in _monitors):
            DrawMonitor.other_threads_draw = True
        for monitor in suspended:
            monitor.check()
        try:
            return draw(*args, **kwargs)
        finally:
            for monitor in suspended:
                monitor.start()


# --------------------------------------------------------------------------------------------------- generators


class Generator(np.random.Generator):
    """A generator whose methods take nodes for parameters, over the bit generator of another.

    Attributes
    ----------
    _is_seeded : bool
        Whether it was created from a seed within the differentiated function, so that it draws the same numbers in each call.
    """

    _is_seeded = False

    def __getattribute__(self, name: str) -> Any:
        attribute = np.random.Generator.__getattribute__(self, name)
        if name.startswith("_") or name in _NO_DRAWS:
            return attribute
        draw = _PATCHES[name](name, attribute) if name in _PATCHES else attribute
        handler = _handler.get()
        return draw if handler is None or self._is_seeded else functools.partial(_run_handler, handler, name, draw)

    def __reduce__(self) -> Any:
        return np.random.Generator(self.bit_generator).__reduce__()


def _run_handler(handler: DrawHandler, name: str, draw: Draw, /, *args: object, **kwargs: object) -> Any:
    return handler(name, draw, args, kwargs)


def traceable_generator(generator: np.random.Generator, is_seeded: bool = False) -> Generator:
    """A `Generator` over the bits of `generator`: it draws the same numbers, and advances the same state."""
    traceable = Generator(generator.bit_generator)
    traceable._is_seeded = is_seeded
    return traceable
