"""Tables of the engine: every method takes arrays and CSR, float32 and float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from ensembles import make_ensemble
from forests import make_forest
from hardwood.table import Feature, Schema
from policies import make_policy
from trees import make_schema, make_tree

Verb = Callable[[Any], Any]


def make_verb(name: str) -> tuple[Schema, Verb]:
    """Return a named method of a model as a function of a table."""
    rng = np.random.default_rng(5)
    kind, verb = name.split(".")
    if kind == "encoder":
        schema = make_schema(rng, 4)
        return schema, schema.encoder.encode
    if kind == "tree":
        tree = make_tree(rng, linear=verb == "answer")
        leaves = (tree._leaf_models,) if verb == "answer" else ()
        return tree.schema, lambda X: getattr(tree._router, verb)(*leaves, X)
    if kind == "forest":
        forest = make_forest(rng)
        return forest.schema, getattr(forest._packed[0], verb)
    if kind == "ensemble":
        ensemble = make_ensemble(rng)
        weight = (np.ones(60),) if verb == "leaf_weights" else ()
        return ensemble.schema, lambda X: getattr(ensemble._router, verb)(X, *weight)
    policy = make_policy(rng)
    path = (True,) if verb == "apply" else ()
    return policy.schema, lambda X: getattr(policy._router, verb)(X, *path)


VERBS = (
    "encoder.encode",
    "tree.apply",
    "tree.answer",
    "forest.apply",
    "forest.answer",
    "ensemble.scores",
    "ensemble.reachable",
    "ensemble.leaf_weights",
    "policy.apply",
    "policy.leaf_probabilities",
)


def sparse_rows(schema: Schema, dtype: type) -> np.ndarray:
    rng = np.random.default_rng(6)
    X = 80 * rng.normal(size=(60, schema.n_features))
    return np.where(rng.random(X.shape) < 0.4, 0, X).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", VERBS)
def test_sparse_tables_are_answered_as_dense_ones(name, dtype):
    schema, verb = make_verb(name)
    X = sparse_rows(schema, dtype)
    for csr in (sparse.csr_matrix(X), sparse.csr_array(X)):
        np.testing.assert_array_equal(verb(csr), verb(X))


@pytest.mark.parametrize("name", VERBS)
def test_what_is_no_table_is_refused(name):
    schema, verb = make_verb(name)
    X = sparse_rows(schema, np.float64)
    csr = sparse.csr_matrix(X)
    for other in (X.astype(int), X.astype(np.float16), X[0], X[:, ::-1], np.asfortranarray(X)):
        with pytest.raises(ValueError, match="X must be float32 or float64"):
            verb(other)
    for other in ("X", [[0.0]], csr.astype(int), csr.tocoo(), csr.tocsc()):
        with pytest.raises(ValueError, match="X must be float32 or float64"):
            verb(other)
    for wide in (np.ones((60, 5)), sparse.csr_matrix(np.ones((60, 5)))):
        with pytest.raises(ValueError, match="found 5 features, expected 4"):
            verb(wide)


@pytest.mark.parametrize("name", VERBS)
def test_infinity_is_reported_with_row_and_feature(name):
    schema, verb = make_verb(name)
    X = sparse_rows(schema, np.float64)
    X[11, 2] = -np.inf
    for table in (X, sparse.csr_matrix(X)):
        with pytest.raises(ValueError, match="row 11, feature 2"):
            verb(table)


def test_damaged_sparse_tables_are_refused():
    schema, verb = make_verb("tree.apply")
    X = sparse_rows(schema, np.float64)
    for part, place, value, words in (
        ("indptr", 3, 999, "row pointers"),
        ("indptr", 0, 1, "row pointers"),
        ("indptr", -1, X.size + 1, "leave its data"),
        ("indices", 0, 4, "must increase and lie within"),
        ("indices", 0, -1, "must increase and lie within"),
        ("indices", 1, 0, "must increase and lie within"),
    ):
        csr = sparse.csr_matrix(X)
        getattr(csr, part)[place] = value
        with pytest.raises(ValueError, match=words):
            verb(csr)
    csr = sparse.csr_matrix(X)
    csr.indices = csr.indices[1:]
    with pytest.raises(ValueError, match="not a compressed sparse row matrix"):
        verb(csr)


def test_only_numbers_are_sparse():
    schema = Schema((Feature("kind", "categorical", levels=("a", "b")),))
    with pytest.raises(ValueError, match="sparse tables hold numbers only"):
        schema.encoder.encode(sparse.csr_matrix(np.ones((2, 1))))
