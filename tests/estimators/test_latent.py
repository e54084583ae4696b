"""Estimators of latent trees, and the model that they leave."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.metrics import log_loss, mean_squared_error
from sklearn.model_selection import train_test_split

import hardwood
from hardwood import LatentTreeClassifier, LatentTreeRegressor, ObliqueTree
from hardwood.errors import FitInterruptedWarning, TableError, TableWarning
from hardwood.learn import Huber, Quantile, losses
from hardwood.model import LatentTreeModel
from held_out import held_out_rows
from reference import latent as reference
from reference import losses as reference_losses

torch = pytest.importorskip("torch", reason="latent trees are learned by torch")

QUICK = {"max_depth": 3, "max_epochs": 30, "random_state": 0}
VARIANTS = [
    {},
    {"head": (8, 4), "dropout": 0.1},
    {"activation": "elu", "skip_connection": False},
    {"pruning": 60.0},
    {"pruning": 0.0, "head": [6]},
]


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    return train_test_split(X, y, random_state=0)


@pytest.fixture(scope="module")
def diabetes():
    return load_diabetes(return_X_y=True)


@pytest.fixture(scope="module", params=VARIANTS, ids=lambda options: str([*options]))
def variant(request, cancer):
    X, _, y, _ = cancer
    return LatentTreeClassifier(**QUICK, **request.param).fit(X, y)


@pytest.fixture(scope="module")
def plain(cancer):
    X, _, y, _ = cancer
    return LatentTreeClassifier(**QUICK).fit(X, y)


def test_what_is_kept_is_what_was_judged(cancer, variant):
    """Removal of nodes, raw units and float64 change nothing: it predicts as the network did."""
    X, _, y, _ = cancer
    model = variant
    rows = held_out_rows(model, X, y)
    found = log_loss(y.iloc[rows], model.predict_proba(X.iloc[rows]))
    assert found == pytest.approx(min(e.validation_loss for e in model.history_), rel=1e-4)


def test_a_prediction_does_not_depend_on_other_rows(cancer, variant):
    model, test_X = variant, cancer[1]
    together = model.predict_proba(test_X)
    alone = np.vstack([model.predict_proba(test_X.iloc[[i]]) for i in range(50)])
    np.testing.assert_array_equal(alone, together[:50])
    backwards = model.predict_proba(test_X.iloc[::-1])[::-1]
    np.testing.assert_array_equal(backwards, together)
    one = model.model_.predict_one(test_X.iloc[3].to_dict())
    assert one == model.predict(test_X)[3]


def test_saves_and_loads(cancer, tmp_path, variant):
    model, test_X, test_y = variant, cancer[1], cancer[3]
    assert model.score(test_X, test_y) > 0.9
    model.save(tmp_path / "latent.hardwood")
    loaded = hardwood.load(tmp_path / "latent.hardwood")
    assert isinstance(loaded, LatentTreeModel)
    assert loaded == model.model_
    np.testing.assert_array_equal(loaded.predict_proba(test_X), model.predict_proba(test_X))
    assert LatentTreeModel.from_json(loaded.to_json()) == loaded


def test_a_saved_model_predicts_without_torch_and_scikit_learn(diabetes, tmp_path):
    X, y = diabetes
    model = LatentTreeRegressor(**QUICK).fit(X, y)
    model.save(tmp_path / "latent.hardwood")
    np.save(tmp_path / "X.npy", X)
    program = (
        "import sys, numpy as np, hardwood\n"
        f"model = hardwood.load({str(tmp_path / 'latent.hardwood')!r})\n"
        f"print(model.predict(np.load({str(tmp_path / 'X.npy')!r})).sum())\n"
        "assert not {'torch', 'sklearn'} & set(sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert float(done.stdout) == pytest.approx(model.predict(X).sum(), rel=1e-12)


def test_traversals_are_those_of_the_program(cancer):
    X, test_X, y, _ = cancer
    model = LatentTreeClassifier(**QUICK, pruning=60.0).fit(X, y).model_
    columns = model._run(test_X, lambda columns: columns)
    scores = np.zeros((len(test_X), 7))
    scores[:, model.splits] = columns @ model.weights.T + model.bias
    q = reference.rewards(scores)[:, model.nodes]
    expected = np.clip(q + 0.5, 0.0, model.activity)
    np.testing.assert_allclose(model.traversals(test_X), expected, atol=1e-12)


def test_pruning_removes_nodes_and_the_history_shows_it(cancer):
    X, _, y, _ = cancer
    options = QUICK | {"max_depth": 5, "max_epochs": 30, "skip_connection": False}
    models = [
        LatentTreeClassifier(pruning=pruning, **options).fit(X, y)
        for pruning in (0.0, 1000.0, 30000.0)
    ]
    sizes = [model.model_.n_nodes for model in models]
    assert sizes[0] == 63
    assert sizes[0] > sizes[1] > sizes[2]
    model = models[1]
    assert model.model_.weights.shape[0] == model.model_.n_splits < 31
    kept = model.history_[
        [e.validation_loss for e in model.history_].index(
            min(e.validation_loss for e in model.history_)
        )
    ]
    assert kept.active_nodes == pytest.approx(model.model_.n_nodes / 63)
    assert "active_nodes" in model.model_.record["curves"]


@pytest.mark.parametrize("skip", [True, False])
def test_a_price_that_no_node_is_worth_leaves_the_root(cancer, tmp_path, skip):
    X, test_X, y, _ = cancer
    model = LatentTreeClassifier(pruning=1e9, skip_connection=skip, **QUICK).fit(X, y)
    assert model.model_.nodes.tolist() == [0]
    assert set(model.apply(test_X)) == {0}
    model.save(tmp_path / "root.hardwood")
    loaded = hardwood.load(tmp_path / "root.hardwood")
    np.testing.assert_array_equal(loaded.predict(test_X), model.predict(test_X))
    assert LatentTreeModel.from_json(loaded.to_json()) == loaded
    assert model.harden(X, y).n_leaves == 1
    assert "node 0" in loaded.to_text()


def test_nodes_that_are_left_out_are_no_part_of_any_answer(cancer):
    """With a node of its own activity 0, the same answers; without it, too."""
    X, test_X, y, _ = cancer
    model = LatentTreeClassifier(**QUICK, pruning=1000.0, skip_connection=False).fit(X, y).model_
    ends = model.apply(test_X)
    assert set(ends) <= set(model.nodes.tolist())
    z = model.traversals(test_X)
    assert z.shape == (len(test_X), model.n_nodes)
    assert (z <= model.activity).all()
    assert (z >= 0).all()
    routes = model.routes()
    assert routes.n_splits == model.n_splits
    same_leaf = pd.DataFrame({"leaf": routes.apply(test_X), "end": ends})
    assert (same_leaf.groupby("leaf")["end"].nunique() == 1).all()


def test_numbers_are_judged_in_units_of_their_deviation(diabetes):
    X, y = diabetes
    y = 1e6 + 1e3 * y
    model = LatentTreeRegressor(**QUICK).fit(X, y)
    rows = held_out_rows(model, X, y)
    found = mean_squared_error(y[rows], model.predict(X[rows]))
    best = min(epoch.validation_loss for epoch in model.history_)
    assert found / y.var() == pytest.approx(best, rel=1e-3)


@pytest.mark.parametrize(
    "loss",
    ["squared_error", "absolute_error", Huber(0.4), Quantile(0.8), "poisson"],
    ids=str,
)
def test_losses_of_numbers_are_the_engines(loss, diabetes):
    from hardwood.learn.latent_network.losses import row_losses

    made = losses.loss_of(loss, "regression")
    rng = np.random.default_rng(0)
    f, y = rng.normal(size=(20, 2)), np.abs(rng.normal(size=(20, 2)))
    arguments = [made.parameter] if made.name in ("huber", "quantile") else []
    expected = getattr(reference_losses, made.name)(f, y, *arguments)
    scores = torch.from_numpy(f).requires_grad_()
    found = row_losses(made, scores, torch.from_numpy(y))
    np.testing.assert_allclose(found.detach(), expected, rtol=1e-12)
    found.sum().backward()
    gradient = getattr(reference_losses, f"{made.name}_gradient")(f, y, *arguments)
    np.testing.assert_allclose(scores.grad, gradient, rtol=1e-12)
    X, y = diabetes
    assert np.isfinite(LatentTreeRegressor(loss=loss, **QUICK).fit(X, y).predict(X)).all()


@pytest.mark.parametrize("name", ["logistic", "cross_entropy", "hinge", "squared_codes"])
def test_losses_of_classes_are_the_engines(name):
    from hardwood.learn.latent_network.losses import row_losses

    rng = np.random.default_rng(0)
    every = (losses.Logistic(), losses.CrossEntropy(), losses.Hinge(), losses.SquaredCodes())
    made = next(loss for loss in every if loss.name == name)
    f = rng.normal(size=(20, 1 if name == "logistic" else 3))
    y = rng.integers(0, 2, (20, 1)).astype(float)
    scores = torch.from_numpy(f).requires_grad_()
    found = row_losses(made, scores, torch.from_numpy(y))
    np.testing.assert_allclose(found.detach(), getattr(reference_losses, name)(f, y), rtol=1e-10)
    found.sum().backward()
    gradient = getattr(reference_losses, f"{name}_gradient")(f, y)
    np.testing.assert_allclose(scores.grad, gradient, rtol=1e-8, atol=1e-12)


def test_a_function_as_loss_follows_the_built_in_one():
    X, y = load_iris(return_X_y=True)

    def cross_entropy(scores, index):
        return reference_losses.cross_entropy(
            scores, index
        ), reference_losses.cross_entropy_gradient(scores, index)

    built_in = LatentTreeClassifier(**QUICK).fit(X, y)
    own = LatentTreeClassifier(loss=cross_entropy, **QUICK).fit(X, y)
    np.testing.assert_allclose(
        [epoch.train_loss for epoch in own.history_],
        [epoch.train_loss for epoch in built_in.history_],
        rtol=1e-3,
    )

    def gradient_only(scores, index):
        return reference_losses.cross_entropy_gradient(scores, index)

    blind = LatentTreeClassifier(loss=gradient_only, **QUICK).fit(X, y)
    assert blind.score(X, y) > 0.8


@pytest.mark.parametrize("leaves", ["constant", "linear"])
@pytest.mark.parametrize("with_y", [True, False])
def test_hard_trees_and_what_they_cost(cancer, plain, leaves, with_y):
    X, test_X, y, test_y = cancer
    model = plain
    hard = model.harden(X, y if with_y else None, leaves=leaves)
    assert isinstance(hard, ObliqueTree)
    assert hard.has_linear_leaves == (leaves == "linear")
    cost = model.hardening_cost(hard, test_X, test_y)
    assert cost.hard_accuracy == pytest.approx(np.mean(hard.predict(test_X) == test_y))
    assert cost.soft_accuracy == pytest.approx(model.score(test_X, test_y))
    assert abs(cost.hard_accuracy - cost.soft_accuracy) < 0.08
    assert "leaves that a row reaches" in str(cost)
    assert hard.record["hardened"] == {"leaves": leaves}


def test_hard_leaves_are_means_and_least_squares(diabetes):
    X, y = diabetes
    model = LatentTreeRegressor(**QUICK).fit(X, y)
    weight = np.random.default_rng(0).integers(0, 3, len(y))
    constant = model.harden(X, y, sample_weight=weight)
    leaf = constant.apply(X)
    for at in np.unique(leaf[weight > 0]):
        here = leaf == at
        mean = np.average(y[here], weights=weight[here])
        assert constant.predict(X[here])[0] == pytest.approx(mean)
    linear = model.harden(X, y, leaves="linear", sample_weight=weight)
    errors = [np.average((tree.predict(X) - y) ** 2, weights=weight) for tree in (constant, linear)]
    assert errors[1] < errors[0]


def test_words_cost_and_page(cancer):
    X, _, y, _ = cancer
    model = LatentTreeClassifier(**QUICK, pruning=1000.0, skip_connection=False).fit(X, y).model_
    text = model.to_text(max_terms=2)
    assert text.startswith("Latent tree: classification, depth")
    assert text.count("activity") >= model.n_nodes
    assert "node 0, activity 0." in text
    expected = np.count_nonzero(model.weights) + np.count_nonzero(model.head_weights)
    assert model.flops().worst.multiplications == expected
    with pytest.raises(TypeError, match="pass the result of its harden"):
        model.show()
    assert model._repr_html_() is None
    assert "active nodes" in repr(model)


def test_several_labels_and_several_numbers(diabetes):
    X, y = diabetes
    labels = np.column_stack([y > 100, y > 200, X[:, 1] > 0])
    probability = LatentTreeClassifier(**QUICK).fit(X, labels).predict_proba(X)
    assert probability.shape == labels.shape
    assert ((probability > 0.5) == labels).mean() > 0.75
    both = LatentTreeRegressor(**QUICK).fit(X, np.column_stack([y, -3 * y]))
    assert both.predict(X).shape == (len(X), 2)
    assert both.score(X, np.column_stack([y, -3 * y])) > 0.3


@pytest.mark.filterwarnings("ignore:levels that the model did not learn")
def test_categories_gaps_and_sparse_tables():
    rng = np.random.default_rng(0)
    kind = rng.choice(["a", "b", "c"], 400)
    number = np.where(rng.random(400) < 0.2, np.nan, rng.normal(size=400))
    y = (kind == "b") | np.isnan(number)
    X = pd.DataFrame({"kind": kind, "number": number})
    model = LatentTreeClassifier(max_depth=3, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.97
    assert model.predict(pd.DataFrame({"kind": ["b", "zebra"], "number": [0.0, 0.0]}))[0]
    dense = np.where(rng.random((300, 5)) < 0.6, 0.0, rng.normal(size=(300, 5)))
    of_dense = LatentTreeRegressor(**QUICK).fit(dense, dense[:, 0])
    of_sparse = LatentTreeRegressor(**QUICK).fit(sparse.csr_matrix(dense), dense[:, 0])
    np.testing.assert_allclose(
        of_sparse.predict(sparse.csr_matrix(dense)), of_dense.predict(dense), rtol=1e-6, atol=1e-6
    )
    assert len(of_sparse.model_.traversals(sparse.csr_matrix(dense))) == 300


def test_weight_two_is_the_row_twice_to_the_bit(diabetes):
    X, y = diabetes
    weight = np.random.default_rng(0).integers(0, 3, len(y))
    weighted = LatentTreeRegressor(**QUICK).fit(X, y, sample_weight=weight)
    repeated = LatentTreeRegressor(**QUICK).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert weighted.model_ == repeated.model_


def test_decay_makes_weights_small(cancer):
    X, _, y, _ = cancer
    sizes = [
        np.abs(LatentTreeClassifier(weight_decay=d, **QUICK).fit(X, y).model_.head_weights).mean()
        for d in (0.0, 10.0)
    ]
    assert sizes[1] < 0.7 * sizes[0]


def test_class_weights_are_heard(cancer):
    X, test_X, y, _ = cancer
    share = [
        LatentTreeClassifier(class_weight={0: w, 1: 1}, **QUICK).fit(X, y).predict(test_X).mean()
        for w in (0.05, 20.0)
    ]
    assert share[0] > share[1]


def test_threads_and_torchs_state_change_nothing(cancer):
    X, _, y, _ = cancer
    one = LatentTreeClassifier(n_jobs=1, head=(4,), dropout=0.2, **QUICK).fit(X, y)
    torch.manual_seed(5)
    torch.rand(3)
    before, threads = torch.random.get_rng_state(), torch.get_num_threads()
    with torch.no_grad():
        two = LatentTreeClassifier(n_jobs=2, head=(4,), dropout=0.2, **QUICK).fit(X, y)
    assert one.model_ == two.model_
    assert torch.equal(torch.random.get_rng_state(), before)
    assert torch.get_num_threads() == threads
    other = LatentTreeClassifier(head=(4,), dropout=0.2, **(QUICK | {"random_state": 1})).fit(X, y)
    assert other.model_ != one.model_


def test_threads_predict_the_same_bits(cancer):
    """Over more than one chunk of rows, which is what threads share."""
    X, _, y, _ = cancer
    model = LatentTreeClassifier(**QUICK).fit(X, y)
    rows = pd.concat([X] * 20)
    for answer in (model.predict_proba, model.traversals, model.apply):
        one = answer(rows)
        model.set_params(n_jobs=3)
        assert (answer(rows) == one).all()
        assert (one == np.concatenate([answer(X)] * 20)).all()
        model.set_params(n_jobs=1)


def test_a_callback_may_end_it(cancer):
    X, _, y, _ = cancer
    model = LatentTreeClassifier(callbacks=lambda epoch: epoch.epoch == 4, **QUICK).fit(X, y)
    assert model.n_iter_ == len(model.history_) == 5


@pytest.mark.parametrize("at", [0, 4])
def test_an_interruption_keeps_the_best_so_far(cancer, at):
    X, _, y, _ = cancer

    def interrupt(epoch):
        if epoch.epoch == at:
            raise KeyboardInterrupt

    with pytest.warns(FitInterruptedWarning, match=f"after {at + 1} epoch"):
        model = LatentTreeClassifier(callbacks=interrupt, **QUICK).fit(X, y)
    assert len(model.history_) == at + 1
    assert model.predict(X).shape == (len(X),)


def test_verbose_prints(cancer, capsys):
    X, _, y, _ = cancer
    LatentTreeClassifier(verbose=2, **(QUICK | {"max_epochs": 3})).fit(X, y)
    assert capsys.readouterr().out.count("validation loss") == 3


def test_without_torch_the_message_says_how_to_install_it(cancer, plain, monkeypatch):
    X, test_X, y, _ = cancer
    model = plain
    answers = model.predict(test_X)
    monkeypatch.setattr("hardwood.learn.latent.find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"torch.*pip install '\.\[torch\]'"):
        model.fit(X, y)
    np.testing.assert_array_equal(model.predict(test_X), answers)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"max_depth": 13}, "max_depth must be an integer from 1 to 12"),
        ({"pruning": -1.0}, "pruning must be a number"),
        ({"pruning": np.nan}, "pruning must be a number"),
        ({"head": "mlp"}, "head must be 'linear' or a list of widths"),
        ({"head": (0,)}, r"head\[0\] must be an integer"),
        ({"head": 5}, "head must be"),
        ({"skip_connection": "yes"}, "skip_connection must be True or False"),
        ({"activation": "axis"}, "activation must be one of"),
        ({"dropout": 1.0}, "dropout must be a number"),
        ({"weight_decay": -1.0}, "weight_decay must be a number"),
        ({"weight_decay": 101.0}, "weight_decay times learning_rate must be at most 1"),
        ({"learning_rate": 0.0}, "learning_rate must be a number"),
        ({"batch_size": 0}, "batch_size must be an integer"),
        ({"max_epochs": 0}, "max_epochs must be an integer"),
        ({"n_jobs": 0}, "n_jobs"),
    ],
)
def test_wrong_parameters_are_named(wrong, message, cancer):
    X, _, y, _ = cancer
    with pytest.raises((ValueError, TypeError), match=message):
        LatentTreeClassifier(**wrong).fit(X, y)


def test_learning_that_diverges_says_so(diabetes):
    with pytest.raises(ValueError, match="diverged"):
        LatentTreeRegressor(learning_rate=1e30, weight_decay=0.0, **QUICK).fit(*diabetes)


@pytest.mark.parametrize("batch_size", [1, 7, 10_000])
def test_batches_of_any_size(diabetes, batch_size):
    X, y = diabetes
    options = QUICK | {"max_epochs": 2}
    model = LatentTreeRegressor(batch_size=batch_size, **options).fit(X[:60], y[:60])
    assert np.isfinite(model.predict(X)).all()


def test_few_rows_and_a_constant_column():
    X = np.array([[0.0, 1.0], [1.0, 1.0]])
    model = LatentTreeRegressor(**QUICK).fit(X, [0.0, 1.0])
    assert np.isfinite(model.predict(X)).all()
    early = LatentTreeRegressor(early_stopping=True, validation_fraction=0.4, **QUICK)
    assert np.isfinite(early.fit(X, [0.0, 1.0]).predict(X)).all()


def test_hostile_entries_have_finite_answers(cancer):
    X, _, y, _ = cancer
    model = LatentTreeClassifier(**QUICK, head=(4,)).fit(X.to_numpy(), y)
    far = np.full((2, 30), 1e300)
    far[1] *= -1
    probability = model.predict_proba(far)
    assert np.isfinite(probability).all()
    with pytest.raises(TableError, match="infin"):
        model.predict(np.full((1, 30), np.inf))


@pytest.mark.filterwarnings("ignore::hardwood.errors.TableWarning")  # they are near it
@pytest.mark.parametrize("skip_connection", [True, False])
def test_columns_near_the_largest_float_have_finite_answers(skip_connection):
    X = np.array([[1.7e308, 0.0], [-1e307, 1.0], [0.0, 2.0], [-1.7e308, 3.0]])
    model = LatentTreeClassifier(**QUICK, skip_connection=skip_connection)
    probability = model.fit(X, [0, 1, 1, 0]).predict_proba(X)
    np.testing.assert_allclose(probability.sum(axis=1), 1.0)


def test_the_code_of_the_page_runs(tmp_path, monkeypatch, capsys):
    page = Path(__file__).parents[2] / "docs" / "papers" / "latent.md"
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 3
    monkeypatch.chdir(tmp_path)
    exec(compile("\n".join(blocks), str(page), "exec"), {})
    assert "rows with a different prediction" in capsys.readouterr().out


def make_model(**changes):
    parts = {
        "nodes": [0, 1, 2, 5],
        "activity": [1.0, 1.0, 0.5, 0.25],
        "weights": [[1.0], [2.0]],
        "bias": [0.0, 1.0],
        "head_weights": [0.0, 1.0, 2.0, 3.0, 1.0],
        "head_bias": [0.5],
        "skip_connection": True,
        "schema": hardwood.table.Schema.numeric(1),
        "task": "regression",
    }
    return LatentTreeModel(**(parts | changes))


def test_a_model_by_hand():
    model = make_model()
    assert (model.depth, model.n_splits, model.n_leaves, model.n_outputs) == (2, 2, 2, 1)
    X = [[-2.0], [0.0], [2.0]]
    expected = [[1.0, 1.0, 0.0, 0.0], [1.0, 0.5, 0.5, 0.0], [1.0, 0.0, 0.5, 0.0]]
    np.testing.assert_array_equal(model.traversals(X), expected)
    np.testing.assert_array_equal(model.predict(X), [-0.5, 2.0, 3.5])
    assert model.apply(X).tolist() == [1, 2, 2]


def test_predictions_beyond_float64_are_infinite_and_named():
    """One warning of the table, none of NumPy's, from whichever thread."""
    model = make_model(head_weights=[0.0, 1e308, 1e308, 0.0, 1e308])
    with pytest.warns(TableWarning, match="2 predictions are beyond float64") as caught:
        predictions = model.predict([[-3.0], [0.25], [3.0]], n_jobs=2)
    assert predictions.tolist() == [-np.inf, 1e308, np.inf]
    assert len(caught) == 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"nodes": [1, 2]}, "begin with the root"),
        ({"nodes": [0, 1, 2, 9]}, "parent of each, but that of 9"),
        ({"nodes": [0, 2, 1, 5]}, "must ascend"),
        ({"nodes": [0.0, 1.0, 2.0, 5.0]}, "nodes must hold integers"),
        ({"activity": [1.0, 1.0, 0.0, 0.0]}, "left out"),
        ({"activity": [0.5, 1.0, 0.5, 0.2]}, "more active than its parent"),
        ({"head_weights": [1.0]}, r"head_weights must have shape \(5\)"),
        ({"head_bias": []}, "leaves 0 outputs"),
        ({"weights": [[np.inf], [1.0]]}, "weights must be finite"),
        ({"weights": [[1.0], [1e300]]}, "weights and bias of split 1 are too large"),
        ({"widths": (0,)}, "widths must be whole numbers"),
        ({"activation": "tanh"}, "activation must be"),
        ({"skip_connection": 1}, "skip_connection must be true or false"),
        ({"link": "softmax"}, "link"),
    ],
)
def test_what_is_no_model_is_refused(changes, message):
    with pytest.raises((ValueError, TypeError), match=message):
        make_model(**changes)
