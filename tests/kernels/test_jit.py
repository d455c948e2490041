"""Where compiled code is kept: wherever a folder can be written, and kernels run without one."""

import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import daskcluster
from tests.slow import slowly

pytestmark = pytest.mark.skipif(os.name != "posix", reason="permissions of folders")

ROOT = Path(daskcluster.__file__).parents[1]

#: A kernel that is compiled, and where its code is kept.
KERNEL = """
import numpy as np
from daskcluster.kernels.disjoint_set import component_roots
assert component_roots(np.array([0]), np.array([2]), 3).tolist() == [0, 1, 0]
print(component_roots._cache.cache_path)
"""

#: The same after a whole fit.
FIT = (
    """
import daskcluster as dc
assert dc.KMeans(2, random_state=0).fit_predict([[0.0], [9.0], [9.5]]).tolist() == [0, 1, 1]
"""
    + KERNEL
)


@pytest.fixture(scope="module")
def site() -> Iterator[Path]:
    """A folder for packages that another user owns, and nobody may write to."""
    root = Path(tempfile.mkdtemp())
    source = Path(daskcluster.__file__).parent
    shutil.copytree(source, root / "site" / "daskcluster", ignore=shutil.ignore_patterns("__pycache__"))
    for folder in (root, *root.rglob("*")):
        folder.chmod(0o555 if folder.is_dir() else 0o444)
    yield root / "site"
    for folder in (root, *(path for path in root.rglob("*") if path.is_dir())):
        folder.chmod(0o755)
    shutil.rmtree(root)


@pytest.fixture
def temporary() -> Iterator[Path]:
    """A folder that everybody may write to."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o777)
    yield folder
    shutil.rmtree(folder)


def without_the_rights_of_root() -> None:
    """Have a program that root starts obey permissions: it may not override those of files, nor search any folder."""
    for capability in (1, 2):
        ctypes.CDLL(None, use_errno=True).prctl(24, capability, 0, 0, 0)


def kept_in(site: Path, temporary: Path, program: str = KERNEL, **environment: str) -> Path | None:
    """Fit with these read-only packages, and without a home that can be written; the folder of compiled code."""
    names = {name: value for name, value in os.environ.items() if not name.startswith(("NUMBA", "XDG"))}
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=names | {"PYTHONPATH": str(site), "TMPDIR": str(temporary), "HOME": "/proc/nowhere"} | environment,
        cwd=temporary,
        capture_output=True,
        text=True,
        timeout=300,
        preexec_fn=without_the_rights_of_root if os.getuid() == 0 else None,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert not list(site.rglob("__pycache__"))
    folder = done.stdout.strip()
    return None if folder == "None" else Path(folder)


@pytest.mark.parametrize("home", [*slowly("missing", "read-only"), "unknown"])
def test_read_only_packages_without_a_home(site, temporary, home):
    """A home that is not there, that is read-only, and none at all, as of a user who is in no list of users."""
    program = "import os.path; os.path.expanduser = lambda path: path" + KERNEL if home == "unknown" else KERNEL
    folder = kept_in(site, temporary, program, HOME=str(site) if home == "read-only" else "/proc/nowhere")
    own = temporary / f"numba-daskcluster-{os.getuid()}"
    assert folder is not None
    assert folder.parent == own
    assert own.stat().st_mode & 0o777 == 0o700
    assert list(folder.glob("*.nbc"))
    assert [path.name for path in temporary.iterdir() if not path.name.startswith("numba")] == []


def test_the_folder_that_numba_is_told(site, temporary):
    folder = kept_in(site, temporary, NUMBA_CACHE_DIR=str(temporary / "told"))
    assert folder is not None
    assert folder.parent == temporary / "told"


def test_the_cache_of_the_user(site, temporary):
    folder = kept_in(site, temporary, HOME=str(temporary))
    assert folder is not None
    assert folder.parent == temporary / ".cache" / "numba"


@pytest.mark.parametrize("obstacle", ["open to others", *slowly("a file", "a link")])
def test_nowhere(site, temporary, obstacle, run_slow):
    """What others could write to is not executed; each process compiles for itself. A whole fit takes a while then."""
    own = temporary / f"numba-daskcluster-{os.getuid()}"
    if obstacle == "a file":
        own.touch()
    else:
        target = own if obstacle == "open to others" else temporary / "target"
        target.mkdir()
        target.chmod(0o777)
        if target != own:
            own.symlink_to(target)
    assert kept_in(site, temporary, FIT if run_slow else KERNEL) is None
    assert not list(temporary.rglob("*.nbc"))


def test_a_cache_that_fails_costs_nothing_else(tmp_path):
    """A damaged file, and a disk that is full when there is something to keep."""
    program = """
import pathlib, numba
from daskcluster.kernels import jit

@jit.jit
def double(x):
    return 2 * x

assert double(2) == 4
kept = pathlib.Path(double._cache.cache_path)
files = [file for file in kept.iterdir() if "double" in file.name]
assert len(files) == 2, files
for file in files:
    file.write_bytes(b"damaged")
assert jit.jit(double.py_func)(2) == 4

numba.core.caching.IndexDataCacheFile.save = lambda *arguments: (_ for _ in ()).throw(OSError(28, "No space left"))
assert jit.jit(double.py_func)(2.5) == 5
"""
    (tmp_path / "kernel.py").write_text(program)
    environment = os.environ | {"PYTHONPATH": str(ROOT), "NUMBA_CACHE_DIR": str(tmp_path / "kept")}
    done = subprocess.run(
        [sys.executable, tmp_path / "kernel.py"], env=environment, capture_output=True, text=True, timeout=300
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_compiling_is_told_and_kept_code_is_loaded(tmp_path):
    """What no cache has is told before it is compiled; the next process loads all that is kept, and tells nothing."""
    (tmp_path / "numbers_to_add.py").write_text(
        "from daskcluster.kernels.jit import jit\n\n@jit\ndef add(a, b):\n    return a + b\n"
    )
    program = """
from daskcluster.hooks import ON_COMPILING
from daskcluster.kernels.jit import load_kept
from numbers_to_add import add
told = []
ON_COMPILING.append(lambda: told.append(1))
print(load_kept(), len(told), end=" ")
assert add(1, 2) == 3
print(len(told))
"""
    environment = os.environ | {
        "NUMBA_CACHE_DIR": str(tmp_path / "kept"),
        "PYTHONPATH": f"{ROOT}{os.pathsep}{tmp_path}",
    }
    command = [sys.executable, "-c", program]
    runs = [subprocess.run(command, env=environment, capture_output=True, text=True, check=True) for _ in range(2)]
    assert [run.stdout for run in runs] == ["0 0 1\n", "1 0 0\n"]


def test_kept_code_of_one_of_two_functions_that_share_a_file(tmp_path):
    """What is kept of the one is not compiled for the other."""
    (tmp_path / "numbers_to_scale.py").write_text(
        "from daskcluster.kernels.jit import jit\n\ndef make(factor):\n    @jit\n    def scale(a):\n"
        "        return factor * a\n    return scale\n\ntwice, thrice = make(2), make(3)\n"
    )
    program = "from daskcluster.kernels.jit import load_kept; from numbers_to_scale import *; print(load_kept(), {})"
    environment = os.environ | {
        "NUMBA_CACHE_DIR": str(tmp_path / "kept"),
        "PYTHONPATH": f"{ROOT}{os.pathsep}{tmp_path}",
    }
    for call, told in (("twice(5)", "0 10\n"), ("len(thrice.signatures)", "1 0\n")):
        command = [sys.executable, "-c", program.format(call)]
        assert subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout == told
