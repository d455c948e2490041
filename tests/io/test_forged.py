"""Models, named stores and arrays that were damaged or forged: an error in one line or the right answer.

Never a crash, a hang, a huge allocation, code that runs, or a file outside the folder.
"""

from __future__ import annotations

import json
import os
import pickle

import numpy as np
import pytest

import daskcluster as dc
from tests.programs import run_program

#: Cases of each kind, by default and with --run-slow: six kinds.
FEW, MANY = 12, 170

PROGRAM = """
import resource, signal, sys, warnings
from pathlib import Path
import dask, numpy as np, zarr
import daskcluster as dc
from daskcluster.io import inputs
sys.path.insert(0, sys.argv[3])
from tests.damage import damaged_copies
from tests.forging import forged_copies

folder, n_copies = Path(sys.argv[1]), int(sys.argv[2])
inputs.MOST_BLOCK_ROWS = 64
dask.config.set(scheduler="synchronous")
X = np.random.default_rng(0).normal(size=(200, 2)).astype("f4") + 9 * (np.arange(200) % 3)[:, None]

def kmeans(**more):
    return dc.KMeans(3, random_state=0, **more)

kmeans().fit(X).save(folder / "model")
truth = kmeans(storage=folder / "run").fit(X).labels_
kmeans(storage=folder / "run").fit(X)
zarr.create_array(folder / "labels", data=truth, chunks=(64,))
outside = folder / "outside"
outside.mkdir()
(outside / "canary").write_text("canary")

KINDS = {
    "model": lambda path: dc.load_model(path).predict(X),
    "run": lambda path: kmeans(storage=path).fit(X).labels_,
    "labels": lambda path: dc.metrics.adjusted_rand_index(truth, path),
}

def around():
    found = {str(path): path.stat().st_mtime_ns for path in folder.rglob("*") if "copy" not in path.parts}
    return {path: time for path, time in found.items() if path != str(folder)}

class TookTooLong(BaseException):
    pass

def stop(*ignored):
    raise TookTooLong

signal.signal(signal.SIGALRM, stop)
size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (size + 2**30, size + 2**30))
before, wrong, n_cases, refused = around(), [], 0, 0
for kind, use in KINDS.items():
    expected = use(folder / kind)
    before = around()
    for copies in (damaged_copies, forged_copies):
        for what, copy in copies(folder / kind, folder, n_copies, seed=7):
            n_cases += 1
            signal.alarm(30)
            try:
                with warnings.catch_warnings(record=True) as said:
                    warnings.simplefilter("always")
                    found = use(copy)
                # Labels have no digest: a changed one gives another score, and no error.
                if kind != "labels" and not np.array_equal(found, expected) and copies is damaged_copies:
                    wrong.append((kind, what, "another answer"))
            except (ValueError, OSError, TypeError) as error:
                refused += 1
                if "\\n" in str(error) or len(str(error)) > 900 or not str(error):
                    wrong.append((kind, what, repr(error)))
            except (Exception, TookTooLong) as error:
                # Of what is forged throughout, values may have kinds that no code expects: an error like any other.
                refused += 1
                if copies is damaged_copies or isinstance(error, MemoryError | TookTooLong):
                    wrong.append((kind, what, repr(error)[:300]))
            finally:
                signal.alarm(0)
            if wrong:
                print(*wrong.pop(), sep=" | ", flush=True)
            if around() != before:
                print(kind, what, "something outside changed", sep=" | ", flush=True)
                before = around()
print(n_cases, refused, file=sys.stderr)
"""


def test_forged_and_damaged_folders(tmp_path, run_slow, pytestconfig):
    n_copies = MANY if run_slow else FEW
    done = run_program(PROGRAM, tmp_path, n_copies, pytestconfig.rootpath, timeout=2000)
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr
    n_cases, refused = map(int, done.stderr.split()[-2:])
    assert n_cases == 6 * n_copies
    assert refused > n_cases / 4


class Told:
    """Says that it was unpickled, by a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("dtype", ["<f8", "|O"])
@pytest.mark.parametrize(
    "codecs",
    [
        {"filters": [{"id": "pickle"}]},
        {"compressor": {"id": "pickle"}},
        {"filters": [{"id": "crc32"}, {"id": "pickle"}]},
        {"filters": [{"id": "vlen-utf8"}, {"id": "pickle"}]},
    ],
)
def test_no_stored_pickle_is_opened(dtype, codecs, tmp_path):
    """Arrays of Zarr's second format could name pickle as a codec: such an array is refused before a chunk is read."""
    told = tmp_path / "told"
    kept = dc.KMeans(2, random_state=0).fit(np.arange(20.0).reshape(10, 2))
    kept.save(tmp_path / "model")
    about = {"zarr_format": 2, "shape": [10, 2], "chunks": [10, 2], "dtype": dtype, "fill_value": 0, "order": "C"}
    for folder in (tmp_path / "x", tmp_path / "model" / "cluster_centers_"):
        folder.mkdir(exist_ok=True)
        (folder / "zarr.json").unlink(missing_ok=True)
        (folder / ".zarray").write_text(json.dumps({**about, "filters": None, "compressor": None, **codecs}))
        (folder / "0.0").write_bytes(pickle.dumps(Told(told)))
    pickle.loads(pickle.dumps(Told(told)))  # so would it tell
    told.rmdir()
    with pytest.raises(ValueError, match=r"cannot be read|must hold real numbers"):
        dc.KMeans(2).fit(tmp_path / "x")
    with pytest.raises(dc.DamagedStoreError):
        dc.load_model(tmp_path / "model")
    assert not told.exists()


def test_objects_in_numpy_files_are_not_opened(tmp_path):
    from daskcluster.io.convert import convert

    told = tmp_path / "told"
    np.save(tmp_path / "x.npy", np.array([[Told(told)]], object), allow_pickle=True)
    with pytest.raises(ValueError, match=r"object|pickle"):
        convert(tmp_path / "x.npy", tmp_path / "x.zarr")
    assert not told.exists()
