"""Tables in HTML, for notebooks and reports; what users named is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

__all__ = ["Markup", "html_lines", "html_table", "pretty_text"]


class Markup(str):
    """Text that is HTML already: it is not escaped."""

    __slots__ = ()


def pretty_text(shown: Any, printer: Any, cycle: bool) -> None:
    """Print `str` of something where IPython shows no HTML, not the fields of a dataclass; its `_repr_pretty_`."""
    printer.text(str(shown))


def html_table(rows: Iterable[Sequence[str]], head: Sequence[str] = (), caption: str = "", *, n_texts: int = 1) -> str:
    """Make a table, each of whose rows begins with its name.

    Parameters
    ----------
    rows : iterable of sequences of str
    head : sequence of str
        Names of the columns; a table without them has no head.
    caption : str
    n_texts : int
        Columns of text, the first ones, which begin at the left; notebooks draw all cells at the right, as numbers.

    Returns
    -------
    str
    """
    lines = [f'<caption style="text-align: left; white-space: nowrap">{_text(caption)}</caption>'] if caption else []
    if head:
        lines.append(f"<thead>{_row(head, 'col', len(head), n_texts)}</thead>")
    lines += ["<tbody>", *(_row(row, "row", 1, n_texts) for row in rows), "</tbody>"]
    return "<table>" + "\n".join(lines) + "</table>"


def html_lines(lines: Iterable[str]) -> str:
    """Make a paragraph of lines."""
    return f"<p>{'<br>'.join(map(_text, lines))}</p>"


def _row(cells: Sequence[str], scope: str, n_heads: int, n_texts: int) -> str:
    made = []
    for place, cell in enumerate(cells):
        # A head without words would be read aloud as one.
        tag, more = ("th", f' scope="{scope}"') if place < n_heads and cell else ("td", "")
        left = ' style="text-align: left"' if place < n_texts else ""
        made.append(f"<{tag}{more}{left}>{_text(cell)}</{tag}>")
    return f"<tr>{''.join(made)}</tr>"


def _text(text: str) -> str:
    return text if isinstance(text, Markup) else escape(text)
