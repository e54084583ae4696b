"""A latent tree without the nodes that were pruned."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from hardwood.nn.checks import checked_input, own_precision

if TYPE_CHECKING:
    from hardwood.nn.latent import LatentTree


class PrunedLatentTree(nn.Module):
    """The active nodes of a settled `LatentTree`, made by its `pruned`.

    Only splits above an active node are computed. Your own module computes all scores, and the
    others are discarded. The output of a row depends only on that row, also in training mode, in
    which the splits can be trained further, but not the activities.

    Attributes
    ----------
    nodes
        (active,) int64, ascending: the heap numbers of the active nodes.
    splits
        (splits,) int64, ascending: the heap numbers of the computed splits.
    activity
        (active,), in the order of `nodes`.
    split
        The module that computes scores from rows.
    """

    activity: Tensor
    nodes: Tensor
    splits: Tensor
    _own: Tensor
    _parent: Tensor
    _sign: Tensor

    def __init__(self, tree: LatentTree) -> None:
        super().__init__()
        self.in_features = tree.in_features
        nodes = torch.nonzero(tree.activity > 0)[:, 0]
        splits = ((nodes[1:] - 1) // 2).unique()
        inner = nodes[1:]
        self.register_buffer("nodes", nodes)
        self.register_buffer("splits", splits)
        self.register_buffer("activity", tree.activity[nodes].clone())
        # For every node but the root: its split, the index of its parent, and its side.
        self.register_buffer("_own", torch.searchsorted(splits, (inner - 1) // 2))
        self.register_buffer("_parent", torch.searchsorted(nodes, (inner - 1) // 2))
        self.register_buffer("_sign", torch.where(inner % 2 == 0, 1, -1).to(self.activity))
        depths = [int(t + 1).bit_length() - 1 for t in nodes.tolist()]
        self._level_sizes = [depths.count(d) for d in range(1, max(depths) + 1)]
        self.split = _some_splits(tree, splits)
        self._takes_all = tree.linear is None
        self.train(tree.training)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return traversals z (..., active) and activities a (active,); x as in `LatentTree`."""
        x = checked_input(self, x, self.activity.dtype)
        with own_precision(x):
            z = self._traversals(x.reshape(-1, self.in_features))
        return z.reshape(*x.shape[:-1], len(self.nodes)), self.activity

    def _traversals(self, rows: Tensor) -> Tensor:
        q = [rows.new_full((rows.shape[0], 1), torch.inf)]
        if self._level_sizes:
            scores = self.split(rows)
            scores = scores[:, self.splits] if self._takes_all else scores
            rewards = self._sign * scores[:, self._own]
            first, above = 0, 0  # the first nodes of the level (but the root) and the level above
            for size in self._level_sizes:
                here = slice(first, first + size)
                parent = self._parent[here] - above
                q.append(torch.minimum(q[-1][:, parent], rewards[:, here]))
                above, first = first + 1, first + size
        q[0] = torch.ones_like(q[0])
        return torch.minimum((torch.cat(q, dim=1) + 0.5).clamp(min=0.0), self.activity)

    def extra_repr(self) -> str:
        """Return the arguments in ``repr(layer)``."""
        sizes = f"nodes={len(self.nodes)}, splits={len(self.splits)}"
        return f"in_features={self.in_features}, {sizes}"


def _some_splits(tree: LatentTree, splits: Tensor) -> nn.Module:
    """Return a module that computes some splits of a tree, with copies of their parameters."""
    made = copy.deepcopy(tree.split)
    if tree.linear is None:
        return made
    for part in made.children():
        for name, tensor in [*part.named_parameters(), *part.named_buffers()]:
            if tensor.dim() > 0:  # all but the number of batches
                chosen = tensor.detach()[splits].clone()
                is_learned = isinstance(tensor, nn.Parameter)
                setattr(part, name, nn.Parameter(chosen) if is_learned else chosen)
        if isinstance(part, nn.Linear):
            part.out_features = len(splits)
        elif isinstance(part, nn.BatchNorm1d):
            part.num_features = len(splits)
    return made
