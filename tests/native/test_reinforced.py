"""Kernels of reinforced trees against the NumPy reference: sampled and exact gradients."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardwood.learn.reinforced import Reinforced, perfect_parents
from reference import reinforced as reference
from reference.probes import policy_gradient

LOSSES = {
    "cross_entropy": 0.0,
    "hinge": 0.0,
    "squared_codes": 0.0,
    "logistic": 0.0,
    "squared_error": 0.0,
    "absolute_error": 0.0,
    "huber": 0.7,
    "quantile": 0.2,
    "poisson": 0.0,
}
CLASS_LOSSES = ("cross_entropy", "hinge", "squared_codes")


def random_parents(rng: np.random.Generator, n_inner: int, most_children: int) -> tuple[int, ...]:
    """Return a random topology: leaves get children, one after the other, in the order of nodes."""
    parents = [-1]
    leaves = [0]
    for _ in range(n_inner):
        # Parents come before their children whatever leaf is chosen: new nodes are the last.
        chosen = leaves.pop(int(rng.integers(len(leaves))))
        for _ in range(int(rng.integers(1, most_children + 1))):
            leaves.append(len(parents))
            parents.append(chosen)
    return tuple(parents)


def random_policy(
    rng, parents, n_columns, n_outputs, scale=1.0, temperature=1.0
) -> reference.Policy:
    m = len(parents) - len(set(parents[1:])) - 1  # leaves less one
    return reference.Policy(
        parents,
        (scale * rng.normal(size=(m, n_columns))).astype(np.float32),
        (scale * rng.normal(size=m)).astype(np.float32),
        rng.normal(size=(m + 1, n_outputs)).astype(np.float32),
        temperature,
    )


def random_targets(rng, loss, n, n_outputs) -> np.ndarray:
    if loss in CLASS_LOSSES:
        return rng.integers(n_outputs, size=(n, 1)).astype(np.float32)
    if loss == "logistic":
        return rng.integers(2, size=(n, n_outputs)).astype(np.float32)
    if loss == "poisson":
        return rng.poisson(2.0, size=(n, n_outputs)).astype(np.float32)
    return rng.normal(size=(n, n_outputs)).astype(np.float32)


def depth_of(parents) -> int:
    depth = [0]
    for parent in parents[1:]:
        depth.append(depth[parent] + 1)
    return max(depth)


def engine_gradient(
    policy,
    X,
    Y,
    weight,
    loss,
    *,
    uniforms=None,
    values=None,
    seed=0,
    n_threads=1,
    entropy=0.0,
    gradient="sampled",
    by_lanes=None,
    **options,
):
    config = Reinforced(
        temperature=(policy.temperature, policy.temperature),
        gradient=gradient,
        **options,
    )
    return policy_gradient(
        X,
        Y,
        weight,
        np.array(policy.parents, dtype=np.int32),
        (policy.W, policy.b, policy.alpha),
        loss,
        LOSSES[loss],
        uniforms,
        values,
        seed,
        n_threads,
        config.policy_options(entropy, config.gradient, config.baseline)
        | ({} if by_lanes is None else {"by_lanes": by_lanes}),
    )


def summed(gradients, weight):
    """Return the weighted mean over the rows."""
    share = weight / len(weight)
    return {
        "weights": sum(w * g.W for w, g in zip(share, gradients, strict=True)),
        "bias": sum(w * g.b for w, g in zip(share, gradients, strict=True)),
        "scores": sum(w * g.alpha for w, g in zip(share, gradients, strict=True)),
    }


def assert_close(found, expected):
    for part, array in expected.items():
        tolerance = 2e-4 * (1.0 + np.abs(array).max(initial=0.0))
        np.testing.assert_allclose(found[part], array, atol=tolerance, err_msg=part)


CASES = st.fixed_dictionaries(
    {
        "seed": st.integers(0, 2**32 - 1),
        "n_inner": st.integers(0, 6),
        "most_children": st.integers(2, 4),
        "n_columns": st.integers(1, 20),
        "n_outputs": st.integers(2, 4),
        "n_trajectories": st.integers(2, 6),
        "scale": st.sampled_from([0.1, 1.0, 5.0]),
        "temperature": st.sampled_from([0.5, 1.0, 3.0]),
        "entropy": st.sampled_from([0.0, 0.3]),
        "loss": st.sampled_from(list(LOSSES)),
        "baseline": st.sampled_from(["none", "leave_one_out", "value"]),
    }
)


def drawn_case(case, n=5):
    rng = np.random.default_rng(case["seed"])
    parents = random_parents(rng, case["n_inner"], case["most_children"])
    policy = random_policy(
        rng, parents, case["n_columns"], case["n_outputs"], case["scale"], case["temperature"]
    )
    X = rng.normal(size=(n, case["n_columns"])).astype(np.float32)
    Y = random_targets(rng, case["loss"], n, case["n_outputs"])
    weight = rng.uniform(0.0, 2.0, size=n).astype(np.float32)
    return rng, policy, X, Y, weight


@given(CASES, st.booleans())
def test_the_sampled_gradient_is_that_of_the_reference(case, by_lanes):
    rng, policy, X, Y, weight = drawn_case(case)
    uniforms = rng.random(
        (len(X), depth_of(policy.parents), case["n_trajectories"]), dtype=np.float32
    )
    n_values = case["n_outputs"] if case["loss"] in CLASS_LOSSES else 1
    values = rng.normal(size=(len(policy.parents), n_values)).astype(np.float32)
    is_value = case["baseline"] == "value"
    found = engine_gradient(
        policy,
        X,
        Y,
        weight,
        case["loss"],
        uniforms=uniforms,
        values=values if is_value else None,
        n_trajectories=case["n_trajectories"],
        baseline=case["baseline"],
        entropy=case["entropy"],
        by_lanes=by_lanes,
    )
    expected = [
        reference.sampled_gradient(
            policy,
            x,
            y,
            u,
            loss=case["loss"],
            parameter=LOSSES[case["loss"]],
            baseline=case["baseline"],
            entropy=case["entropy"],
            value=lambda node, y=y: values[node, int(y[0]) if n_values > 1 else 0],
        )
        for x, y, u in zip(X, Y, uniforms, strict=True)
    ]
    assert_close(found, summed(expected, weight))


@given(CASES)
def test_the_exact_gradient_is_that_of_the_reference(case):
    _, policy, X, Y, weight = drawn_case(case)
    found = engine_gradient(
        policy, X, Y, weight, case["loss"], gradient="exact", entropy=case["entropy"]
    )
    options = {
        "loss": case["loss"],
        "parameter": LOSSES[case["loss"]],
        "entropy": case["entropy"],
    }
    rows = list(zip(X, Y, strict=True))
    expected = [reference.exact_gradient(policy, x, y, **options) for x, y in rows]
    assert_close(found, summed(expected, weight))
    losses = [
        reference.expected_cost(policy, x, y, **(options | {"entropy": 0.0})) for x, y in rows
    ]
    assert found["loss"] == pytest.approx((weight / len(X)) @ losses, rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("loss", ["cross_entropy", "squared_error"])
@pytest.mark.parametrize("entropy", [0.0, 0.4])
def test_the_exact_gradient_of_the_reference_is_the_derivative(loss, entropy):
    rng = np.random.default_rng(3)
    policy = random_policy(rng, (-1, 0, 0, 0, 1, 1, 3, 3), 3, 2, temperature=1.7)
    policy = reference.Policy(
        policy.parents,
        *(a.astype(np.float64) for a in (policy.W, policy.b, policy.alpha)),
        policy.temperature,
    )
    x, y = rng.normal(size=3), random_targets(rng, loss, 1, 2)[0]
    options = {"loss": loss, "parameter": 0.0, "entropy": entropy}
    gradient = reference.exact_gradient(policy, x, y, **options)
    for array, slope in (
        (policy.W, gradient.W),
        (policy.b, gradient.b),
        (policy.alpha, gradient.alpha),
    ):
        for at in np.ndindex(array.shape):
            step, before = 1e-6, array[at]
            array[at] = before + step
            up = reference.expected_cost(policy, x, y, **options)
            array[at] = before - step
            down = reference.expected_cost(policy, x, y, **options)
            array[at] = before
            assert slope[at] == pytest.approx((up - down) / (2 * step), abs=1e-6)


@pytest.mark.parametrize("n_columns", [3, 300])
@pytest.mark.parametrize("baseline", ["leave_one_out", "value"])
def test_rows_and_lanes_draw_the_same_trajectories(baseline, n_columns):
    rng = np.random.default_rng(4)
    policy = random_policy(rng, perfect_parents(6), n_columns, 5, scale=0.1)
    X = rng.normal(size=(50, n_columns)).astype(np.float32)
    Y, weight = rng.integers(5, size=(50, 1)).astype(np.float32), np.ones(50, np.float32)
    by_rows, by_lanes = (
        engine_gradient(
            policy, X, Y, weight, "cross_entropy", baseline=baseline, entropy=0.1, by_lanes=lanes
        )
        for lanes in (False, True)
    )
    assert by_rows["loss"] == pytest.approx(by_lanes["loss"], rel=1e-5)
    for part in ("weights", "bias", "scores"):
        np.testing.assert_allclose(by_rows[part], by_lanes[part], atol=2e-5)


@pytest.mark.parametrize(
    ("gradient", "by_lanes"), [("sampled", False), ("sampled", True), ("exact", None)]
)
def test_threads_do_not_change_a_bit(gradient, by_lanes):
    rng = np.random.default_rng(0)
    policy = random_policy(rng, perfect_parents(7), 300, 3)
    X = rng.normal(size=(500, 300)).astype(np.float32)
    Y = rng.integers(3, size=(500, 1)).astype(np.float32)
    weight = np.ones(500, np.float32)
    one, three = (
        engine_gradient(
            policy,
            X,
            Y,
            weight,
            "cross_entropy",
            gradient=gradient,
            by_lanes=by_lanes,
            n_threads=n,
            seed=5,
        )
        for n in (1, 3)
    )
    for part in ("weights", "bias", "scores"):
        np.testing.assert_array_equal(one[part], three[part])
    assert one["loss"] == three["loss"]


def test_another_seed_draws_other_trajectories():
    rng = np.random.default_rng(0)
    policy = random_policy(rng, perfect_parents(3), 4, 2, scale=0.1)
    X = rng.normal(size=(20, 4)).astype(np.float32)
    Y, weight = rng.integers(2, size=(20, 1)).astype(np.float32), np.ones(20, np.float32)
    first, again, other = (
        engine_gradient(policy, X, Y, weight, "cross_entropy", seed=seed)["weights"]
        for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


@pytest.mark.parametrize(
    "parents", [[], [0], [-1, 1], [-1, 2, 0], [-1, -1], [0, 0]], ids=lambda p: str(p)
)
def test_what_is_no_tree_is_refused(parents):
    one = np.zeros((1, 1), np.float32)
    with pytest.raises(ValueError, match="parents must be a tree"):
        policy_gradient(
            one,
            one,
            one[0],
            np.array(parents, dtype=np.int32),
            (one, one[0], one),
            "squared_error",
            0.0,
            None,
            None,
            0,
            1,
            Reinforced().policy_options(0.0, "exact", "none"),
        )
