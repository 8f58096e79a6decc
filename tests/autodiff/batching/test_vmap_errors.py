"""Errors within `vmap`: those it raises name the user's line, and the user's own pass through unchanged."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import autodiff as ad
from tests.support.for_each import for_each

XS = np.arange(3.0)


class CodedError(ValueError):
    def __init__(self, code: int, message: str) -> None:
        super().__init__(code, message)
        self.code = code


class TaggedError(TypeError):
    def __str__(self) -> str:
        return "seen in vmap"


ERRORS = [
    CodedError(3, "vmap failed"),
    ValueError("vmap", 1, ["any"]),
    TypeError("my own vmap is unhappy"),
    ValueError({"where": "vmap"}),
    TaggedError(7),
    TypeError(),
]


@for_each("error", ERRORS, ids=repr)
def test_vmap_keeps_errors_of_user(error: Exception) -> None:
    before = error.args

    def f(x: Any) -> Any:
        raise error

    for mapped in (ad.vmap(f), ad.vmap(ad.grad(f)), ad.vmap(lambda x: ad.vmap(f)(np.ones(2) * x))):
        with pytest.raises(type(error)) as raised:
            mapped(XS)
        assert raised.value is error
        assert error.args is before


def test_vmap_error_names_user_line_once() -> None:
    def f(x: Any) -> Any:
        return x if x > 0 else -x

    for mapped in (ad.vmap(f), ad.vmap(lambda x: ad.vmap(f)(np.ones(2) * x)), ad.vmap(ad.grad(f))):
        with pytest.raises(TypeError, match="vmap: bool") as raised:
            mapped(XS)
        assert str(raised.value).count('test_vmap_errors.py", line') == 1


def test_vmap_keeps_user_error_that_wraps_package_error() -> None:
    def f(x: Any) -> Any:
        try:
            return x if x > 0 else -x
        except TypeError as error:
            raise CodedError(5, f"the model failed: {error}") from error

    with pytest.raises(CodedError) as raised:
        ad.vmap(f)(XS)
    assert raised.value.args[0] == raised.value.code == 5


def test_vmap_value_used_after_return_raises() -> None:
    """A leaked batched value belongs to no batch, so its use raises."""
    leaks: list[Any] = []
    np.testing.assert_array_equal(ad.vmap(lambda x: (leaks.append(x), 2 * x)[1])(np.ones((3, 2))), np.full((3, 2), 2.0))
    uses: list[Any] = [
        lambda: leaks[0] + 1,
        lambda: np.sum(leaks[0]),
        lambda: leaks[0].__setitem__(0, 1.0),
        lambda: np.add.at(leaks[0], 0, 1.0),
        lambda: ad.grad(lambda y: np.sum(y * leaks[0]))(np.ones(2)),
        lambda: ad.vmap(lambda y: y + leaks[0])(np.ones((3, 2))),
    ]
    for use in uses:
        with pytest.raises(TypeError, match="has returned"):
            use()

    def outer(x: Any) -> Any:
        inner: list[Any] = []
        ad.vmap(lambda y: (inner.append(x * y), y)[1])(np.ones(4))
        return x + 0 * inner[0]

    with pytest.raises(TypeError, match="has returned"):
        ad.vmap(outer)(XS)


def test_vmap_batched_value_as_dict_key_raises() -> None:
    """Python would look for one number, and go by finding none."""
    lookups: list[Any] = [
        lambda x: {0: 1.0, 1: 2.0}.get(np.argmax(x), 5.0) * x,
        lambda x: x if np.argmax(x) in {0, 1} else -x,
        lambda x: {x[0]: x}[x[0]],
    ]
    for f in lookups:
        with pytest.raises(TypeError, match=r"hash\(\)"):
            ad.vmap(f)(np.ones((3, 2)))


def test_vmap_compares_values_with_none() -> None:
    np.testing.assert_array_equal(ad.vmap(lambda x: x == None)(XS), [False] * 3)  # noqa: E711
    np.testing.assert_array_equal(ad.vmap(lambda x: x != None)(XS), [True] * 3)  # noqa: E711


def test_vmap_batched_repeat_counts_raise() -> None:
    with pytest.raises(TypeError, match="different shapes"):
        ad.vmap(lambda x: np.tile(x, np.argmax(x) + 1))(np.array([[1.0, 0.0], [0.0, 1.0]]))
