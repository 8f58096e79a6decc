"""Scientific programs for JAX: those of `scientific_programs`, written for short compile times.

JAX unrolls Python loops, so these loops are `fori_loop`s and `scan`s, of which some compute with masks where the originals have
slices of growing length.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.lax import fori_loop, scan

Function = Callable[..., Any]


def jacobi(n: int, steps: int) -> Function:
    """Relaxation in one dimension with two buffers."""

    def step(_: Any, buffers: Any) -> Any:
        a, b = buffers
        b = b.at[1:-1].set((a[:-2] + a[1:-1] + a[2:]) / 3)
        return a.at[1:-1].set((b[:-2] + b[1:-1] + b[2:]) / 3), b

    return lambda a: jnp.sum(fori_loop(0, steps, step, (a, jnp.zeros_like(a)))[0] ** 2)


def heat(n: int, steps: int) -> Function:
    """The heat equation in three dimensions."""

    def half_step(u: Any, v: Any) -> Any:
        center = u[1:-1, 1:-1, 1:-1]
        along_x = u[2:, 1:-1, 1:-1] - 2 * center + u[:-2, 1:-1, 1:-1]
        along_y = u[1:-1, 2:, 1:-1] - 2 * center + u[1:-1, :-2, 1:-1]
        along_z = u[1:-1, 1:-1, 2:] - 2 * center + u[1:-1, 1:-1, :-2]
        return v.at[1:-1, 1:-1, 1:-1].set(center + 0.125 * (along_x + along_y + along_z))

    def step(_: Any, buffers: Any) -> Any:
        u, v = buffers
        v = half_step(u, v)
        return half_step(v, u), v

    return lambda u: jnp.sum(fori_loop(0, steps, step, (u, u))[0] ** 2)


def alternating_directions(n: int, steps: int) -> Function:
    """Alternating-direction implicit diffusion."""
    ratio = 0.4

    def sweep(_: Any, u: Any) -> Any:
        def forward(j: Any, pair: Any) -> Any:
            p, q = pair
            scale = 1 / (1 + 2 * ratio - ratio * p[1:-1, j - 1])
            right = ratio * u[j, :-2] + (1 - 2 * ratio) * u[j, 1:-1] + ratio * u[j, 2:]
            return p.at[1:-1, j].set(ratio * scale), q.at[1:-1, j].set((right + ratio * q[1:-1, j - 1]) * scale)

        p, q = fori_loop(1, n - 1, forward, (jnp.zeros((n, n)), jnp.zeros((n, n))))

        def backward(k: Any, v: Any) -> Any:
            j = n - 1 - k
            return v.at[1:-1, j].set(p[1:-1, j] * v[1:-1, j + 1] + q[1:-1, j])

        return fori_loop(1, n - 1, backward, jnp.zeros((n, n)))

    return lambda u: jnp.sum(fori_loop(0, 2 * steps, sweep, u) ** 2)


def triangular_solve(n: int) -> Function:
    """Forward substitution by rows; the rest of `x` is zero."""

    def f(a: Any, b: Any) -> Any:
        x = fori_loop(0, n, lambda i, x: x.at[i].set((b[i] - a[i] @ x) / a[i, i]), jnp.zeros(n))
        return jnp.sum(x * x)

    return f


def cholesky(n: int) -> Function:
    """The Cholesky-Banachiewicz factorization, with masks for rows of growing length."""
    columns = jnp.arange(n)

    def entry(number: Any, a: Any) -> Any:
        i, j = number // n, number % n
        rest = a[i, j] - jnp.sum(jnp.where(columns < j, a[i] * a[j], 0.0))
        below = rest / jnp.where(j < i, a[j, j], 1.0)
        value = jnp.where(j < i, below, jnp.sqrt(jnp.where(j == i, rest, 1.0)))
        return a.at[i, j].set(jnp.where(j <= i, value, a[i, j]))

    return lambda a: jnp.sum(jnp.tril(fori_loop(0, n * n, entry, a)) ** 2)


def lu(n: int) -> Function:
    """Doolittle's LU factorization, with masks for rows and columns of growing length."""
    indices = jnp.arange(n)

    def entry(number: Any, a: Any) -> Any:
        i, j = number // n, number % n
        rest = a[i, j] - jnp.sum(jnp.where(indices < jnp.minimum(i, j), a[i] * a[:, j], 0.0))
        return a.at[i, j].set(rest / jnp.where(j < i, a[j, j], 1.0))

    return lambda a: jnp.sum(fori_loop(0, n * n, entry, a) ** 2)


def durbin(n: int) -> Function:
    """The Levinson-Durbin recursion, with masks for vectors of growing length."""
    indices = jnp.arange(n)

    def f(r: Any) -> Any:
        def step(k: Any, state: Any) -> Any:
            y, alpha, beta = state
            beta = beta * (1 - alpha * alpha)
            is_before = indices < k
            reversed_y = jnp.where(is_before, y[jnp.clip(k - 1 - indices, 0, n - 1)], 0.0)
            alpha = -(r[k] + jnp.sum(jnp.where(is_before, r * reversed_y, 0.0))) / beta
            return (y + alpha * reversed_y).at[k].set(alpha), alpha, beta

        return jnp.sum(fori_loop(1, n, step, (jnp.zeros(n).at[0].set(-r[0]), -r[0], 1.0))[0])

    return f


def time_warping(n: int) -> Function:
    """Dynamic time warping, an entry at a time."""

    def f(a: Any, b: Any) -> Any:
        def entry(number: Any, d: Any) -> Any:
            i, j = number // n, number % n
            nearest = jnp.minimum(jnp.minimum(d[i, j + 1], d[i + 1, j]), d[i, j])
            return d.at[i + 1, j + 1].set((a[i] - b[j]) ** 2 + nearest)

        return fori_loop(0, n * n, entry, jnp.full((n + 1, n + 1), 1e3).at[0, 0].set(0.0))[n, n]

    return f


def shortest_paths(n: int) -> Function:
    """The Floyd-Warshall algorithm."""

    def step(k: Any, paths: Any) -> Any:
        return jnp.minimum(paths, paths[:, k][:, None] + paths[k, :])

    return lambda paths: jnp.sum(fori_loop(0, n, step, paths))


def gram_schmidt(m: int, n: int) -> Function:
    """The modified Gram-Schmidt process, with masks for the remaining columns."""

    def step(k: Any, state: Any) -> Any:
        a, q, r = state
        length = jnp.sqrt(a[:, k] @ a[:, k])
        direction = a[:, k] / length
        row = jnp.where(jnp.arange(n) > k, direction @ a, 0.0)
        return a - direction[:, None] * row, q.at[:, k].set(direction), r.at[k].set(row.at[k].set(length))

    def f(a: Any) -> Any:
        _, q, r = fori_loop(0, n, step, (a, jnp.zeros((m, n)), jnp.zeros((n, n))))
        return jnp.sum(q) + jnp.sum(r * r)

    return f


def recurrent_network(n: int, steps: int) -> Function:
    """A recurrent neural network."""

    def f(weights: Any, bias: Any, inputs: Any) -> Any:
        h = scan(lambda h, row: (jnp.tanh(weights @ h + bias + row), None), jnp.zeros(n), inputs)[0]
        return jnp.sum(h * h)

    return f


def hidden_markov_model(n: int, steps: int) -> Function:
    """The likelihood of observations in a hidden Markov model."""
    from jax.scipy.special import logsumexp
    from jax.scipy.stats import norm

    def f(transitions: Any, initial: Any, means: Any, widths: Any, observed: Any) -> Any:
        log_transitions = jax.nn.log_softmax(transitions, axis=1)
        log_densities = norm.logpdf(observed[:, None], means, jnp.exp(widths))

        def step(alpha: Any, row: Any) -> Any:
            return logsumexp(alpha[:, None] + log_transitions, axis=0) + row, None

        alpha = scan(step, jax.nn.log_softmax(initial) + log_densities[0], log_densities[1:])[0]
        return -logsumexp(alpha)

    return f
