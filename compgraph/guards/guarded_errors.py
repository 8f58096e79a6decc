"""Guards on errors that depend on values, because code that catches such an error branches on the values.

``np.linalg.cholesky(K)`` in a ``try`` statement branches as ``if`` does, without a call of a node's method. So a guard checks
whether an operation raises again.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ..frames import source_lines
from ..interpreters import on_operation_error
from ..ops import opname_of
from ..tracing import is_compiling
from ..values import Value, is_python_arithmetic, require_history, require_unbatched, save_operands
from .guard import note_guard, strip_transforms


def _catch_error_name(
    function: Callable[..., Any], options: dict[str, Any], errstate: dict[str, Any], *values: object
) -> str | None:
    """Return the class name of the error that ``function(*values, **options)`` raises under ``np.errstate``; None without one."""
    with np.errstate(**errstate):
        try:
            function(*values, **options)
        except (ArithmeticError, ValueError) as error:
            return type(error).__name__
    return None


def note_error(function: Any, args: tuple[Any, ...], options: dict[str, Any], error: Exception | None, frame: Any) -> None:
    """Log a guard on the class of the error that ``function(*args, **options)`` raised, or on the absence of an error.

    `error` is None if the call succeeded. `frame` is the user's frame, whose line the guard reports.
    """
    errstate = {kind: "raise" if action == "raise" else "ignore" for kind, action in np.geterr().items()}
    error_function = functools.partial(_catch_error_name, function, options, errstate)
    error_name = None if error is None else type(error).__name__
    note_guard(f"whether {opname_of(function)} raises", error_function, args, error_name, frame)


def check_domain(function: Callable[..., Any], args: tuple[Any, ...]) -> None:
    """Raise the domain error of a function of Python numbers, such as ``math.log(-1)``, for the values of nodes; log a guard.

    A successful call is guarded only under `cg.jit`, and only if the calling function has an exception handler, because guards
    cost time in each run. Within `vmap` it raises if an element of the batch does: the error of the function if all elements
    raise, else a BatchedValueError, because code that catches the error would run for some elements alone.
    """
    operands = [strip_transforms(operand) for operand in args]
    numbers = [operand.raw_value if isinstance(operand, Value) else operand for operand in operands]
    if not all(isinstance(number, (int, float, np.number, np.ndarray)) for number in numbers) or any(map(np.ndim, args)):
        return
    if any(map(np.ndim, numbers)):
        function = _over_batch(function)
    error = None
    try:
        function(*numbers)
    except TypeError:
        return
    except _PartialError as partial:
        require_unbatched(f"math.{function.__name__}, which raises '{partial}' for some batch elements,", *args)
    except (ArithmeticError, ValueError) as domain_error:
        error = domain_error
    frame = source_lines.user_frame(2)
    if error is not None or (is_compiling() and frame.f_code is not None and frame.f_code.co_exceptiontable):
        note_error(function, tuple(operands), {}, error, frame)
    if error is not None:
        raise error


class _PartialError(ArithmeticError):
    """Raised if a function of Python numbers raises for some elements of a batch only."""


def _over_batch(function: Callable[..., Any]) -> Callable[..., None]:
    """Map a function over a batch: raise its error if it raises for all elements, and a `_PartialError` if only for some."""

    @functools.wraps(function)
    def call(*numbers: Any) -> None:
        elements = list(np.broadcast(*numbers))
        errors = []
        for element in elements:
            try:
                function(*element)
            except (ArithmeticError, ValueError) as error:
                errors.append(error)
        if errors:
            raise errors[0] if len(errors) == len(elements) else _PartialError(str(errors[0]))

    return call


_REAL_NUMBER_TYPES = frozenset({float, int, bool, np.float64, np.float32, np.int64})


def check_operator(operator_name: str, a: object, b: object) -> None:
    """Raise the error of Python's operator if `a` and `b` represent Python numbers, as for ``1 / x`` at 0; log a guard.

    Arrays, complex numbers and divisors other than 0 raise nothing.
    """
    require_history(a, b)
    numbers = [x.raw_value if isinstance(x, Value) else x for x in map(strip_transforms, (a, b))]
    divisor, is_division = numbers[1], operator_name != "pow"
    if is_division and type(divisor) in _REAL_NUMBER_TYPES and divisor:  # the most frequent case
        return
    if not _REAL_NUMBER_TYPES.issuperset(map(type, numbers)) and any(np.ndim(x) or np.iscomplexobj(x) for x in numbers):
        return
    if is_division and divisor:
        return
    function = RAISING_OPERATORS[operator_name]
    if _raises(function, numbers) and is_python_arithmetic(a) and is_python_arithmetic(b):
        check_domain(function, (a, b))


def _raises(function: Callable[..., Any], numbers: list[Any]) -> bool:
    try:
        function(*numbers)
    except ArithmeticError:
        return True
    except (TypeError, ValueError):
        pass
    return False


def _truediv(a: Any, b: Any) -> Any:
    return float(a) / float(b)


def _floordiv(a: Any, b: Any) -> Any:
    return float(a) // float(b)


def _mod(a: Any, b: Any) -> Any:
    return float(a) % float(b)


def _pow(a: Any, b: Any) -> Any:
    return float(a) ** float(b)


# On Python's floats, because NumPy's scalars warn instead of raising.
RAISING_OPERATORS = {"truediv": _truediv, "floordiv": _floordiv, "mod": _mod, "divmod": _floordiv, "pow": _pow}


def _note_operation_error(function: object, args: tuple[Any, ...], options: dict[str, Any], error: Exception) -> None:
    note_error(function, *save_operands(args, options), error, source_lines.user_frame(3))


on_operation_error.append(_note_operation_error)
