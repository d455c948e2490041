"""Everything that a reader may copy runs: the example programs, and the code of README.md and docs/.

A page runs as a reader would follow it: its ```python and ```bash blocks one after the other, in one folder,
the Python ones in one namespace. Other fences (```text, ```console) are for looking at; `<!-- not run -->` on
the line before a fence keeps it from running. A number of a million or more, written like 1_000_000, is a
number of rows: it becomes DASKCLUSTER_EXAMPLE_ROWS here.
"""

import json
import os
import re
import shlex
import sys
from pathlib import Path

import pytest

from tests.cli.calls import succeed
from tests.programs import run_program

CHECKOUT = Path(__file__).parents[1]
EXAMPLES = sorted(path for path in (CHECKOUT / "examples").glob("*") if path.suffix in {".py", ".sh"})
PAGES = [CHECKOUT / "README.md", *sorted((CHECKOUT / "docs").glob("*.md"))]

ROWS = 20_000
LARGE_NUMBER = re.compile(r"\b[1-9]\d{0,2}(?:_\d{3}){2,}\b")
FENCE = re.compile(
    r"^(?P<mark><!-- not run -->\n+)?(?P<fence>`{3,})(?P<language>python|bash)\n(?P<code>.*?)^(?P=fence)$",
    re.MULTILINE | re.DOTALL,
)

# Runs the blocks that its argument names as JSON: [[language, line, code], ...]. A Python block is compiled
# under the page's name at its own line, so that a traceback points into the page.
RUN_PAGE = """
import json, shlex, subprocess, sys

def main():
    namespace = {"__name__": "__page__"}
    for language, line, code in json.loads(sys.argv[2]):
        print(f"{language} block at line {line}:", code, sep="\\n", file=sys.stderr, flush=True)
        if language == "python":
            exec(compile("\\n" * line + code, sys.argv[1], "exec"), namespace)
        elif sys.argv[3] == "shell":
            subprocess.run(["bash", "-euo", "pipefail", "-c", code], check=True, stdin=subprocess.DEVNULL)
        else:
            from daskcluster.cli import main as command

            for line in code.splitlines():
                command(shlex.split(line)[1:], standalone_mode=False)

if __name__ == "__main__":
    main()
"""


def _blocks(text: str) -> list[tuple[str, int, str]]:
    return [
        (
            found["language"],
            text.count("\n", 0, found.start("code")),
            LARGE_NUMBER.sub(str(ROWS), found["code"]),
        )
        for found in FENCE.finditer(text)
        if not found["mark"]
    ]


RUNNING_PAGES = [page for page in PAGES if _blocks(page.read_text(encoding="utf-8"))]


def _run(program: str, folder: Path, *arguments: str) -> None:
    environment = {
        "DASKCLUSTER_EXAMPLE_ROWS": str(ROWS),
        "MPLBACKEND": "agg",
        # The `daskcluster` command of the environment that runs the tests, whether it is activated or not.
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]),
        # Relative paths stay inside the folder; numba's cache stays with the package.
        "TMPDIR": str(folder),
    }
    done = run_program(program, *arguments, cwd=folder, env=environment, timeout=600)
    assert done.returncode == 0, f"exit code {done.returncode}\n{done.stdout}\n{done.stderr}"


# A shell script starts an interpreter a command; `test_commands_of_a_shell_script` runs the same commands in this one.
@pytest.mark.parametrize(
    "example",
    [pytest.param(path, marks=pytest.mark.slow if path.suffix == ".sh" else [], id=path.name) for path in EXAMPLES],
)
def test_example_runs(example, tmp_path):
    if example.suffix == ".py":
        _run("import runpy, sys; runpy.run_path(sys.argv[1], run_name='__main__')", tmp_path, str(example))
    else:
        _run("import subprocess, sys; sys.exit(subprocess.call(['bash', sys.argv[1]]))", tmp_path, str(example))


@pytest.mark.parametrize("script", [path for path in EXAMPLES if path.suffix == ".sh"], ids=lambda path: path.name)
def test_commands_of_a_shell_script(script, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = [shlex.split(line) for line in script.read_text(encoding="utf-8").splitlines()]
    commands = [line[1:] for line in lines if line[:1] == ["daskcluster"]]
    assert len(commands) >= 5
    for command in commands:
        succeed(*(str(ROWS) if word == "$rows" else word for word in command))


@pytest.mark.parametrize("page", RUNNING_PAGES, ids=lambda path: path.name)
def test_page_runs(page, tmp_path, run_slow):
    blocks = _blocks(page.read_text(encoding="utf-8"))
    # A shell starts an interpreter a command; plain commands are called in the page's process as well.
    commands = [line for language, _, code in blocks if language == "bash" for line in code.splitlines()]
    plain = all(line.startswith("daskcluster ") and not set(line) & set("|&;<>$`\\*") for line in commands)
    _run(RUN_PAGE, tmp_path, page.name, json.dumps(blocks), "calls" if plain and not run_slow else "shell")


def test_marks_and_sizes_of_a_page():
    page = """
```python
n = 2_000_000
```
<!-- not run -->
```bash
ls
```
```text
n
```
```bash
ls 1_000
```
"""
    assert _blocks(page) == [("python", 2, f"n = {ROWS}\n"), ("bash", 12, "ls 1_000\n")]
