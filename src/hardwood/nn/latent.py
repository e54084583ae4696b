r"""Latent trees as a torch layer: paths of rows and pruning of nodes, by a quadratic program.

Zantedeschi, Kusner, Niculae. Learning Binary Decision Trees by Argmin Differentiation. ICML 2021.
[LT21]

The scores of splits give rewards q of nodes. From these, a quadratic program computes the
traversals z of all rows and the activities a of the nodes, some of which become exactly 0 (Eq. 3).
Gradients pass through the program.

What differs from the paper and from the authors' code:

1. Activities can be fixed (`LatentTree.settle`), so that the output of a row does not depend on
   other rows.
2. Gradients are correct for any pruning >= 0; in the authors' code only for integers.
"""

from __future__ import annotations

from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn

from hardwood.nn import latent_op
from hardwood.nn.checks import checked_input, own_precision, placement
from hardwood.nn.latent_pruned import PrunedLatentTree
from hardwood.parameters import choice, integer, real

MAX_DEPTH = 16

Activation = Literal["linear", "elu"]


class LatentTree(nn.Module):
    r"""A binary tree as a layer: traversals of its nodes and their activities.

    A row x has the score :math:`s_t(x)` at split t and goes left if it is negative. The reward
    :math:`q_{it}` of node t for row i is the smallest margin of the splits on the path to t. The
    layer solves

    .. math:: \min_{z, a} \; \frac{\lambda}{2} \lVert a \rVert^2
        + \frac12 \sum_{i=1}^n \lVert z_i - q_i - \tfrac12 \rVert^2
        \quad \text{s.t. } a_t \le a_{p(t)}, \; z_{it} \le a_t, \; z, a \in [0, 1]
        \qquad \text{[LT21, Eq. (3)]}

    for the rows of the batch. If all splits are certain, :math:`|s| \ge 1/2`, and no node is
    pruned, z is 1 at the nodes that a row passes and 0 at all others. Otherwise rows go partly both
    ways. A higher price :math:`\lambda` lowers the activity of nodes that few rows reach. Nodes
    that no row reaches have a = 0 and z = 0, and so do all nodes below them.

    Parameters
    ----------
    in_features
        Size d of the last dimension of the input.
    max_depth
        Levels of splits h, 1 to 16: the tree has 2^h - 1 splits and 2^(h + 1) - 1 nodes.
    pruning
        :math:`\lambda \ge 0`, the price of a node for the rows of one batch; 0 prunes nothing. The
        price should be proportional to the batch size.
    activation
        The function applied to a split's score: ``"linear"``: s = w x + b; ``"elu"``: ELU(w x + b),
        which is above -1.
    split
        A module that computes the scores (n, 2^h - 1) of rows (n, d), to replace the linear
        splits.
    batch_norm
        Whether a `torch.nn.BatchNorm1d` normalizes scores (before the ELU) to a suitable scale for
        the band of +-1/2. Not used with your own `split`.
    generator
        Generator of the random start; the default is torch's own.
    device, dtype
        Device and dtype of the parameters, float32 or float64.

    Attributes
    ----------
    linear, norm
        The `torch.nn.Linear` and the `BatchNorm1d` of the splits, in heap order: the children of t
        are 2t + 1 (left) and 2t + 2 (right); or None.
    split
        The module that computes scores from rows.
    activity
        (nodes,), the activities from `settle`.
    is_settled
        Whether `settle` was called.

    Notes
    -----
    **In training mode, the program is solved for the batch.** In evaluation mode, the activities
    from `settle` are used, and the output of a row depends only on that row. A layer that was not
    settled solves the program in evaluation mode, too, so rows depend on the rest of the batch.

    On the CPU the engine solves the program (`engine_available`) without sorting; elsewhere torch
    does, by sorting, with the same result up to rounding. Gradients are those of Section 3.2; at
    ties, one of the generalized gradients. Under autocast the layer computes in its own precision.
    A row with a NaN score has z = NaN; keep such rows out of a batch.

    Examples
    --------
    >>> import torch
    >>> from hardwood.nn import LatentTree
    >>> tree = LatentTree(8, max_depth=3, pruning=1.0)
    >>> z, a = tree(torch.randn(20, 8))
    >>> z.shape, a.shape
    (torch.Size([20, 15]), torch.Size([15]))
    >>> head = torch.nn.Linear(15, 2)  # any network on top
    >>> head(z).sum().backward()
    """

    activity: Tensor
    linear: nn.Linear | None
    norm: nn.BatchNorm1d | None

    def __init__(
        self,
        in_features: int,
        max_depth: int = 5,
        pruning: float = 1.0,
        activation: Activation = "linear",
        *,
        split: nn.Module | None = None,
        batch_norm: bool = True,
        generator: torch.Generator | None = None,
        device: Any = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.in_features = integer("in_features", in_features, 1)
        self.max_depth = integer("max_depth", max_depth, 1, MAX_DEPTH)
        self.pruning = _checked_pruning(pruning)
        place = placement(self, device, dtype)
        self.is_settled = False
        self.register_buffer("activity", torch.ones(self.n_nodes, **place))
        self.linear, self.norm = None, None
        choice("activation", activation, get_args(Activation))
        if split is not None:
            self.split = _checked_split(split, activation)
            return
        self.linear = nn.Linear(self.in_features, self.n_splits, **place)
        self.norm = nn.BatchNorm1d(self.n_splits, **place) if batch_norm else None
        elu = nn.ELU() if activation == "elu" else None
        self.split = nn.Sequential(*(p for p in (self.linear, self.norm, elu) if p is not None))
        self.reset_parameters(generator)

    @property
    def n_splits(self) -> int:
        """Number of splits, 2^h - 1."""
        return 2**self.max_depth - 1

    @property
    def n_nodes(self) -> int:
        """Number of nodes, 2^(h + 1) - 1: splits first, then leaves from left to right."""
        return 2 ** (self.max_depth + 1) - 1

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        r"""Draw a new random start: weights uniform in :math:`\pm 1/\sqrt d`, biases zero."""
        if self.linear is not None:
            bound = self.in_features**-0.5
            nn.init.uniform_(self.linear.weight, -bound, bound, generator=generator)
            nn.init.zeros_(self.linear.bias)
        if self.norm is not None:
            self.norm.reset_parameters()
        self.is_settled = False

    def scores(self, x: Tensor) -> Tensor:
        """Return the scores of the splits, (n, 2^h - 1), of rows (n, in_features)."""
        made = self.split(x)
        if made.shape != (x.shape[0], self.n_splits):
            raise ValueError(
                f"split must return scores of shape ({x.shape[0]}, {self.n_splits}), a row for "
                f"each row given, got {tuple(made.shape)}"
            )
        return made

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return traversals z (..., nodes) and activities a (nodes,).

        Parameters
        ----------
        x
            (..., in_features), of the parameters' dtype.
        """
        x = checked_input(self, x, self.activity.dtype)
        with own_precision(x):
            rows = x.reshape(-1, self.in_features)
            scores = self.scores(rows) if rows.shape[0] > 0 else rows.new_empty((0, self.n_splits))
            if self.is_settled and not self.training:
                z, activity = latent_op.follow(scores, self.activity), self.activity
            else:
                z, activity = latent_op.solve(scores, self.pruning)
        return z.reshape(*x.shape[:-1], self.n_nodes), activity

    @torch.no_grad()
    def center(self, x: Tensor) -> None:
        """Move every split to the middle of the rows that reach it, as a start for deep trees.

        From the root down, the bias of a split (or of the normalization) is set such that the
        median score of the rows that reach it by hard splits is 0. Splits that at most one row
        reaches are unchanged.

        Parameters
        ----------
        x
            (n, in_features), training rows; with batch normalization some thousands suffice.
        """
        if self.linear is None:
            raise TypeError("center is for linear splits, not for your own module")
        x = checked_input(self, x, self.activity.dtype).reshape(-1, self.in_features)
        scores = self.linear(x)
        if self.norm is not None and len(x) > 1:
            scores = (scores - scores.mean(0)) / (scores.var(0, False) + self.norm.eps).sqrt()
            scores = scores * self.norm.weight + self.norm.bias
        bias = self.linear.bias if self.norm is None else self.norm.bias
        node = torch.zeros(len(x), dtype=torch.long, device=x.device)
        for level in range(self.max_depth):
            for t in range(2**level - 1, 2 ** (level + 1) - 1):
                here = node == t
                if int(here.sum()) > 1:
                    middle = scores[here, t].quantile(0.5)
                    bias[t] -= middle
                    scores[:, t] -= middle
            node = 2 * node + 1 + (scores.gather(1, node[:, None])[:, 0] >= 0)
        self.is_settled = False

    @torch.no_grad()
    def settle(
        self, x: Tensor, *, batch_size: int | None = None, min_activity: float = 0.0
    ) -> Tensor:
        """Solve the program for given rows and fix the activities for evaluation mode.

        Settle again after further training: fixed activities do not follow the splits.

        Parameters
        ----------
        x
            (..., in_features), the training rows. The splits score them in evaluation mode.
        batch_size
            Rows of a batch in training. `pruning` is the price for one batch, so it is multiplied
            by n / batch_size for n rows. None: all rows are one batch.
        min_activity
            Activities below this are set to 0. The program gives 0 only if no row has a reward
            above -1/2; a single row of many already makes a node slightly active.

        Returns
        -------
        activity
            (nodes,), the fixed activities.
        """
        x = checked_input(self, x, self.activity.dtype).reshape(-1, self.in_features)
        if len(x) == 0:
            raise ValueError("settle needs at least one row, got none")
        rows = len(x) if batch_size is None else integer("batch_size", batch_size, 1)
        was_training = self.training
        self.eval()
        try:
            with own_precision(x):
                scores = self.scores(x)
        finally:
            self.train(was_training)
        _, activity = latent_op.solve(scores, self.pruning * len(x) / rows)
        # A child is at most as active as its parent, so the kept nodes form a tree.
        is_kept = activity >= min_activity
        is_kept[0] = True  # always keep the root
        self.activity.copy_(torch.where(is_kept, activity, 0.0))
        self.is_settled = True
        return self.activity

    def pruned(self) -> PrunedLatentTree:
        """Return a settled tree without its inactive nodes, which computes fewer splits.

        Returns
        -------
        layer
            Its traversals (n, active) and activities (active,) are those of this layer in
            evaluation mode at `layer.nodes`; at all other nodes both are 0. Parameters are copies.

        Raises
        ------
        RuntimeError
            If the layer was not settled: activities then depend on the batch.
        """
        if not self.is_settled:
            raise RuntimeError("settle the tree first: layer.settle(training rows)")
        return PrunedLatentTree(self)

    def get_extra_state(self) -> dict[str, bool]:
        """Return the part of `state_dict` that is not a tensor."""
        return {"is_settled": self.is_settled}

    def set_extra_state(self, state: dict[str, bool]) -> None:
        """Set the state from `get_extra_state`."""
        self.is_settled = bool(state["is_settled"])

    def extra_repr(self) -> str:
        """Return the arguments in ``repr(layer)``."""
        return f"{self.in_features}, max_depth={self.max_depth}, pruning={self.pruning:g}"


def latent_projection(q: Tensor, pruning: float) -> tuple[Tensor, Tensor]:
    r"""Solve the program for given rewards: :math:`T_\lambda` [LT21, Eq. (3)].

    Parameters
    ----------
    q
        (n, 2^(depth + 1) - 1) rewards of the nodes in heap order, float32 or float64, depth 1 to
        16. A node may have a larger reward than its parent; the two are then pooled.
    pruning
        :math:`\lambda \ge 0`.

    Returns
    -------
    z, a
        Traversals (n, nodes) and activities (nodes,), differentiable with respect to q.

    Examples
    --------
    >>> import torch
    >>> from hardwood.nn import latent_projection
    >>> z, a = latent_projection(torch.tensor([[1.0, 0.7, -0.7]]), pruning=0.0)
    >>> z.tolist(), a.tolist()
    ([[1.0, 1.0, 0.0]], [1.0, 1.0, 1.0])
    """
    n_nodes = q.shape[1] if q.dim() == 2 else 0
    if n_nodes + 1 not in {2**d for d in range(2, MAX_DEPTH + 2)}:
        raise ValueError(
            f"q must have the shape (n, 2^(depth + 1) - 1) for a depth of 1 to {MAX_DEPTH}, got "
            f"{tuple(q.shape)}"
        )
    if q.dtype not in (torch.float32, torch.float64):
        raise TypeError(f"q must be float32 or float64, got {q.dtype}")
    return latent_op.solve(q, _checked_pruning(pruning), is_q=True)


def _checked_split(split: Any, activation: Activation) -> nn.Module:
    if not isinstance(split, nn.Module):
        raise TypeError(f"split must be None or a module, got {type(split).__name__}")
    if activation != "linear":
        raise ValueError(
            f"activation={activation!r} is for linear splits, and split= replaces them: put the "
            "activation into the module"
        )
    return split


def _checked_pruning(value: Any) -> float:
    return real("pruning", value, 0.0, 1e30, open_high=False)
