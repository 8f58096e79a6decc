"""A data set of the form of MNIST, in the format of scikit-learn's download cache."""

from __future__ import annotations

import gzip
import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits


def write_cache(folder: Path) -> None:
    """Write 200 small digits, enlarged to 28 x 28 pixels, into a folder in the form of downloaded MNIST data."""
    digits = load_digits()
    images = np.pad(np.kron(digits.images[:200], np.ones((3, 3))), ((0, 0), (2, 2), (2, 2))).reshape(200, 784)
    rows = np.column_stack([images * 255 // 16, digits.target[:200]]).astype(int)
    pixels = [f"pixel{i}" for i in range(1, 785)]
    lines = [
        "@RELATION mnist_784",
        *(f"@ATTRIBUTE {name} REAL" for name in pixels),
        "@ATTRIBUTE class {0,1,2,3,4,5,6,7,8,9}",
        "@DATA",
        *(",".join(map(str, row)) for row in rows.tolist()),
    ]
    arff = "\n".join(lines).encode()

    def feature(index: int, name: str, kind: str, is_target: str) -> dict[str, str]:
        flags = {"is_target": is_target, "is_ignore": "false", "is_row_identifier": "false"}
        return {"index": str(index), "name": name, "data_type": kind, "number_of_missing_values": "0", **flags}

    features = [feature(i, name, "numeric", "false") for i, name in enumerate(pixels)]
    features.append(feature(784, "class", "nominal", "true"))
    description = {
        "id": "554",
        "name": "mnist_784",
        "version": "1",
        "description": "Enlarged digits",
        "format": "ARFF",
        "status": "active",
        "url": "https://api.openml.org/data/v1/download/52667/mnist_784.arff",
        "md5_checksum": hashlib.md5(arff).hexdigest(),
    }
    answers: dict[str, Any] = {
        "data/list/data_name/mnist_784/limit/2/data_version/1": {"data": {"dataset": [{"did": 554, "version": 1}]}},
        "data/554": {"data_set_description": description},
        "data/features/554": {"data_features": {"feature": features}},
        "data/qualities/554": {"data_qualities": {"quality": [{"name": "NumberOfInstances", "value": "200.0"}]}},
    }
    files = {f"api/v1/json/{path}.gz": json.dumps(answer).encode() for path, answer in answers.items()}
    files["data/v1/download/52667/mnist_784.arff.gz"] = arff
    for name, content in files.items():
        path = folder / "openml" / "openml.org" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(content))
