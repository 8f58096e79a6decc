"""``scipy.spatial.transform``."""

from __future__ import annotations

from ..policy import Policy
from . import rotations

_OTHERS = "as_quat(), as_matrix() or as_rotvec() of a Rotation, and NumPy's functions"

POLICY = Policy(
    module="scipy.spatial.transform",
    replacements={
        "Rotation": rotations.init_rotation,
        "Rotation.from_quat": rotations.from_quat,
        "Rotation.from_matrix": rotations.from_matrix,
        "Rotation.from_rotvec": rotations.from_rotvec,
        "Rotation.from_euler": rotations.from_euler,
        "Rotation.from_mrp": rotations.from_mrp,
        "Rotation._from_raw_quat": rotations.from_nodes,
        "Rotation.apply": rotations.apply,
        "Rotation.__pow__": rotations.power,
        "Slerp": rotations.init_slerp,
        "Slerp.__call__": rotations.call_slerp,
    },
    refused={
        "RigidTransform": "a Rotation, and a vector that is added",
        "RotationSpline": "Slerp, or make_interp_spline of rotation vectors",
        "Rotation.from_davenport": _OTHERS,
        "Rotation.align_vectors": "scipy.linalg.orthogonal_procrustes",
    },
)
