"""Latent trees: the program's gradient, and the layer as torch users meet it."""

from __future__ import annotations

import copy
import io
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from hardwood.nn import (
    LatentTree,
    PrunedLatentTree,
    engine_available,
    latent_op,
    latent_projection,
)
from reference import latent as reference

IN_TORCH = SimpleNamespace(
    prune=latent_op.torch_prune,
    traverse=latent_op.torch_traverse,
    backward=latent_op.torch_backward,
)
IN_ENGINE = SimpleNamespace(
    prune=latent_op.engine_prune,
    traverse=latent_op.engine_traverse,
    backward=latent_op.engine_backward,
)
WAYS = [
    IN_TORCH,
    pytest.param(
        IN_ENGINE,
        marks=pytest.mark.skipif(not engine_available(), reason="the engine is not built"),
    ),
]
each_way = pytest.mark.parametrize("way", WAYS, ids=["torch", "engine"])
PRUNINGS = [0.0, 0.3, 1.0, 7.7, 1000.0]


def normal(*shape, seed=0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)


def make_rows(is_q, n=12, depth=3, seed=0):
    """Scores, or rewards of which many exceed their parent's."""
    return 0.6 * normal(n, 2 ** (depth + is_q) - 1, seed=seed)


def both_passes(way, rows, is_q, pruning, slope_z, slope_a):
    activity, group, curvature = way.prune(rows, is_q, pruning)
    z = way.traverse(rows, is_q, activity)
    slope = way.backward(rows, is_q, activity, group, curvature, slope_z, slope_a)
    return z, activity, slope


@each_way
@pytest.mark.parametrize("is_q", [False, True])
@pytest.mark.parametrize("pruning", PRUNINGS)
def test_both_passes_equal_the_numpy_twin(pruning, is_q, way):
    for seed in range(5):
        rows = make_rows(is_q, n=1 + 7 * seed, seed=seed)
        q = rows.numpy() if is_q else reference.rewards(rows.numpy())
        slope_z, slope_a = normal(*q.shape, seed=seed + 9), normal(q.shape[1], seed=seed + 8)
        z, activity, slope = both_passes(way, rows, is_q, pruning, slope_z, slope_a)
        if pruning == 0:
            assert (activity == 1).all()
            continue
        expected = reference.program(q, pruning)
        np.testing.assert_allclose(activity, expected.a, rtol=0, atol=1e-12)
        np.testing.assert_allclose(z, expected.z, rtol=0, atol=1e-12)
        wanted = reference.gradient(q, pruning, slope_z.numpy(), slope_a.numpy())
        if not is_q:
            wanted = reference.gradient_by_scores(rows.numpy(), wanted)
        np.testing.assert_allclose(slope, wanted, rtol=0, atol=1e-12)


@pytest.mark.skipif(not engine_available(), reason="the engine is not built")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("is_q", [False, True])
def test_torch_and_engine_are_the_same_up_to_rounding(is_q, dtype):
    rows = make_rows(is_q, n=300, depth=5).to(dtype)
    n_nodes = 63
    slopes = normal(300, n_nodes, seed=1, dtype=dtype), normal(n_nodes, seed=2, dtype=dtype)
    atol = 1e-11 if dtype == torch.float64 else 2e-4
    for pruning in (0.0, 20.5, 90.0):
        by_torch = both_passes(IN_TORCH, rows, is_q, pruning, *slopes)
        by_engine = both_passes(IN_ENGINE, rows, is_q, pruning, *slopes)
        for one, other in zip(by_torch, by_engine, strict=True):
            assert one.dtype == other.dtype == dtype
            torch.testing.assert_close(one, other, rtol=0, atol=atol)


@each_way
def test_a_row_with_a_nan_is_nan_and_no_other_row_notices(way):
    rows = make_rows(False, n=6)
    activity, group, curvature = way.prune(rows, False, 1.0)
    broken = torch.cat([rows, rows[:1]])
    broken[6, 2] = torch.nan
    slope_z, slope_a = normal(7, 15, seed=1), normal(15, seed=2)
    z = way.traverse(broken, False, activity)
    torch.testing.assert_close(z[:6], way.traverse(rows, False, activity))
    slope = way.backward(broken, False, activity, group, curvature, slope_z, slope_a)
    expected = way.backward(rows, False, activity, group, curvature, slope_z[:6], slope_a)
    torch.testing.assert_close(slope[:6], expected)
    assert z[6].isnan().all()
    assert slope[6].isnan().all()


@pytest.mark.parametrize("is_q", [False, True])
@pytest.mark.parametrize("pruning", [0.0, 0.3, 1.48, 6.0])
def test_gradcheck(pruning, is_q):
    rows = make_rows(is_q, n=5).requires_grad_()
    assert torch.autograd.gradcheck(
        lambda rows: latent_op.solve(rows, pruning, is_q=is_q), rows, eps=1e-7, atol=1e-6
    )


def test_gradcheck_of_a_traversal_by_known_activities():
    scores = make_rows(False, n=6).requires_grad_()
    activity = torch.linspace(1.0, 0.0, 15, dtype=torch.float64)
    assert torch.autograd.gradcheck(
        lambda scores: latent_op.follow(scores, activity), scores, eps=1e-7, atol=1e-6
    )


@pytest.mark.parametrize("activation", ["linear", "elu"])
def test_gradcheck_of_the_layer(activation):
    layer = LatentTree(3, 2, 0.7, activation, dtype=torch.float64)
    parameters = dict(layer.named_parameters())

    def answer(x, *values):
        return torch.func.functional_call(layer, dict(zip(parameters, values, strict=True)), x)

    x = normal(6, 3).requires_grad_()
    inputs = (x, *(p.detach().clone().requires_grad_() for p in parameters.values()))
    assert torch.autograd.gradcheck(answer, inputs, eps=1e-7, atol=1e-5)


def test_operators_keep_torchs_rules():
    for is_q in (False, True):
        rows = make_rows(is_q).requires_grad_()
        torch.library.opcheck(latent_op.latent_program, (rows, is_q, 0.8))
    scores = make_rows(False).requires_grad_()
    activity = torch.full((15,), 0.6, dtype=torch.float64)
    torch.library.opcheck(latent_op.latent_traversal, (scores, activity))


def test_there_is_no_second_derivative():
    rows = make_rows(False).requires_grad_()
    z, _ = latent_op.solve(rows, 1.0)
    (first,) = torch.autograd.grad(z.square().sum(), rows, create_graph=True)
    with pytest.raises(RuntimeError, match="no second derivative"):
        first.sum().backward()


def test_sure_splits_and_no_pruning_give_the_hard_path():
    layer = LatentTree(4, 5, 0.0, batch_norm=False, dtype=torch.float64)
    with torch.no_grad():
        layer.linear.weight *= 1e9
    x = normal(50, 4)
    z, a = layer(x)
    assert (a == 1).all()
    scores = layer.scores(x)
    for i in range(len(x)):
        path, t = [0], 0
        while t < layer.n_splits:
            t = 2 * t + (2 if scores[i, t] >= 0 else 1)
            path.append(t)
        assert torch.nonzero(z[i])[:, 0].tolist() == path
        assert set(z[i].tolist()) == {0.0, 1.0}


def trained(depth=4, pruning=60.0, seed=0, **options):
    """A layer whose running statistics and splits are no longer those of the start."""
    torch.manual_seed(seed)
    layer = LatentTree(5, depth, pruning, **options)
    head = nn.Linear(layer.n_nodes, 1)
    optimizer = torch.optim.Adam([*layer.parameters(), *head.parameters()], 0.02)
    for step in range(15):
        x = normal(128, 5, seed=step, dtype=layer.activity.dtype)
        optimizer.zero_grad()
        z, _ = layer(x)
        (head(z.float())[:, 0] - (x[:, 0] * x[:, 1]).float()).square().mean().backward()
        optimizer.step()
    layer.zero_grad()
    return layer


def test_training_solves_for_the_batch_and_a_settled_layer_for_each_row():
    layer = trained()
    x = normal(200, 5, dtype=torch.float32)
    assert not layer.is_settled
    kept = layer.settle(x, batch_size=128)
    assert layer.is_settled
    layer.eval()
    z, a = layer(x)
    assert torch.equal(a, kept)
    alone = torch.cat([layer(row[None])[0] for row in x])
    torch.testing.assert_close(alone, z)
    layer.train()
    _, of_batch = layer(x[:100])
    assert not torch.equal(of_batch, kept)
    of_batch.sum().backward()
    assert layer.linear.weight.grad.abs().sum() > 0


def test_a_layer_that_was_not_settled_solves_for_its_batch_in_evaluation_mode_too():
    layer = trained().eval()
    x = normal(60, 5, dtype=torch.float32)
    z, a = layer(x)
    expected = latent_op.solve(layer.scores(x), layer.pruning)
    torch.testing.assert_close((z, a), expected)
    assert not torch.equal(layer(x[:30])[1], a)


def test_settling_scales_the_price_to_the_number_of_rows():
    layer = trained()
    x = normal(64, 5, dtype=torch.float32)
    of_one_batch = layer.settle(x).clone()
    of_copies = layer.settle(x.repeat(4, 1), batch_size=64).clone()
    torch.testing.assert_close(of_copies, of_one_batch)
    assert (layer.settle(x.repeat(4, 1)) > of_one_batch).any()
    assert layer.training


@pytest.mark.parametrize("split", ["linear", "elu", "module"])
@pytest.mark.parametrize("pruning", [0.0, 20.0, 60.0, 300.0])
def test_a_pruned_layer_answers_the_same_with_fewer_splits(pruning, split):
    own = nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 15), nn.BatchNorm1d(15))
    options = {"split": own} if split == "module" else {"activation": split}
    layer = trained(4, pruning, **options)
    x = normal(100, 5, seed=3, dtype=torch.float32)
    layer.settle(normal(500, 5, dtype=torch.float32), batch_size=128, min_activity=0.35)
    layer.eval()
    pruned = layer.pruned()
    z, a = layer(x)
    less, some = pruned(x)
    assert torch.equal(pruned.nodes, torch.nonzero(a > 0)[:, 0])
    torch.testing.assert_close(less, z[:, pruned.nodes], rtol=1e-5, atol=1e-6)
    assert torch.equal(some, a[pruned.nodes])
    gone = torch.ones(31, dtype=torch.bool)
    gone[pruned.nodes] = False
    assert (z[:, gone] == 0).all()
    if pruning == 0:
        assert len(pruned.splits) == 15
    if pruning >= 60:
        assert len(pruned.splits) < 15
        if split != "module":
            assert pruned.split[0].weight.shape == (len(pruned.splits), 5)
            assert sum(p.numel() for p in pruned.parameters()) < sum(
                p.numel() for p in layer.parameters()
            )


def test_a_pruned_layer_can_be_a_root_and_learns_on():
    layer = trained(3, 10.0)
    layer.settle(normal(50, 5, dtype=torch.float32))
    layer.activity[1:] = 0.0
    bare = layer.pruned()
    assert bare.nodes.tolist() == [0]
    assert bare(normal(4, 5, dtype=torch.float32))[0].shape == (4, 1)
    layer.settle(normal(50, 5, dtype=torch.float32))
    pruned = layer.pruned()
    z, _ = pruned(normal(20, 5, dtype=torch.float32).requires_grad_())
    z.square().sum().backward()
    assert all(p.grad is not None for p in pruned.parameters())
    assert isinstance(pruned, PrunedLatentTree)
    assert "splits" in repr(pruned)


def test_only_a_settled_layer_can_be_pruned():
    with pytest.raises(RuntimeError, match="settle the tree first"):
        LatentTree(3).pruned()


def test_centering_puts_half_of_the_rows_to_either_side():
    for batch_norm in (True, False):
        layer = LatentTree(6, 3, batch_norm=batch_norm)
        x = 5 + 2 * normal(640, 6, dtype=torch.float32)
        layer.center(x)
        scores = layer.scores(x)
        node = torch.zeros(640, dtype=torch.long)
        for _ in range(3):
            node = 2 * node + 1 + (scores.gather(1, node[:, None])[:, 0] >= 0)
        assert torch.bincount(node)[7:].tolist() == pytest.approx([80] * 8, abs=8)


def test_state_and_copies_keep_what_was_settled():
    layer = trained()
    layer.settle(normal(50, 5, dtype=torch.float32))
    stream = io.BytesIO()
    torch.save(layer.state_dict(), stream)
    stream.seek(0)
    other = LatentTree(5, 4, 60.0)
    other.load_state_dict(torch.load(stream))
    x = normal(20, 5, dtype=torch.float32)
    for same in (other.eval(), copy.deepcopy(layer).eval()):
        torch.testing.assert_close(same(x), layer.eval()(x), rtol=0, atol=0)


@pytest.mark.parametrize("mode", ["train", "settled"])
def test_compiles_whole(mode):
    layer = trained()
    if mode == "settled":
        layer.settle(normal(50, 5, dtype=torch.float32))
        layer.eval()
    other = copy.deepcopy(layer)
    x = normal(30, 5, dtype=torch.float32)
    z, a = layer(x)
    (z**2).sum().backward()
    found = torch.compile(other, fullgraph=True, backend="aot_eager")(x)
    torch.testing.assert_close(found, (z, a))
    (found[0] ** 2).sum().backward()
    torch.testing.assert_close(other.linear.weight.grad, layer.linear.weight.grad)


def test_a_node_that_no_row_reaches_is_inactive_and_so_is_all_below_it():
    layer = LatentTree(2, 3, 1.0, batch_norm=False)
    with torch.no_grad():
        layer.linear.bias[0] = 100.0  # all to the right
    a = layer.settle(torch.randn(30, 2))
    assert torch.nonzero(a == 0)[:, 0].tolist()[:4] == [1, 3, 4, 7]
    assert layer.pruned().nodes[:2].tolist() == [0, 2]


def test_leading_dimensions_and_no_rows():
    layer = LatentTree(4, 2)
    z, a = layer(torch.randn(3, 5, 4))
    assert z.shape == (3, 5, 7)
    assert a.shape == (7,)
    for mode in (True, False):
        z, a = layer.train(mode)(torch.empty(0, 4))
        assert z.shape == (0, 7)


def test_autocast_computes_in_the_layers_precision():
    layer = trained()
    x = normal(40, 5, dtype=torch.float32)
    expected = layer(x)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        z, a = layer(x)
        assert layer(x.bfloat16())[0].dtype == torch.float32
    torch.testing.assert_close((z, a), expected)


def test_the_same_generator_gives_the_same_start():
    def start(seed):
        return LatentTree(3, 3, generator=torch.Generator().manual_seed(seed)).linear.weight

    assert torch.equal(start(0), start(0))
    assert not torch.equal(start(0), start(1))


def test_a_projection_of_rewards_pools_and_is_differentiable():
    q = torch.tensor([[-0.2, 0.4, -0.5], [-0.3, 0.1, -0.1]], requires_grad=True)
    z, a = latent_projection(q, 0.5)
    expected = reference.program(q.detach().numpy().astype(float), 0.5)
    assert len(expected.groups) < 3
    np.testing.assert_allclose(a.detach(), expected.a, atol=1e-6)
    np.testing.assert_allclose(z.detach(), expected.z, atol=1e-6)
    z.sum().backward()
    assert q.grad.abs().sum() > 0


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: LatentTree(0), ValueError, "in_features"),
        (lambda: LatentTree(3, 17), ValueError, "max_depth must be an integer from 1 to 16"),
        (
            lambda: LatentTree(3, pruning=-1),
            ValueError,
            r"pruning must be a number in \[0",
        ),
        (lambda: LatentTree(3, pruning=float("nan")), ValueError, "pruning"),
        (lambda: LatentTree(3, pruning="1"), ValueError, "pruning"),
        (lambda: LatentTree(3, activation="axis"), ValueError, "activation must be one of"),
        (lambda: LatentTree(3, split="elu"), TypeError, "split must be None or a module"),
        (
            lambda: LatentTree(3, 2, activation="elu", split=nn.Linear(3, 3)),
            ValueError,
            "put the activation",
        ),
        (lambda: LatentTree(3, dtype=torch.float16), TypeError, "float32 or float64"),
        (lambda: LatentTree(3)(torch.zeros(2, 4)), ValueError, r"\(\.\.\., 3\)"),
        (lambda: LatentTree(3)([[0.0]]), TypeError, "takes a tensor"),
        (lambda: LatentTree(3, 2, split=nn.Linear(3, 4))(torch.zeros(2, 3)), ValueError, "scores"),
        (
            lambda: LatentTree(3, 2, split=nn.Linear(3, 3)).center(torch.zeros(2, 3)),
            TypeError,
            "mo",
        ),
        (lambda: LatentTree(3).settle(torch.zeros(0, 3)), ValueError, "at least one row"),
        (lambda: LatentTree(3).settle(torch.zeros(2, 3), batch_size=0), ValueError, "batch_size"),
        (lambda: latent_projection(torch.zeros(2, 4), 1.0), ValueError, "q must have the shape"),
        (lambda: latent_projection(torch.zeros(2, 3).half(), 1.0), TypeError, "float32"),
    ],
)
def test_bad_arguments_are_named(call, error, message):
    with pytest.raises(error, match=message):
        call()
