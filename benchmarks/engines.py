"""Programs with derivatives on several engines: NumPy, machine code, JAX and PyTorch, by this package and written by hand.

Each program is a loss as people write it in NumPy; its value and gradient are computed

- by NumPy, and by ``cg.jit``, on the processor,
- by ``cg.jit(..., backend="jax")`` and ``backend="torch"`` on the library's default device, a GPU if available,
- by JAX and by PyTorch, from programs written by hand for them.

Arguments are on the device, and products have the precision of their dtype. Results are compared before the timings; times are
medians. ``python benchmarks/engines.py`` prints a table; ``--scale large`` selects sizes for a GPU.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import autodiff as ad
import compgraph as cg

ENGINES = ("NumPy", "cg.jit", "cg on jax", "jax", "cg on torch", "torch")


class Program(NamedTuple):
    """A loss and its arguments. The first argument is differentiated; ``loss_of(np)`` is the loss, written for a library."""

    name: str
    loss_of: Callable[[Any], Callable[..., Any]]
    arguments: tuple[Any, ...]


def by_library(**losses: Callable[..., Any]) -> Callable[[Any], Callable[..., Any]]:
    """Return the function that selects a loss by the module of its library."""
    return lambda library: losses[library.__name__.partition(".")[0]]


def perceptron(batch: int, width: int) -> Program:
    """A step of a perceptron with two hidden layers, float32."""
    rng = np.random.default_rng(0)
    sizes = (784, width, width, 10)
    weights = [rng.normal(size=s).astype(np.float32) / np.float32(np.sqrt(s[0])) for s in itertools.pairwise(sizes)]
    x = rng.normal(size=(batch, 784)).astype(np.float32)
    labels = np.eye(10, dtype=np.float32)[rng.integers(0, 10, batch)]

    def with_library(xp: Any) -> Callable[..., Any]:
        def loss(weights: Any, x: Any, labels: Any) -> Any:
            for w in weights[:-1]:
                x = xp.tanh(x @ w)
            scores = x @ weights[-1]
            return xp.mean(xp.log(xp.sum(xp.exp(scores), axis=1)) - xp.sum(scores * labels, axis=1))

        return loss

    return Program("perceptron", with_library, (weights, x, labels))


def lenet(batch: int) -> Program:
    """A step of LeNet-5 on images of 28 x 28, float32."""
    rng = np.random.default_rng(1)
    shapes = [(6, 1, 5, 5), (16, 6, 5, 5), (400, 120), (120, 84), (84, 10)]
    weights = [(rng.normal(size=s) / np.sqrt(np.prod(s[1:]) if len(s) > 2 else s[0])).astype(np.float32) for s in shapes]
    images = rng.normal(size=(batch, 1, 28, 28)).astype(np.float32)
    labels = np.eye(10, dtype=np.float32)[rng.integers(0, 10, batch)]

    def loss(weights: Any, x: Any, labels: Any) -> Any:
        x = cg.max_pool(cg.relu(cg.cross_correlate(x, weights[0], padding=2)), (2, 2))
        x = cg.max_pool(cg.relu(cg.cross_correlate(x, weights[1])), (2, 2))
        x = np.reshape(x, (x.shape[0], -1))
        for w in weights[2:-1]:
            x = cg.relu(x @ w)
        return cg.softmax_cross_entropy(x @ weights[-1], labels)

    def by_jax(weights: Any, x: Any, labels: Any) -> Any:
        import jax
        import jax.numpy as jnp
        from jax import lax

        def pooled(x: Any) -> Any:
            return lax.reduce_window(x, -jnp.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")

        x = pooled(jax.nn.relu(lax.conv_general_dilated(x, weights[0], (1, 1), ((2, 2), (2, 2)))))
        x = pooled(jax.nn.relu(lax.conv_general_dilated(x, weights[1], (1, 1), "VALID")))
        x = x.reshape(x.shape[0], -1)
        for w in weights[2:-1]:
            x = jax.nn.relu(x @ w)
        return -jnp.mean(jnp.sum(labels * jax.nn.log_softmax(x @ weights[-1]), axis=1))

    def by_torch(weights: Any, x: Any, labels: Any) -> Any:
        from torch.nn import functional as f

        x = f.max_pool2d(f.relu(f.conv2d(x, weights[0], padding=2)), 2)
        x = f.max_pool2d(f.relu(f.conv2d(x, weights[1])), 2).flatten(1)
        for w in weights[2:-1]:
            x = f.relu(x @ w)
        return f.cross_entropy(x @ weights[-1], labels)

    return Program("LeNet", by_library(numpy=loss, jax=by_jax, torch=by_torch), (weights, images, labels))


def heat(n: int, steps: int) -> Program:
    """The heat equation in two dimensions, stepped in place; with respect to the first temperatures."""
    first = np.random.default_rng(2).normal(size=(n, n))

    def loss(u: Any) -> Any:
        u = u.copy()
        for _ in range(steps):
            u[1:-1, 1:-1] += 0.2 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * u[1:-1, 1:-1])
        return np.sum(u**2)

    def by_jax(u: Any) -> Any:
        import jax.numpy as jnp
        from jax import lax

        def step(u: Any, _: Any) -> Any:
            change = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * u[1:-1, 1:-1]
            return u.at[1:-1, 1:-1].add(0.2 * change), None

        return jnp.sum(lax.scan(step, u, None, length=steps)[0] ** 2)

    def by_torch(u: Any) -> Any:
        from torch.nn import functional as f

        for _ in range(steps):
            change = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * u[1:-1, 1:-1]
            u = u + f.pad(0.2 * change, (1, 1, 1, 1))
        return (u**2).sum()

    return Program("heat 2-D", by_library(numpy=loss, jax=by_jax, torch=by_torch), (first,))


def bodies(n: int, steps: int) -> Program:
    """Gravitating bodies, stepped by leapfrog; with respect to the first positions."""
    rng = np.random.default_rng(3)
    x, v, mass = rng.normal(size=(n, 3)), 0.1 * rng.normal(size=(n, 3)), rng.uniform(0.5, 1.5, n) / n

    def with_library(xp: Any) -> Callable[..., Any]:
        def loss(x: Any, v: Any, mass: Any) -> Any:
            for _ in range(steps):
                apart = x[None, :, :] - x[:, None, :]
                near = xp.sum(apart * apart, axis=2) + 0.01
                v = v + 0.01 * xp.sum(apart * (mass[None, :] * near**-1.5)[:, :, None], axis=1)
                x = x + 0.01 * v
            return xp.sum(x * x) + xp.sum(v * v)

        return loss

    return Program("n bodies", with_library, (x, v, mass))


def mixture(n: int, d: int, k: int) -> Program:
    """The likelihood of a mixture of Gaussians with full covariances; with respect to means."""
    rng = np.random.default_rng(4)
    means, x = rng.normal(size=(k, d)), rng.normal(size=(n, d))
    factors, shares = np.eye(d) + 0.1 * np.tril(rng.normal(size=(k, d, d))), np.full(k, -np.log(k))

    def with_library(xp: Any) -> Callable[..., Any]:
        def loss(means: Any, x: Any, factors: Any, shares: Any) -> Any:
            off = xp.einsum("kij,nkj->nki", factors, x[:, None, :] - means[None, :, :])
            likelihoods = xp.exp(shares - 0.5 * xp.sum(off * off, axis=2))
            return -xp.sum(xp.log(xp.sum(likelihoods, axis=1)))

        return loss

    return Program("mixture", with_library, (means, x, factors, shares))


SCALES: dict[str, Callable[[], list[Program]]] = {
    "small": lambda: [perceptron(128, 128), lenet(32), heat(64, 20), bodies(128, 4), mixture(1000, 6, 8)],
    "large": lambda: [perceptron(4096, 1024), lenet(1024), heat(1024, 50), bodies(2048, 8), mixture(100_000, 16, 24)],
}


def on_device(engine: str, value: Any) -> Any:
    """Return arguments as arrays of an engine's library."""
    if isinstance(value, list):
        return [on_device(engine, part) for part in value]
    if engine.endswith("jax"):
        import jax.numpy as jnp

        return jnp.asarray(value)
    if engine.endswith("torch"):
        import torch

        return torch.asarray(value, device=torch.get_default_device())
    return value


def runner(engine: str, program: Program) -> Callable[[], Any]:
    """Return a function that computes value and gradient once, and waits for them."""
    arguments = on_device(engine, list(program.arguments))
    if engine == "jax":
        import jax
        import jax.numpy as jnp

        compiled = jax.jit(jax.value_and_grad(program.loss_of(jnp)))
        return lambda: jax.block_until_ready(compiled(*arguments))
    if engine == "torch":
        return _by_torch(program, arguments)
    function: Any = ad.value_and_grad(program.loss_of(np))
    if engine != "NumPy":
        backend = engine.removeprefix("cg on ") if engine.startswith("cg on ") else None
        function = cg.jit(function, backend=backend)
        function.compile(*program.arguments)
    wait: Callable[[Any], Any] = lambda result: result  # noqa: E731
    if engine == "cg on jax":
        import jax

        wait = jax.block_until_ready
    if engine == "cg on torch":
        wait = _synchronized
    return lambda: wait(function(*arguments))


def _by_torch(program: Program, arguments: list[Any]) -> Callable[[], Any]:
    import torch

    def leaves(value: Any) -> list[Any]:
        return value if isinstance(value, list) else [value]

    def run() -> Any:
        first = [x.detach().requires_grad_() for x in leaves(arguments[0])]
        value = program.loss_of(torch)(first if isinstance(arguments[0], list) else first[0], *arguments[1:])
        return _synchronized((value.detach(), torch.autograd.grad(value, first)))

    return run


def _synchronized(result: Any) -> Any:
    import torch

    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return result


def median_time(call: Callable[[], Any], limit: float) -> float:
    """Return the median time of a call in seconds, of at least three and of as many as fit into the limit."""
    times: list[float] = []
    begun = time.perf_counter()
    while len(times) < 3 or time.perf_counter() - begun < limit:
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", choices=SCALES, default="small")
    parser.add_argument("--engines", nargs="*", choices=ENGINES, default=ENGINES)
    parser.add_argument("--limit", type=float, default=2.0, help="seconds for each time")
    parser.add_argument("--device", default="cpu", help="PyTorch's device, such as cuda; JAX uses its default device")
    options = parser.parse_args()
    if any("torch" in engine for engine in options.engines):
        import torch

        torch.set_default_device(options.device)
        torch.backends.cudnn.allow_tf32 = False
    if any("jax" in engine for engine in options.engines):
        import jax

        jax.config.update("jax_enable_x64", True)
        jax.config.update("jax_default_matmul_precision", "highest")
        print("jax device:", jax.devices()[0].device_kind)
    print(f"{'milliseconds':12s}" + "".join(f"{engine:>14s}" for engine in options.engines))
    for program in SCALES[options.scale]():
        cells, expected = [], None
        for engine in options.engines:
            try:
                begun = time.perf_counter()
                run = runner(engine, program)
                value = float(run()[0])
                first = time.perf_counter() - begun
                expected = value if expected is None else expected
                agrees = abs(value - expected) <= 1e-4 * abs(expected)
                cells.append(f"{1e3 * median_time(run, options.limit):9.2f}{'' if agrees else '!'} {first:3.0f}s")
            except (ImportError, NotImplementedError) as error:
                cells.append(f"{type(error).__name__[:13]:>13s}")
        print(f"{program.name:12s}" + "".join(f"{cell:>14s}" for cell in cells), flush=True)
    print("Behind each time: seconds until the first result. '!': the value differs.")


if __name__ == "__main__":
    main()
