"""TEL for scikit-learn: soft oblique trees that are learned together.

The method is in `hardwood.learn.tel`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from hardwood.estimators.base import EnsembleClassifier, EnsembleRegressor, EpochParameters
from hardwood.learn.learner import Learner
from hardwood.learn.tel import TEL, Activation


@dataclass(kw_only=True, eq=False, repr=False)
class _TELParameters(EpochParameters):
    _learner_type: ClassVar[type[Learner]] = TEL

    n_estimators: int = 10
    max_depth: int = 4
    gamma: float = 1.0
    activation: Activation = "smooth_step"
    learning_rate: float = 0.01
    batch_size: int = 128
    max_epochs: int | Literal["auto"] = "auto"
    l2: float = 0.0
    batch_norm: bool = True
    n_restarts: int = 1
    combine_runs: Literal["best", "mean"] = "best"
    training: Any = None


@dataclass(kw_only=True, eq=False, repr=False)
class TELClassifier(_TELParameters, EnsembleClassifier):
    """Soft oblique trees for classes, whose scores add up, learned together (TEL).

    A row goes to both sides of a split that is not sure of it, and reaches few leaves once the
    trees have learned: learning and predicting cost as much as the nodes that are reached.

    Parameters that are not here have the meaning they have for `DGTClassifier`.

    Parameters
    ----------
    n_estimators : int, default=10
        Number of trees, whose scores are added up.
    max_depth : int, default=4
        Splits on the way from the root to a leaf, 1 to 12.
    gamma : float, default=1.0
        Width of the band around a split in which a row goes to both sides, in units of the splits'
        scores. The smaller, the fewer leaves a row reaches, and the less a split learns from the
        rows beside it.
    activation : "smooth_step", "smooth_step_5" or "logistic", default="smooth_step"
        From a score to the share that goes right: polynomials of degree 3 or 5, which are 0 and 1
        outside of the band; or the logistic function of score / gamma, with which every row
        reaches every leaf, for comparison.
    learning_rate : float, default=0.01
        The largest step size of the schedule.
    batch_size : int, default=128
        Rows per step.
    max_epochs : int or "auto", default="auto"
        Passes over the rows; "auto": 30 to 400, fewer for larger tables.
    l2 : float, default=0.0
        Penalty on the weights of the splits, in standard units.
    batch_norm : bool, default=True
        Whether columns are normalized by the moments of each batch while learning, and by those of
        all training rows afterwards. Else they are in the units of the table's encoding.
    loss : "log_loss", Loss or function, default="log_loss"
        As of `DGTClassifier`.
    n_restarts : int, default=1
        Ensembles learned from different random starts, side by side on `n_jobs` threads, which have
        nothing else to share.
    combine_runs : "best" or "mean", default="best"
        Of several restarts: the ensemble with the smallest loss, on the validation part where there
        is one; or all of them, averaged, which is steadier, and an ensemble of so many times as
        many trees.
    training : Training, default=None
        The remaining options of the training loop; None for Adam, without a limit on gradients, and
        one cosine.

    Attributes
    ----------
    ensemble_ : TreeEnsemble
        The trees: what predicts, saves, and makes hard trees of itself (`harden`).
    classes_ : ndarray of shape (n_classes,)
        The classes; where there are several labels, their numbers.
    n_features_in_ : int
        Number of columns of the training table.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, where all are text.
    history_ : list of Epoch
        One record per pass, restart by restart; `reachable_leaves` is how many leaves a row has
        reached in a tree, in the mean over the pass.
    n_iter_ : int
        Passes that the restart which was kept has taken.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from hardwood import TELClassifier
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = TELClassifier(n_estimators=5, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.9
    True
    >>> print(model.hardening_cost(X, y))  # doctest: +ELLIPSIS
    log loss: ...
    """

    loss: Any = "log_loss"
    class_weight: Any = None


@dataclass(kw_only=True, eq=False, repr=False)
class TELRegressor(_TELParameters, EnsembleRegressor):
    """Soft oblique trees for numbers, whose scores add up, learned together (TEL).

    Parameters and attributes are those of `TELClassifier`, without `class_weight` and `classes_`,
    and:

    Parameters
    ----------
    loss : str, Loss or function, default="squared_error"
        As of `DGTRegressor`.

    Attributes
    ----------
    n_outputs_ : int
        Number of targets, k.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from hardwood import TELRegressor
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = TELRegressor(max_depth=2, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.4
    True
    """

    loss: Any = "squared_error"
