"""Trajectories of samples through a tree whose policies are modules."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

if TYPE_CHECKING:
    from hardwood.nn.reinforced import ReinforcedTree

Choice = Callable[[Tensor], Tensor]
"""A function from log-probabilities of branches (n, M, width) to chosen branches, (n, M)."""


@dataclass(frozen=True)
class Trajectories:
    """Trajectories of n samples through a tree, M each.

    Attributes
    ----------
    leaf
        (n, M) int64, the leaf at the end, by its number among the leaves.
    nodes
        (n, M, depth) int64, the node from which each move was made; the leaf itself once there.
    steps
        (n, M, depth), the log-probability of each move, with its gradient; 0 once at the leaf.
    """

    leaf: Tensor
    nodes: Tensor
    steps: Tensor

    @property
    def log_probability(self) -> Tensor:
        """Log-probabilities of whole trajectories, (n, M)."""
        return self.steps.sum(-1)


class NodePolicies(nn.ModuleList):
    """A module for each split, in the order of nodes, which sees only the samples at its node."""

    def all_scores(self, layer: ReinforcedTree, x: Tensor) -> Tensor:
        """Return the scores of all moves, (n, n_moves); every module sees all samples."""
        topology = layer.topology
        columns: list[Tensor] = [x.new_empty(0)] * topology.n_moves
        for module, node in zip(self, topology.splits, strict=True):
            scores = _checked_scores(module(x), len(x), len(topology.children[node]), node)
            for child, column in zip(topology.children[node], scores.unbind(1), strict=True):
                columns[child - 1] = column
        return torch.stack(columns, dim=1)

    def at(self, layer: ReinforcedTree, x: Tensor, state: Tensor, level: int) -> Tensor:
        """Return the scores (n, M, width) of the moves from the current nodes of samples."""
        topology = layer.topology
        place = {node: i for i, node in enumerate(topology.splits)}
        scores = layer.leaves.new_full((*state.shape, topology.width), -math.inf)
        scores[..., 0] = 0.0  # samples at a leaf stay there
        for node in topology.levels[level]:
            n_children = len(topology.children[node])
            is_here = state == node  # (n, M)
            rows = is_here.any(dim=1).nonzero().flatten()
            if n_children == 0 or rows.numel() == 0:
                continue
            found = _checked_scores(self[place[node]](x[rows]), len(rows), n_children, node)
            found = nn.functional.pad(found, (0, topology.width - n_children), value=-math.inf)
            of_rows = scores.new_zeros((len(state), topology.width)).index_copy(0, rows, found)
            scores = torch.where(is_here[..., None], of_rows[:, None, :], scores)
        return scores


def _checked_scores(scores: Tensor, n: int, n_children: int, node: int) -> Tensor:
    if tuple(scores.shape) != (n, n_children):
        raise ValueError(
            f"the policy of node {node} must return a score for each of its {n_children} children, "
            f"({n}, {n_children}), got {tuple(scores.shape)}"
        )
    return scores


def walk(layer: ReinforcedTree, x: Tensor, n_trajectories: int, choose: Choice) -> Trajectories:
    """Move samples (n, ...) down the tree, `n_trajectories` times each."""
    state = torch.zeros((len(x), n_trajectories), dtype=torch.long, device=x.device)
    nodes, steps = [], []
    scores_at = _scores_at(layer, x)
    for level in range(layer.topology.depth):
        logs = torch.log_softmax(scores_at(state, level), dim=-1)  # (n, M, width)
        branch = choose(logs.detach())
        nodes.append(state)
        steps.append(logs.gather(-1, branch[..., None])[..., 0])
        state = layer.child[state].gather(-1, branch[..., None])[..., 0]
    return Trajectories(layer.leaf_number[state], torch.stack(nodes, -1), torch.stack(steps, -1))


def _scores_at(layer: ReinforcedTree, x: Tensor) -> Callable[[Tensor, int], Tensor]:
    policy = layer.policy
    if isinstance(policy, NodePolicies):
        return lambda state, level: policy.at(layer, x, state, level) / layer.temperature
    padded = _padded(layer.move_scores(x))

    def at(state: Tensor, level: int) -> Tensor:
        moves = layer.move[state]  # (n, M, width)
        return padded.gather(1, moves.flatten(1)).reshape(moves.shape)

    return at


def _padded(scores: Tensor) -> Tensor:
    """Append the scores of a filler and of staying to those of all moves (n, n_moves)."""
    none = scores.new_full((len(scores), 1), -math.inf)
    return torch.cat([scores, none, torch.zeros_like(none)], dim=1)


def leaf_log_probabilities(layer: ReinforcedTree, x: Tensor) -> Tensor:
    """Return the log-probability of every leaf for every sample, (n, L)."""
    scores = layer.move_scores(x)
    # (n, N): at each split, the log-sum-exp over its branches, which normalizes the scores.
    branches = _padded(scores)[:, layer.move.flatten()].unflatten(1, layer.move.shape)
    totals = torch.logsumexp(branches, dim=-1)
    logs = scores - totals[:, layer.parent[1:]]
    reached, first = [scores.new_zeros((len(scores), 1))], 1
    for level in layer.topology.levels[1:]:
        here = slice(first, first + len(level))
        steps = logs[:, layer.level_order[here] - 1]
        reached.append(reached[-1][:, layer.place_above[here]] + steps)
        first = here.stop
    return torch.cat(reached, dim=1)[:, layer.leaf_place]


def sampled(generator: torch.Generator | None) -> Choice:
    """Sample branches by their probabilities."""

    def choose(logs: Tensor) -> Tensor:
        waits = torch.empty_like(logs).exponential_(generator=generator)
        return (logs - waits.log()).argmax(dim=-1)  # the first of exponential clocks to ring

    return choose


def last_largest(values: Tensor) -> Tensor:
    """Return the index of the last largest value along the last dimension, as in `PolicyTree`."""
    return values.shape[-1] - 1 - values.flip(-1).argmax(dim=-1)
