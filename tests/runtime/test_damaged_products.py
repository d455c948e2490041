"""Damaged products of a named store are made again, with a warning; they are never believed."""

from __future__ import annotations

import json
import shutil
import warnings
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest
import zarr

import daskcluster as dc
from daskcluster.runtime import products as products_module
from daskcluster.runtime.products import Products
from tests.damage import damaged_copies
from tests.slow import slowly

pytestmark = pytest.mark.usefixtures("small_blocks")

ROWS = dc.datasets.make_concentric_circles(300, chunks=300, random_state=0)[0].compute()
PARTS = np.where(np.arange(300) % 9 == 0, np.arange(300) % 3, -1)

FITS: dict[str, Any] = {
    "USPEC": lambda storage: dc.USPEC(3, n_representatives=30, random_state=0, storage=storage).fit(ROWS),
    "KMeans": lambda storage: dc.KMeans(3, random_state=0, storage=storage).fit(ROWS, sample_weight=np.ones(300)),
    "FastCSC": lambda storage: dc.FastCSC(3, n_representatives=30, random_state=0, storage=storage).fit(ROWS, PARTS),
    "USENC": lambda storage: dc.USENC(
        3, n_base_clusterings=3, n_representatives=30, random_state=0, storage=storage
    ).fit(ROWS),
    "Ensemble": lambda storage: dc.Ensemble(
        3, base=dc.KMeans(), n_base_clusterings=2, random_state=0, storage=storage
    ).fit(ROWS),
}


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, Any]]:
    """A finished store of every kind, and the fit that made it."""
    from tests.blocks import blocks_of

    folder = tmp_path_factory.mktemp("stores")
    with blocks_of(128):
        return {name: (folder / name, fit(folder / name)) for name, fit in FITS.items()}


def refit(name: str, store: Path) -> tuple[Any, list[str]]:
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        model = FITS[name](store)
    return model, [str(warned.message) for warned in heard if "damaged" in str(warned.message)]


@pytest.mark.parametrize("name", ["USPEC", *slowly("USENC", "KMeans", "FastCSC", "Ensemble")])
def test_every_damage_is_mended_or_does_not_matter(name, stores, tmp_path, run_slow):
    origin, first = stores[name]
    mended, refused = 0, []
    n_copies = 36 if run_slow else 9  # every kind of damage once or more
    for what, copy in damaged_copies(origin, tmp_path, n_copies, seed=len(name)):
        key = (copy / "daskcluster.json").read_bytes() if (copy / "daskcluster.json").exists() else None
        try:
            model, said = refit(name, copy)
        except ValueError as error:
            refused.append((what, str(copy), str(error), key))
            continue
        assert np.array_equal(model.labels_, first.labels_), what
        assert np.array_equal(model.predict(ROWS), first.predict(ROWS)), what
        assert len(said) <= 1 + ("swap" in what), (what, said)
        mended += len(said)
        assert refit(name, copy)[1] == [], what  # whole again
        assert not list(copy.glob(".*")), what
    assert mended > n_copies / 4
    for what, path, message, key in refused:
        assert path in message, what
        assert key != (origin / "daskcluster.json").read_bytes(), what  # what products belong to is not known any more


def block_file(store: Path, product: str, number: int) -> Path:
    return store / product / "rows" / "c" / str(number) / "0"


@pytest.mark.parametrize("damage", ["flip", "cut", "delete", "swap", "another dtype", "summary"])
def test_a_damaged_row_product_is_made_again(damage, stores, tmp_path):
    origin, first = stores["USPEC"]
    store = tmp_path / "run"
    shutil.copytree(origin, store)
    file, other = block_file(store, "nearest", 2), block_file(store, "nearest", 1)
    content = bytearray(file.read_bytes())
    if damage == "flip":
        content[7] ^= 1
        file.write_bytes(content)
    elif damage == "cut":
        file.write_bytes(content[:-3])
    elif damage == "delete":
        file.unlink()
    elif damage == "swap":
        file.write_bytes(other.read_bytes())
        other.write_bytes(content)
    else:
        meta = store / "nearest" / ("rows/zarr.json" if damage == "another dtype" else "zarr.json")
        node = json.loads(meta.read_text())
        if damage == "another dtype":
            node["data_type"] = "uint32"
        else:
            node["attributes"]["summaries"][0]["distance"] *= 2
        meta.write_text(json.dumps(node))
    model, said = refit("USPEC", store)
    assert np.array_equal(model.labels_, first.labels_)
    assert model.bandwidth_ == first.bandwidth_
    (line,) = said
    assert f"product 'nearest' of storage {str(store)!r} is damaged" in line
    assert line.endswith("it is made again")


def test_a_store_without_digests_goes_on(stores, tmp_path):
    """As version 0.1.0 left it."""
    origin, first = stores["USPEC"]
    store = tmp_path / "run"
    shutil.copytree(origin, store)
    for file in [store / "daskcluster.json", *store.glob("*/zarr.json")]:
        node = json.loads(file.read_text())
        content = node.get("attributes", node)
        for key in {"digest", "arrays", "blocks", "rows"} & content.keys():
            del content[key]
        file.write_text(json.dumps(node))
    before = {path: path.stat().st_mtime_ns for path in store.rglob("*") if path.is_file()}
    model, said = refit("USPEC", store)
    assert said == []
    assert np.array_equal(model.labels_, first.labels_)
    assert {path: path.stat().st_mtime_ns for path in store.rglob("*") if path.is_file()} == before
    block_file(store, "nearest", 2).unlink()
    assert "1 of its 3 row blocks are not what was stored, first 2" in refit("USPEC", store)[1][0]


def test_what_is_not_ours_is_kept(stores, tmp_path):
    origin, _ = stores["USPEC"]
    shutil.copytree(origin, tmp_path / "run")
    shutil.rmtree(tmp_path / "run" / "labels")
    zarr.create_array(str(tmp_path / "run" / "labels"), data=np.arange(5))
    with pytest.raises(dc.DamagedStoreError, match="something under 'labels' that no fit made; move it elsewhere"):
        FITS["USPEC"](tmp_path / "run")
    assert zarr.open_array(str(tmp_path / "run" / "labels"), mode="r").shape == (5,)


def test_a_damaged_key_is_named(stores, tmp_path):
    origin, _ = stores["KMeans"]
    shutil.copytree(origin, tmp_path / "run")
    key = json.loads((tmp_path / "run" / "daskcluster.json").read_text())
    (tmp_path / "run" / "daskcluster.json").write_text(json.dumps({**key, "seed": 7}))
    with pytest.raises(dc.DamagedStoreError, match="remove the folder, or give another storage"):
        FITS["KMeans"](tmp_path / "run")


def test_blocks_are_not_read_again_in_an_unbroken_run(tmp_path, monkeypatch):
    """The digests are compared when a later run opens the product."""
    from daskcluster.runtime import store as store_module

    checks: list[str] = []
    monkeypatch.setattr(store_module, "damaged_blocks", lambda held, name, digests: checks.append(name) or [])
    FITS["USPEC"](tmp_path / "run")
    assert checks == []
    FITS["USPEC"](tmp_path / "run")
    assert checks == ["nearest", "labels"]


def test_a_worker_that_does_not_see_the_store_is_no_damage(tmp_path, monkeypatch):
    """What workers find is looked at here, too, before a product is put away."""
    from daskcluster.runtime import held as held_module

    values = da.from_array(np.arange(20.0).reshape(10, 2), chunks=(4, 2))
    made = Products(tmp_path / "run", "M", {}, 0)
    made.rows("nearest", values)
    look, looks = held_module._look_at_block, []

    def blind_at_first(number, held, read):
        looks.append(number)
        return {"found": None} if looks.count(number) == 1 else look(number, held, read)

    monkeypatch.setattr(held_module, "_look_at_block", blind_at_first)
    held, _ = made.rows("nearest", values)
    assert sorted(looks) == [0, 0, 1, 1, 2, 2]
    assert np.array_equal(held.compute(), values.compute())


def test_scratch_and_memory_have_no_digests(monkeypatch):
    monkeypatch.setattr(products_module, "NamedStore", lambda storage: pytest.fail("named"))
    monkeypatch.setattr("daskcluster.runtime.held.block_digest", lambda block: pytest.fail("digested"))
    dc.USPEC(3, n_representatives=30, random_state=0).fit(ROWS)
