"""Accuracy and size of the default tree, compared with CART of tuned depth and a linear model.

For every seed, a table is split at random into 60 % training, 20 % validation and 20 % test rows.
CART's depth and the penalty of the linear model are chosen on the validation rows, and the best
model is fitted again on training and validation rows together. The default tree is given the same
rows and holds out validation rows of its own. All three are scored on the test rows.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn import datasets
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from benchmarks.record import Result
from hardwood import TreeClassifier, TreeRegressor

TEST_PART, VALIDATION_PART = 0.2, 0.25  # the second: of the rows that are not test rows
CART_DEPTHS = (*range(1, 13), None)
PENALTIES = tuple(np.logspace(-3, 3, 7))
N_SEEDS, N_SEEDS_QUICK = 10, 2
QUICK_TIME_LIMIT = 2.0
N_PROCESSES = 2


class Question(NamedTuple):
    """A table, and the depth of its tree."""

    name: str
    max_depth: int
    load: Callable[..., Any] | None = None
    """Of scikit-learn; None for a table of the data folder."""


QUESTIONS = {
    question.name: question
    for question in (
        Question("digits", 4, datasets.load_digits),
        Question("wine", 2, datasets.load_wine),
        Question("breast cancer", 2, datasets.load_breast_cancer),
        Question("diabetes", 2, datasets.load_diabetes),
        Question("pendigits", 5),
        Question("satimage", 4),
        Question("abalone", 3),
    )
}


class Part(NamedTuple):
    """Rows with their targets."""

    X: np.ndarray
    y: np.ndarray


def table_of(question: Question, folder: Path | None) -> Part | None:
    """Return a table; None if the folder does not have it."""
    if question.load is not None:
        return Part(*question.load(return_X_y=True))
    path = None if folder is None else folder / f"{question.name}.npz"
    if path is None or not path.exists():
        return None
    with np.load(path) as arrays:
        return Part(arrays["X"].astype(np.float64), arrays["y"])


def divided(table: Part, seed: int) -> tuple[Part, Part, Part]:
    """Split a table into training, validation and test rows."""

    def cut(part: Part, share: float) -> tuple[Part, Part]:
        stratify = part.y if has_classes(part.y) else None
        X, X_cut, y, y_cut = train_test_split(
            part.X, part.y, test_size=share, random_state=seed, stratify=stratify
        )
        return Part(X, y), Part(X_cut, y_cut)

    rest, test = cut(table, TEST_PART)
    train, valid = cut(rest, VALIDATION_PART)
    return train, valid, test


def has_classes(y: np.ndarray) -> bool:
    return bool(y.dtype.kind != "f")


def tuned(models: list[Any], train: Part, valid: Part) -> Any:
    """Return the model with the best score on validation rows, fitted on both parts."""
    scores = [model.fit(*train).score(*valid) for model in models]
    both = [np.concatenate(pair) for pair in zip(train, valid, strict=True)]
    return models[int(np.argmax(scores))].fit(*both)


def cart(has_classes: bool, seed: int) -> list[Any]:
    kind = DecisionTreeClassifier if has_classes else DecisionTreeRegressor
    return [kind(max_depth=depth, random_state=seed) for depth in CART_DEPTHS]


def linear(has_classes: bool) -> list[Any]:
    models = [
        LogisticRegression(C=1 / penalty, max_iter=5000) if has_classes else Ridge(penalty)
        for penalty in PENALTIES
    ]
    return [make_pipeline(StandardScaler(), model) for model in models]


def one_seed(question: Question, folder: Path | None, seed: int, is_quick: bool) -> Result:
    """Return scores and sizes of the three models, by name."""
    warnings.filterwarnings("ignore", category=UserWarning)  # rare classes of a quick run
    table = table_of(question, folder)
    assert table is not None
    train, valid, test = divided(table, seed)
    classes = has_classes(table.y)
    learned = [np.concatenate(pair) for pair in zip(train, valid, strict=True)]
    options = {"time_limit": QUICK_TIME_LIMIT} if is_quick else {}
    kind = TreeClassifier if classes else TreeRegressor
    tree = kind(max_depth=question.max_depth, random_state=seed, **options).fit(*learned)
    grown = tuned(cart(classes, seed), train, valid)
    line = tuned(linear(classes), train, valid)
    n_splits = int(grown.get_n_leaves()) - 1
    return {
        "hardwood": {
            "score": 100 * float(tree.score(*test)),
            "splits": tree.tree_.n_splits,
            "terms": tree.tree_.n_weights,
        },
        "cart": {
            "score": 100 * float(grown.score(*test)),
            "splits": n_splits,
            "terms": n_splits,
        },
        "linear": {
            "score": 100 * float(line.score(*test)),
            "splits": 0,
            "terms": int(np.count_nonzero(line[-1].coef_)),
        },
    }


def measure(name: str, folder: Path | None, is_quick: bool) -> Result | None:
    """Return the row of a table, over all seeds; None if the table is missing."""
    question = QUESTIONS[name]
    table = table_of(question, folder)
    if table is None:
        return None
    n_seeds = N_SEEDS_QUICK if is_quick else N_SEEDS
    with ProcessPoolExecutor(N_PROCESSES, get_context("spawn")) as pool:
        calls = [pool.submit(one_seed, question, folder, seed, is_quick) for seed in range(n_seeds)]
        seeds = [call.result() for call in calls]
    models = {
        model: {key: [found[model][key] for found in seeds] for key in seeds[0][model]}
        for model in seeds[0]
    }
    return {
        "name": name,
        "kind": "accuracy",
        "measure": "accuracy" if has_classes(table.y) else "R²",
        "max_depth": question.max_depth,
        "rows": len(table.X),
        "columns": table.X.shape[1],
        "models": models,
    }
