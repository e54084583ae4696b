"""`hardwood demo`: the whole way, on a table that ships with the package.

Penguins have numbers, categories and missing entries. A tree of two levels is learned from part
of the table, compared on the rest with an axis-aligned tree of the same depth and with logistic
regression, written in words and drawn.
"""

from __future__ import annotations

from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from hardwood.cli.failures import INTERRUPTED, check_writable
from hardwood.cli.learning import Problem, Request, learn, read_problem, with_origin
from hardwood.cli.options import AsJson, Seed, output_option
from hardwood.cli.pictures import check_drawable, draw
from hardwood.cli.report import Notes, print_json, print_table, print_text
from hardwood.cli.targets import label_positions
from hardwood.report.metrics import classification_scores, scores_json
from hardwood.report.resampling import Score
from hardwood.text.numbers import format_interval, format_number

if TYPE_CHECKING:
    from hardwood.model import ObliqueTree

MAX_DEPTH = 2  # three species need three leaves
TEST_FRACTION = 0.3


def demo(
    output: Annotated[Path, output_option("Where to draw the tree.")] = Path("demo_tree.png"),
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Learn a tree from a table of penguins; compare it, print it, draw it."""
    check_writable(output)
    check_drawable(output)
    notes = Notes()
    rng = np.random.default_rng(seed)
    with notes.collecting(), as_file(files("hardwood") / "data" / "penguins.csv") as path:
        request = Request(path, "species", drop=("year",), test_fraction=TEST_FRACTION)
        problem = read_problem(request, rng)
        if not as_json:
            _print_problem(problem)
        options = {"max_depth": MAX_DEPTH, "random_state": seed}
        tree = with_origin(learn(problem, options), request, problem, [])
    probabilities = {
        f"hardwood, depth {tree.depth}": tree.predict_proba(problem.test_features),
        **_baselines(problem, seed),
    }
    scores = {name: _score(problem, tree, p, seed) for name, p in probabilities.items()}
    draw(tree, output)
    if as_json:
        print_json(_payload(problem, tree, scores, output, notes))
    else:
        _print_outcome(problem, tree, scores, output)
    if notes.was_interrupted:
        raise typer.Exit(INTERRUPTED)


def _print_outcome(
    problem: Problem, tree: ObliqueTree, scores: dict[str, list[Score]], output: Path
) -> None:
    rows = [
        [name, format_number(s[0].value), format_interval(s[0].low, s[0].high)]
        for name, s in scores.items()
    ]
    header = ["model", "accuracy", "95 % interval"]
    print_table(f"Test accuracy on {problem.test.size} penguins", header, rows)
    print_text(tree.to_text())
    print_text(f"Drew the tree: {output}")


def _baselines(problem: Problem, seed: int) -> dict[str, np.ndarray]:
    """Class probabilities of the test rows by scikit-learn's models, prepared as is usual."""
    from sklearn.compose import make_column_transformer
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler
    from sklearn.tree import DecisionTreeClassifier

    X, numeric, categorical = _object_matrix(problem)
    models = {
        f"CART, depth {MAX_DEPTH}": DecisionTreeClassifier(max_depth=MAX_DEPTH, random_state=seed),
        "logistic regression": LogisticRegression(max_iter=1000),
    }
    answers = {}
    for name, model in models.items():
        prepare = make_column_transformer(
            (make_pipeline(SimpleImputer(), StandardScaler()), numeric),
            (OneHotEncoder(handle_unknown="ignore"), categorical),
        )
        pipeline = make_pipeline(prepare, model)
        pipeline.fit(X[problem.train], problem.target.values[problem.train])
        answers[name] = pipeline.predict_proba(X[problem.test])
    return answers


def _object_matrix(problem: Problem) -> tuple[np.ndarray, list[int], list[int]]:
    """Return the features for scikit-learn, and which columns are numbers and which categories."""
    import pyarrow as pa

    columns = problem.features.columns
    X = np.empty((problem.features.num_rows, len(columns)), dtype=object)
    categorical = [j for j, column in enumerate(columns) if pa.types.is_string(column.type)]
    for j, column in enumerate(columns):
        missing = None if j in categorical else np.nan
        X[:, j] = [missing if entry is None else entry for entry in column.to_pylist()]
    return X, [j for j in range(len(columns)) if j not in categorical], categorical


def _score(
    problem: Problem, tree: ObliqueTree, probabilities: np.ndarray, seed: int
) -> list[Score]:
    truth = label_positions(problem.test_values, tree.classes or ())
    weight = np.ones(truth.size)
    return classification_scores(truth, probabilities, weight, np.random.default_rng(seed))


def _print_problem(problem: Problem) -> None:
    print_text(
        f"Penguins: {problem.target.rows.size} rows, {problem.features.num_columns} features "
        f"({', '.join(problem.features.column_names)}), some entries missing"
    )
    print_text(
        f"Species from the rest: learning from {problem.train.size}, testing on {problem.test.size}"
    )


def _payload(
    problem: Problem,
    tree: ObliqueTree,
    scores: dict[str, list[Score]],
    output: Path,
    notes: Notes,
) -> dict[str, Any]:
    return {
        "n_train": problem.train.size,
        "n_test": problem.test.size,
        "test": {name: scores_json(entries) for name, entries in scores.items()},
        "depth": tree.depth,
        "n_leaves": tree.n_leaves,
        "text": tree.to_text(),
        "picture": str(output),
        "notes": notes.messages,
    }
