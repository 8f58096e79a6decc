"""Conversion between the state of an optimizer of all parameters and the states of the parts of a `Split` model.

`homes` lists, for each parameter, the number of the part that stores it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...optimizers import Optimizer

State = dict[str, Any]
OptimizerFactory = Callable[[list[Any]], Optimizer]


def initial_state(make: OptimizerFactory | None, arrays: Sequence[Any]) -> State:
    """Return the state before the first step.

    Raises
    ------
    TypeError
        If `make` does not return an optimizer whose step takes gradients alone.
    """
    copies = [np.array(array) for array in arrays]
    if make is None:
        return {f"parameter.{i}": array for i, array in enumerate(copies)}
    optimizer = make(copies)
    if not isinstance(optimizer, Optimizer) or type(optimizer).step is not Optimizer.step:
        raise TypeError(
            f"Split: optimizer returned a {type(optimizer).__name__}"
            + (", whose step takes more than gradients" if hasattr(optimizer, "step") else "")
            + ". Pass a constructor of an optimizer of a list of arrays, such as functools.partial(Adam, learning_rate=0.003)."
        )
    return optimizer.state_dict()


def require_separable(make: OptimizerFactory | None, arrays: Sequence[Any], homes: Sequence[int]) -> None:
    """Raise if the update of a parameter depends on other parameters, and parameters are in several parts."""
    if make is None or len(set(homes)) < 2:
        return
    optimizer = make([np.array(array) for array in arrays])
    if (
        type(optimizer)._apply_step is not Optimizer._apply_step
        or type(optimizer)._check_gradients is not Optimizer._check_gradients
    ):
        raise TypeError(f"Split: {type(optimizer).__name__} updates parameters jointly. Place all parameters in one part.")


def clip_of(make: OptimizerFactory | None, arrays: Sequence[Any], homes: Sequence[int]) -> Callable[[list[Any]], Any] | None:
    """Return the `clip` of the optimizer if the client has to call it, because gradients are in several parts."""
    if make is None or len(set(homes)) < 2:
        return None
    return make([np.array(array) for array in arrays])._clip


def validate_state(make: OptimizerFactory | None, arrays: Sequence[Any], state: Mapping[str, Any]) -> State:
    """Return a checked copy of a state."""
    if make is not None:
        optimizer = make([np.array(array) for array in arrays])
        optimizer.load_state_dict(state)
        return optimizer.state_dict()
    state_copy = {}
    for i, array in enumerate(arrays):
        value = state.get(f"parameter.{i}")
        if value is None or np.shape(value) != array.shape:
            raise ValueError(f"the state belongs to other parameters: parameter.{i} is missing or not of shape {array.shape}.")
        state_copy[f"parameter.{i}"] = np.array(value, array.dtype)
    return state_copy


def divide_state(state: Mapping[str, Any], homes: Sequence[int]) -> dict[int, State]:
    """Divide a state into the states of the parts that have parameters."""
    part_states: dict[int, State] = {part: {} for part in homes}
    positions = {i: (home, sum(other == home for other in homes[:i])) for i, home in enumerate(homes)}
    for name, value in state.items():
        slot, _, number = name.rpartition(".")
        if slot and number.isdigit():
            part, k = positions[int(number)]
            part_states[part][f"{slot}.{k}"] = value
        else:
            for part_state in part_states.values():
                part_state[name] = value
    return part_states


def merge_states(states: Mapping[int, Mapping[str, Any]], homes: Sequence[int]) -> State:
    """Merge the states of the parts into one state of all parameters."""
    numbers: dict[int, list[int]] = {}
    for i, home in enumerate(homes):
        numbers.setdefault(home, []).append(i)
    state: State = {}
    for part, part_numbers in numbers.items():
        for name, value in states[part].items():
            slot, _, number = name.rpartition(".")
            state[f"{slot}.{part_numbers[int(number)]}" if slot and number.isdigit() else name] = value
    return state
