"""Base classes of all estimators: scikit-learn's interface on top of a learner and its model."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, is_classifier
from sklearn.utils.validation import check_is_fitted, validate_data

from hardwood.clock import Clock
from hardwood.errors import TableError
from hardwood.estimators.fit import (
    clock_of,
    divided,
    parameter_record,
    run_of,
    start_of,
    warn_if_interrupted,
    warn_of_labels,
)
from hardwood.learn.finish import finished
from hardwood.learn.learner import Learned, Learner, Run, Start, drawn_seed
from hardwood.learn.losses import is_for_labels
from hardwood.learn.task import Task
from hardwood.learn.training import Epoch
from hardwood.parameters import parameters_of
from hardwood.table.frames import open_frame

if TYPE_CHECKING:
    from scipy.sparse import csr_array
    from sklearn.utils import Tags

    from hardwood.model import ObliqueForest, ObliqueTree, TreeEnsemble
    from hardwood.model.edit.harden import HardeningCost
    from hardwood.show.page import Page

_Self = TypeVar("_Self", bound="ModelEstimator")

_BETWEEN_0_AND_1 = np.nextafter(0.0, 1.0), np.nextafter(1.0, 0.0)


@dataclass(kw_only=True, eq=False, repr=False)
class EpochParameters:
    """Parameters of all estimators that learn in epochs."""

    validation_fraction: float = 0.1
    early_stopping: bool | Literal["auto"] = "auto"
    n_jobs: int | None = None
    random_state: Any = None
    verbose: int = 0
    callbacks: Any = None


class ModelEstimator(BaseEstimator):
    """An estimator that learns a model of hardwood.

    Estimators are keyword-only dataclasses whose fields are the parameters. `fit` checks them when
    it builds the learner (`_learner_type`).

    Attributes
    ----------
    n_features_in_
        Number of columns of the training table.
    feature_names_in_
        Their names, if all are strings.
    feature_importances_
        Share of each column in the variance of the predictions.
    history_
        One `Epoch` record per epoch, run by run.
    n_iter_
        Number of epochs of the best run; for a forest, the largest number of any tree.
    """

    n_features_in_: int
    feature_names_in_: np.ndarray
    history_: list[Epoch]
    n_iter_: int
    n_jobs: int | None
    _model_attribute: ClassVar[str]
    _learner_type: ClassVar[type[Learner]]
    loss: Any
    random_state: Any

    @property
    def _model(self) -> Any:
        return self.__dict__[self._model_attribute]

    def _fit(self: _Self, X: Any, y: Any, sample_weight: Any) -> _Self:
        """Learn, and set all attributes at the end, so that a failed `fit` changes nothing."""
        clock = clock_of(self)
        learner = self._learner()
        task, run = self._read(learner, X, y, sample_weight, clock)
        with run.progress:
            learned = learner.fit(task, run, self._start())
            model = finished(learned, task, parameter_record(self), run.n_jobs)
        self._adopt(X, task, run, learned, model)
        warn_if_interrupted(learned, learner, stacklevel=3)
        return self

    def _read(
        self, learner: Learner, X: Any, y: Any, sample_weight: Any, clock: Clock
    ) -> tuple[Task, Run]:
        """Return the task, with its validation rows, and the settings of the run."""
        task = Task.read(
            X,
            y,
            sample_weight,
            classifies=is_classifier(self),
            loss=partial(learner.find_loss, self.loss),
            class_weight=getattr(self, "class_weight", None),
        )
        warn_of_labels(y, task)
        run = run_of(self, learner, task, clock, self._seed())
        return divided(self, learner, task, run.seed), run

    def _learner(self) -> Learner:
        """Build the learner, which checks the parameters."""
        return parameters_of(self._learner_type, self)

    def _seed(self) -> int:
        """Draw the seed of a fit."""
        return drawn_seed(self.random_state)

    def _start(self) -> Start:
        """Return the start of a fit."""
        return start_of(self)

    def _adopt(self, X: Any, task: Task, run: Run, learned: Learned, model: Any) -> None:
        """Set the fitted attributes."""
        validate_data(self, X, skip_check_array=True)
        self.n_features_in_ = model.n_features
        setattr(self, self._model_attribute, model)
        for name, value in {**learned.resolved, **learned.facts}.items():
            setattr(self, f"{name}_", value)
        if learned.history is not None:
            self.history_ = list(learned.history)
            self.n_iter_ = learned.n_epochs

    @property
    def feature_importances_(self) -> np.ndarray:
        """Share of each column in the variance of the predictions, (n_features_in_,).

        The model keeps what they are computed from: see `hardwood.model.importances`. They add up
        to 1; all are 0 if no prediction depends on a column.
        """
        check_is_fitted(self)
        shares: np.ndarray = self._model.feature_importances.copy()
        return shares

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file for `hardwood.load`. A failed write leaves no partial file."""
        check_is_fitted(self)
        self._model.save(path)

    def show(
        self,
        path: str | os.PathLike[str] | None = None,
        X: Any = None,
        y: Any = None,
        *,
        title: str | None = None,
        max_rows: int = 300,
    ) -> Page:
        """Create an interactive page of the model; see :meth:`hardwood.ObliqueTree.show`.

        Parameters
        ----------
        path
            Where to write the page; None: it is only returned.
        X, y
            Rows for the histograms, and their targets for the colors; optional.
        title
            By default the task and its target.
        max_rows
            Maximum number of rows in the page, for readers to choose from.
        """
        check_is_fitted(self)
        return self._page(path, X, y, title=title, max_rows=max_rows)

    def _page(self, *where_and_rows: Any, **options: Any) -> Page:
        return self._model.show(*where_and_rows, **options)

    def _check_predictable(self, X: Any) -> None:
        """Raise and warn as scikit-learn does; the model checks the values of X.

        A float array of the right width is accepted at once if the training table had no names:
        the checks would take much longer than the prediction of one row.
        """
        known = self.__dict__
        if (
            type(X) is np.ndarray
            and self._model_attribute in known
            and "feature_names_in_" not in known
            and X.ndim == 2
            and X.dtype.char in "fd"
            and X.shape[1] == known["n_features_in_"]
            and X.shape[0] > 0
        ):
            return
        check_is_fitted(self)
        # The model refuses other shapes, with advice on how to reshape them.
        if getattr(X, "ndim", 2) == 2 and not (isinstance(X, list | tuple) and len(X) == 0):
            try:
                validate_data(self, X, reset=False, skip_check_array=True)
            except ValueError as error:
                raise TableError(f"{error}{self._advice_on_names(X)}") from error

    def _advice_on_names(self, X: Any) -> str:
        """Say how to predict a data frame with the columns in another order, or with others."""
        frame = open_frame(X)
        names = getattr(self, "feature_names_in_", None)
        if frame is None or names is None or not set(names) <= set(frame.columns):
            return ""
        return (
            "Estimators take the columns of fit, in their order, as scikit-learn requires. Pass "
            "X[list(model.feature_names_in_)], or ask the model, which reads columns by name: "
            f"model.{self._model_attribute}.predict(X)."
        )

    def __sklearn_is_fitted__(self) -> bool:
        return self._model_attribute in self.__dict__

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags


class ModelClassifier(ClassifierMixin, ModelEstimator):
    """A classifier; has `classes_`, the sorted classes or the indices of labels."""

    classes_: np.ndarray

    def fit(self: _Self, X: Any, y: Any, sample_weight: Any = None) -> _Self:
        """Learn a model.

        Parameters
        ----------
        X
            The table, (n, p).
        y
            One class per row, of at least two classes: strings, integers or booleans. Or several
            labels, (n, n_labels), with 1 or True where a row has the label.
        sample_weight
            Weight of each row, (n,), >= 0; None for equal weights.
        """
        return self._fit(X, y, sample_weight)

    def _adopt(self, X: Any, task: Task, run: Run, learned: Learned, model: Any) -> None:
        super()._adopt(X, task, run, learned, model)
        assert task.classes is not None
        self.classes_ = task.classes

    def predict(self, X: Any) -> np.ndarray:
        """Predict the class of each row, (n,), or its labels, (n, n_labels) of 0 and 1."""
        self._check_predictable(X)
        if self._model.task == "multilabel":
            return self._model.predict(X, n_jobs=self.n_jobs)
        probabilities = self._model.predict_proba(X, n_jobs=self.n_jobs)
        labels: np.ndarray = self.classes_[self._model.class_positions(probabilities)]
        return labels

    def predict_proba(self, X: Any) -> np.ndarray:
        """Predict the probability of each class, in the order of `classes_`, or of each label.

        Probabilities of labels lie strictly between 0 and 1, as scikit-learn wants it: in place of
        0 and 1 stand the floats next to them.
        """
        self._check_predictable(X)
        probabilities: np.ndarray = self._model.predict_proba(X, n_jobs=self.n_jobs)
        if self._model.task == "multilabel":
            return np.clip(probabilities, *_BETWEEN_0_AND_1)
        return probabilities

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Predict the logarithm of the probabilities; -inf where one is zero."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = is_for_labels(getattr(self, "loss", "log_loss"))
        return tags


class ModelRegressor(RegressorMixin, ModelEstimator):
    """A regressor; has `n_outputs_`, the number of targets."""

    n_outputs_: int

    def fit(self: _Self, X: Any, y: Any, sample_weight: Any = None) -> _Self:
        """Learn a model.

        Parameters
        ----------
        X
            The table, (n, p).
        y
            Finite numbers, (n,) or (n, k).
        sample_weight
            Weight of each row, (n,), >= 0; None for equal weights.
        """
        return self._fit(X, y, sample_weight)

    def _adopt(self, X: Any, task: Task, run: Run, learned: Learned, model: Any) -> None:
        super()._adopt(X, task, run, learned, model)
        self.n_outputs_ = task.n_targets

    def predict(self, X: Any) -> np.ndarray:
        """Predict each row, (n,), or (n, n_outputs) for several targets."""
        self._check_predictable(X)
        return self._model.predict(X, n_jobs=self.n_jobs)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


class HardEstimator(ModelEstimator):
    """An estimator whose model sends each row to one leaf per tree."""

    def apply(self, X: Any) -> np.ndarray:
        """Return the leaf that each row reaches: (n,) int32, or (n, n_trees) for a forest."""
        self._check_predictable(X)
        return self._model.apply(X, n_jobs=self.n_jobs)


class TreeEstimator(HardEstimator):
    """An estimator that learns one tree, `tree_`, simplified."""

    tree_: ObliqueTree
    _model_attribute = "tree_"

    def decision_path(self, X: Any) -> csr_array:
        """Return the nodes that each row visits: 0/1 CSR (n, n_nodes), splits before leaves."""
        self._check_predictable(X)
        return self.tree_.decision_path(X, n_jobs=self.n_jobs)


class SingleTreeClassifier(TreeEstimator, ModelClassifier):
    """A classifier that learns one tree."""

    _classes_of_leaves: tuple[ObliqueTree, np.ndarray]

    def predict(self, X: Any) -> np.ndarray:
        """Predict the class of each row, (n,), or its labels, (n, n_labels) of 0 and 1."""
        self._check_predictable(X)
        tree = self.tree_
        if tree.task == "multilabel" or tree.has_linear_leaves:
            return super().predict(X)
        known_tree, classes = self.__dict__.get("_classes_of_leaves", (None, None))
        if known_tree is not tree:  # it was replaced; predicting must not change the estimator
            classes = self.classes_[tree.class_positions(tree.values)]
        return classes[tree.apply(X, n_jobs=self.n_jobs)]

    def _adopt(self, X: Any, task: Task, run: Run, learned: Learned, model: Any) -> None:
        super()._adopt(X, task, run, learned, model)
        # The class of each leaf, with its tree, so that predicting one row takes one lookup.
        tree = self.tree_
        self._classes_of_leaves = (tree, self.classes_[tree.class_positions(tree.values)])


class SingleTreeRegressor(TreeEstimator, ModelRegressor):
    """A regressor that learns one tree."""


class ForestEstimator(HardEstimator):
    """An estimator that learns a forest, `forest_`."""

    forest_: ObliqueForest
    _model_attribute = "forest_"

    @property
    def estimators_(self) -> tuple[ObliqueTree, ...]:
        """The trees of the forest."""
        check_is_fitted(self)
        return self.forest_.trees


class ForestClassifier(ForestEstimator, ModelClassifier):
    """A classifier that learns a forest."""


class ForestRegressor(ForestEstimator, ModelRegressor):
    """A regressor that learns a forest."""


class EnsembleEstimator(ModelEstimator):
    """An estimator that learns an ensemble of soft trees, `ensemble_`."""

    ensemble_: TreeEnsemble
    _model_attribute = "ensemble_"

    def reachable_leaves(self, X: Any) -> np.ndarray:
        """Return the number of leaves that each row reaches in each tree, (n, n_trees) int32."""
        self._check_predictable(X)
        return self.ensemble_.reachable_leaves(X, n_jobs=self.n_jobs)

    def harden(self) -> ObliqueForest:
        """Return hard trees with the same splits; each row follows one path."""
        check_is_fitted(self)
        return self.ensemble_.harden()

    def hardening_cost(self, X: Any, y: Any, sample_weight: Any = None) -> HardeningCost:
        """Compare the ensemble with `harden()` on rows with known targets."""
        self._check_predictable(X)
        return self.ensemble_.hardening_cost(X, y, sample_weight)


class EnsembleClassifier(EnsembleEstimator, ModelClassifier):
    """A classifier that learns an ensemble of soft trees."""


class EnsembleRegressor(EnsembleEstimator, ModelRegressor):
    """A regressor that learns an ensemble of soft trees."""
