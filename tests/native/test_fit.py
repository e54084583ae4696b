"""`fit` checks its arguments for every method: an error names the wrong argument."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hardwood import _native
from hardwood.table import Schema

N, D, K = 30, 3, 2
LOOP = {
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
    "batch_size": 8,
    "max_epochs": 2,
    "patience": 0,
    "hidden": [],
}
OWN: dict[str, dict[str, Any]] = {
    "dgt": {
        "height": 2,
        "linear_leaves": False,
        "path": "sum",
        "quantizer": "sign",
        "routing": "quantized",
        "sharpness": (1.0, 2.0),
        "annealing": "log",
    },
    "tel": {"n_trees": 2, "depth": 2, "activation": "logistic", "gamma": 1.0, "batch_norm": True},
    "non_greedy": {
        "children": np.array([[1, -2 - 1], [-1, -2]], dtype=np.int32),
        "nu": [1.0],
        "inference": "exact",
        "stable": True,
        "max_features": 2,
        "feature_of_column": list(range(D)),
    },
    "reinforced": {
        "parents": np.array([-1, 0, 0, 1, 1, 1], dtype=np.int32),
        "n_actions": 0,
        "estimator": "sampled",
        "n_samples": 2,
        "baseline": "value",
        "entropy": 0.1,
        "first_temperature": 1.0,
        "last_temperature": 1.0,
        "annealed_at": 0.5,
        "policy_scale": 1.0,
        "leaf_scale": 0.1,
    },
}
SHAPES = {  # weights, bias, scores
    "dgt": ((3, D), (3,), (4, K)),
    "tel": ((2, 3, D), (2, 3), (2, 4, K)),
    "non_greedy": ((2, D), (2,), (3, K)),
    "reinforced": ((3, D), (3,), (4, K)),
}
every_method = pytest.mark.parametrize("method", OWN)


def start_of(method: str, **others: tuple[int, ...]) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(0)
    shapes = dict(zip(("weights", "bias", "scores"), SHAPES[method], strict=True)) | others
    return tuple(rng.normal(size=shape).astype(np.float32) for shape in shapes.values())


def fit(of: str, /, **others: Any) -> dict[str, Any]:
    """Call with some arguments and options replaced."""
    rng = np.random.default_rng(1)
    options = {**LOOP, **OWN[of]}
    options |= {name: others.pop(name) for name in list(others) if name in options}
    arguments: dict[str, Any] = {
        "encoder": Schema.numeric(D).encoder,
        "matrix": rng.normal(size=(N, D)).astype(np.float32),
        "y": rng.integers(0, K, (N, 1)).astype(np.float32),
        "weight": np.ones(N, dtype=np.float32),
        "train": np.arange(20),
        "valid": np.arange(20, N),
        "n_outputs": K,
        "loss": "cross_entropy",
        "loss_parameter": 0.0,
        "custom": None,
        "start": start_of(of),
        "first_run": 0,
        "n_runs": 1,
        "n_draws": None,
        "keep_all": False,
        "seed": 1,
        "n_threads": 1,
        "callback": None,
        "options": options,
    }
    return _native.fit(**({"method": of} | arguments | others))


@every_method
def test_arrays_have_the_shapes_of_the_method(method):
    runs = {"n_runs": 3, "keep_all": True, "n_draws": 11, "n_threads": 2, "first_run": 4}
    answer = fit(method, **runs, **({"nu": [1.0, 2.0, 3.0]} if method == "non_greedy" else {}))
    assert len(answer["trees"]) == len(answer["history"]) == 3
    assert answer["best_run"] in (4, 5, 6)
    assert not answer["interrupted"]
    for tree in answer["trees"]:
        assert tuple(tree[part].shape for part in ("weights", "bias", "scores")) == SHAPES[method]
        assert tree["leaf_weights"] is None
        assert tree["best_epoch"] in (0, 1)
        assert np.isfinite(tree["criterion"])


@every_method
def test_no_epoch_returns_the_start(method):
    start = start_of(method)
    (tree,) = fit(method, start=start, max_epochs=0)["trees"]
    for part, given in zip(("weights", "bias", "scores"), start, strict=True):
        np.testing.assert_array_equal(tree[part], given)


@every_method
def test_a_run_has_its_own_learning_rate(method):
    nu = {"nu": [1.0, 1.0]} if method == "non_greedy" else {}
    answer = fit(method, n_runs=2, keep_all=True, learning_rate=[0.0, 0.1], **nu)
    still, moved = answer["trees"]
    assert {record[4] for record in answer["history"][0]} == {0.0}
    np.testing.assert_array_equal(still["scores"], start_of(method)[2])
    assert not np.array_equal(moved["scores"], still["scores"])


@every_method
def test_every_option_must_be_given_and_none_may_be_unknown(method):
    options = {**LOOP, **OWN[method]}
    for name in options:
        less = {key: value for key, value in options.items() if key != name}
        with pytest.raises(ValueError, match=f"option '{name}' is missing"):
            fit(method, options=less)
        with pytest.raises(ValueError, match=f"option '{name}' has another type"):
            fit(method, options={**options, name: object()})
    with pytest.raises(ValueError, match="option 'color' is unknown"):
        fit(method, options={**options, "color": 1})


BAD_ROWS = np.array([0, N])


def mistake(part: Any) -> str:
    """Return a stable name for a wrong value: addresses differ between processes."""
    return part if isinstance(part, str) else "-".join(part)


MISTAKES: list[tuple[dict[str, Any], str]] = [
    ({"y": np.full((N, 1), K, np.float32)}, "class index"),
    ({"y": np.full((N, 1), -1, np.float32)}, "class index"),
    ({"y": np.full((N, 1), np.nan, np.float32)}, "not finite"),
    ({"y": np.zeros((N, 2), np.float32)}, "columns"),
    ({"y": np.zeros((N, 0), np.float32), "loss": "squared_error"}, "columns"),
    ({"y": np.zeros((N - 1, 1), np.float32)}, "length"),
    ({"weight": np.ones(N + 1, np.float32)}, "length"),
    ({"weight": np.full(N, -1, np.float32)}, "weight"),
    ({"weight": np.full(N, np.inf, np.float32)}, "weight"),
    ({"matrix": np.zeros((N, D + 1), np.float32)}, "features"),
    ({"matrix": np.zeros((N, D), np.int32)}, "float32 or float64"),
    ({"train": BAD_ROWS}, "row index"),
    ({"train": -BAD_ROWS}, "row index"),
    ({"train": np.arange(0)}, "no rows"),
    ({"valid": BAD_ROWS}, "row index"),
    ({"n_outputs": 0}, "n_outputs"),
    ({"n_outputs": 2**30}, "n_outputs"),
    ({"n_outputs": 2**24}, "too large|another shape"),
    ({"loss": "none"}, "unknown loss"),
    ({"loss_parameter": np.nan}, "loss_parameter"),
    ({"loss": "custom"}, "custom|one of the engine"),
    ({"custom": lambda f, y: (None, f)}, "custom"),
    ({"first_run": -1}, "first_run"),
    ({"n_runs": 0}, "n_runs"),
    ({"n_draws": 0}, "n_draws"),
    ({"n_draws": -3}, "n_draws"),
    ({"n_threads": 0}, "n_threads"),
    ({"n_threads": -1}, "n_threads"),
    ({"n_threads": 2**31 - 1}, "n_threads"),
    ({"start": ()}, "a start is"),
    ({"start": (1, 2, 3)}, "arrays"),
    ({"batch_size": 0}, "'batch_size' must lie between"),
    ({"max_epochs": -1}, "'max_epochs' must lie between"),
    ({"schedule_cycles": 0}, "'schedule_cycles' must lie between"),
    ({"patience": -1}, "'patience' must lie between"),
    ({"hidden": [0]}, "'hidden' must lie between"),
    ({"learning_rate": np.nan}, "'learning_rate' must lie between"),
    ({"learning_rate": [0.1, 0.2]}, "'learning_rate' must have 1 entries, got 2"),
    ({"learning_rate": [-1.0]}, "'learning_rate' must lie between"),
    ({"l2": -1.0}, "'l2' must lie between"),
    ({"optimizer": "none"}, "unknown optimizer"),
    ({"schedule": "none"}, "unknown schedule"),
]


@every_method
@pytest.mark.parametrize(("others", "message"), MISTAKES, ids=mistake)
def test_what_all_methods_take_is_checked(method, others, message):
    with pytest.raises(ValueError, match=message):
        fit(method, **others)


def test_an_unknown_method_is_refused():
    with pytest.raises(ValueError, match="unknown method 'none'"):
        fit("dgt", method="none")


@every_method
@pytest.mark.parametrize("part", ["weights", "bias", "scores"])
def test_a_start_of_another_shape_is_refused(method, part):
    sizes = dict(zip(("weights", "bias", "scores"), SHAPES[method], strict=True))
    more = (*sizes[part][:-1], sizes[part][-1] + 1)
    for shape in (more, sizes[part][:-1], (*sizes[part], 1)):
        with pytest.raises(ValueError, match="another shape"):
            fit(method, start=start_of(method, **{part: shape}))
    with pytest.raises(ValueError, match="another shape"):
        fit(method, start=start_of(method, leaf_weights=(4, K, D)))


OWN_MISTAKES: list[tuple[str, dict[str, Any], str]] = [
    ("dgt", {"height": 0}, "'height' must lie between"),
    ("dgt", {"height": 21}, "'height' must lie between"),
    ("dgt", {"sharpness": (2.0, 1.0)}, "sharpness"),
    ("dgt", {"sharpness": (1.0,)}, "'sharpness' must have 2 entries"),
    ("dgt", {"routing": "annealed", "linear_leaves": True}, "linear leaves need quantized"),
    ("tel", {"n_trees": 0}, "'n_trees' must lie between"),
    ("tel", {"n_trees": 2**24, "depth": 20}, "too large"),
    ("tel", {"depth": 21}, "'depth' must lie between"),
    ("tel", {"gamma": 0.0}, "'gamma' must lie between"),
    ("tel", {"hidden": [4]}, "layers"),
    ("non_greedy", {"nu": [1.0, 1.0]}, "'nu' must have 1 entries, got 2"),
    ("non_greedy", {"nu": [0.0]}, "'nu' must lie between"),
    ("non_greedy", {"children": np.zeros((3, 3), np.int32)}, "two columns"),
    ("non_greedy", {"children": np.array([[1, 1], [-1, -2]], np.int32)}, "children must be a tree"),
    ("non_greedy", {"children": np.array([[0, -1]], np.int32)}, "children must be a tree"),
    ("non_greedy", {"children": np.array([[-1, -9]], np.int32)}, "children must be a tree"),
    ("non_greedy", {"max_features": -1}, "'max_features' must lie between"),
    ("non_greedy", {"feature_of_column": [0, 1, D]}, "'feature_of_column' must lie between"),
    ("non_greedy", {"feature_of_column": [0]}, "'feature_of_column' must have 3 entries"),
    ("reinforced", {"parents": np.array([], np.int32)}, "parents must be a tree"),
    ("reinforced", {"parents": np.array([-1, 1, 0], np.int32)}, "parents must be a tree"),
    ("reinforced", {"n_actions": 2}, "but for actions"),
    ("reinforced", {"n_actions": -1}, "'n_actions' must lie between"),
    ("reinforced", {"n_samples": 0}, "'n_samples' must lie between"),
    ("reinforced", {"n_samples": 1, "baseline": "leave_one_out"}, "'n_samples' must lie between"),
    ("reinforced", {"annealed_at": 0.0}, "'annealed_at' must lie between"),
    ("reinforced", {"first_temperature": np.inf}, "'first_temperature' must lie between"),
]


@pytest.mark.parametrize(("method", "others", "message"), OWN_MISTAKES, ids=mistake)
def test_what_a_method_takes_is_checked(method, others, message):
    with pytest.raises(ValueError, match=message):
        fit(method, **others)


@every_method
def test_a_batch_of_more_rows_than_there_are_is_all_rows(method):
    found, expected = (fit(method, batch_size=size)["trees"][0] for size in (2**31 - 1, 20))
    for part in ("weights", "bias", "scores"):
        np.testing.assert_array_equal(found[part], expected[part])


@pytest.mark.parametrize("answer", [None, 1, (None, None), (None, "x"), [1, 2, 3]], ids=str)
@pytest.mark.parametrize("method", ["dgt", "tel"])
def test_a_custom_loss_must_return_values_and_a_gradient(method, answer):
    with pytest.raises(ValueError, match="custom loss must return"):
        fit(method, loss="custom", custom=lambda prediction, target: answer)


@every_method
@pytest.mark.parametrize("answer", [None, "no", 2], ids=str)
def test_a_callback_must_return_whether_to_stop(method, answer):
    with pytest.raises(ValueError, match="callback must return"):
        fit(method, callback=lambda *figures: answer)
