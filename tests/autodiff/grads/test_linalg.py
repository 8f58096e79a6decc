"""Rules of numpy.linalg: errors."""

from __future__ import annotations

import numpy as np
import pytest

from autodiff import grad

TALL = np.arange(12.0).reshape(4, 3) + np.eye(4, 3)


@pytest.mark.parametrize(("mode", "words"), [("complete", "mode='complete' of a tall matrix"), ("raw", "mode='raw'")])
def test_qr_mode_without_derivative_raises(mode: str, words: str) -> None:
    with pytest.raises(TypeError, match=f"np.linalg.qr: the derivative with {words} is not implemented. Use mode='reduced'"):
        grad(lambda a: np.sum(np.linalg.qr(a, mode)[0]))(TALL)
