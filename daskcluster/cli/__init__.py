"""The command line: arguments -> io, estimators, metrics.

Results go to stdout, progress and messages to stderr. Exit codes: 0 done, 1 the run failed, 2 the arguments or the
input are not acceptable, 130 interrupted by Ctrl-C, 143 and 129 ended by the signals SIGTERM and SIGHUP.

Commands, one file a family:

data.py         make, convert
fit.py          fit, predict, plan
consensus.py    consensus
score.py        score
info.py         info
demo.py         demo: most of the above in one

What they share, each importing only from those above it:

signals.py      a signal that ends a command
wording.py      the library's messages in the words of the command line
failures.py     exceptions -> one line and an exit code
options.py      kinds of values, common options, options handed on as one argument
inputs.py       where all arrays are opened
cluster.py      where the work runs, and how a command runs
algorithms.py   the options of estimators, as a table
pairs.py        constraints: their options, and files of pairs
outputs.py      what a command keeps: checked before the work, written after it
report.py       results as JSON, as a table or as text
scale.py        scaled features

Anything that takes longer than a moment to import is imported inside the function that needs it.
"""

from __future__ import annotations

import click

from .. import __version__
from . import consensus, data, demo, fit, info, number, page, score
from .failures import Main

__all__ = ["main"]


@click.group(
    cls=Main,
    commands=[
        data.make,
        data.convert,
        fit.fit,
        fit.predict,
        fit.plan,
        consensus.consensus,
        score.score,
        number.n_clusters,
        page.report,
        info.info,
        demo.demo,
    ],
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    name="daskcluster",
)
@click.version_option(__version__, prog_name="daskcluster")
@click.option("--debug", is_flag=True, help="Show the traceback of a failure.")
def main(debug: bool) -> None:
    """Find clusters in Zarr arrays that do not fit in memory."""
