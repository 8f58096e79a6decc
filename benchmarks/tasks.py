"""The tasks: each as a function of a NumPy-like namespace, and with a gradient by hand.

The version by hand is NumPy code of a programmer who derived the gradient on paper; it stores the values that the derivative
needs. All packages are checked against it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse
from peers import PEERS, RECORDED, USUAL, Arrays, Peer, Run

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Task:
    """A computation whose value and gradients are timed.

    Attributes
    ----------
    name, title : str
        The names on the command line and in the table.
    parameters, data : sequence of arrays
        The variables, and the other arguments.
    by_hand : callable
        ``by_hand(*parameters, *data)`` returns the value and the list of gradients.
    function : callable
        ``function(peer)`` returns the function of the same arguments that returns the value.
    rate : float
        The rate of the step down the gradients that follows; zero for none.
    special : dict
        For a peer that needs another function, by its name.
    peers : tuple of str
        The packages.
    tolerance : float
        By how much results may differ, relatively.
    threads : int
        The number of threads of packages that can set it.
    """

    name: str
    title: str
    parameters: Arrays
    data: Arrays
    by_hand: Callable[..., tuple[Any, list[Array]]]
    function: Callable[[Peer], Callable[..., Any]]
    rate: float = 0.0
    special: dict[str, Callable[[Peer], Callable[..., Any]]] = field(default_factory=dict)
    peers: tuple[str, ...] = USUAL
    tolerance: float = 1e-8
    threads: int = 1

    def start(self, name: str, peer: Peer) -> Run:
        """Make the function to be timed for a peer."""
        if self.threads > 1 and peer.threaded is not None:
            peer = peer.threaded(self.threads)
        function = self.by_hand if name == "numpy" else self.special.get(name, self.function)(peer)
        return peer.prepare(function, self.parameters, self.data, self.rate)


# ---------------------------------------------------------------------------------------------- chain


def chain(size: int, threads: int = 1) -> Task:
    """Fifty-one operations, one after the other, on an array of `size` elements."""
    x = np.random.default_rng(1).standard_normal(size)
    name, title = f"chain-{size}", f"chain of 51 operations on {size:,}"
    if threads == 1:
        return Task(name, title, [x], [], _chain_by_hand, _chain, peers=tuple(PEERS))
    peers = ("jit", "torch")  # JAX sets its number of threads only once
    return Task(f"{name}-threads", f"{title}, {threads} threads", [x], [], _chain_by_hand, _chain, peers=peers, threads=threads)


def _chain(peer: Peer) -> Callable[..., Any]:
    xp = peer.xp

    def value(x: Any) -> Any:
        for _ in range(10):
            x = xp.tanh(1.01 * x) + 0.5 * xp.sin(x)
        return x.sum()

    return value


def _chain_by_hand(x: Array) -> tuple[Any, list[Array]]:
    stored = []
    for _ in range(10):
        t = np.tanh(1.01 * x)
        stored.append((x, t))
        x = t + 0.5 * np.sin(x)
    cotangent = np.ones_like(x)
    for before, t in reversed(stored):
        cotangent = cotangent * (1.01 * (1 - t * t) + 0.5 * np.cos(before))
    return x.sum(), [cotangent]


# -------------------------------------------------------------------------------------------- network


def network(fused: bool, sizes: tuple[int, int, int] = (784, 64, 10), batch: int = 32) -> Task:
    """One training step of a ReLU network with softmax cross entropy.

    Parameters
    ----------
    fused : bool
        Whether to use each package's own relu and loss, where it has them, or to compose them.
    sizes : tuple of int
        The widths of the input, the hidden layer and the output.
    batch : int
        How many examples.
    """
    rng = np.random.default_rng(2)
    inputs, hidden, outputs = sizes
    parameters = [
        rng.standard_normal((inputs, hidden)) / np.sqrt(inputs),
        0.1 * rng.standard_normal(hidden),
        rng.standard_normal((hidden, outputs)) / np.sqrt(hidden),
        0.1 * rng.standard_normal(outputs),
    ]
    labels = rng.integers(outputs, size=batch)
    data = [rng.random((batch, inputs)), labels, np.eye(outputs)[labels]]
    kind = "fused" if fused else "composed"
    title = f"network {'-'.join(map(str, sizes))}, {kind} loss"
    function = _network_fused if fused else _network_composed
    return Task(f"network-{kind}", title, parameters, data, _network_by_hand, function, rate=1e-3, peers=tuple(PEERS))


def _network_composed(peer: Peer) -> Callable[..., Any]:
    xp = peer.xp
    relu = peer.relu or (lambda h: xp.maximum(h, 0))

    def loss(w1: Any, b1: Any, w2: Any, b2: Any, images: Any, labels: Any, one_hot: Any) -> Any:
        logits = relu(images @ w1 + b1) @ w2 + b2
        shifted = logits - xp.amax(logits, axis=1, keepdims=True)
        return (xp.log(xp.exp(shifted).sum(axis=1)) - (one_hot * shifted).sum(axis=1)).mean()

    return loss


def _network_fused(peer: Peer) -> Callable[..., Any]:
    relu, cross_entropy = peer.fused_relu, peer.fused_loss
    if relu is None or cross_entropy is None:
        return _network_composed(peer)

    def loss(w1: Any, b1: Any, w2: Any, b2: Any, images: Any, labels: Any, one_hot: Any) -> Any:
        return cross_entropy(relu(images @ w1 + b1) @ w2 + b2, labels)

    return loss


def _network_by_hand(
    w1: Array, b1: Array, w2: Array, b2: Array, images: Array, labels: Array, one_hot: Array
) -> tuple[Any, list[Array]]:
    h = np.maximum(images @ w1 + b1, 0)
    logits = h @ w2 + b2
    shifted = logits - logits.max(axis=1, keepdims=True)
    e = np.exp(shifted)
    total = e.sum(axis=1, keepdims=True)
    loss = (np.log(total).sum() - (one_hot * shifted).sum()) / len(images)
    d_logits = (e / total - one_hot) / len(images)
    d_h = (d_logits @ w2.T) * (h > 0)
    return loss, [images.T @ d_h, d_h.sum(axis=0), h.T @ d_logits, d_logits.sum(axis=0)]


# ----------------------------------------------------------------------------------------------- loop


def loop(length: int, peers: tuple[str, ...] = RECORDED) -> Task:
    """Add products of neighboring elements in a Python loop; the version by hand is a loop too."""
    x = np.random.default_rng(3).standard_normal(length + 1)
    special = {"jax": lambda peer: _loop_compiled(length)}
    return Task(
        f"loop-{length}",
        f"loop of {length:,}",
        [x],
        [],
        _loop_by_hand,
        lambda peer: _loop,
        special=special,
        peers=peers,
    )


def _loop(x: Any) -> Any:
    total = 0.0
    for i in range(len(x) - 1):
        total = total + x[i] * x[i + 1]
    return total


def _loop_compiled(length: int) -> Callable[..., Any]:
    from jax import lax

    return lambda x: lax.fori_loop(0, length, lambda i, total: total + x[i] * x[i + 1], 0.0)


def _loop_by_hand(x: Array) -> tuple[Any, list[Array]]:
    total = 0.0
    cotangent = np.zeros_like(x)
    for i in range(len(x) - 1):
        total = total + x[i] * x[i + 1]
        cotangent[i] += x[i + 1]
        cotangent[i + 1] += x[i]
    return total, [cotangent]


# --------------------------------------------------------------------------------------------- layers


def layers(count: int, checkpointed: bool, size: int = 20_000) -> Task:
    """A chain of layers, as it is, or with its segments under `autodiff.checkpoint`."""
    x = np.random.default_rng(4).standard_normal(size)
    kind = "checkpointed" if checkpointed else "stored"
    function = _layers_checkpointed if checkpointed else _layers
    return Task(
        f"layers-{count}-{kind}",
        f"chain of {count:,} layers, {kind}",
        [x],
        [],
        lambda x: _layers_by_hand(x, count),
        lambda peer: lambda x: function(x, count),
        peers=("compgraph",),
    )


def _layer(x: Any) -> Any:
    return x + 0.002 * (np.tanh(1.01 * x) - 0.5 * np.sin(x))


def _layers(x: Any, count: int) -> Any:
    for _ in range(count):
        x = _layer(x)
    return np.sum(x)


def _layers_checkpointed(x: Any, count: int) -> Any:
    from autodiff import checkpointed_chain

    return np.sum(checkpointed_chain([_layer] * count, x))


def _layers_by_hand(x: Array, count: int) -> tuple[Any, list[Array]]:
    cotangent = np.ones_like(x)
    for _ in range(count):
        t = np.tanh(1.01 * x)
        cotangent *= 1 + 0.002 * (1.01 * (1 - t * t) - 0.5 * np.cos(x))
        x = x + 0.002 * (t - 0.5 * np.sin(x))
    return x.sum(), [cotangent]


# ---------------------------------------------------------------------------------------- convolution


def convolution(batch: int = 32, channels: int = 16, results: int = 32, side: int = 28) -> Task:
    """A padded 3 x 3 cross-correlation of images with channels, in single precision; its results are weighted and summed."""
    rng = np.random.default_rng(6)
    shapes = (batch, channels, side, side), (results, channels, 3, 3), (batch, results, side, side)
    x, kernel, weights = (rng.standard_normal(shape).astype(np.float32) for shape in shapes)
    return Task(
        "convolution" if side == 28 else f"convolution-{side}",
        f"3 x 3 convolution of {batch} x {channels} x {side} x {side}, float32",
        [x, kernel],
        [weights],
        _convolution_by_hand,
        _convolution,
        special={"torch": _convolution_torch},
        peers=("numpy", "compgraph", "jit", "torch"),
        tolerance=1e-3,
    )


def _convolution(peer: Peer) -> Callable[..., Any]:
    import compgraph as cg

    return lambda x, kernel, weights: np.sum(cg.cross_correlate(x, kernel, padding=1) * weights)


def _convolution_torch(peer: Peer) -> Callable[..., Any]:
    conv2d = peer.xp.nn.functional.conv2d
    return lambda x, kernel, weights: (conv2d(x, kernel, padding=1) * weights).sum()


def _convolution_by_hand(x: Array, kernel: Array, weights: Array) -> tuple[Any, list[Array]]:
    batch, channels, height, width = x.shape
    padded = np.pad(x, [(0, 0), (0, 0), (1, 1), (1, 1)])
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3)).transpose(0, 1, 4, 5, 2, 3)
    columns = windows.reshape(batch, channels * 9, height * width)
    matrix, flat = kernel.reshape(len(kernel), -1), weights.reshape(batch, len(kernel), -1)
    value = np.sum((matrix @ columns).reshape(weights.shape) * weights)
    back = (matrix.T @ flat).reshape(batch, channels, 3, 3, height, width)
    cotangent = np.zeros_like(padded)
    for i, j in np.ndindex(3, 3):
        cotangent[:, :, i : i + height, j : j + width] += back[:, :, i, j]
    return value, [cotangent[:, :, 1:-1, 1:-1], (flat @ columns.swapaxes(1, 2)).sum(axis=0).reshape(kernel.shape)]


# ----------------------------------------------------------------------------------- more derivatives


@dataclass(frozen=True)
class Derivative(Task):
    """A computation whose timed derivative is chosen by `operator`, with respect to its only parameter.

    Attributes
    ----------
    operator : str
        Which: "forward" (the value alone), "gradient", "hessian", "jacobian", "jvp", "hvp" or "sparse hessian"; products are
        with the parameter itself.
    """

    operator: str = ""

    def start(self, name: str, peer: Peer) -> Run:
        """Make the function to be timed for a peer."""
        if name == "numpy":
            return lambda: self.by_hand(*self.parameters, *self.data)
        assert peer.derive is not None
        derived = peer.derive(self.operator, self.function(peer), self.parameters[0], self.data)
        return lambda: (derived(), [])


OURS = ("numpy", "compgraph")
WITH_OPERATORS = ("numpy", "compgraph", "jit", "autograd", "torch", "jax")


def chain_derivative(size: int, operator: str, peers: tuple[str, ...]) -> Task:
    """A derivative of `chain`, or its value alone."""
    x = np.random.default_rng(1).standard_normal(size)
    by_hand = {
        "forward": lambda x: (_chain(PEERS["numpy"][0]())(x), []),
        "gradient": lambda x: (_chain_by_hand(x)[1][0], []),
        "jvp": lambda x: (_chain_jvp_by_hand(x), []),
        "hvp": lambda x: (_chain_hvp_by_hand(x), []),
    }[operator]
    title = f"{operator} of the chain on {size:,}"
    return Derivative(f"{operator}-chain-{size}", title, [x], [], by_hand, _chain, peers=peers, operator=operator)


def _chain_jvp_by_hand(x: Array) -> Array:
    tangent = x
    for _ in range(10):
        t = np.tanh(1.01 * x)
        tangent = tangent * (1.01 * (1 - t * t) + 0.5 * np.cos(x))
        x = t + 0.5 * np.sin(x)
    return tangent.sum()  # type: ignore[no-any-return]


def _chain_hvp_by_hand(x: Array) -> Array:
    """The Hessian is diagonal: the second derivative of each element of the result, along its own of `x`."""
    start, slope, curvature = x, np.ones_like(x), np.zeros_like(x)
    for _ in range(10):
        t, s = np.tanh(1.01 * x), 0.5 * np.sin(x)
        first = 1.01 * (1 - t * t) + 0.5 * np.cos(x)
        curvature = first * curvature - (2 * 1.01**2 * t * (1 - t * t) + s) * slope * slope
        slope = first * slope
        x = t + s
    return curvature * start


def rosenbrock(size: int, operator: str, peers: tuple[str, ...] = WITH_OPERATORS) -> Task:
    """A derivative of the Rosenbrock function; its Hessian has three diagonals."""
    x = np.random.default_rng(4).standard_normal(size)
    by_hand = {
        "gradient": lambda x: (_rosenbrock_gradient(x), []),
        "hvp": lambda x: (_tridiagonal(x).dot(x), []),
        "hessian": lambda x: (_tridiagonal(x).toarray(), []),
        "sparse hessian": lambda x: (_tridiagonal(x).data, []),
    }[operator]
    name = f"{operator.replace(' ', '-')}-{size}"
    return Derivative(name, f"{operator} of {size:,} variables", [x], [], by_hand, _rosenbrock, peers=peers, operator=operator)


def _rosenbrock(peer: Peer) -> Callable[..., Any]:
    xp = peer.xp
    return lambda x: xp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def _rosenbrock_gradient(x: Array) -> Array:
    before, after = x[:-1], x[1:]
    rise = 200 * (after - before**2)
    gradient = np.zeros_like(x)
    gradient[:-1] = -2 * before * rise - 2 * (1 - before)
    gradient[1:] += rise
    return gradient


def _tridiagonal(x: Array) -> Any:
    """The Hessian of the Rosenbrock function."""
    before, after = x[:-1], x[1:]
    middle = np.zeros_like(x)
    middle[:-1] = 1200 * before**2 - 400 * after + 2
    middle[1:] += 200
    return scipy.sparse.diags_array([-400 * before, middle, -400 * before], offsets=[-1, 0, 1], format="csr")


def vector_map(size: int) -> Task:
    """The Jacobian of a map of twenty operations from vectors to vectors."""
    rng = np.random.default_rng(5)
    x, a = rng.standard_normal(size), rng.standard_normal((size, size)) / np.sqrt(size)
    return Derivative(
        f"jacobian-{size}", f"Jacobian of {size} by {size}, twenty operations", [x], [a], _vector_map_by_hand, _vector_map,
        peers=WITH_OPERATORS, operator="jacobian",
    )  # fmt: skip


def _vector_map(peer: Peer) -> Callable[..., Any]:
    xp = peer.xp

    def value(x: Any, a: Any) -> Any:
        for _ in range(4):
            x = xp.tanh(xp.matmul(a, x)) + 0.5 * xp.sin(x)
        return x

    return value


def _vector_map_by_hand(x: Array, a: Array) -> tuple[Any, list[Array]]:
    jacobian = np.eye(len(x))
    for _ in range(4):
        t = np.tanh(a @ x)
        jacobian = (1 - t * t)[:, None] * (a @ jacobian) + (0.5 * np.cos(x))[:, None] * jacobian
        x = t + 0.5 * np.sin(x)
    return jacobian, []
