"""The words of the library's messages -> those of the command line: parameters become the options that set them."""

from __future__ import annotations

import re

import click

__all__ = ["in_options", "shortened"]

#: Parameters of the library whose options or arguments have another name.
NAMES = {
    "n_clusters": "clusters",
    "random_state": "seed",
    "y": "partial_labels",
    "labels_true": "true",
    "labels_pred": "pred",
}

#: Advice for those who write Python -> the same for those who type commands.
PHRASES = {
    "open it with load_model": "give it to `predict` with --model",
}

#: A message is cut to so many characters.
LONGEST = 600


def in_options(text: str, command: click.Command | None, others: click.Group | None = None) -> str:
    """A message of the library with the options of a command instead of parameters.

    Parameters
    ----------
    text : str
    command : click.Command
        The one that was given. A parameter that it does not set may be one of `fit`, of which that is said.
    others : click.Group
        All commands.
    """
    for phrase, instead in PHRASES.items():
        text = text.replace(phrase, instead)
    if command is None:
        return text
    fit = None if others is None else others.commands.get("fit")

    def assigned(match: re.Match[str]) -> str:
        word, name, value = match["word"] or "", match["name"], match["value"]
        option, whose = _option(command, name), ""
        if option is None and fit is not None:
            option, whose = _option(fit, name), "`fit` "
        if not isinstance(option, click.Option):
            return match[0]
        if (whose and word) or word == "pass ":
            word = "give "
        return f"{word}{whose}{_set(option, value)}"

    text = re.sub(
        r"(?P<word>\b(?:pass|give|set) )?(?<![\w.'/])(?P<name>[a-z_]{2,})="
        r"(?P<value>True|False|'[^']*'|[-+\d.]+(?:e[-+]?\d+)?|)(?![\w\[(])",
        assigned,
        text,
    )

    def named(match: re.Match[str]) -> str:
        option = _option(command, match["name"])
        return match[0] if option is None else f"{_flag(option)}{match['rest']}"

    text = re.sub(r"^(?P<name>y|[a-z_]{3,})(?P<rest>: | must |\.shape )", named, text)
    # Names that are no words of the language are parameters wherever they stand.
    return re.sub(r"(?<![\w.'/-])(?P<name>[a-z]+_[a-z_]+)(?P<rest>)(?![\w=(/.'])", named, text)


def _option(command: click.Command, name: str) -> click.Parameter | None:
    """The option, or argument, of a command that sets a parameter of the library."""
    name = NAMES.get(name, name)
    by_name = {param.name: param for param in command.params}
    for known in (name, f"consensus__{name}", name.removeprefix("n_")):
        if known in by_name:
            return by_name[known]
    return None


def _flag(option: click.Parameter) -> str:
    """How a user knows it."""
    if isinstance(option, click.Option):
        return max(option.opts, key=len)
    return getattr(option, "metavar", None) or str(option.name)


def _set(option: click.Option, value: str) -> str:
    """How an option gets a value."""
    if value == "False" and option.secondary_opts:
        return option.secondary_opts[0]
    if value in ("", "True"):
        return _flag(option)
    return f"{_flag(option)} {value.strip(chr(39))}"


def shortened(text: str) -> str:
    """A message in one line of bounded length; what is cut are most often names of tasks."""
    text = " ".join(text.split())
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}... ({len(text) - LONGEST:,} more characters)"
