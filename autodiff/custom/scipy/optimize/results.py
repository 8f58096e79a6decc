"""What SciPy's solvers give: fields that are nodes, counts that are plain, and numbers whose derivative is not at hand."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from scipy.optimize import OptimizeResult

from ..callbacks import is_number

# Numbers that say how the search went, and nothing of the solution.
_OF_THE_SEARCH = frozenset(
    ["optimality", "constr_violation", "maxcv", "tr_radius", "constr_penalty", "barrier_parameter", "barrier_tolerance"]
)
_OF_THE_SEARCH |= {"execution_time", "mip_gap"}


class _Refusing(dict[str, Any]):
    """A dictionary that refuses numbers which depend on nodes, and whose derivative is not at hand."""

    refused: frozenset[str] = frozenset()

    def __getitem__(self, name: str) -> Any:
        if name in self.refused:
            raise TypeError(
                f"the field {name!r} of the result depends on nodes and carries no derivative, as x and fun do. "
                "Where the plain numbers are meant, solve with plain numbers (node.value)"
            )
        return super().__getitem__(name)

    def get(self, name: str, default: Any = None) -> Any:
        """The value of a key, or another."""
        return self[name] if name in self.keys() else default


class Found(_Refusing, OptimizeResult):  # type: ignore[misc]
    """A result of SciPy's, some of whose fields are nodes."""


def carrying(result: Any, fields: dict[str, Any]) -> Any:
    """A result with fields in place of its own; other numbers that depend on the solution are refused where they are read.

    Parameters
    ----------
    result : dict
        SciPy's result, or a dictionary beside one.
    fields : dict
        What is a node.
    """
    made = Found(result) if isinstance(result, OptimizeResult) else _Refusing(result)
    made.update(fields)
    object.__setattr__(made, "refused", _numbers(result) - fields.keys())
    return made


def _numbers(result: dict[str, Any]) -> frozenset[str]:
    def holds(value: Any) -> bool:
        return any(map(holds, value.values())) if isinstance(value, dict) else is_number(value) or _is_operator(value)

    return frozenset(name for name, value in _items(result) if name not in _OF_THE_SEARCH and holds(value))


def _items(result: dict[str, Any]) -> Iterable[tuple[str, Any]]:
    return dict.items(result)


def _is_operator(value: Any) -> bool:
    """Whether a value stands for a matrix, as the inverse Hessian of L-BFGS does."""
    return hasattr(value, "matvec") or hasattr(value, "toarray") or hasattr(value, "todense")
