"""Dendrogram purity against its definition, pair by pair."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.cluster.hierarchy import linkage
from sklearn.cluster import AgglomerativeClustering

from hardwood.report.purity import dendrogram_purity, sampled_dendrogram_purity


def random_merges(rng, n_leaves):
    live, merges = list(range(n_leaves)), []
    while len(live) > 1:
        pair = [live.pop(int(rng.integers(len(live)))) for _ in range(2)]
        merges.append(pair)
        live.append(n_leaves + len(merges) - 1)
    return np.array(merges, dtype=np.int64).reshape(-1, 2)


def purity_by_definition(y, merges, leaves):
    """Each pair of rows of one class: the smallest node that holds both, its share of the class."""
    n_leaves = len(merges) + 1
    members = [{leaf} for leaf in range(n_leaves)]
    for left, right in merges.tolist():
        members.append(members[left] | members[right])
    shares = []
    for i in range(len(y)):
        for j in range(i):
            if y[i] != y[j]:
                continue
            both = [node for node in members if leaves[i] in node and leaves[j] in node]
            smallest = min(both, key=len)
            shares.append(np.mean(y[np.isin(leaves, list(smallest))] == y[i]))
    return np.mean(shares)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=60)
def test_purity_equals_its_definition(seed):
    rng = np.random.default_rng(seed)
    n_leaves, n = int(rng.integers(1, 9)), int(rng.integers(5, 25))
    merges, y = random_merges(rng, n_leaves), rng.integers(0, 4, n)  # 5 rows: two share a class
    leaves = rng.integers(0, n_leaves, n)
    expected = purity_by_definition(y, merges, leaves)
    assert dendrogram_purity(y, merges, leaves) == pytest.approx(expected, abs=1e-12)
    sampled = sampled_dendrogram_purity(y, merges, leaves, n_pairs=2000, random_state=seed)
    # Where nearly all pairs are equally pure, few draws see any spread: hence the second term.
    assert abs(sampled.value - expected) <= 6 * sampled.standard_error + 0.02


def test_classes_that_are_subtrees_are_pure_and_mixed_ones_are_not():
    merges = [[0, 1], [2, 3], [4, 5]]
    assert dendrogram_purity(["a", "a", "b", "b"], merges) == 1.0
    assert dendrogram_purity(["a", "b", "a", "b"], merges) == 0.5
    # One class in one leaf with others, by hand: leaf 0 holds a a b, leaf 1 holds a.
    value = dendrogram_purity(["a", "a", "b", "a"], [[0, 1]], leaves=[0, 0, 0, 1])
    assert value == pytest.approx((2 / 3 + 3 / 4 + 3 / 4) / 3)


def test_a_row_may_be_a_pair_with_itself_as_in_the_papers_code():
    rng = np.random.default_rng(0)
    merges, y, leaves = random_merges(rng, 6), rng.integers(0, 3, 40), rng.integers(0, 6, 40)
    # All ordered pairs: those of different rows twice, and each row with itself at its leaf.
    apart = dendrogram_purity(y, merges, leaves)
    n_apart = sum(n * (n - 1) for n in np.bincount(y).tolist())
    at_leaf = [np.mean(y[leaves == leaf] == k) for leaf, k in zip(leaves, y, strict=True)]
    expected = (n_apart * apart + sum(at_leaf)) / (n_apart + len(y))
    assert dendrogram_purity(y, merges, leaves, self_pairs=True) == pytest.approx(expected)
    with pytest.raises(ValueError, match="self_pairs must be True or False"):
        dendrogram_purity(y, merges, leaves, self_pairs=2)


def test_a_linkage_matrix_and_an_estimator_give_the_same():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), rng.integers(0, 3, 60)
    clustering = AgglomerativeClustering(linkage="ward", n_clusters=2).fit(X)
    by_scipy = dendrogram_purity(y, linkage(X, "ward"))
    assert dendrogram_purity(y, clustering) == pytest.approx(by_scipy)
    assert dendrogram_purity(y, clustering.children_) == pytest.approx(by_scipy)


def test_a_chain_of_many_leaves_takes_no_recursion():
    n = 20_000
    chain = np.column_stack([np.append(0, n + np.arange(n - 2)), np.arange(1, n)])
    y = np.arange(n) % n // 2  # pairs of neighbors: their share at leaf k of the chain is 2 / k
    expected = np.mean(2 / np.arange(2, n + 1, 2))
    assert dendrogram_purity(y, chain) == pytest.approx(expected)


def test_the_error_of_a_sample_is_right_and_the_seed_fixes_it():
    rng = np.random.default_rng(3)
    merges, y = random_merges(rng, 200), rng.integers(0, 5, 2000)
    leaves = rng.integers(0, 200, 2000)
    exact = dendrogram_purity(y, merges, leaves)
    draws = [
        sampled_dendrogram_purity(y, merges, leaves, n_pairs=400, random_state=k) for k in range(60)
    ]
    errors = np.array([(float(d) - exact) / d.standard_error for d in draws])
    assert 0.7 < errors.std() < 1.3
    assert abs(errors.mean()) < 0.5
    assert draws[0] == sampled_dendrogram_purity(y, merges, leaves, n_pairs=400, random_state=0)
    assert "400 pairs" in str(draws[0])


@pytest.mark.parametrize(
    ("y", "hierarchy", "leaves", "words"),
    [
        (["a", "a"], [[0, 1, 2]], None, r"\(n_leaves - 1, 2\)"),
        (["a", "a"], [["x", "y"]], None, "numbers of nodes"),
        (["a", "a"], [[0, 2]], None, r"Merge 0 .* joins \[0, 2\]"),
        (["a", "a", "a"], [[0, 0], [1, 2]], None, "node 0 is joined 2 times"),
        (["a", "a"], [[0, 1.5]], None, "Merge 0"),
        (["a", "a"], [[0, np.nan]], None, "NaN or infinity"),
        (["a", "a", "a"], [[0, 1]], None, "Give leaves="),
        (["a", "a"], [[0, 1]], [0, 2], "from 0 to 1, got 0 to 2"),
        (["a", "a"], [[0, 1]], [0.0, 1.0], "one integer per row"),
        (["a", "b"], [[0, 1]], None, "no two rows of one class"),
        ([["a"], ["b"]], [[0, 1]], None, "one class per row"),
        (np.array(["a", 1], dtype=object), [[0, 1]], None, "can be sorted"),
    ],
)
def test_invalid_arguments_are_refused(y, hierarchy, leaves, words):
    with pytest.raises(ValueError, match=words):
        dendrogram_purity(y, hierarchy, leaves)


def test_a_sample_needs_pairs():
    with pytest.raises(ValueError, match="n_pairs must be an integer >= 2"):
        sampled_dendrogram_purity(["a", "a"], [[0, 1]], n_pairs=1)
    with pytest.raises(ValueError, match="random_state must be an integer >= 0, got -1"):
        sampled_dendrogram_purity(["a", "a"], [[0, 1]], random_state=-1)


def test_rows_that_are_all_different_are_pairs_with_themselves():
    assert dendrogram_purity(["a", "b"], [[0, 1]], self_pairs=True) == 1.0
    assert dendrogram_purity(["a", "b"], [], [0, 0], self_pairs=True) == 0.5
    with pytest.raises(ValueError, match="no two rows of one class"):
        dendrogram_purity([], [], np.empty(0, dtype=int), self_pairs=True)
