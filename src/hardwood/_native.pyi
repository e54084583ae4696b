"""The engine of hardwood: encoding, routing and learning, in C++."""

from collections.abc import Sequence
from typing import Annotated, overload

import numpy
from numpy.typing import NDArray


class Encoder:
    """Turns raw rows into the columns that splits weigh."""

    def __init__(self, kinds: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], first_column: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], n_levels: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], flag_column: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], center: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], scale: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], n_columns: int) -> None: ...

    @property
    def n_columns(self) -> int: ...

    def encode(self, X: object) -> NDArray[numpy.float32]:
        """Encoded rows (n, n_columns), in the schema's order."""

class LeafModels:
    """
    The linear models of a tree's leaves, packed; in the schema's raw units.
    """

    def __init__(self, encoder: Encoder, values: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], weights: Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], link: str) -> None: ...

class Router:
    """
    A tree packed for routing. Weights and bias are in the schema's raw units.
    """

    def __init__(self, encoder: Encoder, weights: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], bias: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], children: Annotated[NDArray[numpy.int32], dict(shape=(None, None), order='C', device='cpu', writable=False)], n_leaves: int) -> None: ...

    def apply(self, X: object, n_threads: int = 1) -> NDArray[numpy.int32]:
        """Leaf of every row."""

    @overload
    def apply_one(self, x: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> int:
        """Leaf of one row."""

    @overload
    def apply_one(self, x: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> int: ...

    def answer(self, leaves: LeafModels, X: object, n_threads: int = 1) -> NDArray[numpy.float64]:
        """What linear leaves answer to every row, (n, k)."""

    @overload
    def answer_one(self, leaves: LeafModels, x: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None:
        """The same to one row, written to out, (k,)."""

    @overload
    def answer_one(self, leaves: LeafModels, x: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None: ...

class ForestRouter:
    """Packed trees of one schema, asked together."""

    def __init__(self, routers: list, leaves: list, vote: str, is_sum: bool = False) -> None:
        """
        leaves: of each tree its LeafModels, or its values (L, k); vote: none, class, labels; is_sum: answers are added up, not averaged.
        """

    def apply(self, X: object, n_threads: int = 1) -> NDArray[numpy.int32]:
        """Leaves of every row, (n, trees)."""

    def answer(self, X: object, n_threads: int = 1) -> NDArray[numpy.float64]:
        """Mean or sum of the trees' answers or votes for every row, (n, k)."""

    @overload
    def answer_one(self, x: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None:
        """The same for one row, written to out, (k,)."""

    @overload
    def answer_one(self, x: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None: ...

def apply_link(scores: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], link: str, n_threads: int = 1) -> None:
    """
    Turn scores (n, k) into outputs, in place: identity, exp, softmax or logistic.
    """

class SoftRouter:
    """Soft trees, packed. Weights and bias are in the schema's raw units."""

    def __init__(self, encoder: Encoder, weights: Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], bias: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], gamma: float, activation: str) -> None: ...

    def scores(self, X: object, n_threads: int = 1) -> NDArray[numpy.float64]:
        """Sums of the trees' scores for every row, (n, k)."""

    @overload
    def scores_one(self, x: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None:
        """The same for one row, written to out, (k,)."""

    @overload
    def scores_one(self, x: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None: ...

    def reachable(self, X: object, n_threads: int = 1) -> NDArray[numpy.int32]:
        """Leaves that every row reaches in every tree, (n, trees)."""

    def leaf_weights(self, X: object, weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> NDArray[numpy.float64]:
        """What arrives at leaves: weights times shares, (trees, leaves)."""

class PolicyRouter:
    """A policy tree, packed. Weights and bias are in the schema's raw units."""

    def __init__(self, encoder: Encoder, weights: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], bias: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], child: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], n_children: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], exponents: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

    def apply(self, X: object, most_probable: bool, n_threads: int = 1) -> NDArray[numpy.int32]:
        """Leaf of every row: greedily, or the most probable one."""

    @overload
    def apply_one(self, x: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> int:
        """Leaf of one row, greedily."""

    @overload
    def apply_one(self, x: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> int: ...

    def leaf_probabilities(self, X: object, n_threads: int = 1) -> NDArray[numpy.float64]:
        """Probability of every leaf for every row, (n, leaves)."""

def shapley(forest: ForestRouter, link: str, X: object, background: object, *, output: int, n_orders: int, most_cases: int, seed: int, n_threads: int) -> tuple:
    """
    Shapley values (n, p, k) of a forest's answers, their variances, and which rows are exact. output: one of the k, or -1 for all. most_cases: per background row, 0 to sample always.
    """

def fit(method: str, encoder: Encoder, matrix: object, y: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], weight: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], train: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], valid: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], *, n_outputs: int, loss: str, loss_parameter: float, custom: object | None, start: object | None, first_run: int, n_runs: int, n_draws: int | None, keep_all: bool, seed: int, n_threads: int, callback: object | None, options: dict) -> dict:
    """
    Models learned by the method dgt, tel, non_greedy or reinforced, side by side: {trees, history, best_run, interrupted}; of each tree {weights, bias, scores, leaf_weights, best_epoch, criterion, soft_criterion}.
    """

def bootstrap_counts(n_rows: int, n_draws: int, seed: int, member: int) -> NDArray[numpy.uint32]:
    """How often each row is drawn for a member of a forest."""

def fit_greedy(encoder: Encoder, X: object, target: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], weight: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], count: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], train_rows: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], *, n_outputs: int, seed: int, n_threads: int, options: dict) -> dict:
    """A tree grown greedily: {weights, bias, children, leaf, interrupted}."""

class TaoTable:
    """Encoded rows over which the splits of trees are improved."""

    def __init__(self, encoder: Encoder, X: object, rows: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], n_threads: int) -> None: ...

    def columns(self, rows: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> NDArray[numpy.float32]:
        """Encoded rows (r, c), by their places."""

    def leaves(self, children: Annotated[NDArray[numpy.int32], dict(shape=(None, None), order='C', device='cpu', writable=False)], weights: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], bias: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], n_threads: int) -> NDArray[numpy.int32]:
        """The leaf of each row, (n,)."""

    def reduced(self, children: Annotated[NDArray[numpy.int32], dict(shape=(None, None), order='C', device='cpu', writable=False)], weights: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], bias: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], scores: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], leaf_weights: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)] | None, class_losses: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)] | None, target: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], weight: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], *, loss: str, loss_parameter: float, node: int, rows_at_node: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> tuple:
        """
        Which of a node's rows care for the side they go to: (rows, sign, cost).
        """

    def sweep(self, children: Annotated[NDArray[numpy.int32], dict(shape=(None, None), order='C', device='cpu', writable=False)], weights: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], bias: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], scores: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], leaf_weights: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)] | None, class_losses: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)] | None, target: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], weight: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], *, loss: str, loss_parameter: float, options: dict, feature_of_column: Sequence[int], n_threads: int, seconds: float = float('inf')) -> dict:
        """
        Improves every split once, or as many as there are seconds for: {weights, bias, n_changed, gain, row_passes, interrupted, is_whole}.
        """

def linear_splits(columns: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], slope: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], curvature: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], count: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], *, bins: Annotated[NDArray[numpy.uint16], dict(shape=(None, None), order='C', device='cpu', writable=False)], n_bins: Sequence[int], has_missing: Sequence[bool], l2: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], min_count: float, n_threads: int) -> tuple:
    """
    The best threshold of each candidate, where both sides get a linear model: (gain, first_right, missing_right).
    """

@overload
def tel_forward(X: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], W: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], b: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], O: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')], gamma: float, activation: str, n_threads: int = 1) -> None: ...

@overload
def tel_forward(X: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], W: Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], b: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], O: Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], gamma: float, activation: str, n_threads: int = 1) -> None:
    """Write what soft trees answer together (n, k)."""

@overload
def tel_backward(X: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], W: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], b: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], O: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], slope: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], dX: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')] | None, dW: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order='C', device='cpu')], db: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')], dO: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order='C', device='cpu')], gamma: float, activation: str, n_threads: int = 1) -> None: ...

@overload
def tel_backward(X: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], W: Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], b: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], O: Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], slope: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], dX: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')] | None, dW: Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), order='C', device='cpu')], db: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], dO: Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), order='C', device='cpu')], gamma: float, activation: str, n_threads: int = 1) -> None:
    """
    Write the gradients by X (unless None), W, b and O, for the slopes (n, k) of a loss by the answers.
    """

@overload
def tel_reachable(X: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], W: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], b: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], leaves: Annotated[NDArray[numpy.int32], dict(shape=(None, None), order='C', device='cpu')], gamma: float, activation: str, n_threads: int = 1) -> None: ...

@overload
def tel_reachable(X: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], W: Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], b: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], leaves: Annotated[NDArray[numpy.int32], dict(shape=(None, None), order='C', device='cpu')], gamma: float, activation: str, n_threads: int = 1) -> None:
    """Write how many leaves of each tree each row reaches (n, T)."""

def dgt_layer_forward(X: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], W: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], b: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], theta: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], prediction: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')], leaf: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu')], n_threads: int = 1) -> None:
    """Write each row's leaf (n,) and its values (n, k)."""

def dgt_layer_backward(X: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], W: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], b: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], theta: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], leaf: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], slope: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], dX: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')] | None, dW: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')], db: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], dtheta: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')], n_threads: int = 1) -> None:
    """
    Write the gradients of Algorithm 2 by X (unless None), W, b and theta, for the slopes (n, k) of a loss by the predictions.
    """

@overload
def latent_prune(rows: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], is_q: bool, pruning: float, activity: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], group: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu')], curvature: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None: ...

@overload
def latent_prune(rows: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], is_q: bool, pruning: float, activity: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], group: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu')], curvature: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """
    Write the activities of a tree's nodes for a batch, the topmost node that each is pooled with, and the curvature of its group. Rows are scores of splits, or q of nodes.
    """

@overload
def latent_traverse(rows: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], is_q: bool, activity: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], z: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')], n_threads: int = 1) -> None: ...

@overload
def latent_traverse(rows: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], is_q: bool, activity: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], z: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], n_threads: int = 1) -> None:
    """Write the traversals (n, nodes) of a batch."""

@overload
def latent_backward(rows: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], is_q: bool, activity: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], group: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], curvature: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], slope_z: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], slope_activity: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], slope: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')], n_threads: int = 1) -> None: ...

@overload
def latent_backward(rows: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], is_q: bool, activity: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], group: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], curvature: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], slope_z: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], slope_activity: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], slope: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], n_threads: int = 1) -> None:
    """Write the slopes by the rows, from those by traversals and activities."""

class BanditEngine:
    """A tree that learns from the rewards of its actions."""

    def __init__(self, n_columns: int, n_actions: int, height: int, options: dict, seed: int) -> None: ...

    def decide(self, x: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], mask: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)] | None) -> tuple:
        """
        An action, its propensity, the leaf of the context, and the version of the tree.
        """

    def learn(self, x: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], action: int, reward: float, propensity: float) -> None:
        """Learn from one round whose decision was made here."""

    def learn_many(self, X: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], actions: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], rewards: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], propensities: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], weights: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None:
        """Learn from the rounds of another policy."""

    def replay(self, X: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], feedback: object, masks: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu', writable=False)] | None) -> tuple:
        """
        Decide and learn, row by row; returns actions, propensities and rewards.
        """

    def leaves(self, X: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)]) -> NDArray[numpy.int32]:
        """Leaves of the contexts (n,)."""

    def values(self, X: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)]) -> NDArray[numpy.float64]:
        """Expected rewards (n, K)."""

    def probabilities(self, X: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], masks: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu', writable=False)] | None) -> NDArray[numpy.float64]:
        """Current probabilities of the actions (n, K)."""

    def leaf_probabilities(self, mask: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)] | None) -> NDArray[numpy.float64]:
        """Current probabilities of the actions in every leaf (leaves, K)."""

    def report(self) -> dict:
        """
        Means and standard errors of the rewards of tree and network, and how often they agree.
        """

    @property
    def changes(self) -> list[int]:
        """Rounds learned at each detected change."""

    @property
    def tree_decides(self) -> bool: ...

    @property
    def n_decided(self) -> int: ...

    def tree(self) -> dict:
        """The perfect tree, with columns and rewards in their original units."""

    def start_from(self, weights: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], bias: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], center: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], scale: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], trust: float) -> None: ...

    def state(self) -> dict:
        """The complete state, as arrays."""

    def set_state(self, state: dict) -> None: ...

    @property
    def n_learned(self) -> int: ...

class BanditRegressionEngine:
    """A tree that learns from the losses of its numbers."""

    def __init__(self, n_columns: int, height: int, options: dict, seed: int) -> None: ...

    def count_context(self, x: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None:
        """Update the moments of the columns with a context."""

    def predict_one(self, x: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> tuple:
        """A prediction, the leaf of the context, and the version of the tree."""

    def direction(self) -> int:
        """Draw +1 or -1, or with replay also +2 or -2."""

    def learn_two(self, x: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], prediction: float, below: float, above: float) -> None: ...

    def learn_one(self, x: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], prediction: float, direction: int, loss: float) -> None: ...

    def predict(self, X: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)]) -> NDArray[numpy.float64]: ...

    def replay(self, X: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], y: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], loss: str, parameter: float) -> NDArray[numpy.float64]:
        """Decide and learn, row by row; returns the losses."""

    def tree(self) -> dict:
        """The perfect tree, with columns and rewards in their original units."""

    def start_from(self, weights: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], bias: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], center: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], scale: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], trust: float) -> None: ...

    def state(self) -> dict:
        """The complete state, as arrays."""

    def set_state(self, state: dict) -> None: ...

    @property
    def n_learned(self) -> int: ...

class CounterfactualSearch:
    """
    Regions of a table's rows, each where some half-spaces of the schema's columns hold.
    """

    def __init__(self, kind: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], first_column: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], n_levels: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], cost: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], may_become: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], normals: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], bias: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], sizes: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], first: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], members: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

    def search(self, X: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], low: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], high: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], columns: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], sides: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu', writable=False)], *, norm: str, margin: float, everywhere: bool, most_steps: int, n_threads: int) -> tuple:
        """
        The nearest row in a region for each row (n, p), which were found, and which are proven.
        """

def instruction_set() -> str:
    """The instruction set in use."""

def loss(name: str, prediction: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], target: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], weight: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], parameter: float = 0.0) -> tuple[float, NDArray[numpy.float32]]:
    """
    Weighted mean of a loss over the samples, and its gradient by the prediction.
    """
