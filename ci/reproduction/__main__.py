"""The command behind `ci/reproduce`: run the draws that are missing, print the tables, write the pages."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from dask.system import CPU_COUNT
from distributed.system import MEMORY_LIMIT

from ci.reproduction.compare import compare, load_reasons
from ci.reproduction.data import SYNTHETIC, is_absent
from ci.reproduction.pictures import draw_figure
from ci.reproduction.plan import draws_of, efforts_of, load_plan
from ci.reproduction.records import Records
from ci.reproduction.report import Filled, summary, text_of, write_index, write_page
from ci.reproduction.running import Order, jobs_of, run_jobs
from ci.reproduction.values import FULL, Experiment, Paper, Table, set_of
from ci.reproduction.worker import Worker, load_paper

HERE = Path(__file__).parent
RESULTS = Path("reproduction-results")
#: Letters of the parts of a table or figure, "2a".
PARTS = "abcdefghi"


def paper_names() -> list[str]:
    """The papers that have a file here."""
    return sorted(path.stem for path in (HERE / "papers").glob("*.py") if path.stem[0] != "_")


def default_jobs(gigabytes: float = Experiment.gigabytes) -> int:
    """Draws at a time: one a core, if four fifths of the memory have room for them."""
    return max(1, min(CPU_COUNT, int(0.8 * MEMORY_LIMIT // (gigabytes * 2**30))))


def parser() -> argparse.ArgumentParser:
    """The options."""
    made = argparse.ArgumentParser(prog="ci/reproduce", description=__doc__)
    made.add_argument("papers", nargs="*", metavar="PAPER", help=f"one of {', '.join(paper_names())}; default: all")
    made.add_argument("--table", action="append", default=[], metavar="N", help="this table only; may be repeated")
    made.add_argument("--figure", action="append", default=[], metavar="N", help="this figure only; may be repeated")
    made.add_argument(
        "--jobs", type=int, metavar="J", help="draws at a time; default: one a core, if the memory has room for them"
    )
    made.add_argument("--draws", type=int, metavar="D", help="draws of a cell; default: as plan.toml has it")
    made.add_argument("--hours", type=float, default=3.0, help="begin no draw after so many (default %(default)s)")
    made.add_argument("--limit", type=float, metavar="S", help="CPU seconds of a draw; default: 600, of some 900, 3600")
    made.add_argument("--memory", type=float, metavar="GB", help="memory of a draw; default: 6")
    made.add_argument("--sets", nargs="+", metavar="NAME", help="these data sets only")
    made.add_argument("--systems", nargs="+", metavar="NAME", help="these systems only")
    made.add_argument("--paper-sizes", action="store_true", help="synthetic sets with as many rows as in the paper")
    made.add_argument("--data", metavar="FOLDER", help="the real data sets; default: what DASKCLUSTER_DATA names")
    made.add_argument(
        "--results",
        type=Path,
        metavar="FOLDER",
        help=f"draws go here; default: {RESULTS}, with --report-only those of this repository",
    )
    made.add_argument(
        "--docs",
        type=Path,
        metavar="FOLDER",
        help="write the pages here, such as docs/reproduction, of papers with draws; the index if all have some",
    )
    made.add_argument("--report-only", action="store_true", help="run nothing")
    made.add_argument(
        "--retry", action="store_true", help="run draws that failed again, not only if they may take more"
    )
    return made


def chosen(paper: Paper, arguments: argparse.Namespace) -> list[Table]:
    """Tables that were asked for: of parts such as 2a and 2b both, if it was 2."""
    if not arguments.table and not arguments.figure:
        return list(paper.tables)
    wanted = {("table", number) for number in arguments.table} | {("figure", number) for number in arguments.figure}
    return [
        table
        for table in paper.tables
        if wanted & {(table.kind, table.number), (table.kind, table.number.rstrip(PARTS))}
    ]


def check_names(asked: argparse.ArgumentParser, arguments: argparse.Namespace, papers: Sequence[Paper]) -> None:
    """Refuse tables, figures, sets and systems that no chosen paper has: nothing would be run, and nothing said."""
    tables = [table for paper in papers for table in paper.tables]
    for kind in ("table", "figure"):
        numbers = [one.number for one in tables if one.kind == kind]
        known = dict.fromkeys(spelt for number in numbers for spelt in (number.rstrip(PARTS), number))
        _refuse(asked, kind, getattr(arguments, kind), list(known))
    shown = [table for paper in papers for table in chosen(paper, arguments)]
    _refuse(asked, "sets", arguments.sets or (), list(dict.fromkeys(set_of(c) for one in shown for c in one.columns)))
    _refuse(asked, "systems", arguments.systems or (), list(dict.fromkeys(s for one in shown for s in one.systems)))


def _refuse(asked: argparse.ArgumentParser, option: str, names: Sequence[str], known: Sequence[str]) -> None:
    for name in names:
        if name not in known:
            asked.error(f"--{option}: there is no {name}; there are {', '.join(known) or 'none'}")


def part_of(tables: Sequence[Filled], arguments: argparse.Namespace) -> list[Filled]:
    """Tables with the cells of the sets and systems that were asked for."""
    found = []
    for table, cells in tables:
        kept = [
            cell
            for cell in cells
            if (not arguments.sets or set_of(cell.column) in arguments.sets)
            and (not arguments.systems or cell.system in arguments.systems)
        ]
        found += [(replace(table, full=arguments.paper_sizes), kept)] if kept else []
    return found


def run(paper: Paper, arguments: argparse.Namespace, order: Order, workers: Sequence[Worker]) -> None:
    """Run the draws of a paper's tables that are missing."""
    plan = load_plan(HERE / "plan.toml")

    def draws(table: Table, system: str, column: str) -> int:
        if arguments.draws is not None:
            return int(arguments.draws)
        return draws_of(plan, paper.name, table.experiment.name, system, column)

    jobs = jobs_of(paper, chosen(paper, arguments), draws, arguments.sets or (), arguments.systems or ())
    given = {"seconds": arguments.limit, "gigabytes": arguments.memory}
    limits = {name: value for name, value in given.items() if value is not None}
    run_jobs([replace(job, experiment=replace(job.experiment, **limits)) for job in jobs], order, workers)


def filled(paper: Paper, tables: Sequence[Table], results: Path, paper_sizes: bool) -> list[Filled]:
    """Tables with their cells."""
    reasons = load_reasons(HERE / "reasons.toml")
    found = []
    for table in tables:
        records = Records(results, paper.name, table.experiment.name)
        name = f"{paper.name}/{table.number}{FULL if paper_sizes else ''}"
        found.append((table, compare(table, records, paper_sizes, reasons.get(name, {}))))
    return found


def filled_in_full(paper: Paper, results: Path) -> list[Filled]:
    """What the page of a paper has: each table and, if some was drawn, what it has at the paper's sizes."""
    found = []
    for table in paper.tables:
        found += filled(paper, [table], results, False)
        full = replace(
            table,
            columns=tuple(column for column in table.columns if set_of(column) in SYNTHETIC),
            full=True,
        )
        cells = filled(paper, [full], results, True)[0][1]
        if any(cell.tried for cell in cells):
            found.append((full, [cell for cell in cells if cell.tried or cell.published]))
    return found


def main() -> None:
    """Run it."""
    asked = parser()
    arguments = asked.parse_args()
    unknown = set(arguments.papers) - set(paper_names())
    if unknown:
        asked.error(f"no paper {', '.join(sorted(unknown))}; there are {', '.join(paper_names())}")
    papers = [load_paper(name) for name in arguments.papers or paper_names()]
    check_names(asked, arguments, papers)
    given = arguments.data or os.environ.get("DASKCLUSTER_DATA")
    if given and not Path(given).is_dir():
        asked.error(f"there is no folder of data {given}")
    if arguments.results is None:
        arguments.results = HERE / "draws" if arguments.report_only else RESULTS
    if arguments.data:
        os.environ["DASKCLUSTER_DATA"] = str(Path(arguments.data).resolve())
    for name, least in (("jobs", 1), ("draws", 0), ("limit", 1), ("memory", 1), ("hours", 0)):
        value = getattr(arguments, name)
        if value is not None and value < least:
            asked.error(f"--{name} must be {least} or more, got {value:g}")
    jobs = arguments.jobs or default_jobs(arguments.memory or Experiment.gigabytes)
    for ending in (signal.SIGTERM, signal.SIGHUP):  # the processes are ended too
        signal.signal(ending, lambda number, _: sys.exit(128 + number))
    until = time.monotonic() + 3600 * arguments.hours
    order = Order(arguments.results, arguments.paper_sizes, arguments.retry, until)
    with ExitStack() as stack:
        workers = [stack.enter_context(Worker(max(1, CPU_COUNT // jobs))) for _ in range(jobs)]
        for paper in papers:
            if not arguments.report_only:
                run(paper, arguments, order, workers)
            found = filled(paper, chosen(paper, arguments), arguments.results, arguments.paper_sizes)
            found = part_of(found, arguments)
            for one in found:
                print(text_of(paper, one))
            here = sorted(
                {set_of(column) for table in paper.tables for column in table.columns if is_absent(set_of(column))}
            )
            print(f"\n{paper.name}: {summary(found)}" + (f" Absent sets: {', '.join(here)}." if here else ""))
    if arguments.docs:
        write_pages(arguments)


def write_pages(arguments: argparse.Namespace) -> None:
    """Pages of all papers that have draws, whichever were run now; the index if all have some."""
    plan = load_plan(HERE / "plan.toml")
    both, efforts = [], {}
    for paper in map(load_paper, paper_names()):
        if not (arguments.results / paper.name).is_dir():
            print(f"{arguments.results} has no draws of {paper.name}: no page, and no index", file=sys.stderr)
            continue
        found = filled_in_full(paper, arguments.results)
        drawn = [
            table.number
            for table, cells in found
            if table.kind == "figure" and not table.full and draw_figure(arguments.docs, paper, table, cells)
        ]
        write_page(arguments.docs, paper, found, drawn)
        both.append((paper, found))
        efforts[paper.name] = efforts_of(paper, plan, arguments.results)
    if len(both) == len(paper_names()):
        write_index(arguments.docs, both, efforts)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        print("stopped: draws that are done are kept, and the same command goes on", file=sys.stderr)
        sys.exit(128 + signal.SIGINT)
