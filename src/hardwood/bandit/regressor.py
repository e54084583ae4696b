"""A tree that sets a number and learns from its loss, whatever the loss is.

[DGT22] A. Karthikeyan, N. Jain, N. Natarajan, P. Jain, "Learning Accurate Decision Trees with
Bandit Feedback via Quantized Gradient Descent", TMLR 2022: Algorithm 1, Eqs. (9) and (10).

=========  ==========================================
paper      here
=========  ==========================================
delta      ``perturbation``
u          ``direction``, -1 or +1
l'         ``slope`` of the loss at the prediction
=========  ==========================================
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from hardwood import parameters
from hardwood.bandit import log, trees
from hardwood.bandit.history import LossHistory
from hardwood.bandit.online import OnlineLearner, finite, warn_if_interrupted
from hardwood.bandit.parameters import OnlineParameters, RegressionParameters
from hardwood.bandit.tokens import Decision
from hardwood.model import ObliqueTree
from hardwood.table import Schema
from hardwood.text.numbers import plural

if TYPE_CHECKING:
    from typing_extensions import Self

LOSSES = ("squared", "huber")

Loss = Callable[[np.ndarray, np.ndarray], Any]
"""A function of row numbers and predictions, or of targets and predictions, that gives losses."""


def one_point_slope(loss: float, direction: int, perturbation: float) -> float:
    """Estimate the slope of a loss from its value at one point, ``prediction + delta u``."""
    return loss * direction / perturbation  # Eq. (9)


def two_point_slope(below: float, above: float, perturbation: float) -> float:
    """Estimate the slope of a loss from its values at ``prediction -+ delta``."""
    return (above - below) / (2 * perturbation)  # Eq. (10)


@dataclass(kw_only=True, eq=False, repr=False)
class DGTBanditRegressor(OnlineLearner):
    """Set a number for each context; learn from its loss, whatever the loss is.

    Parameters
    ----------
    method : str, default="two_point"
        "two_point": each round tries the prediction minus and plus a perturbation, and observes
        both losses. "one_point": each round tries one number near the prediction, drawn at random.
        Both learn from a replay buffer. "paper_two_point" and "paper_one_point": the estimators of
        the paper, Eqs. (10) and (9), with one gradient per round and no stored rounds.
    max_depth : int, default=6
        Depth of the tree, 1 to 10.
    learning_rate : float or "auto", default="auto"
        Step size; "auto": 0.005 with a replay buffer (Adam; splits as for `DGTBandit`), 0.001 for
        the methods of the paper (RMSprop).
    perturbation : float or "auto", default="auto"
        How far from the prediction numbers are tried, in units of `scale`; "auto": 0.7 for
        "one_point", 0.5 for the others. With "one_point", half of the rounds try twice as far,
        which shows how curved the loss is.
    start : float, default=0.0
        The first prediction.
    scale : float, default=1.0
        Roughly how far good predictions lie from `start`.
    batch_size : int, default=256
        With a replay buffer: stored rounds per gradient step.
    updates_per_round : float, default=1.0
        With a replay buffer: gradient steps per learned round, on average.
    buffer_size : int, default=100_000
        The number of rounds that the replay buffer holds: the most recent ones.
    input_noise : float, default=1.0
        With a replay buffer: noise added to replayed contexts, as for `DGTBandit`.
    gradient_accumulation : int, default=4
        For the methods of the paper: rounds whose gradients are summed for one step.
    features, max_open, random_state
        Same as for `DGTBandit`.
    init : ObliqueTree or fitted estimator, default=None
        A tree to start from: a regression with one output.

    Notes
    -----
    A parameter that the method does not use raises ``ValueError`` if it is not left at its default.

    Examples
    --------
    >>> from hardwood.bandit import DGTBanditRegressor
    >>> controller = DGTBanditRegressor(random_state=0)
    >>> decision = controller.decide([21.5, 0.4])
    >>> below, above = decision.action
    >>> above - below
    1.0
    >>> controller.learn(decision.token, losses=(3.0, 2.5))
    """

    method: Literal["two_point", "one_point", "paper_two_point", "paper_one_point"] = "two_point"
    max_depth: int = 6
    perturbation: float | Literal["auto"] = "auto"
    start: float = 0.0
    scale: float = 1.0
    batch_size: int = 256

    _parameters_type: ClassVar[type[OnlineParameters]] = RegressionParameters

    def __post_init__(self) -> None:
        super().__post_init__()
        self._has_two_points = self._parameters.has_two_points
        self._distance = self._parameters.perturbation * self._parameters.scale

    # Round by round

    def decide(self, x: Any) -> Decision:
        """Choose the number or numbers to try for a context.

        Returns
        -------
        decision
            ``action``: the numbers ``(below, above)`` to try, or with one point the single number;
            ``propensity``: 1, or with one point the probability of the number.

        Raises
        ------
        TableError
            If the context does not fit the features; the message names the feature.
        """
        row = self._row(x)
        delta = self._distance
        with self._deciding:
            self._engine.count_context(row)
            prediction, leaf, version = self._engine.predict_one(row)
            if self._has_two_points:
                action: Any = (prediction - delta, prediction + delta)
                direction, propensity = 1, 1.0
            else:
                direction, propensity = self._engine.direction(), 1.0 / len(self._directions)
                action = prediction + delta * direction
            # The direction implies the propensity, so the prediction is stored in its place.
            token = self._open.add((row, direction, prediction))
        return Decision(action, propensity, token, leaf, version)

    def learn(self, token: int, loss: Any = None, *, losses: Any = None) -> None:
        """Learn from the ``loss`` of the number tried, or the ``losses=(below, above)`` of two.

        Raises
        ------
        TokenError
            If the token is unknown, has expired or was already learned from.
        ValueError, TypeError
            If a loss is not a finite number; the decision stays open.
        """
        given, expected = (
            (losses, "losses=(below, above)") if self._has_two_points else (loss, "loss=")
        )
        if given is None or (loss is not None and losses is not None):
            raise TypeError(f"with method={self._parameters.method!r}, give {expected} only")
        found = _pair(given) if self._has_two_points else [finite("loss", given)]
        self._learn(token, lambda x, direction, at: self._observe(x, at, direction, found))

    @property
    def _directions(self) -> tuple[int, ...]:
        """Possible directions, in perturbations from the prediction."""
        if self._has_two_points:
            return (1,)
        return (-1, 1) if self._parameters.is_paper else (-2, -1, 1, 2)

    def _observe(
        self, x: np.ndarray, prediction: float, direction: int, losses: list[float]
    ) -> None:
        """Pass the losses of a round to the engine, after a check that their slope is finite."""
        if self._has_two_points:
            below, above = losses
            finite("the slope of the loss", two_point_slope(below, above, self._distance))
            self._engine.learn_two(x, prediction, below, above)
        else:
            finite("the slope of the loss", one_point_slope(losses[0], direction, self._distance))
            self._engine.learn_one(x, prediction, direction, losses[0])

    # Many rounds at once

    def replay(
        self, X: Any, feedback: Any, *, loss: str | Loss = "squared", delta: float = 1.0
    ) -> LossHistory:
        """Decide and learn for every row in turn.

        Parameters
        ----------
        X
            The n contexts, a table.
        feedback
            (n,) targets, from which `loss` is computed; or a function of row numbers and
            predictions, two arrays, that returns the losses.
        loss
            "squared" or "huber", which run in native code; or a function of targets and
            predictions, two arrays, that returns the losses. Only with targets.
        delta
            For "huber": the error beyond which the loss is linear.

        Notes
        -----
        A function is called once per round, with the one number or the two that are tried. If it
        fails or does not return finite numbers, the rows before it have been learned.
        """
        _check_loss(feedback, loss, delta)
        rows, contexts = self._rows(X)
        targets = None if callable(feedback) else log.numbers("feedback", feedback, len(rows))
        if targets is None:
            rows = self._begun(X, rows, contexts)
            return self._replay_function(rows, feedback)
        if callable(loss):
            rows = self._begun(X, rows, contexts)
            of_targets, y = loss, targets
            return self._replay_function(rows, lambda i, tried: of_targets(y[i], tried))
        rows = self._begun(X, rows, contexts)
        losses = self._engine.replay(rows, targets, loss, float(delta))
        warn_if_interrupted(len(losses), len(rows))
        return LossHistory(losses)

    def _replay_function(self, rows: np.ndarray, losses_of: Loss) -> LossHistory:
        seen = np.empty(len(rows))
        delta = self._distance
        for i, row in enumerate(rows):
            self._engine.count_context(row)
            prediction, *_ = self._engine.predict_one(row)
            with self._deciding:
                direction = 1 if self._has_two_points else self._engine.direction()
            steps = np.array([-1.0, 1.0] if self._has_two_points else [float(direction)])
            found = losses_of(np.full(len(steps), i), prediction + delta * steps)
            losses = _losses(found, i, steps)
            seen[i] = np.mean(losses)
            self._observe(row, prediction, direction, losses)
        return LossHistory(seen)

    # Predictions

    def predict(self, X: Any) -> np.ndarray:
        """Return the number with the least expected loss for every row, (n,)."""
        rows = self._started().rows(X)
        predicted: np.ndarray = self._engine.predict(rows)
        return predicted

    @property
    def tree_(self) -> ObliqueTree:
        """The current tree: a regression."""
        contexts = self._started()
        return trees.value_tree(self._engine.tree(), contexts, None)

    # Methods that the base class needs

    def _new_engine(self, n_columns: int, order: Mapping[str, Any] | None = None) -> Any:
        from hardwood._native import BanditRegressionEngine

        chosen = self._parameters
        options = chosen.for_engine(n_columns) | dict(order or {})
        return BanditRegressionEngine(n_columns, chosen.max_depth, options, self._seed)

    def _start_engine(self, engine: Any, tree: ObliqueTree, schema: Schema) -> None:
        if tree.task != "regression" or tree.n_outputs != 1:
            raise ValueError(f"init must be a regression tree of one output, found {tree!r}.")
        engine.start_from(**trees.start_of(tree, schema, self._parameters.max_depth))

    def _header(self) -> dict[str, Any]:
        return {"actions": None}

    @classmethod
    def _blank(cls, header: Mapping[str, Any], **arguments: Any) -> Self:
        if header["actions"] is not None:
            raise ValueError("a regressor has no actions")
        return cls(**arguments)

    def _check_open(self, action: np.ndarray, propensity: np.ndarray) -> None:
        if not (np.isin(action, self._directions).all() and np.isfinite(propensity).all()):
            raise ValueError("an open decision has an impossible direction or prediction")


def _check_loss(feedback: Any, loss: Any, delta: Any) -> None:
    """Check the loss of a replay, and refuse what the other arguments leave without effect."""
    if not callable(loss):
        parameters.choice("loss", loss, LOSSES)
    if callable(feedback) and loss != "squared":
        raise ValueError("loss is not used when feedback is a function; leave it out.")
    parameters.real("delta", delta, 0.0, np.inf, open_low=True)
    if delta != 1.0 and loss != "huber":
        raise ValueError("delta is only used with loss='huber'; leave it out.")


def _pair(losses: Any) -> list[float]:
    if not isinstance(losses, Sequence | np.ndarray) or len(losses) != 2:
        raise TypeError(f"losses must be the pair (below, above), found {losses!r:.80}.")
    return [finite(f"losses[{i}]", value) for i, value in enumerate(losses)]


def _losses(values: Any, row: int, steps: np.ndarray) -> list[float]:
    """Return the losses that a function gave for one round, a finite number for each try."""
    array = np.asarray(values)
    if array.size != len(steps) or array.dtype.kind not in "biuf":
        raise ValueError(
            f"the loss of row {row} must be {plural(len(steps), 'number')}, found {values!r:.80}."
        )
    return [finite(f"the loss of row {row}", value) for value in array.ravel().tolist()]
