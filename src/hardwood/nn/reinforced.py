r"""Reinforced trees as a torch layer: a tree whose nodes are policies, which may be any modules.

Leon, Denoyer. Policy-gradient Methods for Decision Trees. ESANN 2016. [RDT16]

A sample moves from a node to one of its children with the probabilities of the node's policy
(Sec. 2.2); the leaf that it reaches gives the output. The gradient of the expected loss is
estimated from sampled trajectories (Sec. 2.3): the loss of each trajectory times the gradient of
its log-probability, plus the gradient of the loss at the leaf.

What differs from the paper:

1. A baseline is subtracted from the loss. The estimate stays unbiased, and its variance decreases.
   ``baseline="none"`` is the paper's method.
2. The expectation may be computed exactly over all leaves (``gradient="exact"``).
3. The loss may have a bonus for the entropy of the leaf probabilities (`entropy_bonus`), and scores
   may be divided by a temperature.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn

from hardwood.nn import convert, reinforced_walk
from hardwood.nn.checks import checked_input, own_precision, placement
from hardwood.nn.reinforced_topology import Topology, parents_of
from hardwood.nn.reinforced_walk import NodePolicies, Trajectories, last_largest, sampled
from hardwood.parameters import choice, integer, real

Path = Literal["greedy", "most_probable"]
Baseline = Literal["none", "leave_one_out", "value"]
Gradient = Literal["sampled", "exact"]
Criterion = Callable[[Tensor, Tensor], Tensor]


class ReinforcedTree(nn.Module):
    r"""A tree as a layer, learned as a policy.

    With :math:`\pi(i \mid p, x)` the probability that sample x moves from node p to its child i,
    and :math:`P(H \mid x)` the product of these along a trajectory H to the leaf l(H), the layer is
    trained by `loss`, whose gradient is an unbiased estimate of that of

    .. math:: J = \mathrm{E}_{H \sim P(\cdot \mid x)} \Delta(\alpha_{l(H)}, y)
        \qquad \text{[RDT16, Sec. 2.3]}

    ``layer(x)`` returns the scores of a leaf: in evaluation mode the leaf at the end of `path`, in
    training mode a sampled leaf. These scores give no gradient for the policies, because the choice
    of the leaf has no derivative.

    Parameters
    ----------
    in_features
        Size d of the last dimension of the input, for linear policies; None with your own `policy`,
        which gets the input of the layer, samples first.
    out_features
        Numbers k per leaf, hence the last dimension of the output.
    max_depth
        Depth of all leaves, for a tree with `n_children` at every split.
    parents
        Instead of `max_depth`: the parent of each node. The root comes first, with -1, and parents
        come before their children. Nodes without children are the leaves, numbered in the order of
        nodes.
    n_children
        Children of every split, with `max_depth`.
    policy
        None: linear scores w.x + b, one for the move to each node but the root. A module from
        samples to the scores of all moves, (n, N - 1), with the move to node i in column i - 1: one
        network for all nodes. A function: it is called with the number of children of each split,
        in the order of nodes, and returns a module from samples to scores, (n, children). Each node
        then has its own network, which sees only the samples that reach it.
    path
        Which leaf to return in evaluation mode. ``"greedy"``: follow the most probable child at
        every node; evaluates O(depth) policies. ``"most_probable"``: the most probable of all
        leaves, as in the paper; evaluates all policies.
    temperature
        Divisor of the scores before the softmax; above 1, policies are softer. The attribute may be
        changed during learning.
    generator
        Generator of the random start; the default is torch's own.
    device, dtype
        Device and dtype of the parameters, float32 or float64.

    Attributes
    ----------
    leaves
        (L, out_features), the scores alpha of the leaves.
    policy
        The module that scores the moves: a `torch.nn.Linear`, the given module, or a list of
        modules.
    state_values
        (N,), the running mean of losses at each node, for ``baseline="value"``.
    topology
        The shape of the tree.

    Examples
    --------
    >>> import torch
    >>> from hardwood.nn import ReinforcedTree
    >>> tree = ReinforcedTree(8, 3, max_depth=4)
    >>> x, y = torch.randn(6, 8), torch.randint(3, (6,))
    >>> criterion = torch.nn.CrossEntropyLoss(reduction="none")
    >>> tree.loss(x, y, criterion, n_trajectories=10).backward()
    >>> tree.eval()(x).shape
    torch.Size([6, 3])
    """

    child: Tensor
    leaf_number: Tensor
    leaf_place: Tensor
    leaves: Tensor
    level_order: Tensor
    move: Tensor
    parent: Tensor
    place_above: Tensor
    policy: Any
    state_values: Tensor
    states_seen: Tensor

    def __init__(
        self,
        in_features: int | None,
        out_features: int,
        max_depth: int | None = None,
        *,
        parents: Iterable[int] | None = None,
        n_children: int = 2,
        policy: nn.Module | Callable[[int], nn.Module] | None = None,
        path: Path = "greedy",
        temperature: float = 1.0,
        generator: torch.Generator | None = None,
        device: Any = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.topology = Topology.of(parents_of(max_depth, parents, n_children))
        in_features = None if in_features is None else integer("in_features", in_features, 1)
        self.in_features = in_features
        self.out_features = integer("out_features", out_features, 1)
        self.path = choice("path", path, get_args(Path))
        self.temperature = real("temperature", temperature, 0.0, open_low=True)
        place = placement(self, device, dtype)
        self.policy = _made_policy(policy, in_features, self.topology, place)
        n_leaves, n_nodes = len(self.topology.leaves), self.topology.n_nodes
        self.leaves = nn.Parameter(torch.empty((n_leaves, self.out_features), **place))
        self.register_buffer("state_values", torch.zeros(n_nodes, **place))
        self.register_buffer("states_seen", torch.zeros(n_nodes, dtype=torch.bool, device=device))
        numbers = torch.full((n_nodes,), -1)
        numbers[list(self.topology.leaves)] = torch.arange(n_leaves)
        tables = {
            "child": self.topology.child_table(),
            "move": self.topology.move_table(),
            "parent": list(self.topology.parents),
            "leaf_number": numbers.tolist(),
            "level_order": self.topology.level_order(),
            "place_above": self.topology.places_above(),
            "leaf_place": self.topology.leaf_places(),
        }
        for name, table in tables.items():  # they follow from the arguments
            self.register_buffer(name, torch.tensor(table, device=device), persistent=False)
        self.reset_parameters(generator)

    @property
    def n_leaves(self) -> int:
        """Number of leaves, L."""
        return len(self.topology.leaves)

    @property
    def is_linear(self) -> bool:
        """Whether policies are linear, as in a `PolicyTree`."""
        return self.in_features is not None

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        r"""Draw a new random start of the leaves and of linear policies.

        Weights are uniform in :math:`\pm \sqrt{3 / d}` and biases zero, so that scores of
        normalized input have standard deviation 1, and few policies are certain. Leaves have
        standard deviation 0.1: policies learn from differences of leaves.
        """
        nn.init.normal_(self.leaves, std=0.1, generator=generator)
        self.state_values.zero_()
        self.states_seen.zero_()
        if self.is_linear:
            bound = math.sqrt(3 / self.policy.in_features)
            nn.init.uniform_(self.policy.weight, -bound, bound, generator=generator)
            nn.init.zeros_(self.policy.bias)

    # Output

    def forward(self, x: Tensor) -> Tensor:
        """Return the scores of one leaf for each sample, (..., out_features).

        Parameters
        ----------
        x
            (..., in_features), of the parameters' dtype; or the input of your policies.
        """
        return self.leaves[self.leaf(x)]

    def leaf(self, x: Tensor, path: Path | None = None) -> Tensor:
        """Return the leaf that each sample reaches, (...,) int64.

        Parameters
        ----------
        x
            As in `forward`.
        path
            The default is `self.path` in evaluation mode and a sampled path in training mode.
        """
        rows, shape = self._rows(x)
        if path is None:
            path = None if self.training else self.path
        else:
            choice("path", path, get_args(Path))
        with torch.no_grad(), own_precision(rows):
            if path == "most_probable":
                found = last_largest(reinforced_walk.leaf_log_probabilities(self, rows))
            else:
                choose = sampled(None) if path is None else last_largest
                found = reinforced_walk.walk(self, rows, 1, choose).leaf[:, 0]
        return found.reshape(shape)

    def leaf_log_probabilities(self, x: Tensor) -> Tensor:
        """Return the log-probability of every leaf for each sample, (..., L), differentiable."""
        rows, shape = self._rows(x)
        with own_precision(rows):
            logs = reinforced_walk.leaf_log_probabilities(self, rows)
        return logs.reshape(*shape, self.n_leaves)

    def sample(
        self, x: Tensor, n_trajectories: int = 1, generator: torch.Generator | None = None
    ) -> Trajectories:
        """Draw trajectories of each sample (n, ...); their log-probabilities have gradients."""
        rows, _ = self._rows(x)
        n_trajectories = integer("n_trajectories", n_trajectories, 1)
        with own_precision(rows):
            return reinforced_walk.walk(self, rows, n_trajectories, sampled(generator))

    def move_scores(self, x: Tensor) -> Tensor:
        """Return the scores of all moves for samples (n, ...), (n, N - 1), by the temperature."""
        if isinstance(self.policy, NodePolicies):
            return self.policy.all_scores(self, x) / self.temperature
        scores = self.policy(x)
        if tuple(scores.shape) != (len(x), self.topology.n_moves):
            raise ValueError(
                "the policy must return the scores of all moves, "
                f"({len(x)}, {self.topology.n_moves}), got {tuple(scores.shape)}"
            )
        return scores / self.temperature

    def _rows(self, x: Tensor) -> tuple[Tensor, torch.Size]:
        """Return samples in one dimension, and their original dimensions."""
        if self.is_linear:
            x = checked_input(self, x, self.leaves.dtype)
            return x.reshape(-1, x.shape[-1]), x.shape[:-1]
        if not isinstance(x, Tensor) or x.dim() == 0:
            raise TypeError(
                f"{type(self).__name__} takes a tensor (n, ...), got {type(x).__name__}"
            )
        return x, x.shape[:1]

    # Learning

    def loss(
        self,
        x: Tensor,
        y: Tensor,
        criterion: Criterion,
        n_trajectories: int = 10,
        baseline: Baseline = "leave_one_out",
        *,
        gradient: Gradient = "sampled",
        entropy_bonus: float = 0.0,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """Return the mean loss of sampled trajectories, an unbiased estimate of the expected loss.

        Parameters
        ----------
        x
            (n, ...), samples first.
        y
            (n, ...), the targets for `criterion`.
        criterion
            A function from scores (r, out_features) and targets (r, ...) to losses, (r,) or
            (r, ...), which are averaged: a loss of torch with ``reduction="none"``.
        n_trajectories
            Number of trajectories per sample, M.
        baseline
            What is subtracted from the loss of a trajectory. ``"none"``: nothing.
            ``"leave_one_out"``: the mean loss of the sample's other trajectories; needs at least
            two. ``"value"``: at each move, the running mean of the losses of trajectories through
            the node, which calls in training mode update.
        gradient
            ``"sampled"``, or ``"exact"``: the expectation over all leaves, which evaluates all
            policies and the criterion at all leaves, without samples and without a baseline.
        entropy_bonus
            Bonus per unit of entropy of a sample's distribution over the leaves. It is part of the
            minimized loss, but not of the returned value.
        generator
            Generator of the sampled trajectories.

        Returns
        -------
        loss
            A scalar; call ``backward`` on it.
        """
        choice("gradient", gradient, get_args(Gradient))
        rows, shape = self._rows(x)
        if len(shape) != 1:
            raise ValueError(f"loss takes samples (n, in_features), got {tuple(x.shape)}")
        if not isinstance(y, Tensor) or y.dim() == 0 or len(y) != len(rows):
            found = tuple(y.shape) if isinstance(y, Tensor) else type(y).__name__
            raise ValueError(f"y must be a tensor ({len(rows)}, ...), like x; got {found}")
        worth = real("entropy_bonus", entropy_bonus, 0.0)
        if gradient == "exact":
            return self._expected_loss(rows, y, criterion, worth)
        trajectories = self.sample(rows, n_trajectories, generator)
        losses = self._losses(self.leaves[trajectories.leaf], y, criterion)  # (n, M)
        return losses.mean() + self.policy_loss(trajectories, losses, baseline, entropy_bonus=worth)

    def policy_loss(
        self,
        trajectories: Trajectories,
        losses: Tensor,
        baseline: Baseline = "leave_one_out",
        *,
        entropy_bonus: float = 0.0,
    ) -> Tensor:
        """Return a zero whose gradient is the score-function estimate for the policies.

        Use it for losses from a black box, such as negative rewards, which need no derivative.

        Parameters
        ----------
        trajectories
            The result of `sample`.
        losses
            (n, M), the loss of each trajectory.
        baseline, entropy_bonus
            As in `loss`.
        """
        choice("baseline", baseline, get_args(Baseline))
        if losses.shape != trajectories.leaf.shape:
            raise ValueError(
                f"losses must have an entry for each trajectory, {tuple(trajectories.leaf.shape)}, "
                f"got {tuple(losses.shape)}"
            )
        costs = losses.detach() + entropy_bonus * trajectories.log_probability.detach()
        advantages = costs[..., None] - self._baseline(
            trajectories, costs, baseline
        )  # (n, M, 1 or depth)
        estimate = (trajectories.steps * advantages).sum(-1).mean()
        return estimate - estimate.detach()

    def _baseline(self, trajectories: Trajectories, costs: Tensor, baseline: Baseline) -> Tensor:
        if baseline == "none":
            return costs.new_zeros(())
        if baseline == "leave_one_out":
            n_trajectories = costs.shape[1]
            if n_trajectories < 2:
                raise ValueError(
                    "baseline='leave_one_out' is the mean of a sample's other trajectories, so "
                    f"n_trajectories must be at least 2, got {n_trajectories}. Use more, or "
                    "baseline='value'"
                )
            return ((costs.sum(1, keepdim=True) - costs) / (n_trajectories - 1))[..., None]
        known = self.state_values[
            trajectories.nodes
        ]  # before this batch has its say: still unbiased
        if self.training:
            self._update_values(trajectories, costs)
        return known

    @torch.no_grad()
    def _update_values(self, trajectories: Trajectories, costs: Tensor, share: float = 0.1) -> None:
        """Move the values of nodes toward the mean costs of this batch."""
        nodes = trajectories.nodes.flatten()
        every = (
            costs[..., None].expand(trajectories.nodes.shape).flatten().to(self.state_values.dtype)
        )
        zeros = torch.zeros_like(self.state_values)
        times = zeros.index_add(0, nodes, torch.ones_like(every))
        means = zeros.index_add(0, nodes, every) / times.clamp(min=1)
        moved = torch.lerp(self.state_values, means, share)
        moved = torch.where(self.states_seen, moved, means)
        self.state_values.copy_(torch.where(times > 0, moved, self.state_values))
        self.states_seen.logical_or_(times > 0)

    def _expected_loss(self, rows: Tensor, y: Tensor, criterion: Criterion, worth: float) -> Tensor:
        logs = self.leaf_log_probabilities(rows)  # (n, L)
        scores = self.leaves.expand(len(rows), *self.leaves.shape)  # (n, L, k)
        losses = self._losses(scores, y, criterion)
        shares = logs.exp()
        expected = (shares * losses).sum(1).mean()
        if worth == 0:
            return expected
        # A leaf with zero probability contributes nothing, whatever its logarithm.
        negative_entropy = torch.where(shares > 0, shares * logs, 0.0).sum(1).mean()
        return expected + worth * (negative_entropy - negative_entropy.detach())

    def _losses(self, scores: Tensor, y: Tensor, criterion: Criterion) -> Tensor:
        """Return the losses (n, M) of scores (n, M, k)."""
        n, m = scores.shape[:2]
        with own_precision(scores):
            losses = criterion(scores.reshape(n * m, -1), y.repeat_interleave(m, dim=0))
        if not isinstance(losses, Tensor) or losses.dim() == 0 or len(losses) != n * m:
            raise ValueError(
                "criterion must return a loss for each row of its scores; use reduction='none' in "
                "losses of torch"
            )
        return losses.reshape(n, m, -1).mean(-1)

    # Other forms

    to_policy_tree = convert.to_policy_tree
    from_policy_tree = classmethod(convert.from_policy_tree)

    def extra_repr(self) -> str:
        """Return the arguments in ``repr(layer)``."""
        topology = self.topology
        return (
            f"{self.in_features}, {self.out_features}, depth={topology.depth}, "
            f"leaves={len(topology.leaves)}, path={self.path!r}"
        )


def _made_policy(
    policy: Any, in_features: Any, topology: Topology, place: dict[str, Any]
) -> nn.Module:
    if policy is None:
        if in_features is None:
            raise ValueError("linear policies need in_features; only your own policy does not")
        return nn.Linear(in_features, topology.n_moves, **place)
    if in_features is not None:
        raise ValueError(
            "with your own policy, in_features must be None: the policy defines its input"
        )
    if isinstance(policy, nn.Module):
        return policy
    if not callable(policy):
        raise TypeError(
            "policy must be a module, or a function of the number of children that returns one; "
            f"got a {type(policy).__name__}"
        )
    modules = [policy(len(topology.children[node])) for node in topology.splits]
    for module in modules:
        if not isinstance(module, nn.Module):
            raise TypeError(
                "policy must be a module, or a function of the number of children that returns one "
                f"for each split; it returned a {type(module).__name__}"
            )
    return NodePolicies(modules)
