"""Imports follow the arrows: cli -> estimators -> ensemble, constraints -> pipeline -> kernels.

The rules are the tables below. A room is a module or a folder directly under `daskcluster/`. An import counts
wherever it stands, in a function or under `TYPE_CHECKING` too: it shows what one room knows of another.
"""

import ast
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "daskcluster"

ROOT = "daskcluster"  # the package itself, its __init__.py

#: Leaves: they know no other room.
BASICS = {"errors", "typing"}

#: Room -> the rooms it imports besides itself; all of them, and no others.
IMPORTS: dict[str, set[str]] = {
    # the arrows
    "__main__": {"cli"},
    "cli": {ROOT, "datasets", "errors", "estimators", "files", "io", "metrics", "plotting", "report", "runtime"},
    ROOT: {"constraints", "datasets", "errors", "estimators", "io", "metrics", "plotting"},
    "estimators": {"constraints", "ensemble", "pipeline", "kernels"}
    | {"errors", "io", "markup", "registry", "report", "runtime", "typing", "validation"},
    "report": {"files", "io", "markup", "metrics", "plotting", "typing"},
    "ensemble": {"pipeline", "kernels", "errors", "io", "linalg", "runtime", "validation"},
    "constraints": {"pipeline", "kernels", "errors", "io", "linalg", "markup", "runtime", "validation"},
    "pipeline": {"kernels", "errors", "io", "linalg", "markup", "runtime", "validation"},
    "kernels": {"hooks", "typing"},
    # beside them
    "io": {"errors", "files", "kernels", "registry", "runtime", "typing", "validation"},
    "runtime": {"errors", "files", "hooks", "markup", "preload", "typing"},
    "files": {"errors", "typing"},
    "metrics": {"ensemble", "files", "io", "kernels", "linalg", "runtime", "typing", "validation"},
    "datasets": {"runtime", "typing", "validation"},
    "plotting": {"kernels", "metrics", "runtime", "typing", "validation"},
    "linalg": {"filtered", "runtime"},
    "filtered": {"kernels"},
    "preload": {"kernels"},
    "hooks": set(),
    "markup": set(),
    "registry": set(),
    "validation": set(),
    "errors": set(),
    "typing": set(),
}

#: Outside packages that cost start-up time or belong to one job -> the rooms that may import them.
HOMES: dict[str, set[str]] = {
    "click": {"cli"},
    "dask": set(IMPORTS) - {"kernels", "errors"},  # files: its settings only
    "dask_ml": {"cli"},
    "distributed": {"cli", "runtime"},
    "joblib": set(),
    "matplotlib": {"plotting", "report"},
    "numba": {"kernels"},
    "pandas": {"io"},
    "pyarrow": {"io"},
    "rich": {"cli", "runtime"},
    "sparse": {"constraints", "pipeline"},
    "zarr": {"cli", "files", "io", "metrics", "runtime"},
}

#: Calls that take a scheduler's name (`set` is dask.config.set), and those that start one.
COMPUTING = {"compute", "persist", "set", "store", "to_zarr"}
STARTING = {"Client", "LocalCluster", "SSHCluster", "SpecCluster"}

#: What `import daskcluster` must not load: each costs a good part of a second, and many users need none.
LAZY = ["dask_ml", "distributed", "matplotlib", "pandas", "pyarrow", "rich", "sklearn.cluster", "sparse"]


@dataclass(frozen=True)
class Import:
    module: str  # the full name of what is imported
    line: int
    at_start: bool  # runs when the importing module is imported


@dataclass(frozen=True)
class Module:
    name: str
    is_package: bool
    tree: ast.Module

    @property
    def room(self) -> str:
        return _room(self.name)

    def imports(self) -> Iterator[Import]:
        yield from self._imports(self.tree, at_start=True)

    def _imports(self, node: ast.AST, *, at_start: bool) -> Iterator[Import]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Import):
                for alias in child.names:
                    yield Import(_known(alias.name), child.lineno, at_start)
            elif isinstance(child, ast.ImportFrom):
                base = self._absolute(child)
                for alias in child.names:
                    yield Import(_known(f"{base}.{alias.name}"), child.lineno, at_start)
            elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
                yield from self._imports(child, at_start=False)
            elif isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
                for statement in child.body:
                    yield from self._imports(ast.Module([statement], []), at_start=False)
                yield from self._imports(ast.Module(child.orelse, []), at_start=at_start)
            else:
                yield from self._imports(child, at_start=at_start)

    def _absolute(self, node: ast.ImportFrom) -> str:
        if node.level == 0:
            return node.module or ""
        parts = self.name.split(".")
        parts = parts[: len(parts) - node.level + self.is_package]
        return ".".join([*parts, node.module] if node.module else parts)


def _module_name(path: Path) -> str:
    parts = [ROOT, *path.relative_to(PACKAGE).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


PATHS = {_module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}
MODULES = {
    name: Module(name, path.stem == "__init__", ast.parse(path.read_text(encoding="utf-8"), str(path)))
    for name, path in PATHS.items()
}


def _known(name: str) -> str:
    """Cut `module.attribute` down to the module, for modules of this package."""
    while name.startswith(f"{ROOT}.") and name not in PATHS:
        name = name.rpartition(".")[0]
    return name


def _room(name: str) -> str:
    return name.split(".")[1] if "." in name else ROOT


def _calls(tree: ast.AST) -> Iterator[ast.Call]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.Call))


each_module = pytest.mark.parametrize("module", MODULES.values(), ids=MODULES.keys())


def test_every_room_is_in_the_table():
    assert {module.room for module in MODULES.values()} == set(IMPORTS)


@cache
def _rooms_known() -> dict[str, dict[str, str]]:
    """Room -> the rooms that it imports, each with a place where it does."""
    known: dict[str, dict[str, str]] = {room: {} for room in IMPORTS}
    for module in MODULES.values():
        for found in module.imports():
            if found.module.split(".")[0] == ROOT and _room(found.module) != module.room:
                known[module.room].setdefault(_room(found.module), f"{module.name}, line {found.line}")
    return known


@pytest.mark.parametrize("room", IMPORTS)
def test_a_room_imports_what_the_table_says(room):
    known = _rooms_known()[room]
    assert not {other: place for other, place in known.items() if other not in IMPORTS[room]}
    assert not IMPORTS[room] - known.keys(), "allowed, and not needed"


def test_no_room_knows_one_that_knows_it():
    try:
        TopologicalSorter({room: set(known) for room, known in _rooms_known().items()}).prepare()
    except CycleError as error:
        pytest.fail(f"import cycle: {' -> '.join(error.args[1])}")


@each_module
def test_outside_packages_stay_where_they_belong(module):
    wrong = [
        f"line {found.line}: {module.name} imports {found.module}"
        for found in module.imports()
        if module.room not in HOMES.get(found.module.split(".")[0], {module.room})
    ]
    assert not wrong


def test_no_module_needs_itself_to_start():
    graph = {
        name: {found.module for found in module.imports() if found.at_start and found.module in MODULES} - {name}
        for name, module in MODULES.items()
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"import cycle: {' -> '.join(error.args[1])}")


@each_module
def test_the_scheduler_is_the_users(module):
    """Work runs on whatever scheduler is active: only the command line names or starts one."""
    if module.room == "cli":
        return
    wrong = []
    for call in _calls(module.tree):
        name = ast.unparse(call.func).rpartition(".")[2]
        words = {keyword.arg for keyword in call.keywords}
        words |= {node.value for node in ast.walk(call) if isinstance(node, ast.Constant)}
        if name in COMPUTING and words & {"scheduler", "get"}:
            wrong.append(f"line {call.lineno}: {name}(...) names a scheduler")
        if name in STARTING:
            wrong.append(f"line {call.lineno}: starts a {name}")
    assert not wrong


def test_the_package_starts_light():
    code = f"import sys, daskcluster; print(*[name for name in {LAZY} if name in sys.modules])"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    ).stdout.split()
    assert not loaded
