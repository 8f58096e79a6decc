"""Complex numbers in compiled programs: values against NumPy, derivatives against eager evaluation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import autodiff as ad
import compgraph as cg
from tests.support.for_each import for_each
from tests.support.jitting import is_compiled

rng = np.random.default_rng(7)
Z = rng.standard_normal(6) + 1j * rng.standard_normal(6)
W = rng.standard_normal(6) - 1j * rng.standard_normal(6)
X = rng.standard_normal(6)
M = rng.standard_normal((4, 4)) + 1j * rng.standard_normal((4, 4))
TENSOR = rng.standard_normal((2, 4, 3)) + 1j * rng.standard_normal((2, 4, 3))


ELEMENTARY = (
    "tanh", "tan", "arctan", "arctanh", "arcsin", "arcsinh", "arccos", "arccosh", "log10", "log2", "log1p", "expm1", "exp2",
)  # fmt: skip


def filled(z: Any) -> Any:
    """Store shifted elements in a buffer that is also read."""
    y = np.zeros(6, dtype=complex)
    y[1:] = z[:-1] * 2
    y[2] += 1j
    y[1:] = y[:-1]
    y[0] = z[3].real
    return y


def parts_written(x: Any) -> Any:
    """Write through views of a buffer and of its real part."""
    y = np.zeros((3, 2), complex) + 1
    view = y[1:]
    view *= 1j * x[:4].reshape(2, 2)
    y.real[0] = x[0]
    y.imag[:, 1] = x[:3]
    return y


def rows_written(m: Any) -> Any:
    """Write into the transpose, and at integer indices."""
    y = np.empty_like(m)
    y.T[...] = m
    y[np.array([2, 0])] = m[:2] * 1j
    return y


def iterated(c: Any) -> Any:
    """Iterate a polynomial where its values are small."""
    z = np.zeros_like(c)
    for _ in range(5):
        is_small = np.abs(z) < 2
        z[is_small] = z[is_small] ** 2 + c[is_small]
    return z


# By case: the function, and its arguments.
CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "add": (np.add, (Z, W)),
    "add of real": (np.add, (Z, X)),
    "subtract from number": (lambda z: 1 - 2j - z, (Z,)),
    "multiply": (np.multiply, (Z, W)),
    "multiply by real": (np.multiply, (X, Z)),
    "multiply by imaginary unit": (lambda x: 1j * x, (X,)),
    "multiply by integers": (lambda z: np.arange(6) * z, (Z,)),
    "divide": (np.divide, (Z, W)),
    "divide by imaginary": (lambda z: z / (1j * z.imag), (Z,)),
    "divide real": (lambda z: 1 / z, (Z,)),
    "reciprocal": (np.reciprocal, (Z,)),
    "negative": (np.negative, (Z,)),
    "conjugate": (np.conjugate, (Z,)),
    "absolute": (np.abs, (Z,)),
    "angle": (np.angle, (Z,)),
    "angle in degrees": (lambda z: np.angle(z, deg=True), (Z,)),
    "square": (np.square, (Z,)),
    "power": (lambda z: z**7, (Z,)),
    "negative power": (lambda z: z**-3, (Z,)),
    "exp": (np.exp, (Z,)),
    "log": (np.log, (Z,)),
    "log on the unit circle": (lambda t: np.log(np.cos(t) + 1j * np.sin(t)), (X,)),
    "sqrt": (np.sqrt, (Z,)),
    "sqrt of negative numbers": (np.sqrt, (np.array([-4.0 + 0j, complex(-4.0, -0.0), 0j, 2.25 + 0j, 3j]),)),
    "sin": (np.sin, (Z,)),
    "cos": (np.cos, (Z,)),
    "sinh": (np.sinh, (Z,)),
    "cosh": (np.cosh, (Z,)),
    **{name: (getattr(np, name), (Z,)) for name in ELEMENTARY},
    "sign": (np.sign, (Z,)),
    "tan of large arguments": (np.tan, (30 * Z,)),
    "tanh of large arguments": (np.tanh, (30 * Z,)),
    "complex64 functions": (lambda z: np.tanh(z) + np.arctan(z) * np.arccos(z) + np.log2(z), (Z.astype(np.complex64),)),
    "fractional power": (lambda z: z**-0.75, (Z,)),
    "complex exponent": (lambda z: z ** (0.5 - 2j), (Z,)),
    "powers": (np.power, (Z, W)),
    "powers of real base": (lambda x, z: np.abs(x) ** z, (X, Z)),
    "real powers": (np.power, (Z, X)),
    "power of number": (lambda z: 2.5**z, (Z,)),
    "float_power": (np.float_power, (Z, X)),
    "float_power of number": (lambda z: np.float_power(1.5 + 0.5j, z), (Z,)),
    "float_power with complex number": (lambda x: np.float_power(x, 1.5 + 0.5j), (X,)),
    "real and imag": (lambda z: z.real * z.imag, (Z,)),
    "equal": (lambda z: np.where(z == z[::-1], z, 0), (np.array([1j, 2.0, 1j]),)),
    "isfinite": (np.isfinite, (np.array([1j, np.inf, complex(0, np.nan)]),)),
    "where": (lambda z, w: np.where(z.real > 0, z, w), (Z, W)),
    "where with number": (lambda z: np.where(z.real > 0, z, 1), (Z,)),
    "astype": (lambda x: x.astype(complex) * 1j, (X,)),
    "complex64": (lambda z: z * np.complex64(2) + z**2, (Z.astype(np.complex64),)),
    "complex64 with float64": (np.multiply, (Z.astype(np.complex64), X)),
    "number": (lambda z: z * z + 1, (np.array(1 - 2j),)),
    "empty": (lambda z: z * 2, (Z[:0],)),
    "sum": (np.sum, (M,)),
    "sum along axis": (lambda m: m.sum(0), (M,)),
    "mean": (lambda m: m.mean(1, keepdims=True), (M,)),
    "cumsum": (lambda m: np.cumsum(m, 1), (M,)),
    "trace": (np.trace, (M,)),
    "variance": (lambda m: np.var(m, axis=0, ddof=1), (M,)),
    "deviation": (np.std, (M,)),
    "norm": (np.linalg.norm, (M,)),
    "norm along axis": (lambda m: np.linalg.norm(m, axis=1, keepdims=True), (M,)),
    "Frobenius norm": (lambda m: np.linalg.norm(m, "fro"), (M,)),
    "sum of lengths": (lambda m: np.linalg.norm(m, 1, axis=-1), (M,)),
    "matmul": (np.matmul, (M, M)),
    "matmul with real": (np.matmul, (M, M.real.copy())),
    "matmul of real with complex": (np.matmul, (M.real.copy(), M)),
    "matrix times vector": (lambda m, z: m @ z[:4], (M, Z)),
    "dot": (lambda z, w: z @ w, (Z, W)),
    "vdot": (np.vdot, (Z, W)),
    "outer": (np.outer, (Z, W)),
    "einsum": (lambda m: np.einsum("ij,kj->ik", m, m.conj()), (M,)),
    "tensordot": (lambda t, m: np.tensordot(t, m, ([1], [0])), (TENSOR, M)),
    "stack of matrices": (lambda t: t @ np.swapaxes(t, 1, 2), (TENSOR,)),
    "reshape": (lambda m: m.T.reshape(2, 8)[1], (M,)),
    "transpose": (lambda m: m.T, (M,)),
    "transpose of result": (lambda m: (m * 2).T, (M,)),
    "slices": (lambda t: t[:, ::-2, 1:], (TENSOR,)),
    "gather": (lambda z: z[np.array([1, 2, 2, -1])] * z[[0, 1, 2, 3]], (Z,)),
    "take": (lambda m: np.take(m, [3, 0], axis=1), (M,)),
    "concatenate": (lambda z, x: np.concatenate([z, x, np.arange(2) + 0j]), (Z, X)),
    "stack": (lambda z, w: np.stack([z, w], 1), (Z, W)),
    "diag": (lambda m: np.diag(np.diag(m)), (M,)),
    "triangle": (np.tril, (M,)),
    "roll": (lambda z: np.roll(z, 2), (Z,)),
    "tile": (lambda z: np.tile(z, (2, 3)), (Z,)),
    "pad": (lambda z: np.pad(z, 2), (Z,)),
    "broadcast": (lambda z, x: z[:, None] + x, (Z, X)),
    "written": (filled, (Z,)),
    "parts written": (parts_written, (X,)),
    "rows written": (rows_written, (M,)),
    "iterated at a mask": (iterated, (M,)),
    "strided operand": (lambda t: t * 2, (TENSOR[:, ::2, ::-1],)),
    "Fortran operand": (lambda m: m @ m, (np.asfortranarray(M),)),
    "real array like complex": (lambda z: np.full_like(z, 2.0, dtype=float) * z.imag + np.zeros_like(z, dtype=float), (Z,)),
    "complex array like real": (lambda x: np.full_like(x, 1j, dtype=complex) * x, (X,)),
    "array like complex": (lambda z: np.full_like(z, 3) * z + np.ones_like(z), (Z,)),
    "copies": (lambda m: m.copy("F") + np.copy(m), (M,)),
}

WITHOUT_DERIVATIVE = ("isfinite", "empty", "equal", "sqrt of negative numbers")


def parts(value: Any) -> Any:
    """The real and imaginary parts; nan and infinity are compared by part."""
    return np.stack([np.real(value), np.imag(value)])


def assert_equal(actual: Any, expected: Any) -> None:
    """Compare dtypes, and values up to rounding."""
    assert np.asarray(actual).dtype == np.asarray(expected).dtype
    precision = np.finfo(np.asarray(expected).dtype).eps if np.asarray(expected).dtype.kind in "fc" else 0
    np.testing.assert_allclose(parts(actual), parts(expected), rtol=64 * precision, atol=64 * precision)


@pytest.mark.parametrize("case", CASES)
def test_complex_values_match_numpy_without_calls(case: str) -> None:
    f, args = CASES[case]
    jitted = cg.jit(f, cache=False).compile(*args)
    assert is_compiled(jitted), jitted.report()
    assert "calls NumPy" not in jitted.report(), jitted.report()
    assert_equal(jitted(*args), f(*args))
    others = [a[::-1].copy(order="K") if np.ndim(a) else a for a in args]
    assert_equal(jitted(*others), f(*others))


@pytest.mark.parametrize(
    "case", [name for name in CASES if name not in ("isfinite", "empty", "equal", "sqrt of negative numbers")]
)
def test_complex_derivatives_match_eager_evaluation(case: str) -> None:
    f, args = CASES[case]

    def loss(*args: Any) -> Any:
        out = f(*args)
        return (np.abs(out) ** 2 + np.real(out)).sum()

    differentiate = ad.value_and_grad(loss, tuple(range(len(args))))
    jitted = cg.jit(differentiate, cache=False).compile(*args)
    assert is_compiled(jitted), jitted.report()
    value, gradients = jitted(*args)
    expected, expected_gradients = differentiate(*args)
    precision = 1e-4 if any(a.dtype == np.complex64 for a in args) else 1e-11
    np.testing.assert_allclose(value, expected, rtol=precision)
    for gradient, expected_gradient in zip(gradients, expected_gradients, strict=True):
        assert gradient.dtype == expected_gradient.dtype
        np.testing.assert_allclose(gradient, expected_gradient, rtol=precision, atol=precision)


@for_each("operation", [np.multiply, np.divide, np.add])
def test_complex_special_values_match_numpy(operation: Any) -> None:
    numbers = np.array([0.0, -0.0, 1.0, -2.0, np.inf, -np.inf, np.nan])
    z = (numbers[:, None] + 1j * np.ones(7)).ravel()
    z.imag = np.tile(numbers, 7)
    with np.errstate(all="ignore"):
        jitted = cg.jit(operation, cache=False).compile(z[:, None], z)
        np.testing.assert_array_equal(parts(jitted(z[:, None], z)), parts(operation(z[:, None], z)))


def test_complex_division_by_zero_warns_as_numpy() -> None:
    divide = cg.jit(np.divide, cache=False).compile(Z, W)
    with pytest.warns(RuntimeWarning, match="divide by zero|invalid value"):
        divide(Z, np.zeros(6, complex))


def test_complex_values_around_numpy_call_are_exchanged() -> None:
    f = lambda m, z: np.linalg.inv(m * 2) @ (m + z[:4])  # noqa: E731
    jitted = cg.jit(f, cache=False).compile(M, Z)
    assert "with 1 NumPy call" in jitted.report(), jitted.report()
    assert_equal(jitted(M, Z), f(M, Z))


def test_complex_arithmetic_of_exact_programs_calls_numpy() -> None:
    jitted = cg.jit(np.multiply, exact=True, cache=False).compile(Z, W)
    assert "exact=True" in jitted.report()
    np.testing.assert_array_equal(jitted(Z, W), Z * W)


@for_each("name", [*ELEMENTARY, "exp", "log", "sqrt", "sin", "cos", "sinh", "cosh", "sign"])
@for_each("dtype", [np.complex128, np.complex64])
def test_complex_functions_at_special_points_match_numpy(name: str, dtype: Any) -> None:
    """Branch cuts with zeros of either sign, poles, small and large numbers, and numbers for which NumPy is called."""
    numbers = np.array([0.0, -0.0, 1.0, -1.0, 0.5, -2.0, 21.0, -23.0, 1e-9, 3e-3, 1e5, 720.0, 1e30, np.inf, -np.inf, np.nan])
    z = np.empty((len(numbers), len(numbers)), dtype)
    z.real, z.imag = numbers[:, None], numbers
    f = getattr(np, name)
    jitted = cg.jit(f, cache=False).compile(z[4:5, 4])
    with np.errstate(all="ignore"):
        for point in z.ravel():
            value, expected = jitted(np.array([point])), f(np.array([point]))
            assert np.array_equal(np.isnan(parts(value)), np.isnan(parts(expected))), (point, value, expected)
            error, size = 64 * np.finfo(dtype).eps, max(1.0, abs(expected[0]) if np.isfinite(expected[0]) else 1.0)
            np.testing.assert_allclose(parts(value), parts(expected), rtol=error, atol=error * size, err_msg=str(point))


def test_complex_powers_at_zero_match_numpy() -> None:
    z, exponents = np.array([0j, 0j, 0j, 0j, 2 - 1j]), np.array([2.0 + 1j, 0j, -1.0 + 0j, 1j, 0j])
    jitted = cg.jit(np.power, cache=False).compile(Z[:5], W[:5])
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(parts(jitted(z, exponents)), parts(np.power(z, exponents)))
    with pytest.warns(RuntimeWarning, match="invalid value"):
        jitted(z, exponents)


@for_each("f", [lambda z: np.rint(z), lambda z: np.sort(z), lambda z: np.prod(z)])
def test_complex_functions_without_steps_call_numpy(f: Any) -> None:
    g = lambda z: f(z * 2) + 1  # noqa: E731
    jitted = cg.jit(g, cache=False).compile(Z)
    assert "calls NumPy" in jitted.report(), jitted.report()
    assert_equal(jitted(Z), g(Z))
