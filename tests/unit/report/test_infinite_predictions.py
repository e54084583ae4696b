"""Linear leaves may exceed float64 for rows far out: `predict` warns, and views refuse the rows."""

from __future__ import annotations

import numpy as np
import pytest

from hardwood import explain, report
from hardwood.errors import TableError, TableWarning
from hardwood.model import ObliqueForest, ObliqueTree

FAR = np.array([[0.0, 0.0], [1.0, 1.0], [1e10, 1e10], [-1e10, 1e10]])
NEAR = FAR[:2]


def linear(link: str) -> ObliqueTree:
    size = 1.0 if link == "exp" else 1e300
    return ObliqueTree.of(
        [[1.0, 0.0]],
        thresholds=[0.5],
        values=[0.0, 1.0],
        leaf_weights=[[size, -size], [size, size]],
        link=link,
    )


MODELS = {
    "sums": linear("identity"),
    "exponentials": linear("exp"),
    "mean of trees": ObliqueForest([linear("identity")] * 2),
    "product of trees": ObliqueForest([linear("identity")] * 2, combine="sum", link="exp"),
}
VIEWS = {
    "evaluation": lambda model, X: report.evaluate(model, X, X[:, 0]).to_html(),
    "analysis": lambda model, X: report.analyze(model, X, X[:, 0], n_repeats=2).to_html(),
    "page": lambda model, X: model.show(None, X, X[:, 0]),
    "path": lambda model, X: explain.path(model, X[-1]).to_json(),
}


@pytest.mark.parametrize("name", MODELS)
def test_predictions_beyond_float64_are_counted(name):
    model = MODELS[name]
    with pytest.warns(TableWarning, match=r"beyond float64, such as .* for row [12] of 4"):
        found = model.predict(FAR)
    assert not np.isfinite(found[2])
    assert np.isfinite(model.predict(NEAR[:1])).all()


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("name", MODELS)
def test_views_of_predictions_beyond_float64_are_refused(name, view):
    with pytest.raises(TableError, match=r"beyond float64, .*Leave such rows out\.$"):
        VIEWS[view](MODELS[name], FAR[:3])


def test_other_rows_of_an_analysis_are_checked():
    """Shuffled columns, and a column that is the same everywhere, make rows farther out."""
    X = np.array([[700.0, -650.0], [1.0, 140.0], [2.0, 100.0], [3.0, 50.0]])
    tree = linear("exp")
    assert np.isfinite(tree.predict(X)).all()
    with pytest.raises(TableError, match="beyond float64"):
        report.analyze(tree, X, X[:, 0], metric="MAE", n_repeats=5)
