"""Users' primitives of HIPS/autograd; the expected values are written down."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import signal, special

from autodiff.compat.hips import arrays, gamma, vspaces
from autodiff.compat.hips.boxes import ArrayBox, DictBox, SequenceBox, getval, isbox
from autodiff.compat.hips.operators import grad, hessian, jacobian, make_jvp, make_vjp
from autodiff.compat.hips.primitives import (
    JVPNode,
    VJPNode,
    def_linear,
    defjvp,
    defjvp_argnums,
    defvjp,
    defvjp_argnum,
    defvjp_argnums,
    notrace_primitive,
    primitive,
    register_notrace,
)

X = np.array([0.5, -1.0, 2.0])


def times() -> Any:
    @primitive
    def times(x: Any, y: Any, k: float = 1.0) -> Any:
        assert not isinstance(x, ArrayBox)
        assert not isinstance(y, ArrayBox)
        return x * y * k

    return times


def test_primitive_receives_plain_arguments() -> None:
    mul = times()
    defvjp(mul, lambda ans, x, y, k=1.0: lambda g: g * y * k, lambda ans, x, y, k=1.0: lambda g: g * x * k)
    assert mul(2.0, 3.0, k=2.0) == 12.0
    assert grad(mul, (0, 1))(2.0, 3.0, k=5.0) == (15.0, 10.0)
    assert grad(lambda x: mul(x, x))(3.0) == 6.0
    assert hessian(lambda x: mul(x[0], x[1] ** 2))(np.array([1.0, 2.0])).tolist() == [[0.0, 4.0], [4.0, 2.0]]
    assert jacobian(lambda x: mul(x, x[::-1]))(X).tolist() == [[2.0, 0.0, 0.5], [0.0, -2.0, 0.0], [2.0, 0.0, 0.5]]
    assert mul._is_autograd_primitive
    assert mul.fun(1.0, 2.0) == 2.0


def test_primitive_without_vjp_raises() -> None:
    with pytest.raises(NotImplementedError, match=r"VJP of times wrt argnums \(0,\) not defined"):
        grad(times())(2.0, 3.0)
    mul = times()
    defvjp(mul, lambda ans, x, y: lambda g: g * y)
    assert grad(mul)(2.0, 3.0) == 3.0
    with pytest.raises(NotImplementedError, match="VJP of times wrt argnum 1 not defined"):
        grad(mul, 1)(2.0, 3.0)
    defvjp(mul, None, lambda ans, x, y: lambda g: g * x)
    assert grad(mul, (0, 1))(2.0, 3.0) == (0.0, 2.0)


def test_primitive_forward_mode_uses_jvp_or_transpose() -> None:
    mul = times()
    defvjp_argnum(mul, lambda argnum, ans, args, kwargs: lambda g: g * args[1 - argnum])
    assert make_jvp(lambda x: mul(x, x))(3.0)(1.0) == (9.0, 6.0)
    defjvp(mul, lambda g, ans, x, y: 100 * g, None)
    assert make_jvp(lambda x: mul(x, x))(3.0)(1.0) == (9.0, 100.0)
    defjvp(mul, "same", "same")
    assert make_jvp(mul, (0, 1))(X, 2.0)((X, 1.0))[1].tolist() == (3 * X).tolist()
    def_linear(mul)
    assert make_jvp(lambda x: mul(x, x))(3.0)(1.0) == (9.0, 6.0)
    defjvp_argnums(mul, lambda argnums, gs, ans, args, kwargs: sum(gs) * 7)
    assert make_jvp(lambda x: mul(x, 2.0))(3.0)(1.0)[1] == 7.0


def test_primitive_vjp_leaving_graph_has_no_forward_mode() -> None:
    """In reverse mode the numbers of cotangents are theirs; a transpose of such a VJP would be zero."""
    square: Any = primitive(lambda x: x**2)
    defvjp(square, lambda ans, x: lambda g: getval(g) * 2 * x)
    assert jacobian(square)(X).tolist() == np.diag(2 * X).tolist()
    with pytest.raises(NotImplementedError, match="cannot be transposed"):
        make_jvp(square)(3.0)(1.0)
    defvjp(square, lambda ans, x: lambda g: np.sqrt(g**2) * 2 * x)
    with pytest.raises(NotImplementedError, match="cannot be transposed"):
        make_jvp(square)(X)(X)


def test_hessian_of_primitive_derivative() -> None:
    """As in surpyval: the derivative of the derivative takes the numbers of its cotangent."""
    cube, slope = primitive(lambda x: x**3), primitive(lambda x: 3 * x**2)
    defvjp(cube, lambda ans, x: lambda g: g * slope(x))
    defvjp(slope, lambda ans, x: lambda g: getval(g) * 6 * getval(x))
    assert hessian(cube)(2.0) == 12.0
    assert hessian(lambda x: np.sum(cube(x) * 2))(X).tolist() == np.diag(12 * X).tolist()
    assert jacobian(grad(lambda x: np.sum(cube(x))))(X).tolist() == np.diag(6 * X).tolist()


def test_primitive_arguments_and_results_nest() -> None:
    @primitive
    def split(p: Any, kind: str) -> Any:
        assert kind == "first"
        return {"u": p["a"] * 2, "v": (p["b"][0],)}

    defvjp(split, lambda ans, p, kind: lambda g: {"a": g["u"] * 2, "b": [g["v"][0]]})

    def f(p: Any) -> Any:
        result = split(p, "first")
        return np.sum(result["u"]) * result["v"][0]

    assert grad(f)({"a": 3.0, "b": [4.0]}) == {"a": 8.0, "b": [6.0]}
    assert grad(lambda p: split(p, "first")["u"])({"a": 3.0, "b": [4.0]}) == {"a": 2.0, "b": [0.0]}
    assert make_jvp(f)({"a": 3.0, "b": [4.0]})({"a": 1.0, "b": [1.0]})[1] == 14.0


def test_defvjp_accepts_several_vjps() -> None:
    calls = []

    def maker(argnums: Any, ans: Any, args: Any, kwargs: Any) -> Any:
        calls.append(argnums)
        return lambda g: tuple(g * args[1 - k] for k in argnums)

    mul = times()
    defvjp_argnums(mul, maker)
    assert grad(mul, (0, 1))(2.0, 3.0) == (3.0, 2.0)
    assert calls == [(0, 1)]
    assert grad(lambda x: mul(2.0, x))(3.0) == 2.0
    assert calls[-1] == (1,)
    defvjp_argnums(mul, lambda argnums, ans, args, kwargs: lambda g: ())
    with pytest.raises(ValueError, match="returned 0 cotangents"):
        grad(mul)(2.0, 3.0)


def test_primitive_receives_plain_masks() -> None:
    @primitive
    def pick(mask: Any, x: Any) -> Any:
        assert isinstance(mask, np.ndarray)
        assert not isbox(mask)
        return x[mask]

    @notrace_primitive
    def scatter(mask: Any, g: Any) -> Any:
        out = np.zeros(mask.shape)
        out[mask] = g
        return out

    defvjp(pick, None, lambda ans, mask, x: lambda g: scatter(mask, g))
    assert grad(lambda x: np.sum(pick(x > 0, x) ** 2))(X).tolist() == [1.0, 0.0, 4.0]


def test_primitive_accepts_sparse_cotangents() -> None:
    @primitive
    def first(x: Any) -> Any:
        return x[0]

    def add(g: Any) -> Any:
        def mut_add(total: Any) -> Any:
            total[0] += g
            return total

        return mut_add

    defvjp(first, lambda ans, x: lambda g: vspaces.SparseObject(vspaces.vspace(x), add(g)))
    assert grad(lambda x: first(x) ** 2 + x[1])(X).tolist() == [1.0, 1.0, 0.0]


def test_defvjp_for_numpy_functions_has_no_effect() -> None:
    defvjp(np.sin, lambda ans, x: lambda g: g * 1000)
    defjvp(np.sin, lambda g, ans, x: g * 1000)
    assert grad(np.sin)(0.0) == 1.0
    assert make_jvp(np.sin)(0.0)(1.0) == (0.0, 1.0)


def test_notrace_primitive_has_zero_derivative() -> None:
    largest = notrace_primitive(np.max)
    assert grad(lambda x: np.sum(x) * largest(x))(X).tolist() == [2.0, 2.0, 2.0]
    count = primitive(lambda x: np.sum(x > 0))
    register_notrace(VJPNode, count)
    register_notrace(JVPNode, count)
    assert grad(lambda x: np.sum(x) * count(x))(X).tolist() == [2.0, 2.0, 2.0]


def test_primitive_returning_no_array_raises() -> None:
    with pytest.raises(TypeError, match="returned an array of dtype"):
        grad(primitive(lambda x: "text"))(2.0)


def test_deprecated_methods_define_derivatives() -> None:
    cube: Any = primitive(lambda x, y: x**3 * y)
    with pytest.warns(DeprecationWarning, match="defvjp"):
        cube.defvjp(lambda g, ans, vs, gvs, x, y: g * 3 * x**2 * y)
    with pytest.warns(DeprecationWarning, match="defvjp"):
        cube.defvjp(lambda g, ans, vs, gvs, x, y: g * x**3, argnum=1)
    assert grad(cube, (0, 1))(2.0, 5.0) == (60.0, 8.0)
    with pytest.warns(DeprecationWarning, match="defgrad"):
        cube.defgrad(lambda ans, x, y: lambda g: g)
    assert grad(cube)(2.0, 5.0) == 1.0
    with pytest.warns(DeprecationWarning, match="defvjp_is_zero"):
        cube.defvjp_is_zero((0, 1))
    assert grad(cube)(2.0, 5.0) == 0.0


def test_isbox_recognizes_tracers_in_containers() -> None:
    def f(x: Any) -> Any:
        assert isinstance({"a": x}, DictBox)
        assert isinstance([x], SequenceBox)
        assert not isinstance([1.0], SequenceBox)
        assert not isinstance(x, (DictBox, SequenceBox))
        return x * getval(x)

    assert grad(f)(3.0) == 3.0
    with pytest.raises(TypeError, match="cannot be instantiated"):
        ArrayBox(1.0)


def test_unbroadcast_sums_to_shape() -> None:
    g = np.ones((2, 3))
    assert arrays.unbroadcast_f(np.ones((2, 1)), lambda g: 2 * g)(g).tolist() == [[6.0], [6.0]]
    assert arrays.unbroadcast_f(1.0, lambda g: g)(g) == 6.0
    assert arrays.unbroadcast(1j * g, arrays.metadata(np.ones(3))).tolist() == [0.0, 0.0, 0.0]
    assert arrays.match_complex(1.0, 2 + 1j) == 2.0
    assert np.iscomplexobj(arrays.match_complex(1j, 2.0))
    assert arrays.replace_zero(np.array([0.0, 2.0]), 5.0).tolist() == [5.0, 2.0]
    scaled = primitive(lambda x, y: x * y)
    defvjp(scaled, lambda ans, x, y: arrays.unbroadcast_f(x, lambda g: g * y), lambda ans, x, y: lambda g: g * x)
    assert grad(lambda x: np.sum(scaled(x, X)))(2.0) == X.sum()


@pytest.mark.parametrize("mode", ["full", "valid", "same"])
def test_convolve_agrees_with_scipy(mode: Any) -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(5, 6)), rng.normal(size=(2, 3))
    np.testing.assert_allclose(arrays.convolve(a, b, mode=mode), signal.convolve(a, b, mode=mode))
    np.testing.assert_allclose(arrays.convolve(b, a, mode=mode), signal.convolve(b, a, mode=mode))
    images, kernels = rng.normal(size=(2, 4, 6)), rng.normal(size=(4, 3, 3))
    result = arrays.convolve(images, kernels, axes=([2], [1]), dot_axes=([1], [0]), mode=mode)
    expected = [[sum(signal.convolve(i[c], kernels[c, :, o], mode) for c in range(4)) for o in range(3)] for i in images]
    np.testing.assert_allclose(result, expected)
    product = arrays.convolve(images, kernels, axes=([], []), dot_axes=([1], [0]), mode=mode)
    np.testing.assert_allclose(product, np.tensordot(images, kernels, ([1], [0])))
    loss = lambda k: np.sum(np.sin(arrays.convolve(a, k, mode=mode)))  # noqa: E731
    direction = rng.normal(size=b.shape)
    slope = (loss(b + 1e-6 * direction) - loss(b - 1e-6 * direction)) / 2e-6
    assert np.sum(grad(loss)(b) * direction) == pytest.approx(slope, rel=1e-6)


def test_convolve_raises() -> None:
    with pytest.raises(ValueError, match="mode is"):
        arrays.convolve(X, X, mode="half")
    with pytest.raises(ValueError, match="the larger one along all axes"):
        arrays.convolve(np.ones((2, 3)), np.ones((3, 2)), mode="valid")


def test_gammainc_logarithms_have_derivatives() -> None:
    for f, of, point in [
        (gamma.gammaincln, special.gammainc, (2.0, 1.5)),
        (gamma.gammainccln, special.gammaincc, (2.0, 1.5)),
        (gamma.betaincln, special.betainc, (2.0, 3.0, 0.4)),
    ]:
        assert f(*point) == pytest.approx(np.log(of(*point)))
        for k in range(len(point)):
            above, below = ([x + h * (j == k) for j, x in enumerate(point)] for h in (1e-6, -1e-6))
            slope = (np.log(of(*above)) - np.log(of(*below))) / 2e-6
            assert grad(f, k)(*point) == pytest.approx(slope, rel=1e-6)
    assert gamma.gammainccln(2.0, 1000.0) == np.log(1e-35)
    pull, _ = make_vjp(lambda x: gamma.gammaincln(2.0, x))(np.array([1e-20, 1.0]))
    assert np.all(pull(np.ones(2)) > 0)
