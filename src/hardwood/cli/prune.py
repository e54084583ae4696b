"""`hardwood prune`: make a model smaller."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np

from hardwood.cli import options as opt
from hardwood.cli.errors import CommandError, check_writable, data_errors, naming_the_file
from hardwood.cli.evaluate import known_targets, score_model, target_columns, was_learned_from
from hardwood.cli.output import Notes, print_json, print_table, print_text
from hardwood.cli.read import hard_form, open_model, read_table, read_weights
from hardwood.errors import TableError
from hardwood.report.metrics import scores_json
from hardwood.report.resampling import Score
from hardwood.table.split import hold_out
from hardwood.table.target import positions
from hardwood.text.numbers import format_number, plural

if TYPE_CHECKING:
    import pyarrow as pa

    from hardwood.model import ObliqueTree
    from hardwood.model.edit.readable import Readable

_VALIDATION_FRACTION = 0.3
# The sizes that are shown, with their names.
_WORDS = {
    "n_splits": "splits",
    "n_leaves": "leaves",
    "depth": "depth",
    "n_weights": "weights other than 0",
    "multiplications": "multiplications per row",
    "additions": "additions per row",
}
_STALE = ("test", "test_rows")  # entries of a record that no longer apply to the pruned tree


CriterionChoice = Literal[
    "auto", "log_loss", "squared_error", "misclassification", "absolute_error"
]
"""What `--criterion` takes."""


@dataclass(frozen=True)
class PruningRows:
    """Rows of the table, their weights and, with --target, their targets."""

    table: pa.Table
    weight: np.ndarray
    truth: np.ndarray | None

    def part(self, rows: np.ndarray) -> PruningRows:
        """Return some of the rows, by number."""
        truth = None if self.truth is None else self.truth[rows]
        return PruningRows(self.table.take(rows), self.weight[rows], truth)

    def __len__(self) -> int:
        return self.weight.size


@dataclass(frozen=True)
class PruningPlan:
    """How to prune: by the cost of a leaf or on held-out rows; otherwise, only unreached nodes."""

    alpha: float | None
    validation_fraction: float | None
    one_standard_error: bool
    min_samples: float
    criterion: str | None
    sparsify: float | None
    readable: float | None

    def completed(self, *, has_target: bool) -> PruningPlan:
        """Check that the options are compatible, and fill in the default."""
        given = {
            "--alpha": self.alpha is not None,
            "--validation-fraction": self.validation_fraction is not None,
            "--one-standard-error": self.one_standard_error,
            "--criterion": self.criterion is not None,
        }
        for option, is_given in given.items():
            if is_given and not has_target:
                raise CommandError(f"{option} compares predictions with targets: give --target.")
        if self.alpha is not None:
            for option in ("--validation-fraction", "--one-standard-error"):
                if given[option]:
                    raise CommandError(f"--alpha sets the size of the tree; leave out {option}.")
        elif has_target and self.validation_fraction is None:
            return replace(self, validation_fraction=_VALIDATION_FRACTION)
        return self


def _moving_rows(what: str) -> Any:
    """Return an option for the share of the rows that a change may move to another leaf."""
    return opt.number(
        f"{what}, as long as at most this share of the rows reaches another leaf.",
        low=0,
        high=0.99,
        default="splits do not change",
    )


def prune(
    model: opt.ModelFile,
    table: opt.TableFile,
    target: Annotated[
        str | None,
        opt.target(
            "Column that the model predicts, or several separated by commas. Without it, only "
            "nodes that no row reaches are removed."
        ),
    ] = None,
    output: Annotated[
        Path | None,
        opt.output("File for the pruned model.", "name of MODEL with -pruned"),
    ] = None,
    alpha: Annotated[
        float | None,
        opt.number("Remove subtrees that lower the mean loss by less than this per leaf.", low=0),
    ] = None,
    validation_fraction: Annotated[
        float | None,
        opt.number(
            "Share of the rows held out to choose the size; not with --alpha.",
            low=0.01,
            high=0.9,
            default=f"{_VALIDATION_FRACTION}, with --target and without --alpha",
        ),
    ] = None,
    one_standard_error: Annotated[
        bool,
        opt.flag(
            "Choose the smallest tree within one standard error of the best.",
            "--one-standard-error",
        ),
    ] = False,
    min_samples: Annotated[
        float,
        opt.number("Remove nodes with fewer rows (or less total weight) than this.", low=0),
    ] = 0.0,
    sparsify: Annotated[float | None, _moving_rows("Also remove terms from the splits")] = None,
    readable: Annotated[
        float | None, _moving_rows("Also rewrite the splits with few terms and short numbers")
    ] = None,
    criterion: Annotated[
        CriterionChoice,
        opt.one_of(
            CriterionChoice,
            "Loss to prune by; auto is log loss for classes, squared error for regression.",
        ),
    ] = "auto",
    weight: opt.WeightColumn = None,
    seed: opt.Seed = 0,
    strict: opt.Strict = False,
    as_json: opt.AsJson = False,
) -> None:
    """Prune a model, and show its size and scores before and after.

    Use a TABLE that the model was not learned from. With --target, a share of its rows is held out:
    the size of the tree is chosen on these rows, and the values of new leaves come from the others.
    """
    output = Path(f"{model.stem}-pruned.hardwood") if output is None else output
    check_writable(output, inputs=(model, table))
    loss = None if criterion == "auto" else criterion
    plan = PruningPlan(
        alpha, validation_fraction, one_standard_error, min_samples, loss, sparsify, readable
    ).completed(has_target=target is not None)
    tree, notes, rng = _open_tree(model), Notes(strict=strict), np.random.default_rng(seed)
    with notes.collecting(), data_errors():
        rows, n_table_rows = _read_rows(tree, model, table, target, weight, notes)
        train, valid = _divide(rows, plan, rng, tree)
        pruned, rewritten = _pruned(tree, train, valid, plan)
        smaller = _with_record(pruned, tree, table, rows, plan)
        scores = [[] if valid.truth is None else _scores(t, valid, seed) for t in (tree, smaller)]
        sizes = [_sizes(t, valid) for t in (tree, smaller)]
    if plan.validation_fraction is not None and was_learned_from(tree, table, n_table_rows):
        notes.add(
            f"{model} was probably learned from {table.name} (same name, same number of rows): on "
            "training rows every split looks useful, so prune on other rows"
        )
    with naming_the_file(output):
        smaller.save(output)
    if as_json:
        outcome = {
            "model": str(output),
            "task": tree.task,
            "n_rows": len(train),
            "n_validation": 0 if plan.validation_fraction is None else len(valid),
            "before": sizes[0] | {"scores": scores_json(scores[0])},
            "after": sizes[1] | {"scores": scores_json(scores[1])},
            "notes": notes.messages,
        }
        print_json(outcome | _readable_json(rewritten))
        return
    _print_outcome(valid, sizes, scores, plan)
    if rewritten is not None:
        print_text(f"{rewritten}\n")
    print_text(f"Wrote {output}   (to read it: hardwood describe {output})")


def _open_tree(path: Path) -> ObliqueTree:
    from hardwood.model import ObliqueTree

    model = hard_form(open_model(path), path, "prune")
    if not isinstance(model, ObliqueTree):
        raise CommandError(
            f"{path} holds a forest, and prune is for single trees. In Python, prune its trees one "
            "by one: forest.replace(trees=[tree.prune(X) for tree in forest.trees])."
        )
    return model


def _read_rows(
    tree: ObliqueTree,
    model: Path,
    path: Path,
    target: str | None,
    weight: str | None,
    notes: Notes,
) -> tuple[PruningRows, int]:
    """Read the rows with a positive weight and, with --target, with a class that the model knows.

    Also returns the number of rows in the table.
    """
    table = read_table(path, model=tree, target=target)
    weights = np.ones(table.num_rows) if weight is None else read_weights(table, weight, path)
    rows = PruningRows(table, weights, None)
    if target is not None:
        names = target_columns(tree, table, target, path, model)
        known, truth = known_targets(tree, table, names, path)
        rows = PruningRows(table.take(known), weights[known], truth)
        if len(known) < table.num_rows:
            left_out = plural(table.num_rows - len(known), "row")
            notes.add(f"left out: {left_out} in which '{target}' is missing")
        rows = _of_known_classes(tree, rows, notes)
    rows = rows.part(np.flatnonzero(rows.weight))
    if not len(rows):
        raise CommandError(f"No row of {path} with a known target has a weight above 0.")
    return rows, table.num_rows


def _of_known_classes(tree: ObliqueTree, rows: PruningRows, notes: Notes) -> PruningRows:
    if tree.classes is None:
        return rows
    assert rows.truth is not None
    is_known = positions(rows.truth, tree.classes) >= 0
    if not is_known.any():
        raise CommandError(
            f"No value of the target, for example {rows.truth.tolist()[0]!r}, is a class of the "
            f"model: {', '.join(map(repr, tree.classes[:8]))}. Is this the right column?"
        )
    if not is_known.all():
        n_unknown = plural(int((~is_known).sum()), "row")
        notes.add(f"left out: {n_unknown} of a class that the model does not know")
    return rows.part(np.flatnonzero(is_known))


def _divide(
    rows: PruningRows, plan: PruningPlan, rng: np.random.Generator, tree: ObliqueTree
) -> tuple[PruningRows, PruningRows]:
    """Return the rows to prune with, and the rows to score the result on."""
    if plan.validation_fraction is None:
        return rows, rows
    labels = None if tree.classes is None else rows.truth
    try:
        train, valid = hold_out(len(rows), plan.validation_fraction, rng, labels)
    except TableError as error:
        raise CommandError(f"{error} Use --alpha to prune with all rows.") from error
    return rows.part(train), rows.part(valid)


def _pruned(
    tree: ObliqueTree, train: PruningRows, valid: PruningRows, plan: PruningPlan
) -> tuple[ObliqueTree, Readable | None]:
    """Return the pruned tree and, if its splits were rewritten, the changes."""
    options: dict[str, Any] = {"min_samples": plan.min_samples, "sample_weight": train.weight}
    if train.truth is not None:
        options |= {"y": train.truth, "alpha": plan.alpha, "criterion": plan.criterion}
    if plan.validation_fraction is not None:
        options["validation"] = (valid.table, valid.truth, valid.weight)
        options["one_standard_error"] = plan.one_standard_error
    smaller = tree.prune(train.table, **options)
    if plan.sparsify is not None:
        smaller = smaller.sparsify(train.table, tolerance=plan.sparsify, sample_weight=train.weight)
    if plan.readable is None:
        return smaller, None
    found = smaller.readable(train.table, tolerance=plan.readable, sample_weight=train.weight)
    return found.tree, found


def _readable_json(found: Readable | None) -> dict[str, Any]:
    if found is None:
        return {}
    splits = [asdict(split) for split in found.splits]
    return {"readable": {"share_same": found.share_same, "digits": found.digits, "splits": splits}}


def _with_record(
    smaller: ObliqueTree, tree: ObliqueTree, table: Path, rows: PruningRows, plan: PruningPlan
) -> ObliqueTree:
    """Add the pruning to the record, and remove the scores of the original tree."""
    chosen = {
        "alpha": plan.alpha,
        "validation fraction": plan.validation_fraction,
        "min_samples": plan.min_samples or None,
        "criterion": plan.criterion,
        "sparsify": plan.sparsify,
        "readable": plan.readable,
    }
    pruned = {"table": table.name, "rows": len(rows), "splits before": tree.n_splits}
    pruned |= {name: value for name, value in chosen.items() if value is not None}
    record = {name: entry for name, entry in tree.record.items() if name not in _STALE}
    return smaller.replace(record=record | {"pruned": pruned})


def _scores(tree: ObliqueTree, rows: PruningRows, seed: int) -> list[Score]:
    assert rows.truth is not None
    rng = np.random.default_rng(seed)
    return score_model(tree, rows.table, rows.truth, rows.weight, rng).scores


def _sizes(tree: ObliqueTree, rows: PruningRows) -> dict[str, float]:
    cost = tree.flops(rows.table).mean
    assert cost is not None  # there are rows
    return {
        "n_splits": tree.n_splits,
        "n_leaves": tree.n_leaves,
        "depth": tree.depth,
        "n_weights": tree.n_weights,
        "multiplications": cost.multiplications,
        "additions": cost.additions,
    }


def _size(value: float) -> str:
    return f"{value:,.1f}".removesuffix(".0")


def _print_outcome(
    valid: PruningRows,
    sizes: list[dict[str, float]],
    scores: list[list[Score]],
    plan: PruningPlan,
) -> None:
    lines = [[words, *(_size(size[name]) for size in sizes)] for name, words in _WORDS.items()]
    lines += [
        [a.name, format_number(a.value), format_number(b.value)]
        for a, b in zip(*scores, strict=True)
    ]
    if valid.truth is None:
        title = f"Sizes, by the paths of {plural(len(valid), 'row')}"
    elif plan.validation_fraction is None:
        title = f"Scores on the {plural(len(valid), 'row')} used for pruning"
    else:
        title = f"Scores on {plural(len(valid), 'held-out row')}, which chose the size"
    print_table(title, ["", "before", "after"], lines)
