"""What a machine tells: a result, or what was raised there, so that it can be raised here. Nothing else is raised there."""

from __future__ import annotations

import pickle
import traceback
from typing import Any


class RemoteError(Exception):
    """Where in a part something was raised."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __str__(self) -> str:
        return f'\n"""\n{self.text}"""'


class LostError(Exception):
    """The machine of a part cannot be reached any more."""


class Told(tuple[Any, ...]):
    """What is told. (Of a class of its own, it is pickled at once; Dask looks into tuples piece by piece.)"""


def result(value: Any) -> Told:
    """A result."""
    return Told(("ok", value))


def told(error: BaseException) -> Told:
    """An error, with its traceback in words."""
    text = "".join(traceback.format_exception(error))
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        error = RuntimeError(f"{type(error).__name__}: {error}")
    return Told(("error", error.with_traceback(None), text))


def unwrapped(answer: Any) -> Any:
    """What a machine told, or raise what was raised there."""
    if answer[0] == "ok":
        return answer[1]
    _, error, text = answer
    raise error from RemoteError(text)
