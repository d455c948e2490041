"""What is published: wheel and sdist are built, installed where nothing of the checkout is seen, and used.

Dependencies are those of the environment that runs the tests: nothing is downloaded. `ci/release` installs them anew.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

import daskcluster as dc

CHECKOUT = Path(__file__).parents[1]
PROGRAM = """
import sys, tempfile
from pathlib import Path

sys.path.insert(0, sys.argv[1])
import daskcluster, typed_project

assert Path(daskcluster.__file__).is_relative_to(sys.prefix), daskcluster.__file__
with tempfile.TemporaryDirectory() as folder:
    typed_project.main(Path(folder))
"""

pytestmark = pytest.mark.slow


def run(*command: object, cwd: Path, **variables: str) -> str:
    """Run a program that must end well, without the checkout on its path."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | variables
    done = subprocess.run(
        [str(word) for word in command], cwd=cwd, env=environment, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with wheel and sdist."""
    pytest.importorskip("hatchling", reason="hatchling builds wheel and sdist")
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "hatchling", "build", "-d", folder, cwd=CHECKOUT)
    return folder


@pytest.fixture(scope="module")
def python(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment in which the wheel is installed."""
    place = tmp_path_factory.mktemp("fresh")
    run(sys.executable, "-m", "venv", "--without-pip", place, cwd=place)
    fresh = place / "bin/python"
    site = Path(run(fresh, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=place).strip())
    (wheel,) = built.glob("*.whl")
    install = ("-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", site, wheel)
    run(sys.executable, *install, cwd=place)
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    return fresh


def test_the_wheel_holds_the_package_and_nothing_else(built):
    (wheel,) = built.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    package = {
        str(path.relative_to(CHECKOUT))
        for path in (CHECKOUT / "daskcluster").rglob("*")
        if path.is_file() and path.suffix not in (".pyc", ".nbi", ".nbc")
    }
    assert {name for name in names if name.startswith("daskcluster/")} == package
    assert "daskcluster/py.typed" in names
    assert {name.split("/")[0] for name in names} == {"daskcluster", f"daskcluster-{dc.__version__}.dist-info"}


def test_the_sdist_holds_what_its_tests_need(built, tmp_path):
    (archive,) = built.glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        packed.extractall(tmp_path, filter="data")
    (root,) = tmp_path.iterdir()
    tracked = run("git", "ls-files", cwd=CHECKOUT).split()
    missing = [name for name in tracked if name[0] != "." and not (root / name).exists()]
    assert not missing
    chosen = (
        "tests/test_packaging.py",
        "tests/test_layers.py",
        "tests/estimators/test_conventions.py::test_given_centers_are_one_start",
    )
    run(sys.executable, "-m", "pytest", "-q", "-n", "0", *chosen, cwd=root, PYTHONPATH=str(root))


def test_the_installed_wheel_runs(python, tmp_path):
    run(python, "-c", PROGRAM, CHECKOUT / "tests", cwd=tmp_path)
    for line in (
        "make flower rows.zarr -n 2000",
        "fit rows.zarr -k 13 --seed 0 --labels labels.zarr --model model.zarr",
        "predict rows.zarr --model model.zarr --labels again.zarr",
        "score labels.zarr again.zarr",
    ):
        run(python, "-m", "daskcluster", *line.split(), cwd=tmp_path)


def test_a_typed_project_is_checked_against_the_installed_wheel(python, tmp_path):
    project = tmp_path / "typed_project.py"
    project.write_text((CHECKOUT / "tests/typed_project.py").read_text(encoding="utf-8"), encoding="utf-8")
    (tmp_path / "mypy.ini").write_text("[mypy]\n", encoding="utf-8")
    check: tuple[Any, ...] = (sys.executable, "-m", "mypy", "--strict", "--config-file", tmp_path / "mypy.ini")
    run(*check, "--python-executable", python, project, cwd=tmp_path)
    wrong = tmp_path / "wrong.py"
    wrong.write_text("import daskcluster as dc\n\ndc.USPEC(2, n_representatives='many')\n", encoding="utf-8")
    with pytest.raises(AssertionError, match="incompatible type"):
        run(*check, "--python-executable", python, wrong, cwd=tmp_path)
