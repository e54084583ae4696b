"""A policy over discrete actions that is one tree and learns from bandit feedback.

Karthikeyan, Jain, Natarajan, Jain. Learning Accurate Decision Trees with Bandit Feedback via
Quantized Gradient Descent. TMLR 2022. [DGT22] Algorithm 1, Eq. (7) and (8).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from hardwood import parameters
from hardwood.atomic_file import checked_target, whole_file
from hardwood.bandit import log, trees
from hardwood.bandit.deciders import DeciderReport, report_of
from hardwood.bandit.history import History, name_array
from hardwood.bandit.online import LARGEST_FEEDBACK, OnlineLearner, finite, warn_if_interrupted
from hardwood.bandit.parameters import BanditParameters, OnlineParameters
from hardwood.bandit.tokens import Decision
from hardwood.model import ObliqueTree
from hardwood.model.structure import Label, class_labels
from hardwood.table import Schema
from hardwood.text.numbers import plural

if TYPE_CHECKING:
    from typing_extensions import Self

MAX_ACTIONS = 10_000
_MOST_WEIGHT = 100.0  # of a logged round


@dataclass(kw_only=True, eq=False, repr=False)
class DGTBandit(OnlineLearner):
    r"""Choose one of K actions for each context; learn from the reward of the chosen action.

    One tree holds the expected reward of every action in each leaf. `decide` usually takes the best
    action and sometimes explores another one; it returns the probability of its choice. `learn`
    takes the reward, immediately or much later, in any order, or never.

    With ``method="network"``, a small neural network learns beside the tree, usually with more
    reward. The tree is distilled from its answers for all actions, and can decide in its place.

    Parameters
    ----------
    n_actions : int or sequence
        Number of actions, which are then named 0 to K - 1; or their K different names (text or
        numbers), from 2 to 10,000.
    method : "replay", "network" or "paper", default="replay"
        "replay": the leaves are fitted to the observed rewards by mini-batches from a replay
        buffer; exploration is by inverse gap weighting, which takes an action the more rarely the
        further its expected reward is below the best. "network": a network of two hidden layers
        learns from the replay buffer the reward of every action, and the tree is fitted to its
        answers for all actions, on stored contexts and mixtures of two. "paper": Algorithm 1 of
        the paper, with one gradient per round by Eq. (8), no stored rounds, and the exploration of
        Eq. (7).
    max_depth : int, default=8
        Depth of the tree, 1 to 10.
    learning_rate : float or "auto", default="auto"
        Step size of the leaves, or of the network; "auto": 0.005 for "replay" (Adam), 0.002 for
        "network" (AdamW), 0.001 for "paper" (RMSprop). With "replay", the splits have 4 /
        sqrt(columns) times this rate, so that the score of a split moves by about the same amount
        whatever the number of columns.
    exploration : float, default=1.0
        For inverse gap weighting: how much to explore, relative to the default of the method. 0
        never explores; 2 explores about twice as often.
    epsilon : float, default=0.3
        For "paper", and for "network" with ``explore_by="epsilon"``: the probability of an action
        drawn at random, from 0 to 1.
    quantizer : "sign" or "scaled", default="sign"
        For "paper": a decision counts as +1 or -1, or as plus or minus the mean absolute score of
        the rounds of a step, as in the authors' code.
    min_propensity : float, default=0.0
        No allowed action is less probable than this (or than 1 / K' with K' allowed actions, if
        that is less). Such a floor costs reward, and keeps the log useful to evaluate other
        policies.
    batch_size : int or "auto", default="auto"
        For "replay" and "network": stored rounds per gradient step; "auto": 64 and 256.
    updates_per_round : float or "auto", default="auto"
        For "replay" and "network": gradient steps per learned round, on average; 0.25 is a step
        every four rounds. "auto": 1.0 for "replay"; 0.5 for "network", where this is the number
        for the first 4,096 rounds and then falls with the square root of the rounds.
    buffer_size : int, default=100_000
        For "replay" and "network": the number of rounds that the replay buffer holds.
    buffer : "uniform" or "recent", default="uniform"
        For "replay" and "network": which rounds the buffer holds once it is full. "uniform": a
        uniform sample of all rounds. "recent": the most recent ones, for an environment that
        changes.
    input_noise : float, default=1.0
        For "replay": noise added to replayed contexts, against overfitting. Its standard deviation
        is this divided by the fourth root of the number of stored rounds, in standard deviations
        of each column.
    hidden_size : int, default=256
        For "network": units of each hidden layer, up to 4,096.
    loss : "auto", "logistic", "squared" or "huber", default="auto"
        For "network": the loss of an estimated reward. "logistic" is for rewards from 0 to 1;
        "huber" is less sensitive to single large errors than "squared". "auto": logistic as long
        as all rewards are 0 or 1, and squared from the first other reward on.
    who_decides : "network", "tree" or "auto", default="network"
        For "network": who decides. "auto": the network, and the tree once an estimate on the
        bandit's own rounds says that nothing is lost (see `decider_report`).
    explore_by : "gaps" or "epsilon", default="gaps"
        For "network": "gaps" is inverse gap weighting; "epsilon" takes the best action, and with
        probability ``epsilon`` any of them.
    detect_change : bool, default=True
        For "network": whether to forget what was learned, and to explore as at the beginning, when
        rewards fall clearly and lastingly below what was expected (see `changes_`).
    gradient_accumulation : int, default=4
        For "paper": rounds whose gradients are averaged for one step.
    features : None, int, sequence of str, table or Schema, default=None
        The features of a context. None or their number: plain numbers. A list: their names. A
        table with a few example rows, or a `Schema`: says which features are categorical and which
        may be missing.
    init : ObliqueTree or fitted estimator, default=None
        For "replay" and "paper": a tree to start from: a classifier of the actions, whose
        probabilities are taken as expected rewards, or a regressor with K outputs. Its features
        become those of the contexts.
    max_open : int, default=100_000
        How many decisions may wait for their reward; beyond that, the oldest expire.
    random_state : None, int or Generator, default=None
        The same seed and the same rounds give the same decisions.

    Notes
    -----
    A parameter that the method does not use raises ``ValueError`` if it is not left at its default.

    Examples
    --------
    >>> from hardwood.bandit import DGTBandit
    >>> bandit = DGTBandit(["tea", "coffee"], random_state=0)
    >>> decision = bandit.decide([20.5, 3.0])
    >>> decision.action in ("tea", "coffee")
    True
    >>> bandit.learn(decision.token, reward=1.0)
    >>> bandit.n_rounds_
    1
    """

    n_actions: Any = field(kw_only=False)
    method: Literal["replay", "network", "paper"] = "replay"
    max_depth: int = 8
    exploration: float = 1.0
    epsilon: float = 0.3
    quantizer: Literal["sign", "scaled"] = "sign"
    min_propensity: float = 0.0
    batch_size: int | Literal["auto"] = "auto"
    buffer: Literal["uniform", "recent"] = "uniform"
    hidden_size: int = 256
    loss: Literal["auto", "logistic", "squared", "huber"] = "auto"
    who_decides: Literal["network", "tree", "auto"] = "network"
    explore_by: Literal["gaps", "epsilon"] = "gaps"
    detect_change: bool = True

    _parameters_type: ClassVar[type[OnlineParameters]] = BanditParameters

    def __post_init__(self) -> None:
        if self.method == "network" and self.init is not None:
            raise ValueError(
                "init is not used with method='network': the network would know nothing of it. Use "
                "method='replay', or let the network learn from a log with learn_logged."
            )
        self.actions_ = _action_names(self.n_actions)
        self._labels = name_array(self.actions_)
        super().__post_init__()

    # Round by round

    def decide(self, x: Any, mask: Any = None) -> Decision:
        """Choose an action for a context.

        Parameters
        ----------
        x
            Numbers (1-D array, list), or a row of a table: a mapping by names, or a data frame of
            one row.
        mask
            (K,) booleans, True for actions that may be taken, at least one; None for all.

        Returns
        -------
        decision
            The action, the probability with which it was chosen, the token for `learn`, and the
            leaf and version of the tree that decided. Log all of them.

        Raises
        ------
        TableError
            If the context does not fit the features; the message names the feature.
        ValueError
            If the mask is wrong.
        """
        allowed = None if mask is None else self._allowed(mask)
        row = self._row(x)
        with self._deciding:
            action, propensity, leaf, version = self._engine.decide(row, allowed)
            token = self._open.add((row, action, propensity))
        return Decision(self.actions_[action], propensity, token, leaf, version)

    def learn(self, token: int, reward: Any = None, *, loss: Any = None) -> None:
        """Learn from the reward of a decision, or from its loss, which is a negative reward.

        Raises
        ------
        TokenError
            If the token is unknown, has expired or was already learned from.
        ValueError, TypeError
            If the reward is not a finite number; the decision stays open.
        """
        if (reward is None) == (loss is None):
            raise TypeError("give either reward= or loss=")
        value = finite("reward", reward) if loss is None else 0.0 - finite("loss", loss)
        self._check_rewards("reward", value)
        self._learn(token, lambda x, action, chance: self._engine.learn(x, action, value, chance))

    # Many rounds at once

    def learn_logged(
        self,
        X: Any,
        action: Any,
        reward: Any,
        propensity: Any,
        mask: Any = None,
        *,
        weighting: Literal["direct", "ips"] = "direct",
    ) -> Self:
        """Learn from the log of another policy, row by row.

        Parameters
        ----------
        X
            The n contexts, a table.
        action
            (n,) names of the actions taken.
        reward
            (n,) their rewards.
        propensity
            (n,) the probability with which each was taken, in (0, 1]; or one number for all.
        mask
            (n, K) or (K,), which actions could be taken; it is only checked.
        weighting
            "direct": every round counts the same, which is best if the model can represent the
            rewards. "ips": a round counts in inverse proportion to its propensity (at most 100
            times the mean), so that the model is best for the contexts as they come rather than
            for those in which the other policy took an action. With ``method="paper"``, Eq. (8)
            has the weights already, and only "direct" is accepted.

        Raises
        ------
        ValueError
            If an argument is wrong; nothing is learned then.
        """
        rows, contexts = self._rows(X)
        n = len(rows)
        taken = log.action_positions("action", log.column("action", action, n), self.actions_)
        rewards = log.numbers("reward", reward, n)
        finite("the largest reward", float(np.abs(rewards).max()))
        self._check_rewards("reward", rewards)
        chances = np.full(n, propensity) if np.ndim(propensity) == 0 else propensity
        chances = log.propensities(chances, n)
        weights = self._weights(weighting, chances)
        if mask is not None:
            masks = log.masks_of(mask, n, len(self.actions_))
            log.check_within("action", np.arange(n), taken, masks, self.actions_)
        rows = self._begun(X, rows, contexts)
        before = self.n_rounds_
        self._engine.learn_many(rows, taken.astype(np.int32), rewards, chances, weights)
        warn_if_interrupted(self.n_rounds_ - before, n)
        return self

    def replay(self, X: Any, feedback: Any, mask: Any = None) -> History:
        """Decide and learn for every row in turn, in native code.

        Parameters
        ----------
        X
            The n contexts, a table.
        feedback
            (n,) labels: the reward is 1 if the action is the label, else 0; (n, K) rewards of all
            actions; or a function of the row number and the action that returns the reward.
        mask
            (n, K) or (K,) booleans, which actions may be taken; None for all.

        Returns
        -------
        history
            Actions, propensities and rewards; of fewer rows after Ctrl-C, with a warning.

        Notes
        -----
        If a function fails or does not return a finite number, the rows before it have been
        learned.
        """
        rows, contexts = self._rows(X)
        masks = self._masks(mask, len(rows))
        known = None if callable(feedback) else self._feedback(feedback, len(rows))
        if known is not None and known.ndim == 2:
            self._check_rewards("feedback", known)
        rows = self._begun(X, rows, contexts)
        if known is None:
            return self._replay_function(rows, feedback, masks)
        taken, propensity, reward = self._engine.replay(rows, known, masks)
        warn_if_interrupted(len(taken), len(rows))
        return History(self._labels[taken], propensity, reward)

    def _replay_function(
        self,
        rows: np.ndarray,
        feedback: Callable[[int, Any], Any],
        masks: np.ndarray | None,
    ) -> History:
        taken, propensity, reward = [], [], []
        try:
            for i, row in enumerate(rows):
                mask = None if masks is None else masks[i]
                action, chance, *_ = self._engine.decide(row, mask)
                found = feedback(i, self.actions_[action])
                reward.append(finite(f"feedback of row {i}", found))
                self._check_rewards(f"feedback of row {i}", reward[-1])
                taken.append(action)
                propensity.append(chance)
                self._engine.learn(row, action, reward[i], chance)
        except KeyboardInterrupt:
            warn_if_interrupted(len(propensity), len(rows))
        n = len(propensity)
        done = np.array(taken[:n], np.int32)
        return History(self._labels[done], np.array(propensity), np.array(reward[:n]))

    # Predictions

    def apply(self, X: Any) -> np.ndarray:
        """Return the leaf of every context in the current tree, (n,), numbered as in `Decision`."""
        rows = self._started().rows(X)
        leaves: np.ndarray = self._engine.leaves(rows)
        return leaves

    def action_values(self, X: Any) -> np.ndarray:
        """Return the expected reward of every action, (n, K), by whoever decides."""
        rows = self._started().rows(X)
        values: np.ndarray = self._engine.values(rows)
        return values

    def action_probabilities(self, X: Any, mask: Any = None) -> np.ndarray:
        """Return the probabilities with which `decide` would take each action now, (n, K)."""
        rows = self._started().rows(X)
        masks = self._masks(mask, len(rows))
        probabilities: np.ndarray = self._engine.probabilities(rows, masks)
        return probabilities

    def predict(self, X: Any, mask: Any = None) -> np.ndarray:
        """Return the action with the largest expected reward, (n,), without exploration."""
        values = self.action_values(X)
        masks = self._masks(mask, len(values))
        if masks is not None:
            values = np.where(masks, values, -np.inf)
        best: np.ndarray = self._labels[np.argmax(values, axis=1)]
        return best

    @property
    def decides_(self) -> Literal["network", "tree"]:
        """Who decides now: "network" or "tree"."""
        if not self._parameters.has_network or self._parameters.who_decides == "tree":
            return "tree"
        return "tree" if self._engine is not None and self._engine.tree_decides else "network"

    @property
    def changes_(self) -> tuple[int, ...]:
        """The numbers of rounds learned when a change was detected, at most the last 100.

        After each, everything but the hidden layers of the network and the splits of the tree was
        forgotten, and exploration began anew.
        """
        return () if self._engine is None else tuple(self._engine.changes)

    def decider_report(self, *, confidence: float = 0.95) -> DeciderReport:
        """Return the rewards of tree and network, and how often they agree.

        Parameters
        ----------
        confidence
            Confidence level of the intervals.

        Raises
        ------
        ValueError
            If there is no network.

        Notes
        -----
        With ``who_decides="auto"``, the tree begins to decide when the 95 % interval of the
        difference lies above -0.01 and rests on 500 rounds, in units of the range of rewards. It
        stops when the difference itself falls below that.
        """
        parameters.real("confidence", confidence, 0, 1, open_low=True)
        if not self._parameters.has_network:
            raise ValueError(
                f"method={self.method!r} has no network to compare the tree with; only 'network' "
                "has."
            )
        self._started()
        return report_of(self._engine.report(), self.decides_, confidence)

    @property
    def tree_(self) -> ObliqueTree:
        """The current tree of expected rewards: a regression with one output per action."""
        contexts = self._started()
        return trees.value_tree(
            self._engine.tree(), contexts, [str(action) for action in self.actions_]
        )

    def policy(self) -> ObliqueTree:
        """Return the current tree of best actions: a classification, simplified."""
        return trees.policy_tree(self.tree_, self.actions_)

    def to_rules(
        self, path: str | os.PathLike[str] | None = None, *, confidence: float = 0.95
    ) -> str:
        """Write the current policy as a list of rules that any program can evaluate: JSON.

        Parameters
        ----------
        path
            File to write; None only returns the text.
        confidence
            Confidence level of the intervals of observed rewards.

        Returns
        -------
        text
            The rules in order, one for each leaf: its number as in `Decision`, its conditions, for
            each action the probability with which `decide` would take it now and its expected
            reward, and what was observed: the number of stored rounds with this action in this
            leaf, their mean reward, and its interval. "version" is that of the tree.

        Notes
        -----
        Decisions made later may follow newer rules: compare their ``version``. With
        ``method="paper"`` no rounds are stored, so nothing is observed.
        """
        from hardwood.bandit import rules

        parameters.real("confidence", confidence, 0, 1, open_low=True)
        if path is not None:
            checked_target(path, what="rules", example="policy.json")
        contexts = self._started()
        with self._learning:
            leaves = rules.PolicyLeaves.of(self._engine)
        text = rules.policy_rules(leaves, contexts, self.actions_, confidence)
        if path is not None:
            with whole_file(path) as stream:
                stream.write(text.encode())
        return text

    # Arguments

    def _weights(self, weighting: str, propensity: np.ndarray) -> np.ndarray:
        """Return the weights of logged rounds, (n,) float32 with mean 1."""
        parameters.choice("weighting", weighting, ("direct", "ips"))
        if weighting == "direct":
            return np.ones(len(propensity), np.float32)
        if self._parameters.is_paper:
            raise ValueError(
                "weighting='ips' is not used with method='paper', whose gradient has the inverse "
                "propensities already. Leave it out."
            )
        weights = 1.0 / propensity
        return np.minimum(weights / weights.mean(), _MOST_WEIGHT).astype(np.float32)

    def _check_rewards(self, name: str, rewards: Any) -> None:
        """Refuse rewards outside [0, 1] if the loss was chosen to be logistic."""
        if self._parameters.loss != "logistic":
            return
        found = np.asarray(rewards)
        outside = found[(found < 0) | (found > 1)]
        if outside.size:
            raise ValueError(
                f"{name} must be from 0 to 1 with loss='logistic', found {outside.flat[0]:g}. Use "
                "loss='squared' or 'huber' for other numbers."
            )

    def _allowed(self, mask: Any) -> np.ndarray:
        """Return one mask as (K,) uint8."""
        array = np.asarray(mask)
        if array.dtype != np.bool_ or array.shape != (len(self.actions_),):
            raise ValueError(
                f"mask must be {len(self.actions_)} booleans, True where an action may be taken, "
                f"found {array.dtype} of shape {array.shape}."
            )
        if 1 not in array.tobytes():  # a microsecond faster than array.any()
            raise ValueError("mask allows no action; at least one must be allowed.")
        return np.ascontiguousarray(array).view(np.uint8)

    def _masks(self, mask: Any, n: int) -> np.ndarray | None:
        """Return masks as (n, K) uint8, or None."""
        if mask is None:
            return None
        return np.ascontiguousarray(log.masks_of(mask, n, len(self.actions_))).view(np.uint8)

    def _feedback(self, feedback: Any, n: int) -> np.ndarray:
        """Return labels as (n,) int32 positions, or rewards as (n, K) float64."""
        array = np.asarray(feedback)
        if array.ndim == 1 or array.shape[1:] == (1,):
            labels = log.column("feedback", array, n)
            return log.action_positions("feedback", labels, self.actions_).astype(np.int32)
        instead = f" (or {plural(n, 'label')}, or a function of row number and action)"
        return log.number_table(
            "feedback", array, n, len(self.actions_), largest=LARGEST_FEEDBACK, instead=instead
        )

    # Methods that the base class needs

    def _new_engine(self, n_columns: int, order: Mapping[str, Any] | None = None) -> Any:
        from hardwood._native import BanditEngine

        chosen, n_actions = self._parameters, len(self.actions_)
        options = chosen.for_engine(n_columns, n_actions) | dict(order or {})
        return BanditEngine(n_columns, n_actions, chosen.max_depth, options, self._seed)

    def _start_engine(self, engine: Any, tree: ObliqueTree, schema: Schema) -> None:
        columns = trees.action_values(tree, self.actions_)
        start = trees.start_of(tree, schema, self._parameters.max_depth)
        start["values"] = np.ascontiguousarray(start["values"][:, columns])
        engine.start_from(**start)

    def _header(self) -> dict[str, Any]:
        return {"actions": list(self.actions_)}

    @classmethod
    def _blank(cls, header: Mapping[str, Any], **arguments: Any) -> Self:
        return cls(header["actions"], **arguments)

    def _check_open(self, action: np.ndarray, propensity: np.ndarray) -> None:
        if ((action < 0) | (action >= len(self.actions_))).any():
            raise ValueError("an open decision has an action that does not exist")
        if not ((propensity > 0) & (propensity <= 1)).all():
            raise ValueError("an open decision has a propensity outside (0, 1]")


def _action_names(n_actions: Any) -> tuple[Label, ...]:
    """Return the names of the actions, at least two."""
    if isinstance(n_actions, str | bytes) or not hasattr(n_actions, "__iter__"):
        return tuple(range(parameters.integer("n_actions", n_actions, 2, MAX_ACTIONS)))
    if isinstance(n_actions, Set):
        raise TypeError("n_actions must be an ordered sequence of names, got a set; sort it.")
    try:
        names = class_labels(n_actions, "classification")
    except (ValueError, TypeError) as error:
        raise type(error)(
            f"n_actions must be a number or different names of actions: {error}"
        ) from None
    if names is None or not 2 <= len(names) <= MAX_ACTIONS:
        raise ValueError(
            f"n_actions must be from 2 to {MAX_ACTIONS} actions, found {len(names or ())}."
        )
    return names
