"""Compile time and run time of scientific programs with their gradients, as people write them: loops, slices and writes.

    python scientific_programs.py [--only NAME ...] [--jax] [--report]

They are measured as those of `gradient_suite`. Those that `jax_programs` has run with JAX, too.
"""

from __future__ import annotations

import os

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1", NPROC="1")

from collections.abc import Callable
from typing import Any

import numpy as np
from gradient_suite import Program, print_table
from scipy.special import log_softmax, logsumexp
from scipy.stats import norm

rng = np.random.default_rng(0)


def positive_definite(n: int) -> Any:
    """Return a well-conditioned symmetric matrix."""
    a = rng.random((n, n)) / n + 2 * np.eye(n)
    return a @ a.T


def jacobi(n: int, steps: int) -> Program:
    """Relaxation in one dimension with two buffers."""

    def f(a: Any) -> Any:
        a, b = a.copy(), np.zeros_like(a)
        for _ in range(steps):
            b[1:-1] = (a[:-2] + a[1:-1] + a[2:]) / 3
            a[1:-1] = (b[:-2] + b[1:-1] + b[2:]) / 3
        return np.sum(a * a)

    return Program(f, (rng.random(n),))


def heat(n: int, steps: int) -> Program:
    """The heat equation in three dimensions with two buffers."""

    def step(u: Any, v: Any) -> None:
        center = u[1:-1, 1:-1, 1:-1]
        along_x = u[2:, 1:-1, 1:-1] - 2 * center + u[:-2, 1:-1, 1:-1]
        along_y = u[1:-1, 2:, 1:-1] - 2 * center + u[1:-1, :-2, 1:-1]
        along_z = u[1:-1, 1:-1, 2:] - 2 * center + u[1:-1, 1:-1, :-2]
        v[1:-1, 1:-1, 1:-1] = center + 0.125 * (along_x + along_y + along_z)

    def f(u: Any) -> Any:
        u = u.copy()
        v = u.copy()
        for _ in range(steps):
            step(u, v)
            step(v, u)
        return np.sum(u * u)

    return Program(f, (rng.random((n, n, n)),))


def alternating_directions(n: int, steps: int) -> Program:
    """Alternating-direction implicit diffusion: tridiagonal systems of all rows, then of all columns."""
    ratio = 0.4

    def sweep(u: Any) -> Any:
        p, q, v = np.zeros((n, n)), np.zeros((n, n)), np.zeros((n, n))
        for j in range(1, n - 1):
            scale = 1 / (1 + 2 * ratio - ratio * p[1:-1, j - 1])
            p[1:-1, j] = ratio * scale
            right = ratio * u[j, :-2] + (1 - 2 * ratio) * u[j, 1:-1] + ratio * u[j, 2:]
            q[1:-1, j] = (right + ratio * q[1:-1, j - 1]) * scale
        for j in range(n - 2, 0, -1):
            v[1:-1, j] = p[1:-1, j] * v[1:-1, j + 1] + q[1:-1, j]
        return v

    def f(u: Any) -> Any:
        for _ in range(2 * steps):
            u = sweep(u)
        return np.sum(u * u)

    return Program(f, (rng.random((n, n)),))


def triangular_solve(n: int) -> Program:
    """Forward substitution by rows."""

    def f(a: Any, b: Any) -> Any:
        x = np.zeros(n)
        for i in range(n):
            x[i] = (b[i] - a[i, :i] @ x[:i]) / a[i, i]
        return np.sum(x * x)

    return Program(f, (positive_definite(n), rng.random(n)))


def cholesky(n: int) -> Program:
    """The Cholesky-Banachiewicz factorization."""

    def f(a: Any) -> Any:
        a = a.copy()
        for i in range(n):
            for j in range(i):
                a[i, j] = (a[i, j] - a[i, :j] @ a[j, :j]) / a[j, j]
            a[i, i] = np.sqrt(a[i, i] - a[i, :i] @ a[i, :i])
        return np.sum(np.tril(a) ** 2)

    return Program(f, (positive_definite(n),))


def lu(n: int) -> Program:
    """Doolittle's LU factorization without pivoting."""

    def f(a: Any) -> Any:
        a = a.copy()
        for i in range(n):
            for j in range(i):
                a[i, j] = (a[i, j] - a[i, :j] @ a[:j, j]) / a[j, j]
            for j in range(i, n):
                a[i, j] -= a[i, :i] @ a[:i, j]
        return np.sum(a * a)

    return Program(f, (positive_definite(n),))


def durbin(n: int) -> Program:
    """The Levinson-Durbin recursion for Toeplitz systems."""

    def f(r: Any) -> Any:
        y = np.empty_like(r)
        alpha, beta = -r[0], 1.0
        y[0] = -r[0]
        for k in range(1, n):
            beta = beta * (1 - alpha * alpha)
            alpha = -(r[k] + r[:k][::-1] @ y[:k]) / beta
            y[:k] += alpha * y[:k][::-1]
            y[k] = alpha
        return np.sum(y)

    return Program(f, (rng.random(n) * 0.5 / np.arange(1, n + 1) ** 2,))


def correlation(m: int, n: int) -> Program:
    """The correlation matrix of m variables, an entry at a time."""

    def f(data: Any) -> Any:
        data = (data - np.mean(data, 0)) / (np.std(data, 0) * np.sqrt(n))
        c = np.eye(m)
        for i in range(m - 1):
            for j in range(i + 1, m):
                c[i, j] = c[j, i] = data[:, i] @ data[:, j]
        return np.sum(c * c)

    return Program(f, (rng.random((n, m)),))


def sparse_product(rows: int, entries: int) -> Program:
    """The product of a matrix in compressed rows with a vector, by rows."""
    bounds = np.concatenate([[0], np.sort(rng.integers(0, entries, rows - 1)), [entries]])
    columns = rng.integers(0, rows, entries)

    def f(data: Any, x: Any) -> Any:
        y = np.empty(rows)
        for i in range(rows):
            part = slice(int(bounds[i]), int(bounds[i + 1]))
            y[i] = data[part] @ x[columns[part]]
        return np.sum(y * y)

    return Program(f, (rng.random(entries), rng.random(rows)))


def time_warping(n: int) -> Program:
    """Dynamic time warping."""

    def f(a: Any, b: Any) -> Any:
        d = np.full((n + 1, n + 1), 1e3)
        d[0, 0] = 0.0
        for i in range(n):
            for j in range(n):
                d[i + 1, j + 1] = (a[i] - b[j]) ** 2 + np.minimum(np.minimum(d[i, j + 1], d[i + 1, j]), d[i, j])
        return d[n, n]

    return Program(f, (rng.random(n), rng.random(n)))


def shortest_paths(n: int) -> Program:
    """The Floyd-Warshall algorithm."""

    def f(paths: Any) -> Any:
        paths = paths.copy()
        for k in range(n):
            paths[:] = np.minimum(paths, np.add.outer(paths[:, k], paths[k, :]))
        return np.sum(paths)

    return Program(f, (rng.random((n, n)) + 0.1,))


def gram_schmidt(m: int, n: int) -> Program:
    """The modified Gram-Schmidt process."""

    def f(a: Any) -> Any:
        a = a.copy()
        q, r = np.zeros((m, n)), np.zeros((n, n))
        for k in range(n):
            r[k, k] = np.sqrt(a[:, k] @ a[:, k])
            q[:, k] = a[:, k] / r[k, k]
            for j in range(k + 1, n):
                r[k, j] = q[:, k] @ a[:, j]
                a[:, j] -= q[:, k] * r[k, j]
        return np.sum(q) + np.sum(r * r)

    return Program(f, (rng.random((m, n)),))


def recurrent_network(n: int, steps: int) -> Program:
    """A recurrent neural network."""

    def f(weights: Any, bias: Any, inputs: Any) -> Any:
        h = np.zeros(n)
        for i in range(steps):
            h = np.tanh(weights @ h + bias + inputs[i])
        return np.sum(h * h)

    return Program(f, (rng.random((n, n)) / n, rng.random(n), rng.random((steps, n))))


def kalman_filter(steps: int) -> Program:
    """The likelihood of a Kalman filter with four states and two observations, as a function of noise and observations."""
    transition, observed = np.eye(4) + 0.1 * np.eye(4, k=2), np.eye(2, 4)

    def f(noise: Any, observations: Any) -> Any:
        state, covariance, total = np.zeros(4), np.eye(4), 0.0
        for row in observations:
            state, covariance = transition @ state, transition @ covariance @ transition.T + np.exp(noise) * np.eye(4)
            uncertainty, error = observed @ covariance @ observed.T + 0.1 * np.eye(2), row - observed @ state
            gain = np.linalg.solve(uncertainty, observed @ covariance).T
            total = total + 0.5 * (error @ np.linalg.solve(uncertainty, error) + np.linalg.slogdet(uncertainty)[1])
            state, covariance = state + gain @ error, covariance - gain @ observed @ covariance
        return total

    return Program(f, (np.array(-1.0), rng.standard_normal((steps, 2))))


def hidden_markov_model(n: int, steps: int) -> Program:
    """The likelihood of observations in a hidden Markov model, by the forward algorithm in logarithms."""

    def f(transitions: Any, initial: Any, means: Any, widths: Any, observed: Any) -> Any:
        log_transitions = log_softmax(transitions, axis=1)
        log_densities = norm.logpdf(observed[:, None], means, np.exp(widths))
        alpha = log_softmax(initial) + log_densities[0]
        for i in range(1, steps):
            alpha = logsumexp(alpha[:, None] + log_transitions, axis=0) + log_densities[i]
        return -logsumexp(alpha)

    arguments = (rng.normal(size=(n, n)), rng.normal(size=n), rng.normal(size=n), 0.1 * rng.normal(size=n))
    return Program(f, (*arguments, rng.normal(size=steps)))


def mandelbrot(n: int, steps: int) -> Program:
    """The iteration of a complex polynomial at a mask, and the steps after which points escape."""
    grid = np.linspace(-2, 0.5, n) + 1j * np.linspace(-1.2, 1.2, n)[:, None]

    def f(scale: Any) -> Any:
        c = scale[0] * grid.real + scale[1] * 1j * grid.imag
        z, escape = np.zeros(c.shape, dtype=complex), np.zeros(c.shape, dtype=int)
        for i in range(steps):
            is_inside = np.abs(z) < 2
            escape[is_inside] = i
            z[is_inside] = z[is_inside] ** 2 + c[is_inside]
        return np.sum(np.abs(z)) + np.sum(escape)

    return Program(f, (np.array([0.9, 0.8]),))


def fourier_transform(power: int) -> Program:
    """The norm of a Fourier transform of length ``2**power`` by Stockham's algorithm."""
    n = 2**power

    def f(signal: Any) -> Any:
        x, count = signal.reshape(n, 1), n
        for _ in range(power):
            count //= 2
            twiddles = np.exp(-1j * np.pi / count * np.arange(count))[:, None]
            upper, lower = x[:count], x[count:]
            x = np.stack([upper + lower, (upper - lower) * twiddles], axis=2).reshape(count, -1)
        return np.sum(np.abs(x) ** 3)

    return Program(f, (rng.standard_normal(n) + 1j * rng.standard_normal(n),))


def with_jax(make: Callable[..., Program], *sizes: int) -> Program:
    """Return a program of some sizes with the derivative of its version for JAX."""
    program = make(*sizes)

    def by_jax() -> Callable[..., Any]:
        import jax
        import jax_programs

        return jax.value_and_grad(getattr(jax_programs, make.__name__)(*sizes), tuple(range(len(program.arguments))))

    return program._replace(by_jax=by_jax)


PROGRAMS: dict[str, Callable[[], Program]] = {
    "jacobi 4,000 x 400": lambda: with_jax(jacobi, 4000, 400),
    "heat 25^3 x 20": lambda: with_jax(heat, 25, 20),
    "alternating directions 40 x 6": lambda: with_jax(alternating_directions, 40, 6),
    "triangular solve 400": lambda: with_jax(triangular_solve, 400),
    "Cholesky 60": lambda: with_jax(cholesky, 60),
    "LU 40": lambda: with_jax(lu, 40),
    "Durbin 120": lambda: with_jax(durbin, 120),
    "correlation 60 x 80": lambda: correlation(60, 80),
    "sparse product 400": lambda: sparse_product(400, 4000),
    "time warping 16": lambda: with_jax(time_warping, 16),
    "shortest paths 60": lambda: with_jax(shortest_paths, 60),
    "Gram-Schmidt 30 x 20": lambda: with_jax(gram_schmidt, 30, 20),
    "recurrent network 128 x 100": lambda: with_jax(recurrent_network, 128, 100),
    "Kalman filter 100": lambda: kalman_filter(100),
    "hidden Markov model 8 x 300": lambda: with_jax(hidden_markov_model, 8, 300),
    "Mandelbrot 51 x 20": lambda: mandelbrot(51, 20),
    "Fourier transform 1,024": lambda: fourier_transform(10),
}


if __name__ == "__main__":
    print_table(PROGRAMS, __doc__)
