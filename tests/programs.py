"""Programs in processes of their own, each forked from one that has the package and its kernels, and no threads.

An interpreter of its own would import and load for three seconds; a fork starts at once. What a program does to its
process, how it ends and what it prints is as of any other. This file is also the server that forks.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from functools import cache
from pathlib import Path
from typing import Any

__all__ = ["run_program"]

ROOT = Path(__file__).parents[1]


def run_program(
    code: str, *arguments: Any, cwd: Path | None = None, env: dict[str, str] | None = None, timeout: float = 200
) -> subprocess.CompletedProcess[str]:
    """Run a program as `python -c` does; what it runs beyond the timeout is killed.

    Parameters
    ----------
    code : str
    *arguments : object
        sys.argv[1:], as text.
    cwd : Path, optional
    env : dict, optional
        More variables of the environment.
    timeout : float
        Seconds.
    """
    with tempfile.TemporaryDirectory() as folder:
        request = {
            "code": code,
            "arguments": [str(argument) for argument in arguments],
            "cwd": str(cwd or Path.cwd()),
            "env": env or {},
            "timeout": timeout,
            "stdout": f"{folder}/stdout",
            "stderr": f"{folder}/stderr",
        }
        server = _server()
        assert server.stdin is not None
        assert server.stdout is not None
        print(json.dumps(request), file=server.stdin, flush=True)
        returncode = json.loads(server.stdout.readline())
        stdout, stderr = (Path(folder, name).read_text() for name in ("stdout", "stderr"))
    return subprocess.CompletedProcess(code, returncode, stdout, stderr)


@cache
def _server() -> subprocess.Popen[str]:
    """The server; it ends when its input does."""
    server = subprocess.Popen(
        [sys.executable, __file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    atexit.register(server.communicate)
    return server


# -- the server ------------------------------------------------------------------------------------------------------


def serve() -> dict[str, Any] | None:
    """Fork a child for every request, and report its end. Returns in the children, with their requests, and at last."""
    import dask

    import daskcluster

    with dask.config.set(scheduler="synchronous"):
        for cls in (daskcluster.KMeans, daskcluster.USPEC):
            cls(2, random_state=0).fit([[0.0, 0.0], [0.0, 1.0], [9.0, 0.0], [9.0, 1.0]])
    for line in sys.stdin:
        request: dict[str, Any] = json.loads(line)
        pid = os.fork()
        if pid == 0:
            become(request)
            return request
        print(ended(pid, time.monotonic() + request["timeout"]), flush=True)
    return None


def become(request: dict[str, Any]) -> None:
    """Make this process what a new one would be."""
    os.setpgid(0, 0)
    null = os.open(os.devnull, os.O_RDONLY)
    files = [null, *(os.open(request[name], os.O_WRONLY | os.O_CREAT) for name in ("stdout", "stderr"))]
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    sys.stdin = open(0)  # noqa: SIM115  # as long as the process lives
    os.chdir(request["cwd"])
    os.environ.update(request["env"])
    tempfile.tempdir = None
    sys.argv = ["-c", *request["arguments"]]
    sys.path[0] = ""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def ended(pid: int, deadline: float) -> int:
    """How a child ended; one that takes too long is killed, with its children."""
    while time.monotonic() < deadline:
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.killpg(pid, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


if __name__ == "__main__":
    requested = serve()
    if requested is not None:
        exec(compile(requested["code"], "<string>", "exec"), {"__name__": "__main__"})
