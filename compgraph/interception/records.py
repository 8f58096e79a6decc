"""Structured arrays whose fields may become nodes: ``bodies["mass"] = x``."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..inplace import contains_node
from ..values import Value, as_buffer, new_view


class Records(np.ndarray):
    """A structured array made within a function that is differentiated; each field is an array that can become a node."""

    __slots__ = ("_parts",)

    _parts: dict[str, Any]

    def _part(self, name: str) -> Any:
        """The array of a field: the same object each time, so that it can become a node."""
        parts = getattr(self, "_parts", None)
        if parts is None:
            parts = self._parts = {}
        if name not in parts:
            found = np.ndarray.__getitem__(new_view(self, np.ndarray), name)
            parts[name] = as_buffer(found) if found.dtype.kind in "fc" else found
        return parts[name]

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, str) and self.dtype.names is not None and index in self.dtype.names:
            return self._part(index)
        self._require_plain()
        return np.ndarray.__getitem__(self, index)

    def __setitem__(self, index: Any, value: Any) -> None:
        if isinstance(index, str):
            self._part(index)[...] = value
            return
        if contains_node(value):
            raise TypeError('a node is written into a whole record; write field by field: records["mass"][i] = x')
        self._require_plain()
        np.ndarray.__setitem__(self, index, value)

    def _require_plain(self) -> None:
        """Raise a TypeError if a field is a node: whole records cannot be read or written then."""
        nodes = [name for name, part in (getattr(self, "_parts", None) or {}).items() if isinstance(part, Value)]
        if nodes:
            raise TypeError(
                f'the field {nodes[0]!r} of these records holds nodes; take the field first: records["{nodes[0]}"][i]'
            )

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        self._require_plain()
        return np.ndarray.__array_function__(self, function, types, args, kwargs)

    def __reduce__(self) -> Any:
        self._require_plain()
        return new_view(self, np.ndarray).__reduce__()
