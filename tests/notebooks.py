"""The notebooks of examples/: run in a kernel of their own, compared with what they hold, and written anew.

    python -m tests.notebooks [--check] [NAME ...]

`ci/notebooks` calls this. A cell whose tags have "varies" is not compared: what it shows differs from run to run.
"""

from __future__ import annotations

import argparse
import math
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

__all__ = ["NOTEBOOKS", "differences", "load", "run_notebook"]

CHECKOUT = Path(__file__).parents[1]
NOTEBOOKS = sorted((CHECKOUT / "examples").glob("*.ipynb"))

#: Times, and what depends on the machine.
MEASURED = re.compile(r"\d[\d.,]* ?(?:s|min|B|kiB|MiB|GiB|TiB)\b|\b0x[0-9a-f]+|127\.0\.0\.1:\d+")
NUMBER = re.compile(r"(?<![\w.])-?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?")
#: Processors add up in other orders.
TOLERANCE = 0.02
#: An address, as it stands in a notebook.
PORT = re.compile(r"127\.0\.0\.1:\d+")

# It is importable, and a program that tries it fails.
NO_WIDGETS = 'raise RuntimeError("widgets are not needed: a page does not keep their state")\n'


def load(path: Path) -> Any:
    """A notebook as nbformat reads it."""
    import nbformat

    return nbformat.read(path, as_version=4)


def run_notebook(path: Path, folder: Path, *, timeout: int = 300) -> Any:
    """Run all cells of a notebook in a folder, in a new kernel; raises what nbclient raises for a cell that fails."""
    notebook = load(path)
    with tempfile.TemporaryDirectory() as ours:
        _run(notebook, folder, Path(ours), timeout)
    return _cleaned(notebook)


def _run(notebook: Any, folder: Path, ours: Path, timeout: int) -> None:
    from nbclient import NotebookClient
    from traitlets.config import Config

    (ours / "ipywidgets.py").write_text(NO_WIDGETS)
    (ours / "matplotlibrc").write_text("figure.dpi: 72\nsavefig.dpi: 72\n")  # for small files
    client = NotebookClient(
        notebook,
        kernel_name="python3",
        config=Config({"KernelManager": {"transport": "ipc", "ip": str(ours / "kernel")}}),  # no ports
        timeout=timeout,
        record_timing=False,
        resources={"metadata": {"path": folder}},
    )
    client.execute(
        env=os.environ
        | {
            "PYTHONPATH": os.pathsep.join([str(CHECKOUT), str(ours)]),
            "IPYTHONDIR": str(ours),
            "MATPLOTLIBRC": str(ours),
            "TMPDIR": str(ours),
            "DASK_LOGGING__DISTRIBUTED": "error",  # closing a cluster warns where processors are busy
            "DASK_NUM_WORKERS": "2",  # a plan tells how many threads there are
            "MPLBACKEND": "module://matplotlib_inline.backend_inline",
        }
    )


def _cleaned(notebook: Any) -> Any:
    """What a notebook keeps of a run: nothing of the kernel, streams in one piece."""
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    for cell in notebook.cells:
        if cell.cell_type != "code":
            continue
        outputs: list[Any] = []
        for output in cell.outputs:
            if output.output_type == "stream":
                output.text = PORT.sub("127.0.0.1:8787", output.text)
                if outputs and outputs[-1].get("name") == output.name:
                    outputs[-1].text += output.text
                    continue
            outputs.append(output)
        cell.outputs = outputs
    return notebook


def differences(old: Any, new: Any) -> list[str]:
    """What the cells of a new run show otherwise than before: what is printed, plain text, and our tables."""
    found = []
    for number, (before, after) in enumerate(zip(old.cells, new.cells, strict=True)):
        if after.cell_type != "code" or "varies" in after.metadata.get("tags", ()):
            continue
        texts = [list(map(_text, cell.outputs)) for cell in (before, after)]
        if len(texts[0]) != len(texts[1]) or not all(map(_alike, *texts)):
            found.append(f"cell {number}:\n{after.source}\nheld:\n{texts[0]}\nshows:\n{texts[1]}")
    return found


def _text(output: Any) -> str:
    if output.output_type == "stream":
        return str(output["text"])
    page = output["data"].get("text/html", "")
    ours = page if page.startswith("<table><") else ""  # by `markup`; pages of others change with their versions
    return str(output["data"]["text/plain"]) + ours


def _alike(one: str, other: str) -> bool:
    parts = [MEASURED.sub("", text) for text in (one, other)]
    words = [" ".join(NUMBER.sub("#", part).split()) for part in parts]
    numbers = [[float(found.replace(",", "")) for found in NUMBER.findall(part)] for part in parts]
    return words[0] == words[1] and all(
        math.isclose(a, b, rel_tol=TOLERANCE, abs_tol=TOLERANCE) for a, b in zip(*numbers, strict=True)
    )


def _pictures(notebook: Any) -> list[str]:
    return [
        output.data["image/png"]
        for cell in notebook.cells
        for output in cell.get("outputs", ())
        if "image/png" in output.get("data", {})
    ]


def main() -> None:
    """Write the notebooks anew, or check them."""
    import nbformat

    parser = argparse.ArgumentParser(
        prog="ci/notebooks", description="Run the notebooks of examples/ and rewrite them."
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="of notebooks, all by default")
    parser.add_argument("--check", action="store_true", help="write nothing; fail where one shows something else")
    given = parser.parse_args()
    known = {path.stem: path for path in NOTEBOOKS}
    if unknown := set(given.names) - set(known):
        parser.error(f"no notebook {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    wrong = 0
    for name in given.names or known:
        path = known[name]
        old = load(path)
        with tempfile.TemporaryDirectory() as folder:
            new = run_notebook(path, Path(folder))
        found = differences(old, new)
        wrong += bool(found)
        same = not found and _pictures(old) == _pictures(new)
        verdict = f"{len(found)} cells show something else" if found else "as it is" if same else "other pictures"
        print(f"{name}: {verdict}", flush=True)
        if given.check:
            print(*found, sep="\n", end="\n" * bool(found))
        elif not same:  # other times alone are no change
            nbformat.write(new, path)
    sys.exit(bool(given.check and wrong))


if __name__ == "__main__":
    main()
