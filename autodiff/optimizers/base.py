"""The base class of all optimizers: parameters, steps, and state."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Mapping
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from compgraph import ops

from ..arguments import unflatten
from .parameters import Array, Parameter, check_gradient, collect_parameters, match_gradients

Class = TypeVar("Class", bound=type)

Rate = float | Callable[[int], float]
Clip = Callable[[list[Any]], list[Any]]

# Elements per block of large arrays. A block stays in the processor's cache for the whole step.
BLOCK = 32768

# Names of settings in other packages, with the advice of the error.
_FOREIGN_OPTIONS = {
    **dict.fromkeys(("lr", "step_size", "eta"), "the learning rate is learning_rate="),
    "params": "the updated tree is parameters=, the first argument",
    "eps": "it is epsilon=",
    **dict.fromkeys(("b1", "b2", "beta1", "beta2", "beta_1", "beta_2"), "both are betas=(0.9, 0.999)"),
    "alpha": "the learning rate is learning_rate=, the decay of RMSProp decay=",
    "maximize": "minimize -f",
}
# Former names of attributes in pickles of optimizers, and of the learning rate: `rate` in arguments, attributes and saved states.
_ATTRIBUTES = {"_kept": "_slot_arrays"}


def accepts_rate(cls: Class) -> Class:
    """Decorate a class: accept the argument ``rate=`` and the attribute `rate`, with a DeprecationWarning."""
    target: Any = cls
    init = target.__init__

    @functools.wraps(init)
    def constructor(self: Any, *args: object, **options: object) -> None:
        if "rate" in options:
            if "learning_rate" in options:
                raise TypeError(f"{cls.__name__}: rate= is the former name of learning_rate=; pass learning_rate= alone")
            _warn_of_name(f"{cls.__name__}: the argument rate= is now learning_rate=")
            options["learning_rate"] = options.pop("rate")
        init(self, *args, **options)

    target.__init__ = constructor
    target.rate = former_rate
    return cls


def rename_rate(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return a saved state with the present name of the learning rate."""
    return {"learning_rate" if name == "rate" else name: state[name] for name in state}


def rename_attributes(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes of a pickled optimizer with their present names."""
    return {_ATTRIBUTES.get(name, name): value for name, value in state.items()}


def _read_rate(self: Any) -> Any:
    _warn_of_name(f"{type(self).__name__}: the attribute rate is now learning_rate")
    return self.learning_rate


def _write_rate(self: Any, value: float) -> None:
    _warn_of_name(f"{type(self).__name__}: the attribute rate is now learning_rate")
    self.learning_rate = value


former_rate = property(_read_rate, _write_rate, doc="The former name of `learning_rate`.")


def _warn_of_name(message: str) -> None:
    warnings.warn(message, DeprecationWarning, stacklevel=3)


@accepts_rate
class Optimizer:
    """The base class of `SGD`, `Adam` and the others.

    Parameters
    ----------
    parameters : tree
        Variables, floating-point arrays and Python numbers, in lists, tuples, dictionaries, named tuples and dataclasses,
        nested in any way. Variables and arrays are updated in place and keep their dtype. To set an array, write into it,
        ``a[...] = value``, because the optimizer refers to the array and not to the tree. Numbers cannot be updated in place:
        read their values from the attribute `parameters` after a step.
    learning_rate : float or callable
        The learning rate, or a schedule: a function of the number of previous steps, such as `Cosine`. ``rate=``, the former
        name, works for one more release, with a DeprecationWarning.
    slots : tuple of str
        The names of the state arrays per parameter (such as ``"velocity"``), which have its shape and dtype.
    clip : callable, optional
        A function from the list of gradients to the clipped ones, such as ``lambda g: clip_by_global_norm(g, 1.0)``.

    Attributes
    ----------
    steps : int
        The number of steps so far.

    Raises
    ------
    TypeError
        If a parameter is complex, an integer array, or not a variable, an array or a number; or if a setting is not a number.
    ValueError
        If parameters share memory or are read-only, or a setting is out of its range.
    """

    zero_grad = ops.MissingAttribute("gradients are arguments of step, and do not accumulate in the parameters")
    minimize = ops.MissingAttribute(
        "optimizer.step(autodiff.gradient(loss)) is one step; autodiff.minimize(f, x0) runs SciPy's methods"
    )
    apply_gradients = ops.MissingAttribute("optimizer.step(gradients) updates the parameters")
    update = ops.MissingAttribute(
        "optimizer.step(gradients) updates the parameters in place, and keeps the state of the optimizer"
    )
    param_groups = ops.MissingAttribute("one optimizer has one learning rate; make an optimizer for each group of parameters")

    def __new__(cls, *args: object, **options: object) -> Self:
        """Create an optimizer; settings with names of other packages raise, with their name in this package."""
        ops.raise_for_foreign_options(cls.__name__, options, _FOREIGN_OPTIONS)
        return super().__new__(cls)

    def __init__(self, parameters: object, learning_rate: Rate, slots: tuple[str, ...], clip: Clip | None = None) -> None:
        if clip is not None and not callable(clip):
            raise TypeError(
                f"clip is a function of the list of gradients, not {clip!r}; for example lambda g: clip_by_norm(g, 1.0)"
            )
        self._parameters, self._structure = collect_parameters(parameters)
        self._slots = slots
        self._clip = clip
        self._slot_arrays = [tuple(np.zeros(p.array.shape, p.array.dtype) for _ in slots) for p in self._parameters]
        self.steps = 0
        self.learning_rate = learning_rate
        self._split_into_blocks()

    @property
    def learning_rate(self) -> float:
        """The learning rate of the next step. Assign a number or a schedule."""
        if isinstance(self._rate, float):
            return self._rate
        return check_range(f"learning_rate({self.steps})", self._rate(self.steps), 0)

    @learning_rate.setter
    def learning_rate(self, learning_rate: Rate) -> None:
        self._rate = learning_rate if callable(learning_rate) else check_range("learning_rate", learning_rate, 0)

    @property
    def parameters(self) -> Any:
        """The tree of parameters, with current numbers."""
        return unflatten(self._structure, [p.current for p in self._parameters])

    def step(self, gradients: Any = None) -> None:
        """Update the parameters.

        Parameters
        ----------
        gradients : Gradients, or tree
            The result of ``autodiff.reverse.gradient(loss)``, which may contain other variables too; or a tree nested like the
            parameters, as from ``autodiff.grad``. Each gradient is converted to the dtype of its parameter.

        Raises
        ------
        ValueError
            If a gradient is missing, nested differently, of a different shape, infinite or NaN. The parameters and the
            optimizer's state are unchanged then.
        TypeError
            If a gradient is not real, or `gradients` is a `Gradients` and a parameter is a plain array.

        Warns
        -----
        RuntimeWarning
            NumPy's own, if an updated parameter overflows.
        """
        if gradients is None:
            raise TypeError("step takes the gradients, which parameters do not store: optimizer.step(autodiff.gradient(loss))")
        self._apply_step(self._check_gradients(gradients), self.learning_rate)

    def state_dict(self) -> dict[str, Any]:
        """Return the parameters and the optimizer's state, as arrays and numbers.

        Returns
        -------
        dict
            Copies, for ``np.savez(file, **state)``. The learning rate is included if it is a number. Schedules and other
            settings are not.
        """
        state: dict[str, Any] = {"steps": self.steps}
        if isinstance(self._rate, float):
            state["learning_rate"] = self._rate
        for i, (parameter, slots) in enumerate(zip(self._parameters, self._slot_arrays, strict=True)):
            state[f"parameter.{i}"] = parameter.array.copy()
            state |= {f"{slot}.{i}": array.copy() for slot, array in zip(self._slots, slots, strict=True)}
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a state. Later steps are bit for bit those of an uninterrupted run.

        Parameters
        ----------
        state : mapping
            A result of `state_dict`, also after ``np.savez`` and ``np.load``. The optimizer must have the same settings, and
            parameters of the same shapes and dtypes, whose values are overwritten. States of earlier releases, in which the
            learning rate is called "rate", are accepted.

        Raises
        ------
        ValueError
            If the state belongs to a different optimizer. Nothing is changed then.
        """
        expected, state = self.state_dict(), rename_rate(state)  # reads a file once, before any change
        if set(state) != set(expected):
            missing, unknown = sorted(set(expected) - set(state)), sorted(set(state) - set(expected))
            raise ValueError(f"the state belongs to a different optimizer: {missing} are missing, {unknown} are unknown")
        names = [f"{slot}.{i}" for i in range(len(self._parameters)) for slot in ("parameter", *self._slots)]
        arrays = {name: _require_same_shape_and_dtype(name, state[name], expected[name]) for name in names}
        for parameter in self._parameters:
            parameter.require_writable()
        steps = _check_step_count(state["steps"])
        rate = check_range("learning_rate", state["learning_rate"], 0) if "learning_rate" in state else None
        self._load_extra_state(state)
        self.steps = steps
        if rate is not None:
            self._rate = rate
        for i, (parameter, slots) in enumerate(zip(self._parameters, self._slot_arrays, strict=True)):
            _write(parameter, lambda array, i=i: np.copyto(array, arrays[f"parameter.{i}"]))  # type: ignore[misc]
            for slot, array in zip(self._slots, slots, strict=True):
                np.copyto(array, arrays[f"{slot}.{i}"])

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({len(self._parameters)} parameters, learning_rate={self.learning_rate:g}, steps={self.steps})"
        )

    # -------------------------------------------------------------------------- for subclasses

    def _factors(self, rate: float) -> tuple[float, ...]:
        """Return the scalars of the next step for `_update_block`; by default the learning rate alone."""
        return (rate,)

    def _update_block(self, p: Array, g: Array, slots: tuple[Array, ...], a: Array, b: Array, factors: tuple[float, ...]) -> None:
        """Update a block `p` of a parameter, and its blocks of state arrays `slots`, in place.

        `g` is the gradient, which must not be changed. `a` and `b` are scratch arrays of the same shape.
        """
        raise NotImplementedError

    def _load_extra_state(self, state: Mapping[str, Any]) -> None:
        """Check, then load, the entries that a subclass has added to the state; none by default."""

    # --------------------------------------------------------------------------------------- the step

    def _check_gradients(self, gradients: list[NDArray[Any]] | dict[str, Any]) -> list[Array]:
        """Return the checked gradient of each parameter; raise before any change."""
        for parameter in self._parameters:
            parameter.require_writable()
        squares_gradients = "square" in self._slots or "total" in self._slots
        parameter_gradients = match_gradients(
            gradients, self._parameters, self._structure, squares_gradients and self._clip is None
        )
        if self._clip is None:
            return parameter_gradients
        clipped = list(self._clip(parameter_gradients))
        if len(clipped) != len(parameter_gradients):
            raise ValueError(f"clip returned {len(clipped)} gradients for {len(parameter_gradients)} parameters")
        return [check_gradient(g, p, squares_gradients) for g, p in zip(clipped, self._parameters, strict=True)]

    def _apply_step(self, gradients: list[Array], rate: float) -> None:
        """Take a step along checked gradients."""
        factors = self._factors(rate)
        for parameter, blocks, gradient in zip(self._parameters, self._blocks, gradients, strict=True):
            g = gradient.reshape(-1) if parameter.array.flags.c_contiguous else gradient

            def write(_: Array, blocks: Any = blocks, g: Array = g) -> None:
                for start, stop, *block in blocks:
                    p, slots, a, b = block
                    self._update_block(p, g if stop is None else g[start:stop], slots, a, b, factors)

            _write(parameter, write)
        self.steps += 1

    def _split_into_blocks(self) -> None:
        """Split parameters and state arrays into blocks, once. An array that is not C-contiguous is one block."""
        self._blocks: list[list[Any]] = []
        scratch: dict[np.dtype[Any], tuple[Array, Array]] = {}
        for parameter, slots in zip(self._parameters, self._slot_arrays, strict=True):
            array = parameter.array
            if not array.flags.c_contiguous:
                self._blocks.append([(0, None, array, slots, np.empty_like(array), np.empty_like(array))])
                continue
            a, b = scratch.setdefault(array.dtype, (np.empty(BLOCK, array.dtype), np.empty(BLOCK, array.dtype)))
            flat, flat_slots = array.reshape(-1), [slot.reshape(-1) for slot in slots]
            blocks = []
            for start in range(0, array.size, BLOCK):
                stop = min(start + BLOCK, array.size)
                parts = tuple(slot[start:stop] for slot in flat_slots)
                blocks.append((start, stop, flat[start:stop], parts, a[: stop - start], b[: stop - start]))
            self._blocks.append(blocks)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_blocks"}  # views of the other arrays

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(rename_attributes(state))
        for parameter in self._parameters:
            if parameter.node is not None:
                parameter.array = parameter.node.value
        self._split_into_blocks()


def check_range(name: str, value: Any, low: float, high: float = np.inf) -> float:
    """Convert a setting to a float; raise unless ``low <= value < high``."""
    if not hasattr(value, "__float__") or np.shape(value) or np.asarray(value).dtype.kind not in "biufO":
        raise TypeError(f"{name} must be a number, not {value!r}")
    number = float(value)
    if not low <= number < high:
        raise ValueError(f"{name} must be {'finite and ' if high == np.inf else ''}in [{low:g}, {high:g}), not {value}")
    return number


def _write(parameter: Parameter, write: Callable[[Array], object]) -> None:
    """Call `write` with the array of a parameter. A variable records the write: a gradient through its old value raises."""
    if parameter.node is None:
        write(parameter.array)
    else:
        parameter.node.update(write, ())


def _require_same_shape_and_dtype(name: str, value: NDArray[Any], expected: Array) -> Array:
    """Return an array of the state; raise unless it has the shape and dtype of the one it replaces."""
    array = np.asarray(value)
    if array.shape != expected.shape or (isinstance(value, np.ndarray) and array.dtype != expected.dtype):
        raise ValueError(
            f"the state belongs to a different optimizer: {name} has shape {array.shape} and dtype {array.dtype}, not "
            f"{expected.shape} and {expected.dtype}"
        )
    return array


def _check_step_count(value: Any) -> int:
    if int(value) != value or value < 0:
        raise ValueError(f"the state's number of steps must be a whole number, at least 0, not {value}")
    return int(value)
