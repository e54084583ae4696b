"""Clustering by latent trees: scikit-learn's checks, cuts, merges, tables, plots."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("torch")

from scipy import sparse
from scipy.cluster.hierarchy import dendrogram, is_valid_linkage
from sklearn.datasets import load_wine, make_blobs
from sklearn.exceptions import NotFittedError
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import StandardScaler

import hardwood
from hardwood import LatentTreeClustering
from hardwood.errors import FitInterruptedWarning
from hardwood.report import dendrogram_purity

QUICK = {"max_depth": 3, "max_epochs": 20, "random_state": 0}


@pytest.fixture(scope="module")
def wine():
    return load_wine(return_X_y=True, as_frame=True)


@pytest.fixture(scope="module")
def fitted(wine):
    X, _ = wine
    return LatentTreeClustering(**QUICK, targets=["alcohol", "hue", "proline"]).fit(X)


def test_classes_that_were_never_seen_come_apart(wine, fitted):
    X, y = wine
    at_random = dendrogram_purity(np.random.default_rng(0).permutation(y), fitted)
    assert dendrogram_purity(y, fitted) > at_random + 0.3
    three = fitted.labels_at(n_clusters=3)
    assert adjusted_rand_score(y, three) > 0.5


@pytest.mark.parametrize("targets", ["random", "all", 2])
@pytest.mark.parametrize("split_init", ["bisect", "random"])
def test_far_apart_blobs_are_found_by_any_targets(targets, split_init):
    X, y = make_blobs(300, 6, centers=4, cluster_std=0.4, random_state=1)
    model = LatentTreeClustering(**QUICK, targets=targets, split_init=split_init).fit(X)
    assert dendrogram_purity(y, model) > (0.95 if split_init == "bisect" else 0.6)


def test_new_rows_find_the_clusters_of_equal_training_rows(wine, fitted):
    X, _ = wine
    np.testing.assert_array_equal(fitted.predict(X), fitted.labels_)
    np.testing.assert_array_equal(fitted.apply(X), fitted.leaves_)
    np.testing.assert_array_equal(fitted.predict(X.iloc[[5]]), fitted.labels_[[5]])
    # By name in any order, and whatever stands in the targets.
    changed = X[X.columns[::-1]].assign(alcohol=0.0, hue=-1.0)
    assert fitted.tree_.schema.n_features == X.shape[1] - 3
    np.testing.assert_array_equal(fitted.tree_.apply(changed), fitted.leaves_)
    np.testing.assert_array_equal(fitted.predict(X, max_depth=1), fitted.labels_at(max_depth=1))


def test_without_a_cut_labels_are_leaves_and_every_leaf_has_rows(fitted):
    assert sorted(set(fitted.labels_.tolist())) == list(range(fitted.n_leaves_))
    assert fitted.labels_.dtype == np.int64
    counts = np.bincount(fitted.leaves_)
    np.testing.assert_array_equal(counts, fitted.tree_.counts[fitted.tree_.n_splits :])


def test_cuts_are_nested_and_as_many_as_asked(fitted):
    finer = fitted.labels_
    for k in range(fitted.n_leaves_ + 2, 0, -1):
        labels = fitted.labels_at(n_clusters=k)
        assert len(set(labels.tolist())) == min(k, fitted.n_leaves_)
        pairs = set(zip(finer.tolist(), labels.tolist(), strict=True))
        assert len(pairs) == len(set(finer.tolist()))  # each finer cluster is within one
        finer = labels
    assert set(fitted.labels_at(max_depth=0).tolist()) == {0}
    assert len(set(fitted.labels_at(max_depth=1).tolist())) == 2
    with pytest.raises(ValueError, match="not both"):
        fitted.labels_at(max_depth=1, n_clusters=2)


def test_n_clusters_of_the_estimator_is_the_cut(wine, fitted):
    X, _ = wine
    model = LatentTreeClustering(**QUICK, targets=["alcohol", "hue", "proline"], n_clusters=3).fit(
        X
    )
    np.testing.assert_array_equal(model.labels_, fitted.labels_at(n_clusters=3))
    np.testing.assert_array_equal(model.predict(X), model.labels_)


def test_scipy_draws_the_merges(fitted):
    matrix = fitted.linkage()
    assert is_valid_linkage(matrix)
    assert sorted(dendrogram(matrix, no_plot=True)["leaves"]) == list(range(fitted.n_leaves_))
    assert (np.diff(fitted.distances_) >= 0).all()
    assert fitted.distances_[-1] == pytest.approx(1.0)
    assert fitted.children_.shape == (fitted.n_leaves_ - 1, 2)


def test_the_tree_tells_the_means_of_the_targets(wine, fitted):
    X, _ = wine
    names = ("alcohol", "hue", "proline")
    assert fitted.tree_.target_names == names
    means = X[list(names)].groupby(fitted.leaves_).mean().to_numpy()
    np.testing.assert_allclose(fitted.tree_.values, means, rtol=1e-5)
    assert "proline" in fitted.tree_.to_text()


def test_the_same_seed_gives_the_same_bits_and_another_another(wine):
    X, _ = wine
    one, two = (LatentTreeClustering(**QUICK).fit(X) for _ in range(2))
    other = LatentTreeClustering(**{**QUICK, "random_state": 1}).fit(X)
    assert one.tree_ == two.tree_
    assert one.latent_ == two.latent_
    assert one.targets_.tolist() == two.targets_.tolist()
    assert one.tree_ != other.tree_
    threaded = LatentTreeClustering(**QUICK, n_jobs=2).fit(X)
    np.testing.assert_array_equal(threaded.labels_, one.labels_)


def test_a_weight_of_two_is_the_row_twice(wine):
    X, _ = wine
    weight = np.where(np.arange(len(X)) % 5 == 0, 2.0, 1.0)
    weighted = LatentTreeClustering(**QUICK, targets=[0, 5]).fit(X, sample_weight=weight)
    repeated = X.loc[np.repeat(X.index, weight.astype(int))]
    twice = LatentTreeClustering(**QUICK, targets=[0, 5]).fit(repeated)
    np.testing.assert_array_equal(weighted.tree_.weights, twice.tree_.weights)
    np.testing.assert_array_equal(weighted.tree_.bias, twice.tree_.bias)
    np.testing.assert_allclose(weighted.distances_, twice.distances_, rtol=1e-12)


def test_categories_and_missing_entries_are_columns_like_others():
    rng = np.random.default_rng(0)
    group = rng.integers(0, 2, 200)
    frame = pd.DataFrame(
        {
            "size": group * 5 + rng.normal(size=200),
            "kind": np.where(group, "cat", "dog"),
            "weight": group * 3 + rng.normal(size=200),
        }
    )
    frame.loc[::7, "size"] = np.nan
    frame.loc[::11, "kind"] = None
    model = LatentTreeClustering(**QUICK, targets=["size", "kind"]).fit(frame)
    assert model.tree_.target_names == ("size", "kind = cat", "kind = dog")
    assert adjusted_rand_score(group, model.labels_at(n_clusters=2)) > 0.6
    by_kind = LatentTreeClustering(**QUICK, targets=["weight"]).fit(frame)
    assert adjusted_rand_score(group, by_kind.labels_at(n_clusters=2)) > 0.6


def test_clusters_with_equal_targets_stay_apart():
    rng = np.random.default_rng(0)
    group = rng.integers(0, 4, 200)
    near = rng.normal(size=(200, 2))
    X = np.column_stack(
        [group % 2, 20.0 * (group // 2) + near[:, 0], 9.0 * (group % 2) + near[:, 1]]
    )
    model = LatentTreeClustering(**{**QUICK, "max_depth": 2}, targets=[0]).fit(X)
    assert model.n_leaves_ == 4
    # Each target occurs in two leaves, which a tree that answers with it would have merged.
    assert sorted(model.tree_.values.ravel().round(2).tolist()) == [0.0, 0.0, 1.0, 1.0]


def test_sparse_rows_and_a_single_column():
    X, y = make_blobs(120, 4, centers=2, random_state=0)
    dense = LatentTreeClustering(**QUICK, targets=[1]).fit(X)
    of_sparse = LatentTreeClustering(**QUICK, targets=[1]).fit(sparse.csr_array(X))
    np.testing.assert_array_equal(dense.labels_, of_sparse.labels_)
    np.testing.assert_array_equal(of_sparse.predict(sparse.csr_array(X)), dense.labels_)
    alone = LatentTreeClustering(**QUICK).fit(X[:, :1])
    assert alone.targets_.tolist() == [0]
    assert not alone.latent_.skip_connection
    assert alone.n_leaves_ > 1


def test_more_pruning_leaves_fewer_active_nodes_and_keeps_what_is_left(wine):
    X, y = wine
    scaled = StandardScaler().fit_transform(X)
    models = {
        price: LatentTreeClustering(
            max_depth=5, pruning=price, targets=[0, 9, 12], split_init="random", random_state=0
        ).fit(scaled)
        for price in (1.0, 100.0)
    }
    active = {price: model.latent_.activity.sum() for price, model in models.items()}
    assert active[100.0] < 0.7 * active[1.0]
    purity = {price: dendrogram_purity(y, model) for price, model in models.items()}
    assert abs(purity[1.0] - purity[100.0]) < 0.15
    # A row's answer is its own: nothing is solved again for the rows that are asked.
    model = models[100.0]
    inputs = np.delete(scaled, model.targets_, axis=1)
    np.testing.assert_array_equal(
        model.latent_.traversals(inputs[:3]), model.latent_.traversals(inputs)[:3]
    )


def test_a_price_that_nobody_pays_leaves_one_cluster(wine):
    X, _ = wine
    model = LatentTreeClustering(**QUICK, pruning=1e9).fit(X)
    assert model.latent_.nodes.tolist() == [0]
    assert set(model.labels_.tolist()) == set(model.predict(X).tolist()) == {0}
    assert model.linkage().shape == (0, 4)


def test_a_tree_is_saved_and_the_estimator_pickled_and_copied(wine, fitted, tmp_path):
    X, _ = wine
    fitted.tree_.save(tmp_path / "clusters.hardwood")
    loaded = hardwood.load(tmp_path / "clusters.hardwood")
    np.testing.assert_array_equal(loaded.apply(X), fitted.leaves_)
    for again in (pickle.loads(pickle.dumps(fitted)), copy.deepcopy(fitted)):
        np.testing.assert_array_equal(
            again.predict(X, n_clusters=2), fitted.labels_at(n_clusters=2)
        )


def test_learning_is_followed_stopped_and_interrupted(wine):
    X, _ = wine
    seen = []
    model = LatentTreeClustering(**QUICK, callbacks=lambda e: seen.append(e) or len(seen) == 3)
    model.fit(X)
    assert len(seen) == model.n_iter_ == 3
    assert all(0 < epoch.active_nodes <= 1 for epoch in model.history_)
    kept = [e.validation_loss for e in model.history_]
    assert model.validation_error_ == min(kept)

    def interrupt(epoch):
        if epoch.epoch == 1:
            raise KeyboardInterrupt

    with pytest.warns(FitInterruptedWarning):
        model = LatentTreeClustering(**QUICK, callbacks=interrupt).fit(X)
    assert model.labels_.shape == (len(X),)


def test_pictures(wine, fitted):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    X, y = wine
    ax = fitted.plot_routing(X, title="wine")
    assert ax.texts[0].get_text() == "100"
    assert len(ax.texts) == len(fitted.latent_.nodes)
    figure = fitted.plot_routing_by_class(X, y, names=["one", "two", "three"], max_depth=2)
    assert [a.get_title().split()[0] for a in figure.axes] == ["one", "two", "three"]
    line = fitted.plot_active_share().lines[0]
    assert len(line.get_ydata()) == fitted.n_iter_
    matplotlib.pyplot.close("all")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"targets": "some"}, "targets must be one of"),
        ({"targets": 0}, "targets must be an integer from 1 to 12"),
        ({"targets": 13}, "targets must be an integer from 1 to 12"),
        ({"targets": []}, "at least one column"),
        ({"targets": ["hue", "hue"]}, "each once"),
        ({"targets": ["color"]}, "names the column 'color'"),
        ({"targets": [13]}, "targets must be an integer from 0 to 12"),
        ({"targets": "hue"}, r"a list of columns: give \['hue'\]"),
        ({"targets": list(range(13))}, "leaves none to regress from"),
        ({"n_clusters": 0}, "n_clusters must be an integer >= 1"),
        ({"split_init": "center"}, "split_init must be one of"),
        ({"pruning": -1.0}, "pruning must be a number"),
        ({"max_depth": 13}, "max_depth must be an integer from 1 to 12"),
        ({"activation": "cubic"}, "activation must be one of"),
    ],
)
def test_what_is_wrong_is_said(wine, options, words):
    X, _ = wine
    model = LatentTreeClustering(**options)
    with pytest.raises(ValueError, match=words):
        model.fit(X)
    assert "tree_" not in vars(model)


def test_a_name_of_a_nameless_table_and_too_early_questions(wine):
    X, _ = wine
    with pytest.raises(ValueError, match="the table has no names"):
        LatentTreeClustering(targets=["hue"]).fit(X.to_numpy())
    for ask in (
        lambda m: m.linkage(),
        lambda m: m.predict(X),
        lambda m: m.plot_active_share(),
        lambda m: m.plot_routing(X),
        lambda m: m.plot_routing_by_class(X, [0] * len(X)),
    ):
        with pytest.raises(NotFittedError):
            ask(LatentTreeClustering())


@pytest.mark.parametrize("n_targets", [1, 2, 3])
def test_the_regression_sees_the_other_columns_however_many_are_targets(n_targets):
    X = np.random.default_rng(0).normal(size=(40, 4))
    options = QUICK | {"max_epochs": 2, "targets": n_targets}
    assert LatentTreeClustering(**options).fit(X).latent_.skip_connection
    assert not LatentTreeClustering(**(options | {"targets": "all"})).fit(X).latent_.skip_connection


def test_targets_may_be_any_collection_of_names(wine):
    X, _ = wine
    options = QUICK | {"max_epochs": 2}
    for names in (X.columns[[0, 3]], X.columns[[0, 3]].to_series(), {"alcohol", X.columns[3]}):
        assert LatentTreeClustering(**options, targets=names).fit(X).targets_.tolist() == [0, 3]


def test_a_failed_fit_leaves_the_model_as_it_was(wine):
    X, _ = wine
    model = LatentTreeClustering(**QUICK).fit(X)
    tree, labels = model.tree_, model.labels_
    with pytest.raises(ValueError, match="infinity"):
        model.fit(np.full((20, 3), np.inf))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hardwood.estimators.clustering.prune_unreached", _fails)
        with pytest.raises(MemoryError):
            model.fit(X.iloc[:, :5])
    assert model.tree_ is tree
    assert model.labels_ is labels
    assert model.n_features_in_ == len(model.feature_names_in_) == 13
    assert (model.predict(X) == labels).all()


def _fails(*_, **__):
    raise MemoryError
