"""Invariants of models of all shapes."""

from __future__ import annotations

import math
import re

import numpy as np
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from ensembles import ensembles
from forests import forests
from hardwood.model import ObliqueForest, ObliqueTree, TreeEnsemble, dumps, loads
from hardwood.table import Schema
from hardwood.text.numbers import format_digits
from trees import make_rows, make_tree, trees

seeds = st.integers(0, 2**32 - 1)
finite = st.floats(allow_nan=False, allow_infinity=False)
some = settings(max_examples=50)


@some
@given(trees(), seeds)
def test_a_saved_or_exported_tree_is_the_same(tree: ObliqueTree, seed: int) -> None:
    rows = make_rows(seed, tree.schema, 5)
    for again in (loads(dumps(tree)), ObliqueTree.from_json(tree.to_json())):
        assert again == tree
        np.testing.assert_array_equal(again.predict(rows), tree.predict(rows))
    assert dumps(loads(dumps(tree))) == dumps(tree)


@some
@given(trees(), seeds)
def test_a_prediction_does_not_depend_on_other_rows(tree: ObliqueTree, seed: int) -> None:
    rows = make_rows(seed, tree.schema, 20)
    together = tree.apply(rows)
    np.testing.assert_array_equal(tree.apply(rows, n_jobs=2), together)
    assert [int(tree.apply([row])[0]) for row in rows] == together.tolist()
    answers = tree.predict(rows)
    for row, answer in zip(rows, answers, strict=True):
        np.testing.assert_array_equal(tree.predict_one(row), answer)


@some
@given(trees(), seeds)
def test_the_path_ends_in_the_leaf_and_follows_the_children(tree: ObliqueTree, seed: int) -> None:
    rows = make_rows(seed, tree.schema, 10)
    path = tree.decision_path(rows)
    for i, leaf in enumerate(tree.apply(rows).tolist()):
        nodes = path.indices[path.indptr[i] : path.indptr[i + 1]].tolist()
        assert nodes[0] == (0 if tree.n_splits else tree.n_splits)
        assert nodes[-1] == tree.n_splits + leaf
        assert len(nodes) == tree.node_depths[nodes[-1]] + 1
        for parent, child in zip(nodes, nodes[1:], strict=False):
            below = [c if c >= 0 else tree.n_splits + ~c for c in tree.children[parent].tolist()]
            assert child in below


@some
@given(trees(), seeds, st.integers(0, 2))
def test_a_perfect_tree_has_the_same_predictions(tree: ObliqueTree, seed: int, more: int) -> None:
    assume(tree.depth <= 8)
    perfect = tree.to_perfect(tree.depth + more)
    assert perfect.n_splits == 2 ** (tree.depth + more) - 1
    assert (perfect.node_depths[perfect.n_splits :] == tree.depth + more).all()
    rows = make_rows(seed, tree.schema, 20)
    np.testing.assert_array_equal(perfect.predict(rows), tree.predict(rows))
    if tree.counts is not None and perfect.counts is not None:
        _check_conservation(perfect)
        assert perfect.counts[perfect.n_splits :].sum() == tree.counts[tree.n_splits :].sum()


def _with_counts_of(tree: ObliqueTree, rows: list[list[object]]) -> ObliqueTree:
    counts = np.asarray(tree.decision_path(rows).sum(axis=0)).ravel()
    return tree.replace(counts=counts)


def _check_conservation(tree: ObliqueTree) -> None:
    assert tree.counts is not None
    nodes = np.where(tree.children >= 0, tree.children, tree.n_splits + ~tree.children)
    np.testing.assert_array_equal(tree.counts[nodes].sum(axis=1), tree.counts[: tree.n_splits])


@some
@given(trees(), seeds, st.integers(1, 30))
def test_simplifying_keeps_predictions_of_training_rows(
    tree: ObliqueTree, seed: int, n: int
) -> None:
    rows = make_rows(seed, tree.schema, n)
    tree = _with_counts_of(tree, rows)
    small = tree.simplify()
    np.testing.assert_array_equal(small.predict(rows), tree.predict(rows))
    assert small.counts is not None
    assert (small.counts > 0).all()  # nothing unreached is left
    assert _with_counts_of(small, rows).counts.tolist() == small.counts.tolist()
    assert small.simplify() == small
    assert small.n_nodes <= tree.n_nodes


@some
@given(trees(), seeds, seeds)
def test_simplifying_without_counts_keeps_all_predictions(
    tree: ObliqueTree, seed: int, values_seed: int
) -> None:
    # Few different values, and some splits without weights, so that there is something to do.
    rng = np.random.default_rng(values_seed)
    weights = tree.weights * (rng.random((tree.n_splits, 1)) < 0.7)
    which, weighed = rng.integers(min(2, tree.n_leaves), size=(2, tree.n_leaves))
    A = None if tree.leaf_weights is None else tree.leaf_weights[weighed]
    tree = tree.replace(counts=None, values=tree.values[which], leaf_weights=A, weights=weights)
    rows = make_rows(seed, tree.schema, 30)
    small = tree.simplify()
    np.testing.assert_array_equal(small.predict(rows), tree.predict(rows))
    assert (small.weights != 0).any(axis=1).all()
    both_leaves = (small.children < 0).all(axis=1)
    for left, right in ~small.children[both_leaves]:
        assert not (
            np.array_equal(small.values[left], small.values[right])
            and (A is None or np.array_equal(*small.leaf_weights[[left, right]]))
        )


@some
@given(seeds, seeds)
def test_permuting_features_permutes_weights(seed: int, order_seed: int) -> None:
    rng = np.random.default_rng(seed)
    weights, bias = rng.normal(size=(7, 5)).round(2), rng.normal(size=7)
    order = np.random.default_rng(order_seed).permutation(5)
    X = rng.normal(size=(50, 5)).round(2)
    a = ObliqueTree.of(weights, bias=bias, values=np.arange(8))
    b = ObliqueTree.of(weights[:, order], bias=bias, values=np.arange(8))
    far = (np.abs(X @ weights.T + bias) > 1e-5).all(axis=1)
    np.testing.assert_array_equal(a.apply(X[far]), b.apply(X[far][:, order]))


@some
@given(trees())
def test_text_never_fails_and_shows_every_leaf(tree: ObliqueTree) -> None:
    text = tree.to_text(max_terms=2)
    assert text.count("else:") == tree.n_splits
    answers = {line.strip("| ") for line in text.splitlines()}
    assert len(answers) > 1
    for i in range(tree.n_splits):
        assert tree.split(i).condition in tree.to_text()


# Forests and soft ensembles


@some
@given(forests() | ensembles(), seeds)
def test_a_saved_or_exported_model_is_the_same(
    model: ObliqueForest | TreeEnsemble, seed: int
) -> None:
    rows = make_rows(seed, model.schema, 5)
    for again in (loads(dumps(model)), type(model).from_json(model.to_json())):
        assert again == model
        np.testing.assert_array_equal(again.predict(rows), model.predict(rows))


@some
@given(ensembles(), seeds)
def test_a_soft_prediction_lies_between_those_of_leaves(ensemble: TreeEnsemble, seed: int) -> None:
    """Probabilities of the leaves add up to 1, so that no score exceeds the largest."""
    rows = make_rows(seed, ensemble.schema, 20)
    identity = _of_scores(ensemble)
    scores = identity.predict(rows).reshape(20, -1)
    slack = 1e-5 * np.abs(ensemble.values).sum()
    assert (scores <= ensemble.values.max(axis=1).sum(axis=0) + slack).all()
    assert (scores >= ensemble.values.min(axis=1).sum(axis=0) - slack).all()
    ones = identity.replace(values=np.ones_like(ensemble.values))
    np.testing.assert_allclose(ones.predict(rows), ensemble.n_trees, rtol=1e-5)


@some
@given(ensembles(), seeds, seeds)
def test_the_order_of_soft_trees_does_not_matter(
    ensemble: TreeEnsemble, seed: int, order_seed: int
) -> None:
    rows = make_rows(seed, ensemble.schema, 10)
    order = np.random.default_rng(order_seed).permutation(ensemble.n_trees)
    plain = _of_scores(ensemble)
    other = plain.replace(
        weights=plain.weights[order], bias=plain.bias[order], values=plain.values[order]
    )
    np.testing.assert_allclose(other.predict(rows), plain.predict(rows), rtol=1e-9, atol=1e-12)


@some
@given(ensembles(), seeds)
def test_scaling_the_splits_with_gamma_changes_nothing(ensemble: TreeEnsemble, seed: int) -> None:
    """Only the score divided by gamma matters; exact for a power of two."""
    rows = make_rows(seed, ensemble.schema, 10)
    scaled = ensemble.replace(
        weights=ensemble.weights * 8, bias=ensemble.bias * 8, gamma=ensemble.gamma * 8
    )
    np.testing.assert_array_equal(scaled.predict(rows), ensemble.predict(rows))
    np.testing.assert_array_equal(scaled.reachable_leaves(rows), ensemble.reachable_leaves(rows))


@some
@given(ensembles(), seeds)
def test_a_narrower_band_reaches_no_more_leaves(ensemble: TreeEnsemble, seed: int) -> None:
    rows = make_rows(seed, ensemble.schema, 20)
    wide = ensemble.replace(gamma=4 * ensemble.gamma)
    assert (ensemble.reachable_leaves(rows) <= wide.reachable_leaves(rows)).all()


def _of_scores(ensemble: TreeEnsemble) -> TreeEnsemble:
    """Return the ensemble with scores as its outputs."""
    return ensemble.replace(
        task="regression", link="identity", classes=None, target_names=None, counts=None
    )


TERM = re.compile(r"(?:([+-]) )?(?:([0-9.e-]+)\*)?(x\d+)")


def holds(condition: str, x: dict[str, float]) -> bool:
    """Evaluate a printed condition on numbers."""
    left, relation, right = re.split(r" (>=|<=) ", condition)
    total = math.fsum(
        (-1 if sign == "-" else 1) * float(weight or 1) * x[name]
        for sign, weight, name in TERM.findall(left)
    )
    return total >= float(right) if relation == ">=" else total <= float(right)


@given(
    st.lists(st.floats(-1e3, 1e3).filter(lambda w: abs(w) > 1e-3), min_size=1, max_size=4),
    st.floats(-100, 100),
    st.lists(st.floats(-1e6, 1e6), min_size=4, max_size=4),
    seeds,
)
@settings(max_examples=200)
def test_a_printed_condition_agrees_with_the_tree(
    weights: list[float], bias: float, centers: list[float], seed: int
) -> None:
    """A rounded condition agrees with the tree, except for rows close to the split."""
    d = len(weights)
    content = Schema.numeric(d).to_dict()
    rng = np.random.default_rng(seed)
    for feature, center in zip(content["features"], centers, strict=False):
        feature["center"], feature["scale"] = center, float(np.exp(rng.normal()))
    schema = Schema.from_dict(content)
    tree = ObliqueTree.of([weights], bias=[bias], values=[0, 1], schema=schema)
    X = schema.column_center + schema.column_scale * rng.normal(size=(20, d))
    scores = (X - schema.column_center) @ np.array(weights) + bias
    spread = np.linalg.norm(np.array(weights) * schema.column_scale)
    for x, score in zip(X, scores, strict=True):
        if abs(score) < 0.05 * spread:  # three digits of up to four weights, rows within 3 sigma
            continue
        row = dict(zip(schema.names, x.tolist(), strict=True))
        assert holds(tree.split(0).condition, row) == (score >= 0)
        assert holds(tree.split(0).describe(digits=None), row) == (score >= 0)
        assert bool(tree.predict_one(x)) == (score >= 0)


@given(finite, st.integers(1, 17), finite.map(abs))
@example(9.9999, 3, 0.0)
@example(1.7976931348623157e308, 3, 1.0)
def test_a_printed_number_is_close_to_the_number(value: float, digits: int, spread: float) -> None:
    read = float(format_digits(value, digits, spread=spread))
    if math.isfinite(read):  # the largest floats round up to infinity
        assert abs(read - value) <= 0.5000001 * abs(value) * 10.0 ** (1 - digits) + 5e-324
        if spread > 0:
            room = 5.00001 * spread * 10.0 ** (-digits)
            assert abs(read - value) <= max(room, abs(value) * 1e-15) + 5e-324
    assert float(format_digits(value, None)) == value


@some
@given(seeds, finite.filter(bool), finite)
def test_conditions_of_extreme_splits_never_fail(seed: int, size: float, bias: float) -> None:
    rng = np.random.default_rng(seed)
    weights = rng.normal(size=(1, 5)) * 10.0 ** rng.integers(-300, 300, size=(1, 5))
    weights[0, 0] = size
    tree = ObliqueTree.of(weights, bias=[bias], values=[-size, size])
    for options in ({}, {"max_terms": None}, {"digits": None}, {"max_terms": 1, "digits": 1}):
        assert "if " in tree.to_text(**options)
    assert tree.predict(np.ones((1, 5))).shape == (1,)
    assert make_tree(seed).to_text()
