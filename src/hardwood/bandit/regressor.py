"""A tree that sets a number and learns from what that number cost, whatever the loss.

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

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hardwood import parameters
from hardwood.bandit import log, trees
from hardwood.bandit.history import LossHistory
from hardwood.bandit.online import OnlineLearner, finite, warn_if_interrupted
from hardwood.bandit.parameters import REGRESSION_DEFAULTS, RegressionOptions, chosen, with_options
from hardwood.bandit.tokens import Decision
from hardwood.model import ObliqueTree
from hardwood.table import Schema

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


class DGTBanditRegressor(OnlineLearner):
    """Set a number for each context; learn from what it cost.

    Parameters
    ----------
    estimator
        ``"two_point"``: each round tries the prediction less and plus ``perturbation``, and hears
        both losses. ``"one_point"``: each round tries one number near the prediction, drawn at
        random. Both replay stored rounds. ``"paper_two_point"`` and ``"paper_one_point"``: the
        estimators of the paper, one gradient per round.
    max_depth
        Height of the tree, 1 to 10.
    features, max_open, random_state
        As for `DGTBandit`.
    init
        An `ObliqueTree` of one regression output to start from, or an estimator that has one.
    **options
        ``perturbation`` and everything else, by name: see
        `hardwood.bandit.parameters.RegressionOptions`.

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

    options: RegressionOptions

    def __init__(
        self,
        *,
        estimator: str = "two_point",
        max_depth: int = 6,
        features: Any = None,
        init: Any = None,
        max_open: int = 100_000,
        random_state: Any = None,
        **options: Any,
    ) -> None:
        super().__init__(
            chosen(REGRESSION_DEFAULTS, estimator, options),
            max_depth=max_depth,
            features=features,
            init=init,
            max_open=max_open,
            random_state=random_state,
        )
        self._has_two_points = self.options.has_two_points
        self._distance = self.options.perturbation * self.options.scale

    # Round by round

    def decide(self, x: Any) -> Decision:
        """Choose what to try for a context.

        Returns
        -------
        decision
            ``action``: the numbers ``(below, above)`` to try both, or with ``"one_point"`` the one
            to try; ``propensity`` is 1, or that of the one of two or four numbers.

        Raises
        ------
        TableError
            If the context does not fit; the message names the feature.
        """
        row = self._row(x)
        delta = self._distance
        with self._deciding:
            self._engine.meet(row)
            prediction = self._engine.predict_one(row)
            if self._has_two_points:
                action: Any = (prediction - delta, prediction + delta)
                direction, propensity = 1, 1.0
            else:
                direction, propensity = self._engine.direction(), 1.0 / len(self._directions)
                action = prediction + delta * direction
            # The direction says the propensity; the prediction takes its place.
            token = self._open.add((row, direction, prediction))
        return Decision(action, propensity, token)

    def learn(self, token: int, loss: Any = None, *, losses: Any = None) -> None:
        """Learn what was lost: ``loss`` of the one number, or ``losses=(below, above)`` of the two.

        Raises
        ------
        TokenError
            If the token is unknown, expired or was learned from already.
        ValueError, TypeError
            If a loss is no finite number; the decision stays open.
        """
        given, wanted = (
            (losses, "losses=(below, above)") if self._has_two_points else (loss, "loss=")
        )
        if given is None or (loss is not None and losses is not None):
            raise TypeError(f"with {self.options.estimator!r}, give {wanted} and nothing else")
        lost = _pair(given) if self._has_two_points else [finite("loss", given)]
        self._learn(token, lambda x, direction, at: self._tell(x, at, direction, lost))

    @property
    def _directions(self) -> tuple[int, ...]:
        """What may be tried, in perturbations from the prediction."""
        if self._has_two_points:
            return (1,)
        return (-1, 1) if self.options.is_paper else (-2, -1, 1, 2)

    def _tell(self, x: np.ndarray, prediction: float, direction: int, lost: list[float]) -> None:
        """Let the engine learn; slopes must be numbers that it can take."""
        if self._has_two_points:
            below, above = lost
            finite("the slope of the loss", two_point_slope(below, above, self._distance))
            self._engine.learn_two(x, prediction, below, above)
        else:
            finite("the slope of the loss", one_point_slope(lost[0], direction, self._distance))
            self._engine.learn_one(x, prediction, direction, lost[0])

    # Many rounds at once

    def replay(
        self, X: Any, feedback: Any, *, loss: str | Loss = "squared", delta: float = 1.0
    ) -> LossHistory:
        """Decide and learn, row after row.

        Parameters
        ----------
        X
            The n contexts, a table.
        feedback
            (n,) targets, whose distance from what was tried is the ``loss``; or a function of row
            numbers and predictions, two arrays, that returns the losses.
        loss
            Of targets: ``"squared"`` and ``"huber"`` run in the engine; or a function of targets
            and predictions, two arrays, that returns the losses.
        delta
            Where Huber's loss becomes linear.

        Notes
        -----
        A function is asked once per round, about the one number or the two that are tried. Where
        it fails or returns no finite number, the rows before are learned already.
        """
        rows, contexts = self._rows(X)
        targets = None if callable(feedback) else log.numbers("feedback", feedback, len(rows))
        if targets is None:
            rows = self._begun(X, rows, contexts)
            return self._replay_function(rows, feedback)
        if callable(loss):
            rows = self._begun(X, rows, contexts)
            of_targets, y = loss, targets
            return self._replay_function(rows, lambda i, tried: of_targets(y[i], tried))
        parameters.choice("loss", loss, LOSSES)
        parameters.real("delta", delta, 0.0, np.inf, open_low=True)
        rows = self._begun(X, rows, contexts)
        losses = self._engine.replay(rows, targets, loss, float(delta))
        warn_if_interrupted(len(losses), len(rows))
        return LossHistory(losses)

    def _replay_function(self, rows: np.ndarray, losses_of: Loss) -> LossHistory:
        seen = np.empty(len(rows))
        delta = self._distance
        for i, row in enumerate(rows):
            self._engine.meet(row)
            prediction = self._engine.predict_one(row)
            with self._deciding:
                direction = 1 if self._has_two_points else self._engine.direction()
            steps = np.array([-1.0, 1.0] if self._has_two_points else [float(direction)])
            lost = _losses(losses_of(np.full(len(steps), i), prediction + delta * steps), i, steps)
            seen[i] = np.mean(lost)
            self._tell(row, prediction, direction, lost)
        return LossHistory(seen)

    # What it would do

    def predict(self, X: Any) -> np.ndarray:
        """Return the number it holds best for every row, (n,)."""
        rows = self._started().rows(X)
        predicted: np.ndarray = self._engine.predict(rows)
        return predicted

    @property
    def tree_(self) -> ObliqueTree:
        """The tree now: a regression."""
        contexts = self._started()
        return trees.value_tree(self._engine.tree(), contexts, None)

    # What its base class asks for

    def _new_engine(self, n_columns: int) -> Any:
        from hardwood._native import BanditRegressionEngine

        options = self.options.for_engine(n_columns)
        return BanditRegressionEngine(n_columns, self.max_depth, options, self._seed)

    def _start_engine(self, engine: Any, tree: ObliqueTree, schema: Schema) -> None:
        if tree.task != "regression" or tree.n_outputs != 1:
            raise ValueError(f"init must be a regression tree of one output, found {tree!r}.")
        engine.start_from(**trees.start_of(tree, schema, self.max_depth))

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


DGTBanditRegressor.__signature__ = with_options(  # type: ignore[attr-defined]
    inspect.signature(DGTBanditRegressor.__init__), REGRESSION_DEFAULTS["two_point"]
)


def _pair(losses: Any) -> list[float]:
    if not isinstance(losses, Sequence | np.ndarray) or len(losses) != 2:
        raise TypeError(f"losses must be the pair (below, above), found {losses!r:.80}.")
    return [finite(f"losses[{i}]", value) for i, value in enumerate(losses)]


def _losses(values: Any, row: int, steps: np.ndarray) -> list[float]:
    """Return what a function said of one round, a finite number for each that was tried."""
    array = np.asarray(values)
    if array.size != len(steps) or array.dtype.kind not in "biuf":
        raise ValueError(
            f"the loss of row {row} must be {len(steps)} number(s), found {values!r:.80}."
        )
    return [finite(f"the loss of row {row}", value) for value in array.ravel().tolist()]
