"""Models of all kinds, and names that could break an export."""

from __future__ import annotations

import numpy as np
import pytest

from forests import make_forest
from hardwood import ObliqueForest, ObliqueTree
from hardwood.table import Feature, Schema
from trees import make_children, make_tree


def chain(n_splits: int) -> ObliqueTree:
    """As deep as it has splits; each is on all three columns."""
    rng = np.random.default_rng(0)
    children = [[-1 - i, i + 1] for i in range(n_splits - 1)] + [[-n_splits, -1 - n_splits]]
    return ObliqueTree(
        rng.normal(size=(n_splits, 3)) * 0.1 + [1, 0, 0],
        np.linspace(3, -3, n_splits),
        children,
        rng.normal(size=(n_splits + 1, 1)),
        schema=Schema.numeric(3),
        task="regression",
    )


def sum_forest(link: str, **options: object) -> ObliqueForest:
    trees = make_forest(4, task="regression", mixed=True, linear=(False, True)).trees
    return ObliqueForest(trees, combine="sum", link=link, **options)


def of_one_feature_each(seed: int = 0) -> ObliqueTree:
    """Splits on one number, on the levels of one feature, and on values being missing."""
    rng = np.random.default_rng(seed)
    schema = Schema(
        (
            Feature("age", "numeric", center=38.7, scale=16.0, has_missing=True),
            Feature("joined", "numeric", center=1.7e9, scale=2.0**24, origin="date"),
            Feature("grade", "categorical", levels=(1, 2, 5), has_missing=True),
            Feature("paid", "numeric", center=0.4, scale=0.5, origin="boolean"),
            Feature("color", "categorical", levels=("blue", "red")),
            Feature("certain", "categorical", levels=(False, True), has_missing=True),
        )
    )
    weights = np.zeros((24, schema.n_columns))
    for i, row in enumerate(weights):
        j = i % schema.n_features
        own = schema.column_feature == j
        row[own] = rng.normal(size=own.sum()) / schema.column_scale[own]
    bias = rng.normal(size=24) * 0.3
    weights[6, :2], bias[6] = (0.0, 1.0), -0.5  # only the missing indicator of a number
    values = rng.dirichlet(np.ones(3), size=25)
    children = make_children(rng, 24)
    return ObliqueTree(
        weights, bias, children, values, schema=schema, task="classification", classes=[3, 1, 2]
    )


def far_scales() -> ObliqueTree:
    """Scales too extreme for the weights to absorb: values stay divided by them."""
    features = [Feature("a", "numeric", scale=2.0**60, center=1e20), Feature("b", "numeric")]
    return ObliqueTree.of(
        [[2.0**-60, 1.0], [2.0**-61, -1.0], [0.0, 1.0]],
        bias=[0.1, 0.2, -0.3],
        values=[0.0, 1.0, 2.0, 3.0],
        schema=Schema(tuple(features)),
    )


def huge_leaves() -> ObliqueForest:
    trees = make_forest(5, task="regression", sizes=(3, 2)).trees
    return ObliqueForest([tree.replace(values=tree.values * 1e307) for tree in trees])


def categories_only() -> ObliqueTree:
    levels = tuple(f"level {i}" for i in range(200))
    features = (
        Feature("a", "categorical", levels=levels),
        Feature("b", "categorical", levels=(0.5, 2, 30), has_missing=True),
        Feature("c", "categorical", levels=("x",)),
    )
    schema, rng = Schema(features), np.random.default_rng(3)
    return ObliqueTree(
        rng.normal(size=(9, schema.n_columns)) * (rng.random((9, schema.n_columns)) < 0.7),
        rng.normal(size=9),
        make_children(rng, 9),
        rng.normal(size=(10, 1)),
        schema=schema,
        task="regression",
    )


ZOO = {
    "classes": lambda: make_tree(1, n_splits=31, n_features=40),
    "categories and missing": lambda: make_tree(2, n_splits=20, n_features=8, mixed=True),
    "weighted classes": lambda: make_tree(21, mixed=True, decides=True),
    "a number": lambda: make_tree(3, task="regression", k=1),
    "several numbers": lambda: make_tree(13, task="regression", k=3, mixed=True),
    "labels": lambda: make_tree(4, task="multilabel", mixed=True),
    "one label": lambda: make_tree(4, task="multilabel", k=1),
    "one class": lambda: make_tree(5, k=1),
    "one leaf": lambda: make_tree(8, n_splits=0, mixed=True),
    "linear classes": lambda: make_tree(5, linear=True, mixed=True),
    "weighted linear classes": lambda: make_tree(22, linear=True, mixed=True, decides=True),
    "linear numbers": lambda: make_tree(6, linear=True, task="regression", k=2),
    "linear exp": lambda: make_tree(6, linear=True, task="regression", k=1, link="exp"),
    "linear labels": lambda: make_tree(7, linear=True, task="multilabel"),
    "few terms": lambda: make_tree(9, n_features=20, n_splits=30, sparsity=0.95, mixed=True),
    "one feature each": of_one_feature_each,
    "categories only": categories_only,
    "far scales": far_scales,
    "deep": lambda: chain(60),
    "forest mean": lambda: make_forest(1, mixed=True),
    "forest vote": lambda: make_forest(2, mixed=True, combine="vote", linear=(True, False)),
    "forest of labels": lambda: make_forest(3, task="multilabel", combine="vote", linear=(True,)),
    "forest of numbers": lambda: make_forest(3, task="regression", mixed=True),
    "forest of leaves": lambda: make_forest(6, sizes=(0, 0)),
    "huge leaves": huge_leaves,
    "sum of one": lambda: ObliqueForest(
        [make_tree(2, task="regression")], combine="sum", link="softmax", classes=[1, 2, 3]
    ),
    "sum": lambda: sum_forest("identity"),
    "sum softmax": lambda: sum_forest("softmax", classes=["a", "b", "c"]),
    "sum logistic": lambda: sum_forest("logistic"),
    "sum exp": lambda: sum_forest("exp"),
}


@pytest.fixture(params=ZOO, ids=str)
def model(request):
    """Each kind of model in turn."""
    return ZOO[request.param]()


@pytest.fixture
def zoo():
    """Make a model by the name of its kind."""
    return lambda name: ZOO[name]()


HOSTILE = [
    'a"b',
    "it's",
    "new\nline",
    "*/ int x; /*",
    "// /* */",
    "');--",
    '"""',
    "'''",
    "back\\slash\\",
    "%s%n{}{{0}}",
    "naïve",
    "na\u0131ve",
    "😀",
    "int",
    "class",
    "lambda",
    "v",
    "gone",
    "t",
    "x0",
    "d1",
    "k0",
    "leaf 0",
    "stage 0",
    "prediction",
    "label",
    "X",
    "N_FEATURES",
    "a b",
    "a_b",
    "a-b",
    "1st",
    "x" * 5000,
    "\u2028\u2029\x0b\x0c\x85",
    "tab\tand\rreturn",
    "??/",
    "#include <x>",
    "NULL",
    "missing",
    "is one of",
    " ",
    "",
    "/",
    "\\u0022",
    "-- ",
    "${HOME}`id`",
]


@pytest.fixture
def hostile():
    """A tree all of whose names are hostile: features, levels, classes and target."""
    rng = np.random.default_rng(7)
    features = []
    for j, name in enumerate(HOSTILE):
        if j % 5 == 0:
            levels = tuple(HOSTILE[j : j + 5])
            features.append(Feature(name, "categorical", levels=levels, has_missing=True))
        else:
            features.append(Feature(name, "numeric", center=float(j), has_missing=j % 3 == 0))
    schema = Schema(tuple(features))
    n, k = 40, len(HOSTILE)
    weights = rng.normal(size=(n, schema.n_columns))
    weights *= rng.random(weights.shape) < 0.15
    weights[:20] = 0.0
    for i in range(20):  # on one feature
        own = schema.column_feature == rng.integers(schema.n_features)
        weights[i, own] = rng.normal(size=own.sum())
    return ObliqueTree(
        weights,
        rng.normal(size=n),
        make_children(rng, n),
        rng.dirichlet(np.ones(k), size=n + 1),
        schema=schema,
        task="classification",
        classes=HOSTILE,
        target_names='target */ "\n',
        counts=None,
    )
