"""Results for people."""

from __future__ import annotations

import sys

import click

from daskcluster.cli.report import show


def test_results_are_a_table_on_a_terminal(capsys, monkeypatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    show({}, False, "a title", [("name", "value")])
    shown = click.unstyle(capsys.readouterr().out)
    assert "a title" in shown
    assert "│ name │ value │" in shown
