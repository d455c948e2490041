"""The command behind `ci/reproduce`: run the draws that are missing, print the tables, write the pages."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from ci.reproduction.compare import compare, load_reasons
from ci.reproduction.data import is_absent
from ci.reproduction.pictures import draw_figure
from ci.reproduction.plan import Plan, draws_of, efforts_of, load_plan
from ci.reproduction.records import Record, Records
from ci.reproduction.report import Filled, summary, text_of, write_index, write_page
from ci.reproduction.values import Paper, Table, set_of
from ci.reproduction.worker import Stopped, Worker, load_paper

HERE = Path(__file__).parent


def paper_names() -> list[str]:
    """The papers that have a file here."""
    return sorted(path.stem for path in (HERE / "papers").glob("*.py") if path.stem[0] != "_")


def parser() -> argparse.ArgumentParser:
    """The options."""
    made = argparse.ArgumentParser(prog="ci/reproduce", description=__doc__)
    made.add_argument("papers", nargs="*", metavar="PAPER", help=f"one of {', '.join(paper_names())}; default: all")
    made.add_argument("--table", action="append", default=[], metavar="N", help="this table only; may be repeated")
    made.add_argument("--figure", action="append", default=[], metavar="N", help="this figure only; may be repeated")
    made.add_argument("--draws", type=int, metavar="D", help="draws of a cell; default: as plan.toml has it, 0 to 3")
    made.add_argument("--hours", type=float, default=3.0, help="begin no draw after so many (default %(default)s)")
    made.add_argument("--sets", nargs="+", metavar="NAME", help="these data sets only")
    made.add_argument("--systems", nargs="+", metavar="NAME", help="these systems only")
    made.add_argument("--paper-sizes", action="store_true", help="synthetic sets with as many rows as in the paper")
    made.add_argument("--data", metavar="FOLDER", help="the real data sets; default: what DASKCLUSTER_DATA names")
    made.add_argument(
        "--results", type=Path, default=Path("reproduction-results"), metavar="FOLDER", help="draws go here"
    )
    made.add_argument("--docs", type=Path, metavar="FOLDER", help="write the pages here, such as docs/reproduction")
    made.add_argument("--report-only", action="store_true", help="run nothing")
    made.add_argument("--retry", action="store_true", help="run draws that failed again")
    return made


def chosen(paper: Paper, arguments: argparse.Namespace) -> list[Table]:
    """Tables that were asked for: of parts such as 2a and 2b both, if it was 2."""
    if not arguments.table and not arguments.figure:
        return list(paper.tables)
    wanted = {("table", number) for number in arguments.table} | {("figure", number) for number in arguments.figure}
    return [
        table
        for table in paper.tables
        if wanted & {(table.kind, table.number), (table.kind, table.number.rstrip("abcdefghi"))}
    ]


def run_table(paper: Paper, table: Table, arguments: argparse.Namespace, worker: Worker) -> None:
    """Run the draws of a table that are missing: all systems of one draw of one column after the other."""
    records = Records(arguments.results, paper.name, table.experiment.name)
    plan = load_plan(HERE / "plan.toml")
    for column in table.columns:
        if is_absent(set_of(column)) or (arguments.sets and set_of(column) not in arguments.sets):
            continue
        systems = [one for one in table.systems if not arguments.systems or one in arguments.systems]
        wanted = {system: _draws(arguments, plan, paper, table, system, column) for system in systems}
        for number in range(max(wanted.values(), default=0)):
            for system in systems:
                if number >= wanted[system]:
                    continue
                known = [r for r in records.of(system, column, arguments.paper_sizes) if r.draw <= number]
                if any(r.draw == number and not (r.failed and arguments.retry) for r in known):
                    continue
                if any(r.failed for r in known) and not arguments.retry:
                    continue  # a system that failed at one draw would fail, as slowly, at the next
                if time.monotonic() > arguments.until:
                    return
                records.add(_one(paper, table, system, column, number, arguments.paper_sizes, worker))


def _draws(arguments: argparse.Namespace, plan: Plan, paper: Paper, table: Table, system: str, column: str) -> int:
    """Draws of a cell: what was asked for, else what the plan says."""
    if arguments.draws is not None:
        return int(arguments.draws)
    return draws_of(plan, paper.name, table.experiment.name, system, column)


def _one(
    paper: Paper, table: Table, system: str, column: str, number: int, paper_sizes: bool, worker: Worker
) -> Record:
    start = time.perf_counter()
    try:
        metrics = worker.run(paper.name, table.experiment, system, column, number, paper_sizes)
        record, said = Record(system, column, number, paper_sizes, metrics), ""
    except Stopped as stopped:
        record, said = Record(system, column, number, paper_sizes, failed=str(stopped)), f": {stopped}"
    elapsed = time.perf_counter() - start
    print(
        f"{paper.name} {table.experiment.name}: {column}, {system}, draw {number}, {elapsed:.1f} s{said}",
        file=sys.stderr,
    )
    return record


def filled(paper: Paper, tables: Sequence[Table], arguments: argparse.Namespace) -> list[Filled]:
    """Tables with their cells."""
    reasons = load_reasons(HERE / "reasons.toml")
    return [
        (
            table,
            compare(
                paper.name,
                table,
                Records(arguments.results, paper.name, table.experiment.name),
                arguments.paper_sizes,
                reasons,
            ),
        )
        for table in tables
    ]


def main() -> None:
    """Run it."""
    asked = parser()
    arguments = asked.parse_args()
    unknown = set(arguments.papers) - set(paper_names())
    if unknown:
        asked.error(f"no paper {', '.join(sorted(unknown))}; there are {', '.join(paper_names())}")
    if arguments.data:
        os.environ["DASKCLUSTER_DATA"] = str(Path(arguments.data).resolve())
    arguments.until = time.monotonic() + 3600 * arguments.hours
    papers = [load_paper(name) for name in arguments.papers or paper_names()]
    with Worker() as worker:
        for paper in papers:
            if not arguments.report_only:
                for table in chosen(paper, arguments):
                    run_table(paper, table, arguments, worker)
            found = filled(paper, chosen(paper, arguments), arguments)
            for one in found:
                print(text_of(paper, one))
            here = sorted(
                {set_of(column) for table in paper.tables for column in table.columns if is_absent(set_of(column))}
            )
            print(f"\n{paper.name}: {summary(found)}" + (f" Absent sets: {', '.join(here)}." if here else ""))
    if arguments.docs:
        write_pages(arguments)


def write_pages(arguments: argparse.Namespace) -> None:
    """Pages of all papers, whichever were run now, and the index."""
    plan = load_plan(HERE / "plan.toml")
    both, efforts = [], {}
    for paper in map(load_paper, paper_names()):
        found = filled(paper, paper.tables, arguments)
        drawn = [
            table.number
            for table, cells in found
            if table.kind == "figure" and draw_figure(arguments.docs, paper, table, cells)
        ]
        write_page(arguments.docs, paper, found, drawn)
        both.append((paper, found))
        efforts[paper.name] = efforts_of(paper, plan, arguments.results)
    write_index(arguments.docs, both, efforts)


if __name__ == "__main__":
    main()
