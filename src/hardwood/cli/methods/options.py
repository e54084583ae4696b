"""The parameters of every method as options of the command line.

Nothing about a parameter is copied here: its name and default come from the estimator, its kind,
range and choices from the fields of the learner.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import typer

from hardwood.cli.errors import CommandError
from hardwood.cli.methods.names import MethodName, declarations_of, learners_of
from hardwood.cli.methods.sentences import help_of
from hardwood.cli.read import open_model
from hardwood.parameters import Check, Parameters, Values, real

# Parameters with a shared option (--jobs, --seed, --class-weight), and those without an option.
_NO_OPTIONS = {"n_jobs", "random_state", "class_weight", "verbose", "callbacks", "warm_start"}


@dataclass(frozen=True)
class MethodOption:
    """One parameter of a method as an option.

    Attributes
    ----------
    name
        Name of the parameter; the option has dashes instead of underscores.
    values
        Kind, range and choices of its values.
    check
        Raises ValueError for values that the learner refuses.
    default
        The default in words.
    help
        What it does, in a sentence.
    base
        Default of a parameter that is a group of settings, such as `training`.
    """

    name: str
    values: Values
    check: Check
    default: str
    help: str
    base: Parameters | None = None

    @property
    def flag(self) -> str:
        """The option as users write it."""
        return f"--{self.name.replace('_', '-')}"

    @property
    def words(self) -> str:
        """The sentence of help, with the range and the default."""
        bounds = f"Range: {self.values.bounds}." if self.values.bounds else ""
        default = f"Default: {self.default}." if self.default else ""
        return " ".join(filter(None, (self.help, bounds, default)))

    def parse(self, text: str) -> ParsedValue:
        """Read a value from the command line."""
        try:
            if self.base is not None:
                return ParsedValue(_setting(text, self.flag, self.base))
            value = _value(text, self.values)
            if self.values.kind == "switch" and value not in (True, False, "auto"):
                raise ValueError(f"{self.flag} must be auto, yes or no, got {text!r:.200}.")
            if self.name == "init":
                return ParsedValue(_start(value, self.flag, self.values))
            self.check(self.flag, value)
        except (ValueError, TypeError) as error:
            raise CommandError(str(error)) from error
        return ParsedValue(value)

    def signature(self, method: str) -> inspect.Parameter:
        """Return the parameter of a function from which typer builds the option."""
        panel = f"Options of --method {method}"
        if self.values.kind == "flag":
            info = typer.Option(
                f"{self.flag}/--no-{self.flag.removeprefix('--')}",
                help=self.words,
                show_default=False,
                rich_help_panel=panel,
            )
            return _keyword(self.name, Annotated[bool | None, info])
        info = typer.Option(
            self.flag,
            parser=self.parse,
            metavar=_metavar(self),
            help=self.words,
            show_default=False,
            rich_help_panel=panel,
        )
        return _keyword(self.name, Annotated[Any if self.base is None else list[Any], info])


@dataclass(frozen=True)
class ParsedValue:
    """A value from the command line, which may be None."""

    value: Any


# Parameters of nearly every method, which the help shows last.
_LAST = ("loss", "early_stopping", "validation_fraction", "training")


@cache
def options_of(method: MethodName) -> dict[str, MethodOption]:
    """Return the options of a method by the names of their parameters."""
    declared = [
        {each.name: each.default for each in fields(kind) if each.name not in _NO_OPTIONS}
        for kind in declarations_of(method)
    ]
    known = {each.name: each for learner in learners_of(method) for each in fields(learner)}
    options = {}
    for name in sorted({**declared[0], **declared[-1]}, key=_LAST.__contains__):
        defaults = [names[name] for names in declared if name in names]
        metadata = known[name].metadata if name in known else {}
        values = metadata.get("values") or _values_of_estimator(name, defaults)
        if values.kind == "choice" and None not in defaults:
            values = replace(values, or_none=False)
        base = known[name].default if name in known else None
        options[name] = MethodOption(
            name,
            values,
            metadata.get("check") or _check_of_estimator(values),
            _default_words(name, defaults, values),
            help_of(method, name) + _names(base),
            base if isinstance(base, Parameters) else None,
        )
    return options


def _values_of_estimator(name: str, defaults: list[Any]) -> Values:
    """Describe the values of a parameter that only the estimator has, not the learner."""
    if name == "loss":
        return Values("text", or_auto="auto" in defaults)
    if name == "init":
        from hardwood.learn.greedy import SPLITTERS

        return Values("choice", choices=SPLITTERS, or_none=None in defaults)
    if isinstance(defaults[0], bool):
        return Values("flag")
    return Values("real", or_none=name == "time_limit")


def _check_of_estimator(values: Values) -> Check:
    """Check only the kind of a value: the estimator checks the range when it learns."""

    def check(name: str, value: Any) -> Any:
        is_number = values.kind == "real" and not (values.or_none and value is None)
        return real(name, value, float("-inf")) if is_number else value

    return check


def _default_words(name: str, defaults: list[Any], values: Values) -> str:
    if values.kind == "flag":
        word = name.replace("_", "-")
        return f"--{word}" if defaults[0] else f"--no-{word}"
    if values.kind == "object" and not values.or_auto:
        return ""
    words = [_word(default) for default in defaults]
    if len(set(words)) == 1:
        return words[0]
    return f"{words[0]}; {words[1]} for regression"


def _names(base: Any) -> str:
    """List the settings in the group of a parameter."""
    if not isinstance(base, Parameters):
        return ""
    return f" Names: {', '.join(each.name for each in fields(base))}."


def _word(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return {None: "none", True: "yes", False: "no"}[value]
    return f"{value:g}" if isinstance(value, float) else str(value)


def _metavar(option: MethodOption) -> str:
    values = option.values
    if option.base is not None:
        return "NAME=VALUE"
    if values.kind == "switch":
        return "auto|yes|no"
    number = {
        "integer": ["N"],
        "real": ["NUMBER"],
        "text": ["NAME"],
        "one_or_more": ["N", "N,N,..."],
        "sequence": ["N,N,..."],
    }
    file = ["FILE"] if option.name == "init" else []
    return "|".join([*number.get(values.kind, []), *values.words, *file])


def value_of(value: Any, option: MethodOption) -> Any:
    """Return the value of an option as its parsers left it, ready for the estimator."""
    if option.base is not None:
        return replace(option.base, **dict(each.value for each in value))
    return value.value if isinstance(value, ParsedValue) else value


# --- values from text -------------------------------------------------------------------------


def _value(text: str, values: Values) -> Any:
    """Convert text to a value; return other text unchanged, so that the check refuses it."""
    if values.or_none and text == "none":
        return None
    if text in values.words:
        return text
    if values.kind == "switch":
        return {"yes": True, "no": False}.get(text, text)
    if values.kind in ("integer", "real"):
        return _number(text, int if values.kind == "integer" else float)
    if values.kind in ("one_or_more", "sequence"):
        parts = [_number(part, int, float) for part in text.split(",")]
        return parts[0] if len(parts) == 1 and values.kind == "one_or_more" else tuple(parts)
    return text


def _number(text: str, *kinds: Callable[[str], Any]) -> Any:
    for kind in kinds:
        try:
            return kind(text)
        except ValueError:
            pass
    return text


def _setting(text: str, option: str, base: Parameters) -> tuple[str, Any]:
    """Read one ``NAME=VALUE`` of a parameter that is a group of settings."""
    known = {each.name: each for each in fields(base)}
    name, _, value = text.partition("=")
    name = name.strip().replace("-", "_")
    if name not in known or not value:
        raise CommandError(
            f"{option} needs NAME=VALUE with one of the names {', '.join(known)}; got {text!r:.99}."
        )
    found = _value(value.strip(), known[name].metadata["values"])
    known[name].metadata["check"](f"{option} {name}", found)
    return name, found


def _start(value: Any, option: str, values: Values) -> Any:
    """Return the name of a greedy splitter, or the model in a file."""
    if value is None or value in values.words:
        return value
    if not Path(value).exists():
        raise CommandError(
            f"{option} needs {', '.join(values.words)} or a model file; there is no file {value}."
        )
    return open_model(Path(value))


def _keyword(name: str, annotation: Any) -> inspect.Parameter:
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation
    )
