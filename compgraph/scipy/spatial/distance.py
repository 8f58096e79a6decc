"""``scipy.spatial.distance``."""

from __future__ import annotations

from ..policy import Policy
from . import distances

_COUNTS = "a smooth metric: 'euclidean', 'cosine', 'canberra' ...; this one counts elements"
_SIZES = "node.value: its result has no derivative"

POLICY = Policy(
    module="scipy.spatial.distance",
    replacements={
        **{name: distances.vector_distance(name) for name in distances.METRICS if name != "jensenshannon"},
        "jensenshannon": distances.jensenshannon,
        "cdist": distances.cdist,
        "pdist": distances.pdist,
        "squareform": distances.squareform,
        "directed_hausdorff": distances.directed_hausdorff,
    },
    refused={
        **dict.fromkeys(["dice", "hamming", "jaccard", "rogerstanimoto", "russellrao", "sokalsneath", "yule"], _COUNTS),
        **dict.fromkeys(["is_valid_dm", "is_valid_y", "num_obs_dm", "num_obs_y"], _SIZES),
    },
)
