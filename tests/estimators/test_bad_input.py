"""What cannot be learned from gets an error that says why."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pandas as pd
import pytest

from hardwood import (
    DGTClassifier,
    DGTRegressor,
    GreedyTreeClassifier,
    GreedyTreeRegressor,
    TAORegressor,
    refine,
)
from hardwood.errors import TableError, TableWarning
from hardwood.learn import Training
from hardwood.learn.bagging import Bagging
from hardwood.learn.losses import Logistic
from hardwood.learn.tel import TEL

X = np.random.default_rng(0).normal(size=(30, 3))
LABELS = np.arange(30) % 2
NUMBERS = X[:, 0]


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (None, "requires y to be passed, but the target y is None"),
        (LABELS[:-1], "inconsistent numbers of samples: X has 30 rows, y has 29"),
        (np.zeros(30, int), "at least 2 classes, found 1 class: .*0"),
        (np.where(LABELS == 1, np.nan, 0.0), r"Input y contains NaN \(first at row 1\)"),
        (np.where(LABELS == 1, np.inf, 0.0), r"Input y contains infinity \(first at row 1\)"),
        ([None, "a"] * 15, "Input y contains NaN or None"),
        (pd.Series([None, "a"] * 15, dtype="string"), "Input y contains NaN or None"),
        (pd.Series([pd.NA, 1] * 15, dtype="Int64"), "Input y contains NaN"),
        (NUMBERS, "continuous"),
        (
            np.column_stack([LABELS + 1, LABELS]),
            "y has 2 columns, which are read as binary labels, so each value must be 0 or 1",
        ),
        (LABELS + 1j, "Complex data not supported"),
        ([{}] * 30, "Unknown label type|label"),
        (3, "1d array"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_labels_that_cannot_be_learned(y, message):
    with pytest.raises(ValueError, match=message):
        DGTClassifier().fit(X, y)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (None, "requires y to be passed, but the target y is None"),
        (NUMBERS[:-1], "inconsistent numbers of samples"),
        (np.where(LABELS == 1, np.nan, 0.0), r"Input y contains NaN \(first at row 1\)"),
        (np.where(LABELS == 1, -np.inf, 0.0), "Input y contains infinity"),
        ([None, 1.0] * 15, "Input y contains NaN or None"),
        (["low", "high"] * 15, "A regressor predicts numbers, but y holds text"),
        (["1.5", "2.5"] * 15, "A regressor predicts numbers, but y holds text"),
        ([{"a": 1}] * 30, r"y holds a dict \(\{'a': 1\} at row 0\)"),
        ([10**400] * 30, "y holds an integer too large for a float64"),
        (["1.5", "oops"] * 15, r"y holds text \('oops' at row 1\)"),
        ([1.5, "2", "oops"] * 10, r"y holds text \('oops' at row 2\)"),
        (pd.Series(["low", "high"] * 15), "y holds text"),
        (np.zeros(30, "datetime64[s]"), "y holds values of type datetime64"),
        (NUMBERS + 1j, "Complex data not supported"),
        (np.zeros((30, 2, 2)), r"got an array of shape \(30, 2, 2\)"),
        (np.zeros((30, 0)), r"got an array of shape \(30, 0\)"),
        (3.0, "1d array"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_numbers_that_cannot_be_learned(y, message):
    with pytest.raises(ValueError, match=message):
        DGTRegressor().fit(X, y)


def test_counts_below_zero():
    with pytest.raises(ValueError, match="Poisson loss is for y >= 0, found -"):
        DGTRegressor(loss="poisson").fit(X, NUMBERS)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (X[:0], r"0 sample\(s\)"),
        (X[:, :0], r"0 feature\(s\)"),
        (X[:, 0], "Reshape your data"),
        (X[None], "dim 3"),
        ([], "Reshape your data"),
        ("X", "table"),
        (np.full((30, 3), np.nan), "has no values"),
        (np.where(X > 2, np.inf, X) * np.where(np.arange(30) == 7, np.inf, 1)[:, None], "infinity"),
        (pd.DataFrame({"a": [1.0] * 30, "b": [None] * 30}), "'b' has no values"),
        (pd.DataFrame(X, columns=["a", "a", "b"]), "unique column names.*'a'"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
@pytest.mark.parametrize("Estimator", [DGTClassifier, DGTRegressor])
def test_tables_that_cannot_be_learned(Estimator, table, message):
    with pytest.raises(ValueError, match=f"(?s){message}"):
        Estimator().fit(table, LABELS)


def test_one_row_is_not_enough():
    with pytest.raises(ValueError, match="n_samples=1"):
        DGTRegressor().fit(X[:1], NUMBERS[:1])
    with pytest.raises(ValueError, match="1 class"):
        DGTClassifier().fit(X[:1], LABELS[:1])


def test_one_row_many_times_is_one_row():
    with pytest.raises(ValueError, match="30 row.* are equal"):
        DGTRegressor().fit(np.ones((30, 2)), np.ones(30))


def test_a_mixed_column_is_named():
    table = pd.DataFrame({"fine": X[:, 0], "mixed": [1, "a"] * 15})
    with pytest.raises(TableError, match="'mixed'"):
        DGTClassifier().fit(table, LABELS)


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (np.zeros(30), "at least one non-zero"),
        (0, "non-zero"),
        (-1.0, "must be a number >= 0"),
        (-np.ones(30), "Negative values in data passed to sample_weight"),
        (np.full(30, np.nan), "contains NaN"),
        (np.full(30, np.inf), "infinity"),
        (np.ones(29), r"expected \(30,\)"),
        (np.ones((30, 1)), "1D array or scalar"),
        ("heavy", "must be a number"),
    ],
)
@pytest.mark.parametrize("Estimator", [DGTClassifier, DGTRegressor])
def test_weights_that_make_no_sense(Estimator, weight, message):
    with pytest.raises(ValueError, match=message):
        Estimator().fit(X, LABELS, sample_weight=weight)


def test_one_class_left_by_weights():
    with pytest.raises(ValueError, match="1 class among the rows with positive weight: .*1"):
        DGTClassifier().fit(X, LABELS, sample_weight=LABELS)
    with pytest.raises(ValueError, match="1 class among the rows with positive weight"):
        DGTClassifier(class_weight={0: 0.0}).fit(X, LABELS)


@pytest.mark.parametrize(
    "class_weight", ["even", [1, 2], {0: -1.0}, {0: np.nan}, {0: 0, 1: 0}, 3.0, {5: 1.0}]
)
def test_class_weights_that_make_no_sense(class_weight):
    with pytest.raises(ValueError, match="class"):
        DGTClassifier(class_weight=class_weight).fit(X, LABELS)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("max_depth", [0, -1, 17, 2.5, "6", None, True]),
        ("layers", [0, 1.0, "3", 17, [0], [2.5]]),
        ("leaves", ["quadratic", None, 1]),
        ("learning_rate", [0, -0.1, np.nan, np.inf, "0.01", None]),
        ("batch_size", [0, 1.5, None]),
        ("max_epochs", [0, -3, "many", 10.0, None]),
        ("momentum", [-0.1, 1.0, np.nan]),
        ("l1", [-1e-9, np.inf, np.nan, None]),
        ("l2", [-1e-9, np.inf, np.nan, None]),
        ("n_restarts", [0, 1.0, None]),
        ("validation_fraction", [-0.1, 1.0, np.nan, None]),
        ("early_stopping", ["yes", None, 3]),
        ("n_jobs", [0]),
        ("random_state", ["seed", -1]),
        ("verbose", [-1]),
    ],
)
@pytest.mark.parametrize("Estimator", [DGTClassifier, DGTRegressor])
def test_parameters_out_of_range_are_named(Estimator, name, values):
    for value in values:
        with pytest.raises(
            ValueError, match=name if name not in ("random_state",) else "seed|Seed"
        ):
            Estimator(**{name: value}).fit(X, LABELS)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("training", {"optimizer": "adam"}),
        ("relaxation", "product"),
        ("callbacks", [3]),
        ("init", 3),
    ],
)
def test_parameters_of_the_wrong_kind_are_named(name, value):
    with pytest.raises(TypeError, match=name):
        DGTClassifier(**{name: value}).fit(X, LABELS)


@pytest.mark.parametrize(
    ("Estimator", "allowed"),
    [(GreedyTreeClassifier, "entropy', 'gini'"), (GreedyTreeRegressor, "variance'")],
)
@pytest.mark.parametrize("value", [None, "x", 3])
def test_a_criterion_is_one_of_its_task(Estimator, allowed, value):
    with pytest.raises(ValueError, match=rf"criterion must be one of \['{allowed}\]"):
        Estimator(criterion=value).fit(X, LABELS)


@pytest.mark.parametrize("loss", ["auto", None, np.ones(2)])
@pytest.mark.parametrize("Estimator", [DGTClassifier, DGTRegressor, TAORegressor])
def test_a_loss_that_is_none_is_told_as_it_was_given(Estimator, loss):
    with pytest.raises(ValueError, match=re.escape(f"loss={loss!r} is not a loss for")):
        Estimator(loss=loss).fit(X, LABELS)


@pytest.mark.parametrize("base", [None, "dgt", TEL, GreedyTreeClassifier()])
def test_a_forest_of_what_is_no_learner_is_refused(base):
    with pytest.raises(TypeError, match=r"base must be a learner of hardwood.learn, got"):
        Bagging(base=base)


def test_a_forest_refines_no_tree():
    tree = GreedyTreeClassifier(max_depth=2).fit(X, LABELS)
    with pytest.raises(TypeError, match="learners contains Bagging"):
        refine(tree, X, LABELS, learners=[Bagging()])


def test_losses_of_the_other_task():
    with pytest.raises(ValueError, match="not a loss for classification"):
        DGTClassifier(loss="huber").fit(X, LABELS)
    with pytest.raises(ValueError, match="not a loss for regression"):
        DGTRegressor(loss="log_loss").fit(X, NUMBERS)
    with pytest.raises(ValueError, match="two classes, found 3"):
        DGTClassifier(loss=Logistic()).fit(X, np.arange(30) % 3)


@pytest.mark.parametrize(
    "options",
    [
        {"optimizer": "lion"},
        {"schedule": "linear"},
        {"schedule_restarts": -1},
        {"clip_norm": 0.0},
        {"patience": 0},
        {"decay": 1.0},
        {"epsilon": 0.0},
    ],
)
def test_training_options_out_of_range(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        Training(**options)


@pytest.mark.parametrize("table", [[], X[:0], X[0], X[None], "X"])
def test_tables_that_cannot_be_predicted(table):
    model = DGTClassifier(max_depth=1, max_epochs=2, random_state=0).fit(X, LABELS)
    with pytest.raises(ValueError, match="sample|Reshape|table|dim|features"):
        model.predict(table)


def test_as_many_classes_as_rows():
    with warnings.catch_warnings():  # newer scikit-learn asks whether y may be numbers
        warnings.filterwarnings("ignore", message="The number of unique classes")
        model = DGTClassifier(max_depth=5, random_state=0).fit(X, np.arange(30))
    assert model.predict_proba(X).shape == (30, 30)


def test_saving_to_a_folder_is_an_error(tmp_path):
    model = DGTClassifier(max_depth=1, max_epochs=2, random_state=0).fit(X, LABELS)
    with pytest.raises(OSError, match=r"."):
        model.save(tmp_path)
    assert list(tmp_path.iterdir()) == []


def in_an_array(column: str = "x", level: str = "u", label: str = "yes"):
    """A table with one of these texts, in the one form that may hold any text."""
    kinds = np.array([level, "v"] * 15, dtype=object)
    names = pd.Index([column, "kind"], dtype=object)
    frame = pd.DataFrame(np.column_stack([NUMBERS, kinds]), columns=names, dtype=object)
    return frame, [label if number > 0 else "no" for number in NUMBERS]


@pytest.mark.parametrize("what", ["column", "level", "label"])
def test_text_that_no_file_can_hold_is_refused_before_learning(what):
    """Half of a surrogate pair cannot be written to a model, a page or a CSV file."""
    table, labels = in_an_array(**{what: "a\ud83d"})
    words = {"column": "the column name", "level": "column 'kind': the level", "label": "class"}
    with pytest.raises(TableError, match=rf"{words[what]} 'a\\ud83d' is not valid Unicode"):
        DGTClassifier(callbacks=lambda epoch: pytest.fail("learning began")).fit(table, labels)


def test_such_text_at_prediction_is_an_unknown_level():
    table, labels = in_an_array()
    model = DGTClassifier(max_epochs=2, random_state=0).fit(table, labels)
    strange, _ = in_an_array(level="\ud83d")
    with pytest.warns(TableWarning, match=r"column 'kind' in 15 of 30 rows \('\\ud83d'\)"):
        model.predict(strange)
