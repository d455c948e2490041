"""Hostile input: whatever is given, one clear typed error or the right answer, and nothing left behind.

The cases are lists of one line each: `hostile/rows.py` (wrong kinds of rows), `hostile/arguments.py` (wrong values of
everything else), `hostile/commands.py` (wrong commands). To add one, add a line to the list where it belongs.
"""

from __future__ import annotations

import shutil
import zipfile
from pathlib import Path

import numpy as np
import pytest
import zarr

import daskcluster as dc
from tests.hostile import arguments, commands, rows
from tests.hostile.case import Case

CASES = [*rows.CASES, *arguments.CASES, *commands.CASES]

#: No message is longer.
LONGEST = 500


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of stores and files of all kinds, which no case changes."""
    here = tmp_path_factory.mktemp("hostile")
    B, y = rows.B, np.arange(60) % 3

    def array(name: str, values: object, **more: object) -> None:
        zarr.create_array(str(here / name), data=np.asarray(values), **more)  # type: ignore[arg-type]

    array("X.zarr", B, chunks=(25, 2))
    array("y.zarr", y)
    array("short.zarr", y[:9])
    array("raster.zarr", np.zeros((3, 4, 5)))
    array("scalar.zarr", 1.0)
    array("complex.zarr", B * 1j)
    array("nan.zarr", np.where(np.arange(120).reshape(60, 2) == 7, np.nan, B), attributes={"a": np.nan, "b": [np.inf]})
    array("wide.zarr", B.T)
    array("base.zarr", np.stack([y] * 4, axis=1))
    array("flat.zarr", np.stack([y] * 4))
    group = zarr.create_group(str(here / "group.zarr"))
    group.create_array("band", data=np.arange(3))
    group.create_array("X", data=B)
    zarr.create_group(str(here / "empty.zarr"))
    sparse = zarr.create_group(str(here / "csr.zarr"), attributes={"encoding-type": "csr_matrix", "shape": [60, 2]})
    for name in ("data", "indices", "indptr"):
        sparse.create_array(name, data=np.arange(50))  # of 61
    dc.KMeans(3, random_state=0).fit(B).save(here / "model.zarr")
    (here / "folder").mkdir()
    (here / "broken.zarr").mkdir()
    (here / "broken.zarr" / "zarr.json").write_text("{")
    shutil.make_archive(str(here / "X"), "zip", str(here / "X.zarr"))
    with zipfile.ZipFile(here / "text.zip", "w") as archive:
        archive.writestr("hello.txt", "hello")
    np.save(here / "X.npy", B)
    np.save(here / "objects.npy", np.array([{}]), allow_pickle=True)
    files = {
        "text.txt": "hello\n",
        "data.h5": "",
        "data.xyz": "1",
        "header.csv": "0,1\n5,6\n",
        "words.csv": "a,b\n1,x\n",
    }
    files |= {"pairs.csv": "0,99\n", "torn.npy": "no", "torn.parquet": "no", "torn.zip": "no", "torn.json": "{"}
    files |= {"list.json": "[]", "no-port.json": '{"address": "localhost"}'}
    for name, text in files.items():
        (here / name).write_text(text)
    return here


def listing(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def test_there_are_many_and_each_has_a_name():
    assert len(CASES) >= 200
    assert len({case.id for case in CASES}) == len(CASES)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_one_clear_error_or_the_right_answer(case: Case, folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(folder)
    before = listing(folder)
    if case.error is None:
        np.testing.assert_array_equal(np.asarray(case.call()), case.answer)
    else:
        with pytest.raises(case.error, match=case.words) as caught:
            case.call()
        message = str(caught.value)
        assert "\n" not in message
        assert len(message) <= LONGEST
    assert listing(folder) == before


def test_the_documentation_counts_them():
    text = (Path(__file__).parents[1] / "docs" / "reliability.md").read_text(encoding="utf-8")
    for module, what in ((rows, "inputs"), (arguments, "calls"), (commands, "")):
        line = next(
            line for line in text.splitlines() if f"`tests/hostile/{module.__name__.split('.')[-1]}.py`" in line
        )
        right = sum(case.error is None for case in module.CASES)
        assert f"| {len(module.CASES)} {what}".rstrip() + " |" in line
        assert str(right) in line
