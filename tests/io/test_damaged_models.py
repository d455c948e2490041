"""A damaged model is told from a whole one: one class of error that names it, or the same predictions."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

import daskcluster as dc
from daskcluster.io import model_summary
from tests.damage import damaged_copies
from tests.slow import slowly

ROWS = dc.datasets.make_concentric_circles(300, chunks=300, random_state=0)[0].compute()
PARTS = np.where(np.arange(300) % 9 == 0, np.arange(300) % 3, -1)
LABELS = np.stack([np.arange(300) % k for k in (3, 4, 6)], axis=1)


def scaled() -> Any:
    scaler = StandardScaler().fit(ROWS)
    return Pipeline([("scale", scaler), ("cluster", dc.KMeans(3, random_state=0).fit(scaler.transform(ROWS)))])


MODELS: dict[str, Any] = {
    "USPEC": lambda: dc.USPEC(3, n_representatives=30, random_state=0).fit(ROWS),
    "KMeans": lambda: dc.KMeans(3, random_state=0).fit(ROWS),
    "FastCSC": lambda: dc.FastCSC(3, n_representatives=30, random_state=0).fit(ROWS, PARTS),
    "USENC": lambda: dc.USENC(3, n_base_clusterings=3, n_representatives=30, random_state=0).fit(ROWS),
    "Ensemble": lambda: dc.Ensemble(3, base=dc.KMeans(), n_base_clusterings=2, random_state=0).fit(ROWS),
    "SEC": lambda: dc.SEC(3, random_state=0).fit(LABELS),
    "Pipeline": scaled,
}

NAMES = ["USENC", "SEC", "Pipeline", *slowly("USPEC", "KMeans", "FastCSC", "Ensemble")]


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of every kind, saved."""
    from daskcluster.io import save_model

    folder = tmp_path_factory.mktemp("saved")
    for name, make in MODELS.items():
        with np.errstate(all="ignore"):
            save_model(make(), folder / name)
    return folder


def given(name: str) -> Any:
    return LABELS if name == "SEC" else ROWS


def without_digests(path: Path) -> None:
    """Make a model one of version 0.1.0."""
    file = path / "zarr.json"
    node = json.loads(file.read_text())
    for key in ("digest", "arrays"):
        del node["attributes"]["daskcluster"][key]
    file.write_text(json.dumps(node))


@pytest.mark.parametrize("name", NAMES)
def test_every_damage_is_found_or_does_not_matter(name, saved, tmp_path, run_slow):
    expected = dc.load_model(saved / name).predict(given(name))
    refused, n_copies = [], 36 if run_slow else 18
    for what, copy in damaged_copies(saved / name, tmp_path, n_copies, seed=len(name)):
        try:
            found = dc.load_model(copy).predict(given(name))
            model_summary(copy)
        except dc.DamagedStoreError as error:
            refused.append((what, str(copy), str(error)))
            with pytest.raises(dc.DamagedStoreError):
                model_summary(copy)
        else:
            assert np.array_equal(found, expected), what
    assert len(refused) > n_copies / 2
    for what, path, message in refused:
        assert f"model {path!r} is damaged" in message, what
        assert message.endswith("take another copy of it, or fit and save it again"), what
        assert len(message) < 800, what


@pytest.mark.parametrize("name", NAMES)
def test_old_models_have_no_digests_and_are_read_as_they_are(name, saved, tmp_path):
    shutil.copytree(saved / name, tmp_path / "old")
    without_digests(tmp_path / "old")
    assert np.array_equal(
        dc.load_model(tmp_path / "old").predict(given(name)), dc.load_model(saved / name).predict(given(name))
    )
    refused = []
    for what, copy in damaged_copies(tmp_path / "old", tmp_path / "copies", 9, seed=len(name)):
        try:
            dc.load_model(copy)
        except ValueError as error:
            refused.append((what, str(copy), str(error)))
    assert len(refused) > 2
    for what, path, message in refused:
        assert path in message, what
        assert "\n" not in message, what


def edit_array(path: Path, **changes: Any) -> None:
    node = json.loads((path / "zarr.json").read_text())
    (path / "zarr.json").write_text(json.dumps({**node, **changes}))


def test_what_is_damaged_is_named(saved, tmp_path):
    shutil.copytree(saved / "KMeans", tmp_path / "m.zarr")
    centers = tmp_path / "m.zarr" / "cluster_centers_"
    kept = (centers / "zarr.json").read_text()
    edit_array(centers, data_type="float64" if '"float32"' in kept else "float32")
    with pytest.raises(dc.DamagedStoreError, match=r"array 'cluster_centers_' has shape .* and dtype"):
        dc.load_model(tmp_path / "m.zarr")
    (centers / "zarr.json").write_text(kept)
    edit_array(centers, shape=[3_000_000_000, 2])  # nobody waits for 48 GB of zeros
    with pytest.raises(dc.DamagedStoreError, match=r"array 'cluster_centers_' has shape \(3000000000, 2\)"):
        dc.load_model(tmp_path / "m.zarr")
    without_digests(tmp_path / "m.zarr")
    with pytest.raises(dc.DamagedStoreError, match="array 'cluster_centers_' says that it has"):
        dc.load_model(tmp_path / "m.zarr")
    (centers / "zarr.json").write_text(kept)
    assert np.array_equal(
        dc.load_model(tmp_path / "m.zarr").predict(ROWS), dc.load_model(saved / "KMeans").predict(ROWS)
    )


def test_a_deleted_chunk_is_not_read_as_zeros(saved, tmp_path):
    shutil.copytree(saved / "KMeans", tmp_path / "m.zarr")
    shutil.rmtree(tmp_path / "m.zarr" / "cluster_centers_" / "c")
    with pytest.raises(dc.DamagedStoreError, match="content of its array 'cluster_centers_' does not have the digest"):
        dc.load_model(tmp_path / "m.zarr")


def test_a_number_that_was_changed_is_not_believed(saved, tmp_path):
    shutil.copytree(saved / "USPEC", tmp_path / "m.zarr")
    file = tmp_path / "m.zarr" / "zarr.json"
    node = json.loads(file.read_text())
    node["attributes"]["daskcluster"]["parameters"]["n_neighbors"] += 1
    file.write_text(json.dumps(node))
    with pytest.raises(dc.DamagedStoreError, match="description does not have the digest"):
        dc.load_model(tmp_path / "m.zarr")


def test_a_model_that_lost_its_head(saved, tmp_path):
    shutil.copytree(saved / "USPEC", tmp_path / "m.zarr")
    (tmp_path / "m.zarr" / "zarr.json").unlink()
    with pytest.raises(dc.DamagedStoreError, match=r"its zarr\.json is missing"):
        dc.load_model(tmp_path / "m.zarr")
    shutil.rmtree(tmp_path / "m.zarr")
    with pytest.raises(FileNotFoundError, match="nothing exists there"):
        dc.load_model(tmp_path / "m.zarr")


@pytest.mark.parametrize("kind", ["array", "group", "array of a group"])
def test_save_replaces_nothing_but_a_model(kind, tmp_path):
    path = tmp_path / "mine.zarr"
    if kind == "array":
        zarr.create_array(str(path), data=ROWS)
    else:
        zarr.create_group(str(path)).create_array("X", data=ROWS)
    target = path / "X" if kind == "array of a group" else path
    model = dc.KMeans(3, random_state=0).fit(ROWS)
    with pytest.raises(FileExistsError, match=r"exists and is a Zarr (array|group); only a saved model is replaced"):
        model.save(target, overwrite=True)
    inside = zarr.open_array(str(path if kind == "array" else path / "X"), mode="r")
    assert np.array_equal(inside[:], ROWS)


def test_save_puts_nothing_inside_an_array_a_model_or_a_storage(tmp_path):
    zarr.create_array(str(tmp_path / "X.zarr"), data=ROWS)
    model = dc.KMeans(3, random_state=0, storage=tmp_path / "run").fit(ROWS)
    model.save(tmp_path / "m.zarr")
    model.save(tmp_path / "m.zarr", overwrite=True)
    (tmp_path / "link").symlink_to(tmp_path / "run")
    for place in ("X.zarr/model", "m.zarr/model", "run/model", "run/labels", "run/deep/er/model", "link/model"):
        with pytest.raises(FileExistsError, match=r"lies inside (a Zarr array|a saved model|the storage of a fit)"):
            model.save(tmp_path / place, overwrite=True)
    assert np.array_equal(dc.load_model(tmp_path / "m.zarr").predict(ROWS), model.labels_)
