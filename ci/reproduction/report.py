"""Cells as text for the terminal and as pages of the documentation."""

from __future__ import annotations

import math
import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from ci.reproduction.compare import MARKS, Compared
from ci.reproduction.plan import Effort
from ci.reproduction.values import FULL, Paper, Table, set_of

__all__ = ["Filled", "cells_of", "summary", "text_of", "write_index", "write_page"]

#: A table with its cells.
Filled = tuple[Table, list[Compared]]

INTRODUCTION = """
`ci/reproduce` runs the systems that five papers compare and prints each cell of their tables beside what it found.
These pages are what it wrote: nothing on them was typed but the papers' own numbers, the notes, and the reasons. A
cell has the published value and spread, ours with the standard deviation over the draws, the difference in standard
errors of *ours*, the seconds, and a mark:
""".strip().splitlines()

HOW_TO_READ = """
A cell that stands in a table and in a figure of the same draws counts once, sizes of sets do not count. Most cells have
three draws, some more, as their draws were cheap or their difference was looked into.
Differences below half a unit of the last printed digit count as none. With two or three draws the standard error is
itself a rough guess: two of them cover 70 % and 82 % then, not 95 %, so that some of the `+` and `-` are chance. The
paper's value counts as exact, though it is a mean of few runs, often over one draw of base clusterings. Nobody looked
for reasons above the paper: a `+` may come from a comparator that is better here than there, from a set that is not
quite the paper's (the synthetic ones are drawn, the form of others is inferred), or from chance. Below it, a cell says
what experiments showed, behind a verdict: *reached* if a choice that the paper leaves open gives the value, *in part*
if it gives some of what is missing, *not settled* if it gives the value but another cell or the paper's text speaks
against it, and *not explained*. Choices were tried cell by cell until one gave the value or none was left, mostly with
two or three draws: that one gives the value does not prove that it is the paper's.

**Seconds** are CPU seconds of the process that ran the draw, all threads together, so that waiting does not count; but
draws beside other work take up to three times as many, first draws load what later ones have, and threads that wait
for each other count. They are rough, and not compared, since the machines differ too; cells of seconds are not counted
below. Those of an ensemble count its base clusterings in uspec_usenc_2019 and figure 3 of fast_csc_and_secrp_2017, and
not elsewhere. Draws without seconds were made before these were taken.

**CA.** uspec_usenc_2019 and fast_csc_and_secrp_2017 call CA what is purity (the second by its eq. (34)); isec_2020
has accuracy by one-to-one matching. Each page says which of the two stands beside the paper's column.

Comparators stand in `ci/reproduction/systems`, one file each, and are tested on cases solved by hand or against
independent programs; those that the package has for users (EAC, WCT, KCC, ECC, PTGP, LWGP, SEC, ISEC) are the
package's. Not all are written from the papers that introduced them: CSP, SL, CCS and SCACS follow the equations of the
paper that compares them, ESCG its authors' program, RSEC a function that follows its authors', and EulerSC, FastESC and
ECMC what others say of them, with choices of ours that their files name, as these papers were not at hand. The papers'
numbers are typed from their text, but for rows of averages and ranks. Where the text has curves or a picture, ours
stand alone. Draws are in `ci/reproduction/draws`, a line each.
""".strip().splitlines()

HOW_LONG = """
## How long all of it takes

Without `--draws` a cell has the draws of `ci/reproduction/plan.toml`, 3 for most; cells left out there, most of them
with hundreds of seconds a draw, run if `--draws` is given. A core takes a draw at a time (`--jobs`). The sum of the
draws' CPU seconds, base clusterings and reading of data with them, with the means of the draws that there are; cells
that were never drawn are not in it:
""".strip().splitlines()

#: Standard errors beyond which it is not said how many: with few draws they may be next to nothing.
FAR = 50
HEAD = ("set", "system", "paper", "ours", "draws", "in s.e.", "seconds", "paper's", "")


def _number(value: float | None, spread: float | None, digits: int) -> str:
    if value is None:
        return ""
    return f"{value:.{digits}f}" + ("" if spread is None else f" ± {spread:.{digits}f}")


def cells_of(table: Table, cell: Compared) -> list[str]:
    """The columns of `HEAD` for a cell, further metrics, and the reason."""
    digits = table.digits
    paper = _number(cell.published.mean, cell.published.spread, digits) if cell.published else "—"
    ours = _number(cell.ours, cell.spread, digits) or (textwrap.shorten(cell.failed, 60) or "not run")
    apart = "" if cell.errors is None else f"{cell.errors:+.1f}"
    if cell.errors is not None and abs(cell.errors) > FAR:
        apart = f"beyond {math.copysign(FAR, cell.errors):+.0f}"
    shown = [cell.column, cell.system, paper, ours, str(cell.draws or ""), apart]
    shown += [_number(cell.seconds, None, 2), _number(cell.paper_seconds, None, 2), cell.mark]
    shown += [_number(cell.also.get(name), None, digits) for name in table.also]
    return [*shown, cell.reason]


def head_of(table: Table) -> list[str]:
    """Titles of the columns of `cells_of`."""
    return [*HEAD, *table.also, "reason"]


def title_of(paper: Paper, table: Table) -> str:
    """Title of a table."""
    said = f", synthetic sets{FULL}" if table.full else ""
    return f"{table.kind.capitalize()} {table.number}: {table.title}{said}"


def text_of(paper: Paper, filled: Filled) -> str:
    """A table for the terminal."""
    table, cells = filled
    rows = [head_of(table), *(cells_of(table, cell) for cell in cells if cell.tried)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    marks = count([filled])
    counted = [_counted(marks)] if marks else []
    return "\n".join([f"\n{paper.name}, {title_of(paper, table)}", *lines, *counted, *_not_run(cells)])


def count(tables: Sequence[Filled]) -> Counter[str]:
    """Marks of the cells that can be compared, and of those that were not run, each once."""
    return Counter(cell.mark for cell in _once(tables))


def verdicts(tables: Sequence[Filled]) -> str:
    """How many of the cells below have which verdict, the most first."""
    found = Counter(cell.reason.partition(":")[0] for cell in _once(tables) if cell.mark == "-")
    return ", ".join(f"{number} {verdict}" for verdict, number in found.most_common())


def _once(tables: Sequence[Filled]) -> list[Compared]:
    """Cells that count.

    What stands in several tables, or in a table and a figure, counts once, with the printed value if one has it.
    """
    found: dict[tuple[str, str, bool, str, str], Compared] = {}
    for table, cells in tables:
        for cell in cells if table.compared and table.result else ():
            key = table.experiment.name, table.metric, table.full, cell.system, cell.column
            if key not in found or found[key].published is None:
                found[key] = cell
    return list(found.values())


def _counted(marks: Counter[str]) -> str:
    return "; ".join(f"{marks[mark]} {said}" for mark, said in MARKS.items() if marks[mark]) + "."


def summary(tables: Sequence[Filled]) -> str:
    """One sentence: how many cells have which mark."""
    marks = count(tables)
    return f"{sum(marks.values())} cells: {_counted(marks)}" if marks else "Nothing to compare."


def _markdown(rows: Sequence[Sequence[str]]) -> list[str]:
    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

    return [line(rows[0]), line(["---"] * len(rows[0])), *map(line, rows[1:])]


def _not_run(cells: Sequence[Compared]) -> list[str]:
    """Sentences that name the cells without a draw, column by column, if there are any."""
    return [
        f"{said}: {named}."
        for said, mark in (("Not run", "."), ("Not run, nor in the paper", "N"))
        if (named := _named(cells, [cell for cell in cells if cell.mark == mark and not cell.tried]))
    ]


def _named(cells: Sequence[Compared], some: Sequence[Compared]) -> str:
    """The names of some of a table's cells."""
    left: dict[str, list[str]] = {}
    for cell in some:
        left.setdefault(cell.column, []).append(cell.system)
    systems = list(dict.fromkeys(cell.system for cell in cells))
    named: dict[tuple[str, str], list[str]] = {}  # systems, set: parameters
    for column, row in left.items():
        who = "all systems" if row == systems else ", ".join(row)
        named.setdefault((who, set_of(column)), []).append(column.partition(" @ ")[2])
    said = []
    for (who, name), found in named.items():
        every = [cell.column for cell in cells if set_of(cell.column) == name and cell.system == systems[0]]
        parameters = "" if not all(found) else ", all of them" if len(found) == len(every) else f" @ {'; '.join(found)}"
        said.append(f"{name}{parameters}: {who}")
    return "; ".join(said)


def write_page(folder: Path, paper: Paper, tables: Sequence[Filled], pictures: Sequence[str]) -> None:
    """The page of a paper. Rows that were not run are named together below a table."""
    lines = [f"# {paper.name}", "", f"{paper.title}.", ""]
    if paper.note:
        lines += [paper.note, ""]
    lines += [f"**Summary.** {summary(tables)}", ""]
    if paper.absent:
        absent = "; ".join(f"{name} ({public})" for name, public in paper.absent.items())
        lines += [f"**Sets of the paper that are not at hand:** {absent}.", ""]
    for table, cells in tables:
        lines += [f"## {title_of(paper, table)}", ""]
        if table.note:
            lines += [table.note, ""]
        run = [cell for cell in cells if cell.tried]
        if run:
            lines += [*_markdown([head_of(table), *(cells_of(table, cell) for cell in run)]), ""]
        lines += [line for said in _not_run(cells) for line in (said, "")]
        if table.kind == "figure" and table.number in pictures and not table.full:
            if any(cell.published for cell in run):
                lines += ["Dots and lines are ours, crosses are the paper's.", ""]
            lines += [f"![{title_of(paper, table)}]({paper.name}-{table.kind}-{table.number}.svg)", ""]
    _write(folder / f"{paper.name}.md", lines)


def _efforts(efforts: Mapping[str, Sequence[Effort]]) -> list[str]:
    """The estimate: one row an experiment, and the sum."""
    rows = [["paper", "experiment", "for", "cells", "left out", "CPU seconds", "cells not measured"]]
    for paper, found in efforts.items():
        for one in found:
            what = ", ".join(one.tables)
            rows.append(
                [
                    paper,
                    one.experiment,
                    what,
                    *map(str, (one.cells, one.left)),
                    f"{one.seconds:.0f}",
                    str(one.unmeasured),
                ]
            )
    every = [one for found in efforts.values() for one in found]
    counts = [str(sum(getattr(one, name) for one in every)) for name in ("cells", "left")]
    seconds = sum(one.seconds for one in every)
    rows.append(["all", "", "", *counts, f"{seconds:.0f}", str(sum(one.unmeasured for one in every))])
    return _markdown(rows)


def write_index(
    folder: Path, papers: Sequence[tuple[Paper, Sequence[Filled]]], efforts: Mapping[str, Sequence[Effort]]
) -> None:
    """The first page: how to read the others, the counts of all papers, and what all draws take."""
    titles = ("=", "+", "-", "1", "o", "x", "N", ".")
    rows = [["paper", "cells", *titles]]
    for paper, tables in papers:
        for full, said in ((False, ""), (True, f", synthetic sets{FULL}")):
            marks = count([one for one in tables if one[0].full == full])
            if marks:
                counts = str(sum(marks.values())), *(str(marks[mark]) for mark in titles)
                rows.append([f"{{doc}}`{paper.name}`{said}", *counts])
    marks = count([one for _, tables in papers for one in tables])
    rows.append(["all", str(sum(marks.values())), *(str(marks[mark]) for mark in titles)])
    lines = [
        "# The papers' tables, run again",
        "",
        *INTRODUCTION,
        "",
        *(f"- `{mark}` {said}" for mark, said in MARKS.items()),
        "",
        *HOW_TO_READ,
        "",
        *_markdown(rows),
        "",
        *(
            [f"Of the cells below {below}.", ""]
            if (below := verdicts([one for _, each in papers for one in each]))
            else []
        ),
        *HOW_LONG,
        "",
        *_efforts(efforts),
        "",
        "```{toctree}",
        ":maxdepth: 1",
        "",
        *(paper.name for paper, _ in papers),
        "```",
    ]
    _write(folder / "index.md", lines)


def _write(path: Path, lines: Sequence[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines).rstrip("\n") + "\n")
