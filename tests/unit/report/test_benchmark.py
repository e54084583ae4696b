from __future__ import annotations

import json
import time

import numpy as np
import pandas as pd
import pytest

from ensembles import make_ensemble
from forests import make_forest
from hardwood.model import dumps
from hardwood.report import benchmark
from hardwood.report.benchmark import _time_batch
from hardwood.table.sample import sample_rows, single_rows
from trees import make_rows, make_tree


@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize("make", [make_tree, make_forest, make_ensemble])
def test_every_kind_of_call_is_timed(make, mixed):
    model = make(0, mixed=mixed)
    found = benchmark(model, batch_sizes=[20, 40], seconds=0.005)
    kind = type(model).__name__
    assert [t.n_rows for t in found.timings[:2]] == [20, 40]
    single = ["dict"] if mixed else ["1-D float64 array", "dict"]
    assert [t.api for t in found.timings[2:]] == [f"{kind}.predict_one({s})" for s in single]
    for t in (*found.timings, found.load):
        assert 0 < t.p25_us <= t.p50_us <= t.p75_us <= t.p99_us
        assert t.n_calls >= 3
        assert t.rows_per_second == pytest.approx(1e6 * t.n_rows / t.p50_us)
    assert found.file_bytes == len(dumps(model))
    assert found.flops == model.flops()
    assert json.loads(found.to_json()) == found.to_dict()
    assert len(found.to_frame(backend="pandas")) == len(found.timings) + 1
    assert found.machine["Python"] in str(found)


def test_times_are_measured_per_call(monkeypatch):
    tree = make_tree(0)

    class Slow:
        def __getattr__(self, name):
            return getattr(tree, name)

        def predict(self, X, n_jobs=1):
            time.sleep(0.004)
            return tree.predict(X)

    timing = _time_batch(Slow(), np.zeros((5, 4)), "array", 1, 0.05)
    assert 4000 <= timing.p50_us < 40_000
    assert timing.n_rows == 5


def test_a_given_table_is_timed_as_one_batch():
    tree = make_tree(0, mixed=True)
    X = pd.DataFrame(make_rows(1, tree.schema, 30), columns=list(tree.feature_names))
    found = benchmark(tree, X, seconds=0.005)
    assert [t.api for t in found.timings] == [
        "ObliqueTree.predict(DataFrame)",
        "ObliqueTree.predict_one(dict)",
    ]
    assert found.timings[0].n_rows == 30
    assert found.flops == tree.flops(X)


def test_arrays_in_memory_are_counted():
    tree = make_tree(0, counts=False)
    arrays = (tree.weights, tree.bias, tree.children, tree.values)
    assert benchmark(tree, batch_sizes=[1], seconds=0.001).array_bytes == sum(
        array.nbytes for array in arrays
    )


@pytest.mark.parametrize(
    "options",
    [
        {"seconds": 0},
        {"batch_sizes": []},
        {"batch_sizes": [0]},
        {"batch_sizes": 10},
        {"batch_sizes": "10"},
        {"batch_sizes": [2.5]},
        {"n_jobs": "a"},
        {"random_state": "a"},
        {"seconds": "a"},
    ],
)
def test_wrong_options_are_explained(options):
    with pytest.raises((TypeError, ValueError), match=next(iter(options))):
        benchmark(make_tree(0), **options)


@pytest.mark.parametrize("mixed", [False, True])
def test_single_rows_are_those_of_the_table(mixed):
    tree = make_tree(0, mixed=mixed)
    rows = make_rows(2, tree.schema, 25)
    arrays, dicts = single_rows(tree.schema, rows, 25)
    assert len(arrays) == (0 if mixed else 25)
    expected = tree.predict(rows).tolist()
    assert [tree.predict_one(row) for row in dicts] == expected
    assert [tree.predict_one(row) for row in arrays] == ([] if mixed else expected)


def test_simulated_rows_need_no_library(monkeypatch):
    tree = make_tree(0, mixed=True)
    monkeypatch.setattr("hardwood.table.sample.first_installed", lambda backends: None)
    rows, kind = sample_rows(tree.schema, 10, np.random.default_rng(0))
    assert kind == "list of rows"
    assert tree.predict(rows).shape == (10,)
