"""Textbook programs: numerical analysis in NumPy and SciPy alone.

Excluded is code that no array subclass can trace: ``type(x) is np.ndarray``, bisection (whose result depends on comparisons
alone), and text that is printed and parsed.
"""

from functools import lru_cache
from math import comb, factorial

import numpy as np
import scipy.integrate
import scipy.interpolate
import scipy.linalg
import scipy.optimize

from tests.support.programs.program import Corpus

TEXTBOOK = Corpus()


@TEXTBOOK.at(2.0)
def newton_square_root(a):
    x = a
    while abs(x * x - a) > 1e-13:
        x = x - (x * x - a) / (2 * x)
    return x


@TEXTBOOK.at(np.array([2.0, 0.7]))
def newton_system(p):
    x = np.array([1.0, 1.0])
    for _ in range(8):
        f = np.array([x[0] ** 2 + x[1] ** 2 - p[0], x[0] - p[1] * x[1]])
        jac = np.array([[2 * x[0], 2 * x[1]], [1.0, -p[1]]])
        x = x - np.linalg.solve(jac, f)
    return x[0] * x[1]


@TEXTBOOK.at(0.8)
def secant_method(k):
    f = lambda x: np.cos(x) - k * x
    x0, x1 = 0.3, 1.2
    while abs(x1 - x0) > 1e-10:
        x0, x1 = x1, x1 - f(x1) * (x1 - x0) / (f(x1) - f(x0))
    return x1


@TEXTBOOK.at(0.4)
def kepler_equation(e):
    mean_anomaly = 1.3
    eccentric = mean_anomaly
    for _ in range(60):
        eccentric = mean_anomaly + e * np.sin(eccentric)
    return eccentric


@TEXTBOOK.at(1.7)
def brentq_inside(a):
    root = scipy.optimize.brentq(lambda x: x**3 - a * x - 1, 0, 4, xtol=1e-13)
    return root**2


@TEXTBOOK.at(np.array([1.5, 0.6]))
def fsolve_inside(p):
    def equations(v):
        x, y = v
        return [x * x + y - p[0], x - p[1] * np.exp(-y)]

    x, y = scipy.optimize.fsolve(equations, [0.5, 0.5], xtol=1e-13)
    return x + 2 * y


@TEXTBOOK.at(np.array([0.5, 2.0]))
def minimize_inside(p):
    best = scipy.optimize.minimize(lambda v: (v[0] - p[0]) ** 2 + p[1] * (v[1] - v[0]) ** 2 + v[1] ** 2, [0.0, 0.0], tol=1e-9)
    return best.fun


@TEXTBOOK.at(np.array([1.2, 0.8]))
def euler_buffer(p):
    n, h = 40, 0.05
    y = np.zeros(n + 1)
    y[0] = p[0]
    for i in range(n):
        y[i + 1] = y[i] + h * (-p[1] * y[i] + np.sin(i * h))
    return y[-1]


@TEXTBOOK.at(0.5, 9.81)
def rk4_pendulum(theta, g):
    def deriv(s):
        return np.array([s[1], -g * np.sin(s[0])])

    state, h = np.array([theta, 0.0]), 0.02
    for _ in range(30):
        k1 = deriv(state)
        k2 = deriv(state + h / 2 * k1)
        k3 = deriv(state + h / 2 * k2)
        k4 = deriv(state + h * k3)
        state = state + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return state[0]


@TEXTBOOK.at(np.array([0.9, 0.4]))
def rk4_table(p):
    n, h = 20, 0.1
    table = np.zeros((n + 1, 2))
    table[0] = p
    f = lambda s: np.array([s[0] * (1 - s[1]), s[1] * (s[0] - 1)])
    for i in range(n):
        k1 = f(table[i])
        k2 = f(table[i] + h / 2 * k1)
        k3 = f(table[i] + h / 2 * k2)
        k4 = f(table[i] + h * k3)
        table[i + 1] = table[i] + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return np.sum(table[:, 0] * table[:, 1])


@TEXTBOOK.at(np.array([1.0, 0.1, 0.05, 1.1]))
def verlet_orbit(s):
    r, v, dt = s[:2], s[2:], 0.05
    energies = []
    a = -r / np.linalg.norm(r) ** 3
    for _ in range(20):
        r = r + v * dt + 0.5 * a * dt**2
        new = -r / np.linalg.norm(r) ** 3
        v = v + 0.5 * (a + new) * dt
        a = new
        energies.append(0.5 * np.dot(v, v) - 1 / np.linalg.norm(r))
    return np.mean(energies) + r[0]


@TEXTBOOK.at(np.array([0.7, 1.3]))
def odeint_inside(p):
    y = scipy.integrate.odeint(lambda y, t: -p[0] * y + np.cos(t), p[1], np.linspace(0, 2, 5), rtol=1e-11, atol=1e-12)
    return y[-1, 0]


@TEXTBOOK.at(0.5, 1.2)
def solve_ivp_predator_prey(a, b):
    def rhs(t, z):
        x, y = z
        return [a * x - b * x * y, b * x * y - y]

    sol = scipy.integrate.solve_ivp(rhs, [0, 3], [1.0, 0.5], rtol=1e-10, atol=1e-12)
    return sol.y[0, -1] + sol.y[1, -1]


@TEXTBOOK.at(np.array([0.2, 1.0, 0.4]))
def solve_ivp_initial_state(y0):
    sol = scipy.integrate.solve_ivp(lambda t, y: np.array([y[1], -y[0], -0.3 * y[2]]), (0, 1), y0, rtol=1e-10, atol=1e-12)
    return np.sum(sol.y[:, -1] ** 2)


@TEXTBOOK.at(np.array([0.3, 1.1]))
def heat_explicit(p):
    u = np.zeros(21)
    x = np.linspace(0, 1, 21)
    u[:] = p[1] * np.sin(np.pi * x)
    for _ in range(20):
        u[1:-1] = u[1:-1] + p[0] * (u[2:] - 2 * u[1:-1] + u[:-2])
    return np.sum(u**2)


@TEXTBOOK.at(np.array([0.1, 0.5, 0.9, 0.4, 0.2]))
def heat_in_place_on_argument_copy(u0):
    u = u0.copy()
    for _ in range(5):
        un = u.copy()
        u[1:-1] = un[1:-1] + 0.2 * (un[2:] - 2 * un[1:-1] + un[:-2])
        u[0] = u[-1] = 0
    return np.sum(u)


@TEXTBOOK.at(0.8)
def wave_leapfrog(c):
    x = np.linspace(0, 1, 16)
    old = np.exp(-40 * (x - 0.4) ** 2)
    now = old.copy()
    for _ in range(10):
        new = np.zeros_like(x)
        new[1:-1] = 2 * now[1:-1] - old[1:-1] + c**2 * (now[2:] - 2 * now[1:-1] + now[:-2])
        old, now = now, new
    return np.sum(now**2)


@TEXTBOOK.at(np.array([1.0, 0.3, -0.2, 0.6]))
def laplace_jacobi(edges):
    u = np.zeros((6, 6))
    u[0, :], u[-1, :], u[:, 0], u[:, -1] = edges
    for _ in range(15):
        u[1:-1, 1:-1] = 0.25 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2])
    return u[2, 2] ** 2


@TEXTBOOK.at(0.7)
def laplace_gauss_seidel(top):
    u = np.zeros((5, 5))
    u[0] = top
    for _ in range(8):
        for i in range(1, 4):
            for j in range(1, 4):
                u[i, j] = (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1]) / 4
    return u[2, 2]


@TEXTBOOK.at(0.6)
def crank_nicolson(r):
    n = 8
    a = np.diag([1 + r] * n) + np.diag([-r / 2] * (n - 1), 1) + np.diag([-r / 2] * (n - 1), -1)
    b = np.diag([1 - r] * n) + np.diag([r / 2] * (n - 1), 1) + np.diag([r / 2] * (n - 1), -1)
    u = np.sin(np.pi * np.arange(1, n + 1) / (n + 1))
    for _ in range(5):
        u = np.linalg.solve(a, b @ u)
    return u.sum()


@TEXTBOOK.at(np.array([4.0, 5.0, 4.5, 6.0]))
def thomas_algorithm(diagonal):
    n = len(diagonal)
    lower, upper, d = np.ones(n), np.ones(n), np.arange(1.0, n + 1)
    c_, d_, x = np.zeros(n), np.zeros(n), np.zeros(n)
    c_[0], d_[0] = upper[0] / diagonal[0], d[0] / diagonal[0]
    for i in range(1, n):
        m = diagonal[i] - lower[i] * c_[i - 1]
        c_[i] = upper[i] / m
        d_[i] = (d[i] - lower[i] * d_[i - 1]) / m
    x[-1] = d_[-1]
    for i in range(n - 2, -1, -1):
        x[i] = d_[i] - c_[i] * x[i + 1]
    return np.sum(x)


@TEXTBOOK.at(np.array([3.0, 1.0, 2.0, 5.0]))
def gaussian_elimination(v):
    a = np.array([[v[0], 1.0, 0.5], [1.0, v[1], v[2]], [2.0, 0.3, v[3]]])
    b = np.array([1.0, 2.0, v[0]])
    n = 3
    for k in range(n):
        p = k + np.argmax(np.abs(a[k:, k]))
        a[[k, p]] = a[[p, k]]
        b[[k, p]] = b[[p, k]]
        for i in range(k + 1, n):
            f = a[i, k] / a[k, k]
            a[i, k:] -= f * a[k, k:]
            b[i] -= f * b[k]
    x = np.zeros(n)
    for i in reversed(range(n)):
        x[i] = (b[i] - a[i, i + 1 :] @ x[i + 1 :]) / a[i, i]
    return x[0] - x[2]


@TEXTBOOK.at(np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.3, 0.7, 5.0]]))
def lu_in_place_determinant(a):
    a = a.copy()
    n = len(a)
    for k in range(n - 1):
        a[k + 1 :, k] /= a[k, k]
        a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])
    return np.prod(np.diag(a))


@TEXTBOOK.at(np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.2, 5.0]]))
def cholesky_by_hand(a):
    n = a.shape[0]
    lower = np.zeros((n, n))
    for i in range(n):
        for j in range(i + 1):
            s = a[i, j] - np.dot(lower[i, :j], lower[j, :j])
            lower[i, j] = np.sqrt(s) if i == j else s / lower[j, j]
    return 2 * np.sum(np.log(np.diag(lower)))


@TEXTBOOK.at(np.array([[1.0, 0.4, 0.1], [0.2, 1.5, 0.3], [0.7, 0.5, 2.0]]))
def gram_schmidt(a):
    q = np.empty_like(a)
    for j in range(a.shape[1]):
        v = a[:, j]
        for i in range(j):
            v = v - (q[:, i] @ a[:, j]) * q[:, i]
        q[:, j] = v / np.sqrt(v @ v)
    return q[0, 0] + q[1, 1] * q[2, 0]


@TEXTBOOK.at(2.0, 0.5, 1.0)
def power_iteration(a, b, c):
    m = np.array([[a, b], [b, c]])
    v = np.ones(2)
    for _ in range(60):
        v = m @ v
        v = v / np.linalg.norm(v)
    return v @ m @ v


@TEXTBOOK.at(np.array([0.3, 0.5]))
def matrix_exponential_series(p):
    a = np.array([[0, p[0]], [-p[1], 0]])
    term, total = np.eye(2), np.eye(2)
    for k in range(1, 15):
        term = term @ a / k
        total = total + term
    return total[0, 1] + total[1, 1]


@TEXTBOOK.at(0.3, 0.5)
def matrix_exponential_scipy(w, t):
    return scipy.linalg.expm(np.array([[-w, w], [t, -t]]))[0, 1]


@TEXTBOOK.at(np.array([[4.0, 1.0], [1.0, 3.0]]))
def conjugate_gradient(a):
    b = np.array([1.0, 2.0])
    x = np.zeros(2)
    r = b - a @ x
    p = r
    for _ in range(2):
        alpha = (r @ r) / (p @ a @ p)
        x = x + alpha * p
        new = r - alpha * a @ p
        p = new + (new @ new) / (r @ r) * p
        r = new
    return x[0] + 3 * x[1]


@TEXTBOOK.at(np.array([1.0, 0.2, 0.7, 1.5]))
def lagrange_interpolation(y):
    xs, at, total = [0.0, 1.0, 2.0, 3.0], 1.4, 0
    for i in range(4):
        term = y[i]
        for j in range(4):
            if i != j:
                term *= (at - xs[j]) / (xs[i] - xs[j])
        total += term
    return total**2


@TEXTBOOK.at(np.array([1.0, 0.2, 0.7, 1.5]))
def divided_differences(y):
    x, n = np.arange(4.0), 4
    table = np.zeros((n, n))
    table[:, 0] = y
    for j in range(1, n):
        for i in range(n - j):
            table[i, j] = (table[i + 1, j - 1] - table[i, j - 1]) / (x[i + j] - x[i])
    result = table[0, n - 1]
    for k in range(n - 2, -1, -1):
        result = table[0, k] + (1.4 - x[k]) * result
    return np.exp(result)


@TEXTBOOK.at(np.array([1.0, 0.2, 0.7, 1.5]))
def natural_spline_by_hand(y):
    n = len(y)
    a, rhs = np.zeros((n, n)), np.zeros(n)
    a[0, 0] = a[-1, -1] = 1
    for i in range(1, n - 1):
        a[i, i - 1 : i + 2] = 1, 4, 1
        rhs[i] = 6 * (y[i + 1] - 2 * y[i] + y[i - 1])
    m = np.linalg.solve(a, rhs)
    t = 0.3
    return m[1] * (1 - t) ** 3 / 6 + m[2] * t**3 / 6 + (y[1] - m[1] / 6) * (1 - t) + (y[2] - m[2] / 6) * t


@TEXTBOOK.at(np.array([1.0, 0.2, 0.7, 1.5]))
def cubic_spline_area(y):
    return scipy.interpolate.CubicSpline(np.arange(4.0), y).integrate(0, 3)


@TEXTBOOK.at(np.array([0.3, 1.6, 2.2]))
def interp1d_table(x):
    table = scipy.interpolate.interp1d([0.0, 1.0, 2.0, 3.0], [0.0, 2.0, 1.0, 4.0], kind="quadratic")
    return np.sum(table(x))


@TEXTBOOK.at(1.4)
def linear_table_lookup(x):
    return np.interp(x, [0.0, 1.0, 2.0], [0.0, 2.0, 1.0]) ** 2


@TEXTBOOK.at(1.4)
def trapezoid_loop(b):
    n = 20
    h = b / n
    total = 0.5 * (np.exp(-0.0) + np.exp(-(b**2)))
    for i in range(1, n):
        total += np.exp(-((i * h) ** 2))
    return h * total


@TEXTBOOK.at(0.9, 2.0)
def trapezoid_numpy(k, b):
    x = np.linspace(0, b, 31)
    return np.trapezoid(np.sin(k * x), x)


@TEXTBOOK.at(0.9, 2.0)
def simpson_slices(k, b):
    x = np.linspace(0, b, 21)
    y = np.cos(k * x)
    return (b / 20) / 3 * (y[0] + 4 * np.sum(y[1:-1:2]) + 2 * np.sum(y[2:-1:2]) + y[-1])


@TEXTBOOK.at(0.9)
def simpson_scipy(k):
    x = np.linspace(0, 2, 21)
    return scipy.integrate.simpson(np.exp(-k * x), x=x)


@TEXTBOOK.at(1.3)
def romberg_table(b):
    f = lambda x: 1 / (1 + x**2)
    levels = 5
    r = np.zeros((levels, levels))
    for i in range(levels):
        n = 2**i
        x = np.linspace(0, b, n + 1)
        r[i, 0] = b / n * (np.sum(f(x)) - 0.5 * (f(x[0]) + f(x[-1])))
        for j in range(1, i + 1):
            r[i, j] = r[i, j - 1] + (r[i, j - 1] - r[i - 1, j - 1]) / (4**j - 1)
    return r[-1, -1]


@TEXTBOOK.at(0.5, 2.0)
def gauss_legendre(a, b):
    nodes, weights = np.polynomial.legendre.leggauss(6)
    x = 0.5 * (b - a) * nodes + 0.5 * (a + b)
    return 0.5 * (b - a) * np.sum(weights * np.log(x))


@TEXTBOOK.at(0.9)
def quad_with_parameter(k):
    return scipy.integrate.quad(lambda t: np.exp(-k * t) * np.sin(t), 0, 5)[0]


@TEXTBOOK.at(0.9, 1.5)
def quad_with_args_and_limit(k, b):
    return scipy.integrate.quad(lambda t, rate: t * np.exp(-rate * t), 0, b, args=(k,))[0]


@TEXTBOOK.at(0.9)
def monte_carlo_integral(k):
    rng = np.random.default_rng(3)
    x = rng.uniform(0, 1, 100)
    return np.mean(np.exp(-k * x**2))


@TEXTBOOK.at(np.array([1.0, -2.0, 0.5, 3.0]))
def horner_scheme(coefficients):
    result = 0.0
    for c in coefficients:
        result = result * 1.3 + c
    return result**2


@TEXTBOOK.at(np.array([1.0, 2.2, 2.7, 4.1, 5.5]))
def polynomial_fit(y):
    slope, intercept = np.polyfit(np.arange(5), y, 1)
    return slope**2 + intercept


@TEXTBOOK.at(np.array([1.0, -6.0, 11.5, -6.0]))
def polynomial_roots(c):
    return np.max(np.real(np.roots(c)))


@TEXTBOOK.at(1.5)
def bessel_series(x):
    total = 0
    for m in range(12):
        total += (-1) ** m / factorial(m) ** 2 * (x / 2) ** (2 * m)
    return total


@TEXTBOOK.at(0.4)
def legendre_recursion(x):
    def legendre(n):
        if n == 0:
            return 1
        if n == 1:
            return x
        return ((2 * n - 1) * x * legendre(n - 1) - (n - 1) * legendre(n - 2)) / n

    return legendre(6)


@TEXTBOOK.at(0.4)
def chebyshev_cached_recursion(x):
    @lru_cache(maxsize=None)
    def chebyshev(n):
        return [1, x][n] if n < 2 else 2 * x * chebyshev(n - 1) - chebyshev(n - 2)

    return chebyshev(9)


@TEXTBOOK.at(np.array([0.1, 0.8, 0.3, 0.5]))
def bezier_curve(points):
    t = np.linspace(0, 1, 7)
    n = len(points) - 1
    curve = np.zeros(7)
    for i in range(n + 1):
        curve += comb(n, i) * t**i * (1 - t) ** (n - i) * points[i]
    return np.sum(curve**2)


@TEXTBOOK.at(np.array([1.0, 2.0, 1.5, 0.7]))
def finite_elements(stiffness):
    n = len(stiffness)
    k = np.zeros((n + 1, n + 1))
    for e in range(n):
        k[e : e + 2, e : e + 2] += stiffness[e] * np.array([[1, -1], [-1, 1]])
    f = np.ones(n)
    u = np.linalg.solve(k[1:, 1:], f)
    return u[-1]


@TEXTBOOK.at(np.array([0.2, 0.9, 0.4, 0.7, 0.1]))
def numpy_gradient_roughness(y):
    return np.sum(np.gradient(y, 0.25) ** 2)


@TEXTBOOK.at(1.3)
def shooting_method(load):
    def end(slope):
        y, v, h = 0.0, slope, 0.05
        for i in range(20):
            y, v = y + h * v, v + h * (load * y - i * h)
        return y

    return scipy.optimize.brentq(lambda s: end(s) - 1.0, -5, 5, xtol=1e-13)


@TEXTBOOK.at(1.2)
def richardson_extrapolation(x):
    f, h, n = np.exp, 0.1, 4
    d = np.zeros((n, n))
    for i in range(n):
        d[i, 0] = (f(x + h) - f(x - h)) / (2 * h)
        for j in range(1, i + 1):
            d[i, j] = d[i, j - 1] + (d[i, j - 1] - d[i - 1, j - 1]) / (4**j - 1)
        h = h / 2
    return d[-1, -1]


@TEXTBOOK.at(np.array([0.6, -0.4]))
def gradient_descent_with_history(start):
    x = start
    path = [x]
    for _ in range(10):
        x = x - 0.1 * np.array([2 * x[0], 20 * x[1] ** 3])
        path.append(x)
    return np.sum(np.array(path) ** 2)


@TEXTBOOK.at(0.4)
def arithmetic_geometric_mean(k):
    a, b = 1.0, np.sqrt(1 - k**2)
    while abs(a - b) > 1e-15:
        a, b = (a + b) / 2, np.sqrt(a * b)
    return np.pi / (2 * a)


@TEXTBOOK.at(np.array([3.0, 2.0, 1.0, 2.5]))
def qr_eigenvalues(v):
    a = np.array([[v[0], 0.5, 0.1], [0.5, v[1], v[2]], [0.1, v[2], v[3]]])
    for _ in range(80):
        q, r = np.linalg.qr(a)
        a = r @ q
    return a[0, 0] - a[2, 2]
