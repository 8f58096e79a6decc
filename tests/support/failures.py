"""Many cases in one test, all of whose failures are reported."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Self

import numpy as np
import pytest


class Failures:
    """Collects the failures of cases, and raises all of them together at the end. Without any case, it fails.

    Examples
    --------
    >>> with Failures("squares") as failures:
    ...     for x in (1, 2):
    ...         with failures.case(str(x)):
    ...             assert x * x > 0
    """

    def __init__(self, subject: str) -> None:
        self.subject = subject
        self.count = 0
        self.names: list[str] = []
        self.errors: list[Exception] = []

    @contextmanager
    def case(self, name: str) -> Iterator[None]:
        """Run a case with its own warning filters and ``np.errstate``, and keep its failure."""
        self.count += 1
        try:
            with warnings.catch_warnings(), np.errstate():
                yield
        except pytest.fail.Exception as failure:  # raised by pytest.raises; it derives from BaseException
            self._add(name, AssertionError(str(failure)))
        except Exception as error:
            self._add(name, error)

    def _add(self, name: str, error: Exception) -> None:
        error.add_note(name)
        self.names.append(name)
        self.errors.append(error)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self.errors and not isinstance(error, (KeyboardInterrupt, SystemExit)):  # a skip or an error may follow failures
            raise ExceptionGroup(f"{self.subject}: {'; '.join(self.names)}", self.errors) from error
        assert self.count or error is not None, f"{self.subject}: no cases"
