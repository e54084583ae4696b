"""TEL's training steps against a replay in NumPy: normalization, weights, penalty, Adam."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest

from hardwood import _native
from hardwood.learn import Training
from hardwood.learn.tel import TEL
from hardwood.table import Schema
from reference import optimize
from reference import tel as reference

N, D, K, TREES, DEPTH = 11, 3, 2, 2, 3
GAMMA, RATE, L2, PASSES = 0.8, 0.05, 0.3, 3


class RecordedSquares:
    """Squared loss of targets whose first number is the row: the order of rows comes to light."""

    def __init__(self):
        self.batches = []

    def __call__(self, prediction, target):
        self.batches.append(target[:, 0].astype(int))
        gradient = prediction - target
        return (gradient**2).sum(axis=1).astype(np.float32) / 2, gradient


@pytest.fixture
def problem(rng):
    return {
        "X": rng.normal(2.0, 3.0, size=(N, D)).astype(np.float32),
        "target": np.column_stack([np.arange(N), rng.normal(size=N)]).astype(np.float32),
        "weight": rng.uniform(0.2, 3.0, N).astype(np.float32),
        "start": (
            rng.normal(0, 0.3, (TREES, 2**DEPTH - 1, D)).astype(np.float32),
            rng.normal(0, 0.1, (TREES, 2**DEPTH - 1)).astype(np.float32),
            rng.normal(0, 1.0, (TREES, 2**DEPTH, K)).astype(np.float32),
        ),
    }


@pytest.fixture
def rng():
    return np.random.default_rng(3)


def learned(problem, batch_size, *, batch_norm=True, l2=L2, from_start=True, **options):
    config = TEL(
        n_estimators=TREES,
        max_depth=DEPTH,
        gamma=GAMMA,
        batch_norm=batch_norm,
        batch_size=batch_size,
        max_epochs=PASSES,
        learning_rate=RATE,
        l2=l2,
        early_stopping=False,
        training=Training(
            optimizer="adam", schedule="constant", clip_norm=None, epsilon=1e-7, decay=0.99
        ),
    )
    loss = RecordedSquares()
    answer = _native.fit(
        "tel",
        Schema.numeric(problem["X"].shape[1]).encoder,
        problem["X"],
        problem["target"],
        problem["weight"],
        np.arange(len(problem["X"])),
        np.arange(0),
        n_outputs=problem["target"].shape[1],
        loss="custom",
        loss_parameter=0.0,
        custom=loss,
        start=problem["start"] if from_start else None,
        first_run=0,
        n_runs=1,
        n_draws=None,
        keep_all=False,
        seed=5,
        n_threads=1,
        callback=None,
        options={
            **config.engine_options(SimpleNamespace(train=problem["X"], valid=())),
            **options,
        },
    )
    return answer, loss.batches


def replayed(problem, batches, *, batch_norm, l2):
    """The same steps, in float64 and as the papers write them."""
    X, target, weight = (problem[key].astype(np.float64) for key in ("X", "target", "weight"))
    parameters = [part.astype(np.float64) for part in problem["start"]]
    optimizers = [optimize.Adam(beta2=0.99, eps=1e-7) for _ in parameters]
    mean, variance = reference.batch_statistics(X, weight)
    reached = []
    for rows in batches:
        x = X[rows]
        if batch_norm and len(rows) > 1:
            x = reference.batch_normalized(x, weight[rows])
        elif batch_norm:  # one row has no variance: it is taken as an answer's are
            x = (x - mean) / np.sqrt(variance + reference.BATCH_NORM_EPSILON)
        answers = reference.forward(x, *parameters, GAMMA, "smooth_step")
        slope = (answers - target[rows]) * weight[rows, None] / len(rows)
        gradients = reference.backward(x, *parameters, slope, GAMMA, "smooth_step")[1:]
        reached.append(reference.reachable_leaves(x, *parameters[:2], GAMMA, "smooth_step"))
        for i, penalty in enumerate((l2, 0.0, 0.0)):  # the splits' weights alone are penalized
            parameters[i] = optimize.step(
                parameters[i], gradients[i], optimizers[i], RATE, l2=penalty
            )
    if batch_norm:
        parameters[:2] = reference.folded(*parameters[:2], mean, variance)
    return parameters, reached


@pytest.mark.parametrize("batch_norm", [True, False])
@pytest.mark.parametrize("l2", [0.0, L2])
@pytest.mark.parametrize("batch_size", [5, 4, 11])  # 5: the last batch of a pass is one row
def test_steps_are_those_of_the_reference(problem, batch_size, l2, batch_norm):
    answer, batches = learned(problem, batch_size, batch_norm=batch_norm, l2=l2)
    n_batches = math.ceil(N / batch_size)
    # Asked once more when all is over: for the loss of what is returned, on all rows.
    steps = batches[: PASSES * n_batches]
    expected, reached = replayed(problem, steps, batch_norm=batch_norm, l2=l2)
    (tree,) = answer["trees"]
    for part, wanted in zip(("weights", "bias", "scores"), expected, strict=True):
        np.testing.assert_allclose(tree[part], wanted, rtol=2e-3, atol=2e-4)
    (history,) = answer["history"]
    for epoch, record in enumerate(history):
        of_pass = reached[epoch * n_batches : (epoch + 1) * n_batches]
        assert record[5] == pytest.approx(np.concatenate(of_pass).mean(), rel=1e-6)


def test_scores_that_were_not_kept_are_computed_again(rng):
    n, trees, depth = 600, 5, 6
    problem = {
        "X": rng.normal(size=(n, 4)).astype(np.float32),
        "target": np.column_stack([np.arange(n), rng.normal(size=n)]).astype(np.float32),
        "weight": np.ones(n, dtype=np.float32),
        "start": None,
    }
    shape = {"n_trees": trees, "depth": depth, "gamma": 0.5, "from_start": False}
    runs = [
        learned(problem, 512, max_kept_scores=kept, **shape)[0]["trees"][0]
        for kept in (0, 1000, 20_000, 1 << 22)
    ]
    for run in runs[1:]:
        for part in ("weights", "bias", "scores"):
            np.testing.assert_array_equal(run[part], runs[0][part])


def test_a_start_of_another_shape_is_refused(problem):
    with pytest.raises(ValueError, match="another shape"):
        learned(problem, 5, depth=2)
