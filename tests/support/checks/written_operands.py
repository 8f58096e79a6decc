"""Plain operands that are written into after the operation."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

import autodiff as ad
import compgraph as cg
from tests.support.arguments import Case


def loss(out: Any) -> Any:
    """A real number that depends on all results of a function."""
    parts = out if isinstance(out, (tuple, list)) else (out,)
    return sum(np.sum(np.real(part) ** 2 + np.imag(part)) for part in parts if part.dtype.kind in "fc")


def spoilt(others: list[Any]) -> None:
    """Overwrite arrays with different numbers."""
    for other in others:
        if isinstance(other, np.ndarray):
            other[...] = other[::-1].copy() * 3 + 1 if other.ndim else 7


def check_written_operands(case: Case) -> None:
    """Gradients by each argument, with the others plain and overwritten later, use the values before the write."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for position in range(len(case.args)) if len(case.args) > 1 else ():
            _check_argument(case, position)


def _check_argument(case: Case, position: int) -> None:
    argument = case.args[position]

    def called(x: Any, others: Any, is_spoilt: bool) -> Any:
        arguments = list(others)
        arguments.insert(position, x)
        out = loss(case.function(*arguments))
        if is_spoilt:
            spoilt(others)
        return out

    def others() -> list[Any]:
        return [np.array(a) for i, a in enumerate(case.args) if i != position]

    right = None
    for is_spoilt in (False, True):
        x = cg.variable(np.array(argument))
        out = called(x, others(), is_spoilt)
        assert isinstance(out, cg.Node)
        gradients = [
            ad.reverse.gradients(out, [x])[0],
            ad.grad(called)(np.array(argument), others(), is_spoilt),
            ad.grad(lambda x, *o, s=is_spoilt: called(x, o, s))(np.array(argument), *others()),
        ]
        right = gradients[0] if right is None else right
        for one in gradients:
            np.testing.assert_allclose(one, right, rtol=1e-6, atol=1e-9)
