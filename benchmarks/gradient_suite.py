"""Compile time and run time of the kinds of programs that suites of automatic differentiation compare.

    python gradient_suite.py [--only NAME ...] [--jax]

The programs are plain NumPy. Each is compiled once without the disk cache, which takes the stated processor time; run times are
medians, on one thread. With `--jax`, those that have a version for JAX run in turn with it, in double precision unless named.
"""

from __future__ import annotations

import os

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1", NPROC="1", JAX_PLATFORMS="cpu")

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, gammaln, logsumexp
from tqdm import tqdm

import autodiff as ad
import compgraph as cg

Function = Callable[..., Any]
rng = np.random.default_rng(0)


class Program(NamedTuple):
    """A function, its arguments, the operator that differentiates it (by all arguments), and the derivative by JAX."""

    function: Function
    arguments: tuple[Any, ...]
    derive: Callable[[Function], Function] | None = None
    by_jax: Callable[[], Function] | None = None


def value_and_gradients(count: int) -> Callable[[Function], Function]:
    """Return the operator of the value and the gradients by the first arguments."""
    return lambda f: ad.value_and_grad(f, argnums=tuple(range(count)))


# ------------------------------------------------------------------------------------------------------- recurrent network


def character_model(layers: int, length: int, width: int = 14) -> Program:
    """The likelihood of a sequence of characters under stacked LSTM cells with diagonal weights."""

    def cell(weights: Any, biases: Any, hidden: Any, memory: Any, x: Any) -> tuple[Any, Any]:
        forget = expit(x * weights[0] + biases[0])
        admit = expit(hidden * weights[1] + biases[1])
        emit = expit(x * weights[2] + biases[2])
        memory = forget * memory + admit * np.tanh(hidden * weights[3] + biases[3])
        return emit * np.tanh(memory), memory

    def f(parameters: Any, extra: Any, start: Any, sequence: Any) -> Any:
        state, total = start.copy(), 0.0
        for t in range(length - 1):
            x = sequence[t] * extra[0]
            for i in range(layers):
                state[i, 0], state[i, 1] = cell(parameters[i, 0], parameters[i, 1], state[i, 0], state[i, 1], x)
                x = state[i, 0]
            x = x * extra[1] + extra[2]
            total += np.sum(sequence[t + 1] * (x - np.log(np.sum(np.exp(x)) + 2)))
        return -total / ((length - 1) * width)

    def by_jax() -> Function:
        import jax
        import jax.numpy as jnp

        def cell(weights: Any, biases: Any, hidden: Any, memory: Any, x: Any) -> tuple[Any, Any]:
            forget = jax.nn.sigmoid(x * weights[0] + biases[0])
            admit = jax.nn.sigmoid(hidden * weights[1] + biases[1])
            emit = jax.nn.sigmoid(x * weights[2] + biases[2])
            memory = forget * memory + admit * jnp.tanh(hidden * weights[3] + biases[3])
            return emit * jnp.tanh(memory), memory

        def f(parameters: Any, extra: Any, start: Any, sequence: Any) -> Any:
            def body(state: Any, pair: Any) -> Any:
                x, states = pair[0] * extra[0], []
                for i in range(layers):
                    hidden, memory = cell(parameters[i, 0], parameters[i, 1], state[i, 0], state[i, 1], x)
                    states.append(jnp.stack([hidden, memory]))
                    x = hidden
                x = x * extra[1] + extra[2]
                return jnp.stack(states), jnp.sum(pair[1] * (x - jnp.log(jnp.sum(jnp.exp(x)) + 2)))

            return -jnp.sum(jax.lax.scan(body, start, (sequence[:-1], sequence[1:]))[1]) / ((length - 1) * width)

        return jax.value_and_grad(f, argnums=(0, 1))

    letters = np.eye(width)[rng.integers(0, width, length)]
    arguments = rng.normal(size=(layers, 2, 4, width)), rng.normal(size=(3, width)), rng.normal(size=(layers, 2, width)), letters
    return Program(f, arguments, value_and_gradients(2), by_jax)


# ----------------------------------------------------------------------------------------------------------- hand tracking


def hand_tracking(points: int, vertices: int = 544, bones: int = 22) -> Program:
    """The distances of observed points from the skin of a hand, whose bones are rotated by 26 parameters; their Jacobian."""
    parents = [-1, 0, *(0 if k % 4 == 0 else k + 1 for k in range(bones - 2))]
    bases = np.tile(np.eye(4), (bones, 1, 1))
    bases[:, :3, 3] = 0.3 * rng.normal(size=(bones, 3))
    inverses = np.linalg.inv(bases)
    skin = np.vstack([rng.normal(size=(3, vertices)), np.ones(vertices)])
    weights = rng.random((bones, vertices)) * (rng.random((bones, vertices)) < 0.15) + 1e-3
    weights /= weights.sum(0)

    def axis_angle(v: Any) -> Any:
        angle = np.sqrt(np.sum(v * v) + 1e-12)
        x, y, z = v / angle
        s, c = np.sin(angle), np.cos(angle)
        return np.array([
            [x * x + (1 - x * x) * c, x * y * (1 - c) - z * s, x * z * (1 - c) + y * s],
            [x * y * (1 - c) + z * s, y * y + (1 - y * y) * c, y * z * (1 - c) - x * s],
            [x * z * (1 - c) - y * s, z * y * (1 - c) + x * s, z * z + (1 - z * z) * c],
        ])  # fmt: skip

    def euler(x: Any, y: Any, z: Any) -> Any:
        rotation_x = np.array([[1, 0, 0], [0, np.cos(x), -np.sin(x)], [0, np.sin(x), np.cos(x)]])
        rotation_y = np.array([[np.cos(y), 0, np.sin(y)], [0, 1, 0], [-np.sin(y), 0, np.cos(y)]])
        rotation_z = np.array([[np.cos(z), -np.sin(z), 0], [np.sin(z), np.cos(z), 0], [0, 0, 1]])
        return rotation_z @ rotation_y @ rotation_x

    def f(theta: Any, observed: Any, nearest: Any) -> Any:
        angles = np.zeros((bones, 3))
        for finger in range(5):
            first, k = 2 + 4 * finger, 6 + 4 * finger
            angles[first, 0], angles[first, 1] = theta[k], theta[k + 1]
            angles[first + 1, 0], angles[first + 2, 0] = theta[k + 2], theta[k + 3]
        absolute: list[Any] = []
        for k in range(bones):
            turn = np.eye(4)
            turn[:3, :3] = euler(angles[k, 0], angles[k, 1], angles[k, 2])
            relative = bases[k] @ turn
            absolute.append(relative if parents[k] < 0 else absolute[parents[k]] @ relative)
        positions = np.zeros((3, vertices))
        for k in range(bones):
            positions = positions + ((absolute[k] @ inverses[k]) @ skin)[:3] * weights[k]
        moved = axis_angle(theta[:3]) @ positions + theta[3:6, None]
        return observed - moved[:, nearest]

    def by_jax() -> Function:
        import jax
        import jax.numpy as jnp

        def axis_angle(v: Any) -> Any:
            angle = jnp.sqrt(jnp.sum(v * v) + 1e-12)
            x, y, z = v / angle
            s, c = jnp.sin(angle), jnp.cos(angle)
            return jnp.array([
                [x * x + (1 - x * x) * c, x * y * (1 - c) - z * s, x * z * (1 - c) + y * s],
                [x * y * (1 - c) + z * s, y * y + (1 - y * y) * c, y * z * (1 - c) - x * s],
                [x * z * (1 - c) - y * s, z * y * (1 - c) + x * s, z * z + (1 - z * z) * c],
            ])  # fmt: skip

        def euler(x: Any, y: Any, z: Any) -> Any:
            rotation_x = jnp.array([[1, 0, 0], [0, jnp.cos(x), -jnp.sin(x)], [0, jnp.sin(x), jnp.cos(x)]])
            rotation_y = jnp.array([[jnp.cos(y), 0, jnp.sin(y)], [0, 1, 0], [-jnp.sin(y), 0, jnp.cos(y)]])
            rotation_z = jnp.array([[jnp.cos(z), -jnp.sin(z), 0], [jnp.sin(z), jnp.cos(z), 0], [0, 0, 1]])
            return rotation_z @ rotation_y @ rotation_x

        def f(theta: Any, observed: Any, nearest: Any) -> Any:
            angles = jnp.zeros((bones, 3))
            for finger in range(5):
                first, k = 2 + 4 * finger, 6 + 4 * finger
                angles = angles.at[first, 0].set(theta[k]).at[first, 1].set(theta[k + 1])
                angles = angles.at[first + 1, 0].set(theta[k + 2]).at[first + 2, 0].set(theta[k + 3])
            absolute: list[Any] = []
            for k in range(bones):
                relative = bases[k] @ jnp.eye(4).at[:3, :3].set(euler(angles[k, 0], angles[k, 1], angles[k, 2]))
                absolute.append(relative if parents[k] < 0 else absolute[parents[k]] @ relative)
            matrices = jnp.stack(absolute) @ inverses
            positions = jnp.einsum("kij,jv,kv->iv", matrices[:, :3], skin, weights)
            moved = axis_angle(theta[:3]) @ positions + theta[3:6, None]
            return observed - moved[:, nearest]

        return jax.jacfwd(f)

    arguments = 0.3 * rng.normal(size=26), rng.normal(size=(3, points)), rng.integers(0, vertices, points)
    return Program(f, arguments, ad.jacobian, by_jax)


# ------------------------------------------------------------------------------------------------------------- determinant


def determinant(n: int) -> Program:
    """The determinant of a matrix by its minors, recursively."""

    def minors(a: Any) -> Any:
        if len(a) == 1:
            return a[0, 0]
        total = 0.0
        for j in range(len(a)):
            rest = np.concatenate([a[1:, :j], a[1:, j + 1 :]], axis=1)
            total = total + (-1) ** j * a[0, j] * minors(rest)
        return total

    def by_jax() -> Function:
        import jax
        import jax.numpy as jnp

        def minors(a: Any) -> Any:
            if len(a) == 1:
                return a[0, 0]
            total = 0.0
            for j in range(len(a)):
                rest = jnp.concatenate([a[1:, :j], a[1:, j + 1 :]], axis=1)
                total = total + (-1) ** j * a[0, j] * minors(rest)
            return total

        return jax.value_and_grad(minors, argnums=(0,))

    return Program(minors, (rng.normal(size=(n, n)),), value_and_gradients(1), by_jax if n < 6 else None)


# --------------------------------------------------------------------------------------------------------- mixture model


def mixture_model(n: int, dimension: int, components: int) -> Program:
    """The likelihood of a Gaussian mixture with a Wishart prior, with triangular factors of the inverse covariances."""
    rows, columns = np.tril_indices(dimension, -1)
    gamma, degrees = 1.0, 0

    def f(weights: Any, means: Any, factors: Any, points: Any) -> Any:
        logs, lower = factors[:, :dimension], factors[:, dimension:]
        q = np.zeros((components, dimension, dimension))
        q[:, rows, columns] = lower
        q[:, np.arange(dimension), np.arange(dimension)] = np.exp(logs)
        totals = np.sum(logs, axis=1)
        centered = points[:, None, :] - means
        products = np.einsum("kij,nkj->nki", q, centered)
        inner = weights + totals - 0.5 * np.sum(products**2, axis=2)
        slack = np.sum(logsumexp(inner, axis=1))
        freedom = dimension + degrees + 1
        prior = np.sum(0.5 * gamma**2 * (np.sum(np.exp(logs) ** 2, axis=1) + np.sum(lower**2, axis=1)) - degrees * totals)
        normal = freedom * dimension * (np.log(gamma) - 0.5 * np.log(2))
        multigamma = 0.25 * dimension * (dimension - 1) * np.log(np.pi)
        multigamma += np.sum(gammaln(0.5 * freedom + 0.5 * (1 - np.arange(1, dimension + 1))))
        constant = -0.5 * n * dimension * np.log(2 * np.pi)
        return constant + slack - n * logsumexp(weights) + prior - components * (normal - multigamma)

    def by_jax() -> Function:
        import jax
        import jax.numpy as jnp

        def g(weights: Any, means: Any, factors: Any, points: Any) -> Any:
            logs, lower = factors[:, :dimension], factors[:, dimension:]
            q = jnp.zeros((components, dimension, dimension)).at[:, rows, columns].set(lower)
            q = q.at[:, np.arange(dimension), np.arange(dimension)].set(jnp.exp(logs))
            totals = jnp.sum(logs, axis=1)
            products = jnp.einsum("kij,nkj->nki", q, points[:, None, :] - means)
            slack = jnp.sum(jax.nn.logsumexp(weights + totals - 0.5 * jnp.sum(products**2, axis=2), axis=1))
            prior = jnp.sum(0.5 * gamma**2 * (jnp.sum(jnp.exp(logs) ** 2, axis=1) + jnp.sum(lower**2, axis=1)) - degrees * totals)
            return slack - n * jax.nn.logsumexp(weights) + prior

        return jax.value_and_grad(g, argnums=(0, 1, 2))

    size = dimension * (dimension + 1) // 2
    arguments = rng.normal(size=components), rng.normal(size=(components, dimension)), 0.3 * rng.normal(size=(components, size))
    return Program(f, (*arguments, rng.normal(size=(n, dimension))), value_and_gradients(3), by_jax)


# ------------------------------------------------------------------------------------------- ordinary differential equation


def runge_kutta(n: int, steps: int) -> Program:
    """The last element after steps of the Runge-Kutta method for a chain in which each element drives the next."""

    def f(x: Any) -> Any:
        def slope(y: Any) -> Any:
            return np.concatenate([x[:1], x[1:] * y[:-1]])

        y, h = np.zeros(n), 1 / steps
        for _ in range(steps):
            k1 = slope(y)
            k2 = slope(y + h / 2 * k1)
            k3 = slope(y + h / 2 * k2)
            k4 = slope(y + h * k3)
            y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        return np.sum(y)

    def by_jax() -> Function:
        import jax
        import jax.numpy as jnp

        def g(x: Any) -> Any:
            def slope(y: Any) -> Any:
                return jnp.concatenate([x[:1], x[1:] * y[:-1]])

            def body(y: Any, _: Any) -> Any:
                k1 = slope(y)
                k2 = slope(y + h / 2 * k1)
                k3 = slope(y + h / 2 * k2)
                k4 = slope(y + h * k3)
                return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4), None

            h = 1 / steps
            return jnp.sum(jax.lax.scan(body, jnp.zeros(n), None, length=steps)[0])

        return jax.value_and_grad(g, argnums=(0,))

    return Program(f, (rng.random(n) + 0.5,), value_and_gradients(1), by_jax)


# -------------------------------------------------------------------------------------------------------- bundle adjustment


def bundle_adjustment(cameras: int, points: int, observations: int) -> Program:
    """The reprojection errors of points seen by cameras with radial distortion; their sparse Jacobian."""
    camera, point = rng.integers(0, cameras, observations), rng.integers(0, points, observations)
    seen = rng.normal(size=(observations, 2))

    def f(x: Any) -> Any:
        c = x[: 11 * cameras].reshape(cameras, 11)[camera]
        p = x[11 * cameras : 11 * cameras + 3 * points].reshape(points, 3)[point]
        w = x[11 * cameras + 3 * points :]
        rotation, center, focal, principal, radial = c[:, :3], c[:, 3:6], c[:, 6:7], c[:, 7:9], c[:, 9:11]
        d = p - center
        angle = np.sqrt(np.sum(rotation**2, axis=1, keepdims=True))
        axis = rotation / angle
        along = np.sum(axis * d, axis=1, keepdims=True) * (1 - np.cos(angle))
        local = d * np.cos(angle) + np.cross(axis, d) * np.sin(angle) + axis * along
        image = local[:, :2] / local[:, 2:]
        r2 = np.sum(image**2, axis=1, keepdims=True)
        image = image * (1 + radial[:, :1] * r2 + radial[:, 1:] * r2**2) * focal + principal
        return np.concatenate([(w[:, None] * (image - seen)).ravel(), 1 - w**2])

    x = rng.normal(size=11 * cameras + 3 * points + observations)
    return Program(f, (x,), lambda f: ad.jacobian(f, sparse=True))


# -------------------------------------------------------------------------------------------------- convolutional network


def lenet(batch: int) -> Program:
    """The loss of a LeNet on images of 28 x 28, in single precision."""

    def f(k1: Any, b1: Any, k2: Any, b2: Any, w1: Any, c1: Any, w2: Any, c2: Any, w3: Any, c3: Any, x: Any, labels: Any) -> Any:
        h = cg.max_pool(cg.relu(cg.cross_correlate(x, k1, padding=2) + b1[:, None, None]), (2, 2))
        h = cg.max_pool(cg.relu(cg.cross_correlate(h, k2) + b2[:, None, None]), (2, 2))
        h = cg.relu(h.reshape(batch, -1) @ w1 + c1)
        h = cg.relu(h @ w2 + c2)
        return cg.softmax_cross_entropy(h @ w3 + c3, labels)

    def by_jax() -> Function:
        import jax
        import jax.numpy as jnp
        from jax import lax

        def pool(h: Any) -> Any:
            return lax.reduce_window(h, -jnp.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")

        def g(k1: Any, b1: Any, k2: Any, b2: Any, w1: Any, c1: Any, w2: Any, c2: Any, w3: Any, c3: Any, x: Any, y: Any) -> Any:
            h = pool(jax.nn.relu(lax.conv(x, k1, (1, 1), "SAME") + b1[:, None, None]))
            h = pool(jax.nn.relu(lax.conv(h, k2, (1, 1), "VALID") + b2[:, None, None]))
            h = jax.nn.relu(h.reshape(batch, -1) @ w1 + c1)
            h = jax.nn.relu(h @ w2 + c2)
            return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(h @ w3 + c3), y[:, None], 1))

        return jax.value_and_grad(g, argnums=tuple(range(10)))

    shapes = (6, 1, 5, 5), (6,), (16, 6, 5, 5), (16,), (400, 120), (120,), (120, 84), (84,), (84, 10), (10,)
    scale = (5, 10, 12, 10, 20, 10, 11, 10, 9, 10)
    parameters = [(rng.normal(size=shape) / by).astype(np.float32) for shape, by in zip(shapes, scale, strict=True)]
    images = rng.random((batch, 1, 28, 28)).astype(np.float32)
    return Program(f, (*parameters, images, rng.integers(0, 10, batch)), value_and_gradients(10), by_jax)


PROGRAMS: dict[str, Callable[[], Program]] = {
    "LSTM 2 x 1,024": lambda: character_model(2, 1024),
    "hand tracking 100": lambda: hand_tracking(100),
    "hand tracking 1,600": lambda: hand_tracking(1600),
    "determinant 6": lambda: determinant(6),
    "determinant 7": lambda: determinant(7),
    "mixture model 1,000 x 2 x 5": lambda: mixture_model(1000, 2, 5),
    "mixture model 1,000 x 20 x 50": lambda: mixture_model(1000, 20, 50),
    "Runge-Kutta 10,000 x 100": lambda: runge_kutta(10_000, 100),
    "bundle adjustment 49 x 7,776 x 31,843": lambda: bundle_adjustment(49, 7776, 31843),
    "LeNet 32, float32": lambda: lenet(32),
}


def interleaved(calls: dict[str, Callable[[], Any]], limit: float = 6.0, rounds: int = 41) -> dict[str, float]:
    """Return the median seconds of calls that take turns."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    end = time.perf_counter() + limit
    while len(next(iter(times.values()))) < rounds and (not next(iter(times.values())) or time.perf_counter() < end):
        for name, call in calls.items():
            begin = time.perf_counter()
            call()
            times[name].append(time.perf_counter() - begin)
    return {name: statistics.median(values) for name, values in times.items()}


def leaves(result: Any) -> list[Any]:
    """Flatten a result to arrays; a sparse matrix to its elements and indices."""
    if isinstance(result, (tuple, list)):
        return [leaf for part in result for leaf in leaves(part)]
    if hasattr(result, "indptr"):
        return [result.data, result.indices, result.indptr]
    return [np.asarray(result)]


def measure(program: Program, use_jax: bool = False, report: bool = False) -> dict[str, float]:
    """Return the seconds of compilation and of the derivative, by name."""
    derivative = (program.derive or value_and_gradients(len(program.arguments)))(program.function)
    begin = time.perf_counter()
    program.function(*program.arguments)
    result = {"NumPy": time.perf_counter() - begin}
    begin = time.perf_counter()
    expected = derivative(*program.arguments)
    result["recorded"] = time.perf_counter() - begin
    compiled = cg.jit(derivative, cache=False, threads=1)
    begin = time.process_time()
    compiled.compile(*program.arguments)
    result["compile"] = time.process_time() - begin
    single = any(leaf.dtype == np.float32 for leaf in leaves(program.arguments))
    for value, exact in zip(leaves(compiled(*program.arguments)), leaves(expected), strict=True):
        tolerance = (1e-3 if single else 1e-9) * np.max(np.abs(exact))
        np.testing.assert_allclose(value, exact, rtol=1e-3 if single else 1e-7, atol=tolerance)
    if report:
        print(compiled.report())
    calls = {"compiled": lambda: compiled(*program.arguments)}
    if use_jax and program.by_jax is not None:
        import jax

        jax.config.update("jax_enable_x64", True)
        peer, arguments = jax.jit(program.by_jax()), [jax.numpy.asarray(x) for x in program.arguments]
        begin = time.process_time()
        found = jax.block_until_ready(peer(*arguments))
        result["JAX compile"] = time.process_time() - begin
        for value, exact in zip(leaves(found)[-1:], leaves(expected)[-1:], strict=True):
            np.testing.assert_allclose(value, exact, rtol=1e-3, atol=1e-3 * np.max(np.abs(exact)))
        calls["JAX"] = lambda: jax.block_until_ready(peer(*arguments))
    return result | interleaved(calls)


def print_table(programs: dict[str, Callable[[], Program]], description: str | None) -> None:
    """Measure the programs that the command line selects, and print a table."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=[], metavar="NAME", help="names that contain one of these")
    parser.add_argument("--jax", action="store_true", help="run JAX in turn")
    parser.add_argument("--report", action="store_true", help="print the compiler's report of each program")
    options = parser.parse_args()
    names = [name for name in programs if not options.only or any(part in name for part in options.only)]
    print("| program | NumPy, ms | recorded, ms | compile, s | compiled, ms | JAX, compile, s | JAX, ms | compiled / JAX |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for name in tqdm(names, disable=None):
        row = measure(programs[name](), options.jax, options.report)
        cells = [f"{1e3 * row[column]:.3g}" for column in ("NumPy", "recorded")]
        cells += [f"{row['compile']:.2f}", f"{1e3 * row['compiled']:.3g}"]
        if "JAX" in row:
            cells += [f"{row['JAX compile']:.2f}", f"{1e3 * row['JAX']:.3g}", f"{row['compiled'] / row['JAX']:.2f}"]
        print("| " + " | ".join([name, *cells, *["-"] * (7 - len(cells))]) + " |", flush=True)


if __name__ == "__main__":
    print_table(PROGRAMS, __doc__)
