"""Answers of a machine: a result, or an error of a part, packed so that the client can raise it. The actor raises none."""

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
    """The machine of a part cannot be reached any more."""


class Told(tuple[Any, ...]):
    """An answer. (Of a class of its own, it is pickled at once; Dask looks into tuples piece by piece.)"""


def result(value: Any) -> Told:
    """The answer that holds a result."""
    return Told(("ok", value))


def told(error: BaseException) -> Told:
    """The answer that holds an error, with its traceback as text."""
    text = "".join(traceback.format_exception(error))
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        error = RuntimeError(f"{type(error).__name__}: {error}")
    return Told(("error", error.with_traceback(None), text))


def unwrapped(response: Any) -> Any:
    """The result in an answer; raises the error if it holds one."""
    if response[0] == "ok":
        return response[1]
    _, error, text = response
    raise error from RemoteError(text)
