"""`hardwood describe`: what a model does, in words; `hardwood benchmark`: how fast."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from hardwood.cli import options as opt
from hardwood.cli.errors import CommandError
from hardwood.cli.evaluate import check_plot
from hardwood.cli.output import draw, draw_report, print_json, print_text
from hardwood.cli.read import hard_form, open_model
from hardwood.text.numbers import plural

if TYPE_CHECKING:
    from hardwood.model.base import Model

# What the record of a forest says of each of its trees, too.
_OF_ALL_TREES = ("table", "table_rows", "training_rows", "test_rows", "resolved")


def describe(
    model: opt.ModelFile,
    terms: Annotated[int, opt.count("Terms to show per split, the largest.")] = 4,
    tree: Annotated[
        int | None,
        opt.count("Describe this tree of a forest, counted from 1."),
    ] = None,
    plot: opt.PlotFile = None,
    curves: Annotated[
        Path | None,
        opt.named("FILE", "Draw the learning curves, too: .png, .svg, .pdf, ..."),
    ] = None,
    as_json: opt.AsJson = False,
) -> None:
    """Print a model: the tree in words, its sizes, the features it uses, how it was learned.

    Of a forest: its sizes, the features that its trees use, and with --tree N one of the trees.
    With --plot also draw the tree, with --curves the losses while it was learned, which needs
    matplotlib (the extra `plot`).
    """
    from hardwood.report import describe as report_on
    from hardwood.report import learning_curves

    check_plot(plot, model)
    check_plot(curves, model, option="--curves")
    shown = _chosen(open_model(model), model, tree)
    learned = None if curves is None else learning_curves(shown)
    if plot is not None:
        draw(_drawable(shown, model), plot, max_terms=terms)
    if curves is not None and learned is not None:
        draw_report(learned, curves)
    report = report_on(shown, max_terms=terms)
    if as_json:
        print_json(report.to_dict() | {"picture": plot, "curves_picture": curves})
        return
    print_text(str(report))
    if shown.is_ensemble:
        print_text(f"One of the trees in words: hardwood describe {model} --tree 1")
    if plot is not None:
        print_text(f"Drew the tree: {plot}")
    if curves is not None:
        print_text(f"Drew the learning curves: {curves}")


def _chosen(model: Model, path: Path, number: int | None) -> Model:
    """Return what is to be described: the model, or one tree of several."""
    if number is None:
        return model
    if not model.is_ensemble:
        raise CommandError(f"{path} holds a single tree; --tree chooses one of a forest.")
    if number > model.n_trees:
        raise CommandError(f"{path} has the trees 1 to {model.n_trees}, not --tree {number}.")
    tree = model.hard_tree(number - 1)
    common = {name: model.record[name] for name in _OF_ALL_TREES if name in model.record}
    return tree.replace(record=common | tree.record)


def _drawable(model: Model, path: Path) -> Model:
    from hardwood.model import PolicyTree

    if model.is_ensemble:
        raise CommandError("A drawing shows one tree: choose it with --tree N.")
    return model if isinstance(model, PolicyTree) else hard_form(model, path, "a drawing")


def benchmark(
    model: opt.ModelFile,
    rows: Annotated[
        int | None,
        opt.count("Rows per batch.", default="1,000 and 100,000"),
    ] = None,
    seconds: Annotated[
        float,
        opt.number("How long to repeat each call.", low=0.001, high=3600),
    ] = 1.0,
    jobs: opt.Jobs = 1,
    seed: opt.Seed = 0,
    as_json: opt.AsJson = False,
) -> None:
    """Time a model on made-up rows.

    Batches: rows per second of `predict`. A single row: time of one call of `predict_one`, with the
    row as a dict by names and, where all features are numbers, as a 1-D array, which is the fast
    way. Then how long the model takes to load, how large it is, what a prediction costs.
    """
    from hardwood.report import benchmark as report_on
    from hardwood.report.benchmark import BATCH_SIZES

    opened = open_model(model)
    sizes = [rows] if rows else BATCH_SIZES
    found = report_on(opened, batch_sizes=sizes, n_jobs=jobs, seconds=seconds, random_state=seed)
    if as_json:
        sizes_of = ["depth", "n_leaves", "n_features"]
        if opened.is_ensemble:
            sizes_of.insert(0, "n_trees")
        of_model = {name: getattr(opened, name) for name in sizes_of}
        print_json({opened.noun.split()[-1]: of_model} | found.to_dict())
        return
    trees = f"{plural(opened.n_trees, 'tree')}, " if opened.is_ensemble else ""
    print_text(f"{model}: {trees}{opened.size_words}\n")
    print_text(str(found))
