"""`hardwood demo`: an example from the table to the drawn tree, with data from the package.

The penguins table has numbers, categories and missing values. The command learns a tree of depth 2
from part of it, compares the tree on the rest with an axis-aligned tree of the same depth and with
logistic regression, prints it and draws it.
"""

from __future__ import annotations

from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer

from hardwood.cli import options as opt
from hardwood.cli.errors import check_writable
from hardwood.cli.fit import Dataset, Request, learn, read_dataset, with_origin
from hardwood.cli.methods.names import make_estimator
from hardwood.cli.output import Notes, check_drawable, draw, print_json, print_table, print_text
from hardwood.cli.process.interrupts import INTERRUPTED
from hardwood.cli.read import label_positions
from hardwood.report.metrics import classification_scores, scores_json
from hardwood.report.resampling import Score
from hardwood.text.numbers import format_interval, format_number, plural

if TYPE_CHECKING:
    from hardwood.model.base import Model

MAX_DEPTH = 2  # enough leaves for three species
TEST_FRACTION = 0.3


def demo(
    output: Annotated[Path, opt.output("File for the drawing.")] = Path("demo_tree.png"),
    seed: opt.Seed = 0,
    as_json: opt.AsJson = False,
) -> None:
    """Learn a tree from a table of penguins, compare it with other models, print and draw it."""
    check_writable(output)
    check_drawable(output)
    notes = Notes()
    rng = np.random.default_rng(seed)
    with notes.collecting(), as_file(files("hardwood") / "data" / "penguins.csv") as path:
        request = Request(path, "species", drop=("year",), test_fraction=TEST_FRACTION)
        data = read_dataset(request, rng)
        if not as_json:
            _print_task(data)
        # One linear leaf would do for these species; splits are what the demo is to show.
        options = {"max_depth": MAX_DEPTH, "leaves": "constant", "random_state": seed}
        estimator = make_estimator("tree", "classification", options)
        tree = with_origin(learn(data, estimator), data, [])
    probabilities = {
        f"hardwood, depth {tree.depth}": tree.predict_proba(data.test_features),
        **_baselines(data, seed),
    }
    scores = {name: _score(data, tree, p, seed) for name, p in probabilities.items()}
    draw(tree, output)
    if as_json:
        test = {name: scores_json(entries) for name, entries in scores.items()}
        of_tree = {"depth": tree.depth, "n_leaves": tree.n_leaves, "text": tree.to_text()}
        counts = {"n_train": data.train.size, "n_test": data.test.size, "test": test}
        print_json(counts | of_tree | {"picture": str(output), "notes": notes.messages})
    else:
        rows = [
            [name, format_number(s[0].value), format_interval(s[0].low, s[0].high)]
            for name, s in scores.items()
        ]
        header = ["model", "accuracy", "95 % interval"]
        print_table(f"Test accuracy on {data.test.size} penguins", header, rows)
        print_text(tree.to_text())
        print_text(f"Drew {output}")
    if notes.was_interrupted:
        raise typer.Exit(INTERRUPTED)


def _baselines(data: Dataset, seed: int) -> dict[str, np.ndarray]:
    """Class probabilities of the test rows by scikit-learn's models, on the tree's columns."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.tree import DecisionTreeClassifier

    from hardwood.selection.other_libraries import EncodedClassifier

    X, y, _ = data.training
    models = {
        f"CART, depth {MAX_DEPTH}": DecisionTreeClassifier(max_depth=MAX_DEPTH, random_state=seed),
        "logistic regression": LogisticRegression(max_iter=1000),
    }
    return {
        name: EncodedClassifier(model).fit(X, y).predict_proba(data.test_features)
        for name, model in models.items()
    }


def _score(data: Dataset, tree: Model, probabilities: np.ndarray, seed: int) -> list[Score]:
    truth = label_positions(data.test_values, tree.classes or ())
    weight = np.ones(truth.size)
    return classification_scores(truth, probabilities, weight, np.random.default_rng(seed))


def _print_task(data: Dataset) -> None:
    print_text(
        f"Penguins: {plural(data.target.rows.size, 'row')}, "
        f"{plural(data.features.num_columns, 'feature')} "
        f"({', '.join(data.features.column_names)}), some values missing"
    )
    print_text(
        f"Predicting the species: {plural(data.train.size, 'training row')}, "
        f"{plural(data.test.size, 'test row')}"
    )
