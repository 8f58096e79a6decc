"""Matrices that are built of given numbers, most by saying which number stands where."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...graph import as_operand


def _vector(x: Any) -> Any:
    return np.atleast_1d(as_operand(x))


def _one_batch(*vectors: Any) -> list[Any]:
    """Vectors with the same axes before the last."""
    batch = np.broadcast_shapes(*[v.shape[:-1] for v in vectors])
    return [v if v.shape[:-1] == batch else np.broadcast_to(v, (*batch, v.shape[-1])) for v in vectors]


def toeplitz(c: Any, r: Any = None) -> Any:
    """``scipy.linalg.toeplitz``."""
    c = _vector(c)
    c, r = _one_batch(c, np.conjugate(c) if r is None else _vector(r))
    rows, columns = c.shape[-1], r.shape[-1]
    values = np.concatenate([c[..., ::-1], r[..., 1:]], axis=-1)
    return values[..., rows - 1 - np.arange(rows)[:, None] + np.arange(columns)]


def hankel(c: Any, r: Any = None) -> Any:
    """``scipy.linalg.hankel``."""
    c = as_operand(c)
    r = np.zeros_like(c) if r is None else as_operand(r)
    if np.ndim(c) != 1 or np.ndim(r) != 1:
        raise TypeError("scipy.linalg.hankel: of nodes it takes vectors, for which all versions of SciPy agree; give np.ravel(c)")
    return np.concatenate([c, r[1:]])[np.arange(len(c))[:, None] + np.arange(len(r))]


def circulant(c: Any) -> Any:
    """``scipy.linalg.circulant``."""
    c = _vector(c)
    places = np.arange(c.shape[-1])
    return c[..., (places[:, None] - places) % max(c.shape[-1], 1)]


def companion(a: Any) -> Any:
    """``scipy.linalg.companion``."""
    a = _vector(a)
    n = a.shape[-1]
    if n < 2:
        raise ValueError("The length of `a` along the last axis must be at least 2.")
    if np.any(np.equal(a[..., 0], 0)):
        raise ValueError("The first coefficient(s) of `a` (i.e. elements of `a[..., 0]`) must not be zero.")
    first = (-a[..., 1:] / (1.0 * a[..., 0:1]))[..., None, :]
    below = np.broadcast_to(np.eye(n - 2, n - 1, dtype=first.dtype), (*a.shape[:-1], n - 2, n - 1))
    return np.concatenate([first, below], axis=-2)


def fiedler(a: Any) -> Any:
    """``scipy.linalg.fiedler``."""
    a = _vector(a)
    found = np.abs(a[..., :, None] - a[..., None, :])
    return found if a.size > 1 else found.astype(np.float64)


def fiedler_companion(a: Any) -> Any:
    """``scipy.linalg.fiedler_companion``."""
    a = _vector(a)
    n = a.shape[-1] - 1
    if n < 1:
        return a[..., :0]
    if np.any(np.equal(a[..., 0], 0)):
        raise ValueError("Leading coefficient is zero.")
    zeros = np.zeros_like(a[..., :1])
    values = np.concatenate([zeros, -a[..., 1:] / a[..., :1], zeros + 1], axis=-1)  # 0, the coefficients, 1
    places = np.zeros((n, n), int)
    places[range(3, n, 2), range(1, n - 2, 2)] = n + 1
    places[range(2, n, 2), range(1, n - 1, 2)] = range(3, n + 1, 2)
    places[range(0, n - 2, 2), range(2, n, 2)] = n + 1
    places[range(0, n - 1, 2), range(1, n, 2)] = range(2, n + 1, 2)
    places[0, 0] = 1
    if n > 1:
        places[1, 0] = n + 1
    return values[..., places]


def leslie(f: Any, s: Any) -> Any:
    """``scipy.linalg.leslie``."""
    f, s = _one_batch(_vector(f), _vector(s))
    if f.shape[-1] != s.shape[-1] + 1:
        raise ValueError("Incorrect lengths for f and s. The length of s must be one less than the length of f.")
    if s.shape[-1] == 0:
        raise ValueError("The length of s must be at least 1.")
    n = s.shape[-1]
    return np.concatenate([f[..., None, :], s[..., :, None] * np.eye(n, n + 1, dtype=s.dtype)], axis=-2)


def convolution_matrix(a: Any, n: Any, mode: Any = "full") -> Any:
    """``scipy.linalg.convolution_matrix``."""
    a = as_operand(a)
    if n <= 0:
        raise ValueError("n must be a positive integer.")
    if not np.size(a):
        raise ValueError("len(a) must be at least 1.")
    if mode not in ("full", "valid", "same"):
        raise ValueError("'mode' argument must be one of ('full', 'valid', 'same')")
    length = a.shape[-1]
    trim = 0 if mode == "full" else min(n, length) - 1
    start, end = (trim // 2, trim - trim // 2) if mode == "same" else (trim, trim)
    places = np.arange(start, length + n - 1 - end)[:, None] - np.arange(n)
    there = (places >= 0) & (places < length)
    return np.where(there, a[..., np.where(there, places, 0)], np.zeros((), a.dtype))


def block_diag(*arrs: Any) -> Any:
    """``scipy.linalg.block_diag``."""
    blocks = [np.atleast_2d(as_operand(a)) for a in arrs]
    batch = np.broadcast_shapes(*[a.shape[:-2] for a in blocks])
    width, before, rows = sum(a.shape[-1] for a in blocks), 0, []
    for block in blocks:
        height, mine = block.shape[-2:]
        left, right = (np.zeros((*batch, height, k), block.dtype) for k in (before, width - before - mine))
        rows.append(np.concatenate([left, np.broadcast_to(block, (*batch, height, mine)), right], axis=-1))
        before += mine
    return np.concatenate(rows, axis=-2)


def khatri_rao(a: Any, b: Any) -> Any:
    """``scipy.linalg.khatri_rao``."""
    a, b = as_operand(a), as_operand(b)
    if min(np.ndim(a), np.ndim(b)) < 2:
        raise ValueError("The both arrays should be 2-dimensional.")
    if a.shape[-1] != b.shape[-1]:
        raise ValueError("The number of columns for both arrays should be equal.")
    pairs = a[..., :, None, :] * b[..., None, :, :]
    return np.reshape(pairs, (*pairs.shape[:-3], a.shape[-2] * b.shape[-2], a.shape[-1]))


def diagsvd(s: Any, M: Any, N: Any) -> Any:  # noqa: N803
    """``scipy.linalg.diagsvd``."""
    s = as_operand(s)
    if s.shape[-1] == M:
        return s[..., :, None] * np.eye(M, N, dtype=s.dtype)
    if s.shape[-1] == N:
        return np.eye(M, N, dtype=s.dtype) * s[..., None, :]
    raise ValueError("Length of s must be M or N.")
