"""Libraries that are adapted to nodes when they are imported, whether that is before or after `compgraph`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable

from . import adapters, memory_readers
from .arrivals import Arrivals, is_loading

_ADAPTED: dict[str, Callable[[], None]] = {
    "dask.tokenize": adapters.enter_dask,
    "distributed.protocol.serialize": adapters.enter_distributed,
    "h5py": memory_readers.enter_h5py,
    "matplotlib.units": adapters.enter_matplotlib,
    "numba": memory_readers.enter_numba,
    "pyfftw": memory_readers.enter_pyfftw,
}
_entered: set[str] = set()


def _enter(modules: Iterable[str]) -> None:
    for name in modules:
        if name in _ADAPTED and name not in _entered:
            _entered.add(name)
            _ADAPTED[name]()


def adapt_imported() -> None:
    """Adapt the libraries that have been imported; the others are adapted on import."""
    _enter([name for name in _ADAPTED if name in sys.modules and not is_loading(sys.modules[name])])


sys.meta_path.insert(0, Arrivals(_ADAPTED, _enter))
adapt_imported()  # a process of Dask's may get its first node in a message, and send it on
