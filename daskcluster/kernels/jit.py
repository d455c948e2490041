"""The one numba decorator of the package, its options, and where compiled code is kept."""

from __future__ import annotations

import contextlib
import logging
import os
import stat
import tempfile
from pathlib import Path
from typing import Any

from numba import njit
from numba.core import caching
from numba.core.caching import CompileResultCacheImpl, FunctionCache
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import cpu_target

from ..hooks import ON_COMPILING

__all__ = ["FAST", "jit", "jit_fast", "load_kept"]

logger = logging.getLogger("daskcluster")

# Sums may be reassociated so that they vectorise. The input of a kernel is finite (stage 0 checks it) and the
# compiled code is the same for every block, so a row's result depends on nothing but the row.
FAST = {"reassoc", "contract", "nsz", "arcp"}


def jit(function):
    """Compile a kernel whose order of operations is part of the result, or one of integers."""
    return _kept(njit(nogil=True, error_model="numpy")(function))


def jit_fast(function):
    """Compile a kernel that spends its time in sums over features or representatives."""
    return _kept(njit(nogil=True, error_model="numpy", fastmath=FAST)(function))


def _kept(dispatcher):
    """Keep compiled code for the next process, where some folder can be written.

    numba's own ``cache=True`` raises where it finds none: with read-only packages and no home, as in containers.
    """
    try:
        dispatcher._cache = _Cache(dispatcher.py_func)
        _dispatchers.append(dispatcher)
    except (RuntimeError, OSError) as error:
        logger.debug("%s; it is compiled in every process", error)
    return dispatcher


#: All kernels whose code is kept.
_dispatchers: list[Any] = []


def load_kept() -> int:
    """Load the compiled code that is kept of all kernels defined so far; returns of how many."""
    loaded = 0
    for dispatcher in list(_dispatchers):
        try:
            for signature in dispatcher._cache.kept_signatures():
                dispatcher.compile(signature)
                loaded += 1
        except Exception as error:  # as when it is read for a call: it costs time, and nothing else
            logger.debug("compiled code of %s cannot be loaded: %s", dispatcher.py_func.__name__, error)
    return loaded


def _locator(name: str) -> Any:
    """One of numba's places, whose names were private in older releases."""
    return getattr(caching, name, None) or getattr(caching, f"_{name}")


_UserWide: Any = _locator("UserWideCacheLocator")


class _UserFolder(_UserWide):
    """The cache of a user who has a home: without one numba would make a folder ``~`` where the program runs."""

    def ensure_cache_path(self) -> None:
        """Make the folder; raise OSError where it cannot be written."""
        if not os.path.isabs(self.get_cache_path()):
            raise FileNotFoundError("there is no home")
        super().ensure_cache_path()


class _TemporaryFolder(_UserWide):
    """The last place to keep compiled code: a folder of this user alone among the temporary files."""

    def __init__(self, py_func: Any, py_file: str) -> None:
        super().__init__(py_func, py_file)
        self.folder = Path(tempfile.gettempdir()) / f"numba-daskcluster-{os.getuid()}"
        self._cache_path = str(self.folder / self.get_suitable_cache_subpath(py_file))

    def ensure_cache_path(self) -> None:
        """Make the folder; raise OSError where it is not this user's alone, since what is in it is executed."""
        self.folder.mkdir(mode=0o700, exist_ok=True)
        found = self.folder.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
            raise PermissionError(f"{str(self.folder)!r} is open to others")
        super().ensure_cache_path()


class _Implementation(CompileResultCacheImpl):
    """Looks where numba looks: in NUMBA_CACHE_DIR, beside the source, in the user's cache; and in one more place."""

    _locator_classes = (  # type: ignore[assignment]
        _locator("UserProvidedCacheLocator"),
        _locator("InTreeCacheLocator"),
        _UserFolder,
        *((_TemporaryFolder,) if hasattr(os, "getuid") else ()),
        _locator("ZipCacheLocator"),
    )


class _Cache(FunctionCache):
    """A cache that may fail: a full disk or a damaged file costs the time to compile, and nothing else."""

    _impl_class = _Implementation

    def load_overload(self, sig, target_context):
        """Compiled code, or None."""
        found = None
        try:
            found = super().load_overload(sig, target_context)
        except Exception as error:  # unpickling raises anything
            logger.debug("compiled code of %s cannot be read, it is made again: %s", self._name, error)
            with contextlib.suppress(OSError):
                self.flush()  # a damaged list of files could not be added to
        if found is None:
            for tell in ON_COMPILING:
                tell()
        return found

    def kept_signatures(self) -> list[Any]:
        """What is there of this very function for this kind of processor: functions made by one maker share a file."""
        codegen = cpu_target.target_context.codegen()
        return [key[0] for key in self._cache_file._load_index() if key == self._index_key(key[0], codegen)]

    def save_overload(self, sig, data):
        """Keep compiled code."""
        try:
            super().save_overload(sig, data)
        except Exception as error:
            logger.debug("compiled code of %s cannot be kept: %s", self._name, error)


if hasattr(os, "register_at_fork"):
    # A fork waits for what is being compiled: its child would wait for ever for the thread that holds the lock.
    os.register_at_fork(
        before=global_compiler_lock.acquire,
        after_in_parent=global_compiler_lock.release,
        after_in_child=global_compiler_lock.release,
    )
