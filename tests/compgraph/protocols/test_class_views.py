"""Subclasses of ``np.ndarray`` within differentiated functions."""

from __future__ import annotations

import copy
import ctypes
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import autodiff as ad
import compgraph as cg
from autodiff.numeric import gradient as gradient_by_differences

X = np.array([0.7, 1.3, 2.1])


class Labeled(np.ndarray):
    """An array with a label, without protocols of its own."""

    def __new__(cls, array: Any, label: str = "") -> Any:
        labeled = np.asarray(array).view(cls)
        labeled.label = label
        return labeled

    def __array_finalize__(self, source: Any) -> None:
        self.label = getattr(source, "label", None)


class Length(np.ndarray):
    """An array with a scale; sums convert to the scale of the first operand, products multiply the scales."""

    scale = 1.0

    def __new__(cls, array: Any, scale: float = 1.0) -> Any:
        length = np.array(array, dtype=float, subok=True, copy=None).view(cls)
        length.scale = scale
        return length

    def __array_finalize__(self, source: Any) -> None:
        self.scale = getattr(source, "scale", 1.0)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = None, **options: Any) -> Any:
        scales = [getattr(x, "scale", 1.0) for x in inputs]
        scale = {np.multiply: np.prod(scales), np.add: scales[0], np.sqrt: scales[0] ** 0.5}.get(ufunc, 1.0)
        factors = [s / scale if ufunc is np.add else 1.0 for s in scales]
        arrays = [
            np.asarray(x.view(np.ndarray) if isinstance(x, Length) else x) * f for x, f in zip(inputs, factors, strict=True)
        ]
        if out is not None:
            options["out"] = tuple(x.view(np.ndarray) for x in out)
        result = super().__array_ufunc__(ufunc, method, *arrays, **options)
        if result is NotImplemented or result.dtype == bool:
            return result
        converted = Length(result, float(scale)) if out is None else out[0]
        converted.scale = float(scale)
        return converted

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if function.__name__ == "concatenate":
            parts = [x.to_base() if isinstance(x, Length) else x for x in args[0]]
            return Length(super().__array_function__(function, types, (parts,), kwargs))
        return super().__array_function__(function, types, args, kwargs)

    def to_base(self) -> Any:
        return self.view(np.ndarray) * self.scale


def written_in_place(x: Any) -> Any:
    length = Length(x * 1.0, 10.0)
    length[0] = x[1] ** 2
    length += Length(x, 100.0)
    return length.to_base()


def stored(x: Any) -> Any:
    table = np.zeros((2, 3))
    table[0] = Labeled(x, "a") ** 2
    table[1] = Labeled(x, "b")[::-1]
    return np.sum(table[0] * table[1])


PLAIN = np.array([1.0, 2.0, 4.0])
PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "label": lambda x: np.sum(Labeled(x, "a") ** 2),
    "label of a product": lambda x: (Labeled(x, "a") * x).T[1:].sum(),
    "label, by index": lambda x: Labeled(x, "a")[1] * 3.0,
    "label, plain": lambda x: np.sum(Labeled(PLAIN) * x * Labeled(PLAIN)),
    "label, function": lambda x: np.linalg.norm(np.concatenate([Labeled(x), PLAIN])),
    "scale": lambda x: np.sum(Length(x, 10.0).to_base() ** 2),
    "scale of a product": lambda x: (Length(x, 10.0) * Length(x**2, 3.0)).to_base().sum(),
    "scale of a sum": lambda x: (Length(x, 10.0) + Length(x**2, 3.0)).to_base().prod(),
    "scale, plain on the left": lambda x: (Length(PLAIN, 10.0) * x).to_base().sum(),
    "scale, plain on the right": lambda x: (x * Length(PLAIN, 10.0)).to_base().sum(),
    "scale of a number": lambda x: np.sqrt(Length(x[0], 4.0) * 2.0).to_base(),
    "methods": lambda x: Length(x, 10.0).mean().view(np.ndarray) * Length(x, 10.0).reshape(3, 1).T.std().view(np.ndarray),
    "mean": lambda x: np.mean(Length(x, 10.0)).view(np.ndarray) * 2.0,
    "function with a rule": lambda x: np.concatenate([Length(x, 10.0), Length(PLAIN, 3.0)]).to_base()[1:4].prod(),
    "iteration": lambda x: sum(v**2 for v in Length(x, 10.0)),
    "items": lambda x: Length(x, 10.0).item(1) * sum(Length(x, 10.0).reshape(3, 1).tolist()[2]) * Length(x[:1]).item(),
    "read-only": lambda x: (lambda view: (view.setflags(write=False), np.sum(view.to_base()))[1])(Length(x**2, 10.0)),
    "comparison": lambda x: np.sum(Length(x, 10.0).to_base()[Length(x, 10.0).view(np.ndarray) > 1.0]),
    "stored": lambda x: stored(x),
    "view as an array": lambda x: np.sum(Length(x, 10.0).view(np.ndarray) * x.view(np.ndarray)),
    "write": lambda x: np.sum(written_in_place(x) * PLAIN),
    "copies": lambda x: np.sum(np.array(Length(x, 10.0), subok=True, copy=True).to_base() + np.asarray(Length(x, 10.0))),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_subclass_program_has_right_gradient(name: str) -> None:
    program = PROGRAMS[name]
    value, gradient = ad.value_and_grad(program)(X)
    np.testing.assert_allclose(value, program(X), rtol=1e-12)
    np.testing.assert_allclose(gradient, gradient_by_differences(program, [X])[0], rtol=1e-6, atol=1e-8)


def test_class_view_keeps_class_and_attributes() -> None:
    views = []

    def program(x: Any) -> Any:
        views.append((Labeled(x, "a") * 2.0).reshape(3, 1)[1:])
        return np.sum(x)

    ad.grad(program)(X)
    assert isinstance(views[0], Labeled)
    assert views[0].label == "a"
    assert views[0].shape == (2, 1)


def test_class_view_second_derivative_is_right() -> None:
    hessian = ad.hessian(lambda x: (Length(x, 10.0) * Length(x**2, 3.0)).to_base().sum())(X)
    np.testing.assert_allclose(hessian, np.diag(180.0 * X), rtol=1e-12)


@pytest.mark.parametrize(
    "read",
    [
        lambda view: ctypes.c_double.from_buffer(view),
        lambda view: np.ndarray.sum(np.ndarray.view(view, np.ndarray)),
        lambda view: np.ndarray.__getitem__(view, slice(None)) * 2.0,
        lambda view: np.frombuffer(view),
        lambda view: np.frombuffer(view.tobytes()),
        lambda view: np.frombuffer(view.data),
        lambda view: pickle.loads(pickle.dumps(view)),
        lambda view: copy.deepcopy(view),
        lambda view: view.__float__(),
        lambda view: float(np.ndarray.item(view, 0)),
        lambda view: np.lib.stride_tricks.as_strided(np.ndarray.view(view, np.ndarray), (1,)) + 1.0,
    ],
)
def test_reading_memory_of_class_view_raises(read: Callable[[Any], Any]) -> None:
    with pytest.raises((TypeError, ValueError)):
        ad.grad(lambda x: np.sum(x) + np.sum(read(Labeled(x))))(X)


@pytest.mark.parametrize("kind", [np.ma.MaskedArray, np.matrix, np.recarray])
def test_view_as_class_that_reads_memory_raises(kind: Any) -> None:
    with pytest.raises(TypeError, match=f"a view as {kind.__name__} is not supported"):
        ad.grad(lambda x: np.sum(x.view(kind)))(X)


def test_view_as_subclass_outside_of_operators_raises() -> None:
    with pytest.raises(TypeError, match="a view as Labeled is not supported"):
        cg.variable(X).view(Labeled)


class ByIdentity(Length):
    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if function is np.flip:  # within operators the name refers to a patch
            return Length(np.flip(args[0].to_base()))
        return super().__array_function__(function, types, args, kwargs)


def test_class_that_compares_functions_by_identity_raises() -> None:
    def program(x: Any) -> Any:
        return np.sum(np.flip(ByIdentity(x, 10.0)).view(np.ndarray))

    with pytest.raises(ad.DetachedGradientError, match=r"uses a subclass of np\.ndarray"):
        ad.grad(program)(X)


def test_result_of_another_class_raises() -> None:
    with pytest.raises(TypeError, match="returned an array of the class Length"):
        ad.grad(lambda x: Length(x, 10.0).sum())(X)
