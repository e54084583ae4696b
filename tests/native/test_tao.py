"""TAO against the NumPy reference: reduced problems, thresholds, logistic regressions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardwood import _native, _probes
from hardwood.table import Schema, Table
from native.test_non_greedy import LOSSES, random_targets, random_tree
from reference import tao as reference

OPTIONS = {
    "l1": [0.1],
    "l2": 0.0,
    "l0": 0.0,
    "logistic_passes": 500,
    "logistic_tolerance": 1e-7,
    "max_features": 0,
    "from_the_root": False,
}
EVERY_LOSS = {**LOSSES, "misclassification": 0.0}
OF_CLASSES = ("cross_entropy", "hinge", "squared_codes", "misclassification")


def encoded(X: np.ndarray) -> tuple[_native.TaoTable, np.ndarray]:
    """Return the engine's rows, and the same as an array."""
    schema = Schema.learn(Table.of(X), np.ones(len(X)), np.arange(len(X)))
    table = _native.TaoTable(schema.encoder, X, np.arange(len(X)), 1)
    return table, table.columns(np.arange(len(X)))


def engine_losses(tree, loss: str) -> tuple[str, np.ndarray | None]:
    """Return the loss for the engine; for classes, with a table (L, k)."""
    if loss not in OF_CLASSES:
        return loss, None
    objective, k = reference.Objective(loss), tree.theta.shape[1]
    table = [
        [objective.of(tree, leaf, np.zeros(0), np.array([label])) for label in range(k)]
        for leaf in range(len(tree.theta))
    ]
    return loss if loss in LOSSES else "cross_entropy", np.array(table, dtype=np.float32)


class Case:
    """A random tree over random rows, for the engine and for the reference."""

    def __init__(self, seed: int, loss: str, n: int = 60, n_splits: int = 6, is_linear=False):
        rng = np.random.default_rng(seed)
        self.table, X = encoded(rng.normal(size=(n, 4)))
        k = 3
        of_target = "cross_entropy" if loss == "misclassification" else loss
        self.tree = random_tree(rng, n_splits, X.shape[1], k)
        target = random_targets(rng, of_target, n, k).astype(np.float32).reshape(n, -1)
        weight = (rng.random(n) * (rng.random(n) < 0.9)).astype(np.float32)
        self.rows = reference.Rows(X, target, weight)
        A = rng.normal(size=(n_splits + 1, k, X.shape[1])).astype(np.float32)
        self.objective = reference.Objective(loss, LOSSES.get(loss, 0.0), A if is_linear else None)
        name, table = engine_losses(self.tree, loss)
        flat = A.reshape(-1, X.shape[1]) if is_linear else None
        self.arguments = (
            self.tree.children,
            self.tree.W,
            self.tree.b,
            self.tree.theta,
            flat,
            None if is_linear else table,
            target,
            weight,
        )
        self.options = {"loss": name, "loss_parameter": self.objective.parameter}

    def sweep(self, n_threads: int = 1, seconds: float = np.inf, **changed):
        return self.table.sweep(
            *self.arguments,
            **self.options,
            options={**OPTIONS, **changed},
            feature_of_column=list(range(self.rows.X.shape[1])),
            n_threads=n_threads,
            seconds=seconds,
        )

    def after(self, answer):
        """The reference's tree with the splits that a sweep found."""
        return reference.Tree(
            answer["weights"], answer["bias"], self.tree.children, self.tree.theta
        )


# Linear leaves are fitted to losses that have a slope.
EVERY_LEAF = [(loss, False) for loss in EVERY_LOSS] + [(loss, True) for loss in LOSSES]


@pytest.mark.parametrize(("loss", "is_linear"), EVERY_LEAF)
def test_the_reduced_problem_of_a_node_is_that_of_the_reference(loss, is_linear):
    for seed in range(5):
        case = Case(seed, loss, is_linear=is_linear)
        for node in range(len(case.tree.children)):
            at = reference.rows_at(case.tree, node, case.rows.X)
            rows, sign, cost = case.table.reduced(
                *case.arguments,
                **case.options,
                node=node,
                rows_at_node=np.array(at, dtype=np.int32),
            )
            expected = reference.reduced_problem(case.tree, node, case.rows, case.objective)
            assert rows.tolist() == expected.rows
            np.testing.assert_array_equal(sign, expected.sign)
            np.testing.assert_allclose(cost, expected.cost, rtol=2e-4, atol=2e-5)


@given(
    st.lists(
        st.tuples(st.integers(-5, 5), st.booleans(), st.integers(1, 4)), min_size=1, max_size=30
    )
)
def test_the_best_threshold_is_that_of_trying_all(rows):
    """Scores and costs are small integers, so that ties occur and sums are exact."""
    score = np.array([row[0] for row in rows], dtype=np.float32)
    sign = np.array([1.0 if row[1] else -1.0 for row in rows], dtype=np.float32)
    cost = np.array([float(row[2]) for row in rows])
    at, loss, gap = _probes.best_threshold(score, sign, cost)
    best, widest = reference.best_threshold(score.astype(np.float64), sign, cost)
    assert loss == best
    assert gap == widest
    assert reference.reduced_loss(score, -np.float32(at), sign, cost) == loss


@pytest.mark.parametrize(("l1", "l2"), [(0.0, 0.0), (0.5, 0.0), (3.0, 0.0), (0.5, 2.0), (1e6, 0.0)])
def test_logistic_regression_finds_the_optimum_of_the_reference(l1, l2):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(150, 5)).astype(np.float32) @ rng.normal(size=(5, 5)).astype(np.float32)
    noise = rng.logistic(size=150)
    sign = np.where(X[:, 0] - 0.5 * X[:, 1] + noise > 0.5, 1.0, -1.0).astype(np.float32)
    weight = rng.random(150).astype(np.float32)
    w, b, objective, _ = _probes.solve_logistic(X, sign, weight, l1=l1, l2=l2, tolerance=1e-9)
    expected = reference.solve_logistic(X, sign, weight, l1, l2)
    best = reference.logistic_objective(*expected, X, sign, weight, l1, l2)
    assert objective == pytest.approx(best, rel=1e-5)
    found = reference.logistic_objective(w.astype(np.float64), b, X, sign, weight, l1, l2)
    assert found == pytest.approx(objective, rel=1e-5)
    np.testing.assert_array_equal(w == 0, expected[0] == 0)
    np.testing.assert_allclose(w, expected[0], atol=2e-3)


def test_logistic_regression_stays_bounded_where_rows_can_be_parted():
    X = np.array([[-1.0], [1.0]], dtype=np.float32)
    sign, weight = np.array([-1, 1], dtype=np.float32), np.ones(2, dtype=np.float32)
    w, _, objective, passes = _probes.solve_logistic(X, sign, weight, l1=0.0, max_passes=50)
    assert np.isfinite(w).all()
    assert objective < 1e-2
    assert passes <= 50


def test_logistic_regression_is_the_same_for_any_number_of_threads():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40_000, 40)).astype(np.float32)
    sign = np.where(X[:, 0] + rng.logistic(size=len(X)) > 0, 1, -1).astype(np.float32)
    weight = rng.random(len(X)).astype(np.float32)
    one, three = (
        _probes.solve_logistic(X, sign, weight, l1=10.0, max_passes=10, n_threads=n) for n in (1, 3)
    )
    np.testing.assert_array_equal(one[0], three[0])
    assert one[1:] == three[1:]


@pytest.mark.parametrize("loss", EVERY_LOSS)
@pytest.mark.parametrize("from_the_root", [False, True])
def test_what_a_sweep_says_it_gains_is_what_the_loss_falls_by(loss, from_the_root):
    for seed in range(4):
        case = Case(seed, loss)
        before = reference.total_loss(case.tree, case.rows, case.objective)
        answer = case.sweep(from_the_root=from_the_root)
        after = reference.total_loss(case.after(answer), case.rows, case.objective)
        assert answer["gain"] >= 0
        assert before - after == pytest.approx(answer["gain"], rel=1e-3, abs=1e-3)
        assert answer["n_changed"] > 0


@pytest.mark.parametrize("loss", ["misclassification", "squared_error"])
def test_a_sweep_gains_about_as_much_as_the_reference(loss):
    """Both use the splits of logistic regression, the engine even if the loss does not fall yet."""
    gains, of_reference = [], []
    for seed in range(6):
        case = Case(seed, loss, n=40, n_splits=3)
        before = reference.total_loss(case.tree, case.rows, case.objective)
        gains.append(case.sweep()["gain"])
        tree = reference.sweep(case.tree, case.rows, case.objective, OPTIONS["l1"][0])
        of_reference.append(before - reference.total_loss(tree, case.rows, case.objective))
    assert sum(gains) == pytest.approx(sum(of_reference), rel=0.15)


def test_a_sweep_is_the_same_for_any_number_of_threads():
    case = Case(0, "cross_entropy", n=5000, n_splits=15)
    one, four = (case.sweep(n_threads=n, logistic_passes=20) for n in (1, 4))
    for key in ("weights", "bias"):
        np.testing.assert_array_equal(one[key], four[key])
    assert one["gain"] == four["gain"]


@pytest.mark.parametrize("seconds", [0.0, 0.001])
def test_a_sweep_without_time_stays_a_tree_with_the_gain_it_says(seconds):
    """However far it comes: threads and clocks decide that."""
    case = Case(0, "cross_entropy", n=2000, n_splits=15)
    before = reference.total_loss(case.tree, case.rows, case.objective)
    answer = case.sweep(seconds=seconds)
    after = reference.total_loss(case.after(answer), case.rows, case.objective)
    assert before - after == pytest.approx(answer["gain"], rel=1e-3, abs=1e-3)
    assert not answer["interrupted"]
    if seconds == 0:
        assert not answer["is_whole"]
        assert answer["n_changed"] == 0
    assert case.sweep()["is_whole"]


def test_a_sweep_keeps_to_the_number_of_features():
    case = Case(3, "squared_error", n=200)
    case.tree.W[:, 1:] = 0  # a start that keeps to it
    answer = case.sweep(max_features=2)
    assert answer["n_changed"] > 0
    assert (np.count_nonzero(answer["weights"], axis=1) <= 2).all()


def test_a_price_makes_weights_zero_and_is_part_of_the_gain():
    case = Case(5, "squared_error", n=200)
    free, priced = case.sweep(), case.sweep(l0=3.0, l1=[10.0, 1.0, 0.1])
    n_free, n_priced = (np.count_nonzero(a["weights"]) for a in (free, priced))
    assert n_priced < n_free
    before = reference.total_loss(case.tree, case.rows, case.objective)
    after = reference.total_loss(case.after(priced), case.rows, case.objective)
    prices = 3.0 * (np.count_nonzero(case.tree.W) - n_priced)
    assert before - after + prices == pytest.approx(priced["gain"], rel=1e-3)


def test_what_does_not_fit_is_refused():
    case = Case(0, "cross_entropy")
    with pytest.raises(ValueError, match="must lie between"):
        case.sweep(l1=[-1.0])
    children, W, b, theta, _, table, target, weight = case.arguments
    with pytest.raises(ValueError, match="differ in size"):
        case.table.reduced(
            children, W, b, theta, None, table, target[:-1], weight, **case.options, node=0,
            rows_at_node=np.zeros(1, dtype=np.int32),
        )  # fmt: skip
    with pytest.raises(ValueError, match="another shape"):
        case.table.leaves(children, W[:, 1:].copy(), b, 1)
    bad = target.copy()
    bad[0] = 7
    with pytest.raises(ValueError, match="class index"):
        case.table.reduced(
            children, W, b, theta, None, table, bad, weight, **case.options, node=0,
            rows_at_node=np.zeros(1, dtype=np.int32),
        )  # fmt: skip
