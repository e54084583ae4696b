"""Commands with the option `--method`, which decides what further options there are."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, get_args

import typer
from typer.core import TyperCommand

from hardwood.cli.errors import CommandError
from hardwood.cli.methods.names import METHODS, MethodName, TunedMethodName
from hardwood.cli.methods.options import options_of, value_of


class Command(TyperCommand):
    """A command whose usage line names required arguments as they are: TABLE, not {TABLE}."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the words of the usage line after the command's name."""
        return [piece.strip("{}") for piece in super().collect_usage_pieces(ctx)]


class FitCommand(Command):
    """A command with the option `--method`, which decides what further options there are.

    The values of those that were given are in the context's ``obj``, by the parameters' names.
    """

    default_method: MethodName = "tree"
    methods: tuple[MethodName, ...] = tuple(METHODS)

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the command's own options, then those of the chosen method, then `--help`.

        An option of the command takes the place of a method's option with the same name.
        """
        *own, help_option = super().get_params(ctx)
        names = {param.name for param in own}
        of_method = [param for param in _built(self._method(ctx)) if param.name not in names]
        return [*own, *of_method, help_option]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the options of the method that the arguments name."""
        method = _named_method(args)
        if method in self.methods:
            ctx.meta[_METHOD] = method
        self._check_owners(ctx, args)
        left = super().parse_args(ctx, args)
        of_method = options_of(self._method(ctx))
        names = set(of_method) - {param.name for param in self.params}
        given = {name: ctx.params.pop(name, None) for name in of_method if name in names}
        # An option that may be repeated and was not given is an empty list or tuple.
        ctx.obj = {
            name: value_of(value, of_method[name])
            for name, value in given.items()
            if value is not None and value not in ([], ())
        }
        return left

    def _method(self, ctx: Any) -> MethodName:
        method: MethodName = ctx.meta.get(_METHOD, self.default_method)
        return method

    def _check_owners(self, ctx: Any, args: Sequence[str]) -> None:
        """Refuse an option that another method has."""
        method = self._method(ctx)
        own = {
            name for param in self.get_params(ctx) for name in (*param.opts, *param.secondary_opts)
        }
        for option in (arg.partition("=")[0] for arg in args if arg.startswith("--")):
            if option in own:
                continue
            name = option.removeprefix("--").removeprefix("no-").replace("-", "_")
            owners = [each for each in self.methods if name in options_of(each)]
            if owners:
                raise CommandError(
                    f"--method {method} has no option {option}; it belongs to --method "
                    f"{_either(owners)}."
                )


class TuneCommand(FitCommand):
    """The same for the methods whose parameters can be searched."""

    default_method = "dgt"
    methods = get_args(TunedMethodName)


_METHOD = "hardwood.method"


@cache
def _built(method: MethodName) -> list[Any]:
    """Return the options of a method as typer builds them from a function's signature."""

    def with_options(**_: Any) -> None:
        pass

    parameters = [option.signature(method) for option in options_of(method).values()]
    with_options.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    app = typer.Typer(add_completion=False)
    app.command()(with_options)
    return list(typer.main.get_command(app).params)


def _named_method(args: Sequence[str]) -> Any:
    for place, arg in enumerate(args):
        option, has_value, value = arg.partition("=")
        if option == "--method":
            return value if has_value else next(iter(args[place + 1 :]), None)
    return None


def _either(names: Iterable[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} or {last}" if first else last
