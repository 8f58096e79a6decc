"""Responses of an actor: a result, or an error of a part, which the client raises. Methods of the actor raise no errors."""

from __future__ import annotations

import pickle
import traceback
from typing import Any


class RemoteError(Exception):
    """The traceback of an error that was raised in a part."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __str__(self) -> str:
        return f'\n"""\n{self.text}"""'


class LostError(Exception):
    """The machine of a part is unreachable."""


class Response(tuple[Any, ...]):
    """A response. Dask serializes a plain tuple item by item; an instance of a subclass is pickled as one object."""


def result(value: Any) -> Response:
    """Return the response with a result."""
    return Response(("ok", value))


def error_response(error: BaseException) -> Response:
    """Return the response with an error and its traceback as text."""
    text = "".join(traceback.format_exception(error))
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        error = RuntimeError(f"{type(error).__name__}: {error}")
    return Response(("error", error.with_traceback(None), text))


def unwrap(response: Any) -> Any:
    """Return the result in a response, or raise its error."""
    if response[0] == "ok":
        return response[1]
    _, error, text = response
    raise error from RemoteError(text)
