"""The engine's step by semantic logits equals the NumPy reference, for every kind of leaf."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from hardwood import _probes
from reference import dgt, losses, semantic
from reference.optimize import RMSprop
from reference.semantic import Leaves

TOLERANCE = 1e-5
PARTS = ("loss", "dW", "db", "dTheta", "dA")

# leaves that learn values: how many are mixed, and whether they are linear
LEARNED = {
    "hard": (1, False),
    "two of them": (2, False),
    "five of them": (5, False),
    "all of them": (1 << 20, False),
    "hard, linear": (1, True),
    "three of them, linear": (3, True),
}
each_kind = pytest.mark.parametrize("kind", LEARNED)


def dyadic(rng: np.random.Generator, shape, unit: float, bound: float) -> np.ndarray:
    """Multiples of a power of two: float32 sums of them are exact, so ties are ties in both."""
    n = int(bound / unit)
    return (rng.integers(-n, n + 1, size=shape) * unit).astype(np.float32)


@dataclass(frozen=True)
class Case:
    """A batch and a tree. ``Theta`` and ``A`` are None for leaves that do not have them."""

    X: np.ndarray
    target: np.ndarray
    weight: np.ndarray
    W: np.ndarray
    b: np.ndarray
    Theta: np.ndarray | None
    A: np.ndarray | None
    leaves: Leaves
    loss: str
    K: int

    @property
    def height(self) -> int:
        return dgt.height_of(len(self.W))

    def probe(self) -> _probes.LearnerProbe:
        classes = self.leaves.classes
        probe = _probes.LearnerProbe(
            "semantic",
            self.X,
            self.target,
            self.weight,
            n_outputs=self.K,
            loss=self.loss,
            options={
                "height": self.height,
                "linear_leaves": self.A is not None,
                "classes": [] if classes is None else classes.tolist(),
                "n_mixed": self.leaves.n_mixed,
            },
        )
        Theta = np.zeros((0, self.K), np.float32) if self.Theta is None else self.Theta
        probe.set(self.W, self.b, Theta, self.A)
        return probe

    def reference(self):
        """Return the mean loss and its gradients by W, b, Theta and A."""
        tree, value = (self.W, self.b, self.Theta, self.A), losses.LOSSES[self.loss]
        f = semantic.forward(self.X, *tree, self.leaves, self.K)
        share = self.weight.astype(np.float64) / len(self.X)
        g = share[:, None] * value.gradient(f, self.target)
        dW, db, dTheta, dA = semantic.gradients(self.X, *tree, self.leaves, g)
        if dTheta is None:
            dTheta = np.zeros((0, self.K))
        parts = dW, db, dTheta, None if self.A is None else dA
        return share @ value.value(f, self.target), *parts


def batch(rng: np.random.Generator, height: int, n: int, d: int):
    weight = rng.uniform(0.2, 2.0, size=n)
    weight[rng.random(n) < 0.2] = 0.0
    m = 2**height - 1
    return {
        "X": dyadic(rng, (n, d), 0.25, 2.0),
        "weight": weight.astype(np.float32),
        "W": dyadic(rng, (m, d), 0.125, 0.5),
        "b": dyadic(rng, m, 0.125, 1.0),
    }


def dealt_case(height: int, n: int, d: int, n_classes: int, *, shuffled: bool = False) -> Case:
    rng = np.random.default_rng([height, n, d, n_classes])
    classes = semantic.dealt(2**height, n_classes)
    if shuffled:
        rng.shuffle(classes)
    return Case(
        **batch(rng, height, n, d),
        target=rng.integers(0, n_classes, size=(n, 1)).astype(np.float32),
        Theta=None,
        A=None,
        leaves=Leaves(classes),
        loss="logistic" if n_classes == 2 else "cross_entropy",
        K=1 if n_classes == 2 else n_classes,
    )


def learned_case(
    kind: str, height: int, n: int, d: int, K: int, loss: str = "squared_error"
) -> Case:
    rng = np.random.default_rng([height, n, d, K])
    n_mixed, is_linear = LEARNED[kind]
    L = 2**height
    y = rng.integers(0, K, size=(n, 1)) if loss == "cross_entropy" else rng.normal(size=(n, K))
    A = (rng.normal(size=(L, K, d)) / (2 * np.sqrt(d))).astype(np.float32) if is_linear else None
    return Case(
        **batch(rng, height, n, d),
        target=y.astype(np.float32),
        Theta=(0.7 * rng.normal(size=(L, K))).astype(np.float32),
        A=A,
        leaves=Leaves(n_mixed=n_mixed),
        loss=loss,
        K=K,
    )


def assert_close(found, expected) -> None:
    for part, a, e in zip(PARTS, found, expected, strict=True):
        if e is None:
            assert a is None, part
            continue
        scale = np.abs(e).max(initial=1e-30)
        np.testing.assert_allclose(a, e, rtol=0, atol=TOLERANCE * scale, err_msg=part)


SHAPES = [(1, 1, 1), (2, 17, 3), (4, 130, 9), (6, 300, 16), (5, 33, 40), (9, 70, 4)]


@pytest.mark.parametrize("n_classes", [2, 3, 7])
@pytest.mark.parametrize(("height", "n", "d"), SHAPES)
def test_dealt_leaves(height, n, d, n_classes):
    n_classes = min(n_classes, 2**height)
    case = dealt_case(height, n, d, n_classes)
    assert_close(case.probe().gradient(), case.reference())


def test_the_classes_of_leaves_in_any_order():
    case = dealt_case(5, 80, 6, 4, shuffled=True)
    assert_close(case.probe().gradient(), case.reference())


@each_kind
@pytest.mark.parametrize("K", [1, 3])
@pytest.mark.parametrize(("height", "n", "d"), SHAPES)
def test_learned_leaves(height, n, d, K, kind):
    case = learned_case(kind, height, n, d, K)
    assert_close(case.probe().gradient(), case.reference())


@each_kind
def test_leaves_that_learn_scores_of_classes(kind):
    case = learned_case(kind, 5, 70, 8, 4, "cross_entropy")
    assert_close(case.probe().gradient(), case.reference())


def test_the_cases_hold_ties():
    case = dealt_case(6, 300, 16, 3)
    a = dgt.scores(case.X, case.W, case.b)
    z = semantic.leaf_scores(a)
    of_first = np.sort(z[:, case.leaves.classes == 0], axis=1)
    assert (a == 0).sum() > 20
    assert (of_first[:, -1] == of_first[:, -2]).sum() > 5


# Predictions


@pytest.mark.parametrize("n_classes", [2, 5])
def test_the_scores_of_classes_prefer_the_class_of_the_hard_tree(n_classes):
    case = dealt_case(6, 300, 16, n_classes)
    leaf = dgt.leaf_of(dgt.scores(case.X, case.W, case.b))
    for soft in (False, True):
        found = case.probe().predict(soft=soft)
        expected = semantic.forward(case.X, case.W, case.b, None, None, case.leaves, case.K)
        np.testing.assert_allclose(found, expected, atol=1e-5)
    scores = np.hstack([-found, found]) if n_classes == 2 else np.asarray(found)
    chosen = case.leaves.classes[leaf]
    np.testing.assert_array_equal(scores[np.arange(300), chosen], scores.max(axis=1))


@each_kind
def test_answers_are_those_of_the_hard_tree_and_steps_mix(kind):
    case = learned_case(kind, 4, 130, 9, 2)
    tree = (case.W, case.b, case.Theta, case.A)
    hard = semantic.forward(case.X, *tree, Leaves(), 2)
    np.testing.assert_allclose(case.probe().predict(soft=False), hard, rtol=1e-5, atol=2e-6)
    mixed = semantic.forward(case.X, *tree, case.leaves, 2)
    np.testing.assert_allclose(case.probe().predict(soft=True), mixed, rtol=1e-5, atol=1e-5)
    assert (np.abs(mixed - hard).max() > 0.01) == (case.leaves.n_mixed > 1)


# Steps


@pytest.mark.parametrize("kind", ["hard", "dealt"])
def test_steps_follow_the_reference_of_rmsprop(kind):
    case = dealt_case(3, 50, 4, 3) if kind == "dealt" else learned_case(kind, 3, 50, 4, 1)
    probe = case.probe()
    probe.steps(5, learning_rate=0.01)
    names = ["W", "b", *([] if case.Theta is None else ["Theta"])]
    tree = {name: getattr(case, name).astype(np.float64) for name in names}
    optimizers = {name: RMSprop() for name in names}
    for _ in range(5):
        gradients = replace(case, **tree).reference()[1:]
        for name, gradient in zip(names, gradients, strict=False):
            tree[name] = optimizers[name].step(tree[name], gradient, 0.01)
    for found, expected in zip(probe.parameters(), tree.values(), strict=False):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_rows_of_no_weight_do_not_pull():
    case = dealt_case(4, 30, 5, 3)
    X, weight = np.tile(case.X[:10], (3, 1)), case.weight.copy()
    weight[10:] = 0
    whole = replace(case, X=X, weight=weight).probe().gradient()
    part = replace(case, X=X[:10], weight=weight[:10], target=case.target[:10]).probe().gradient()
    for a, e in zip(whole[:3], part[:3], strict=True):
        np.testing.assert_allclose(np.asarray(a) * 3, e, rtol=2e-5, atol=1e-6)


# What is refused


def options(**changed):
    return {"height": 2, "linear_leaves": False, "classes": [0, 1, 2, 0], "n_mixed": 1} | changed


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"classes": [0, 1, 2]}, "each leaf needs a class"),
        ({"classes": [0, 1, 1, 0]}, "each class needs a leaf"),
        ({"classes": [0, 1, 2, 3]}, "out of range"),
        ({"n_mixed": 2}, "not mixed"),
        ({"linear_leaves": True}, "not linear"),
        ({"height": 0}, "height"),
        ({"n_mixed": 0, "classes": []}, "n_mixed"),
    ],
)
def test_leaves_that_cannot_be_are_refused(changed, message):
    X, y = np.zeros((4, 2), np.float32), np.zeros((4, 1), np.float32)
    with pytest.raises(ValueError, match=message):
        _probes.LearnerProbe(
            "semantic",
            X,
            y,
            np.ones(4, np.float32),
            n_outputs=3,
            loss="cross_entropy",
            options=options(**changed),
        )


def test_leaves_of_one_class_need_a_loss_of_classes():
    X, y = np.zeros((4, 2), np.float32), np.zeros((4, 3), np.float32)
    with pytest.raises(ValueError, match="loss of the scores of classes"):
        _probes.LearnerProbe(
            "semantic",
            X,
            y,
            np.ones(4, np.float32),
            n_outputs=3,
            loss="squared_error",
            options=options(),
        )
