r"""Latent trees as a torch layer: which way rows go, and which nodes there are, by a program.

Zantedeschi, Kusner, Niculae. Learning Binary Decision Trees by Argmin Differentiation. ICML 2021.
[LT21]

Scores of splits make rewards q of nodes; a quadratic program makes of these the traversals z of all
rows and the activities a of the nodes, of which some become exactly 0 (Eq. 3). The layer passes
gradients through the program.

What differs from the paper and from the authors' code:

1. Activities can be kept (`LatentTree.settle`), so that what a row gets does not depend on others.
2. Any real pruning >= 0 has right gradients; theirs has them for whole numbers.
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

    A row x has the score :math:`s_t(x)` at split t and goes left where that is negative. The reward
    :math:`q_{it}` of node t for row i is the score of the least sure split on the way there, and

    .. math:: \min_{z, a} \; \frac{\lambda}{2} \lVert a \rVert^2
        + \frac12 \sum_{i=1}^n \lVert z_i - q_i - \tfrac12 \rVert^2
        \quad \text{s.t. } a_t \le a_{p(t)}, \; z_{it} \le a_t, \; z, a \in [0, 1]
        \qquad \text{[LT21, Eq. (3)]}

    is solved for the rows of the batch. Where splits are sure, :math:`|s| \ge 1/2`, and nothing is
    pruned, z is 1 at the nodes that a row passes and 0 at all others; elsewhere rows go both ways.
    The higher the price :math:`\lambda`, the less active are nodes that few rows reach; those that
    none reaches have a = 0 and z = 0, and so has all that is below them.

    Parameters
    ----------
    in_features
        Size d of the last dimension of the input.
    max_depth
        Levels of splits h, 1 to 16: the tree has 2^h - 1 splits and 2^(h + 1) - 1 nodes.
    pruning
        :math:`\lambda`, any number >= 0; 0 prunes nothing. It is the price of a node for the rows
        of one batch: twice the batch asks for twice the price.
    activation
        The function applied to a split's score: ``"linear"``: s = w x + b; ``"elu"``: ELU(w x + b),
        which is above -1.
    split
        A module that computes the scores (n, 2^h - 1) of rows (n, d), to replace the linear
        splits.
    batch_norm
        Whether scores are normalized by a `torch.nn.BatchNorm1d` (before the ELU), which keeps them
        at the scale that the band of +-1/2 is meant for. Not for a module of your own.
    generator
        Where the random start comes from; by default torch's own generator.
    device, dtype
        Of the parameters. float32 and float64 are supported.

    Attributes
    ----------
    linear, norm
        The `torch.nn.Linear` and the `BatchNorm1d` of the splits, in heap order: the children of t
        are 2t + 1 (left) and 2t + 2 (right). None where there are none.
    split
        The module that computes scores from rows.
    activity
        (nodes,): what `settle` has kept.
    is_settled
        Whether it has.

    Notes
    -----
    **In training mode the program is solved for the batch.** In evaluation mode the activities that
    `settle` kept are used, and what a row gets depends on that row alone. A layer that was not
    settled solves for the batch in evaluation mode, too: rows then depend on their company.

    On the CPU the engine solves (`engine_available`), without a sort; elsewhere torch does, by
    sorting, which is the same up to rounding. Gradients are those of Section 3.2, one of the
    generalized ones at ties. Under autocast the layer computes in its own precision. A row with a
    NaN among its scores has z = NaN: keep such rows out of a batch.

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
                f"split has to make scores of shape ({x.shape[0]}, {self.n_splits}) of "
                f"{x.shape[0]} rows, got {tuple(made.shape)}"
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
        """Move every split to the middle of the rows that reach it: a start for deep trees.

        From the root down, the bias of a split (of the normalization, where there is one) becomes
        such that the median of its scores over the rows that hard splits send there is 0. Splits
        that at most one row reaches stay as they are.

        Parameters
        ----------
        x
            (n, in_features): rows of the training set; with batch normalization some thousands are
            as good as all.
        """
        if self.linear is None:
            raise TypeError("center is for linear splits, not for a module of your own")
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
        """Solve once over rows and keep the activities, which evaluation mode then uses.

        Settle again after further training: activities that were kept do not follow the splits.

        Parameters
        ----------
        x
            (..., in_features): the training rows. They pass through the splits in evaluation mode.
        batch_size
            Rows of a batch in training. The price of a node, `pruning`, is that for one batch, so
            it counts n / batch_size times for n rows. None: all rows are one batch.
        min_activity
            Activities below this become 0. The program's own are 0 where no row at all has a reward
            above -1/2; a single one of many rows gives a node a little.

        Returns
        -------
        activity
            (nodes,), what was kept.
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
        # A child is no more active than its parent, so what is left is a tree.
        is_kept = activity >= min_activity
        is_kept[0] = True  # the root: a tree without nodes would be none
        self.activity.copy_(torch.where(is_kept, activity, 0.0))
        self.is_settled = True
        return self.activity

    def pruned(self) -> PrunedLatentTree:
        """Return a settled tree without its inactive nodes, which has fewer splits to compute.

        Returns
        -------
        layer
            Its traversals (n, active) and activities (active,) are those of this layer in
            evaluation mode at `layer.nodes`; at all other nodes both are 0. Parameters are copies.

        Raises
        ------
        RuntimeError
            Where the layer was not settled: what is active then depends on the batch.
        """
        if not self.is_settled:
            raise RuntimeError("settle the tree first: layer.settle(training rows)")
        return PrunedLatentTree(self)

    def get_extra_state(self) -> dict[str, bool]:
        """Return what `state_dict` keeps besides numbers."""
        return {"is_settled": self.is_settled}

    def set_extra_state(self, state: dict[str, bool]) -> None:
        """Take over what `get_extra_state` returned."""
        self.is_settled = bool(state["is_settled"])

    def extra_repr(self) -> str:
        """Say what stands between the brackets of ``repr(layer)``."""
        return f"{self.in_features}, max_depth={self.max_depth}, pruning={self.pruning:g}"


def latent_projection(q: Tensor, pruning: float) -> tuple[Tensor, Tensor]:
    r"""Solve the program for rewards of your own: :math:`T_\lambda` [LT21, Eq. (3)].

    Parameters
    ----------
    q
        (n, 2^(depth + 1) - 1) rewards of the nodes in heap order, float32 or float64, depth 1 to
        16. Any numbers: a node may be worth more than its parent, with which it then is pooled.
    pruning
        :math:`\lambda \ge 0`.

    Returns
    -------
    z, a
        Traversals (n, nodes) and activities (nodes,), differentiable by q.

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
