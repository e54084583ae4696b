"""Non-greedy kernels against the NumPy reference: leaves, bounds, moves of splits, whole steps."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardwood import _native
from hardwood.learn.non_greedy import NonGreedy, StartTree, left_to_right
from hardwood.learn.training import Training
from hardwood.table import Schema
from reference import non_greedy as reference
from reference.probes import augment

LOSSES = {
    "cross_entropy": 0.0,
    "hinge": 0.0,
    "squared_codes": 0.0,
    "logistic": 0.0,
    "squared_error": 0.0,
    "absolute_error": 0.0,
    "huber": 0.7,
    "quantile": 0.2,
    "poisson": 0.0,
}
INFERENCES = ("exhaustive", "exact", "fast")


def random_children(rng: np.random.Generator, n_splits: int) -> np.ndarray:
    """Return a random topology by splitting leaves; leaves are numbered from left to right."""
    children = np.full((n_splits, 2), -1)
    for split in range(1, n_splits):
        parent, side = rng.choice(np.argwhere(children[:split] < 0))
        children[parent, side] = split
    leaf = 0
    stack = [0] if n_splits else []
    while stack:
        node = stack.pop()
        if node < 0:
            parent, side = divmod(-1 - node, 2)
            children[parent, side] = -1 - leaf
            leaf += 1
            continue
        for side in (1, 0):
            child = children[node, side]
            stack.append(child if child >= 0 else -1 - (2 * node + side))
    return children.astype(np.int32)


def random_tree(rng, n_splits, n_columns, n_outputs, scale=1.0) -> reference.Tree:
    return reference.Tree(
        (scale * rng.normal(size=(n_splits, n_columns))).astype(np.float32),
        (scale * rng.normal(size=n_splits)).astype(np.float32),
        random_children(rng, n_splits),
        (2 * rng.normal(size=(n_splits + 1, n_outputs))).astype(np.float32),
    )


def random_targets(rng, loss, n, n_outputs) -> np.ndarray:
    if loss in ("cross_entropy", "hinge", "squared_codes"):
        return rng.integers(n_outputs, size=(n, 1)).astype(np.float32)
    if loss == "logistic":
        return rng.integers(2, size=(n, n_outputs)).astype(np.float32)
    if loss == "poisson":
        return rng.poisson(2.0, size=(n, n_outputs)).astype(np.float32)
    return rng.normal(size=(n, n_outputs)).astype(np.float32)


def augmented(tree, X, Y, inference, loss, assigned=None):
    """Return the result of the engine."""
    return augment(
        X, Y, tree.children, (tree.W, tree.b, tree.theta), inference, loss, LOSSES[loss], assigned
    )


CASES = st.fixed_dictionaries(
    {
        "seed": st.integers(0, 2**32 - 1),
        "n_splits": st.integers(0, 12),
        "n_columns": st.integers(1, 40),
        "n_outputs": st.integers(1, 4),
        "scale": st.sampled_from([0.05, 0.3, 1.0]),
        "loss": st.sampled_from(list(LOSSES)),
        "is_assigned": st.booleans(),
    }
)


@given(CASES)
def test_inference_finds_what_the_definitions_say(case):
    rng = np.random.default_rng(case["seed"])
    tree = random_tree(rng, case["n_splits"], case["n_columns"], case["n_outputs"], case["scale"])
    X = rng.normal(size=(4, case["n_columns"])).astype(np.float32)
    Y = random_targets(rng, case["loss"], 4, case["n_outputs"])
    assigned = None
    if case["is_assigned"]:
        assigned = rng.integers(case["n_splits"] + 1, size=4).astype(np.int32)
    for inference in INFERENCES:
        found = augmented(tree, X, Y, inference, case["loss"], assigned)
        for i, (x, y) in enumerate(zip(X, Y, strict=True)):
            expected = reference.augment(
                tree,
                x,
                y,
                inference=inference,
                loss=case["loss"],
                parameter=LOSSES[case["loss"]],
                assigned=None if assigned is None else int(assigned[i]),
            )
            assert found["natural"][i] == expected.natural
            assert found["loss"][i] == pytest.approx(expected.loss, rel=1e-4, abs=1e-4)
            assert found["bound"][i] == pytest.approx(expected.bound, rel=1e-4, abs=1e-4)
            if found["chosen"][i] == expected.chosen:  # else the two leaves are as good as equal
                np.testing.assert_array_equal(found["moves"][i], expected.moves)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("n_splits", [1, 15, 200])
def test_branch_and_bound_is_the_exhaustive_search_to_the_bit(loss, n_splits):
    rng = np.random.default_rng(n_splits)
    for scale in (0.03, 0.3, 3.0):
        tree = random_tree(rng, n_splits, 7, 3, scale)
        X = rng.normal(size=(300, 7)).astype(np.float32)
        Y = random_targets(rng, loss, 300, 3)
        exact, all_leaves = (augmented(tree, X, Y, way, loss) for way in ("exact", "exhaustive"))
        for part in ("natural", "chosen", "loss", "bound", "moves"):
            np.testing.assert_array_equal(exact[part], all_leaves[part])
        assert (exact["n_scored"] <= n_splits).all()
        assert (all_leaves["n_scored"] == n_splits).all()
    if n_splits == 200:
        assert exact["n_scored"].mean() < 40  # at the largest scale few leaves can compete


def test_equal_leaves_go_to_the_one_furthest_left():
    children = np.array([[1, 2], [-1, -2], [-3, -4]], dtype=np.int32)
    tree = reference.Tree(
        np.zeros((3, 2), np.float32), np.zeros(3, np.float32), children, np.ones((4, 2), np.float32)
    )
    X, Y = np.ones((1, 2), np.float32), np.zeros((1, 1), np.float32)
    for inference, first in (("exhaustive", 0), ("exact", 0), ("fast", 1)):
        assert augmented(tree, X, Y, inference, "cross_entropy")["chosen"][0] == first
        expected = reference.augment(tree, X[0], Y[0], inference=inference, loss="cross_entropy")
        assert expected.chosen == first


@pytest.mark.parametrize(
    "children",
    [
        [[1, -1], [0, -2]],  # a cycle
        [[-1, -1]],  # a leaf twice
        [[-2, -1]],  # leaves from right to left
        [[1, -3], [-1, -2], [-4, -5]],  # a split that nobody reaches
        [[7, -1]],
        [[-9, -1]],
    ],
)
def test_what_is_no_tree_is_refused(children):
    children = np.array(children, dtype=np.int32)
    m = len(children)
    parts = (np.zeros((m, 2)), np.zeros(m), np.zeros((m + 1, 2)))
    with pytest.raises(ValueError, match="children must be a tree"):
        augment(
            np.zeros((1, 2), np.float32),
            np.zeros((1, 1), np.float32),
            children,
            tuple(part.astype(np.float32) for part in parts),
            "exact",
            "cross_entropy",
            0.0,
            None,
        )


def test_leaves_are_numbered_from_left_to_right():
    children = np.array([[2, 1], [-1, -3], [-4, -2]], dtype=np.int32)
    scores = np.arange(4.0)[:, None]
    tree = left_to_right(StartTree(np.zeros((3, 1)), np.zeros(3), children, scores))
    np.testing.assert_array_equal(tree.children, [[2, 1], [-3, -4], [-1, -2]])
    np.testing.assert_array_equal(tree.scores[:, 0], [3, 1, 0, 2])
    assert children[0, 0] == 2
    assert children[1, 0] == -1


N, D = 40, 9


def learned(tree, X, Y, weight, loss, *, nu, rate, **options):
    answer = searched(tree, X, Y, weight, loss, nu=[nu], rate=[rate], **options)
    return answer["trees"][0], answer["history"][0]


def searched(tree, X, Y, weight, loss, *, passes, nu, rate, n_threads=1, **options):
    """Full batches, so that the order of rows does not matter."""
    config = NonGreedy(
        batch_size=N,
        max_epochs=passes,
        early_stopping=False,
        training=Training(optimizer="sgd", schedule="constant", clip_norm=None),
        **options,
    )

    class Parts:
        train = np.arange(N)
        valid = ()
        schema = Schema.numeric(D)

    return _native.fit(
        "non_greedy",
        Schema.numeric(D).encoder,
        X,
        Y,
        weight,
        np.arange(N),
        np.arange(0),
        n_outputs=tree.theta.shape[1],
        loss=loss,
        loss_parameter=LOSSES[loss],
        custom=None,
        start=(tree.W, tree.b, tree.theta),
        first_run=0,
        n_runs=len(nu),
        n_draws=None,
        keep_all=False,
        seed=0,
        n_threads=n_threads,
        callback=None,
        options={
            **config.engine_options(Parts),
            "children": tree.children,
            "nu": nu,
            "learning_rate": rate,
        },
    )


OPTIONS = {
    "plain": {"momentum": 0.0},
    "momentum": {"momentum": 0.8},
    "l1": {"momentum": 0.5, "l1": 0.05},
    "few features": {"momentum": 0.5, "max_features_per_split": 3},
    "stable": {"momentum": 0.5, "solver": "ssgd"},
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("inference", ["exact", "fast"])
@pytest.mark.parametrize("loss", ["cross_entropy", "squared_error", "logistic"])
def test_steps_are_those_of_the_reference(loss, inference, options):
    rng = np.random.default_rng(1)
    tree = random_tree(rng, 9, D, 3, 0.4)
    X = rng.normal(size=(N, D)).astype(np.float32)
    Y = random_targets(rng, loss, N, 3)
    weight = rng.uniform(0.2, 2.0, N).astype(np.float32)
    passes, nu, rate = 3, 1.5, 0.2
    got, history = learned(
        tree,
        X,
        Y,
        weight,
        loss,
        passes=passes,
        nu=nu,
        rate=rate,
        inference=inference,
        **{"solver": "sgd"} | options,
    )
    given = dict(options)
    is_stable = given.pop("solver", "sgd") == "ssgd"
    max_features = given.pop("max_features_per_split", 0)
    assigned = None
    if is_stable:
        assigned = np.array([tree.leaf(reference.decisions(tree.scores(x))) for x in X])
    expected = start_within(tree, nu, max_features)
    velocity = reference.Velocity.zero(expected)
    for _ in range(passes):
        expected, velocity = reference.step(
            expected,
            velocity,
            X.astype(np.float64),
            Y.astype(np.float64),
            weight,
            inference=inference,
            loss=loss,
            learning_rate=rate,
            nu=nu,
            max_features=max_features,
            assigned=assigned,
            **given,
        )
    np.testing.assert_allclose(got["weights"], expected.W, rtol=2e-4, atol=2e-5)
    np.testing.assert_allclose(got["bias"], expected.b, rtol=2e-4, atol=2e-5)
    np.testing.assert_allclose(got["scores"], expected.theta, rtol=2e-4, atol=2e-5)
    assert ((got["weights"] ** 2).sum(axis=1) + got["bias"] ** 2 <= nu * (1 + 1e-5)).all()
    for _, _, train_loss, _, _, _, bound in history:
        assert train_loss <= bound * (1 + 1e-6)


def test_rows_are_given_new_leaves_when_the_bound_stops_falling():
    """SSGD over many epochs; an epoch is compared with the previous one of the same assignment."""
    rng = np.random.default_rng(6)
    tree = random_tree(rng, 9, D, 3, 0.4)
    X = rng.normal(size=(N, D)).astype(np.float32)
    Y = random_targets(rng, "cross_entropy", N, 3)
    weight = rng.uniform(0.2, 2.0, N).astype(np.float32)
    options = {"inference": "exact", "momentum": 0.5}
    passes, nu, rate = 40, 1.5, 0.6
    got, _ = learned(
        tree,
        X,
        Y,
        weight,
        "cross_entropy",
        passes=passes,
        nu=nu,
        rate=rate,
        solver="ssgd",
        **options,
    )
    expected = start_within(tree, nu, 0)
    velocity, before, last, assigned, n_times = reference.Velocity.zero(expected), 0.0, 0.0, None, 0
    for _ in range(passes):
        is_over = before > 0 and last > 0.997 * before
        before = 0.0 if is_over else last
        if assigned is None or is_over:
            assigned = np.array([expected.leaf(reference.decisions(expected.scores(x))) for x in X])
            n_times += 1
        rows = [
            reference.augment(
                expected, x, y, inference="exact", loss="cross_entropy", assigned=int(a)
            )
            for x, y, a in zip(X, Y, assigned, strict=True)
        ]
        last = float(weight @ [row.bound for row in rows])
        expected, velocity = reference.step(
            expected,
            velocity,
            X.astype(np.float64),
            Y.astype(np.float64),
            weight,
            loss="cross_entropy",
            learning_rate=rate,
            nu=nu,
            assigned=assigned,
            **options,
        )
    assert 3 <= n_times < passes
    np.testing.assert_allclose(got["weights"], expected.W, rtol=2e-3, atol=2e-4)
    np.testing.assert_allclose(got["scores"], expected.theta, rtol=2e-3, atol=2e-4)


@pytest.mark.parametrize("loss", ["cross_entropy", "squared_error", "logistic"])
def test_a_tree_learned_by_branch_and_bound_is_that_of_asking_every_leaf(loss):
    """Bit for bit, after enough steps that the losses of leaves have risen."""
    rng = np.random.default_rng(4)
    tree = random_tree(rng, 30, D, 3, 0.4)
    tree = dataclasses.replace(tree, theta=0.1 * tree.theta)
    X = rng.normal(size=(N, D)).astype(np.float32)
    Y = random_targets(rng, loss, N, 3)
    exact, exhaustive = (
        learned(
            tree,
            X,
            Y,
            np.ones(N, np.float32),
            loss,
            passes=60,
            nu=1.5,
            rate=0.3,
            inference=inference,
            solver="sgd",
        )[0]
        for inference in ("exact", "exhaustive")
    )
    for part in ("weights", "bias", "scores"):
        np.testing.assert_array_equal(exact[part], exhaustive[part])


def test_of_features_with_equal_weights_the_first_stays():
    rng = np.random.default_rng(5)
    tree = random_tree(rng, 9, D, 3, 0.4)
    X = rng.normal(size=(N, D)).astype(np.float32)
    for columns in (tree.W, X):
        columns[:, 1::2] = columns[:, 0 : D - 1 : 2]
    weights = learned(
        tree,
        X,
        random_targets(rng, "cross_entropy", N, 3),
        np.ones(N, np.float32),
        "cross_entropy",
        passes=3,
        nu=1.5,
        rate=0.2,
        max_features_per_split=3,
    )[0]["weights"]
    first, second = weights[:, 0 : D - 1 : 2] != 0, weights[:, 1::2] != 0
    assert ((weights != 0).sum(axis=1) <= 3).all()
    assert first[second].all()
    assert (first & ~second).any()


def test_runs_of_a_search_are_those_of_each_nu_and_rate_alone():
    rng = np.random.default_rng(7)
    tree = random_tree(rng, 9, D, 3, 0.4)
    X = rng.normal(size=(N, D)).astype(np.float32)
    given = (tree, X, random_targets(rng, "cross_entropy", N, 3), np.ones(N, np.float32))
    settings = [(0.3, 0.1), (0.3, 0.3), (3.0, 0.1)]
    nu, rate = (list(each) for each in zip(*settings, strict=True))
    found = searched(*given, "cross_entropy", passes=5, nu=nu, rate=rate, n_threads=2)["history"]
    for run, (nu, rate) in enumerate(settings):
        alone = learned(*given, "cross_entropy", passes=5, nu=nu, rate=rate)[1]
        for epoch, other in zip(found[run], alone, strict=True):
            assert (epoch[2], epoch[-1]) == pytest.approx((other[2], other[-1]), rel=1e-5)
    assert len({run[-1][-1] for run in found}) == len(settings)


def start_within(tree, nu, max_features):
    """Return a start with its splits projected to the ball."""
    W, b = tree.W.astype(np.float64), tree.b.astype(np.float64)
    for i in range(len(b)):
        if max_features:
            W[i, np.argsort(-np.abs(W[i]), kind="stable")[max_features:]] = 0.0
        W[i], b[i] = reference.project(W[i], b[i], nu)
    return reference.Tree(W, b, tree.children, tree.theta.astype(np.float64))


def test_the_number_of_threads_changes_nothing():
    rng = np.random.default_rng(2)
    wide = 4000  # so much work that threads share it
    tree = random_tree(rng, 30, wide, 3, 0.02)
    X = rng.normal(size=(N, wide)).astype(np.float32)
    Y = random_targets(rng, "cross_entropy", N, 3)
    schema = Schema.numeric(wide)

    class Parts:
        train = np.arange(N)
        valid = ()

    Parts.schema = schema
    config = NonGreedy(batch_size=N, max_epochs=3, early_stopping=False)
    trees = [
        _native.fit(
            "non_greedy",
            schema.encoder,
            X,
            Y,
            np.ones(N, np.float32),
            np.arange(N),
            np.arange(0),
            n_outputs=3,
            loss="cross_entropy",
            loss_parameter=0.0,
            custom=None,
            start=(tree.W, tree.b, tree.theta),
            first_run=0,
            n_runs=1,
            n_draws=None,
            keep_all=False,
            seed=0,
            n_threads=n_threads,
            callback=None,
            options={
                **config.engine_options(Parts),
                "children": tree.children,
                "nu": [4.0],
                "learning_rate": 0.1,
            },
        )["trees"][0]
        for n_threads in (1, 3)
    ]
    assert not np.array_equal(trees[0]["weights"], tree.W)
    for part in ("weights", "bias", "scores"):
        np.testing.assert_array_equal(trees[0][part], trees[1][part])
