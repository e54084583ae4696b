"""The tree as a policy: its gradient is that of the expected loss, whatever is sampled."""

from __future__ import annotations

import copy
import io
import itertools

import pytest
import torch
from torch import Tensor, nn

from hardwood.nn import ReinforcedTree, reinforced_walk
from hardwood.nn.reinforced_walk import Trajectories

FORK = [-1, 0, 0, 0, 1, 1, 4]  # three trajectories, two, one
CROSS_ENTROPY = nn.CrossEntropyLoss(reduction="none")


def make_tree(parents=FORK, d=3, k=2, **options) -> ReinforcedTree:
    tree = ReinforcedTree(d, k, parents=parents, dtype=torch.float64, **options)
    with torch.no_grad():
        tree.leaves.normal_()
        for parameter in tree.policy.parameters():
            parameter.normal_()
    return tree


def make_rows(n=4, d=3, k=2) -> tuple[Tensor, Tensor]:
    return torch.randn(n, d, dtype=torch.float64), torch.randint(k, (n,))


def way_to(tree: ReinforcedTree, leaf: int) -> list[int]:
    """Trajectories taken at each level to come to a leaf, and to stay there."""
    node, trajectories = tree.topology.leaves[leaf], []
    while (parent := tree.topology.parents[node]) >= 0:
        trajectories.append(tree.topology.children[parent].index(node))
        node = parent
    return trajectories[::-1] + [0] * (tree.topology.depth - len(trajectories))


def forced(tree: ReinforcedTree, x: Tensor, leaves: tuple[int, ...]) -> Trajectories:
    """Trajectories of one sample to given leaves."""
    levels = iter(zip(*(way_to(tree, leaf) for leaf in leaves), strict=True))
    return reinforced_walk.walk(tree, x, len(leaves), lambda logs: torch.tensor([next(levels)]))


def gradients(tree: ReinforcedTree, value: Tensor) -> list[Tensor]:
    parameters = [tree.leaves, *tree.policy.parameters()]
    found = torch.autograd.grad(value, parameters, allow_unused=True)
    return [torch.zeros_like(p) if g is None else g for p, g in zip(parameters, found, strict=True)]


def expected_gradients(tree: ReinforcedTree, x, y, n_trajectories, **options) -> list[Tensor]:
    """Mean of the estimate over all tuples of trajectories of one sample, by probability."""
    shares = tree.leaf_log_probabilities(x).exp()[0].detach()
    total = [torch.zeros_like(p) for p in (tree.leaves, *tree.policy.parameters())]
    for leaves in itertools.product(range(tree.n_leaves), repeat=n_trajectories):
        trajectories = forced(tree, x, leaves)
        assert trajectories.leaf.tolist() == [list(leaves)]
        losses = tree._losses(tree.leaves[trajectories.leaf], y, CROSS_ENTROPY)
        estimate = losses.mean() + tree.policy_loss(trajectories, losses, **options)
        share = torch.stack([shares[leaf] for leaf in leaves]).prod()
        for sum_, part in zip(total, gradients(tree, estimate), strict=True):
            sum_ += share * part
    return total


# The estimate is unbiased


@pytest.mark.parametrize(
    ("baseline", "n_trajectories"),
    [("none", 1), ("none", 2), ("leave_one_out", 2), ("leave_one_out", 3), ("value", 1)],
)
@pytest.mark.parametrize("entropy", [0.0, 0.3])
def test_the_mean_of_the_estimate_is_the_exact_gradient(baseline, n_trajectories, entropy):
    tree = make_tree().eval()  # where values stay as they are
    tree.state_values.normal_()
    x, y = make_rows(1)
    found = expected_gradients(tree, x, y, n_trajectories, baseline=baseline, entropy_bonus=entropy)
    exact = gradients(tree, tree.loss(x, y, CROSS_ENTROPY, gradient="exact", entropy_bonus=entropy))
    for a, b in zip(found, exact, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-12)
        assert b.abs().max() > 1e-3


def test_each_term_alone_is_unbiased():
    """The leaves have the gradient of the loss, the policies that of the probabilities."""
    tree = make_tree().eval()
    x, y = make_rows(1)
    shares = tree.leaf_log_probabilities(x).exp()
    costs = CROSS_ENTROPY(tree.leaves, y.expand(tree.n_leaves))
    of_leaves = torch.autograd.grad((shares.detach() * costs).sum(), tree.leaves)[0]
    of_policy = torch.autograd.grad((shares * costs.detach()).sum(), tree.policy.weight)[0]
    found = expected_gradients(tree, x, y, 1, baseline="none")
    torch.testing.assert_close(found[0], of_leaves)
    torch.testing.assert_close(found[1], of_policy)


def test_the_exact_loss_is_the_expectation():
    tree = make_tree()
    x, y = make_rows(5)
    shares = tree.leaf_log_probabilities(x).exp()
    torch.testing.assert_close(shares.sum(1), torch.ones(5, dtype=torch.float64))
    expected = 0.0
    for i in range(5):
        for leaf in range(tree.n_leaves):
            expected += shares[i, leaf] * CROSS_ENTROPY(tree.leaves[leaf : leaf + 1], y[i : i + 1])
    exact = tree.loss(x, y, CROSS_ENTROPY, gradient="exact")
    torch.testing.assert_close(exact, expected[0] / 5)


def test_entropy_is_part_of_the_gradient_alone():
    tree = make_tree()
    x, y = make_rows(5)
    plain, worth = (
        tree.loss(x, y, CROSS_ENTROPY, gradient="exact", entropy_bonus=e) for e in (0.0, 0.5)
    )
    assert plain.item() == pytest.approx(worth.item(), abs=1e-15)
    logs = tree.leaf_log_probabilities(x)
    by_hand = plain + 0.5 * (logs.exp() * logs).sum(1).mean()
    for a, b in zip(gradients(tree, worth), gradients(tree, by_hand), strict=True):
        torch.testing.assert_close(a, b)


def variance(tree: ReinforcedTree, x, y, **options) -> float:
    generator = torch.Generator().manual_seed(1)
    drawn = torch.stack(
        [
            gradients(tree, tree.loss(x, y, CROSS_ENTROPY, generator=generator, **options))[1]
            for _ in range(300)
        ]
    )
    return float(drawn.var(0).sum())


def test_baselines_lower_the_variance():
    tree = make_tree()
    x, y = make_rows(20)
    with torch.no_grad():
        tree.leaves += 3 * torch.randn(2, dtype=torch.float64)  # a loss that all leaves share
    for _ in range(30):  # what it costs to be at each node
        tree.loss(x, y, CROSS_ENTROPY, 20, "value")
    assert tree.states_seen[list(tree.topology.splits)].all()
    none = variance(tree, x, y, baseline="none", n_trajectories=4)
    assert variance(tree, x, y, baseline="leave_one_out", n_trajectories=4) < 0.7 * none
    assert variance(tree.eval(), x, y, baseline="value", n_trajectories=4) < 0.7 * none
    assert variance(tree, x, y, baseline="none", n_trajectories=16) < 0.5 * none


def test_values_are_means_of_what_ways_cost():
    tree = make_tree([-1, 0, 0])
    x, y = make_rows(50)
    tree.loss(x, y, CROSS_ENTROPY, 40, "value")
    first = tree.state_values.clone()
    exact = tree.loss(x, y, CROSS_ENTROPY, gradient="exact")
    assert first[0].item() == pytest.approx(exact.item(), rel=0.1)
    tree.eval().loss(x, y, CROSS_ENTROPY, 40, "value")
    assert torch.equal(tree.state_values, first)  # evaluation changes nothing


# Trajectories


def test_leaves_are_sampled_by_their_probabilities():
    tree = make_tree()
    x, _ = make_rows(2)
    n = 20_000
    trajectories = tree.sample(x, n, torch.Generator().manual_seed(0))
    assert trajectories.leaf.shape == (2, n)
    assert trajectories.nodes.shape == trajectories.steps.shape == (2, n, 3)
    shares = tree.leaf_log_probabilities(x).exp()
    for i in range(2):
        found = torch.bincount(trajectories.leaf[i], minlength=tree.n_leaves) / n
        spread = (shares[i] * (1 - shares[i]) / n).sqrt()
        assert ((found - shares[i]).abs() < 5 * spread + 1e-6).all()
    logs = tree.leaf_log_probabilities(x).gather(1, trajectories.leaf)
    torch.testing.assert_close(trajectories.log_probability, logs)


def test_the_same_generator_gives_the_same_trajectories():
    tree = make_tree()
    x, y = make_rows(9)
    a, b = (tree.sample(x, 5, torch.Generator().manual_seed(3)) for _ in range(2))
    assert torch.equal(a.leaf, b.leaf)
    losses = [tree.loss(x, y, CROSS_ENTROPY, generator=torch.Generator().manual_seed(3))]
    losses.append(tree.loss(x, y, CROSS_ENTROPY, generator=torch.Generator().manual_seed(3)))
    assert losses[0] == losses[1]


@pytest.mark.parametrize("parents", [FORK, [-1, 0, 0, 1, 1, 2, 2], [-1, 0, 1, 1]])
def test_the_layer_answers_as_the_model_does(parents):
    tree = make_tree(parents, k=3).eval()
    x, _ = make_rows(300)
    model = tree.to_policy_tree(classes=["a", "b", "c"], feature_names=["u", "v", "w"])
    for path in ("greedy", "most_probable"):
        assert tree.leaf(x, path).tolist() == model.apply(x.numpy(), path=path).tolist()
        tree.path = path
        scores = torch.tensor(model.scores[model.apply(x.numpy(), path=path)])
        torch.testing.assert_close(tree(x), scores)
    shares = torch.tensor(model.leaf_probabilities(x.numpy()))
    torch.testing.assert_close(tree.leaf_log_probabilities(x).exp(), shares, rtol=1e-4, atol=1e-12)
    again = ReinforcedTree.from_policy_tree(model, dtype=torch.float64)
    torch.testing.assert_close(again.policy.weight, tree.policy.weight)
    torch.testing.assert_close(again.leaves, tree.leaves)
    options = {"classes": model.classes, "schema": model.schema, "record": model.record}
    assert again.to_policy_tree(**options) == model


def test_of_equals_the_last_is_taken():
    tree = make_tree([-1, 0, 0, 0]).eval()
    with torch.no_grad():
        tree.policy.weight.zero_()
        tree.policy.bias.zero_()
    x, _ = make_rows(2)
    assert tree.leaf(x, "greedy").tolist() == tree.leaf(x, "most_probable").tolist() == [2, 2]


def test_columns_far_from_zero_are_folded_into_the_biases():
    from hardwood.model import PolicyTree
    from hardwood.table import Feature, Schema

    schema = Schema((Feature("a", "numeric", center=1000.0, scale=2.0),))
    model = PolicyTree(
        [-1, 0, 0], [[0], [-1], [1]], [0, 0, 0.5], [[1], [2]], schema=schema, task="regression"
    )
    layer = ReinforcedTree.from_policy_tree(model, dtype=torch.float64).eval()
    x = torch.tensor([[999.0], [1000.0], [1001.0]], dtype=torch.float64)
    assert layer(x)[:, 0].tolist() == model.predict(x.numpy()).tolist()
    assert layer.to_policy_tree(schema=schema, record={}) == model


def test_a_temperature_softens():
    tree = make_tree()
    x, _ = make_rows(6)
    sharp = tree.leaf_log_probabilities(x).exp().max(1).values
    tree.temperature = 4.0
    soft = tree.leaf_log_probabilities(x).exp()
    assert (soft.max(1).values < sharp).all()
    model = tree.to_policy_tree()
    torch.testing.assert_close(
        torch.tensor(model.leaf_probabilities(x.numpy())), soft, rtol=1e-4, atol=1e-12
    )


def test_shapes_and_modes():
    tree = ReinforcedTree(5, 3, 2, n_children=3)
    assert (tree.n_leaves, tree.topology.n_nodes, tree.topology.depth) == (9, 13, 2)
    x = torch.randn(4, 2, 5)
    assert tree(x).shape == (4, 2, 3)
    assert tree.eval()(x).shape == (4, 2, 3)
    assert tree.leaf_log_probabilities(x).shape == (4, 2, 9)
    assert tree(x[:0]).shape == (0, 2, 3)
    assert torch.equal(tree(x), tree(x))
    tree.train()
    torch.manual_seed(0)
    several = torch.stack([tree.leaf(x) for _ in range(20)])
    assert (several != several[0]).any()  # training samples
    assert "depth=2, leaves=9, path='greedy'" in repr(tree)


# Policies of any kind


class Counting(nn.Module):
    """A linear policy that notes how many samples it saw."""

    def __init__(self, n_children: int) -> None:
        super().__init__()
        self.linear = nn.Linear(3, n_children, dtype=torch.float64)
        self.n_seen = 0

    def forward(self, x: Tensor) -> Tensor:
        self.n_seen += len(x)
        return self.linear(x)


def as_nodes(tree: ReinforcedTree) -> ReinforcedTree:
    """The same tree with a module at each node."""
    nodes = ReinforcedTree(
        None, 2, parents=tree.topology.parents, policy=Counting, dtype=torch.float64
    )
    with torch.no_grad():
        nodes.leaves.copy_(tree.leaves)
        for module, node in zip(nodes.policy, tree.topology.splits, strict=True):
            moves = [child - 1 for child in tree.topology.children[node]]
            module.linear.weight.copy_(tree.policy.weight[moves])
            module.linear.bias.copy_(tree.policy.bias[moves])
    return nodes


def test_a_module_at_each_node_is_the_same_tree():
    tree = make_tree()
    nodes = as_nodes(tree)
    x, y = make_rows(40)
    torch.testing.assert_close(nodes.leaf_log_probabilities(x), tree.leaf_log_probabilities(x))
    for path in ("greedy", "most_probable"):
        assert torch.equal(nodes.leaf(x, path), tree.leaf(x, path))
    for options in ({"gradient": "exact"}, {"baseline": "value"}, {}):
        losses = [
            t.loss(x, y, CROSS_ENTROPY, generator=torch.Generator().manual_seed(2), **options)
            for t in (tree, nodes)
        ]
        torch.testing.assert_close(*losses)
        by_tree = torch.autograd.grad(losses[0], tree.policy.weight)[0]
        weights = [module.linear.weight for module in nodes.policy]
        by_nodes = torch.autograd.grad(losses[1], weights)
        moves = [c - 1 for node in tree.topology.splits for c in tree.topology.children[node]]
        torch.testing.assert_close(torch.cat(by_nodes), by_tree[moves])


def test_a_node_sees_the_samples_that_come_there():
    nodes = as_nodes(make_tree()).eval()
    x, _ = make_rows(100)
    leaves = nodes.leaf(x, "greedy")
    assert nodes.policy[0].n_seen == 100
    below = {
        node: sum(int((leaves == i).sum()) for i in _leaves_below(nodes, node))
        for node in nodes.topology.splits
    }
    assert [module.n_seen for module in nodes.policy] == list(below.values())


def _leaves_below(tree: ReinforcedTree, node: int) -> list[int]:
    children = tree.topology.children[node]
    if not children:
        return [tree.topology.leaves.index(node)]
    return [leaf for child in children for leaf in _leaves_below(tree, child)]


def test_one_network_may_score_all_moves():
    network = nn.Sequential(nn.Flatten(), nn.Linear(12, 8), nn.Tanh(), nn.Linear(8, 6))
    tree = ReinforcedTree(None, 2, max_depth=2, policy=network)
    x, y = torch.randn(10, 3, 2, 2), torch.randint(2, (10,))
    tree.loss(x, y, CROSS_ENTROPY).backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in tree.parameters())
    assert tree.eval()(x).shape == (10, 2)
    with pytest.raises(TypeError, match="PolicyTree has linear policies"):
        tree.to_policy_tree()


def test_black_boxes_teach_policies():
    """Leaf 1 is worth more, which nothing but a number says."""
    torch.manual_seed(0)
    tree = ReinforcedTree(1, 1, parents=[-1, 0, 0, 0])
    optimizer = torch.optim.Adam(tree.policy.parameters(), lr=0.1)
    x = torch.randn(32, 1)
    for _ in range(60):
        trajectories = tree.sample(x, 8)
        rewards = (trajectories.leaf == 1).double().numpy()  # no tensor with a gradient
        optimizer.zero_grad()
        tree.policy_loss(trajectories, -torch.tensor(rewards)).backward()
        optimizer.step()
    assert tree.leaf_log_probabilities(x)[:, 1].exp().min() > 0.9


@pytest.mark.parametrize("gradient", ["sampled", "exact"])
def test_it_learns(gradient):
    """Four clouds, of which opposite ones are of a kind."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(400, 2, generator=generator)
    x = x.sign() * (0.3 + x.abs())
    y = (x[:, 0] * x[:, 1] > 0).long()
    torch.manual_seed(1)
    tree = ReinforcedTree(2, 2, max_depth=2)
    optimizer = torch.optim.Adam(tree.parameters(), lr=0.05)
    for _ in range(150):
        optimizer.zero_grad()
        tree.loss(x, y, CROSS_ENTROPY, 4, gradient=gradient, entropy_bonus=0.05).backward()
        optimizer.step()
    accuracy = (tree.eval()(x).argmax(1) == y).double().mean()
    assert accuracy > 0.95


# As a module among others


def test_it_is_a_module():
    tree = make_tree()
    x, y = make_rows(6)
    tree.loss(x, y, CROSS_ENTROPY, baseline="value")
    again = make_tree()
    again.load_state_dict(tree.state_dict())
    stream = io.BytesIO()
    torch.save(tree, stream)
    stream.seek(0)
    for other in (again, copy.deepcopy(tree), torch.load(stream, weights_only=False)):
        torch.testing.assert_close(other.eval()(x), tree.eval()(x))
        assert torch.equal(other.state_values, tree.state_values)
    assert set(tree.state_dict()) == {
        "leaves",
        "policy.bias",
        "policy.weight",
        "state_values",
        "states_seen",
    }
    assert tree.float().leaves.dtype == tree.state_values.dtype == torch.float32


def test_it_compiles_without_graph_breaks():
    tree = ReinforcedTree(3, 2, max_depth=2)
    x, y = torch.randn(8, 3), torch.randint(2, (8,))

    def step(x, y):
        return tree.loss(x, y, CROSS_ENTROPY, 4, "value")

    torch._dynamo.reset()
    value = torch.compile(step, fullgraph=True, backend="eager")(x, y)
    value.backward()
    assert tree.policy.weight.grad.abs().sum() > 0
    tree.eval()
    for path in ("greedy", "most_probable"):
        tree.path = path
        compiled = torch.compile(tree, fullgraph=True, backend="eager")
        torch.testing.assert_close(compiled(x), tree(x))


def test_autocast_keeps_its_precision():
    tree = ReinforcedTree(3, 2, max_depth=3).eval()
    x = torch.randn(8, 3)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(tree(x.bfloat16()), tree(x.bfloat16().float()))
        assert tree.loss(x, torch.randint(2, (8,)), CROSS_ENTROPY).dtype == torch.float32


# What it refuses


@pytest.mark.parametrize(
    ("arguments", "options", "words"),
    [
        ((3, 2), {}, "give either max_depth, .* or parents"),
        ((3, 2, 2), {"parents": [-1, 0]}, "give either max_depth, .* or parents"),
        ((3, 2, 0), {}, "depth must be an integer from 1"),
        ((3, 2, 30), {}, "more than 4194304 nodes"),
        ((3, 2, 2), {"n_children": 1}, "n_children must be an integer from 2"),
        ((3, 2), {"parents": [0, 0]}, "parents must begin with -1"),
        ((3, 2), {"parents": [-1]}, "at least one more node"),
        ((3, 2), {"parents": [-1, 0, 2]}, r"parents\[2\] is 2, expected 0 to 1"),
        ((3, 2), {"parents": "ab"}, "parents must be a list"),
        ((0, 2, 2), {}, "in_features must be an integer"),
        ((None, 2, 2), {}, "linear policies need in_features"),
        ((3, 0, 2), {}, "out_features must be an integer"),
        ((3, 2, 2), {"policy": nn.Linear(3, 6)}, "in_features must be None"),
        ((None, 2, 2), {"policy": 5}, "policy must be a module"),
        ((None, 2, 2), {"policy": lambda n: n}, "it returned a int"),
        ((3, 2, 2), {"path": "short"}, "path must be one of"),
        ((3, 2, 2), {"temperature": 0}, r"temperature must be a number in \(0, inf\)"),
        ((3, 2, 2), {"dtype": torch.float16}, "float32 or float64"),
    ],
)
def test_wrong_arguments(arguments, options, words):
    with pytest.raises((ValueError, TypeError), match=words):
        ReinforcedTree(*arguments, **options)


def test_wrong_input():
    tree = ReinforcedTree(3, 2, max_depth=2)
    x, y = torch.randn(8, 3), torch.randint(2, (8,))
    with pytest.raises(ValueError, match="expected input of shape"):
        tree(torch.randn(8, 4))
    with pytest.raises(TypeError, match="takes a tensor"):
        tree([[1.0, 2.0, 3.0]])
    with pytest.raises(ValueError, match="n_trajectories must be at least 2, got 1"):
        tree.loss(x, y, CROSS_ENTROPY, 1)
    with pytest.raises(ValueError, match="reduction='none'"):
        tree.loss(x, y, nn.CrossEntropyLoss())
    with pytest.raises(ValueError, match=r"y must be a tensor \(8"):
        tree.loss(x, y[:3], CROSS_ENTROPY)
    with pytest.raises(ValueError, match=r"y must be a tensor \(8"):
        tree.loss(x, y.tolist(), CROSS_ENTROPY)
    with pytest.raises(ValueError, match="baseline must be one of"):
        tree.loss(x, y, CROSS_ENTROPY, baseline="mean")
    with pytest.raises(ValueError, match="gradient must be one of"):
        tree.loss(x, y, CROSS_ENTROPY, gradient="both")
    with pytest.raises(ValueError, match=r"entropy_bonus must be a number in \[0, inf\)"):
        tree.loss(x, y, CROSS_ENTROPY, entropy_bonus=-1)
    with pytest.raises(ValueError, match="path must be one of"):
        tree.leaf(x, "best")
    with pytest.raises(ValueError, match="an entry for each trajectory"):
        tree.policy_loss(tree.sample(x, 3), torch.zeros(8))
    with pytest.raises(ValueError, match="loss takes samples"):
        tree.loss(x[None], y, CROSS_ENTROPY)
    wrong = ReinforcedTree(None, 2, max_depth=2, policy=lambda n: nn.Linear(3, n + 1))
    with pytest.raises(ValueError, match="policy of node 0 must return a score for each of its 2"):
        wrong(x)
    wrong = ReinforcedTree(None, 2, max_depth=2, policy=nn.Linear(3, 7))
    with pytest.raises(ValueError, match="scores of all moves"):
        wrong(x)
