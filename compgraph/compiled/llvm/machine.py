"""The compiler: text of LLVM's becomes code of this machine's processor. The one module that knows llvmlite."""

from __future__ import annotations

import ctypes
import ctypes.util
import functools
import os
import threading
import weakref
from typing import Any

from scipy.linalg import cython_blas  # not later: a child process would wait for an import of a thread

from ...context import reset_after_fork
from .. import worker
from . import disk

_lock = reset_after_fork(threading.RLock())
worker.compiling.append(_lock)


class NoCompilerError(RuntimeError):
    """There is no compiler, or the processor has no instructions that it writes."""


@functools.cache
def _llvm() -> Any:
    try:
        import llvmlite.binding as llvm
    except ImportError as error:
        raise NoCompilerError("llvmlite is not installed: pip install 'compgraph[jit]'") from error
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    lock = getattr(getattr(llvm.ffi.lib, "_lock", None), "_lock", None)  # around each call; other libraries hold it as well
    if hasattr(lock, "_at_fork_reinit"):
        worker.compiling.append(reset_after_fork(lock))
    return llvm


def _require_compiler() -> None:
    """Raise where LLVM may be in any state."""
    if worker.was_interrupted:
        raise NotImplementedError("the process was forked while a thread compiled, so that this one has no compiler")


@functools.cache
def processor() -> tuple[str, str, int]:
    """The name and the features of this machine's processor, as LLVM knows them, and the bytes of its widest vectors.

    Raises
    ------
    NoCompilerError
        If llvmlite is missing, or the processor has neither AVX2 with FMA, nor NEON.
    """
    llvm = _llvm()
    features = llvm.get_host_cpu_features()
    if features.get("avx512f") and features.get("avx512dq") and features.get("avx512vl"):
        width = 64
    elif features.get("avx2") and features.get("fma"):
        width = 32
    elif llvm.get_process_triple().startswith(("aarch64", "arm64")):
        width = 16
    else:
        raise NoCompilerError("the processor has neither AVX2 with FMA, nor NEON")
    return llvm.get_host_cpu_name(), features.flatten(), width


# Of code that is written and of code that is loaded. In the large code model, addresses of other sections have 64 bits. A process
# that has mapped large libraries leaves no room for sections next to each other, and 32 bits do not reach from one to another.
_OPTIONS = {"opt": 2, "jit": True, "reloc": "pic", "codemodel": "large"}


def _machine() -> Any:
    llvm = _llvm()
    name, features, _ = processor()
    return llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine(cpu=name, features=features, **_OPTIONS)


@functools.cache
def _functions_known() -> None:
    """Tell LLVM where C's functions, and those of BLAS that come with SciPy, are."""
    library = ctypes.CDLL(ctypes.util.find_library("m") or None)
    for function in LIBM:
        _llvm().add_symbol(function, ctypes.cast(getattr(library, function), ctypes.c_void_p).value)
    address = ctypes.pythonapi.PyCapsule_GetPointer
    address.restype, address.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    name = ctypes.pythonapi.PyCapsule_GetName
    name.restype, name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    for function in BLAS:
        capsule = cython_blas.__pyx_capi__[function]
        _llvm().add_symbol(f"blas_{function}", address(capsule, name(capsule)))


# C's functions that code may call by name, of one double but for `pow`, `fmod` and `atan2`.
LIBM = (
    "sin", "cos", "tan", "exp", "expm1", "exp2", "log", "log1p", "log2", "log10", "tanh", "sinh", "cosh", "asin", "acos", "atan",
    "asinh", "acosh", "atanh", "erf", "erfc", "cbrt", "pow", "fmod", "atan2", "feclearexcept", "fetestexcept",
)  # fmt: skip


BLAS = ("dgemm", "sgemm")  # as ``blas_dgemm``: Fortran's, which are given addresses


def _version() -> str:
    import llvmlite

    return str(llvmlite.__version__)


def object_code(text: str, is_kept: bool = False) -> bytes:
    """The object file of a module, for this machine; if it `is_kept`, the cache on disk is searched for it, and stores it."""
    _require_compiler()
    llvm = _llvm()
    name, features, _ = processor()
    parts = (text, name, features, sorted(_OPTIONS.items()), llvm.llvm_version_info, _version())
    made = disk.load(repr(parts)) if is_kept else None
    if made is None:
        made = _compiled(text)
        if is_kept:
            disk.store(repr(parts), made)
    return made


def _compiled(text: str) -> bytes:
    llvm = _llvm()
    with _lock:
        module = llvm.parse_assembly(text)
        module.triple = llvm.get_process_triple()
        module.verify()
        machine = _machine()
        module.data_layout = str(machine.target_data)
        options = llvm.create_pipeline_tuning_options(speed_level=1)  # 2 takes half as long again, and gains nothing
        options.loop_vectorization = options.slp_vectorization = False  # the code is in vectors already
        builder = llvm.create_pass_builder(machine, options)
        builder.getModulePassManager().run(module, builder)
        made: bytes = machine.emit_object(module)
        return made


class Loaded:
    """Object code in memory, that can be called.

    Parameters
    ----------
    code : bytes
        An object file, as `object_code` makes it.
    """

    def __init__(self, code: bytes) -> None:
        _require_compiler()
        llvm = _llvm()
        with _lock:
            _functions_known()
            machine = _machine()  # the engine's own: it goes with it
            self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
            self._engine.add_object_file(llvm.ObjectFileRef.from_data(code))
            self._engine.finalize_object()
            _loaded.add(self)

    def address(self, name: str) -> int:
        """Where a function begins."""
        found: int = self._engine.get_function_address(name)
        return found


_loaded: weakref.WeakSet[Loaded] = weakref.WeakSet()


def _forked() -> None:
    """Keep loaded code in memory for ever if LLVM may be in any state: freeing it would call LLVM."""
    if worker.was_interrupted:
        for reference in list(_loaded.data):  # type: ignore[attr-defined]  # another thread may have been changing the set itself
            loaded = reference()
            if loaded is not None:
                loaded._engine.detach()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)  # registered after the worker's function, which sets `was_interrupted`
