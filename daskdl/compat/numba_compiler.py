"""numba's private names: kernels with copies of their callees, and a cache for many machines.

``cgutils`` and ``excinfo_ptr_t`` are its helpers for LLVM code. Checked in numba 0.61.0 and 0.68.1.
"""

from __future__ import annotations

import hashlib
import logging
import os
import pickle
import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite.binding
from llvmlite.binding import Linkage, parse_assembly
from numba.core import cgutils as cgutils
from numba.core import config
from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile
from numba.core.callconv import excinfo_ptr_t as excinfo_ptr_t
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.core.typed_passes import NopythonTypeInference

logger = logging.getLogger(__name__)


class _Library(JITCodeLibrary):
    """Machine code of one function, with private copies of all functions that it calls.

    numba leaves these copies to the linker: if a process has also compiled or loaded a called
    function by itself, the caller runs that version, otherwise its copy. The two went through
    different numbers of optimisation passes. So, if sums may be reordered, they differ in the last
    bit, and a result would depend on other calls in the process.
    """

    def _finalize_final_module(self) -> None:
        shared = self._final_module.clone()  # callers link numba's version
        defined = []
        for function in shared.functions:
            if not function.is_declaration and function.linkage == Linkage.external:
                defined.append(function.name)
                function.linkage = Linkage.linkonce_odr
        self._shared_module = shared
        # The linker finds private functions by name, too: so their names must be unique.
        mark = hashlib.sha1("".join(sorted(defined)).encode(), usedforsecurity=False).hexdigest()
        for function in self._final_module.functions:
            if not function.is_declaration and function.linkage == Linkage.linkonce_odr:
                function.linkage = Linkage.internal
                function.name += f".of.{mark}"
        super()._finalize_final_module()


class _SameLibrary(_Library):
    """Machine code of one function that is the same on all processors with x86-64-v3.

    If sums may be reordered, LLVM splits them by the lanes of the processor's vectors and the
    latency of its additions. Functions of this library are optimised for :data:`SAME`, keep it as
    an attribute, and are not inlined into functions for other processors.
    """

    def add_llvm_module(self, module: Any) -> None:
        with self._for_same():
            super().add_llvm_module(module)

    def finalize(self) -> None:
        with self._for_same():
            super().finalize()

    @contextmanager
    def _for_same(self) -> Iterator[None]:
        """Let passes optimise for :data:`SAME`; numba lets one thread compile at a time."""
        codegen = self._codegen
        before, codegen._tm = codegen._tm, _same_machine()
        try:
            yield
        finally:
            codegen._tm = before

    _final_module: Any

    def _finalize_final_module(self) -> None:
        lines = str(self._final_module).splitlines()
        attributes = f'noinline "target-cpu"="{SAME}" "target-features"="{SAME_FEATURES}"'
        for i, line in enumerate(lines):
            if line.startswith("define "):
                end = line.rindex(")") + 1
                rest = line[end:].lstrip()
                after = rest.removeprefix("local_unnamed_addr").removeprefix("unnamed_addr")
                end = len(line) - len(after)
                lines[i] = f"{line[:end]} {attributes}{after}".replace(" alwaysinline", "")
            elif line.startswith("attributes #"):
                lines[i] = line.replace(" alwaysinline", "")
        name, self._final_module = self._final_module.name, parse_assembly("\n".join(lines))
        self._final_module.name = name
        super()._finalize_final_module()


#: Target processor of code that is the same on all processors: it has AVX2 and FMA.
SAME = "x86-64-v3"
SAME_FEATURES = "+avx2,+bmi,+bmi2,+f16c,+fma,+lzcnt,+movbe,+popcnt,+sse4.2"


@cache
def _same_machine() -> Any:
    triple = llvmlite.binding.get_process_triple()
    return llvmlite.binding.Target.from_triple(triple).create_target_machine(
        cpu=SAME, features=SAME_FEATURES, opt=int(config.OPT), reloc="static",
        codemodel="jitdefault", jit=True,
    )  # fmt: skip


def has_same() -> bool:
    """Return whether the target processor, by default this one, has the features of SAME."""
    present = features()
    return platform.machine().lower() in ("x86_64", "amd64") and {"avx2", "fma"} <= present


def features() -> set[str]:
    """Return the features of the target processor."""
    if config.CPU_FEATURES is None:
        return {name for name, has in llvmlite.binding.get_host_cpu_features().items() if has}
    return {one[1:] for one in config.CPU_FEATURES.split(",") if one.startswith("+")}


@register_pass(mutates_CFG=False, analysis_only=True)
class _MakeLibrary(FunctionPass):
    """Create our library in place of the one that numba's lowering would create."""

    _name = "daskdl_make_library"
    _kind = _Library

    def __init__(self) -> None:
        FunctionPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        """Set ``state.library``; return whether the function was changed."""
        state.library = self._kind(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        return False


@register_pass(mutates_CFG=False, analysis_only=True)
class _MakeSameLibrary(_MakeLibrary):
    """Create a library of code that is the same on all processors."""

    _name = "daskdl_make_same_library"
    _kind = _SameLibrary


class SelfContained(CompilerBase):
    """Compiler for ``njit(pipeline_class=...)``: functions have copies of their callees."""

    _make = _MakeLibrary

    def define_pipelines(self) -> list[Any]:
        """Return numba's passes, with ours for the library."""
        passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
        passes.add_pass_after(self._make, NopythonTypeInference)
        passes.finalize()
        return [passes]


class SameEverywhere(SelfContained):
    """Compile for x86-64-v3, so that all such processors run the same code; else for this one."""

    _make = _MakeSameLibrary if has_same() else _MakeLibrary


def processor() -> str:
    """Return the name of the target processor, with a digest of its features."""
    return _processor(config.CPU_NAME, config.CPU_FEATURES, config.ENABLE_AVX)


@cache  # every kernel calls it
def _processor(name: str | None, features: str | None, avx: bool) -> str:
    name = name or llvmlite.binding.get_host_cpu_name()
    features = features or llvmlite.binding.get_host_cpu_features().flatten()
    text = f"{name} {features} {avx}"
    return f"{name}-{hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()[:8]}"


class _Files(IndexDataCacheFile):
    """The index of a function's compiled versions, and a file for each, named by source and types.

    A file is written before the index names it, and a name is never reused for other code. A
    damaged file counts as missing.
    """

    def _load_index(self) -> dict[Any, str]:
        try:
            return super()._load_index()
        except OSError:
            raise
        except Exception:  # pickle may raise anything
            return {}

    def load(self, key: Any) -> Any:
        """Return a compiled version, or None."""
        try:
            return super().load(key)
        except OSError:
            raise
        except Exception:  # pickle may raise anything
            return None

    def save(self, key: Any, data: Any) -> None:
        """Save a compiled version, and remove the versions of an older source."""
        versions = self._load_index()
        digest = hashlib.sha256(pickle.dumps((self._version, self._source_stamp, repr(key))))
        versions[key] = self._index_name.removesuffix("nbi") + f"{digest.hexdigest()[:16]}.nbc"
        self._save_data(versions[key], data)
        self._save_index(versions)
        folder = Path(self._cache_path)
        for path in folder.glob(self._index_name.removesuffix("nbi") + "*.nbc"):
            if path.name not in versions.values():
                path.unlink(missing_ok=True)


class KernelCache(FunctionCache):
    """A function's cache, in a folder for each kind of processor; a failure only gives a warning.

    ``stamp`` returns a value that changes with the source; it is called at first use, after all
    imports. Raises RuntimeError when numba finds no writable folder.
    """

    _impl_class = CompileResultCacheImpl
    _failed = False

    def __init__(self, function: Any, stamp: Callable[[], Any]) -> None:
        super().__init__(function)
        self._cache_path: str = os.path.join(super().cache_path, processor())
        self._stamp: Callable[[], Any] | None = stamp
        self._cache_file = _Files(self._cache_path, self._impl.filename_base, None)

    @property
    def lock(self) -> Path:
        """File next to the index that a process locks while it compiles the function."""
        return Path(self._cache_file._index_path).with_suffix(".lock")

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return a compiled version; None if there is none, or it cannot be read."""
        if self._stamp is not None:
            self._cache_file._source_stamp, self._stamp = self._stamp(), None
        try:
            return super().load_overload(sig, target_context)
        except OSError as error:
            self._warn("read", error)
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Save a compiled version, if possible."""
        try:
            os.makedirs(self._cache_path, exist_ok=True)
            super().save_overload(sig, data)
        except OSError as error:
            self._warn("written", error)

    def _warn(self, done: str, error: Exception) -> None:
        if not KernelCache._failed:  # once in a process
            KernelCache._failed = True
            logger.warning(
                "%s: the cache of compiled kernels cannot be %s (%s), so each process compiles "
                "them anew; make room there, or set NUMBA_CACHE_DIR to another folder",
                self._cache_path, done, error,
            )  # fmt: skip
