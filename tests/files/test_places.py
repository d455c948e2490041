"""What stands under a path, and outputs that would harm something else, however they are spelled."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import zarr

from daskcluster.files import check_apart, check_outside, kind_of, place_at, place_of
from daskcluster.files.places import expand


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a group of arrays, g.zarr, and a link to it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    zarr.create_group("g.zarr").create_array("X", data=np.zeros((4, 2)))
    (tmp_path / "link").symlink_to("g.zarr")
    (tmp_path / "deep" / "er").mkdir(parents=True)
    return tmp_path


def spellings(folder: Path, name: str) -> list[str]:
    """Ways to write a path in the folder."""
    return [
        name,
        f"./{name}",
        f"{name}/",
        f"{name}//",
        f"deep/../{name}",
        f"deep/er/../../{name}",
        str(folder / name),
        f"file://{folder / name}",
        f"file://{folder}/deep/../{name}",
        f"~/{name}",
        name.replace("g.zarr", "link"),
        f"file://{folder / name}".replace("g.zarr", "link"),
    ]


@pytest.mark.parametrize("number", range(12))
@pytest.mark.parametrize(
    ("output", "how"),
    [("g.zarr", "holds"), ("g.zarr/X", "is"), ("g.zarr/X/labels", "lies inside"), ("g.zarr/X/a/b", "lies inside")],
)
def test_an_output_that_would_harm_an_input_is_refused(number, output, how, folder):
    spelled = spellings(folder, output)[number]
    for given in spellings(folder, "g.zarr/X"):
        with pytest.raises(ValueError, match=f"^--labels .* {how} the input"):
            check_apart({"--labels": spelled}, {"the input": given})


@pytest.mark.parametrize(
    "output", ["g.zarr/labels", "g.zarr/X2", "g.zarrX", "labels", "deep/g.zarr/X", "s3://g.zarr/X"]
)
def test_neighbours_are_apart(output, folder):
    check_apart({"--labels": output}, {"the input": "g.zarr/X", "--storage": "run"})


def test_outputs_are_apart_from_each_other_and_inputs_need_not_be(folder):
    check_apart({"--labels": "a", "--model": "b", "--picture": None}, {"the input": "x", "--must-link": "x"})
    for one, other, how in [("a", "a/", "is"), ("a", "a/b", "lies inside"), ("a/b", "a", "holds")]:
        with pytest.raises(ValueError, match=f"--model '{other}' {how} --labels"):
            check_apart({"--labels": one, "--model": other}, {})


def test_urls_are_compared_by_their_parts():
    with pytest.raises(ValueError, match="lies inside the input"):
        check_apart({"OUT": "s3://bucket/X.zarr/labels"}, {"the input": "s3://bucket//X.zarr/"})
    check_apart({"OUT": "s3://bucket/X.zarr2"}, {"the input": "s3://bucket/X.zarr", "other": "gs://bucket/X.zarr2"})


@pytest.mark.parametrize(
    ("output", "given"),
    [
        ("s3a://b/x", "s3://b/x"),
        ("s3://b/x", "simplecache::s3://b/x"),
        ("/b/x", "simplecache::file:///b/x"),
        ("file:///b/x", "/b/x"),
        ("gs://b/x", "gcs://b/x"),
    ],
)
def test_urls_of_one_place_are_one(output, given):
    with pytest.raises(ValueError, match="is the input"):
        check_apart({"--labels": output}, {"the input": given})


def test_two_colons_make_no_url():
    assert kind_of(place_at("2026-01-01T10::00.zarr")) is None
    assert place_at("2026-01-01T10::00.zarr").name == "2026-01-01T10::00.zarr"


def test_a_file_under_two_names_is_one(folder):
    Path("one.csv").write_text("1,2\n")
    os.link("one.csv", "two.csv")
    with pytest.raises(ValueError, match=r"OUT 'two\.csv' is the input \('one\.csv'\)"):
        check_apart({"OUT": "two.csv"}, {"the input": "one.csv"})


def test_a_link_inside_an_input_is_inside(folder):
    (folder / "g.zarr" / "X" / "out").symlink_to(folder / "deep")
    with pytest.raises(ValueError, match="lies inside the input"):
        check_apart({"OUT": "g.zarr/X/out"}, {"the input": "g.zarr/X"})


def test_what_stands_under_a_path(folder):
    (folder / "run").mkdir()
    (folder / "run" / "daskcluster.json").write_text("{}")
    zarr.create_group("m.zarr", attributes={"daskcluster": {"kind": "model"}})
    zarr.create_array("v2.zarr", shape=(3,), dtype="f4", zarr_format=2)
    zarr.create_group("v2g.zarr", zarr_format=2)
    (folder / "broken").mkdir()
    (folder / "broken" / "zarr.json").write_text("{")
    (folder / "broken.json").write_text("{")
    (folder / "dangling").symlink_to("nowhere")
    expected = {
        "g.zarr": "group",
        "g.zarr/X": "array",
        "link": "group",
        "run": "storage",
        "m.zarr": "model",
        "v2.zarr": "array",
        "v2g.zarr": "group",
        "broken": "broken",
        "broken.json": "file",
        "dangling": "file",
        "deep": "folder",
        "deep/er": "empty",
        "nothing": None,
    }
    assert {name: kind_of(folder / name) for name in expected} == expected


def test_nothing_is_put_inside_an_array_a_model_or_a_storage(folder):
    (folder / "run").mkdir()
    (folder / "run" / "daskcluster.json").write_text("{}")
    zarr.create_group("m.zarr", attributes={"daskcluster": {"kind": "model"}})
    for path in ("g.zarr/X/labels", "link/X/labels", "run/labels", "run/new/labels", "m.zarr/labels"):
        with pytest.raises(FileExistsError, match=f"'{path}' lies inside .* which would be damaged"):
            check_outside(folder / path, path)
    for path in ("g.zarr/labels", "g.zarr/X", "run", "m.zarr", "deep/labels"):
        check_outside(folder / path, path)


def test_where_inputs_are_stored(folder):
    np.save("x.npy", np.zeros(3))
    stored = zarr.open_array("g.zarr/X")
    for source, name in [
        ("a.zarr", "a.zarr"),
        (Path("a.zarr"), "a.zarr"),
        (stored, "g.zarr/X"),
        (np.load("x.npy", mmap_mode="r"), "x.npy"),
    ]:
        place = place_of(source)
        assert place is not None
        assert os.path.realpath(expand(place)) == str(folder / name)
    for source in (np.zeros(3), None, [1, 2], "", zarr.array(np.zeros(3))):
        found = place_of(source)
        assert found is None or "://" in found
