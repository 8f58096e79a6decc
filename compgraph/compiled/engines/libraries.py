"""Array libraries that run recorded programs, and their counterparts of operations."""

from __future__ import annotations

import contextlib
import functools
import importlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ... import ops
from ...array_types import Array
from ...nn import Windows
from ...tracing import without_tracing
from . import array_api
from .array_api import UnsupportedError

Function = Callable[..., Any]
# SciPy's special functions that JAX calls by another name.
_JAX_SPECIAL = {"psi": "digamma"}


class Library:
    """An array library that follows the array API standard.

    Parameters
    ----------
    namespace : module
        Its namespace of the standard.

    Attributes
    ----------
    name : str
        The value of the option ``backend``.
    has_numpy_names : bool
        Whether its functions also have NumPy's names, parameters and meanings.
    has_computed_indices : bool
        Whether its arrays support advanced indexing with computed arrays, as NumPy's do.
    scan : callable or None
        Repeats iterations, as ``jax.lax.scan``; None if they are unrolled.
    by_position : dict
        Counterparts of the functions with a static index, for indices that differ between the iterations of a loop. In place of
        the index they take the first position in the flattened array and the positions relative to it, or all positions and None.
    """

    name = "array-api"
    has_numpy_names = False
    has_computed_indices = False
    scan: Function | None = None
    by_position: dict[Function, Function]

    def __init__(self, namespace: Any) -> None:
        self.namespace = namespace

    def find_function(self, name: str) -> Function | None:
        """Return the library's own function of a dotted name, such as ``"linalg.inv"``, or None."""
        attribute: Any = self.namespace
        for part in name.split("."):
            attribute = getattr(attribute, part, None)
        return attribute  # type: ignore[no-any-return]

    def find_special(self, name: str) -> Function | None:
        """Return the library's function for one of ``scipy.special``, or None."""
        return None

    # ------------------------------------------------------------------------------------------------ arrays

    def is_array(self, value: Array) -> bool:
        """Return whether a value is an array of the library."""
        return hasattr(value, "__array_namespace__") and not isinstance(value, (np.ndarray, np.generic))

    def dtype(self, dtype: np.dtype[Any]) -> Any:
        """Return the library's dtype for one of NumPy's; raise an `UnsupportedError` if it has none."""
        library_dtype = getattr(self.namespace, np.dtype(dtype).name, None)
        if library_dtype is None:
            raise UnsupportedError(f"{self.name} has no dtype {np.dtype(dtype)}")
        return library_dtype

    def from_numpy(self, value: Any) -> Any:
        """Return a copy of a plain array in the memory of the library's device."""
        return self.namespace.asarray(np.array(value, order="C"), dtype=self.dtype(value.dtype))

    def borrow(self, value: Any) -> Any:
        """Return a plain array as an input of one run, which may share its memory: programs write into no array."""
        return self.namespace.asarray(np.ascontiguousarray(value).reshape(value.shape), dtype=self.dtype(value.dtype))

    def to_numpy(self, value: object) -> Any:
        """Return a copy of a library's array as a plain one, or a NumPy scalar."""
        return np.array(value)[()]

    def is_true(self, flag: Any) -> bool:
        """Return the value of a boolean that a program has computed."""
        return bool(flag)

    def as_argument(self, value: object) -> Any:
        """Return a library's array as an argument of a compiled function; integers are 0-d arrays, because scalars are static."""
        numpy_value = self.to_numpy(value)
        return numpy_value if numpy_value.dtype.kind in "fc" else np.asarray(numpy_value)

    def copy_result(self, value: Any) -> Any:
        """Return a result as an array that shares no memory with others."""
        return self.namespace.asarray(value, copy=True)

    def cast(self, value: Any, dtype: np.dtype[Any]) -> Any:
        """Convert to a dtype of NumPy's; complex numbers become real ones by their real parts."""
        target = self.dtype(dtype)
        if value.dtype == target:
            return value
        if np.dtype(dtype).kind != "c" and array_api.is_complex(self.namespace, value):
            value = self.namespace.real(value)
        return self.namespace.astype(value, target)

    def read_window(self, array: Any, layout: Any) -> Any:
        """Return the elements of a strided window, whose lengths, strides and offset are those in the array in C order."""
        return array_api.read_window(self.namespace, array, layout)

    def set_window(self, array: Any, layout: Any, value: Any) -> Any:
        """Return a copy of an array with values in a strided window."""
        xp, shape = self.namespace, tuple(array.shape)
        if (box := array_api.find_box(shape, *layout)) is None:
            return self.set_at_positions(array, array_api.window_positions(array_api.size_of(array), *layout), value)
        value = xp.reshape(xp.broadcast_to(value, layout[0]), box.lengths)
        return xp.reshape(self.set_item(xp.reshape(array, box.dims), box.slices, value), shape)

    def set_at_positions(self, array: Any, positions: Any, value: Any) -> Any:
        """Return a copy of an array with values at integer positions of the flattened array; the last of equal positions wins."""
        value = self.namespace.broadcast_to(value, positions.shape)
        if len(np.unique(positions)) == positions.size:
            return self.set_item(array, np.unravel_index(positions, tuple(array.shape)), value)
        return array_api.put(self.namespace, array, positions, value)

    def set_item(self, array: Any, index: Any, value: Any) -> Any:
        """Return a copy of an array with an element or a slice set; `index` is plain."""
        xp, positions = self.namespace, np.arange(array_api.size_of(array)).reshape(array.shape)[index]
        return array_api.put(xp, array, positions, xp.broadcast_to(value, np.shape(positions)))

    def example_values(self, value: object) -> Any:
        """Return values at which a function can be traced: the array's own values if it is concrete."""
        return self.to_numpy(value)

    def nan_unless(self, condition: Any, value: Any) -> Any:
        """Return a floating-point array where a condition holds, else nan."""
        xp = self.namespace
        if not array_api.is_floating(xp, value):
            return value
        return xp.where(condition, value, array_api.number(xp, float("nan"), value))

    def require_precision(self, is_double: bool) -> None:
        """Raise a TypeError if a program needs double precision and the library does not have it."""

    def vjp(self, f: Function, operands: Sequence[Any], cotangents: object) -> tuple[Any, ...]:
        """Return the cotangents of the operands of a function; zeros for integers."""
        raise UnsupportedError(f"{self.name} has no derivatives")

    def jvp(self, f: Function, operand: object, tangent: object) -> Any:
        """Return the tangent of a function of one operand."""
        raise UnsupportedError(f"{self.name} has no derivatives")

    def add_item(self, array: object, index: object, value: object) -> Any:
        """Return a copy with values added at an index, repeatedly for repeated elements."""
        raise NotImplementedError

    def compile(self, run: Function) -> Function:
        """Compile a function of the library's arrays, if the library has a compiler; the result can be called in any context."""

        def call(*arrays: object) -> Any:
            with without_tracing():
                return run(*arrays)

        return call

    def context(self) -> Any:
        """Return the context in which programs are compiled and run."""
        return contextlib.nullcontext()


class DifferentiableLibrary(Library):
    """A library with its own derivatives and convolutions.

    Attributes
    ----------
    library_vjp : callable
        ``library_vjp(f, *operands)`` returns the result of a function, and the function from cotangents of the result to those
        of the operands: the library's ``vjp``.
    """

    library_vjp: Function

    def convolve(self, x: object, kernel: object, windows: Windows, groups: int) -> Any:
        """Return the cross-correlation of arrays with channels; the kernel is not conjugated."""
        raise NotImplementedError

    def convolve_vjp(self, x: object, kernel: object, windows: Windows, groups: int, g: object) -> tuple[Any, Any]:
        """Return the cotangents of the array and of the kernel."""
        return self.library_vjp(lambda a, b: self.convolve(a, b, windows, groups), x, kernel)[1](g)  # type: ignore[no-any-return]

    def vjp(self, f: Function, operands: Sequence[Any], cotangents: object) -> tuple[Any, ...]:
        """Return the cotangents of the operands of a function; zeros for integers."""
        float_positions = [k for k, x in enumerate(operands) if array_api.is_floating(self.namespace, x)]

        def f_of_floats(*values: object) -> Any:
            float_values = dict(zip(float_positions, values, strict=True))
            return f(*[float_values.get(k, x) for k, x in enumerate(operands)])

        float_cotangents = iter(self.library_vjp(f_of_floats, *[operands[k] for k in float_positions])[1](cotangents))
        return tuple(
            next(float_cotangents) if k in float_positions else self.namespace.zeros(x.shape) for k, x in enumerate(operands)
        )

    def cross_correlate(self, x: Any, kernel: Any, **options: object) -> Any:
        """See `compgraph.cross_correlate`."""
        if x.ndim < 3 or array_api.is_complex(self.namespace, x):
            return array_api.neural_networks.cross_correlate(self.namespace, x, kernel, **options)
        windows, groups = _geometry(x.shape, kernel.shape, options)
        return self.convolve(x, kernel, windows, groups)

    def cross_correlate_back(self, g: Any, kernel: Any, like: Any, **options: object) -> Any:
        """See `compgraph.nn.convolutions.cross_correlate_back`."""
        if g.ndim < 3 or array_api.is_complex(self.namespace, g):
            return array_api.neural_networks.cross_correlate_back(self.namespace, g, kernel, like, **options)
        shape = (g.shape[0], kernel.shape[1] * options.get("groups", 1), *like.shape[2:])
        windows, groups = _geometry(shape, kernel.shape, options)
        return self.convolve_vjp(self.namespace.zeros(shape, dtype=g.dtype), kernel, windows, groups, g)[0]

    def cross_correlate_kernel(self, x: Any, g: Any, like: Any, **options: object) -> Any:
        """See `compgraph.nn.convolutions.cross_correlate_kernel`."""
        if g.ndim < 3 or array_api.is_complex(self.namespace, g):
            return array_api.neural_networks.cross_correlate_kernel(self.namespace, x, g, like, **options)
        shape = (g.shape[1], x.shape[1] // options.get("groups", 1), *like.shape[2:])
        windows, groups = _geometry(x.shape, shape, options)
        return self.convolve_vjp(x, self.namespace.zeros(shape, dtype=g.dtype), windows, groups, g)[1]


def _geometry(x: Any, kernel: Any, options: dict[str, Any]) -> tuple[Windows, int]:
    """Return the windows and the number of groups of a cross-correlation of arrays of some shapes."""
    correlation = array_api.correlation_of("cross_correlate", x, kernel, options)
    return correlation.windows, correlation.groups


class NumPyLikeLibrary(Library):
    """A library whose functions have NumPy's names, parameters and meanings."""

    has_numpy_names = True
    has_computed_indices = True


class Jax(NumPyLikeLibrary, DifferentiableLibrary):
    """JAX, on its default device."""

    name = "jax"

    def __init__(self) -> None:
        self.jax = importlib.import_module("jax")
        super().__init__(importlib.import_module("jax.numpy"))
        self.library_vjp, self.scan, self.by_position = self.jax.vjp, self.jax.lax.scan, self._positional_functions()

    def convolve(self, x: object, kernel: object, windows: Windows, groups: int) -> Any:
        """Return the cross-correlation by XLA."""
        return self.jax.lax.conv_general_dilated(
            x, kernel, windows.strides, windows.pad_width, rhs_dilation=windows.dilation, feature_group_count=groups
        )

    def find_special(self, name: str) -> Function | None:
        """Return the function of ``jax.scipy.special``."""
        return getattr(importlib.import_module("jax.scipy.special"), _JAX_SPECIAL.get(name, name), None)

    def is_array(self, value: Array) -> bool:
        """Return whether a value is an array or a tracer of JAX."""
        return isinstance(value, self.jax.Array)

    def is_true(self, flag: Any) -> bool:
        """Return the value of a boolean; its memory on the processor is read in half the time of ``bool``."""
        try:
            return bool(memoryview(flag)[()])
        except BufferError:  # it is on another device
            return bool(flag)

    def from_numpy(self, value: Any) -> Any:
        """Return a copy on the default device; on the processor, JAX shares the copy's memory."""
        self.dtype(value.dtype)
        return self.jax.device_put(_aligned_copy(value))

    def borrow(self, value: Any) -> Any:
        """Return the array itself, whose memory a compiled function reads, or a copy with the alignment that this requires."""
        return value if value.ctypes.data % _ALIGNMENT == 0 or value.nbytes < _MIN_ALIGNED_BYTES else _aligned_copy(value)

    def set_item(self, array: Any, index: object, value: Any) -> Any:
        """Return an updated copy, which XLA may compute in place."""
        return array.at[index].set(value)

    def add_item(self, array: Any, index: Any, value: Any) -> Any:
        """Return a copy with values added at an index, repeatedly for repeated elements."""
        return array.at[index].add(value)

    def _positional_functions(self) -> dict[Function, Function]:
        """Return the functions of elements at computed positions of a flattened array."""
        lax, xp = self.jax.lax, self.namespace

        def update_of(method: str) -> Function:
            def update(array: Any, first: Any, offsets: Any, value: Any) -> Any:
                positions = first if offsets is None else first + offsets
                value = xp.broadcast_to(value, positions.shape)
                if method == "set" and _is_contiguous(offsets):
                    return lax.dynamic_update_slice(array.reshape(-1), value.reshape(-1), (first,)).reshape(array.shape)
                return getattr(array.reshape(-1).at[positions], method)(value).reshape(array.shape)

            return update

        def read_positions(array: Any, first: Any, offsets: Any) -> Any:
            if _is_contiguous(offsets):
                return lax.dynamic_slice(array.reshape(-1), (first,), (offsets.size,)).reshape(offsets.shape)
            return array.reshape(-1)[first if offsets is None else first + offsets]

        return {
            **dict.fromkeys((counterpart(self, ops.getitem), self.read_window), read_positions),
            **dict.fromkeys((self.set_item, self.set_window, self.set_at_positions), update_of("set")),
            self.add_item: update_of("add"),
        }

    def copy_result(self, value: object) -> Any:
        """Return the array itself, because arrays of JAX are immutable."""
        return value

    def example_values(self, value: object) -> Any:
        """Return values of an array; for a tracer, numbers between 0.5 and 1.5."""
        if not isinstance(value, self.jax.core.Tracer):
            return self.to_numpy(value)
        dtype = np.dtype(value.dtype)
        floats = np.random.default_rng(0).uniform(0.5, 1.5, value.shape)
        return (floats if dtype.kind in "fc" else np.zeros(value.shape)).astype(dtype)

    def require_precision(self, is_double: bool) -> None:
        """Raise a TypeError if a program needs 64-bit numbers while JAX has them disabled."""
        if is_double and not self.jax.config.jax_enable_x64:
            raise TypeError(
                "the function computes with 64-bit floating-point numbers, which JAX has disabled: "
                'jax.config.update("jax_enable_x64", True), or let it compute with float32 alone'
            )

    def jvp(self, f: Function, operand: object, tangent: object) -> Any:
        """Return the tangent of a function of one operand."""
        return self.jax.jvp(f, (operand,), (tangent,))[1]

    def compile(self, run: Function) -> Function:
        """Compile with ``jax.jit``, ahead of time for the devices of the first arrays: such calls enter no context of JAX."""
        jitted, executables = self.jax.jit(run), list[Function]()

        def call(*arrays: object) -> Any:
            for executable in executables:
                with contextlib.suppress(TypeError, ValueError):  # an array is on other devices, or of NumPy
                    return executable(*arrays)
            with self.context(), without_tracing():
                if not executables:
                    executables.append(jitted.lower(*arrays).compile())
                return jitted(*arrays)

        return call

    @contextlib.contextmanager
    def context(self) -> Iterator[None]:
        """Return a context with 64-bit types and products of full precision."""
        with self.jax.enable_x64(True), self.jax.default_matmul_precision("highest"):
            yield


class CuPy(NumPyLikeLibrary):
    """CuPy, on its current device. Its functions run directly."""

    name = "cupy"

    def __init__(self) -> None:
        self.cupy = importlib.import_module("cupy")
        super().__init__(importlib.import_module("array_api_compat.cupy"))

    def find_special(self, name: str) -> Function | None:
        """Return the function of ``cupyx.scipy.special``."""
        return getattr(importlib.import_module("cupyx.scipy.special"), name, None)

    def is_array(self, value: Array) -> bool:
        """Return whether a value is an array of CuPy."""
        return isinstance(value, self.cupy.ndarray)

    def to_numpy(self, value: object) -> Any:
        """Return a copy in the host's memory."""
        return self.cupy.asnumpy(value)[()]

    def set_item(self, array: Any, index: object, value: Any) -> Any:
        """Return an updated copy."""
        array = array.copy()
        array[index] = value
        return array

    def add_item(self, array: Any, index: object, value: object) -> Any:
        """Return a copy with values added at an index, repeatedly for repeated elements."""
        array = array.copy()
        self.cupy.add.at(array, index, value)
        return array


class Torch(DifferentiableLibrary):
    """PyTorch, on its default device (``torch.set_default_device``)."""

    name = "torch"
    has_computed_indices = True

    def __init__(self) -> None:
        self.torch = importlib.import_module("torch")
        super().__init__(importlib.import_module("array_api_compat.torch"))
        self.library_vjp = self.torch.func.vjp

    def compile(self, run: Function) -> Function:
        """Trace the function once, at its first arrays, as a list of PyTorch's operations without Python between them."""
        make_fx = importlib.import_module("torch.fx.experimental.proxy_tensor").make_fx
        traced_functions: list[Function] = []

        def call(*arrays: object) -> Any:
            if not traced_functions:
                try:
                    with without_tracing():
                        traced_functions.append(make_fx(run)(*arrays))
                except RuntimeError:  # an operation of PyTorch reads a number, so it cannot be traced
                    traced_functions.append(super(Torch, self).compile(run))
            return traced_functions[0](*arrays)

        return call

    def convolve(self, x: object, kernel: object, windows: Windows, groups: int) -> Any:
        """Return the cross-correlation by PyTorch."""
        f = self.torch.nn.functional
        x = f.pad(x, [n for pads in windows.pad_width[::-1] for n in pads]) if np.any(windows.pad_width) else x
        run = (f.conv1d, f.conv2d, f.conv3d)[len(windows.lengths) - 1]
        return run(x, kernel, stride=windows.strides, dilation=windows.dilation, groups=groups)

    def find_special(self, name: str) -> Function | None:
        """Return the function of ``torch.special``."""
        return getattr(self.torch.special, _TORCH_SPECIAL.get(name, name), None)

    def is_array(self, value: Array) -> bool:
        """Return whether a value is a tensor."""
        return isinstance(value, self.torch.Tensor)

    def from_numpy(self, value: object) -> Any:
        """Return a copy on the default device."""
        return self.torch.asarray(np.array(value, order="C"), device=self.torch.get_default_device())

    def borrow(self, value: Any) -> Any:
        """Return a tensor that shares the array's memory if it is writable and contiguous, on the CPU."""
        if not (value.flags.writeable and value.flags.c_contiguous):
            return self.from_numpy(value)
        return self.torch.from_numpy(value).to(self.torch.get_default_device())

    def to_numpy(self, value: Any) -> Any:
        """Return a copy in the host's memory."""
        return np.array(value.detach().resolve_conj().resolve_neg().cpu().numpy())[()]

    def copy_result(self, value: Any) -> Any:
        """Return a copy."""
        return value.clone()

    def set_item(self, array: Any, index: object, value: Any) -> Any:
        """Return an updated copy."""
        array = array.clone()
        array[_as_tensors(self.torch, index, array)] = value
        return array

    def jvp(self, f: Function, operand: object, tangent: object) -> Any:
        """Return the tangent of a function of one operand."""
        return self.torch.func.jvp(f, (operand,), (tangent,))[1]

    def add_item(self, array: Any, index: object, value: object) -> Any:
        """Return a copy with values added at an index, repeatedly for repeated elements."""
        parts = index if isinstance(index, tuple) else (index,)
        positions = np.arange(array.numel()).reshape(tuple(array.shape))
        if array_api.is_static(parts):
            selected = self.torch.asarray(np.ascontiguousarray(positions[parts]), device=array.device)
        else:
            selected = array_api.flat_positions(self.namespace, tuple(array.shape), parts, array)
        addends = self.torch.broadcast_to(value, tuple(selected.shape)).reshape(-1)
        return array.reshape(-1).index_add(0, selected.reshape(-1), addends).reshape(array.shape)


_ALIGNMENT = 64  # bytes, of memory that XLA shares
_MIN_ALIGNED_BYTES = 1 << 16  # of the smallest array that is copied faster by NumPy than by XLA


def _aligned_copy(value: Any) -> Any:
    """Return a copy of an array, in C order, in memory that XLA shares."""
    buffer = np.empty(value.nbytes + _ALIGNMENT, np.uint8)
    start = -buffer.ctypes.data % _ALIGNMENT
    copy = buffer[start : start + value.nbytes].view(value.dtype).reshape(value.shape)
    copy[...] = value
    return copy


def _is_contiguous(offsets: Any) -> bool:
    return offsets is not None and bool(np.array_equal(np.ravel(offsets), np.arange(np.size(offsets))))


_TORCH_SPECIAL = {
    "j0": "bessel_j0",
    "j1": "bessel_j1",
    "y0": "bessel_y0",
    "y1": "bessel_y1",
    "k0": "modified_bessel_k0",
    "k1": "modified_bessel_k1",
    "k0e": "scaled_modified_bessel_k0",
    "k1e": "scaled_modified_bessel_k1",
}


def _as_tensors(torch: Any, index: Any, like: Any) -> Any:
    """Return an index with tensors in place of NumPy's arrays."""
    if isinstance(index, tuple):
        return tuple([_as_tensors(torch, part, like) for part in index])
    return torch.asarray(index, device=like.device) if isinstance(index, np.ndarray) else index


_LIBRARY_CLASSES: dict[str, Callable[[], Library]] = {"jax": Jax, "torch": Torch, "cupy": CuPy}
NAMES = tuple(_LIBRARY_CLASSES)


@functools.cache
def load_library(name: str) -> Library:
    """Return a library by name; raise an ImportError that names what to install."""
    try:
        return _LIBRARY_CLASSES[name]()
    except ImportError as error:
        extra = name if name != "cupy" else "cupy and array-api-compat"
        raise ImportError(f"backend={name!r} needs {error.name}: pip install 'compgraph[{extra}]'") from error


@functools.cache
def wrap_namespace(namespace: object) -> Library:
    """Return the library of a namespace of the array API standard."""
    return Library(namespace)


def find_library(backend: Any) -> Library:
    """Return the library of the option ``backend``: a name, or a namespace of the array API standard."""
    if isinstance(backend, str):
        if backend not in NAMES:
            raise ValueError(f"jit: backend must be one of {', '.join(NAMES)}, or a namespace of the array API, not {backend!r}")
        return load_library(backend)
    if not hasattr(backend, "permute_dims"):
        raise TypeError(f"jit: backend must be a name or a namespace of the array API standard, not {backend!r}")
    return wrap_namespace(backend)


# --------------------------------------------------------------------------------------------- counterparts


@functools.cache
def _numpy_names() -> dict[Any, tuple[str, ...]]:
    """Return the names of NumPy's functions; several where NumPy has aliases, as ``arccos`` and ``acos``."""
    names: dict[Any, tuple[str, ...]] = {}
    for prefix, module in (("", np), ("linalg.", np.linalg), ("fft.", np.fft)):
        for name in dir(module):
            function = getattr(module, name, None)
            if callable(function) and not isinstance(function, type):
                names[function] = (*names.get(function, ()), prefix + name)
    return names


def operation_key(function: Callable[..., Any]) -> str:
    """Return the key of an operation: its name in `array_api`."""
    spec = ops.spec_of(function)
    names = _numpy_names().get(function, ())
    if names and "." in names[0]:
        return names[0].replace(".", "_")
    if spec is not None and spec.opname.startswith("special_"):
        return spec.opname
    return str(getattr(function, "__name__", ""))


@functools.cache
def counterpart(library: Library, function: Callable[..., Any]) -> Function:
    """Return the function of a library that computes an operation from its arrays; raise an `UnsupportedError`.

    The result takes the operands and options of NumPy's function.
    """
    key = operation_key(function)
    spec = ops.spec_of(function)
    if spec is None and ops.function_by_opname(ops.opname_of(function)) is not function:
        raise UnsupportedError(f"{key or 'a function'} is a user-defined function; write it with NumPy's functions")
    if key in _UNSUPPORTED:
        raise UnsupportedError(f"{key}: {_UNSUPPORTED[key]}")
    own_function = array_api.find(key)
    if own_function is None and spec is not None and spec.shape_depends_on == "values":
        raise UnsupportedError(f"{key}: {_VARIABLE_LENGTH}")
    direct = _find_by_numpy_name(library, function)
    if library.has_numpy_names and key in _BY_NUMPY_NAME and direct is not None:
        return direct
    if key == "scatter" and own_function is not None and library.has_computed_indices:
        return functools.partial(own_function, library.namespace, add=library.add_item)
    if key in _CONVOLUTIONS and isinstance(library, DifferentiableLibrary):
        return getattr(library, key)  # type: ignore[no-any-return]
    if own_function is not None:
        return functools.partial(own_function, library.namespace)
    if direct is not None:
        return direct
    if key.startswith("special_") and (special_function := library.find_special(key.removeprefix("special_"))) is not None:
        return special_function
    raise UnsupportedError(f"{library.name} has no counterpart of {key}")


def _find_by_numpy_name(library: Library, function: Callable[..., Any]) -> Function | None:
    """Return the function of one of NumPy's names."""
    names = sorted(_numpy_names().get(function, ()), key=lambda name: name.rpartition(".")[2] != function.__name__)
    return next((f for name in names if (f := library.find_function(name)) is not None), None)


_CONVOLUTIONS = frozenset({"cross_correlate", "cross_correlate_back", "cross_correlate_kernel"})
# Operations for which the function of a library with NumPy's names is faster than the array API implementation.
_BY_NUMPY_NAME = frozenset(
    {
        "cbrt", "convolve", "correlate", "delete", "diag", "diagflat", "diagonal", "einsum", "exp2", "fft_fftshift",
        "fft_ifftshift", "frexp", "gcd", "heaviside", "i0", "insert", "interp", "kron", "lcm", "ldexp", "logaddexp2",
        "nan_to_num", "pad", "repeat", "roll", "searchsorted", "sinc", "sort", "take_along_axis", "tile", "trace",
    }
)  # fmt: skip
_VARIABLE_LENGTH = "the length of the result depends on values; use np.where, or arrays of a fixed length"
_UNSUPPORTED = {
    **dict.fromkeys(("poly", "histogramdd"), _VARIABLE_LENGTH),
    **dict.fromkeys(("partition", "argpartition"), "the order within the parts is arbitrary; use np.sort"),
    **dict.fromkeys(("packbits", "unpackbits", "view"), "it reads the bits of numbers"),
}
