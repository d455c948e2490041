"""What stands beside the code and repeats what it says: recipe, pins, citation, the documentation's list of pages."""

from __future__ import annotations

import re
import runpy
import tomllib
from pathlib import Path

import pytest

import daskcluster as dc

CHECKOUT = Path(__file__).parents[1]
PROJECT = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
REQUIREMENT = re.compile(r"^(?P<name>[A-Za-z0-9-]+)(?:\[\w+\])?\s*>=(?P<least>[\d.]+)")
#: Packages that conda-forge has under another name: its "dask" brings more than `dask[array]`.
CONDA_NAMES = {"dask": "dask-core"}


def requirements(lines: list[str]) -> dict[str, str]:
    found = [REQUIREMENT.match(line) for line in lines]
    assert all(found)
    return {match["name"]: match["least"] for match in found if match}


def test_the_conda_recipe_requires_what_the_project_does():
    yaml = pytest.importorskip("yaml")
    recipe = yaml.safe_load((CHECKOUT / "ci/conda/recipe.yaml").read_text(encoding="utf-8"))
    python, *others = recipe["requirements"]["run"]
    wanted = requirements(PROJECT["dependencies"])
    assert requirements(others) == {CONDA_NAMES.get(name, name): least for name, least in wanted.items()}
    assert python == "python >=${{ python_min }}"
    assert PROJECT["requires-python"] == ">=" + recipe["context"]["python_min"]
    assert recipe["context"]["version"] == dc.__version__
    scripts = [f"{name} = {place}" for name, place in PROJECT["scripts"].items()]
    assert recipe["build"]["python"]["entry_points"] == scripts
    assert (recipe["about"]["summary"], recipe["about"]["license"]) == (PROJECT["description"], PROJECT["license"])


def test_the_oldest_versions_that_are_tested_are_those_that_are_admitted():
    lines = (CHECKOUT / "ci/minimum.txt").read_text(encoding="utf-8").splitlines()
    pinned = dict(line.split("==") for line in lines if "==" in line)
    extras = PROJECT["optional-dependencies"]
    wanted = requirements([*PROJECT["dependencies"], *(line for name in ("plot", "convert") for line in extras[name])])
    for name, least in wanted.items():
        assert as_numbers(pinned[name])[: len(as_numbers(least))] == as_numbers(least) or name in ("numcodecs",), name


def as_numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def test_the_citation_names_this_version():
    yaml = pytest.importorskip("yaml")
    citation = yaml.safe_load((CHECKOUT / "CITATION.cff").read_text(encoding="utf-8"))
    assert (citation["version"], citation["license"]) == (dc.__version__, PROJECT["license"])
    assert {"cff-version", "message", "title", "authors"} <= citation.keys()  # what the format demands


def test_every_page_of_the_documentation_is_in_its_lists():
    text = runpy.run_path(str(CHECKOUT / "docs/conf.py"))["list_for_machines"](CHECKOUT / "docs")
    pages = {page.stem for page in (CHECKOUT / "docs").iterdir() if page.suffix in (".md", ".rst")} - {"index"}
    assert set(re.findall(r"^- \[[^\]]+\]\((\w+)\.html\): .{10}", text, re.MULTILINE)) == pages
    assert text.startswith("# daskcluster\n\n> Spectral clustering of arrays that do not fit in memory")
    toctree = (CHECKOUT / "docs/index.md").read_text(encoding="utf-8").partition("```{toctree}")[2]
    assert set(re.findall(r"^(\w+)$", toctree, re.MULTILINE)) >= pages
