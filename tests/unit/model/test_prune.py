"""Pruning against brute force over all prunings of small trees."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_diabetes, load_wine
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import hardwood
from hardwood.errors import TableError
from hardwood.learn import Quantile
from hardwood.model import ObliqueTree
from hardwood.model.cost import remaining
from hardwood.model.edit import (
    cost_complexity_path,
    prune,
    prune_by_validation,
    prune_unreached,
    sparsify,
)
from trees import make_children, make_rows, make_tree

LABELS = np.array(["no", "perhaps", "yes"])

# --- Problems: a small random tree of each task, rows, and targets -------------------------------


def make_problem(seed, *, task="classification", n_splits=6, n=40, linear=False, whole=False):
    """Return a random tree over two numbers, rows, targets that the tree partly fits, and weights.

    ``whole`` weights are 1, and answers few: ties are many.
    """
    rng = np.random.default_rng(seed)
    k = {"classification": 3, "regression": 2, "multilabel": 2}[task]
    values = rng.normal(size=(n_splits + 1, k))
    if task == "classification" and not linear:
        values = rng.dirichlet(np.ones(k), size=n_splits + 1)
    if task == "multilabel" and not linear:
        values = rng.random(size=(n_splits + 1, k))
    tree = ObliqueTree.of(
        rng.normal(size=(n_splits, 2)).reshape(-1, 2),
        bias=rng.normal(size=n_splits) / 2,
        children=make_children(rng, n_splits),
        values=values,
        task=task,
        classes=LABELS if task == "classification" else None,
        leaf_weights=rng.normal(size=(n_splits + 1, k, 2)) if linear else None,
        schema=hardwood.table.Schema.numeric(2),
    )
    X = rng.normal(size=(n, 2))
    y = {
        "classification": lambda: LABELS[rng.integers(0, 3, n)],
        "regression": lambda: rng.normal(size=(n, k)),
        "multilabel": lambda: rng.integers(0, 2, (n, k)),
    }[task]()
    is_known = rng.random(n) < 0.6
    y[is_known] = tree.predict(X)[is_known]
    y = np.round(y) if task == "regression" and whole else y
    weight = np.ones(n) if whole else rng.random(n)
    return tree, X, y, weight


TASKS = [
    ("classification", "squared_error"),
    ("classification", "log_loss"),
    ("classification", "misclassification"),
    ("regression", "squared_error"),
    ("regression", "absolute_error"),
    ("multilabel", "squared_error"),
    ("multilabel", "log_loss"),
    ("multilabel", "misclassification"),
]


# --- The oracle: all prunings, and their risks by definition -------------------------------------


def outputs(tree, X):
    return (tree.predict if tree.task == "regression" else tree.predict_proba)(X)


def truth_of(tree, y):
    return (y[:, None] == LABELS).astype(float) if tree.task == "classification" else y


def mean_loss(tree, f, y, weight, criterion):
    """Return the losses of outputs (n, k), by the definitions of the criteria."""
    t = truth_of(tree, y)
    tiny = np.finfo(float).eps
    if tree.task == "classification":
        losses = {
            "squared_error": ((f - t) ** 2).sum(axis=1),
            "log_loss": -np.log(np.maximum((f * t).sum(axis=1), tiny)),
            "misclassification": LABELS[f.argmax(axis=1)] != y,
        }[criterion]
    elif tree.task == "regression":
        losses = {"squared_error": (f - t) ** 2, "absolute_error": np.abs(f - t)}[criterion]
        losses = losses.mean(axis=1)
    else:
        losses = {
            "squared_error": (f - t) ** 2,
            "log_loss": -np.log(np.maximum(np.where(t == 1, f, 1 - f), tiny)),
            "misclassification": (f >= 0.5) != (t == 1),
        }[criterion].mean(axis=1)
    return np.average(losses, weights=weight)


def all_prunings(tree, at=0):
    """Return every set of splits that can stay: with a split, its parent."""
    if at < 0 or tree.n_splits == 0:
        return [frozenset()]
    left, right = (all_prunings(tree, child) for child in tree.children[at].tolist())
    return [frozenset()] + [frozenset([at]) | a | b for a in left for b in right]


def pruned_outputs(tree, X, y, weight, stays, criterion):
    """Return the outputs of the pruning with the splits ``stays`` for each row."""
    f, t = outputs(tree, X).copy(), truth_of(tree, y)
    reaches = tree.decision_path(X).toarray().astype(bool)
    for i in range(tree.n_splits - 1, -1, -1):  # the topmost leaf wins
        if i not in stays:
            f[reaches[:, i]] = best_constant(t[reaches[:, i]], weight[reaches[:, i]], criterion)
    return f


def best_constant(t, weight, criterion):
    if (
        criterion == "log_loss"
    ):  # 1 % is uniform: over three classes, or over the two values of a label
        n = 3 if t.shape[1] == 3 else 2
        return 0.99 * np.average(t, axis=0, weights=weight) + 0.01 / n
    if criterion != "absolute_error":
        return np.average(t, axis=0, weights=weight)
    best = [min(column, key=lambda c, column=column: weight @ np.abs(column - c)) for column in t.T]
    return np.array(best)  # the smallest sum of distances is at one of the points


def brute_force(tree, X, y, weight, criterion):
    """Return (risk, splits that stay) of every pruning."""
    prunings = all_prunings(tree)
    risks = [
        mean_loss(tree, pruned_outputs(tree, X, y, weight, stays, criterion), y, weight, criterion)
        for stays in prunings
    ]
    return np.array(risks), prunings


def alphas_to_try(path):
    """Return alphas at each step of the path, between them, and beyond."""
    between = (path.alphas[:-1] + path.alphas[1:]) / 2
    return np.concatenate([path.alphas, between, [path.alphas[-1] * 2 + 1]])


def splits_of(tree):
    """Return splits as values, to find them in another tree."""
    return {tuple(row) for row in np.column_stack([tree.weights, tree.bias]).tolist()}


# --- Cost-complexity pruning ---------------------------------------------------------------------


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("linear", [False, True])
@pytest.mark.parametrize(("task", "criterion"), TASKS)
def test_the_pruning_of_each_alpha_is_the_smallest_optimal_one(task, criterion, linear, whole):
    for seed in range(4):
        tree, X, y, weight = make_problem(seed, task=task, linear=linear, whole=whole)
        path = cost_complexity_path(tree, X, y, sample_weight=weight, criterion=criterion)
        risks, prunings = brute_force(path.tree, X, y, weight, criterion)
        n_leaves = np.array([len(stays) + 1 for stays in prunings])
        for alpha in alphas_to_try(path).tolist():
            costs = risks + alpha * n_leaves
            pruned = path.at(alpha)
            cost = mean_loss(tree, outputs(pruned, X), y, weight, criterion)
            assert cost + alpha * pruned.n_leaves == pytest.approx(costs.min(), rel=1e-9, abs=1e-9)
            # On a step, prunings of both sides are equally good; the smaller one is taken.
            assert pruned.n_leaves == n_leaves[costs <= costs.min() + 1e-10].min()


def splits_above(tree, leaf):
    """Return the splits on the path to a leaf."""
    place = np.argwhere(tree.children == ~leaf)
    above = []
    while place.size:
        above.append(int(place[0, 0]))
        place = np.argwhere(tree.children == above[-1])
    return above


def prices(tree, stays, complexity, shares):
    """Return the complexity of a pruning, node by node."""
    numbers = (tree.weights != 0).sum(axis=1)
    ends = [] if tree.leaf_weights is None else (tree.leaf_weights != 0).sum(axis=(1, 2)).tolist()
    per_weight = {"weights": 1, "flops": 2}[complexity]  # a product and a sum
    total = sum(numbers[i] * shares[i] for i in stays)
    for leaf, n in enumerate(ends):
        node = tree.n_splits + leaf
        if all(i in stays for i in splits_above(tree, leaf)):
            total += n * shares[node]
    return per_weight * total


@pytest.mark.parametrize("linear", [False, True])
@pytest.mark.parametrize("complexity", ["weights", "flops"])
def test_other_complexities_are_minimized_too(complexity, linear):
    for seed in range(6):
        tree, X, y, weight = make_problem(seed, task="regression", linear=linear)
        tree = tree.replace(weights=tree.weights * [[1, seed % 2]])
        path = cost_complexity_path(tree, X, y, sample_weight=weight, complexity=complexity)
        reaches = path.tree.decision_path(X).toarray()
        shares = weight @ reaches / weight.sum() if complexity == "flops" else np.ones(99)
        risks, prunings = brute_force(path.tree, X, y, weight, "squared_error")
        cost = np.array([prices(path.tree, stays, complexity, shares) for stays in prunings])
        for alpha in alphas_to_try(path).tolist():
            pruned = path.at(alpha)
            spent = {
                "weights": remaining(pruned).n_weights,
                "flops": pruned.flops().mean.total,
            }[complexity]
            found = mean_loss(tree, outputs(pruned, X), y, weight, "squared_error")
            best = (risks + alpha * cost).min()
            assert found + alpha * spent == pytest.approx(best, rel=1e-9, abs=1e-9)
        assert path.complexities == pytest.approx(
            [
                remaining(t).n_weights if complexity == "weights" else t.flops().mean.total
                for t in path
            ]
        )


@settings(max_examples=40)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_splits=st.integers(0, 25),
    case=st.sampled_from(TASKS),
    linear=st.booleans(),
    whole=st.booleans(),
    complexity=st.sampled_from(["leaves", "weights", "flops"]),
)
def test_prunings_are_nested_and_agree_with_the_path(
    seed, n_splits, case, linear, whole, complexity
):
    task, criterion = case
    tree, X, y, weight = make_problem(
        seed, task=task, n_splits=n_splits, linear=linear, whole=whole
    )
    path = cost_complexity_path(
        tree, X, y, sample_weight=weight, criterion=criterion, complexity=complexity
    )
    assert path.alphas[0] == 0
    assert (np.diff(path.alphas) > 0).all()
    trees = list(path)
    assert len(trees) == len(path)
    assert trees[-1].n_leaves == 1
    for larger, smaller in zip(trees, trees[1:], strict=False):
        assert splits_of(smaller) < splits_of(larger) <= splits_of(tree)
    assert [t.n_leaves for t in trees] == path.n_leaves.tolist()
    losses = [mean_loss(tree, outputs(t, X), y, weight, criterion) for t in trees]
    assert path.risks == pytest.approx(losses, rel=1e-9, abs=1e-9)
    for t in trees:
        reached = weight @ t.decision_path(X).toarray()
        assert t.counts == pytest.approx(reached)
    if complexity == "leaves":
        assert path.complexities.tolist() == path.n_leaves.tolist()
        # At each step, R falls by exactly alpha per leaf.
        gained = np.diff(path.risks)
        assert gained == pytest.approx(-path.alphas[1:] * np.diff(path.n_leaves), abs=1e-9)


def from_scikit_learn(model, X):
    """Return an axis-aligned tree with the leaf values of scikit-learn."""
    grown = model.tree_
    splits = np.flatnonzero(grown.children_left >= 0)
    leaves = np.flatnonzero(grown.children_left < 0)
    number = np.empty(grown.node_count, dtype=int)
    number[splits], number[leaves] = np.arange(splits.size), ~np.arange(leaves.size)
    weights = np.zeros((splits.size, X.shape[1]))
    weights[np.arange(splits.size), grown.feature[splits]] = 1.0
    children = number[np.column_stack([grown.children_left, grown.children_right])[splits]]
    values = grown.value[leaves, 0, :]
    is_classifier = hasattr(model, "classes_")
    if is_classifier:
        values = values / values.sum(axis=1, keepdims=True)
    tree = ObliqueTree.of(
        weights,
        thresholds=grown.threshold[splits],  # the midpoint between two numbers: no row is there
        children=children,
        values=values,
        classes=model.classes_ if is_classifier else None,
    )
    assert (leaves[tree.apply(X)] == model.apply(X)).all()
    return tree


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "model",
    [
        DecisionTreeClassifier(
            max_depth=6
        ),  # by the Gini impurity: the squared error of frequencies
        DecisionTreeRegressor(max_depth=6, min_samples_leaf=5),
    ],
)
def test_the_path_equals_that_of_scikit_learn(model, weighted, rng):
    X, y = (load_diabetes if isinstance(model, DecisionTreeRegressor) else load_wine)(
        return_X_y=True
    )
    X = X.astype(np.float32)
    weight = rng.integers(1, 4, len(y)).astype(float) if weighted else None
    model.set_params(random_state=0)
    theirs = model.cost_complexity_pruning_path(X, y, sample_weight=weight)
    tree = from_scikit_learn(model.fit(X, y, sample_weight=weight), X)
    path = cost_complexity_path(tree, X, y, sample_weight=weight, criterion="squared_error")
    # scikit-learn lists each collapsed split; here equal links are one step.
    last = np.append(np.diff(theirs.ccp_alphas) > 1e-9 * theirs.ccp_alphas[-1], True)
    assert len(path) > 5
    assert path.alphas[1:] == pytest.approx(theirs.ccp_alphas[last][1:])
    assert path.risks == pytest.approx(theirs.impurities[last])
    for alpha in ((path.alphas[:-1] + path.alphas[1:]) / 2).tolist():
        model.set_params(ccp_alpha=alpha).fit(X, y, sample_weight=weight)
        assert path.at(alpha).n_leaves == model.get_n_leaves()
        if path.at(alpha).task == "regression":
            assert path.at(alpha).predict(X) == pytest.approx(model.predict(X))
        else:
            assert path.at(alpha).predict_proba(X) == pytest.approx(model.predict_proba(X))
    model.set_params(ccp_alpha=0.0)


def test_alpha_0_removes_a_branch_that_is_worse_than_a_leaf():
    # The best output of both sides is 1, and they predict 0 and 2.
    tree = ObliqueTree.of([[1.0]], thresholds=[0.0], values=[0.0, 2.0])
    path = cost_complexity_path(tree, [[-1.0], [1.0]], [1.0, 1.0])
    assert path.alphas.tolist() == [0.0]
    assert path[0].values.tolist() == [[1.0]]


def test_equal_links_are_collapsed_together():
    tree = ObliqueTree.of(
        [[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]], thresholds=[0, 0, 0], values=[0.1, 0.4, 1.2, 1.5]
    )
    X = np.array([[-1.0, -1.0], [-1.0, 1.0], [1.0, -1.0], [1.0, 1.0]])
    path = cost_complexity_path(tree, X, tree.predict(X))
    assert path.n_leaves.tolist() == [4, 2, 1]
    assert path.alphas == pytest.approx([0, 2 * 0.15**2 / 4, 4 * 0.55**2 / 4])


def test_a_rate_or_probability_of_zero_has_a_finite_score():
    for task, link, y in (
        ("regression", "exp", np.zeros((4, 1))),
        ("multilabel", "logistic", np.array([[0], [0], [0], [0]])),
        ("classification", "softmax", ["a", "a", "a", "a"]),
    ):
        k = 2 if task == "classification" else 1
        tree = ObliqueTree.of(
            [[1.0]],
            thresholds=[0.0],
            values=np.zeros((2, k)),
            task=task,
            classes=["a", "b"] if k == 2 else None,
            leaf_weights=np.ones((2, k, 1)),
            link=link,
        )
        X = np.array([[-2.0], [-1.0], [1.0], [2.0]])
        pruned = prune(tree, X, y, alpha=9.0, criterion="squared_error")
        assert pruned.n_leaves == 1
        expected = [[1.0, 0.0]] * 4 if k == 2 else [[0.0]] * 4
        assert outputs(pruned, X).reshape(4, k) == pytest.approx(np.array(expected), abs=1e-15)


def test_weights_count_as_repeated_rows():
    tree, X, y, _ = make_problem(3, n=30)
    times = np.random.default_rng(0).integers(0, 4, 30)
    weighted = cost_complexity_path(tree, X, y, sample_weight=times)
    repeated = cost_complexity_path(tree, np.repeat(X, times, axis=0), np.repeat(y, times))
    assert weighted.alphas == pytest.approx(repeated.alphas)
    assert weighted.n_leaves.tolist() == repeated.n_leaves.tolist()


@pytest.mark.parametrize("level", [0.5, 0.2, 0.9])
def test_new_leaves_of_quantiles_minimize_the_pinball_loss(level, rng):
    tree = ObliqueTree.of([[1.0]], thresholds=[0.0], values=[0.0, 0.0])
    X, y, weight = rng.normal(size=(31, 1)), rng.normal(size=31), rng.integers(1, 4, 31)
    value = prune(tree, X, y, alpha=99.0, sample_weight=weight, criterion=Quantile(level)).values[
        0, 0
    ]

    def pinball(f):
        return weight @ np.maximum(level * (y - f), (level - 1) * (y - f))

    assert pinball(value) == pytest.approx(min(map(pinball, y)))


def test_a_median_is_the_midpoint_of_the_middle_numbers():
    tree = ObliqueTree.of([[1.0]], thresholds=[0.0], values=[0.0, 0.0])
    y = np.array([1.0, 2.0, 4.0, 9.0])
    pruned = prune(tree, [[-1.0], [1.0], [-1.0], [1.0]], y, alpha=9.0, criterion="absolute_error")
    assert pruned.values.tolist() == [[np.median(y)]]


# --- Validation ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("task", "criterion"), TASKS)
def test_reduced_error_finds_the_best_of_all_prunings_on_the_validation_rows(task, criterion):
    for seed in range(6):
        tree, X, y, weight = make_problem(seed, task=task, n=60, linear=seed % 2 == 1)
        train, valid = np.arange(40), np.arange(40, 60)
        pruned = prune_by_validation(
            tree,
            X[train],
            y[train],
            X[valid],
            y[valid],
            sample_weight=weight[train],
            validation_weight=weight[valid],
            criterion=criterion,
            method="reduced_error",
        )
        base = prune_unreached(tree, X[train], sample_weight=weight[train])
        every = all_prunings(base)
        losses = []
        for stays in every:
            # The outputs of splits come from the training rows; the other rows walk down the tree.
            f = walk(base, X, y, weight, train, stays, criterion)[valid]
            losses.append(mean_loss(tree, f, y[valid], weight[valid], criterion))
        found = mean_loss(tree, outputs(pruned, X[valid]), y[valid], weight[valid], criterion)
        assert found == pytest.approx(min(losses))
        smallest = min(
            len(stays)
            for stays, loss in zip(every, losses, strict=True)
            if loss <= min(losses) + 1e-10
        )
        assert pruned.n_splits == smallest


def walk(tree, X, y, weight, train, stays, criterion):
    """Return the outputs of a pruning for all rows; its leaf values come from the training rows."""
    f, t = outputs(tree, X).copy(), truth_of(tree, y)
    reaches = tree.decision_path(X).toarray().astype(bool)
    for i in range(tree.n_splits - 1, -1, -1):
        if i not in stays:
            here = train[reaches[train, i]]
            f[reaches[:, i]] = best_constant(t[here], weight[here], criterion)
    return f


@pytest.mark.parametrize("one_standard_error", [False, True])
@pytest.mark.parametrize(("task", "criterion"), TASKS)
def test_the_best_of_the_path_on_the_validation_rows_is_chosen(task, criterion, one_standard_error):
    sizes = set()
    for seed in range(8):
        tree, X, y, weight = make_problem(seed, task=task, n=80, n_splits=9, whole=seed % 2 == 0)
        parts = (X[:50], y[:50], X[50:], y[50:])
        path = cost_complexity_path(*(tree, X[:50], y[:50]), criterion=criterion)
        losses = np.array(
            [mean_loss(tree, outputs(t, X[50:]), y[50:], weight[50:], criterion) for t in path]
        )
        assert path.risks_on(X[50:], y[50:], weight[50:]) == pytest.approx(losses)
        limit = losses.min() + 1e-12
        if one_standard_error:
            limit += standard_error(path[int(losses.argmin())], *parts[2:], weight[50:], criterion)
        expected = path[int(np.flatnonzero(losses <= limit)[-1])]
        options = {"criterion": criterion, "one_standard_error": one_standard_error}
        found = prune_by_validation(tree, *parts, validation_weight=weight[50:], **options)
        assert found == expected
        validation = (*parts[2:], weight[50:])
        assert prune(tree, *parts[:2], validation=validation, **options) == expected
        sizes.add(found.n_leaves)
    assert len(sizes) > 1


def standard_error(tree, X, y, weight, criterion):
    f = outputs(tree, X)
    rows = range(len(X))
    losses = np.array([mean_loss(tree, f[i : i + 1], y[i : i + 1], [1.0], criterion) for i in rows])
    mean = np.average(losses, weights=weight)
    n = weight.sum() ** 2 / (weight**2).sum()
    return np.sqrt(np.average((losses - mean) ** 2, weights=weight) / n)


def test_validation_removes_splits_on_noise(rng):
    # The target depends only on the first column; a deep tree fits the noise of the training rows.
    X = rng.normal(size=(600, 3)).astype(np.float32)
    y = (X[:, 0] > 0) ^ (rng.random(600) < 0.2)
    model = DecisionTreeClassifier(random_state=0).fit(X[:300], y[:300])
    tree = from_scikit_learn(model, X[:300])
    pruned = prune(tree, X[:300], y[:300], validation=(X[300:], y[300:]))
    assert tree.n_leaves > 50
    assert pruned.n_leaves <= 5
    new = rng.normal(size=(2000, 3)).astype(np.float32)
    errors = [np.mean(t.predict(new) != (new[:, 0] > 0)) for t in (tree, pruned)]
    assert errors[1] < 0.1 < errors[0]


# --- Nodes that no row reaches -------------------------------------------------------------------


def mixed_problem(seed, **options):
    rng = np.random.default_rng(seed)
    tree = make_tree(rng, mixed=True, **options)
    return tree, make_rows(rng, tree.schema, 30), rng.integers(0, 3, 30)


@settings(max_examples=60)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_splits=st.integers(0, 20),
    task=st.sampled_from(["classification", "regression"]),
)
def test_predictions_of_the_rows_stay_and_every_node_is_reached(seed, n_splits, task):
    tree, X, weight = mixed_problem(seed, n_splits=n_splits, task=task)
    weight[0] = 1
    pruned = prune_unreached(tree, X, sample_weight=weight)
    used = [row for row, w in zip(X, weight.tolist(), strict=True) if w]
    assert (pruned.predict(used) == tree.predict(used)).all()
    assert (pruned.counts > 0).all()
    assert pruned.counts == pytest.approx(weight @ pruned.decision_path(X).toarray())
    assert prune_unreached(pruned, X, sample_weight=weight) == pruned
    assert prune(tree, X, sample_weight=weight) == pruned
    reached = np.flatnonzero(weight @ tree.decision_path(X).toarray())
    assert pruned.n_leaves == (reached >= tree.n_splits).sum()


@settings(max_examples=60)
@given(
    seed=st.integers(0, 2**32 - 1),
    min_samples=st.integers(1, 31),
    task=st.sampled_from(["classification", "regression", "multilabel"]),
    linear=st.booleans(),
)
def test_every_remaining_node_has_min_samples(seed, min_samples, task, linear):
    tree, X, _, weight = make_problem(seed, task=task, n_splits=9, linear=linear, whole=True, n=30)
    pruned = prune_unreached(tree, X, sample_weight=weight, min_samples=min_samples)
    assert pruned.counts == pytest.approx(weight @ pruned.decision_path(X).toarray())
    assert (pruned.counts[1:] >= min_samples).all()
    # Predictions of rows that reached no node with too few rows do not change.
    path = tree.decision_path(X).toarray().astype(bool)
    too_few = path.sum(axis=0) < min_samples
    undisturbed = ~path[:, too_few].any(axis=1)
    assert outputs(pruned, X)[undisturbed] == pytest.approx(outputs(tree, X)[undisturbed])


def test_a_split_with_two_small_sides_becomes_a_leaf_with_their_mean():
    tree = ObliqueTree.of(
        [[1.0], [1.0], [1.0]], thresholds=[0.0, -2.0, 2.0], values=[1.0, 2.0, 3.0, 4.0]
    )
    X = [[-3.0], [-1.0], [-1.5], [1.0], [1.5], [3.0], [4.0]]
    pruned = prune_unreached(tree, X, min_samples=2)
    assert pruned.n_leaves == 3  # one row of the left branch was on a side that was removed
    assert pruned.predict(X).tolist() == [2, 2, 2, 3, 3, 4, 4]
    pruned = prune_unreached(tree, X, min_samples=3)
    assert pruned.predict(X) == pytest.approx([5 / 3, 5 / 3, 5 / 3, 3.5, 3.5, 3.5, 3.5])
    assert pruned.counts.tolist() == [7, 3, 4]
    alone = prune_unreached(tree, X, min_samples=8)
    assert alone.values[0, 0] == pytest.approx((1 + 2 + 2 + 3 + 3 + 4 + 4) / 7)
    alone = prune_unreached(tree, X, min_samples=99, sample_weight=[5, 0, 0, 0, 0, 0, 1])
    assert alone.values[0, 0] == pytest.approx((5 * 1 + 4) / 6)


# --- What is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"y": None}, "need y"),
        ({"y": None, "alpha": None, "criterion": "log_loss"}, "need y"),
        ({"alpha": None}, "pass either alpha"),
        ({"one_standard_error": True}, "needs validation"),
        ({"validation": ([[0.0, 0.0]], ["no"])}, "pass either alpha"),
        ({"alpha": None, "validation": [[0.0]]}, "validation must be"),
        ({"alpha": -1.0}, "at least 0"),
        ({"alpha": float("nan")}, "at least 0"),
        ({"min_samples": -1}, "min_samples"),
        ({"min_samples": float("inf")}, "min_samples"),
        ({"complexity": "depth"}, "complexity must be one of"),
        ({"criterion": "gini"}, "'misclassification', not 'gini'"),
        ({"criterion": "absolute_error"}, "classification tree must be one of"),
        ({"y": ["no"] * 39}, "X has 40 rows, y has 39"),
        ({"y": "no"}, "should be a 1d array"),
        ({"y": ["no"] * 39 + ["never"]}, "'never' at row 39"),
        ({"y": ["no"] * 39 + [None]}, r"None \(first at row 39"),
        ({"y": [["no", "no"]] * 40}, "should be a 1d array"),
        ({"sample_weight": np.ones(39)}, r"expected \(40,\)"),
        ({"sample_weight": ["1"] * 40}, "must hold numbers"),
        ({"sample_weight": np.zeros(40)}, "at least one non-zero"),
        ({"sample_weight": -np.ones(40)}, "-1.0 at row 0"),
        ({"sample_weight": np.full(40, np.nan)}, r"NaN \(first at row 0"),
        ({"sample_weight": np.full(40, 1e308)}, "adds up to inf"),
    ],
)
def test_invalid_arguments_are_refused(change, words):
    tree, X, y, _ = make_problem(0)
    with pytest.raises(ValueError, match=words):
        prune(tree, **({"X": X, "y": y, "alpha": 0.1} | change))


@pytest.mark.parametrize(
    ("task", "y", "words"),
    [
        ("regression", np.full((40, 2), np.nan), r"NaN \(first at row 0"),
        ("regression", np.zeros((40, 3)), "2 output"),
        ("regression", np.zeros(40), "2 output"),
        ("regression", [["a", "b"]] * 40, "predicts numbers, but y holds text"),
        ("regression", np.full((40, 2), 1e300), "losses is infinite"),
        ("multilabel", np.full((40, 2), 0.5), "each value must be 0 or 1"),
    ],
)
def test_targets_of_another_kind_are_refused(task, y, words):
    tree, X, _, _ = make_problem(0, task=task)
    with pytest.raises(TableError, match=words):
        cost_complexity_path(tree, X, y)


def test_leaves_that_are_not_means_need_a_criterion():
    tree, X, y, _ = make_problem(0, task="regression")
    tree = tree.replace(record={"parameters": {"loss": "absolute_error"}})
    with pytest.raises(ValueError, match="not the mean"):
        cost_complexity_path(tree, X, y)
    assert len(cost_complexity_path(tree, X, y, criterion="absolute_error"))


def test_reduced_error_has_no_standard_error():
    tree, X, y, _ = make_problem(0)
    with pytest.raises(ValueError, match="method='path'"):
        prune_by_validation(tree, X, y, X, y, method="reduced_error", one_standard_error=True)
    with pytest.raises(ValueError, match="method must be one of"):
        prune_by_validation(tree, X, y, X, y, method="best")


def test_other_parts_of_a_tree_are_kept():
    tree, X, _ = mixed_problem(5, n_splits=9)
    y = tree.predict(X)
    pruned = prune(tree, X, y, alpha=0.01)
    assert pruned.n_splits < tree.n_splits
    for name in ("schema", "task", "classes", "target_names", "record", "link"):
        assert getattr(pruned, name) == getattr(tree, name)
    assert repr(cost_complexity_path(tree, X, y)).startswith("PruningPath(")


def test_the_methods_of_a_tree_equal_the_functions():
    tree, X, y, weight = make_problem(2, task="regression", n_splits=9)
    options = {"sample_weight": weight, "complexity": "weights", "criterion": "absolute_error"}
    path = cost_complexity_path(tree, X, y, **options)
    assert tree.prune_path(X, y, **options).alphas.tolist() == path.alphas.tolist()
    alpha = float(path.alphas[1])
    assert tree.prune(X, y, alpha=alpha, **options) == path[1]
    assert tree.prune(X, min_samples=5) == prune_unreached(tree, X, min_samples=5)
    valid = (X[::2], y[::2], weight[::2])
    for rule in (False, True):
        best = path.best(*valid[:2], sample_weight=valid[2], one_standard_error=rule)
        assert tree.prune(X, y, validation=valid, one_standard_error=rule, **options) == best
    assert tree.sparsify(X, tolerance=0.1) == sparsify(tree, X, tolerance=0.1).tree


def test_labels_may_be_sparse():
    from scipy.sparse import csr_array

    X = np.arange(8.0)[:, None]
    Y = np.column_stack([X[:, 0] > 3, X[:, 0] > 5]).astype(int)
    tree = ObliqueTree.of(
        [[1.0]], thresholds=[3.5], values=[[0.1, 0.1], [0.9, 0.5]], task="multilabel"
    )
    assert tree.prune(X, csr_array(Y), alpha=0.0) == tree.prune(X, Y, alpha=0.0)
