"""Replays of a graph with arrays in a memory layout different from the recorded one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import compgraph as cg
from autodiff.reverse import gradients
from compgraph import GuardError
from tests.support.for_each import for_each, sampled

W = np.arange(1.0, 13.0)


def write_through_view(view: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A program that writes into what may be a view, and reads both."""

    def program(x: Any) -> Any:
        y = x * 1
        window = view(y)
        window[0] = 7.0
        return np.sum(y * W.reshape(3, 4)) + np.sum(np.sin(window))

    return program


def write_without_read(view: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The same if the array with writes is not read later, or was created before a write into its source."""

    def program(x: Any) -> Any:
        y, z = x * 1, x * 2
        view(y)[0] = 7.0
        window = view(z)
        z[0] = 5.0
        return np.sum(y * W.reshape(3, 4)) * np.sum(np.ravel(window) ** 2)

    return program


def fill_like(make: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def program(x: Any) -> Any:
        array = make(x)
        array[...] = x
        return array.ravel("K") * W

    return program


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "ravel K": lambda x: np.ravel(x, order="K") * W,
    "ravel A": lambda x: x.ravel("A") * W,
    "flatten A": lambda x: x.flatten("A") * W,
    "flatten K of a result": lambda x: (x * 2).flatten("K") * W,
    "reshape A": lambda x: np.reshape(x, (2, 6), order="A") * W.reshape(2, 6),
    "reshape F": lambda x: x.reshape((2, 6), order="F") * W.reshape(2, 6),
    "ravel C": lambda x: x.ravel() * W,
    "copy K": lambda x: np.copy(x, order="K").ravel("K") * W,
    "copy A": lambda x: x.copy("A").ravel("A") * W,
    "transposed": lambda x: x.T.ravel("K") * W,
    "stacked": lambda x: np.stack([x, x]).ravel("K")[:12] * W,
    "astype": lambda x: x.astype(float).ravel("K") * W,
    "array K": lambda x: cg.array(x, order="K").ravel("K") * W,
    "empty_like": fill_like(np.empty_like),
    "zeros_like A": fill_like(lambda x: np.zeros_like(x, order="A")),
    "ones_like F": fill_like(lambda x: np.ones_like(x, order="F")),
    "strides": lambda x: x * (2 if x.strides[0] > x.strides[1] else 3),
    "flags": lambda x: x * (2 if x.flags.c_contiguous else 3),
    "flat": lambda x: x.flat[2:5] * 2,
    **{
        f"{how.__name__} {name}": how(view)
        for how in (write_through_view, write_without_read)
        for name, view in {
            "reshape": lambda y: y.reshape(-1),
            "reshape of transposed": lambda y: y.T.reshape(-1),
            "ravel": np.ravel,
            "rows": lambda y: y.reshape(2, 6)[1],
            "ascontiguousarray": lambda y: cg.ascontiguousarray(y),
            "asfortranarray": lambda y: cg.asfortranarray(y),
            "array": lambda y: cg.array(y, copy=None, order="F"),
            "require": lambda y: cg.require(y, requirements="C"),
        }.items()
    },
}


def layouts() -> dict[str, np.ndarray[Any, Any]]:
    base = np.random.default_rng(0).normal(size=(3, 4))
    return {
        "C": base,
        "F": np.asfortranarray(base),
        "strided": np.repeat(np.repeat(base, 2, 0), 2, 1)[::2, ::2],
        "reversed": base[::-1, ::-1].copy()[::-1, ::-1],
        "F, reversed": np.asfortranarray(base[::-1])[::-1],
    }


def compute_view(program: Callable[[Any], Any], array: np.ndarray[Any, Any]) -> tuple[Any, list[Any]]:
    x = cg.variable(array, copy=False)
    out = program(x)
    total = np.sum(np.ravel(out) * np.arange(1.0, out.size + 1))
    return x, [out, *gradients(total, [x])]


@sampled
@for_each("name", PROGRAMS)
@for_each("options", [{}, {"fuse": True, "simplify": False}])
def test_replay_with_other_layout_matches_eager_or_raises(name: str, options: dict[str, Any]) -> None:
    for recorded in layouts().values():
        x, nodes = compute_view(PROGRAMS[name], recorded)
        executor = cg.Executor(nodes, **options)
        for fed in layouts().values():
            _, eager = compute_view(PROGRAMS[name], fed)
            for _ in range(2):
                try:
                    outputs = executor.run({x: fed})
                except GuardError:
                    if fed.strides == recorded.strides:
                        raise
                    continue
                for a, b in zip(outputs, eager, strict=True):
                    np.testing.assert_allclose(a, b.value, rtol=1e-13)
