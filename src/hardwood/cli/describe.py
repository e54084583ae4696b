"""`hardwood describe`: a model as text; `hardwood benchmark`: how fast it is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from hardwood.cli import options as opt
from hardwood.cli.errors import CommandError
from hardwood.cli.evaluate import check_plot
from hardwood.cli.output import draw, draw_report, print_json, print_text
from hardwood.cli.read import hard_form, open_model
from hardwood.text.numbers import plural
from hardwood.text.terms import MAX_TERMS

if TYPE_CHECKING:
    from hardwood.model.base import Model

# Entries in the record of a forest that also apply to each of its trees.
_OF_ALL_TREES = ("table", "table_rows", "training_rows", "test_rows", "resolved")


def describe(
    model: opt.ModelFile,
    terms: Annotated[
        int, opt.count("Number of terms to show per split, largest first.")
    ] = MAX_TERMS,
    depth: Annotated[
        int | None,
        opt.count("Number of levels to show.", low=0, default="30, in at most 1,000 lines"),
    ] = None,
    node: Annotated[
        int,
        opt.count("Split to begin with: where the text ends early, it names them.", low=0),
    ] = 0,
    tree: Annotated[
        int | None,
        opt.count("Describe only this tree of a forest; the first is 1."),
    ] = None,
    plot: opt.PlotFile = None,
    curves: Annotated[
        Path | None,
        opt.named("FILE", "Also draw the learning curves: .png, .svg, .pdf, ..."),
    ] = None,
    as_json: opt.AsJson = False,
) -> None:
    """Print a model: the tree as text, its size, the features it uses, and how it was learned.

    For a forest, print its size and the features that its trees use; --tree N prints one tree.
    --plot draws the tree, and --curves the training and validation loss by epoch. Both need
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
    levels: Any = "auto" if depth is None else depth
    report = report_on(shown, max_terms=terms, max_depth=levels, node=node)
    if as_json:
        print_json(report.to_dict() | {"picture": plot, "curves_picture": curves})
        return
    print_text(str(report))
    if shown.is_ensemble:
        print_text(f"To print one of the trees: hardwood describe {model} --tree 1")
    if plot is not None:
        print_text(f"Drew {plot}")
    if curves is not None:
        print_text(f"Drew {curves}")


def _chosen(model: Model, path: Path, number: int | None) -> Model:
    """Return the model, or one tree of a forest."""
    if number is None:
        return model
    if not model.is_ensemble:
        raise CommandError(f"{path} holds a single tree; --tree is for forests.")
    if number > model.n_trees:
        raise CommandError(f"--tree {number}: {path} has trees 1 to {model.n_trees}.")
    tree = model.hard_tree(number - 1)
    common = {name: model.record[name] for name in _OF_ALL_TREES if name in model.record}
    return tree.replace(record=common | tree.record)


def _drawable(model: Model, path: Path) -> Model:
    from hardwood.model import PolicyTree

    if model.is_ensemble:
        raise CommandError("--plot draws one tree of a forest: choose it with --tree N.")
    return model if isinstance(model, PolicyTree) else hard_form(model, path, "a drawing")


def benchmark(
    model: opt.ModelFile,
    rows: Annotated[
        int | None,
        opt.count("Rows per batch.", default="1,000 and 100,000"),
    ] = None,
    seconds: Annotated[
        float,
        opt.number("Seconds to repeat each call for.", low=0.001, high=3600),
    ] = 1.0,
    jobs: opt.Jobs = 1,
    seed: opt.Seed = 0,
    as_json: opt.AsJson = False,
) -> None:
    """Measure how fast a model predicts, on simulated rows.

    For batches, prints the rows per second of `predict`. For a single row, prints the time of one
    call of `predict_one`, with the row as a dict and, if all features are numbers, as a 1-D array,
    which is faster. Also prints the load time, the size, and the cost of a prediction.
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
