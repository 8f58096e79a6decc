"""Further tasks that gain from compilation: loops that write in place, and all pairs of points."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from peers import RECORDED, Peer
from tasks import Array, Task

IN_PLACE = tuple(name for name in RECORDED if name not in ("autograd", "mygrad"))  # autograd has no writes, MyGrad no ``copy``
RATE = 0.4  # of the heat equation: the time step, divided by the square of the distance between points


# ----------------------------------------------------------------------------------------- recurrence


def recurrence(length: int) -> Task:
    """Each element is computed from the one before, in place; by hand it is a loop as well, in JAX a scan."""
    x = np.random.default_rng(7).standard_normal(length)
    special = {"torch": lambda peer: _recurrence_torch(peer), "jax": lambda peer: _recurrence_scanned}
    return Task(
        f"recurrence-{length}", f"recurrence of {length:,}, in place", [x], [], _recurrence_by_hand, lambda peer: _recurrence,
        special=special, peers=IN_PLACE,
    )  # fmt: skip


def _recurrence(x: Any) -> Any:
    y = x.copy()
    for i in range(1, len(y)):
        y[i] += 0.9 * np.tanh(y[i - 1])
    return np.sum(y * y)


def _recurrence_torch(peer: Peer) -> Callable[..., Any]:
    torch = peer.xp

    def value(x: Any) -> Any:
        y = x.clone()
        for i in range(1, len(y)):
            y[i] += 0.9 * torch.tanh(y[i - 1])
        return (y * y).sum()

    return value


def _recurrence_scanned(x: Any) -> Any:
    import jax.numpy as jnp
    from jax import lax

    def turn(before: Any, added: Any) -> tuple[Any, Any]:
        after = added + 0.9 * jnp.tanh(before)
        return after, after

    _, rest = lax.scan(turn, x[0], x[1:])
    return x[0] ** 2 + (rest * rest).sum()


def _recurrence_by_hand(x: Array) -> tuple[Any, list[Array]]:
    y, slopes = x.copy(), np.empty_like(x)
    for i in range(1, len(y)):
        t = np.tanh(y[i - 1])
        slopes[i] = 0.9 * (1 - t * t)
        y[i] += 0.9 * t
    cotangent = 2 * y
    for i in range(len(y) - 1, 0, -1):
        cotangent[i - 1] += slopes[i] * cotangent[i]
    return np.sum(y * y), [cotangent]


# ----------------------------------------------------------------------------------------------- heat


def heat(points: int, steps: int) -> Task:
    """The heat equation along a rod, in place; in JAX a scan."""
    u = np.random.default_rng(8).standard_normal(points)
    special = {
        "torch": lambda peer: lambda u: _heated(u.clone(), steps),
        "jax": lambda peer: lambda u: _heated_by_scan(u, steps),
    }
    return Task(
        f"heat-{points}-{steps}", f"heat equation, {points} points, {steps} steps, in place", [u], [],
        lambda u: _heat_by_hand(u, steps), lambda peer: lambda u: _heated(u.copy(), steps), special=special, peers=IN_PLACE,
    )  # fmt: skip


def _heated(u: Any, steps: int) -> Any:
    for _ in range(steps):
        u[1:-1] += RATE * (u[2:] - 2 * u[1:-1] + u[:-2])
    return (u * u).sum()


def _heated_by_scan(u: Any, steps: int) -> Any:
    from jax import lax

    def turn(u: Any, _: Any) -> tuple[Any, None]:
        return u.at[1:-1].add(RATE * (u[2:] - 2 * u[1:-1] + u[:-2])), None

    u, _ = lax.scan(turn, u, None, length=steps)
    return (u * u).sum()


def _heat_by_hand(u: Array, steps: int) -> tuple[Any, list[Array]]:
    u = u.copy()
    value = _heated(u, steps)
    cotangent = 2 * u
    for _ in range(steps):
        inner = RATE * cotangent[1:-1]
        cotangent[1:-1] -= 2 * inner
        cotangent[2:] += inner
        cotangent[:-2] += inner
    return value, [cotangent]


# ---------------------------------------------------------------------------------------------- pairs


def pairs(count: int) -> Task:
    """The sum of the distances, softened, of all pairs of points in space."""
    points = np.random.default_rng(9).standard_normal((count, 3))
    return Task(
        f"pairs-{count}", f"{count} points pairwise", [points], [], _pairs_by_hand, _pairs, peers=RECORDED, tolerance=1e-7
    )


def _pairs(peer: Peer) -> Callable[..., Any]:
    xp = peer.xp

    def value(points: Any) -> Any:
        d = points[:, None] - points[None]
        return xp.sum(xp.sqrt(xp.sum(d * d, axis=-1) + 0.01))

    return value


def _pairs_by_hand(points: Array) -> tuple[Any, list[Array]]:
    d = points[:, None] - points[None]
    distances = np.sqrt(np.einsum("ijk,ijk->ij", d, d) + 0.01)
    return distances.sum(), [2 * (d / distances[..., None]).sum(axis=1)]
