"""`hardwood benchmark`: how fast a model answers on this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from hardwood.cli import options as opt
from hardwood.cli.models import open_model
from hardwood.cli.output import print_json, print_text
from hardwood.text.numbers import plural

if TYPE_CHECKING:
    from hardwood.model.base import Model


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
    found = report_on(opened, batch_sizes=sizes, n_jobs=jobs, seconds=seconds, seed=seed)
    if as_json:
        print_json({opened.noun.split()[-1]: _sizes(opened)} | found.to_dict())
        return
    trees = f"{plural(opened.n_trees, 'tree')}, " if opened.is_ensemble else ""
    print_text(f"{model}: {trees}{opened.size_words}\n")
    print_text(str(found))


def _sizes(model: Model) -> dict[str, int]:
    n_trees = {"n_trees": model.n_trees} if model.is_ensemble else {}
    sizes = {"depth": model.depth, "n_leaves": model.n_leaves, "n_features": model.n_features}
    return n_trees | sizes
