"""What `fit` and `tune` say of a model that was learned."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from hardwood.cli.learning import Problem, Request
from hardwood.cli.report import Notes, print_text
from hardwood.report.metrics import scores_json, scores_table
from hardwood.report.resampling import Score
from hardwood.text.numbers import format_number, plural

if TYPE_CHECKING:
    from hardwood.model.base import Model
    from hardwood.search.fit_report import FitReport


# What a forest's `oob_score_` is, by the task.
_OOB_SCORES = {
    "classification": "accuracy",
    "multilabel": "all labels right",
    "regression": "R2",
}


def baseline_name(problem: Problem) -> str:
    """Name the best answer that looks at no column."""
    is_several = len(problem.target.names) > 1
    if problem.target.task == "regression":
        return "training means" if is_several else "training mean"
    return "most frequent answers" if is_several else "most frequent class"


def note_no_split(model: Model, notes: Notes, advice: str = "") -> None:
    """Add a note where no tree of a model has a split."""
    if model.n_splits:
        return
    has_slopes = any(
        tree.leaf_weights is not None and tree.leaf_weights.any() for tree in model.hard_trees
    )
    what = "a linear function alone answers" if has_slopes else "every row gets the same answer"
    notes.add(f"no split survived: {what}{advice}")


def print_problem(request: Request, problem: Problem) -> None:
    """Say what will be learned, from what."""
    target = problem.target
    n_rows, n_features = problem.features.num_rows, problem.features.num_columns
    print_text(f"{request.path}: {plural(n_rows, 'row')}, {plural(n_features, 'feature')}")
    if target.n_missing:
        which = f"'{target.name}'" if len(target.names) == 1 else f"one of '{target.name}'"
        print_text(f"Left out: {plural(target.n_missing, 'row')} in which {which} is missing")
    print_text(f"Task: {target.task} of '{target.name}', because {target.reason}")
    n_train, n_test = problem.train.size, problem.test.size
    kept = f"{n_test} are kept back for the test score" if n_test else "none is kept back"
    print_text(f"Learning from {n_train} rows; {kept}")


def print_search(found: FitReport) -> None:
    """Say which of the trees that were tried it is, and why no more were."""
    print_text(f"{found.title}, {found.metric} {format_number(found.score)} in validation")
    print_text(" ".join(words for words in (found.teacher, found.ending, found.finish) if words))


def print_outcome(
    output: Path, problem: Problem, model: Model, scores: list[Score], baseline: list[Score]
) -> None:
    """Say how large the model is, how good, and where."""
    what = f"Forest of {plural(model.n_trees, 'tree')}" if model.is_ensemble else "Tree"
    print_text(f"{what}: {model.size_words}")
    if scores:
        title = f"Test score on {problem.test.size} rows"
        grid = scores_table(title, scores, baseline, baseline_name(problem))
        print_text(grid.to_text() + "\n")
    if "oob_score" in model.record:
        score = f"{_OOB_SCORES[model.task]} {format_number(model.record['oob_score'])}"
        print_text(f"Out-of-bag score: {score} on training rows, by trees that did not draw them")
    print_text(f"Wrote {output}   (read it with: hardwood describe {output})")


def outcome_json(
    request: Request,
    output: Path,
    problem: Problem,
    model: Model,
    scores: list[Score],
    baseline: list[Score],
    notes: Notes,
) -> dict[str, Any]:
    """Return the same for `--json`."""
    target = problem.target
    return {
        "table": str(request.path),
        "model": str(output),
        "target": target.names[0] if len(target.names) == 1 else list(target.names),
        "task": model.task,
        "reason": target.reason,
        "n_features": problem.features.num_columns,
        "left_out": [
            {"column": name, "reason": reason} for name, reason in problem.left_out.items()
        ],
        "n_train": problem.train.size,
        "n_test": problem.test.size,
        "n_missing_target": target.n_missing,
        "n_trees": model.n_trees,
        "depth": model.depth,
        "n_leaves": model.n_leaves,
        "test": scores_json(scores),
        "baseline": {"name": baseline_name(problem), "test": scores_json(baseline)},
        "oob_score": model.record.get("oob_score"),
        "interrupted": notes.was_interrupted,
        "notes": notes.messages,
    }
