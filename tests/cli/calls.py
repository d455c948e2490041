"""Run commands of the command line, in this process or in one of their own."""

from __future__ import annotations

import inspect
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import daskcluster
from daskcluster.cli import main

ROOT = Path(daskcluster.__file__).parents[1]

#: Rows of the fixture `stores`, and the options that fit them quickly.
N = 3000
FAST = ["--representatives", "300"]


def run(*arguments: Any) -> Result:
    """Run a command in this process; stdout and stderr apart."""
    apart: dict[str, Any] = {"mix_stderr": False} if "mix_stderr" in inspect.signature(CliRunner).parameters else {}
    return CliRunner(**apart).invoke(main, [str(argument) for argument in arguments])


def succeed(*arguments: Any) -> Result:
    """Run a command that must succeed."""
    result = run(*arguments)
    assert result.exit_code == 0, (result.stderr, result.exception)
    return result


def as_json(*arguments: Any) -> dict[str, Any]:
    """Run a command with --json: stdout is one object and nothing else."""
    lines = succeed(*arguments, "--json").stdout.splitlines()
    assert len(lines) == 1
    found: dict[str, Any] = json.loads(lines[0])
    return found


def shown(*arguments: Any) -> dict[str, str]:
    """Run a command: its lines of text on stdout, by their names."""
    lines = (line.split("  ", 1) for line in succeed(*arguments).stdout.splitlines())
    return {name: value.strip() for name, value in lines}


def fail(code: int, *arguments: Any) -> str:
    """Run a command that must fail: one clear line on stderr, nothing on stdout, no traceback."""
    result = run(*arguments)
    assert result.exit_code == code, (result.stderr, result.exception)
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    return result.stderr.strip().splitlines()[-1]


def start(*arguments: Any, **environment: str) -> subprocess.Popen[str]:
    """Start the command line in a process of its own, and of a group of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "daskcluster", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env=os.environ | environment,
        start_new_session=True,
        # A shell starts what runs in the background with the signal ignored, and that would be inherited.
        preexec_fn=(lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)) if os.name == "posix" else None,
    )


def wait_for_end_of_group(group: int) -> None:
    """Wait until no process of a group is left."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)
    pytest.fail("processes are left")
