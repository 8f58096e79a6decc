"""Derivatives of ``scipy.fft``, and which implementation its functions dispatch to."""

from __future__ import annotations

import pickle
import threading
from functools import partial
from typing import Any

import numpy as np
import pytest
import scipy.fft

import autodiff as ad
import compgraph as cg
from compgraph.interception import enable_code_patches, python_implementation
from tests.support.arguments import complexes, real
from tests.support.scipy_checks import Rows, functions

NORMS = (None, "ortho", "forward")
ONE = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
SEVERAL = ("fft2", "ifft2", "rfft2", "irfft2", "hfft2", "ihfft2", "fftn", "ifftn", "rfftn", "irfftn", "hfftn", "ihfftn")
REAL_ONLY = ("rfft", "ihfft", "rfft2", "ihfft2", "rfftn", "ihfftn")
COSINES = ("dct", "idct", "dst", "idst")


def numbers(name: str, *shape: int) -> Any:
    return real(*shape) if name in REAL_ONLY else complexes(*shape)


def one_axis_rows(name: str) -> list[tuple[Any, ...]]:
    """Along one axis."""
    function = getattr(scipy.fft, name)
    rows: list[tuple[Any, ...]] = [(f"norm {norm}", partial(function, norm=norm), numbers(name, 5)) for norm in NORMS]
    rows += [("real", function, real(6)), ("even", partial(function, n=6), numbers(name, 4))]
    rows += [("cut", partial(function, n=3), numbers(name, 5)), ("axis", partial(function, axis=0), numbers(name, 3, 2))]
    return [*rows, ("padded, axis, workers", partial(function, n=7, axis=-2, workers=2), numbers(name, 3, 2))]


def several_axes_rows(name: str) -> list[tuple[Any, ...]]:
    """Along several axes."""
    function = getattr(scipy.fft, name)
    rows: list[tuple[Any, ...]] = [(f"norm {norm}", partial(function, norm=norm), numbers(name, 3, 4)) for norm in NORMS]
    rows += [("real", function, real(2, 3)), ("lengths", partial(function, s=(5, 2)), numbers(name, 3, 4))]
    return [*rows, ("axes", partial(function, s=(3, 5), axes=(2, 0)), numbers(name, 4, 2, 3))]


def trigonometric(name: str, kind: int) -> list[tuple[Any, ...]]:
    one, several = partial(getattr(scipy.fft, name), type=kind), partial(getattr(scipy.fft, f"{name}n"), type=kind)
    rows: list[tuple[Any, ...]] = [
        (f"{kind}, norm {norm}, {flag}", partial(one, norm=norm, orthogonalize=flag), real(5))
        for norm in NORMS
        for flag in (None, True, False)
    ]
    rows += [(f"{kind}, complex", one, complexes(4)), (f"{kind}, axis", partial(one, n=5, axis=0), real(3, 2))]
    rows += [(f"{kind}, several", several, real(3, 4)), (f"{kind}, two elements", one, real(2))]
    rows += [(f"{kind}, one element", one, real(1))] if kind != 1 or "s" in name else []
    return [*rows, (f"{kind}, lengths", partial(several, s=(5, 2), axes=(2, 0), norm="forward"), real(3, 2, 2))]


CASES: dict[str, list[tuple[Any, ...]]] = {
    **{name: one_axis_rows(name) for name in ONE},
    **{name: several_axes_rows(name) for name in SEVERAL},
    **{f"{name} {kind}": trigonometric(name, kind) for name in COSINES for kind in (1, 2, 3, 4)},
    **{
        name: [
            ("vector", getattr(scipy.fft, name), real(5)),
            ("complex, axes", partial(getattr(scipy.fft, name), axes=(0, 2)), complexes(2, 2, 3)),
            ("one axis", partial(getattr(scipy.fft, name), axes=1), real(2, 4)),
        ]
        for name in ("fftshift", "ifftshift")
    },
    **{
        name: [
            ("odd", partial(hankel, dln=0.1, mu=0.5), real(5)),
            ("even, biased", partial(hankel, dln=0.2, mu=1.0, offset=0.3, bias=0.2), real(2, 6)),
        ]
        for name, hankel in (("fht", scipy.fft.fht), ("ifht", scipy.fft.ifht))
    },
}


@pytest.mark.parametrize("rows", functions(CASES))
def test_scipy_fft_derivatives(rows: Rows) -> None:
    rows.check(jacobians=True)


def test_scipy_fft_lowpass_program() -> None:
    signal = real(32)

    def energy(gain: Any, x: Any) -> Any:
        lowpass = scipy.fft.irfft(scipy.fft.rfft(gain * x)[:5], 32)
        return np.sum(lowpass**2) + np.sum(scipy.fft.dct(x, norm="ortho") ** 2)

    gain, x = ad.grad(energy, (0, 1))(1.5, signal)
    lowpassed = np.fft.irfft(np.fft.rfft(signal)[:5], 32)
    np.testing.assert_allclose(gain, 2 * 1.5 * np.sum(lowpassed**2))
    np.testing.assert_allclose(x, 2 * 1.5**2 * lowpassed + 2 * signal, atol=1e-12)


def test_scipy_fft_in_other_threads() -> None:
    gradients: list[Any] = []
    thread = threading.Thread(target=lambda: gradients.append(ad.grad(lambda x: np.sum(scipy.fft.dct(x) ** 2))(np.ones(3))))
    thread.start()
    thread.join()
    np.testing.assert_allclose(gradients[0], ad.grad(lambda x: np.sum(scipy.fft.dct(x) ** 2))(np.ones(3)))


def test_scipy_fft_of_lists_and_named_arguments() -> None:
    def f(x: Any) -> Any:
        return np.sum(np.abs(scipy.fft.fft(x=[x, 2 * x, 1.0], norm="ortho")) ** 2)

    assert ad.grad(f)(3.0) == pytest.approx(2 * 5 * 3.0)


def test_scipy_fft_records_public_function() -> None:
    node = scipy.fft.fft(cg.variable(np.ones(3)))
    assert node.opname == "scipy_fft_fft"
    assert pickle.loads(pickle.dumps(node)).function is scipy.fft.fft
    assert scipy.fft.fft(np.ones(3)).__class__ is np.ndarray


def test_scipy_fft_user_backend_is_called() -> None:
    class Own:
        __ua_domain__ = "numpy.scipy.fft"

        @staticmethod
        def __ua_function__(method: Any, args: Any, kwargs: Any) -> Any:
            return "own"

    with scipy.fft.set_backend(Own):
        assert scipy.fft.fft([1.0]) == "own"
    with scipy.fft.set_backend("scipy"):
        assert ad.grad(lambda x: np.sum(scipy.fft.idct(x)))(np.ones(3)).shape == (3,)


def test_scipy_fft_without_code_patches_gives_arrays() -> None:
    function = python_implementation(scipy.fft.fft)
    exchanged = function.__code__
    try:
        enable_code_patches(False)
        assert function.__code__ is not exchanged
        np.testing.assert_array_equal(scipy.fft.fft([1.0, 2.0]), [3.0, -1.0])
    finally:
        enable_code_patches(True)
    assert ad.grad(lambda x: np.real(scipy.fft.fft(x)[0]))(np.ones(2)).tolist() == [1.0, 1.0]


def test_scipy_fft_length_given_as_node_raises() -> None:
    with pytest.raises(TypeError, match="mu= cannot be a node"):
        ad.grad(lambda mu: np.sum(scipy.fft.fht(np.ones(4), 0.1, mu)))(0.5)
    with pytest.raises(TypeError, match=r"scipy\.fft\.fftfreq"):
        ad.grad(lambda d: np.sum(scipy.fft.fftfreq(4, d)))(0.5)
