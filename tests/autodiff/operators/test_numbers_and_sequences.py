"""Scalars, 0-d arrays and repeated sequences inside operators, as in NumPy, in every mode."""

import numpy as np

import autodiff as ad
from tests.support.for_each import for_each

POINT = np.array([2.0, 3.0])


def rebinds_an_alias(p):
    x = p[0] * 1
    y = x
    y += 1
    return x * y


def adds_to_a_copy(p):
    q = np.array(p[0])
    r = q
    q += 1
    return r * r * p[1]


def fills_a_copy(p):
    q = np.array(p[0])
    q[...] = p[1] * p[0]
    return q * q


def writes_into_a_view_of_one_element(p):
    q = p[0, ...]
    q *= p[1]
    return p[0] * p[0]


def writes_into_zeros_like_a_number(p):
    q = np.zeros_like(p[0])
    r = q
    q += p[1]
    return r * p[0]


def collects_one_array_again_and_again(p):
    total, each = np.asarray(p[0]), []
    for _ in range(3):
        total *= p[1]
        each.append(total)
    return sum(each)


def writes_out_into_where(p):
    q = np.where(p[0] > 0, p[0], p[1])
    np.add(q, p[1], out=q)
    return q * q


def writes_into_full_like(p):
    q = np.full_like(p[0], p[1])
    r = q
    q += p[0]
    return r * r


PROGRAMS = [
    rebinds_an_alias,
    adds_to_a_copy,
    fills_a_copy,
    writes_into_a_view_of_one_element,
    writes_into_zeros_like_a_number,
    collects_one_array_again_and_again,
    writes_out_into_where,
    writes_into_full_like,
]


def differences(f, p):
    """Central differences of a plain function."""
    steps = np.eye(p.size) * 1e-6
    return np.array([(f(p + h) - f(p - h)) / 2e-6 for h in steps])


@for_each("f", PROGRAMS, ids=lambda f: f.__name__)
def test_operators_match_numpy_on_scalars(f):
    value, slopes = f(POINT.copy()), differences(f, POINT)
    primal, gradient = ad.value_and_grad(f)(POINT)
    pushed, tangent = ad.jvp(f, (POINT,), (np.array([1.0, -2.0]),))
    assert (primal, pushed) == (value, value)
    np.testing.assert_allclose(gradient, slopes, rtol=1e-6)
    np.testing.assert_allclose(tangent, slopes @ [1, -2], rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(ad.vmap(f)(np.stack([POINT, POINT + 1])), [value, f(POINT + 1)])
    np.testing.assert_allclose(ad.vmap(ad.grad(f))(np.stack([POINT])), [slopes], rtol=1e-6)


@for_each("x", [2.0, np.float64(2.0), np.float32(2.0), np.complex128(2.0)])
def test_scalar_argument_is_rebound_in_place(x):
    def f(x):
        y = x
        y += 1
        return np.real(x * y)

    assert ad.value_and_grad(f)(x) == (6, 5)
    assert ad.jvp(f, (x,), (1.0,)) == (6, 5)
    np.testing.assert_array_equal(ad.vmap(f)(np.array([x])), [6])
    np.testing.assert_array_equal(ad.vmap(ad.grad(f))(np.array([x])), [5])


@for_each("sequence", [list, tuple])
def test_sequence_times_integer_node_repeats(sequence):
    def f(p):
        n = np.argmax(p) + 1
        row = sequence([p[0]]) * n + n * sequence([p[1]])
        assert type(row) is sequence
        assert (n * "ab", b"ab" * n, [None] * n) == ("abab", b"abab", [None, None])
        return sum(row) * len(row)

    np.testing.assert_array_equal(ad.grad(f)(POINT), [8, 8])
    assert ad.jvp(f, (POINT,), (np.array([1.0, 0.0]),)) == (40, 8)
