"""The compared packages, with their computation of the value and gradients of a function of arrays.

The constructor of a package that is not installed raises an ImportError, and the package is skipped.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Arrays = Sequence[np.ndarray[Any, Any]]
Run = Callable[[], tuple[Any, Sequence[Any]]]


@dataclass(frozen=True)
class Peer:
    """One package.

    Attributes
    ----------
    xp : module
        Its namespace of functions under NumPy's names.
    prepare : callable
        ``prepare(function, parameters, data, rate)`` makes what does not belong to the measurement (leaves, compiled
        functions) and returns the function to be timed: it evaluates ``function(*parameters, *data)``, a scalar, and
        its gradients with respect to the parameters, and, if `rate` is not zero, takes ``rate`` times each gradient
        off its parameter.
    relu : callable or None
        Its relu for the composed network, where ``xp.maximum(h, 0)`` does not work.
    fused_relu, fused_loss : callable or None
        Its own relu and softmax cross entropy from logits and integer labels, where it has them.
    derive : callable or None
        ``derive(operator, function, x, data)`` returns the function to be timed that computes another derivative of
        ``function(x, *data)`` with respect to x.
    threaded : callable or None
        ``threaded(number)`` returns the peer that uses so many threads.
    """

    xp: Any
    prepare: Callable[[Callable[..., Any], Arrays, Arrays, float], Run]
    relu: Callable[[Any], Any] | None = None
    fused_relu: Callable[[Any], Any] | None = None
    fused_loss: Callable[[Any, Any], Any] | None = None
    derive: Callable[[str, Callable[..., Any], Any, Arrays], Callable[[], Any]] | None = None
    threaded: Callable[[int], Peer] | None = None


def by_hand() -> Peer:
    """NumPy alone; the functions it is given return gradients too."""

    def prepare(function: Callable[..., Any], parameters: Arrays, data: Arrays, rate: float) -> Run:
        leaves = [p.copy() for p in parameters]

        def run() -> tuple[Any, Sequence[Any]]:
            value, gradients = function(*leaves, *data)
            if rate:
                for p, g in zip(leaves, gradients, strict=True):
                    p -= rate * g
            return value, gradients

        return run

    return Peer(np, prepare)


def compgraph() -> Peer:
    """Ordinary NumPy on the variables of this package."""
    import compgraph as cg
    from autodiff.reverse import gradient

    def prepare(function: Callable[..., Any], parameters: Arrays, data: Arrays, rate: float) -> Run:
        leaves = [cg.variable(p) for p in parameters]

        def run() -> tuple[Any, Sequence[Any]]:
            loss = function(*leaves, *data)
            by_variable = gradient(loss)
            gradients = [by_variable[p] for p in leaves]
            if rate:
                for p, g in zip(leaves, gradients, strict=True):
                    p -= rate * g
            return loss, gradients

        return run

    def derive(operator: str, function: Callable[..., Any], x: Any, data: Arrays) -> Callable[[], Any]:
        import autodiff

        def value(x: Any) -> Any:
            return function(x, *data)

        return {
            "gradient": lambda: autodiff.grad(value)(x),
            "jacobian": lambda: autodiff.jacobian(value)(x),
            "hessian": lambda: autodiff.hessian(value)(x),
            "sparse hessian": lambda: autodiff.hessian(value, sparse=True)(x).data,
            "hvp": lambda: autodiff.hvp(value)(x, x),
            "jvp": lambda: autodiff.jvp(value, (x,), (x,))[1],
        }[operator]

    # Looked up when called, so that a task without them runs on a package without them.
    return Peer(np, prepare, None, lambda h: cg.relu(h), lambda z, labels: cg.softmax_cross_entropy(z, labels), derive)


def executor(fuse: bool = False) -> Peer:
    """A graph of this package, recorded once and run again by an `Executor`."""
    import compgraph as cg
    from autodiff.reverse import gradients

    def prepare(function: Callable[..., Any], parameters: Arrays, data: Arrays, rate: float) -> Run:
        leaves = [cg.variable(p) for p in parameters]
        holders = [cg.placeholder(d.shape, d.dtype, example=d) for d in data]
        loss = function(*leaves, *holders)
        run_graph = cg.Executor([loss, *gradients(loss, leaves)], fuse=fuse).run
        used = set(cg.topological_order([loss]))
        feed = {holder: d for holder, d in zip(holders, data, strict=True) if holder in used}

        def run() -> tuple[Any, Sequence[Any]]:
            value, *gradients = run_graph(feed)
            if rate:
                for p, g in zip(leaves, gradients, strict=True):
                    p -= rate * g
            return value, gradients

        return run

    return Peer(np, prepare, None, lambda h: cg.relu(h), lambda z, labels: cg.softmax_cross_entropy(z, labels))


def fused_executor() -> Peer:
    """The same with ``fuse=True``."""
    return executor(fuse=True)


def jit(threads: int = 1) -> Peer:
    """Functions of this package's, compiled by `compgraph.jit`; a step of training is one compiled function."""
    import autodiff
    import compgraph as cg

    def prepare(function: Callable[..., Any], parameters: Arrays, data: Arrays, rate: float) -> Run:
        leaves: Any = [p.copy() for p in parameters]
        derivative = autodiff.value_and_grad(function, argnums=tuple(range(len(leaves))))

        def step(leaves: Any, data: Any) -> Any:
            value, gradients = derivative(*leaves, *data)
            return value, gradients, [p - rate * g for p, g in zip(leaves, gradients, strict=True)] if rate else None

        compiled = cg.jit(step, threads=threads).compile(leaves, list(data))

        def run() -> tuple[Any, Sequence[Any]]:
            nonlocal leaves
            value, gradients, stepped = compiled(leaves, list(data))
            leaves = leaves if stepped is None else stepped
            return value, gradients

        return run

    def derive(operator: str, function: Callable[..., Any], x: Any, data: Arrays) -> Callable[[], Any]:
        derivative = {"jacobian": autodiff.jacobian, "hessian": autodiff.hessian}[operator]
        compiled = cg.jit(derivative(lambda x: function(x, *data)), threads=threads).compile(x)
        return lambda: compiled(x)

    return Peer(np, prepare, None, lambda h: cg.relu(h), lambda z, labels: cg.softmax_cross_entropy(z, labels), derive, jit)


def autograd() -> Peer:
    """HIPS/autograd."""
    import autograd.numpy as anp
    from autograd import hessian, jacobian, value_and_grad

    def prepare(function: Callable[..., Any], parameters: Arrays, data: Arrays, rate: float) -> Run:
        leaves = [p.copy() for p in parameters]
        derivative = value_and_grad(function, argnum=tuple(range(len(leaves))))

        def run() -> tuple[Any, Sequence[Any]]:
            value, gradients = derivative(*leaves, *data)
            if rate:
                for p, g in zip(leaves, gradients, strict=True):
                    p -= rate * g
            return value, gradients

        return run

    def derive(operator: str, function: Callable[..., Any], x: Any, data: Arrays) -> Callable[[], Any]:
        derivative = {"jacobian": jacobian, "hessian": hessian}[operator](lambda x: function(x, *data))
        return lambda: derivative(x)

    return Peer(anp, prepare, derive=derive)


def mygrad() -> Peer:
    """MyGrad."""
    import mygrad as mg
    from mygrad.nnet import relu, softmax_crossentropy

    def prepare(function: Callable[..., Any], parameters: Arrays, data: Arrays, rate: float) -> Run:
        leaves = [mg.tensor(p) for p in parameters]

        def run() -> tuple[Any, Sequence[Any]]:
            loss = function(*leaves, *data)
            loss.backward()
            gradients: list[Any] = [p.grad for p in leaves]
            if rate:
                for p, g in zip(leaves, gradients, strict=True):
                    p.data -= rate * g
            return loss, gradients

        return run

    return Peer(mg, prepare, None, relu, softmax_crossentropy)


def eager_torch(threads: int = 1) -> Peer:
    """Eager PyTorch; where others run it has one thread."""
    import torch

    torch.set_num_threads(1)

    def within(run: Run) -> Run:
        """The same with the requested number of threads."""

        def threaded() -> tuple[Any, Sequence[Any]]:
            torch.set_num_threads(threads)
            try:
                return run()
            finally:
                torch.set_num_threads(1)

        return run if threads == 1 else threaded

    def prepare(function: Callable[..., Any], parameters: Arrays, data: Arrays, rate: float) -> Run:
        leaves = [torch.tensor(p, requires_grad=True) for p in parameters]
        tensors = [torch.tensor(d) for d in data]

        def run() -> tuple[Any, Sequence[Any]]:
            loss = function(*leaves, *tensors)
            gradients = torch.autograd.grad(loss, leaves)
            if rate:
                with torch.no_grad():
                    for p, g in zip(leaves, gradients, strict=True):
                        p -= rate * g
            return loss, gradients

        return within(run)

    def derive(operator: str, function: Callable[..., Any], x: Any, data: Arrays) -> Callable[[], Any]:
        tensors = [torch.tensor(d) for d in data]
        derivative = {"jacobian": torch.func.jacrev, "hessian": torch.func.hessian}[operator](lambda x: function(x, *tensors))
        leaf = torch.tensor(x)
        return lambda: derivative(leaf)

    return Peer(torch, prepare, torch.relu, torch.relu, torch.nn.functional.cross_entropy, derive, eager_torch)


def jax() -> Peer:
    """Jitted JAX, in double precision; a step of training is one compiled function."""
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)

    def prepare(function: Callable[..., Any], parameters: Arrays, data: Arrays, rate: float) -> Run:
        leaves = [jnp.asarray(p) for p in parameters]
        tensors = [jnp.asarray(d) for d in data]
        derivative = jax.value_and_grad(function, argnums=tuple(range(len(leaves))))

        def step(leaves: Any, tensors: Any) -> Any:
            value, gradients = derivative(*leaves, *tensors)
            return value, gradients, [p - rate * g for p, g in zip(leaves, gradients, strict=True)] if rate else leaves

        compiled = jax.jit(step)

        def run() -> tuple[Any, Sequence[Any]]:
            nonlocal leaves
            value, gradients, leaves = jax.block_until_ready(compiled(leaves, tensors))
            return value, gradients

        return run

    def derive(operator: str, function: Callable[..., Any], x: Any, data: Arrays) -> Callable[[], Any]:
        tensors = [jnp.asarray(d) for d in data]
        derivative = jax.jit({"jacobian": jax.jacrev, "hessian": jax.hessian}[operator](lambda x: function(x, *tensors)))
        leaf = jnp.asarray(x)
        return lambda: jax.block_until_ready(derivative(leaf))

    return Peer(jnp, prepare, derive=derive)


# Names on the command line -> constructors, and names in the table.
PEERS: dict[str, tuple[Callable[[], Peer], str]] = {
    "numpy": (by_hand, "NumPy"),
    "compgraph": (compgraph, "compgraph"),
    "executor": (executor, "executor"),
    "fused": (fused_executor, "executor, fuse"),
    "jit": (jit, "cg.jit"),
    "autograd": (autograd, "autograd"),
    "mygrad": (mygrad, "MyGrad"),
    "torch": (eager_torch, "PyTorch"),
    "jax": (jax, "JAX (jit)"),
}

USUAL = tuple(name for name in PEERS if name not in ("executor", "fused"))
RECORDED = tuple(name for name in PEERS if name != "fused")  # where graphs are worth recording once
