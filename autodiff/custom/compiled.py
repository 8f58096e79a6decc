"""Derivatives of compiled functions, and of functions imported from JAX and PyTorch: a call on nodes is one node."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import compgraph as cg
from compgraph.bind import attach
from compgraph.compiled import ImportedFunction, set_call_recorder
from compgraph.context import NoGraph, is_recording, recording_on
from compgraph.graph import to_values
from compgraph.tracing import is_compiling
from compgraph.values import INERT, Value, is_plain_array, save_operand

from ..arguments import flatten, unflatten
from ..batching import active_levels
from ..operators import vjp
from ..rules import Rule, SharedFormulas, VariadicFormulas, rule_factories
from .call import CallFunction, has_node, instantiate_zeros, require_same

_MAX_PULLS = 64  # compiled derivatives per function: one per structure of arguments and set of node positions
_jit = CallFunction("jit")


def _call_on_nodes(jitted: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a compiled function on nodes: run its program if one exists, otherwise record its operations."""
    leaves, structure = flatten((args, kwargs))
    positions = [i for i, x in enumerate(leaves) if isinstance(x, Value) and type(x) not in INERT]
    is_outermost = is_recording() and not is_compiling() and not active_levels()
    if not positions or not is_outermost or any(leaves[i].level for i in positions):
        return jitted.__wrapped__(*args, **kwargs)
    plain = list(map(_save_plain_value, leaves))
    call = _create_call(jitted, plain, structure, jitted.dict_orders((args, kwargs)), positions)
    if call is None:
        return jitted.__wrapped__(*args, **kwargs)
    program_result, fallback = call.run_program()
    if program_result is None:
        return fallback(args, kwargs)
    values, result_structure = flatten(program_result[0])
    if not values or not all(isinstance(v, (np.ndarray, np.generic)) and v.dtype.kind == "f" for v in values):
        return jitted.__wrapped__(*args, **kwargs)
    operands = tuple([leaves[i] for i in positions])
    output = attach(tuple(values) if len(values) > 1 else values[0], _jit, operands, {"call": call})
    return unflatten(result_structure, list(output) if len(values) > 1 else [output])


set_call_recorder(_call_on_nodes)


def _save_plain_value(leaf: object) -> Any:
    """Return the plain value of a leaf, protected from later writes."""
    if isinstance(leaf, Value):
        return to_values(leaf)
    return save_operand(leaf) if is_plain_array(leaf) else leaf


def _create_call(jitted: Any, plain: list[Any], structure: Any, orders: list[Any], positions: list[int]) -> CompiledCall | None:
    """Return the call, with the compiled derivative for this signature; None if the derivative cannot be compiled."""
    array_positions = [i for i, x in enumerate(plain) if isinstance(x, (np.ndarray, np.generic)) and i not in positions]
    statics = [(i, x) for i, x in enumerate(plain) if i not in positions and i not in array_positions]
    pulls = jitted.__dict__.setdefault("_pulls", {})
    key = structure, *orders, tuple(positions), tuple([(i, type(x), repr(x)) for i, x in statics])
    if key not in pulls:
        if len(pulls) >= _MAX_PULLS or not all(isinstance(x, (bool, int, float, str, type(None))) for _, x in statics):
            return None
        pulls[key] = cg.jit(
            _create_pull(jitted.__wrapped__, structure, positions, array_positions, dict(statics)), **_jit_options(jitted)
        )
    return None if pulls[key].is_rejected else CompiledCall(jitted, plain, structure, positions, array_positions, pulls[key])


def _jit_options(jitted: Any) -> dict[str, Any]:
    return {name: jitted.options[name] for name in ("threads", "exact", "cache", "backend") if name in jitted.options}


def _create_pull(
    f: Callable[..., Any], structure: object, positions: list[int], array_positions: list[int], statics: dict[int, Any]
) -> Callable[..., Any]:
    """Return a function that maps operands, other arrays and the results' cotangents to results and operands' cotangents."""

    def pull(operands: Sequence[Any], others: Sequence[Any], cotangents: Sequence[Any]) -> Any:
        def results(*primals: object) -> Any:
            leaves = {**statics, **dict(zip(array_positions, others, strict=True)), **dict(zip(positions, primals, strict=True))}
            args, kwargs = unflatten(structure, [leaves[i] for i in range(len(leaves))])
            outputs = flatten(f(*args, **kwargs))[0]
            return tuple([x if isinstance(x, Value) else cg.constant(x) for x in outputs])  # some may not depend on any operand

        outputs, vjp_function = vjp(results, *operands)
        return outputs, vjp_function(tuple(cotangents))

    return pull


class CompiledCall:
    """One call of a compiled function.

    Parameters
    ----------
    jitted : Jitted
        The function.
    plain : list
        The leaves of its arguments, as plain arrays.
    structure : PyTreeSpec
        The structure of the arguments.
    positions, array_positions : list of int
        The positions of leaves that are operands, and of other arrays.
    jitted_pull : Jitted
        Returns the results and the cotangents of the operands.
    """

    def __init__(
        self, jitted: Any, plain: list[Any], structure: Any, positions: list[int], array_positions: list[int], jitted_pull: Any
    ) -> None:
        self.jitted, self.structure, self.positions, self.jitted_pull = jitted, structure, positions, jitted_pull
        self.leaves = [None if i in positions else x for i, x in enumerate(plain)]
        self.others = tuple([plain[i] for i in array_positions])
        self._operands = tuple([plain[i] for i in positions])

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_operands": None}

    def run_program(self) -> Any:
        """Return the result of the program in a list, or None, and the fallback; see `Jitted.run_program`."""
        args, kwargs = self._arguments(self._operands)
        self._operands = ()
        with NoGraph():
            return self.jitted.run_program(args, kwargs)

    def _arguments(self, operands: Sequence[Any]) -> Any:
        leaves = list(self.leaves)
        for i, operand in zip(self.positions, operands, strict=True):
            leaves[i] = operand
        return unflatten(self.structure, leaves)

    def compute(self, *operands: Any) -> Any:
        """Return the values of the results."""
        args, kwargs = self._arguments(operands)
        with NoGraph():
            values = tuple(map(to_values, flatten(self.jitted(*args, **kwargs))[0]))
        return values if len(values) > 1 else values[0]

    def pull(self, cotangent: Any, out: Any, *operands: Any) -> list[Any]:
        """Return the cotangents of the operands."""
        outs = out if isinstance(out, tuple) else (out,)
        output_cotangents = cotangent if isinstance(out, tuple) else (cotangent,)
        output_cotangents = tuple(map(_as_scalar, instantiate_zeros(output_cotangents, outs)))
        if has_node(output_cotangents, *operands):
            with recording_on():
                values, operand_cotangents = self.jitted_pull(operands, self.others, output_cotangents)
        else:
            with NoGraph():
                values, operand_cotangents = self.jitted_pull(operands, self.others, output_cotangents)
        try:
            _require_all_same(outs, values)
        except ValueError:  # the derivative's program may round differently where a sum cancels
            recomputed = self.compute(*map(to_values, operands))
            _require_all_same(outs, recomputed if isinstance(recomputed, tuple) else (recomputed,))
        return list(operand_cotangents)


def _require_all_same(before: Sequence[Any], now: Sequence[Any]) -> None:
    for earlier, later in zip(before, now, strict=True):
        require_same("jit", earlier, later)


def _as_scalar(value: object) -> Any:
    """Convert a 0-d array to a scalar, so that both share a program."""
    return value[()] if type(value) is np.ndarray else value


# ------------------------------------------------------------ functions of other libraries


def _rule_of(function: ImportedFunction) -> Rule:
    """Return the rule of an imported function: the derivatives of the other library."""

    def cotangents(positions: list[int], cotangent: Any, out: Any, *operands: object) -> list[Any]:
        outputs = len(out) if isinstance(out, tuple) else 0
        output_cotangents = instantiate_zeros(cotangent, out) if outputs else (cotangent,)
        operand_cotangents = function.pullback(outputs)(*output_cotangents, *operands)
        return [operand_cotangents[position] for position in positions]

    def tangent(position: int, t: object, out: object, *operands: object) -> Any:
        return function.pushforward(position)(t, *operands)

    return Rule(function.__name__, "general", SharedFormulas(cotangents), VariadicFormulas(tangent))


rule_factories[ImportedFunction] = _rule_of
