"""Between the state of one optimizer of all parameters and those of the parts' optimizers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...optimizers import Optimizer

State = dict[str, Any]
Maker = Callable[[list[Any]], Optimizer]


def first_state(make: Maker | None, arrays: Sequence[Any]) -> State:
    """The state before the first step.

    Raises
    ------
    TypeError
        If `make` does not make an optimizer whose step takes gradients alone.
    """
    copies = [np.array(array) for array in arrays]
    if make is None:
        return {f"parameter.{i}": array for i, array in enumerate(copies)}
    optimizer = make(copies)
    if not isinstance(optimizer, Optimizer) or type(optimizer).step is not Optimizer.step:
        raise TypeError(
            "Split: optimizer makes an optimizer of a list of arrays, such as functools.partial(Adam, learning_rate=0.003); this "
            f"one gave a {type(optimizer).__name__}"
            + (", whose step asks for more than gradients" if hasattr(optimizer, "step") else "")
        )
    return optimizer.state_dict()


def require_separable(make: Maker | None, arrays: Sequence[Any], homes: Sequence[int]) -> None:
    """Raise if an optimizer's update of a parameter depends on others, and parameters live in several parts."""
    if make is None or len(set(homes)) < 2:
        return
    optimizer = make([np.array(array) for array in arrays])
    if (
        type(optimizer)._apply_step is not Optimizer._apply_step
        or type(optimizer)._check_gradients is not Optimizer._check_gradients
    ):
        raise TypeError(f"Split: {type(optimizer).__name__} does not update each parameter separately; place them in one part")


def clip_of(make: Maker | None, arrays: Sequence[Any], homes: Sequence[int]) -> Callable[[list[Any]], Any] | None:
    """The optimizer's `clip`, if gradients are in several parts: it needs all of them."""
    if make is None or len(set(homes)) < 2:
        return None
    return make([np.array(array) for array in arrays])._clip


def loaded(make: Maker | None, arrays: Sequence[Any], state: Mapping[str, Any]) -> State:
    """A copy of a state, checked."""
    if make is not None:
        optimizer = make([np.array(array) for array in arrays])
        optimizer.load_state_dict(state)
        return optimizer.state_dict()
    state_copy = {}
    for i, array in enumerate(arrays):
        value = state.get(f"parameter.{i}")
        if value is None or np.shape(value) != array.shape:
            raise ValueError(f"the state is that of other parameters: parameter.{i} is not there, or not of shape {array.shape}")
        state_copy[f"parameter.{i}"] = np.array(value, array.dtype)
    return state_copy


def divided(state: Mapping[str, Any], homes: Sequence[int]) -> dict[int, State]:
    """The state of each part that has parameters."""
    part_states: dict[int, State] = {part: {} for part in homes}
    place = {i: (home, sum(other == home for other in homes[:i])) for i, home in enumerate(homes)}
    for name, value in state.items():
        slot, _, number = name.rpartition(".")
        if slot and number.isdigit():
            part, k = place[int(number)]
            part_states[part][f"{slot}.{k}"] = value
        else:
            for mine in part_states.values():
                mine[name] = value
    return part_states


def united(states: Mapping[int, Mapping[str, Any]], homes: Sequence[int]) -> State:
    """The state of all parameters, from those of the parts."""
    numbers: dict[int, list[int]] = {}
    for i, home in enumerate(homes):
        numbers.setdefault(home, []).append(i)
    state: State = {}
    for part, mine in numbers.items():
        for name, value in states[part].items():
            slot, _, number = name.rpartition(".")
            state[f"{slot}.{mine[int(number)]}" if slot and number.isdigit() else name] = value
    return state
