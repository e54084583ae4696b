"""A level that a model did not learn counts as missing, in every kind of model, and is reported."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from ensembles import make_ensemble
from forests import make_forest
from hardwood.errors import TableWarning
from policies import make_policy
from trees import make_rows, make_tree

MAKERS = {
    "tree": lambda: make_tree(0, mixed=True),
    "linear tree": lambda: make_tree(0, mixed=True, linear=True),
    "forest": lambda: make_forest(0, mixed=True),
    "ensemble": lambda: make_ensemble(0, mixed=True),
    "policy tree": lambda: make_policy(0, mixed=True),
}


@pytest.mark.parametrize("kind", MAKERS)
def test_an_unknown_level_counts_as_missing_and_is_reported(kind):
    model = MAKERS[kind]()
    gaps = make_rows(0, model.schema, 50)
    rows = make_rows(0, model.schema, 50, unseen="never seen")
    assert rows != gaps
    with pytest.warns(TableWarning, match=r"of 50 rows \('never seen'\)") as caught:
        found = model.predict_proba(rows)
    assert len(caught) == 1
    np.testing.assert_array_equal(found, model.predict_proba(gaps))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TableWarning)
        assert [model.predict_one(row) for row in rows] == model.predict(gaps).tolist()
