"""Textbook-style programs in plain NumPy, not written for differentiation.

Each takes an array of six well-separated numbers between 0.3 and 1.7, and returns a number.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from math import cos, exp, sin, sqrt
from typing import Any

import numpy as np
from numpy import array, eye, zeros

PROGRAMS: dict[str, Any] = {}

TABLE = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.2, 5.0]])
LABELS = np.array([0, 2, 1, 0])
WEIGHTS = np.array([0.2, -0.4, 0.9, 1.1, -0.3, 0.6])
rng = np.random.default_rng(5)
NOISE = rng.normal(size=(4, 6))


def program(function: Any) -> Any:
    PROGRAMS[function.__name__] = function
    return function


# --------------------------------------------------------------------------------------- linear algebra by hand


@program
def thomas_algorithm(x):
    n = len(x)
    a, b, c, d = -0.3 * np.ones(n), 2.0 + x, -0.4 * np.ones(n), np.linspace(1, 2, n)
    cp, dp = np.zeros(n), np.zeros(n)
    cp[0], dp[0] = c[0] / b[0], d[0] / b[0]
    for i in range(1, n):
        m = b[i] - a[i] * cp[i - 1]
        cp[i] = c[i] / m
        dp[i] = (d[i] - a[i] * dp[i - 1]) / m
    u = np.empty(n)
    u[-1] = dp[-1]
    for i in range(n - 2, -1, -1):
        u[i] = dp[i] - cp[i] * u[i + 1]
    return np.sum(u**2)


@program
def gauss_elimination(x):
    A = TABLE.copy()
    A[0, 1] += x[0]
    A[2] *= x[1]
    b = np.array([x[2], 1.0, x[3]])
    n = 3
    for k in range(n):
        for i in range(k + 1, n):
            factor = A[i, k] / A[k, k]
            A[i, k:] -= factor * A[k, k:]
            b[i] -= factor * b[k]
    y = np.zeros(n)
    for i in reversed(range(n)):
        y[i] = (b[i] - A[i, i + 1 :] @ y[i + 1 :]) / A[i, i]
    return y @ np.arange(1.0, 4.0)


@program
def partial_pivoting(x):
    A = np.array([[x[0], 2.0, 0.1], [3.0, x[1], 0.7], [0.2, 0.5, x[2]]])
    n, det = 3, 1.0
    for k in range(n):
        p = k + np.argmax(np.abs(A[k:, k]))
        if p != k:
            A[[k, p]] = A[[p, k]]
            det = -det
        det *= A[k, k]
        for i in range(k + 1, n):
            A[i] = A[i] - A[k] * (A[i, k] / A[k, k])
    return det


@program
def doolittle(x):
    A = TABLE + np.diag(x[:3])
    n = A.shape[0]
    L, U = np.eye(n), np.zeros((n, n))
    for j in range(n):
        for i in range(j + 1):
            U[i, j] = A[i, j] - sum(L[i, k] * U[k, j] for k in range(i))
        for i in range(j + 1, n):
            L[i, j] = (A[i, j] - sum(L[i, k] * U[k, j] for k in range(j))) / U[j, j]
    return np.prod(np.diag(U)) + np.sum(L)


@program
def cholesky_by_loops(x):
    A = TABLE + np.outer(x[:3], x[:3])
    n = len(A)
    L = zeros((n, n))
    for i in range(n):
        for j in range(i + 1):
            s = A[i, j] - np.dot(L[i, :j], L[j, :j])
            L[i, j] = np.sqrt(s) if i == j else s / L[j, j]
    return 2 * np.sum(np.log(np.diagonal(L)))


@program
def gram_schmidt(x):
    A = np.reshape(x, (3, 2)) + eye(3, 2)
    Q = np.zeros_like(A)
    for j in range(A.shape[1]):
        v = A[:, j].copy()
        for i in range(j):
            v -= (Q[:, i] @ A[:, j]) * Q[:, i]
        Q[:, j] = v / np.linalg.norm(v)
    return np.sum(Q * np.arange(6.0).reshape(3, 2))


@program
def householder(x):
    R = np.array([[x[0], x[1]], [x[2], x[3]], [x[4], x[5]]])
    m, n = R.shape
    for k in range(n):
        v = R[k:, k].copy()
        v[0] += np.sign(v[0]) * np.linalg.norm(v)
        v /= np.linalg.norm(v)
        R[k:, k:] -= 2 * np.outer(v, v @ R[k:, k:])
    return R[0, 0] * R[1, 1] + R[0, 1]


@program
def power_iteration(x):
    A = TABLE + np.diag(x[:3])
    v = np.ones(3) / np.sqrt(3)
    for _ in range(40):
        v = A @ v
        v = v / np.linalg.norm(v)
    return v @ A @ v


@program
def jacobi_eigenvalues(x):
    A = TABLE + 0.1 * np.outer(x[:3], x[:3])
    for _ in range(6):
        for p in range(2):
            for q in range(p + 1, 3):
                theta = 0.5 * np.arctan2(2 * A[p, q], A[q, q] - A[p, p])
                J = np.eye(3)
                J[p, p] = J[q, q] = np.cos(theta)
                J[p, q], J[q, p] = np.sin(theta), -np.sin(theta)
                A = J.T @ A @ J
    return np.sum(np.sort(np.diag(A)) * [1.0, 2.0, 3.0])


@program
def matrix_exponential(x):
    A = np.array([[0, x[0]], [-x[1], x[2] / 3]])
    total = term = np.eye(2)
    for k in range(1, 20):
        term = term @ A / k
        total = total + term
    return np.trace(total)


@program
def conjugate_gradients(x):
    A, b = TABLE + np.diag(x[:3]), x[3:]
    y = np.zeros(3)
    r = b - A @ y
    p = r.copy()
    for _ in range(3):
        alpha = (r @ r) / (p @ A @ p)
        y += alpha * p
        new = r - alpha * (A @ p)
        p = new + (new @ new) / (r @ r) * p
        r = new
        if np.linalg.norm(r) < 1e-10:
            break
    return y @ b


# ------------------------------------------------------------------------------------------ differential equations


@program
def runge_kutta(x):
    def rhs(t, y):
        return np.array([y[1], -x[0] * np.sin(y[0]) - x[1] * y[1]])

    h, n = 0.1, 20
    y = np.zeros((n + 1, 2))
    y[0] = [x[2], 0.0]
    for i in range(n):
        t = i * h
        k1 = rhs(t, y[i])
        k2 = rhs(t + h / 2, y[i] + h / 2 * k1)
        k3 = rhs(t + h / 2, y[i] + h / 2 * k2)
        k4 = rhs(t + h, y[i] + h * k3)
        y[i + 1] = y[i] + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return np.sum(y[:, 0] ** 2)


@program
def adams_bashforth(x):
    f = lambda t, y: -x[0] * y + math.sin(t) * x[1]
    t = np.linspace(0, 2, 21)
    h = t[1] - t[0]
    y = np.empty(21)
    y[0] = x[2]
    y[1] = y[0] + h * f(t[0], y[0])
    for i in range(1, 20):
        y[i + 1] = y[i] + h * (1.5 * f(t[i], y[i]) - 0.5 * f(t[i - 1], y[i - 1]))
    return y[-1]


@program
def heat_equation(x):
    n = 12
    u = np.zeros(n)
    u[4:8] = x[0]
    for _ in range(15):
        new = u.copy()
        new[1:-1] = u[1:-1] + 0.2 * x[1] * (u[2:] - 2 * u[1:-1] + u[:-2])
        u = new
    return np.sum(u[: n // 2] ** 2)


@program
def heat_in_place(x):
    u = np.zeros((6, 6))
    u[0, :] = x
    for _ in range(10):
        u[1:-1, 1:-1] = 0.25 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2])
    return u.sum()


@program
def gauss_seidel(x):
    u = np.zeros(8)
    f = np.linspace(1, 2, 8) * x[0]
    u[0], u[-1] = x[1], x[2]
    for _ in range(12):
        for i in range(1, 7):
            u[i] = 0.5 * (u[i - 1] + u[i + 1] + 0.1 * f[i])
    return u @ u


@program
def wave_equation(x):
    n, c = 20, 0.5 * x[0]
    grid = np.linspace(0, 1, n)
    old = np.exp(-100 * (grid - 0.3 * x[1]) ** 2)
    now = old.copy()
    for _ in range(10):
        new = np.zeros(n)
        new[1:-1] = 2 * now[1:-1] - old[1:-1] + c**2 * (now[2:] - 2 * now[1:-1] + now[:-2])
        old, now = now, new
    return np.sum(now**2)


@program
def lotka_volterra_lists(x):
    prey, predators = [1.0], [0.5]
    for _ in range(30):
        a, b = prey[-1], predators[-1]
        prey.append(a + 0.05 * (x[0] * a - x[1] * a * b))
        predators.append(b + 0.05 * (x[2] * a * b - x[3] * b))
    return np.mean(np.array(prey) * np.array(predators))


@program
def leapfrog(x):
    q, p = np.array([1.0, 0.0]), np.array([0.0, x[0]])
    path = []
    for _ in range(20):
        p = p - 0.05 * x[1] * q / np.linalg.norm(q) ** 3
        q = q + 0.1 * p
        p = p - 0.05 * x[1] * q / np.linalg.norm(q) ** 3
        path.append(q)
    return np.sum(np.array(path)[:, 0])


@program
def shooting(x):
    def end(slope):
        y, v = 0.0, slope
        for _ in range(20):
            y, v = y + 0.05 * v, v - 0.05 * x[0] * y
        return y

    a, b = 0.5, 2.0
    for _ in range(8):
        fa, fb = end(a) - x[1], end(b) - x[1]
        a, b = b, b - fb * (b - a) / (fb - fa) if abs(fb - fa) > 1e-14 else b
    return b


@program
def finite_elements(x):
    n = 5
    K, F = np.zeros((n + 1, n + 1)), np.zeros(n + 1)
    for e in range(n):
        K[e : e + 2, e : e + 2] += x[e] * np.array([[1, -1], [-1, 1]]) * n
        F[e : e + 2] += np.full(2, 0.5 / n)
    u = np.zeros(n + 1)
    u[1:] = np.linalg.solve(K[1:, 1:], F[1:])
    return u[-1]


@program
def finite_differences_matrix(x):
    n = 6
    A = np.diag(2 * np.ones(n)) + np.diag(-np.ones(n - 1), 1) + np.diag(-np.ones(n - 1), -1)
    A[0, 0] = A[-1, -1] = x[0]
    A[range(n), range(n)] += x
    return np.linalg.solve(A, np.ones(n)).sum()


# ------------------------------------------------------------------------------- interpolation, integration, roots


@program
def lagrange(x):
    nodes = np.arange(6)
    total = 0
    for i in range(6):
        basis = 1.0
        for j in range(6):
            if i != j:
                basis *= (2.5 * x[0] - nodes[j]) / (nodes[i] - nodes[j])
        total += x[i] * basis
    return total


@program
def divided_differences(x):
    t = np.linspace(0, 1, 6)
    table = np.zeros((6, 6))
    table[:, 0] = x
    for j in range(1, 6):
        for i in range(6 - j):
            table[i, j] = (table[i + 1, j - 1] - table[i, j - 1]) / (t[i + j] - t[i])
    value = table[0, 5]
    for k in range(4, -1, -1):
        value = table[0, k] + (0.35 - t[k]) * value
    return value


@program
def natural_spline(x):
    n = len(x) - 1
    h = np.ones(n)
    A, r = np.zeros((n + 1, n + 1)), np.zeros(n + 1)
    A[0, 0] = A[n, n] = 1
    for i in range(1, n):
        A[i, i - 1], A[i, i], A[i, i + 1] = h[i - 1], 2 * (h[i - 1] + h[i]), h[i]
        r[i] = 6 * ((x[i + 1] - x[i]) / h[i] - (x[i] - x[i - 1]) / h[i - 1])
    M = np.linalg.solve(A, r)
    return M[1] * 0.3 + M[2] ** 2


@program
def romberg(x):
    f = lambda t: np.exp(-x[0] * t) * np.cos(x[1] * t)
    R = np.zeros((5, 5))
    for i in range(5):
        t = np.linspace(0, 1, 2**i + 1)
        R[i, 0] = np.trapezoid(f(t), t)
        for j in range(1, i + 1):
            R[i, j] = R[i, j - 1] + (R[i, j - 1] - R[i - 1, j - 1]) / (4**j - 1)
    return R[4, 4]


@program
def simpson(x):
    n, a, b = 10, 0.0, x[0]
    h = (b - a) / n
    s = math.exp(-(a**2)) + math.exp(-(b**2))
    for i in range(1, n):
        s += (4 if i % 2 else 2) * exp(-((a + i * h) ** 2))
    return s * h / 3


@program
def newton_square_root(x):
    y = x[0]
    while abs(y * y - x[0]) > 1e-12:
        y = 0.5 * (y + x[0] / y)
    return y


@program
def secant(x):
    f = lambda t: t**3 - x[0] * t - x[1]
    a, b = 1.0, 2.0
    for _ in range(12):
        if abs(f(b)) < 1e-13:
            break
        a, b = b, b - f(b) * (b - a) / (f(b) - f(a))
    return b


@program
def horner(x):
    value = 0.0
    for c in list(x)[::-1]:
        value = value * 0.7 + c
    return value


@program
def legendre_polynomials(x):
    P = [1.0, x[0]]
    for n in range(1, 6):
        P.append(((2 * n + 1) * x[0] * P[n] - n * P[n - 1]) / (n + 1))
    return sum(c * p for c, p in zip(x, P))


@program
def polynomial_class(x):
    p = np.polynomial.Polynomial([x[0], 1.0, x[1]])
    return p(0.5) + p.deriv()(x[2])


@program
def polynomial_functions(x):
    c = np.polynomial.chebyshev.chebval(0.3, [x[0], 2.0, x[1]])
    return c + np.polyval([x[2], 1, x[3]], 1.5) + np.polyval(np.polymul([1, x[0]], [x[1], 2]), 2.0)


# --------------------------------------------------------------------------------------- probability and learning


@program
def hidden_markov_forward(x):
    trans = np.array([[x[0], 1.0], [0.5, x[1]]])
    trans = trans / trans.sum(axis=1, keepdims=True)
    emit = np.array([[0.7, 0.3], [0.2, 0.8]])
    obs = [0, 1, 1, 0]
    alpha = np.zeros((4, 2))
    alpha[0] = [0.6, 0.4] * emit[:, obs[0]]
    for t in range(1, 4):
        for j in range(2):
            alpha[t, j] = (alpha[t - 1] @ trans[:, j]) * emit[j, obs[t]]
    return np.log(alpha[-1].sum())


@program
def viterbi(x):
    score = np.zeros((4, 2))
    score[0] = x[:2]
    for t in range(1, 4):
        for j in range(2):
            score[t, j] = max(score[t - 1, i] + x[2 + (i + j) % 4] for i in range(2)) + 0.1 * j
    return np.max(score[-1])


@program
def kalman_filter(x):
    F = np.array([[1, 0.1], [0, 1]])
    Q, R, H = x[0] * np.eye(2), x[1], np.array([[1.0, 0.0]])
    m, P = np.zeros(2), np.eye(2)
    loss = 0.0
    for z in [0.1, 0.3, 0.2, 0.5]:
        m, P = F @ m, F @ P @ F.T + Q
        S = H @ P @ H.T + R
        K = P @ H.T @ np.linalg.inv(S)
        innovation = z - H @ m
        loss += 0.5 * (np.log(np.linalg.det(S)) + innovation @ np.linalg.inv(S) @ innovation)
        m = m + K @ innovation
        P = (np.eye(2) - K @ H) @ P
    return loss


@program
def dynamic_time_warping(x):
    a, b = x[:3], np.array([0.5, 1.0, 0.2])
    D = np.full((4, 4), np.inf)
    D[0, 0] = 0
    for i in range(1, 4):
        for j in range(1, 4):
            D[i, j] = (a[i - 1] - b[j - 1]) ** 2 + min(D[i - 1, j], D[i, j - 1], D[i - 1, j - 1])
    return D[3, 3]


@program
def edit_distance_soft(x):
    n = 4
    D = np.zeros((n, n))
    D[0] = np.arange(n) * x[0]
    D[:, 0] = np.arange(n) * x[1]
    for i in range(1, n):
        for j in range(1, n):
            options = np.array([D[i - 1, j] + x[2], D[i, j - 1] + x[3], D[i - 1, j - 1] + 0.3])
            D[i, j] = -np.log(np.sum(np.exp(-options)))
    return D[-1, -1]


@program
def black_scholes(x):
    s, k, t, r, v = x[0], 1.0, 0.5 + x[1], 0.05, 0.2 + x[2]
    d1 = (math.log(s / k) + (r + v**2 / 2) * t) / (v * sqrt(t))
    d2 = d1 - v * math.sqrt(t)
    cdf = lambda z: 0.5 * (1 + math.erf(z / math.sqrt(2)))
    return s * cdf(d1) - k * math.exp(-r * t) * cdf(d2)


@program
def binomial_tree(x):
    n = 6
    dt = x[1] / n
    u = np.exp(0.3 * x[2] * np.sqrt(dt))
    p = (np.exp(0.05 * dt) - 1 / u) / (u - 1 / u)
    values = np.zeros(n + 1)
    for i in range(n + 1):
        values[i] = max(x[0] * u ** (2 * i - n) - 0.95, 0)
    for _ in range(n):
        values[:-1] = np.exp(-0.05 * dt) * (p * values[1:] + (1 - p) * values[:-1])
        values = values[:-1]
    return values[0]


@program
def monte_carlo(x):
    generator = np.random.default_rng(3)
    paths = np.zeros((5, 50))
    paths[0] = x[0]
    for t in range(1, 5):
        z = generator.standard_normal(50)
        paths[t] = paths[t - 1] * np.exp((0.05 - 0.5 * x[1] ** 2) * 0.1 + x[1] * 0.3 * z)
    return np.mean(np.maximum(paths[-1] - 0.5, 0))


@program
def reparametrised_draws(x):
    generator = np.random.default_rng(1)
    draws = generator.normal(x[0], x[1], size=(20,))
    return np.mean(draws**2) + generator.exponential(x[2]) + generator.uniform(x[3], x[4] + 2)


@program
def logistic_regression(x):
    X = np.column_stack([np.ones(4), NOISE[:, :2]])
    y = np.array([0, 1, 1, 0])
    w = np.concatenate([[x[0]], x[1:3]])
    z = X @ w
    return -np.mean(y * np.log(1 / (1 + np.exp(-z))) + (1 - y) * np.log(1 - 1 / (1 + np.exp(-z))))


@program
def cross_entropy_one_hot(x):
    logits = np.outer(np.arange(1.0, 5.0), x[:3])
    probabilities = np.exp(logits - logits.max(axis=1, keepdims=True))
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    return -np.sum(np.eye(3)[LABELS] * np.log(probabilities)) - np.mean(np.log(probabilities[np.arange(4), LABELS]))


@program
def kernel_matrix_by_loops(x):
    n = 4
    K = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            K[i, j] = x[0] * np.exp(-np.sum((NOISE[i] - NOISE[j]) ** 2) / (2 * x[1] ** 2))
    K += 0.1 * x[2] * np.eye(n)
    L = np.linalg.cholesky(K)
    a = np.linalg.solve(L, np.ones(n))
    return 0.5 * a @ a + np.sum(np.log(np.diag(L)))


@program
def expectation_maximisation(x):
    data = NOISE[:, 0]
    mu, sigma, weight = x[:2].copy(), np.ones(2), np.full(2, 0.5)
    for _ in range(3):
        r = np.empty((4, 2))
        for k in range(2):
            r[:, k] = weight[k] * np.exp(-0.5 * ((data - mu[k]) / sigma[k]) ** 2) / sigma[k]
        r /= r.sum(axis=1)[:, None]
        weight = r.mean(axis=0)
        mu = (r * data[:, None]).sum(axis=0) / r.sum(axis=0)
    return mu @ weight


@program
def recurrent_network(x):
    W, h = np.reshape(np.tile(x, 2)[:9], (3, 3)) / 3, np.zeros(3)
    states = np.zeros((5, 3))
    for t in range(5):
        h = np.tanh(W @ h + NOISE[t % 4, :3])
        states[t] = h
    return np.sum(states[1:] * states[:-1])


@program
def convolution_by_loops(x):
    image, kernel = NOISE[:, :4], np.reshape(x[:4], (2, 2))
    out = np.zeros((3, 3))
    for i in range(3):
        for j in range(3):
            out[i, j] = np.sum(image[i : i + 2, j : j + 2] * kernel)
    out[out < 0] = 0
    return (out**2).mean()


@program
def dropout_and_batch_norm(x):
    h = NOISE[:, :3] * x[:3]
    mask = np.random.default_rng(0).random(h.shape) < 0.7
    h = h * mask / 0.7
    h = (h - h.mean(axis=0)) / np.sqrt(h.var(axis=0) + 1e-5)
    return np.sum(h**3 * x[3])


@program
def principal_components(x):
    data = NOISE[:, :3] * x[:3]
    centred = data - np.mean(data, axis=0)
    values, _ = np.linalg.eigh(np.cov(centred.T))
    return values[-1] / values.sum()


# --------------------------------------------------------------------------------------------- geometry, signals


@program
def rotations(x):
    def turn(angle):
        return array([[cos(angle), -sin(angle)], [sin(angle), cos(angle)]])

    p = np.array([1.0, 0.5])
    for angle in x:
        p = turn(angle) @ p + [0.1, 0.0]
    return p[0] * p[1]


@program
def robot_arm(x):
    T = np.eye(4)
    for angle, length in zip(x[:3], x[3:]):
        step = np.eye(4)
        step[:2, :2] = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
        step[:3, 3] = [length, 0, 0.1]
        T = T @ step
    return np.linalg.norm(T[:3, 3])


@program
def quaternion(x):
    w, a, b, c = x[:4] / np.linalg.norm(x[:4])
    R = np.array([
        [1 - 2 * (b * b + c * c), 2 * (a * b - c * w), 2 * (a * c + b * w)],
        [2 * (a * b + c * w), 1 - 2 * (a * a + c * c), 2 * (b * c - a * w)],
        [2 * (a * c - b * w), 2 * (b * c + a * w), 1 - 2 * (a * a + b * b)],
    ])  # fmt: skip
    return R @ np.array([1, 2, 3]) @ np.array([0.3, -1, 0.5])


@program
def bezier(x):
    points = np.reshape(x, (3, 2))
    curve = np.zeros((11, 2))
    for k, t in enumerate(np.linspace(0, 1, 11)):
        q = points.copy()
        while len(q) > 1:
            q = (1 - t) * q[:-1] + t * q[1:]
        curve[k] = q[0]
    return np.sum(np.sqrt(np.sum(np.diff(curve, axis=0) ** 2, axis=1)))


@program
def n_body(x):
    positions = np.vstack([x[:2], x[2:4], x[4:]])
    energy = 0
    for i in range(3):
        for j in range(i):
            energy -= 1 / np.linalg.norm(positions[i] - positions[j])
    forces = np.zeros_like(positions)
    for i in range(3):
        for j in range(3):
            if i != j:
                d = positions[j] - positions[i]
                forces[i] += d / np.sum(d**2) ** 1.5
    return energy + np.sum(forces**2)


@program
def discrete_fourier(x):
    n = len(x)
    X = np.zeros(n, dtype=complex)
    for k in range(n):
        for t in range(n):
            X[k] += x[t] * np.exp(-2j * np.pi * k * t / n)
    return np.sum(np.abs(X[:3]) ** 2) + np.abs(np.fft.fft(x)[2])


@program
def moving_average(x):
    y = np.zeros(len(x) - 2)
    for i in range(len(y)):
        y[i] = x[i : i + 3].mean()
    z = np.convolve(x, np.ones(3) / 3, mode="valid")
    return y @ z


@program
def exponential_smoothing(x):
    s = [x[0]]
    for value in x[1:]:
        s.append(0.3 * value + (1 - 0.3) * s[-1])
    return np.std(s)


# ------------------------------------------------------------------------------------------------ ways of writing


@program
def sum_of_generator(x):
    return sum(v**2 for v in x) + math.fsum([x[0], x[1] ** 2, 3.0]) + max(x) * min(x)


@program
def masks(x):
    y = np.zeros(6)
    y[x > 1] = x[x > 1] ** 2
    y[~(x > 1)] = 0.5
    z = np.ones(6)
    z[[0, 2, 4]] *= x[[1, 3, 5]]
    np.add.at(z, [0, 0, 1], x[:3])
    return y @ z


@program
def copies_and_outputs(x):
    a, b, c = np.empty(6), np.zeros(6), np.zeros((2, 3))
    np.multiply(x, 2, out=a)
    np.copyto(b, x, where=x > 0.8)
    np.put(b, [0, 1], x[2:4])
    c[...] = np.reshape(x, (2, 3))
    c.flat[4] = x[0] * x[1]
    np.fill_diagonal(c, x[5])
    a.fill(x[0])
    return a @ b + np.sum(c**2)


@program
def lists_of_lists(x):
    grid = [[x[i] * x[j] for j in range(3)] for i in range(3)]
    return np.linalg.det(np.array(grid) + np.eye(3)) + np.sum([x[0], x[1]]) + np.array([x[:2], x[2:4]]).T[0, 1]


@program
def joined(x):
    a = np.r_[x[:2], 1.0, x[3]]
    b = np.c_[a, np.arange(4.0)]
    return np.sum(np.hstack((a, [2.0, x[4]]))) + np.linalg.norm(b) + np.append(a, x[5])[-1]


@program
def vectorized(x):
    f = np.vectorize(lambda t, k: t**k if t > 1 else math.sin(t))
    return np.sum(f(x, 3.0))


@program
def applied_along_axis(x):
    return np.sum(np.apply_along_axis(lambda row: np.cumprod(row)[-1:], 1, np.reshape(x, (2, 3))))


@program
def iterators(x):
    total = np.zeros(())
    for index, value in np.ndenumerate(np.reshape(x, (2, 3))):
        total = total + (index[0] + 2 * index[1]) * value**2
    return total + np.fromiter((v * 2 for v in x), dtype=float).sum()


@dataclasses.dataclass
class _Layer:
    weights: Any
    bias: Any

    def __call__(self, v: Any) -> Any:
        out = np.zeros(2)
        for i in range(2):
            out[i] = self.weights[i] @ v + self.bias
        return out


@program
def objects(x):
    layers = [_Layer(np.reshape(x[:4], (2, 2)), x[4]), _Layer(np.eye(2) * x[5], 0.1)]
    return np.sum(functools.reduce(lambda v, layer: np.tanh(layer(v)), layers, np.array([0.4, -0.2])))


@program
def memoised_recursion(x):
    cache: dict[int, Any] = {0: x[0], 1: x[1]}

    def fibonacci(n):
        if n not in cache:
            cache[n] = fibonacci(n - 1) * 0.5 + fibonacci(n - 2) * x[2]
        return cache[n]

    return fibonacci(8)


@program
def item_by_item(x):
    total = 0.0
    for i in range(len(x)):
        total += x[i].item() ** 2 * WEIGHTS.item(i)
    return total


@program
def structured_records(x):
    bodies = np.zeros(3, dtype=[("mass", float), ("place", float, (2,))])
    bodies["mass"] = x[:3]
    bodies["place"] = np.outer(x[3:], [1.0, 2.0])
    return np.sum(bodies["mass"][:, None] * bodies["place"] ** 2)


@program
def counting_changes_afterwards(x):
    w = np.arange(1.0, 7.0)
    y = x * w
    w[0] = 100.0
    w *= 2
    return np.sum(y**2) + np.sum(w * x)


@program
def meshes(x):
    u, v = np.meshgrid(np.linspace(0, x[0], 4), np.arange(3))
    surface = np.zeros(u.shape)
    surface += u * v**2 * x[1]
    return np.sum(np.gradient(surface, axis=0) ** 2)
