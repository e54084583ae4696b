"""The training loop: every step equals the NumPy reference, and the right tree is kept.

The engine chooses the order of rows. A custom loss whose targets are row numbers observes the
batches, so the reference can take the same steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from hardwood import DGTClassifier, DGTRegressor, _native, _probes
from hardwood.learn import Training
from hardwood.learn.dgt import DGT
from hardwood.table import Feature, Schema
from reference import dgt, layers, losses, optimize
from reference.bootstrap import bootstrap_counts, bootstrap_sample
from reference.dgt import Relaxation
from reference.encode import encode

PLAIN = {
    "optimizer": "sgd",
    "learning_rate": 0.1,
    "momentum": 0.0,
    "decay": 0.99,
    "epsilon": 1e-8,
    "l1": 0.0,
    "l2": 0.0,
    "schedule": "constant",
    "schedule_cycles": 1,
    "noise": 0.0,
    "clip_norm": np.inf,
    "batch_size": 32,
    "max_epochs": 1,
    "patience": 0,
    "hidden": [],
    "linear_leaves": False,
    "path": "sum",
    "quantizer": "sign",
    "routing": "quantized",
    "sharpness": (1.0, 1.0),
    "annealing": "linear",
}

# Indicators come first here and last in the engine, so a wrong order is detected.
MIXED = Schema(
    (
        Feature("kind", "categorical", levels=("a", "b", "c"), has_missing=True),
        Feature("size", "numeric", center=5.0, scale=4.0, has_missing=True),
        Feature("tone", "categorical", levels=("x", "y")),
        Feature("age", "numeric", center=-1.0, scale=0.5),
    )
)

Parameters = Sequence[np.ndarray]  # W, b, Theta, and A where leaves are linear


@dataclass(frozen=True)
class Case:
    """Rows, and a tree to start from: W, b, Theta, and A if leaves are linear."""

    schema: Schema
    X: np.ndarray
    y: np.ndarray
    weight: np.ndarray
    start: tuple[np.ndarray, ...]

    @property
    def height(self) -> int:
        return dgt.height_of(len(self.start[0]))

    @property
    def rows(self) -> np.ndarray:
        return np.arange(len(self.X))


def mixed_rows(rng: np.random.Generator, n: int) -> np.ndarray:
    X = np.column_stack(
        [
            rng.integers(0, 3, n),
            5 + 4 * rng.normal(size=n),
            rng.integers(0, 2, n),
            0.5 * rng.normal(size=n) - 1,
        ]
    ).astype(np.float64)
    X[:, :2][rng.random((n, 2)) < 0.2] = np.nan
    return X


def make_case(
    n: int = 50,
    *,
    height: int = 2,
    n_outputs: int = 1,
    mixed: bool = False,
    linear: bool = False,
) -> Case:
    rng = np.random.default_rng([n, height, n_outputs])
    schema = MIXED if mixed else Schema.numeric(3)
    X = mixed_rows(rng, n) if mixed else rng.normal(size=(n, 3)).astype(np.float32)
    m = 2**height - 1
    start = (0.5 * rng.normal(size=(m, schema.n_columns)), 0.2 * rng.normal(size=m))
    start = (*start, rng.normal(size=(m + 1, n_outputs)))
    if linear:
        start = (*start, 0.5 * rng.normal(size=(m + 1, n_outputs, schema.n_columns)))
    return Case(
        schema,
        X,
        rng.normal(size=(n, n_outputs)).astype(np.float32),
        rng.uniform(0.2, 2.0, size=n).astype(np.float32),
        tuple(part.astype(np.float32) for part in start),
    )


def fit(
    case: Case,
    *,
    train: np.ndarray | None = None,
    valid: np.ndarray | None = None,
    target: np.ndarray | None = None,
    custom: Callable[..., Any] | None = None,
    loss: str = "squared_error",
    from_start: bool = True,
    restarts: int = 1,
    first_run: int = 0,
    n_draws: int | None = None,
    keep_all: bool = False,
    seed: int = 3,
    n_threads: int = 1,
    callback: Callable[..., bool] | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Learn with the engine; by default, SGD with a constant learning rate.

    The answer's own entries are joined by those of its first tree.
    """
    assert options.keys() <= PLAIN.keys()
    none = np.empty(0, dtype=np.int64)
    is_linear = len(case.start) == 4
    answer = _native.fit(
        "dgt",
        case.schema.encoder,
        case.X,
        case.y if target is None else target,
        case.weight,
        case.rows if train is None else train,
        none if valid is None else valid,
        n_outputs=case.start[2].shape[1],
        loss="custom" if custom else loss,
        loss_parameter=0.0,
        custom=custom,
        start=(*case.start, None)[:4] if from_start else None,
        first_run=first_run,
        n_runs=restarts,
        n_draws=n_draws,
        keep_all=keep_all,
        seed=seed,
        n_threads=n_threads,
        callback=callback,
        options={"height": case.height, **PLAIN, "linear_leaves": is_linear, **options},
    )
    return {**answer["trees"][0], **answer}


def parameters_of(answer: dict[str, Any]) -> tuple[np.ndarray, ...]:
    parts = ("weights", "bias", "scores", "leaf_weights")
    return tuple(answer[part] for part in parts if answer[part] is not None)


def assert_same(found: Parameters, expected: Parameters) -> None:
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)


def assert_close(found: Parameters, expected: Parameters) -> None:
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=2e-5)


def differ(a: Parameters, b: Parameters) -> bool:
    return any((x != y).any() for x, y in zip(a, b, strict=True))


def batches(case: Case, *, train: np.ndarray | None = None, restarts: int = 1, **options: Any):
    """Row numbers of every batch, in the order of the engine: epochs within restarts."""
    heard = []

    def listen(prediction, target):
        heard.append(target[:, 0].astype(np.int64))
        return None, np.zeros_like(prediction)

    ids = case.rows[:, None].astype(np.float32)
    fit(case, target=ids, train=train, custom=listen, restarts=restarts, **options)
    return heard


def squared_error(prediction, target):
    return (
        losses.squared_error(prediction, target).astype(np.float32),
        losses.squared_error_gradient(prediction, target).astype(np.float32),
    )


def split_leaves(parameters: Parameters) -> tuple[np.ndarray, ...]:
    """W, b, Theta and A, which is None for constant leaves: the arguments of the reference."""
    return tuple((*parameters, None)[:4])


def mean_loss(
    case: Case, parameters: Parameters, rows: np.ndarray, form: Relaxation = dgt.ALGORITHM_2
) -> float:
    columns = encode(case.schema, case.X)[rows]
    prediction = dgt.forward(columns, *split_leaves(parameters), form)
    return float(
        np.average(losses.squared_error(prediction, case.y[rows]), weights=case.weight[rows])
    )


def tree_of(parts: Parameters, n_layers: int) -> Parameters:
    """Collapse the layers, which come first if there are any: W, b, Theta, A."""
    if n_layers == 0:
        return parts
    W = layers.product(parts[:n_layers])
    return [W[:, :-1], W[:, -1], *parts[n_layers:]]


def pulls_of(
    tree: Parameters, columns: np.ndarray, slope: np.ndarray, form: Relaxation
) -> list[np.ndarray]:
    W, b, Theta, A = split_leaves(tree)
    return list(dgt.gradients(columns, W, b, Theta, slope, A, form)[: len(tree)])


def follow(
    case: Case,
    order: Sequence[np.ndarray],
    make,
    rates,
    *,
    l1=0.0,
    l2=0.0,
    clip_norm=np.inf,
    forms: Sequence[Relaxation] | None = None,
    factors: Parameters = (),
) -> tuple[Parameters, list[float]]:
    """Take the steps of the loop in NumPy; return the final tree and the loss of each batch.

    Each step has its own of ``forms``. With ``factors`` they are what is learned in place of the
    splits, and all of them are penalized.
    """
    columns, L = encode(case.schema, case.X), len(factors)
    parts = [*factors, *case.start[2:]] if L else case.start
    parts = [part.astype(np.float64) for part in parts]
    penalized = [True] * L + [False, True] if L else [True, False, False, True]
    optimizers = [make() for _ in parts]
    totals = []
    for rows, rate, form in zip(order, rates, forms or [dgt.ALGORITHM_2] * len(order), strict=True):
        tree = tree_of(parts, L)
        prediction = dgt.forward(columns[rows], *split_leaves(tree), form)
        weight = case.weight[rows].astype(np.float64)
        totals.append(weight @ losses.squared_error(prediction, case.y[rows]))
        slope = weight[:, None] * losses.squared_error_gradient(prediction, case.y[rows])
        pulls = pulls_of(tree, columns[rows], slope / len(rows), form)
        if L:
            G = np.column_stack(pulls[:2])
            pulls = [*layers.factor_gradients(parts[:L], G), *pulls[2:]]
        pulls = optimize.clip_by_global_norm(pulls, clip_norm)
        parts = [
            optimize.step(p, g, o, rate, l1=l1 * counts, l2=l2 * counts)
            for p, g, o, counts in zip(parts, pulls, optimizers, penalized, strict=False)
        ]
    return tree_of(parts, L), totals


# Steps

OPTIMIZERS = {
    "sgd": ({}, optimize.SGD),
    "sgd with momentum": ({"momentum": 0.8}, lambda: optimize.SGD(momentum=0.8)),
    "rmsprop": (
        {"optimizer": "rmsprop", "decay": 0.9, "epsilon": 0.01},
        lambda: optimize.RMSprop(alpha=0.9, eps=0.01),
    ),
    "rmsprop with momentum": (
        {"optimizer": "rmsprop", "momentum": 0.5, "decay": 0.95, "epsilon": 0.1},
        lambda: optimize.RMSprop(momentum=0.5, alpha=0.95, eps=0.1),
    ),
    "adam": (
        {"optimizer": "adam", "momentum": 0.7, "decay": 0.95, "epsilon": 0.01},
        lambda: optimize.Adam(momentum=0.7, beta2=0.95, eps=0.01),
    ),
}
PENALTIES = [{}, {"l2": 0.3}, {"l1": 0.05}, {"clip_norm": 0.1}, {"l1": 0.02, "l2": 0.2}]


@pytest.mark.parametrize("penalties", PENALTIES, ids=str)
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_every_step_equals_the_reference(name, penalties):
    case = make_case(50)
    options, make = OPTIMIZERS[name]
    sizes = {"batch_size": 16, "max_epochs": 3}  # 16, 16, 16 and 2 rows
    order = batches(case, **sizes)
    assert [len(rows) for rows in order] == 3 * [16, 16, 16, 2]
    answer = fit(case, learning_rate=0.05, **sizes, **options, **penalties)
    expected, totals = follow(case, order, make, 12 * [0.05], **penalties)
    assert_close(parameters_of(answer), expected)
    found = [record[2] for record in answer["history"][0]]
    means = np.reshape(totals, (3, 4)).sum(axis=1) / case.weight.sum(dtype=np.float64)
    np.testing.assert_allclose(found, means, rtol=1e-5)


@pytest.mark.parametrize("custom", [None, squared_error])
@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize("n_outputs", [1, 3])
def test_batches_larger_than_a_tile(n_outputs, mixed, custom):
    """Tiles of a batch add up; categories and missing entries of one leave nothing in the next."""
    case = make_case(333, height=3, n_outputs=n_outputs, mixed=mixed)
    train, valid = case.rows[:200], case.rows[200:]
    sizes = {"train": train, "batch_size": 150, "max_epochs": 2}  # 128 + 22 rows, then 50
    order = batches(case, **sizes)
    answer = fit(case, valid=valid, custom=custom, **sizes)
    ends = [follow(case, order[:stop], optimize.SGD, stop * [0.1]) for stop in (2, 4)]
    assert_close(parameters_of(answer), ends[answer["best_epoch"]][0])
    for epoch, record in enumerate(answer["history"][0]):
        total = sum(ends[1][1][2 * epoch : 2 * epoch + 2])
        assert record[2] == pytest.approx(total / case.weight[train].sum(), rel=1e-5)
        assert record[3] == pytest.approx(mean_loss(case, ends[epoch][0], valid), rel=1e-4)


def test_clipping_makes_a_step_of_the_given_length():
    case = make_case(20, height=1)
    start = np.concatenate([part.ravel() for part in case.start]).astype(np.float64)

    def step(clip_norm: float) -> np.ndarray:
        answer = fit(case, learning_rate=2.0, clip_norm=clip_norm)
        return np.concatenate([part.ravel() for part in parameters_of(answer)]) - start

    free, clipped = step(np.inf), step(0.01)
    norm = np.linalg.norm(free) / 2.0
    assert norm > 0.1
    assert np.linalg.norm(clipped) == pytest.approx(2.0 * 0.01, rel=1e-4)
    np.testing.assert_allclose(clipped, free * (0.01 / norm), rtol=1e-3, atol=1e-6)
    np.testing.assert_array_equal(step(1.01 * norm), free)


SCHEDULES = {
    "constant": ({"schedule": "constant"}, optimize.constant),
    "cosine": ({"schedule": "cosine"}, optimize.cosine),
    "cosine, 3 cycles": (
        {"schedule": "cosine", "schedule_cycles": 3},
        lambda t, n, lr: optimize.cosine(t, n, lr, restarts=3),
    ),
    "one_cycle": ({"schedule": "one_cycle"}, optimize.one_cycle),
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_step_lengths_follow_the_schedule(name):
    """With a gradient of 1 at every row a leaf falls by the rate, even in a small batch."""
    options, rate = SCHEDULES[name]
    case = make_case(10, height=1)
    case = Case(case.schema, case.X, case.y, np.ones_like(case.weight), case.start)
    case.start[0][:], case.start[1][:] = 0, 5  # all rows go right, and no split is pulled
    seen = []

    def pull(prediction, target):
        assert (prediction == prediction[0]).all()
        seen.append(float(prediction[0, 0]))
        return np.zeros(len(target), np.float32), np.ones_like(prediction)

    answer = fit(case, custom=pull, batch_size=4, max_epochs=4, **options)  # 4, 4 and 2 rows
    seen = [*seen[:12], answer["scores"][1, 0]]
    expected = np.array([rate(t, 12, 0.1) for t in range(12)])
    np.testing.assert_allclose(-np.diff(seen), expected, atol=1e-6)
    told = [record[4] for record in answer["history"][0]]
    np.testing.assert_allclose(told, expected[2::3], rtol=1e-6)


@pytest.mark.parametrize(
    ("penalty", "expected"),
    [
        ({"l2": 0.5}, lambda W: W * 0.95**6),
        ({"l1": 0.5}, lambda W: optimize.soft_threshold(W, 6 * 0.05)),
    ],
)
@pytest.mark.parametrize("optimizer", ["sgd", "rmsprop", "adam"])
def test_penalties_move_the_weights_of_splits_only(penalty, expected, optimizer):
    case = make_case(20)

    def no_pull(prediction, target):
        return np.zeros(len(target), np.float32), np.zeros_like(prediction)

    # epsilon 1: without a gradient of the data RMSprop and Adam take SGD's steps under l1.
    options = {"optimizer": optimizer, "epsilon": 1.0, "batch_size": 10, "max_epochs": 3}
    W, b, theta = parameters_of(fit(case, custom=no_pull, **options, **penalty))
    assert_same((b, theta), case.start[1:])
    if optimizer == "sgd" or "l1" in penalty:
        np.testing.assert_allclose(W, expected(case.start[0]), rtol=1e-5, atol=1e-7)
    assert (np.abs(W) < np.abs(case.start[0])).all()


def test_a_function_is_weighted_as_the_built_in_loss():
    case = make_case(60, n_outputs=2)
    valid = case.rows[45:]
    options = {"train": case.rows[:45], "valid": valid, "batch_size": 20, "max_epochs": 4}
    built_in, own = fit(case, **options), fit(case, custom=squared_error, **options)
    assert_close(parameters_of(own), parameters_of(built_in))
    np.testing.assert_allclose(own["history"][0], built_in["history"][0], rtol=1e-4)
    even = Case(case.schema, case.X, case.y, np.ones_like(case.weight), case.start)
    assert own["history"][0][0][2:4] != pytest.approx(
        fit(even, custom=squared_error, **options)["history"][0][0][2:4], rel=1e-3
    )


# Forms of the step, layers and linear leaves

ANNEALED = {"routing": "annealed", "sharpness": (0.5, 8.0)}
FORMS = {
    "sum, scaled": {"quantizer": "scaled"},
    "product": {"path": "product"},
    "sum, annealed": ANNEALED,
    "sum, annealed by factors": {**ANNEALED, "annealing": "log"},
    "product, softmax": {"path": "product_softmax"},
    "product, annealed": {**ANNEALED, "path": "product"},
    "PAT": {**ANNEALED, "path": "product_softmax"},
    "PAT by factors": {**ANNEALED, "path": "product_softmax", "annealing": "log"},
}


def form_at(progress: tuple[int, int], **options: Any) -> Relaxation:
    """Return the reference's form at step t of n of a run with the given options."""
    first, last = options.get("sharpness", (1.0, 1.0))
    sharpness = dgt.sharpness_at(*progress, first, last, options.get("annealing", "linear"))
    choices = {key: options[key] for key in ("path", "quantizer", "routing") if key in options}
    return Relaxation(**choices, sharpness=sharpness)


@pytest.mark.parametrize("penalties", [{}, {"l1": 0.02, "l2": 0.2, "clip_norm": 0.1}], ids=str)
@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("name", FORMS)
def test_every_form_steps_as_the_reference(name, n_outputs, penalties):
    case, options = make_case(50, height=3, n_outputs=n_outputs), FORMS[name]
    sizes = {"batch_size": 16, "max_epochs": 3}
    order = batches(case, **sizes)
    answer = fit(case, learning_rate=0.05, **sizes, **options, **penalties)
    forms = [form_at((t, 12), **options) for t in range(12)]
    expected, totals = follow(case, order, optimize.SGD, 12 * [0.05], forms=forms, **penalties)
    assert_close(parameters_of(answer), expected)
    found = [record[2] for record in answer["history"][0]]
    means = np.reshape(totals, (3, 4)).sum(axis=1) / case.weight.sum(dtype=np.float64)
    np.testing.assert_allclose(found, means, rtol=1e-4)


@pytest.mark.parametrize("name", ["PAT", "sum, annealed"])
def test_what_hardening_costs_is_told(name):
    """The criterion is that of the hard tree; the soft one, at the last s, is reported too."""
    case, options = make_case(60, height=3), FORMS[name]
    valid = case.rows[40:]
    for rows, split in ((case.rows, {}), (valid, {"train": case.rows[:40], "valid": valid})):
        answer = fit(case, max_epochs=4, **split, **options)
        tree, n_epochs = parameters_of(answer), answer["best_epoch"] + 1
        soft = form_at((n_epochs, 4), **options)
        assert answer["criterion"] == pytest.approx(mean_loss(case, tree, rows), rel=1e-4)
        told = answer["soft_criterion"]
        assert told == pytest.approx(mean_loss(case, tree, rows, soft), rel=1e-4)
        assert told != pytest.approx(answer["criterion"], rel=1e-3)
    assert np.isnan(fit(case, max_epochs=4)["soft_criterion"])


@pytest.mark.parametrize("name", ["PAT", "sum, annealed", "product"])
def test_a_function_gets_the_prediction_that_the_step_is_for(name):
    """It is called with the soft tree in steps and with the hard tree in validation."""
    case = make_case(60, n_outputs=2)
    options = {"train": case.rows[:45], "valid": case.rows[45:], "max_epochs": 4, **FORMS[name]}
    built_in, own = fit(case, **options), fit(case, custom=squared_error, **options)
    assert_close(parameters_of(own), parameters_of(built_in))
    np.testing.assert_allclose(own["history"][0], built_in["history"][0], rtol=1e-4)


@pytest.mark.parametrize("penalties", PENALTIES, ids=str)
@pytest.mark.parametrize("n_outputs", [1, 2])
@pytest.mark.parametrize("form", [{}, {"quantizer": "scaled"}, {"path": "product"}], ids=str)
def test_linear_leaves_step_as_the_reference(form, n_outputs, penalties):
    case = make_case(50, n_outputs=n_outputs, linear=True)
    sizes = {"batch_size": 16, "max_epochs": 3}
    order = batches(case, **sizes)
    answer = fit(case, learning_rate=0.05, **sizes, **form, **penalties)
    forms = [form_at((t, 12), **form) for t in range(12)]
    expected, _ = follow(case, order, optimize.SGD, 12 * [0.05], forms=forms, **penalties)
    assert answer["leaf_weights"].shape == (4, n_outputs, 3)
    assert_close(parameters_of(answer), expected)


def test_linear_leaves_with_annealed_routing_are_refused():
    with pytest.raises(ValueError, match="linear leaves need quantized routing"):
        fit(make_case(linear=True), routing="annealed")


def factors_of(case: Case, hidden: Sequence[int], seed: int = 3) -> list[np.ndarray]:
    """Return the factors that the engine makes of a start tree in its run 0."""
    W, b = case.start[:2]
    found = _probes.LinearLayers(*W.shape, hidden=hidden)
    found.start_from(np.column_stack([W, b]), seed)
    return found.factors()


@pytest.mark.parametrize("penalties", PENALTIES, ids=str)
@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize(("height", "hidden"), [(2, [6]), (3, [5, 9]), (1, [12, 4, 7])])
def test_layers_step_as_the_reference(height, hidden, name, penalties):
    """Columns are the fewer side at height 3, nodes at heights 1 and 2."""
    case = make_case(50, height=height)
    options, make = OPTIMIZERS[name]
    sizes = {"batch_size": 16, "max_epochs": 2}
    order = batches(case, **sizes)
    answer = fit(case, learning_rate=0.02, hidden=hidden, **sizes, **options, **penalties)
    factors = factors_of(case, hidden)
    expected, totals = follow(case, order, make, 8 * [0.02], factors=factors, **penalties)
    for found, part in zip(parameters_of(answer), expected, strict=True):
        np.testing.assert_allclose(found, part, rtol=1e-3, atol=1e-4)
    means = np.reshape(totals, (2, 4)).sum(axis=1) / case.weight.sum(dtype=np.float64)
    np.testing.assert_allclose([r[2] for r in answer["history"][0]], means, rtol=1e-4)


@pytest.mark.parametrize(
    ("name", "linear"),
    [(name, False) for name in FORMS] + [("product", True), ("sum, scaled", True)],
)
def test_layers_go_with_every_form_and_leaf(name, linear):
    form = FORMS[name]
    case, sizes = make_case(50, height=3, linear=linear), {"batch_size": 16, "max_epochs": 2}
    clip = {"clip_norm": 0.5, "l1": 0.01}
    answer = fit(case, learning_rate=0.05, hidden=[7, 6], **sizes, **form, **clip)
    forms = [form_at((t, 8), **form) for t in range(8)]
    order, factors = batches(case, **sizes), factors_of(case, [7, 6])
    expected, _ = follow(
        case, order, optimize.SGD, 8 * [0.05], forms=forms, factors=factors, **clip
    )
    for found, part in zip(parameters_of(answer), expected, strict=True):
        np.testing.assert_allclose(found, part, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("hidden", [[40], [30, 20], [12, 11, 60]])
def test_layers_start_from_the_given_tree(hidden):
    case = make_case(40, height=3, mixed=True)
    answer = fit(case, max_epochs=0, hidden=hidden)
    assert_close(parameters_of(answer), case.start)
    np.testing.assert_array_equal(answer["scores"], case.start[2])


def test_a_start_does_not_fit_into_layers_narrower_than_the_table():
    case = make_case(40, mixed=True)
    with pytest.raises(ValueError, match="every hidden size must be at least"):
        fit(case, hidden=[40, case.schema.n_columns])


@pytest.mark.parametrize("from_start", [False, True])
def test_collapsing_the_layers_changes_no_prediction(from_start):
    """The final predictions of the engine equal those of the tree bit for bit."""
    case, heard = make_case(200, height=4, mixed=True), []

    def listen(prediction, target):
        values, gradient = squared_error(prediction, target)
        if len(target) == 200:
            heard.append(prediction)
        return values, gradient

    options = {"hidden": [40, 20], "max_epochs": 5, "learning_rate": 0.01}
    answer = fit(case, custom=listen, from_start=from_start, **options)
    W, b, Theta = parameters_of(answer)
    columns = encode(case.schema, case.X).astype(np.float64)
    assert len(np.unique(heard[-1])) > 5
    assert np.abs(dgt.scores(columns, W, b)).min() > 1e-6  # no row is where rounding decides
    np.testing.assert_array_equal(heard[-1], Theta[dgt.leaf_of(dgt.scores(columns, W, b))])


def test_runs_of_layers_are_different_trees_and_the_same_for_any_number_of_threads():
    case = make_case(60, height=3)
    options = {"hidden": [9, 8], "max_epochs": 3, "restarts": 4, "keep_all": True}
    one, other = (fit(case, from_start=False, n_threads=n, **options) for n in (1, 3))
    assert len(one["trees"]) == len(other["trees"]) == 4
    for a, b in zip(one["trees"], other["trees"], strict=True):
        assert_same(parameters_of(a), parameters_of(b))
    assert len({tree["weights"][0, 0] for tree in one["trees"]}) == 4


# Members of a forest


@pytest.mark.parametrize(
    ("n_rows", "n_draws", "seed", "member"),
    [(1, 3, 0, 0), (10, 10, 1, 0), (7, 100, 2**40 + 3, 5), (1000, 700, 2**64 - 1, 31)],
)
def test_bootstrap_samples_equal_the_reference(n_rows, n_draws, seed, member):
    found = _native.bootstrap_counts(n_rows, n_draws, seed, member)
    assert sum(found) == n_draws
    np.testing.assert_array_equal(found, bootstrap_counts(n_rows, n_draws, seed, member))


def test_a_bootstrap_sample_leaves_out_the_share_that_it_should():
    """(1 - 1/n)^n of the rows are left out, and every row is drawn about equally often."""
    counts = np.array([_native.bootstrap_counts(500, 500, 7, member) for member in range(200)])
    assert (counts == 0).mean() == pytest.approx(np.exp(-1), abs=0.01)
    assert counts.mean(axis=0).std() == pytest.approx(1 / np.sqrt(200), rel=0.15)
    assert len(np.unique(counts, axis=0)) == 200


@pytest.mark.parametrize("fraction", [0.02, 0.7, 1.0, 2.5])
@pytest.mark.parametrize("member", [0, 3])
def test_a_member_learns_from_its_sample(fraction, member):
    """A row drawn several times appears once, with a larger weight."""
    case = make_case(60)
    train = case.rows[5:55]
    rows, weight = bootstrap_sample(train, case.weight, fraction, 3, member)
    sizes = {"train": train, "batch_size": 8, "max_epochs": 3}
    own = {"n_draws": max(1, int(np.floor(fraction * len(train) + 0.5))), "first_run": member}
    order = batches(case, **own, **sizes)
    passes = np.concatenate(order).reshape(3, -1)
    np.testing.assert_array_equal(np.sort(passes), np.tile(rows, (3, 1)))
    sampled = case.weight.astype(np.float64)
    sampled[rows] = weight
    expected, _ = follow(
        Case(case.schema, case.X, case.y, sampled, case.start),
        order,
        optimize.SGD,
        len(order) * [0.1],
    )
    assert_close(parameters_of(fit(case, **own, **sizes)), expected)


def test_a_sample_of_rows_that_count_nothing_leaves_the_start():
    case = make_case(20)
    case.weight[3:] = 0
    samples = (bootstrap_sample(case.rows, case.weight, 1.0, 3, i) for i in range(100))
    member = next(i for i, (_, weight) in enumerate(samples) if not weight.any())
    answer = fit(case, n_draws=len(case.rows), first_run=member, max_epochs=2)
    assert_same(parameters_of(answer), case.start)


def test_a_member_is_the_same_alone_and_in_company():
    """So a forest can be enlarged, and its trees can be learned on several threads."""
    case = make_case(60, height=3)
    options = {"max_epochs": 3, "n_draws": 48, "keep_all": True, "from_start": False}
    together = fit(case, restarts=5, n_threads=2, **options)["trees"]
    assert len({tree["weights"][0, 0] for tree in together}) == 5
    for member, tree in enumerate(together):
        (alone,) = fit(case, first_run=member, **options)["trees"]
        assert_same(parameters_of(alone), parameters_of(tree))
    more = fit(case, first_run=3, restarts=2, **options)
    assert_same(parameters_of(more["trees"][1]), parameters_of(together[4]))
    assert [run[0][0] for run in more["history"]] == [3, 4]
    assert more["best_run"] in (3, 4)


# The order of rows, and restarts


def test_every_pass_takes_every_training_row_once_in_a_new_order():
    case = make_case(40)
    train = case.rows[5:]
    heard = batches(case, train=train, batch_size=8, max_epochs=3, restarts=2)
    passes = np.concatenate(heard).reshape(6, 35)
    np.testing.assert_array_equal(np.sort(passes), np.tile(train, (6, 1)))
    assert len({tuple(order) for order in passes}) == 6


def test_restarts_are_different_trees():
    case = make_case(40)
    for from_start in (False, True):
        answer = fit(case, restarts=4, from_start=from_start, max_epochs=2, batch_size=8)
        assert len({run[0][2] for run in answer["history"]}) == 4
        assert len({run[1][2] for run in answer["history"]}) == 4


def test_a_restart_starts_from_the_given_tree_or_from_a_tree_of_its_own():
    """Checked on the first predictions of the run."""
    case = make_case(40)

    def first_predictions(from_start: bool) -> list[np.ndarray]:
        seen = []

        def listen(prediction, target):
            seen.append(np.unique(prediction))
            return None, np.zeros_like(prediction)

        fit(case, custom=listen, from_start=from_start, restarts=3, batch_size=40)
        return seen

    given, drawn = first_predictions(True), first_predictions(False)
    assert all(np.isin(leaves, case.start[2]).all() for leaves in given)
    assert len(np.unique(np.concatenate(drawn))) == sum(map(len, drawn))


@pytest.mark.parametrize("with_validation", [False, True])
def test_threads_share_the_restarts_and_change_nothing(with_validation):
    case = make_case(60)
    train, valid = (case.rows[:40], case.rows[40:]) if with_validation else (case.rows, None)
    options = {"train": train, "valid": valid, "restarts": 5, "max_epochs": 5, "batch_size": 8}
    one, *others = (fit(case, from_start=False, n_threads=n, **options) for n in (1, 2, 3))
    for other in others:
        assert_same(parameters_of(other), parameters_of(one))
        assert other["best_run"] == one["best_run"]
        np.testing.assert_array_equal(other["history"], one["history"])


def test_the_restart_of_smallest_training_loss_wins():
    """The loss of the final tree on all training rows, not the running mean of the epoch."""
    case = make_case(30, height=3)
    options = {"learning_rate": 0.3, "max_epochs": 6, "batch_size": 7, "seed": 6}
    answers = [fit(case, from_start=False, restarts=n, **options) for n in range(1, 9)]
    found = [mean_loss(case, parameters_of(answer), case.rows) for answer in answers]
    told = [run[-1][2] for run in answers[-1]["history"]]
    winners = [answer["best_run"] for answer in answers]
    assert len(set(winners)) > 2
    assert winners[-1] != int(np.argmin(told))
    for n, (loss, winner) in enumerate(zip(found, winners, strict=True)):
        if n == 0 or winner == n:  # the newest tree is the best so far
            assert loss < min(found[:n], default=np.inf)
        else:
            assert_same(parameters_of(answers[n]), parameters_of(answers[n - 1]))


def test_a_tree_that_loses_has_a_larger_training_loss():
    """The losses that the engine compares, observed by a custom loss at the end of each run."""
    case = make_case(30, height=3)
    at_the_end = []

    def listen(prediction, target):
        values, gradient = squared_error(prediction, target)
        if len(target) == 30:
            at_the_end.append(np.average(values, weights=case.weight))
        return values, gradient

    options = {"learning_rate": 0.3, "max_epochs": 6, "batch_size": 7, "seed": 6}
    answer = fit(case, custom=listen, from_start=False, restarts=8, **options)
    assert len(at_the_end) == 8
    assert answer["best_run"] == int(np.argmin(at_the_end))
    assert mean_loss(case, parameters_of(answer), case.rows) == pytest.approx(
        min(at_the_end), rel=1e-5
    )


# What is kept, and when a run ends


def test_without_validation_the_last_tree_is_kept():
    case = make_case(40)
    options = {"learning_rate": 2.0, "batch_size": 8}
    answer = fit(case, max_epochs=5, **options)
    told = [record[2] for record in answer["history"][0]]
    assert min(told) < told[-1]  # so a choice by this loss would be another one
    assert answer["best_epoch"] == 4
    assert np.isnan([record[3] for record in answer["history"][0]]).all()
    ended = fit(case, max_epochs=9, callback=lambda restart, epoch, *_: epoch == 4, **options)
    assert_same(parameters_of(ended), parameters_of(answer))
    assert differ(parameters_of(fit(case, max_epochs=4, **options)), parameters_of(answer))


def test_no_pass_keeps_the_start():
    case = make_case(40, mixed=True)
    answer = fit(case, max_epochs=0)
    assert_same(parameters_of(answer), case.start)
    assert answer["history"] == [[]]


def validated_by(values: Sequence[float], seen: list[int]) -> Callable[..., Any]:
    """Return a loss with the given mean over 11 rows, epoch by epoch, and 0 for other batches.

    Leaves fall by the rate at every batch, so every pass ends with another tree.
    """
    told = iter(values)

    def loss(prediction, target):
        value = 0.0
        if len(target) == 11:
            value = next(told)
            seen.append(len(seen))
        return np.full(len(target), value, np.float32), np.ones_like(prediction)

    return loss


@pytest.mark.parametrize(
    ("values", "patience", "n_passes", "best"),
    [
        (40 * [1.0], 3, 4, 0),  # the same again is not better
        (40 * [1.0], 1, 2, 0),
        ([*range(40)], 6, 7, 0),
        ([5, 4, 3, 3, 3, 3, 2] + 40 * [9], 4, 11, 6),
        ([5, 4, 3, 3, 3, 3, 2] + 40 * [9], 3, 6, 2),
        ([*range(40, 0, -1)], 1, 20, 19),
        (40 * [1.0], 0, 20, 0),  # no early stopping
    ],
)
def test_patience_counts_the_passes_since_the_best(values, patience, n_passes, best):
    case, seen = make_case(40, height=1), []
    options = {"train": case.rows[11:], "valid": case.rows[:11], "max_epochs": 20}
    answer = fit(case, custom=validated_by(values, seen), patience=patience, **options)
    assert len(seen) == len(answer["history"][0]) == n_passes
    assert [record[3] for record in answer["history"][0]] == pytest.approx(values[:n_passes])
    assert answer["best_epoch"] == best


@pytest.mark.parametrize(
    ("part", "max_epochs", "n_passes"), [(0.25, 20, 6), (0.3, 9, 4), (0.01, 20, 2), (5.0, 7, 7)]
)
def test_patience_of_an_estimator_is_a_part_of_its_passes(part, max_epochs, n_passes):
    case, seen = make_case(110), []
    model = DGTRegressor(
        loss=validated_by(50 * [1.0], seen),
        max_epochs=max_epochs,
        n_restarts=1,
        early_stopping=True,
        training=Training(patience=part),
        random_state=0,
    ).fit(case.X, case.y)
    assert len(seen) == model.n_iter_ == len(model.history_) == n_passes
    assert model.tree_.record["best_pass"] == 1


NOISY = {
    "max_depth": 3,
    "max_epochs": 30,
    "batch_size": 16,
    "learning_rate": 0.05,
    "early_stopping": True,
    "validation_fraction": 0.3,
    "random_state": 0,
}


@pytest.fixture
def noisy(rng):
    X = rng.normal(size=(150, 3))
    y = X[:, 0] + (X[:, 1] > 0) + rng.normal(size=150)
    return X, y, rng.uniform(0.1, 3.0, size=150)


def tree_arrays(tree) -> Parameters:
    return tree.weights, tree.bias, tree.children, tree.values, tree.counts


@pytest.mark.parametrize("restarts", [1, 3])
def test_a_run_ended_at_its_best_pass_gives_the_same_tree(restarts, noisy):
    X, y, weight = noisy
    training = Training(patience=1.0)
    model = DGTRegressor(n_restarts=restarts, training=training, **NOISY).fit(X, y, weight)
    runs = [[e for e in model.history_ if e.restart == r] for r in range(restarts)]
    best = [min(run, key=lambda e: e.validation_loss) for run in runs]
    assert any(0 < e.epoch < 29 for e in best)

    def stop(epoch):
        return epoch.epoch == best[epoch.restart].epoch

    ended = DGTRegressor(n_restarts=restarts, training=training, callbacks=stop, **NOISY)
    ended.fit(X, y, weight)
    assert_same(tree_arrays(ended.tree_), tree_arrays(model.tree_))
    winner = min(best, key=lambda e: e.validation_loss)
    assert winner.epoch < 29
    assert model.tree_.record["best_pass"] == ended.n_iter_ == winner.epoch + 1
    assert model.tree_.record["validation_loss"] == winner.validation_loss
    assert model.tree_.record["train_loss"] == winner.train_loss


def test_the_recorded_loss_is_that_of_the_tree_on_the_validation_rows(noisy, monkeypatch):
    posed = []
    actual = DGT.fit

    def fit(learner, task, *args, **options):
        posed.append(task)
        return actual(learner, task, *args, **options)

    monkeypatch.setattr(DGT, "fit", fit)
    X, y, weight = noisy
    model = DGTRegressor(n_restarts=2, **NOISY).fit(X, y, weight)
    valid = posed[0].valid
    assert len(valid) == 45
    error = (model.predict(X[valid]) - y[valid]) / posed[0].target_scale
    recorded = model.tree_.record["validation_loss"]
    assert recorded == pytest.approx(np.average(error**2, weights=weight[valid]), rel=1e-5)
    assert recorded != pytest.approx(np.mean(error**2), rel=1e-3)


@pytest.mark.parametrize(
    "options",
    [
        {"momentum": 0.5},
        {"l1": 0.05},
        {"l2": 0.05},
        {"learning_rate": 0.04},
        {"batch_size": 15},
        {"training": Training(decay=0.5)},
        {"training": Training(epsilon=0.1)},
        {"training": Training(clip_norm=0.02)},
        {"training": Training(clip_norm=None)},
        {"training": Training(schedule="constant")},
        {"training": Training(schedule="one_cycle")},
        {"training": Training(schedule_restarts=0)},
        {"training": Training(optimizer="sgd")},
        {"training": Training(optimizer="adam")},
    ],
    ids=str,
)
def test_every_option_changes_the_tree(options, noisy):
    X, y, _ = noisy
    plain = {**NOISY, "early_stopping": False, "max_epochs": 4}
    usual = DGTRegressor(**plain).fit(X, y).tree_
    other = DGTRegressor(**{**plain, **options}).fit(X, y).tree_
    assert not np.array_equal(usual.weights, other.weights)


# Tables


@pytest.mark.parametrize(
    "types", [(np.int32, np.int64), (np.int64, np.int32), (np.uint16, np.int16)]
)
def test_sparse_tables_live_while_they_are_read(types):
    """Indices of other types are converted, and the copies are kept alive.

    While it learns, the table gives up its arrays, and the memory of what has died is written over.
    """
    case = make_case(400)
    kept = np.where(np.abs(case.X) > 0.6, case.X, 0).astype(np.float32)
    table = sparse.csr_matrix(kept)
    table.indices, table.indptr = table.indices.astype(types[0]), table.indptr.astype(types[1])
    sizes = [n * size for n in (table.nnz, len(kept) + 1) for size in (4, 8)]
    garbage: list[np.ndarray] = []

    def free_and_overwrite(*_: Any) -> bool:
        table.data = table.indices = table.indptr = np.zeros(1, dtype=np.int32)
        garbage.extend(np.full(n, 127, dtype=np.uint8) for n in sizes for _ in range(20))
        return False

    options = {"train": case.rows, "max_epochs": 5, "batch_size": 8}
    found = fit(replace(case, X=table), callback=free_and_overwrite, **options)
    assert garbage
    assert_same(parameters_of(found), parameters_of(fit(replace(case, X=kept), **options)))


# Starting from a tree


def log_loss(tree, X, y, weight) -> float:
    p = tree.predict_proba(X)[np.arange(len(y)), y]
    return float(np.average(-np.log(p), weights=weight))


def mixed_frame(rng: np.random.Generator, n: int, center: float, spread: float, missing: float):
    """Categories before numbers, which is not the order of the engine."""
    pd = pytest.importorskip("pandas")
    is_missing = rng.random((2, n)) < missing
    kind = np.where(is_missing[0], -1, rng.integers(0, 3, n))
    return pd.DataFrame(
        {
            "kind": pd.Categorical.from_codes(kind, ["a", "b", "c"]),
            "size": np.where(is_missing[1], np.nan, rng.normal(center, spread, n)),
            "tone": pd.Categorical.from_codes(rng.integers(0, 2, n), ["x", "y"]),
            "age": rng.normal(-center, 2 * spread, n),
        }
    )


@pytest.mark.parametrize(
    ("missing", "moved"),
    [
        (0.0, True),
        (0.2, False),
        (0.2, True),
    ],
)
def test_a_start_predicts_as_the_tree_it_came_from(missing, moved, rng):
    """Also on a table whose columns have other centers and scales."""
    old = mixed_frame(rng, 160, 0.0, 1.0, missing)
    new = mixed_frame(rng, 160, 3.0, 9.0, missing) if moved else old
    options = {"max_depth": 4, "max_epochs": 1, "early_stopping": False, "random_state": 0}
    start = DGTClassifier(**options).fit(old, rng.integers(0, 2, 160))
    assert len(np.unique(start.apply(new))) > 4
    y, weight = rng.integers(0, 2, 160), rng.uniform(0.2, 3.0, 160)
    still = {"learning_rate": 1e-12, "batch_size": 50, "init": start}
    # All weights equal where nothing is to move: they are part of a column's center.
    weight = weight if moved else np.ones(160)
    model = DGTClassifier(**still, **options).fit(new, y, weight)
    before, after = start.tree_.schema.features, model.tree_.schema.features
    for a, b in zip(before, after, strict=True):
        if a.kind == "numeric":
            assert (abs(a.center - b.center) > 1) == (a.scale != b.scale) == moved
    np.testing.assert_allclose(model.predict_proba(new), start.predict_proba(new), atol=1e-5)
    # The engine itself sent the rows where the start sends them.
    expected = log_loss(start.tree_, new, y, weight)
    assert model.history_[0].train_loss == pytest.approx(expected, rel=1e-4)
