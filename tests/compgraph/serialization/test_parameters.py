"""Files of parameters: round trips, errors, damaged files, and loading in place."""

from __future__ import annotations

import collections
import io
import json
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import autodiff as ad
import compgraph as cg
from tests.support.for_each import for_each

RNG = np.random.default_rng(0)


def same(actual: Any, expected: Any) -> None:
    """Two trees are equal in nesting, types, dtypes, memory order and bits."""
    assert type(actual) is type(expected)
    if isinstance(expected, dict):
        assert list(actual) == list(expected)
        assert [*map(type, actual)] == [*map(type, expected)]
        for key in expected:
            same(actual[key], expected[key])
    elif isinstance(expected, (list, tuple)):
        assert len(actual) == len(expected)
        for one, other in zip(actual, expected, strict=True):
            same(one, other)
    elif isinstance(expected, (np.ndarray, np.generic)):
        assert (actual.shape, actual.dtype) == (expected.shape, expected.dtype)
        assert np.asarray(actual).tobytes("A") == np.asarray(expected).tobytes("A")
        if isinstance(expected, cg.Node):
            assert actual.name == expected.name
        if isinstance(expected, np.ndarray):
            assert actual.flags.writeable or isinstance(expected, cg.Node)
            assert actual.flags.f_contiguous == expected.flags.f_contiguous
    else:
        assert actual == expected or actual != actual


TREES: dict[str, Callable[[], Any]] = {
    "network": lambda: {
        "layers": [{"w": cg.variable(RNG.normal(size=(2, 3)), "w"), "b": cg.variable(0.5)}, {"w": RNG.normal(size=3)}],
        "shape": (2, 3),
    },
    "an array": lambda: np.arange(3),
    "a variable": lambda: cg.variable([1.0, 2.0], "w"),
    "constants": lambda: [cg.constant([1, 2], "k"), cg.constant(True)],
    "empty containers": lambda: {"a": {}, "b": [], "c": (), "d": [[], ({},)]},
    "nothing": lambda: None,
    "Python values": lambda: [1, -(10**30), 0.1, float("inf"), float("nan"), -0.0, 1 + 2j, True, None, "text \u00e4 \ud800", ""],
    "scalars": lambda: [np.float32(1.5), np.int8(3), np.bool_(True), np.complex64(1j), np.str_("a"), np.datetime64("2026-01-01")],
    "0-d and zero size": lambda: [np.array(1.5), np.zeros((0, 3)), np.array(7, np.int16), np.zeros((2, 0), np.float32)],
    "Fortran order": lambda: [np.asfortranarray(RNG.normal(size=(2, 3))), cg.variable(np.asfortranarray(np.eye(3)), copy=False)],
    "dtypes": lambda: [
        np.ones(2, dtype) for dtype in ("?", "i1", "u8", "f2", "f4", "f8", "g", "c8", "c16", ">f8", ">i4", "m8[s]")
    ],
    "text": lambda: [np.array(["a", "bc"]), np.array([b"a", b"bc"])],
    "keys": lambda: {0: np.zeros(1), "0": np.ones(1), "a/b": np.ones(2), "a": {"b": np.ones(3)}, "": np.ones(4), -1: np.ones(5)},
    "names of members": lambda: {".structure": np.ones(1), "file": np.ones(2), "allow_pickle": np.ones(3), "..": np.ones(4)},
    "odd keys": lambda: {"a\0b": np.ones(1), "a\0c": np.ones(2), "a_b": np.ones(3), "\ud800": np.ones(4), "a\\b": np.ones(5)},
    "named scope": lambda: {"x": cg.variable([1.0], "layer/x"), "y": cg.variable(np.float16(2), "y")},
}


@for_each("label", TREES)
def test_save_and_load_round_trip(label: str, tmp_path: Path) -> None:
    tree, path = TREES[label](), tmp_path / "parameters.npz"
    cg.save(path, tree)
    same(cg.load(path), tree)
    same(cg.load(str(path)), tree)
    assert os.listdir(tmp_path) == ["parameters.npz"]
    cg.save(path, cg.load(path))
    same(cg.load(path), tree)


def test_save_noncontiguous_layouts(tmp_path: Path) -> None:
    x = RNG.normal(size=(4, 6))
    views = [x[::2], x[:, ::-1], np.broadcast_to(x[0], (3, 6)), x.T[1:]]
    cg.save(tmp_path / "p", views)
    for actual, expected in zip(cg.load(tmp_path / "p"), views, strict=True):
        np.testing.assert_array_equal(actual, expected)


def test_save_writes_numpy_archives(tmp_path: Path) -> None:
    path = tmp_path / "parameters"  # no ending is added
    cg.save(path, {"layers": [{"w": np.ones(2)}], "b": cg.variable(0.5)})
    with np.load(path, allow_pickle=False) as archive:
        np.testing.assert_array_equal(archive["layers/0/w"], np.ones(2))
        assert archive["b"] == 0.5
        assert set(archive) == {".structure", "layers/0/w", "b"}


def test_save_keeps_shared_parameters(tmp_path: Path) -> None:
    w, a = cg.variable(np.ones(2), "w"), np.zeros(3)
    cg.save(tmp_path / "p", {"encoder": w, "decoder": [w, a], "other": a})
    tree = cg.load(tmp_path / "p")
    assert tree["encoder"] is tree["decoder"][0]
    assert tree["decoder"][1] is tree["other"]
    assert tree["encoder"] is not w


def test_load_returns_differentiable_variables(tmp_path: Path) -> None:
    cg.save(tmp_path / "p", {"w": cg.variable([1.0, 2.0], "w")})
    w = cg.load(tmp_path / "p")["w"]
    np.testing.assert_array_equal(ad.gradient(np.sum(w**2))["w"], [2.0, 4.0])


class Pair(NamedTuple):
    a: Any


def inside(save: Callable[[Any], Any], x: Any) -> Any:
    save({"x": x})
    return np.sum(x)


def inside_buffer(save: Callable[[Any], Any], x: Any) -> Any:
    buffer = np.zeros(2)
    buffer[:] = x
    save({"x": buffer})
    return np.sum(buffer)


ERRORS: dict[str, tuple[Callable[[Callable[[Any], Any]], Any], type[Exception], str]] = {
    "object": (lambda save: save({"a": [object()]}), TypeError, r"the value at \['a'\]\[0\] is a object, which cannot be saved"),
    "function": (lambda save: save([np.sin]), TypeError, r"the value at \[0\] is a ufunc"),
    "array of objects": (lambda save: save({"a": np.array([None])}), TypeError, r"\['a'\] has dtype object"),
    "structured array": (lambda save: save(np.zeros(2, "f8,i4")), TypeError, "the value has dtype"),
    "array of objects in fields": (lambda save: save(np.zeros(2, [("a", "O")])), TypeError, "the value has dtype"),
    "masked array": (lambda save: save(np.ma.ones(2)), TypeError, "is a MaskedArray"),
    "matrix": (lambda save: save(np.ones((2, 2)).view(np.matrix)), TypeError, "is a matrix"),
    "named tuple": (lambda save: save(Pair(np.ones(2))), TypeError, "is a Pair"),
    "subclass of dict": (lambda save: save(collections.OrderedDict(a=np.ones(2))), TypeError, "is a OrderedDict"),
    "set": (lambda save: save({"a": {1, 2}}), TypeError, r"\['a'\] is a set"),
    "key": (lambda save: save({"a": {1.5: np.ones(2)}}), TypeError, r"\['a'\] has the key 1.5. Keys must be strings or integers"),
    "key of booleans": (lambda save: save({True: np.ones(2)}), TypeError, "has the key True"),
    "computed node": (lambda save: save({"y": cg.variable([1.0]) * 2}), TypeError, r"\['y'\] is the .* Save its value"),
    "placeholder": (lambda save: save(cg.placeholder((2,))), TypeError, "placeholder.* which cannot be saved"),
    "tracer": (lambda save: ad.grad(lambda x: inside(save, x))(np.ones(2)), TypeError, r"\['x'\] is the .* Save its value"),
    "tracer of vmap": (lambda save: ad.vmap(lambda x: inside(save, x))(np.ones((2, 2))), TypeError, "which cannot be saved"),
    "tangent": (lambda save: ad.jvp(lambda x: inside(save, x), (np.ones(2),), (np.ones(2),)), TypeError, "cannot be saved"),
    "buffer": (lambda save: ad.grad(lambda x: inside_buffer(save, x))(np.ones(2)), TypeError, "cannot be saved"),
}


def holding_itself() -> Any:
    tree: dict[str, Any] = {"a": []}
    tree["a"].append(tree)
    return tree


@for_each("label", [*ERRORS, "cycle"])
def test_save_unsupported_values_keep_file(label: str, tmp_path: Path) -> None:
    path = tmp_path / "parameters.npz"
    cg.save(path, [np.ones(2)])
    before = path.read_bytes()
    if label == "cycle":
        with pytest.raises(ValueError, match=r"the value at \['a'\]\[0\] is a dict that contains itself"):
            cg.save(path, holding_itself())
    else:
        call, error, message = ERRORS[label]
        with pytest.raises(error, match=message):
            call(lambda tree: cg.save(path, tree))
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["parameters.npz"]


@pytest.mark.parametrize("step", ["write_array", "fsync", "replace"])
def test_save_failure_keeps_file(step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "parameters.npz"
    cg.save(path, [np.ones(2)])
    before = path.read_bytes()

    def fail(*_: Any, **__: Any) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(np.lib.format if step == "write_array" else os, step, fail)
    with pytest.raises(OSError, match="no space left"):
        cg.save(path, [np.zeros(2)])
    monkeypatch.undo()
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["parameters.npz"]
    with pytest.raises(FileNotFoundError):
        cg.save(tmp_path / "missing" / "p", [np.ones(2)])


def test_save_keeps_symbolic_links(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    cg.save(target, [np.ones(2)])
    link.symlink_to(target)
    cg.save(link, [np.zeros(2)])
    assert link.is_symlink()
    np.testing.assert_array_equal(cg.load(target)[0], np.zeros(2))


def rewrite_archive(path: Path, change: Callable[[dict[str, bytes]], Any]) -> None:
    """Write an archive anew with changed members."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    change(members)
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def as_member(array: Any) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array, allow_pickle=True)
    return stream.getvalue()


def with_structure(structure: Any) -> Callable[[dict[str, bytes]], Any]:
    text = structure if isinstance(structure, str) else json.dumps(structure)
    return lambda members: members.update({".structure.npy": as_member(np.frombuffer(text.encode(), np.uint8))})


def with_objects(members: dict[str, bytes]) -> None:
    members["w.npy"] = as_member(np.array([print]))


DAMAGES: dict[str, Callable[[Path], Any]] = {
    "empty": lambda path: path.write_bytes(b""),
    "text": lambda path: path.write_text("parameters"),
    "cut": lambda path: path.write_bytes(path.read_bytes()[:-60]),
    "bits": lambda path: path.write_bytes(path.read_bytes().replace(np.ones(2).tobytes(), np.full(2, 1.5).tobytes())),
    "another archive": lambda path: np.savez(path, w=np.ones(2)),
    "an array": lambda path: path.write_bytes(as_member(np.ones(2))),
    "no member": lambda path: rewrite_archive(path, lambda members: members.pop("w.npy")),
    "a short member": lambda path: rewrite_archive(path, lambda members: members.update({"w.npy": members["w.npy"][:-1]})),
    "a long member": lambda path: rewrite_archive(path, lambda members: members.update({"w.npy": members["w.npy"] + b"x"})),
    "no structure": lambda path: rewrite_archive(path, with_structure(None)),
    "a later format": lambda path: rewrite_archive(path, with_structure({"format": 2, "tree": None})),
    "an unknown tag": lambda path: rewrite_archive(path, with_structure({"format": 1, "tree": ["call", "w"]})),
    "no tag": lambda path: rewrite_archive(path, with_structure({"format": 1, "tree": []})),
    "an object": lambda path: rewrite_archive(path, with_structure({"format": 1, "tree": {"a": 1}})),
    "a key that is a list": lambda path: rewrite_archive(path, with_structure({"format": 1, "tree": ["dict", [[], 1]]})),
    "a variable of text": lambda path: rewrite_archive(
        path, with_structure({"format": 1, "tree": ["variable", ".structure", 3, 4]})
    ),
    "deep": lambda path: rewrite_archive(
        path, with_structure('{"format": 1, "tree": ' + '["list", ' * 100_000 + "1" + "]" * 100_000 + "}")
    ),
    "pickles": lambda path: rewrite_archive(path, with_objects),
}


@for_each("label", DAMAGES)
def test_load_damaged_file_raises(label: str, tmp_path: Path) -> None:
    path = tmp_path / "parameters.npz"
    parameters = {"w": cg.variable(np.ones(2), "w")}
    cg.save(path, parameters)
    DAMAGES[label](path)
    for into in (None, parameters):
        with pytest.raises(ValueError, match=r"cg\.load: .* was not written by cg\.save, or it is damaged"):
            cg.load(path, into=into)
    np.testing.assert_array_equal(parameters["w"].value, np.ones(2))


def test_load_missing_file_raises(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        cg.load(tmp_path / "none")


# ------------------------------------------------------------------------------------------------ in place


def test_load_in_place(tmp_path: Path) -> None:
    tree = {
        "w": cg.variable(RNG.normal(size=(2, 3)), "w"),
        "rest": [np.arange(3.0), (np.array(2), "text", 1.5, None, float("nan"))],
    }
    cg.save(tmp_path / "p", tree)
    fortran = np.zeros((2, 3), order="F")
    target = {
        "rest": [np.zeros(3), (np.array(0), "text", 1.5, None, float("nan"))],
        "w": cg.variable(fortran, "other", copy=False),
    }
    w, array = target["w"], target["rest"][0]
    assert cg.load(tmp_path / "p", into=target) is target
    assert target["w"] is w
    assert target["rest"][0] is array
    np.testing.assert_array_equal(fortran, tree["w"].value)
    np.testing.assert_array_equal(array, np.arange(3.0))
    assert target["rest"][1][0] == 2
    assert w.name == "other"
    bare = np.zeros((2, 3))
    cg.save(tmp_path / "q", tree["w"])
    assert cg.load(tmp_path / "q", into=bare) is bare
    np.testing.assert_array_equal(bare, tree["w"].value)


def test_load_in_place_is_a_write(tmp_path: Path) -> None:
    """A graph recorded before the load does not use the loaded value."""
    w = cg.variable([1.0, 2.0], "w")
    cg.save(tmp_path / "p", {"w": cg.variable([5.0, 6.0])})
    loss = np.sum(w**2)
    cg.load(tmp_path / "p", into={"w": w})
    with pytest.raises(ValueError, match=r"the variable 'w' .* was updated in place"):
        ad.gradient(loss)
    np.testing.assert_array_equal(ad.gradient(np.sum(w**2))["w"], [10.0, 12.0])


def read_only(array: Any) -> Any:
    array.flags.writeable = False
    return array


STORED = {"a": np.ones(2), "b": [np.ones(3), 1, "text"]}
DIFFERENT: dict[str, tuple[Callable[[Any], Any], str]] = {
    "shape": (lambda a: {"a": a, "b": [np.zeros(4), 1, "text"]}, r"\['b'\]\[0\] has shape \(4,\) .* in the file \(3,\)"),
    "dtype": (lambda a: {"a": a, "b": [np.zeros(3, np.float32), 1, "text"]}, r"\['b'\]\[0\] has shape .* float32, in the file"),
    "missing key": (lambda a: {"a": a}, r"the value is a dict with \['a'\], in the file a dict with \['a', 'b'\]"),
    "more keys": (lambda a: {"a": a, "b": [np.zeros(3), 1, "text"], "c": 1}, "the value is a dict"),
    "length": (lambda a: {"a": a, "b": [np.zeros(3), 1]}, r"\['b'\] is a list"),
    "container": (lambda a: {"a": a, "b": (np.zeros(3), 1, "text")}, r"\['b'\] is a tuple with .*, in the file a list"),
    "array for a list": (lambda a: {"a": a, "b": np.zeros(3)}, r"\['b'\] is an array, and the file has a list"),
    "list for an array": (lambda a: {"a": a, "b": [[0.0], 1, "text"]}, r"\['b'\]\[0\] is a list"),
    "number": (lambda a: {"a": a, "b": [np.zeros(3), 2, "text"]}, r"\['b'\]\[1\] is 2, in the file 1, and cannot be overwritten"),
    "kind of number": (lambda a: {"a": a, "b": [np.zeros(3), 1.0, "text"]}, r"\['b'\]\[1\] is 1.0"),
    "text": (lambda a: {"a": a, "b": [np.zeros(3), 1, "other"]}, r"\['b'\]\[2\] is 'other', in the file 'text'"),
    "read-only": (lambda a: {"a": a, "b": [read_only(np.zeros(3)), 1, "text"]}, r"\['b'\]\[0\] is read-only"),
    "node": (lambda a: {"a": a, "b": [cg.variable(np.zeros(3)) * 1, 1, "text"]}, r"\['b'\]\[0\] is .* cannot be overwritten"),
}


@for_each("label", DIFFERENT)
@pytest.mark.parametrize("make", [lambda a: a, cg.variable])
def test_load_mismatched_parameters_raises_and_changes_nothing(label: str, make: Any, tmp_path: Path) -> None:
    cg.save(tmp_path / "p", STORED)
    a = make(np.zeros(2))
    target, message = DIFFERENT[label]
    with pytest.raises(ValueError, match=r"cg\.load: .*" + message):
        cg.load(tmp_path / "p", into=target(a))
    np.testing.assert_array_equal(np.asarray(a), np.zeros(2))


def test_load_in_place_tied_parameters(tmp_path: Path) -> None:
    w = np.zeros(2)
    cg.save(tmp_path / "p", [np.ones(2), np.ones(2)])
    cg.load(tmp_path / "p", into=[w, w])
    np.testing.assert_array_equal(w, np.ones(2))
    cg.save(tmp_path / "p", [np.ones(2), np.full(2, 3.0)])
    with pytest.raises(ValueError, match="contains one array twice, and the file has different values for it"):
        cg.load(tmp_path / "p", into=[w, w])
    np.testing.assert_array_equal(w, np.ones(2))
