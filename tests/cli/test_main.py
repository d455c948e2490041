"""The group of commands: help, start, entry points."""

from __future__ import annotations

import subprocess
import sys
import time

import click
from click.testing import CliRunner

import daskcluster
from daskcluster.cli import main
from tests.cli.calls import ROOT, succeed


def test_help_names_every_command_and_option():
    known = {"make", "convert", "fit", "predict", "consensus", "score", "info", "plan", "demo", "n-clusters", "report"}
    assert set(main.commands) == known
    text = succeed("--help").stdout
    for name, command in main.commands.items():
        assert name in text
        assert command.help
        for parameter in command.params:
            if isinstance(parameter, click.Option):
                assert parameter.help, (name, parameter.name)
        succeed(name, "--help")
    assert succeed("--version").stdout.split()[-1] == daskcluster.__version__


def test_help_imports_nothing_heavy_and_is_quick():
    program = (
        "import sys; from daskcluster.cli import main; main(['fit', '--help'], standalone_mode=False)\n"
        "heavy = {'numpy', 'dask', 'zarr', 'numba', 'sklearn', 'scipy', 'rich', 'distributed'} & set(sys.modules)\n"
        "sys.exit(f'imported: {heavy}' if heavy else 0)"
    )
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, cwd=ROOT)
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-m", "daskcluster", "--help"], check=True, capture_output=True, cwd=ROOT)
        seconds.append(time.perf_counter() - start)
    assert min(seconds) < 0.5


def test_works_as_a_command_of_another_group():
    """As ``dask daskcluster`` does it."""
    parent = click.Group("dask", commands={"daskcluster": main})
    result = CliRunner().invoke(parent, ["daskcluster", "info", "nowhere.zarr"])
    assert result.exit_code == 2
    assert "nothing exists there" in result.output


def test_entry_points_name_the_group():
    text = (ROOT / "pyproject.toml").read_text()
    assert text.count('daskcluster = "daskcluster.cli:main"') == 2
    assert isinstance(main, click.Group)
