"""``scipy.spatial.transform``: rotations as quaternions in recorded steps, scalar last.

Formulas: M. D. Shuster, "A survey of attitude representations", J. Astronaut. Sci. 41 (1993); for matrices F. L. Markley, "Unit
quaternion from rotation matrix", J. Guid. Control Dyn. 31 (2008); for angles E. Bernardes and S. Viollet, "Quaternion to Euler
angles conversion: a direct, general and computationally efficient method", PLoS ONE 17 (2022).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.spatial.transform
from numpy.typing import ArrayLike, NDArray

from ...array_types import Array
from ..policy import Policy
from ..tools import add_mixin, class_with_mixin, limit_order, to_array, to_double, to_numpy

SMALL = 1e-3  # angle below which series are used, so that derivatives are correct at zero
_ORTHOGONALITY_TOLERANCE = 1e-12


def _normalize(q: Array) -> Any:
    size = np.linalg.norm(q, axis=-1, keepdims=True)
    if np.any(to_numpy(size) == 0):
        raise ValueError("Found zero norm quaternions in `quat`.")
    return q / size


def _with_positive_scalar(q: object) -> Any:
    """The quaternion of the same rotation with a nonnegative scalar."""
    return np.where(to_numpy(q)[..., 3:] < 0, -1.0, 1.0) * q


def _product(p: NDArray[Any], q: NDArray[Any]) -> Any:
    """Hamilton's product."""
    a, b = p[..., :3], q[..., :3]
    s, t = p[..., 3:], q[..., 3:]
    vector = s * b + t * a + np.cross(a, b)
    return np.concatenate([vector, s * t - np.sum(a * b, axis=-1, keepdims=True)], axis=-1)


def _quaternion_from_vector(v: Array) -> Any:
    """The quaternion of a rotation vector; near zero by series in the square of the angle."""
    square = np.sum(v * v, axis=-1, keepdims=True)
    is_small = to_numpy(square) <= SMALL**2
    angle = np.sqrt(np.where(is_small, 1.0, square))
    scale = np.where(is_small, 0.5 - square / 48 + square**2 / 3840, np.sin(angle / 2) / angle)
    return np.concatenate([v * scale, np.where(is_small, 1 - square / 8 + square**2 / 384, np.cos(angle / 2))], axis=-1)


def _to_vector(q: NDArray[Any]) -> Any:
    q = _with_positive_scalar(q)
    v, square = q[..., :3], np.sum(q[..., :3] ** 2, axis=-1, keepdims=True)
    is_small = to_numpy(square) <= (SMALL / 2) ** 2
    sine = np.sqrt(np.where(is_small, 1.0, square))
    angle = 2 * np.arctan2(sine, q[..., 3:])
    return v * np.where(is_small, 2 + square / 3 + 3 * square**2 / 20, angle / sine)


def _to_matrix(q: NDArray[Any]) -> Any:
    x, y, z, w = (q[..., k] for k in range(4))
    rows = [
        [x * x - y * y - z * z + w * w, 2 * (x * y - z * w), 2 * (x * z + y * w)],
        [2 * (x * y + z * w), -x * x + y * y - z * z + w * w, 2 * (y * z - x * w)],
        [2 * (x * z - y * w), 2 * (y * z + x * w), -x * x - y * y + z * z + w * w],
    ]
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


def _nearest_rotation(m: Any) -> Any:
    """The orthogonal factor of a matrix, by Newton's iteration (N. J. Higham, *Functions of Matrices*, SIAM 2008, ch. 8).

    Three steps after convergence make derivatives exact to order 7, because each step doubles the order.
    """
    if np.any(np.linalg.det(to_numpy(m)) <= 0):
        raise ValueError("Non-positive determinant (left-handed or null coordinate frame) in rotation matrix")
    remaining_steps = 3
    while remaining_steps:
        numbers = to_numpy(m)
        deviation = np.max(np.abs(np.swapaxes(numbers, -1, -2) @ numbers - np.eye(3)), initial=0.0)
        remaining_steps -= deviation <= _ORTHOGONALITY_TOLERANCE
        m = (m + np.swapaxes(np.linalg.inv(m), -1, -2)) / 2
    return limit_order(m, 7, "the orthogonal factor of scipy.spatial.transform.Rotation.from_matrix")


def _quaternion_from_matrix(m: Any) -> Any:
    """The quaternion of a rotation matrix, by that of four formulas whose divisor is greatest."""
    d = [m[..., k, k] for k in range(3)]
    trace = d[0] + d[1] + d[2]
    forms = []
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        parts = {i: 1 - trace + 2 * d[i], j: m[..., j, i] + m[..., i, j], k: m[..., k, i] + m[..., i, k]}
        forms.append(np.stack([*[parts[n] for n in range(3)], m[..., k, j] - m[..., j, k]], axis=-1))
    last_form = [m[..., 2, 1] - m[..., 1, 2], m[..., 0, 2] - m[..., 2, 0], m[..., 1, 0] - m[..., 0, 1], 1 + trace]
    forms.append(np.stack(last_form, axis=-1))
    greatest = np.argmax(np.stack([*map(to_numpy, d), to_numpy(trace)], axis=-1), axis=-1)[..., None]
    quaternions = forms[3]
    for i in range(3):
        quaternions = np.where(greatest == i, forms[i], quaternions)
    return _normalize(quaternions)


def _axes(seq: str) -> tuple[str, bool]:
    """The axes in lower case, and whether the rotations are extrinsic (about fixed axes) rather than intrinsic."""
    if not re.match(r"^([xyz]{1,3}|[XYZ]{1,3})$", seq) or any(a == b for a, b in itertools.pairwise(seq)):
        raise ValueError(
            f"Expected axes from `seq` to be from ['x', 'y', 'z'] or ['X', 'Y', 'Z'], consecutive ones different, got {seq}"
        )
    return seq.lower(), seq.islower()


def _to_euler(q: NDArray[Any], seq: str, degrees: bool) -> Any:
    axes, is_extrinsic = _axes(seq)
    if len(axes) != 3:
        raise ValueError(f"Expected 3 axes, got {seq}.")
    i, j, k = ("xyz".index(a) for a in (axes if is_extrinsic else axes[::-1]))
    is_symmetric = i == k
    k = 3 - i - j if is_symmetric else k
    sign = (i - j) * (j - k) * (k - i) // 2
    x = [q[..., n] for n in range(4)]
    if is_symmetric:
        a, b, c, d = x[3], x[i], x[j], x[k] * sign
    else:
        a, b, c, d = x[3] - x[j], x[i] + x[k] * sign, x[j] + x[3], x[k] * sign - x[i]
    if np.any(np.minimum(np.hypot(to_numpy(a), to_numpy(b)), np.hypot(to_numpy(c), to_numpy(d))) < 1e-7):
        raise ValueError("Gimbal lock detected: the angles have no derivative there. Use as_quat, as_matrix or as_rotvec")
    middle = 2 * np.arctan2(np.hypot(c, d), np.hypot(a, b))
    half_sum, half_difference = np.arctan2(b, a), np.arctan2(d, c)
    first, third = half_sum - half_difference, half_sum + half_difference
    if not is_symmetric:
        middle, third = middle - np.pi / 2, third * sign
    euler_angles = np.stack([first, middle, third] if is_extrinsic else [third, middle, first], axis=-1)
    wraps = np.where(to_numpy(euler_angles) < -np.pi, 2 * np.pi, np.where(to_numpy(euler_angles) > np.pi, -2 * np.pi, 0.0))
    euler_angles = euler_angles + wraps
    return np.rad2deg(euler_angles) if degrees else euler_angles


def _quaternion_from_euler(seq: str, angles: Any, degrees: bool) -> Any:
    axes, is_extrinsic = _axes(seq)
    angles = np.deg2rad(angles) if degrees else angles
    shape = scipy.spatial.transform.Rotation.from_euler(seq, to_numpy(angles)).as_quat().shape  # raises where SciPy does
    angles = np.reshape(angles, (*shape[:-1], len(axes)))
    quaternions: Any = None
    for n, axis in enumerate(axes):
        vector = np.sin(angles[..., n : n + 1] / 2) * np.eye(3)["xyz".index(axis)]
        step = np.concatenate([vector, np.cos(angles[..., n : n + 1] / 2)], axis=-1)
        if quaternions is None:
            quaternions = step
        else:
            quaternions = _product(step, quaternions) if is_extrinsic else _product(quaternions, step)
    return quaternions


# ------------------------------------------------------------------------------------------ the class


def quaternion(rotation: Any) -> Any:
    """The quaternion of a rotation of nodes or of numbers."""
    return rotation._nodes if isinstance(rotation, NodeRotation) else rotation.as_quat()


def rotation_of(q: object) -> Any:
    """Create a rotation from a quaternion that is a node."""
    rotation: Any = object.__new__(class_with_mixin(NodeRotation, scipy.spatial.transform.Rotation))
    _set_quaternion(rotation, q)
    return rotation


def _set_quaternion(self: Any, q: Any) -> None:
    self._nodes, self._single = q, q.ndim == 1


class NodeRotation:
    """The methods of a ``Rotation`` created from nodes."""

    _nodes: Any
    single = property(lambda self: self._nodes.ndim == 1)
    shape = property(lambda self: self._nodes.shape[:-1])

    def __len__(self) -> int:
        """The number of rotations."""
        if self._nodes.ndim == 1:
            raise TypeError("Single rotation has no len().")
        return int(self._nodes.shape[0])

    def __getitem__(self, index: ArrayLike | slice) -> Any:
        """A selection of the rotations."""
        if self._nodes.ndim == 1:
            raise TypeError("Single rotation is not subscriptable.")
        return rotation_of(self._nodes[index, ...] if not isinstance(index, tuple) else self._nodes[index])

    def __iter__(self) -> Iterator[Any]:
        """Iterate over the rotations."""
        return (self[k] for k in range(len(self)))

    def as_quat(self, canonical: bool = False, *, scalar_first: bool = False) -> Any:
        """The quaternion; `canonical` selects the sign for which the scalar, or the first nonzero element, is positive."""
        q = self._nodes
        if canonical:
            numbers = to_numpy(q)[..., [3, 0, 1, 2]]
            first = np.take_along_axis(numbers, np.argmax(numbers != 0, axis=-1)[..., None], -1)
            q = np.where(first < 0, -1.0, 1.0) * q
        return np.concatenate([q[..., 3:], q[..., :3]], axis=-1) if scalar_first else q

    def as_matrix(self) -> Any:
        """The matrix."""
        return _to_matrix(self._nodes)

    def as_rotvec(self, degrees: bool = False) -> Any:
        """The rotation vector."""
        rotation_vector = _to_vector(self._nodes)
        return np.rad2deg(rotation_vector) if degrees else rotation_vector

    def as_euler(self, seq: str, degrees: bool = False, *, suppress_warnings: bool = False) -> Any:
        """Euler angles about three axes."""
        return _to_euler(self._nodes, seq, degrees)

    def as_mrp(self) -> Any:
        """Modified Rodrigues parameters."""
        q = _with_positive_scalar(self._nodes)
        return q[..., :3] / (1 + q[..., 3:])

    def apply(self, vectors: object, inverse: bool = False) -> Any:
        """Rotate vectors."""
        return apply(self, vectors, inverse)

    def inv(self) -> Any:
        """The inverse rotation."""
        return rotation_of(self._nodes * np.array([-1.0, -1.0, -1.0, 1.0]))

    def magnitude(self) -> Any:
        """The angle."""
        q = self._nodes
        return 2 * np.arctan2(np.linalg.norm(q[..., :3], axis=-1), np.abs(q[..., 3]))

    def __mul__(self, other: object) -> Any:
        """The composition with another rotation, which is applied first."""
        if not isinstance(other, scipy.spatial.transform.Rotation):
            return NotImplemented
        return rotation_of(_normalize(_product(self._nodes, quaternion(other))))

    def __rmul__(self, other: object) -> Any:
        """The composition with a plain rotation, which is applied last."""
        if not isinstance(other, scipy.spatial.transform.Rotation):
            return NotImplemented
        return rotation_of(_normalize(_product(quaternion(other), self._nodes)))

    def __pow__(self, n: object, modulus: None = None) -> Any:
        """The rotation by a multiple of the angle about the same axis."""
        return rotation_of(_quaternion_from_vector(_to_vector(self._nodes) * n))

    def __reduce__(self) -> Any:
        """Pickle the quaternions."""
        return rotation_of, (self._nodes,)

    def _raise_unsupported(self, *args: object, **kwargs: object) -> Any:
        raise TypeError("this method is not supported by rotations created from nodes. Use as_quat(), as_matrix() or as_rotvec()")

    mean = reduce = approx_equal = as_davenport = __setitem__ = _raise_unsupported

    def __repr__(self) -> str:
        """The quaternions."""
        return f"<Rotation of nodes, {self._nodes!r}>"


def init_rotation(self: Any, quat: object, normalize: bool = True, copy: bool = True, scalar_first: bool = False) -> None:
    """``Rotation.__init__``."""
    add_mixin(self, NodeRotation)
    _set_quaternion(self, from_quat(quat, scalar_first=scalar_first)._nodes)


def from_quat(quat: object, *, scalar_first: bool = False) -> Any:
    """``Rotation.from_quat``."""
    q = to_double(quat)
    if q.ndim < 1 or q.shape[-1] != 4:
        raise ValueError(f"Expected `quat` to have shape (..., 4), got {q.shape}.")
    return rotation_of(_normalize(np.concatenate([q[..., 1:], q[..., :1]], axis=-1) if scalar_first else q))


def from_matrix(matrix: object, *, assume_valid: bool = False) -> Any:
    """``Rotation.from_matrix``."""
    m = to_double(matrix)
    if m.shape[-2:] != (3, 3):
        raise ValueError(f"Expected `matrix` to have shape (..., 3, 3), got {m.shape}")
    return rotation_of(_quaternion_from_matrix(m if assume_valid else _nearest_rotation(m)))


def from_rotvec(rotvec: object, degrees: bool = False) -> Any:
    """``Rotation.from_rotvec``."""
    v = to_double(rotvec)
    if v.ndim < 1 or v.shape[-1] != 3:
        raise ValueError(f"Expected `rot_vec` to have shape (..., 3), got {v.shape}")
    return rotation_of(_quaternion_from_vector(np.deg2rad(v) if degrees else v))


def from_euler(seq: str, angles: object, degrees: bool = False) -> Any:
    """``Rotation.from_euler``."""
    return rotation_of(_quaternion_from_euler(seq, to_double(angles), degrees))


def from_mrp(mrp: object) -> Any:
    """``Rotation.from_mrp``."""
    m = to_double(mrp)
    square = np.sum(m * m, axis=-1, keepdims=True)
    return rotation_of(np.concatenate([2 * m, 1 - square], axis=-1) / (1 + square))


def from_nodes(quat: object, *others: object, **more: object) -> Any:
    """Create the result of SciPy's own code from its quaternions."""
    return rotation_of(to_array(quat))


def apply(self: Any, vectors: Any, inverse: bool = False) -> Any:
    """``Rotation.apply``."""
    matrix, vectors = _to_matrix(quaternion(self)), to_double(vectors)
    if vectors.shape[-1] != 3:
        raise ValueError(f"Expected input of shape (..., 3), got {vectors.shape}.")
    matrix = np.swapaxes(matrix, -1, -2) if inverse else matrix
    return (matrix @ vectors[..., None])[..., 0]


def power(self: Any, n: object, modulus: None = None) -> Any:
    """``Rotation.__pow__`` of a plain rotation with a node as the exponent."""
    return rotation_of(_quaternion_from_vector(_to_vector(quaternion(self)) * n))


# ------------------------------------------------------------------------------------------ between rotations


def init_slerp(self: Any, times: Any, rotations: Any) -> None:
    """``Slerp.__init__``."""
    times = to_double(times)
    if not isinstance(rotations, scipy.spatial.transform.Rotation) or rotations.single or len(rotations) < 2:
        raise ValueError("`rotations` must be a `Rotation` instance, of at least 2 rotations.")
    if times.ndim != 1 or times.shape[0] != len(rotations) or np.any(np.diff(to_numpy(times)) <= 0):
        raise ValueError("Times must be 1-dimensional, in strictly increasing order, as many as rotations.")
    self.times, self.timedelta, self.rotations = times, np.diff(times), rotations[:-1]
    self.rotvecs = (self.rotations.inv() * rotations[1:]).as_rotvec()


def call_slerp(self: Any, times: Any) -> Any:
    """``Slerp.__call__``: K. Shoemake, "Animating rotation with quaternion curves", SIGGRAPH 1985."""
    times = to_double(times)
    numbers, key_times = to_numpy(times), to_numpy(self.times)
    if times.ndim > 1 or np.any(numbers < key_times[0]) or np.any(numbers > key_times[-1]):
        raise ValueError(
            f"Interpolation times must be within the range [{key_times[0]}, {key_times[-1]}], at most 1-dimensional."
        )
    interval = np.maximum(np.searchsorted(key_times, numbers) - 1, 0)
    fraction = (times - self.times[interval]) / self.timedelta[interval]
    step = _quaternion_from_vector(self.rotvecs[interval] * fraction[..., None])
    return rotation_of(_normalize(_product(quaternion(self.rotations)[interval], step)))


# ------------------------------------------------------------------------------------------ policy

_OTHER_ADVICE = "as_quat(), as_matrix() or as_rotvec() of a Rotation, with NumPy functions"

POLICY = Policy(
    module="scipy.spatial.transform",
    replacements={
        "Rotation": init_rotation,
        "Rotation.from_quat": from_quat,
        "Rotation.from_matrix": from_matrix,
        "Rotation.from_rotvec": from_rotvec,
        "Rotation.from_euler": from_euler,
        "Rotation.from_mrp": from_mrp,
        "Rotation._from_raw_quat": from_nodes,
        "Rotation.apply": apply,
        "Rotation.__pow__": power,
        "Slerp": init_slerp,
        "Slerp.__call__": call_slerp,
    },
    unsupported={
        "RigidTransform": "a Rotation, and add the translation",
        "RotationSpline": "Slerp, or make_interp_spline of rotation vectors",
        "Rotation.from_davenport": _OTHER_ADVICE,
        "Rotation.align_vectors": "scipy.linalg.orthogonal_procrustes",
    },
)
