"""The typer application: the list of commands."""

from __future__ import annotations

from typing import Annotated

import typer

from hardwood import __version__
from hardwood.cli.analyze import analyze
from hardwood.cli.bandit import simulate
from hardwood.cli.compare import compare
from hardwood.cli.demo import demo
from hardwood.cli.describe import benchmark, describe
from hardwood.cli.errors import Commands
from hardwood.cli.evaluate import evaluate
from hardwood.cli.export import export
from hardwood.cli.fit import fit
from hardwood.cli.methods.command import Command, FitCommand, TuneCommand
from hardwood.cli.model_report import report
from hardwood.cli.predict import predict
from hardwood.cli.prune import prune
from hardwood.cli.show import show
from hardwood.cli.tune import tune

app = typer.Typer(
    name="hardwood",
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 success, 1 unexpected error, 2 invalid argument, file, column or disk, "
    "130 interrupted, 141 output pipe closed.",
)

app.command(cls=FitCommand)(fit)
app.command(cls=TuneCommand)(tune)
for command in (
    compare,
    predict,
    evaluate,
    analyze,
    describe,
    show,
    report,
    export,
    prune,
    benchmark,
    demo,
):
    app.command(cls=Command)(command)

bandit = typer.Typer(
    name="bandit",
    no_args_is_help=True,
    help="Trees that learn from the rewards of their own actions.",
)
bandit.command(cls=Command)(simulate)
app.add_typer(bandit)


def _print_version(is_wanted: bool) -> None:
    if is_wanted:
        typer.echo(f"hardwood {__version__}")
        raise typer.Exit()


@app.callback()
def hardwood(
    show_version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Learn small, accurate decision trees from tables, and use them."""
