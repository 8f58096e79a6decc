"""Functions returned by operators, which are pickled as the operator call."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from types import MethodType
from typing import Any, TypeVar

from compgraph import ops
from compgraph.context import full_tracebacks
from compgraph.frames import frame_up, is_called_by_packages, shorten_traceback
from compgraph.serialization import SELF_PICKLING

from .argnums import require_argnums
from .validation import require_function

Operator = TypeVar("Operator", bound=Callable[..., Any])


# Options of operators in other packages, with the advice of the error.
_FOREIGN_OPTIONS = {
    "wrt": "use argnums=",
    "holomorphic": "autodiff.jacobian takes analytic functions of complex arguments",
    "allow_int": "convert integer arguments to floats (x.astype(float))",
    "create_graph": "operators compose, autodiff.grad(autodiff.grad(f))",
}


def function_operator(operator: Operator) -> Operator:
    """Decorate an operator on functions: its results can be pickled, and ``argnum=`` of HIPS/autograd is accepted.

    The decorated operator raises a TypeError unless the first argument is a function, and for arguments in place of ``argnums``.
    """

    @functools.wraps(operator)
    def wrapper(*args: object, **kwargs: object) -> Any:
        checked_args = (require_function(operator.__name__, args[0]), *args[1:]) if args else args
        ops.raise_for_foreign_options(operator.__name__, kwargs, _FOREIGN_OPTIONS)
        if "argnum" in kwargs:
            if "argnums" in kwargs or len(args) > 1:
                raise TypeError(f"{operator.__name__}: argnum and argnums are the same parameter. Pass one of them")
            kwargs["argnums"] = kwargs.pop("argnum")
        require_argnums(operator.__name__, args[1] if len(args) > 1 else kwargs.get("argnums", 0))
        return pickle_as_call(wrapper, operator(*checked_args, **kwargs), args, kwargs)

    return wrapper  # type: ignore[return-value]


def short_tracebacks(operator: Operator) -> Operator:
    """Decorate an operator that calls the user's function: remove the frames of the packages from tracebacks."""

    @functools.wraps(operator)
    def wrapper(*args: object, **kwargs: object) -> Any:
        try:
            return operator(*args, **kwargs)
        except Exception as error:
            _shorten_outermost(error)
            raise

    return wrapper  # type: ignore[return-value]


def _shorten_outermost(error: Exception) -> None:
    """Shorten the traceback of an error, in the outermost operator; inner ones need the full traceback for their messages."""
    if not full_tracebacks.get() and not is_called_by_packages(frame_up(1)):
        shorten_traceback(error)


class DerivedFunction:
    """A function made by an operator, which can be called, used as a method, and pickled as the operator call.

    Parameters
    ----------
    function : callable
        The function that the operator returned.
    operator : callable
        The public operator.
    args, kwargs : tuple, dict
        The arguments of the operator.
    """

    __name__: str
    __qualname__: str

    def __init__(
        self, function: Callable[..., Any], operator: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        functools.update_wrapper(self, function)
        self.__func__, self._operator_call = function, (operator, args, kwargs)

    def __call__(self, /, *args: object, **kwargs: object) -> Any:
        """Call the function."""
        try:
            return self.__func__(*args, **kwargs)
        except Exception as error:
            _shorten_outermost(error)
            raise

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __repr__(self) -> str:
        operator, args, _ = self._operator_call
        return f"<{operator.__name__} of {getattr(args[0], '__name__', args[0]) if args else self.__name__}>"

    def __reduce__(self) -> Any:
        named_object: Any = sys.modules.get(self.__module__)
        for name in self.__qualname__.split("."):
            named_object = getattr(named_object, name, None)
        if named_object is self:  # a decorated function, which is pickled by its name
            return self.__qualname__
        return _call_operator, self._operator_call


SELF_PICKLING.add(DerivedFunction)


def _call_operator(operator: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Repeat an operator call when unpickling."""
    return operator(*args, **kwargs)


_made = _call_operator  # the name in pickles of earlier versions


def pickle_as_call(
    operator: Callable[..., Any], function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> DerivedFunction | Any:
    """Wrap the result of an operator in a `DerivedFunction` if it is a function."""
    return DerivedFunction(function, operator, args, kwargs) if callable(function) else function
