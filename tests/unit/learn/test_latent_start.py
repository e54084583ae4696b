"""Starts of latent trees: splits as they were given, predictors as ridge regression has them."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import Ridge

torch = pytest.importorskip("torch")

from hardwood.learn.latent_network.start import place_splits, solve_predictor  # noqa: E402
from hardwood.nn import LatentTree  # noqa: E402


@pytest.mark.parametrize("batch_norm", [True, False])
def test_a_batch_of_the_rows_scores_as_the_given_splits_do(batch_norm):
    rng = np.random.default_rng(0)
    rows = torch.from_numpy(rng.normal(size=(200, 4)).astype(np.float32))
    weights = rng.normal(size=(7, 4)).astype(np.float32)
    bias = rng.normal(size=7).astype(np.float32)
    weights[3], bias[3] = 0.0, 1.0  # a node whose rows stay together
    tree = LatentTree(4, max_depth=3, batch_norm=batch_norm)
    place_splits(tree, weights, bias, rows)
    found = tree.train().scores(rows).detach().numpy()
    np.testing.assert_allclose(found, rows.numpy() @ weights.T + bias, atol=2e-4)


def test_the_predictor_is_that_of_ridge_regression():
    rng = np.random.default_rng(1)
    n = 20_000  # more than one chunk
    features = rng.normal(size=(n, 3)) + 5.0
    features[:, 2] = features[:, 1]  # twice the same: the penalty decides
    y = features @ rng.normal(size=(3, 2)) + rng.normal(size=(n, 2)) + 7.0
    weight = rng.integers(1, 3, n).astype(float)
    layer = torch.nn.Linear(3, 2).double()
    solve_predictor(layer, *(torch.from_numpy(part) for part in (features, y, weight)))
    expected = Ridge(alpha=1.0).fit(features, y, sample_weight=weight)
    np.testing.assert_allclose(layer.weight.detach().numpy(), expected.coef_, atol=1e-6)
    np.testing.assert_allclose(layer.bias.detach().numpy(), expected.intercept_, atol=1e-5)


def test_the_predictor_of_fewer_rows_than_features_is_finite():
    layer = torch.nn.Linear(10, 1)
    solve_predictor(layer, torch.randn(3, 10), torch.randn(3, 1), torch.ones(3))
    assert torch.isfinite(layer.weight).all()
