"""Parameters in files: `save` and `load`.

A file is an ``.npz`` archive without pickles. Each array is a member named by its keys (``layers/0/w``); the member
``.structure`` holds the nesting as JSON.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy

from ..arrays import constant, variable
from ..values import ConstantNode, Value, VariableNode, describe, require_history, require_unsealed

FORMAT = 1
STRUCTURE = ".structure"
KINDS = "biufcmMSU"  # the kinds of dtypes that are saved without pickle
# Raised when a file is damaged, or was written by another program.
READ_ERRORS = (zipfile.BadZipFile, zlib.error, EOFError, LookupError, RuntimeError, TypeError, ValueError)
Array = np.ndarray[Any, Any]
KeyPath = tuple[Any, ...]  # the keys and indices that lead to a part of a tree


def save(path: str | os.PathLike[str], parameters: object) -> None:
    """Save nested parameters to a file, by name and without pickle.

    Parameters
    ----------
    path : str or path-like
        The file. An existing file is replaced at the end, and unchanged if an error occurs before.
    parameters : tree
        Variables, constants and plain arrays in dictionaries (with strings or integers as keys), lists and tuples, nested in any
        way. Numbers, NumPy scalars, text and None are stored as well.

    Raises
    ------
    TypeError
        If the tree contains another object, an array of objects, a computed node, or a value inside an operator.
    ValueError
        If a container contains itself.

    See Also
    --------
    compgraph.load : the inverse.

    Notes
    -----
    The file is an ``.npz`` archive: ``np.load(path)["layers/0/w"]`` reads one array. Values are stored, not graphs, which
    `pickle` preserves. The numbers are written to a file beside `path`, which then replaces it.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> import compgraph as cg
    >>> path = os.path.join(tempfile.mkdtemp(), "parameters.npz")
    >>> cg.save(path, {"layers": [{"w": cg.variable([1.0, 2.0], "w")}], "classes": ("cat", "dog")})
    >>> cg.load(path)
    {'layers': [{'w': VariableNode([1., 2.], name='w', dtype=float64)}], 'classes': ('cat', 'dog')}
    """
    encoder = _Encoder()
    text = json.dumps({"format": FORMAT, "tree": encoder.encode(parameters, ())})
    members = {STRUCTURE: np.frombuffer(text.encode(), np.uint8), **encoder.arrays}
    target = Path(os.path.realpath(path))
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(8)}")
    try:
        with temporary.open("xb") as file:
            with zipfile.ZipFile(file, "w") as archive:
                for name, array in members.items():
                    with archive.open(name + ".npy", "w", force_zip64=True) as member:
                        npy.write_array(member, array, allow_pickle=False)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


def load(path: str | os.PathLike[str], *, into: object = None) -> Any:
    """Load parameters that `save` wrote.

    Parameters
    ----------
    path : str or path-like
        The file.
    into : tree, optional
        Parameters that are nested as in the file. Their arrays and variables are overwritten in place. Numbers and text
        cannot be overwritten and must be equal.

    Returns
    -------
    tree
        The parameters, with their nesting, dtypes, memory order and names of variables; or `into`. Parameters that were one
        object when saved are one object.

    Raises
    ------
    FileNotFoundError
        If the file does not exist.
    ValueError
        If `save` did not write the file, or it is damaged; if `into` differs in nesting, shape or dtype, or is read-only.
        Nothing is changed then.

    See Also
    --------
    compgraph.save : which parameters can be saved.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> import compgraph as cg
    >>> path = os.path.join(tempfile.mkdtemp(), "parameters.npz")
    >>> cg.save(path, [np.ones(2)])
    >>> parameters = [cg.variable([0.0, 0.0], "w")]
    >>> cg.load(path, into=parameters)
    [VariableNode([1., 1.], name='w', dtype=float64)]
    """
    tree = _read(os.fspath(path))
    if into is None:
        return tree
    pairs = list(_pairs(tree, into, ()))
    values = {id(target): value for value, target in pairs}
    for value, target in pairs:
        if isinstance(target, VariableNode):
            require_unsealed(target)
        if values[id(target)] is not value and not np.array_equal(values[id(target)], value):
            raise ValueError(
                "cg.load: `into` contains one array twice, and the file has different values for it. Pass separate arrays"
            )
    for value, target in pairs:
        if isinstance(target, VariableNode):
            target.update(lambda array, value=value: np.copyto(array, value), ())  # type: ignore[misc]
        else:
            np.copyto(target, value)
    return into


class _Encoder:
    """Converts a tree to JSON values, and to arrays by name."""

    def __init__(self) -> None:
        self.arrays: dict[str, Array] = {}
        self._names: dict[int, str] = {}  # by the id of an array or node
        self._enclosing: list[Any] = []  # the containers that are being encoded, the outermost first

    def encode(self, value: Any, key_path: KeyPath) -> Any:
        """Return the JSON value for a part of the tree: a JSON scalar, or a list of a tag and its content."""
        cls = type(value)
        if value is None or cls in (bool, int, float, str):
            return value
        if cls is complex:
            return ["complex", value.real, value.imag]
        if cls in (dict, list, tuple):
            return self._container(value, key_path)
        require_history(value)
        if issubclass(cls, VariableNode):
            return ["variable", self._store_array(value, value.raw_value, key_path), value.name]
        if issubclass(cls, ConstantNode):
            return ["constant", self._store_array(value, value.raw_value, key_path), value.name]
        if cls is np.ndarray or issubclass(cls, np.generic):
            return ["array" if cls is np.ndarray else "scalar", self._store_array(value, np.asarray(value), key_path)]
        description = f"the {describe(value)}" if issubclass(cls, Value) else f"a {cls.__name__}"
        advice = "its value, node.value, at the top level" if issubclass(cls, Value) else "arrays, numbers and text"
        raise TypeError(f"cg.save: {_path_text(key_path)} is {description}, which cannot be saved. Save {advice}")

    def _container(self, value: Any, key_path: KeyPath) -> Any:
        if any(value is container for container in self._enclosing):
            raise ValueError(
                f"cg.save: {_path_text(key_path)} is a {type(value).__name__} that contains itself. Remove the cycle"
            )
        self._enclosing.append(value)
        if type(value) is not dict:
            encoded_container = [type(value).__name__, *[self.encode(part, (*key_path, k)) for k, part in enumerate(value)]]
        else:
            for key in value:
                if type(key) not in (str, int):
                    raise TypeError(f"cg.save: {_path_text(key_path)} has the key {key!r}. Keys must be strings or integers")
            encoded_container = ["dict", *[[key, self.encode(part, (*key_path, key))] for key, part in value.items()]]
        self._enclosing.pop()
        return encoded_container

    def _store_array(self, value: Array, array: Array, key_path: KeyPath) -> str:
        """Store an array once, and return its name."""
        if id(value) in self._names:
            return self._names[id(value)]
        if array.dtype.kind not in KINDS:
            raise TypeError(
                f"cg.save: {_path_text(key_path)} has dtype {array.dtype}, which cannot be saved without pickle. Convert it"
            )
        name = base = "/".join([re.sub(r"[^\w.-]", "_", str(key)) for key in key_path]) or "parameters"
        count = 1
        while name in self.arrays or name == STRUCTURE:
            count += 1
            name = f"{base}~{count}"
        self.arrays[name] = array
        self._names[id(value)] = name
        return name


def _read(path: str) -> Any:
    """Read the tree in a file."""
    with open(path, "rb") as file:
        try:
            with zipfile.ZipFile(file) as archive:
                structure = json.loads(_member(archive, STRUCTURE).tobytes())
                if structure["format"] != FORMAT:
                    raise ValueError(f"format {structure['format']!r} is unknown")
                return _Decoder(archive).decode(structure["tree"])
        except READ_ERRORS as error:
            raise ValueError(f"cg.load: {path!r} was not written by cg.save, or it is damaged ({error})") from error


def _member(archive: zipfile.ZipFile, name: str) -> Array:
    with archive.open(name + ".npy") as member:
        array: Array = npy.read_array(member, allow_pickle=False)
        if member.read(1):
            raise zipfile.BadZipFile(f"the member {name} is too long")
    return array


class _Decoder:
    """Converts JSON values to a tree; the inverse of `_Encoder`."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self._decoded: dict[tuple[str, str], Any] = {}  # by tag and name: parameters that were one object

    def decode(self, value: Any) -> Any:
        """Return a part of the tree."""
        if not isinstance(value, list):
            if value is None or isinstance(value, (bool, int, float, str)):
                return value
            raise TypeError(f"unexpected structure {value!r}")
        tag, *content = value
        if tag == "complex":
            return complex(*content)
        if tag in ("list", "tuple"):
            parts = [self.decode(part) for part in content]
            return parts if tag == "list" else tuple(parts)
        if tag == "dict":
            return {key: self.decode(part) for key, part in content}
        name, *rest = content
        if (tag, name) not in self._decoded:
            self._decoded[tag, name] = self._leaf(tag, _member(self._archive, name), *rest)
        return self._decoded[tag, name]

    @staticmethod
    def _leaf(tag: str, array: Array, name: str | None = None) -> Any:
        if tag == "variable":
            return variable(array, name, copy=False)
        if tag == "constant":
            return constant(array, name)
        if tag in ("array", "scalar"):
            return array if tag == "array" else array[()]
        raise TypeError(f"unexpected structure {tag!r}")


def _pairs(stored: Any, target: Any, key_path: KeyPath) -> Iterator[tuple[Array, Any]]:
    """Yield each stored value with the array or variable to overwrite; raise a ValueError where the trees differ."""
    cls = type(target)
    if issubclass(cls, VariableNode) or cls is np.ndarray:
        value = stored.raw_value if isinstance(stored, Value) else stored
        if not isinstance(value, np.ndarray | np.generic):
            raise ValueError(f"cg.load: {_path_text(key_path)} is an array, and the file has a {type(stored).__name__}")
        array = target.raw_value if issubclass(cls, VariableNode) else target
        if (value.shape, value.dtype) != (array.shape, array.dtype):
            raise ValueError(
                f"cg.load: {_path_text(key_path)} has shape {array.shape} and dtype {array.dtype}, in the file {value.shape} and "
                f"{value.dtype}; nothing was changed"
            )
        if not array.flags.writeable:
            raise ValueError(f"cg.load: {_path_text(key_path)} is read-only. Nothing was changed. Pass a copy")
        yield np.asarray(value), target
    elif cls in (dict, list, tuple):
        expected, stored_children = _children(target), _children(stored)
        if type(stored) is not cls or expected.keys() != stored_children.keys():
            raise ValueError(
                f"cg.load: {_path_text(key_path)} is a {cls.__name__} with {list(expected)}, in the file a "
                f"{type(stored).__name__} with {list(stored_children)}; nothing was changed"
            )
        for key, part in expected.items():
            yield from _pairs(stored_children[key], part, (*key_path, key))
    elif type(stored) is not cls or not np.array_equal(stored, target, equal_nan=np.asarray(target).dtype.kind in "fc"):
        raise ValueError(
            f"cg.load: {_path_text(key_path)} is {target!r}, in the file {stored!r}, and cannot be overwritten in place; "
            "nothing was changed"
        )


def _children(tree: Any) -> dict[Any, Any]:
    return tree if type(tree) is dict else dict(enumerate(tree)) if type(tree) in (list, tuple) else {}


def _path_text(key_path: KeyPath) -> str:
    return "the value at " + "".join(f"[{key!r}]" for key in key_path) if key_path else "the value"
