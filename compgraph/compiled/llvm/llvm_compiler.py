"""The compiler: LLVM IR to machine code of this processor. The only module that imports llvmlite."""

from __future__ import annotations

import ctypes
import ctypes.util
import functools
import logging
import os
import threading
import weakref
from typing import Any, NamedTuple

from scipy.linalg import cython_blas  # at the top level: after a fork, an unfinished import of a thread would block forever

from ...context import reset_after_fork
from .. import compiler_thread
from . import disk_cache, numpy_sorting

_log = logging.getLogger(__name__)
_lock = reset_after_fork(threading.RLock())
compiler_thread.compile_locks.append(_lock)


class NoCompilerError(RuntimeError):
    """LLVM is missing, or the processor lacks the required vector instructions."""


@functools.cache
def _llvm() -> Any:
    try:
        import llvmlite.binding as llvm
    except ImportError as error:
        raise NoCompilerError("llvmlite is not installed: pip install 'compgraph[jit]'") from error
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    lock = getattr(getattr(llvm.ffi.lib, "_lock", None), "_lock", None)  # held around each call, also by other libraries
    if hasattr(lock, "_at_fork_reinit"):
        compiler_thread.compile_locks.append(reset_after_fork(lock))
    return llvm


def _require_compiler() -> None:
    """Raise if the state of LLVM is unknown after a fork."""
    if compiler_thread.forked_while_compiling:
        raise NotImplementedError("the process was forked while a thread compiled; start a new process to compile")


class Processor(NamedTuple):
    """A target processor: LLVM's name, its features as LLVM's list, and the bytes of its widest vectors."""

    name: str
    features: str
    vector_bytes: int


@functools.cache
def processor() -> Processor:
    """Return the processor of this machine.

    Raises
    ------
    NoCompilerError
        If llvmlite is missing, or the processor has neither AVX2 with FMA, nor NEON.
    """
    llvm = _llvm()
    features = llvm.get_host_cpu_features()
    if features.get("avx512f") and features.get("avx512dq") and features.get("avx512vl"):
        vector_bytes = 64
    elif features.get("avx2") and features.get("fma"):
        vector_bytes = 32
    elif llvm.get_process_triple().startswith(("aarch64", "arm64")):
        vector_bytes = 16
    else:
        raise NoCompilerError("the processor has neither AVX2 with FMA, nor NEON")
    return Processor(llvm.get_host_cpu_name(), features.flatten(), vector_bytes)


# The large code model uses 64-bit addresses between sections. In a process with large mapped libraries, sections may be too far
# apart for 32-bit relocations.
_OPTIONS = {"opt": 2, "jit": True, "reloc": "pic", "codemodel": "large"}


def _target_machine() -> Any:
    llvm = _llvm()
    name, features, _ = processor()
    return llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine(cpu=name, features=features, **_OPTIONS)


@functools.cache
def _register_symbols() -> None:
    """Register the addresses of C's functions, of SciPy's BLAS, and of NumPy's sorts, with LLVM."""
    library = ctypes.CDLL(ctypes.util.find_library("m") or None)
    for function in LIBM:
        _llvm().add_symbol(function, ctypes.cast(getattr(library, function), ctypes.c_void_p).value)
    get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
    get_pointer.restype, get_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    get_name = ctypes.pythonapi.PyCapsule_GetName
    get_name.restype, get_name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    for function in BLAS:
        capsule = cython_blas.__pyx_capi__[function]
        _llvm().add_symbol(f"blas_{function}", get_pointer(capsule, get_name(capsule)))
    for symbol, address in numpy_sorting.addresses().items():
        _llvm().add_symbol(symbol, address)


# C functions that compiled code may call. They have one double argument, except `pow`, `fmod`, `atan2` and those of fenv.h.
LIBM = (
    "sin", "cos", "tan", "exp", "expm1", "exp2", "log", "log1p", "log2", "log10", "tanh", "sinh", "cosh", "asin", "acos", "atan",
    "asinh", "acosh", "atanh", "erf", "erfc", "lgamma", "tgamma", "cbrt", "pow", "fmod", "atan2", "feclearexcept", "fetestexcept",
)  # fmt: skip


BLAS = ("dgemm", "sgemm")  # Fortran functions, which take addresses; their symbols are ``blas_dgemm`` and ``blas_sgemm``


def _llvmlite_version() -> str:
    import llvmlite

    return str(llvmlite.__version__)


def compile_module(text: str, use_cache: bool = False) -> bytes:
    """Compile a module to an object file for this machine, or load it from the disk cache if `use_cache`."""
    _require_compiler()
    llvm = _llvm()
    name, features, _ = processor()
    key = repr((text, name, features, sorted(_OPTIONS.items()), llvm.llvm_version_info, _llvmlite_version()))
    object_code = disk_cache.load(key) if use_cache else None
    if object_code is not None:
        _log.debug("loaded %d bytes of object code from the cache in %s", len(object_code), disk_cache.cache_folder())
        return object_code
    object_code = _emit_object(text)
    if use_cache:
        outcome = "stored" if disk_cache.store(key, object_code) else "could not store"
        _log.debug("object code was not in the cache; %s %d bytes", outcome, len(object_code))
    return object_code


def _emit_object(text: str) -> bytes:
    llvm = _llvm()
    with _lock:
        module = llvm.parse_assembly(text)
        module.triple = llvm.get_process_triple()
        module.verify()
        machine = _target_machine()
        module.data_layout = str(machine.target_data)
        _optimize(module, machine)
        object_code: bytes = machine.emit_object(module)
        return object_code


def _optimize(module: Any, machine: Any) -> None:
    """Optimize a module whose loops are vectorized; LLVM's level 1 takes 1.7 times as long, without gain."""
    llvm = _llvm()
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options())
    passes = llvm.create_new_module_pass_manager()
    passes.add_always_inliner_pass()
    passes.add_global_dead_code_eliminate_pass()  # functions whose calls are all inlined
    passes.add_sroa_pass()
    passes.add_instruction_combine_pass()
    passes.add_simplify_cfg_pass()
    passes.add_loop_simplify_pass()
    passes.add_lcssa_pass()
    passes.add_loop_unroll_pass()
    passes.add_instruction_combine_pass()
    passes.run(module, builder)


class LoadedCode:
    """Object code in memory.

    Parameters
    ----------
    code : bytes
        An object file from `compile_module`.
    """

    def __init__(self, code: bytes) -> None:
        _require_compiler()
        llvm = _llvm()
        with _lock:
            _register_symbols()
            machine = _target_machine()  # owned by the engine
            self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
            self._engine.add_object_file(llvm.ObjectFileRef.from_data(code))
            self._engine.finalize_object()
            _loaded.add(self)

    def address(self, name: str) -> int:
        """Return the address of a function."""
        address: int = self._engine.get_function_address(name)
        return address


_loaded: weakref.WeakSet[LoadedCode] = weakref.WeakSet()


def _after_fork_in_child() -> None:
    """Keep loaded code forever if the state of LLVM is unknown, because freeing it would call LLVM."""
    if compiler_thread.forked_while_compiling:
        for reference in list(_loaded.data):  # type: ignore[attr-defined]  # another thread may have been changing the set
            loaded = reference()
            if loaded is not None:
                loaded._engine.detach()


if hasattr(os, "register_at_fork"):
    # after the handler of `compiler_thread`, which sets `forked_while_compiling`
    os.register_at_fork(after_in_child=_after_fork_in_child)
