"""Refinement: improve a tree by several learners in turn, and keep what helps."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone, is_classifier, is_regressor

from hardwood import parameters
from hardwood.errors import FitInterruptedWarning
from hardwood.learn.bagging import Bagging
from hardwood.learn.dgt import DGT
from hardwood.learn.finish import finished
from hardwood.learn.learner import Learner, Run, drawn_seed
from hardwood.learn.registry import LEARNERS
from hardwood.learn.start import check_same_task
from hardwood.learn.task import Task
from hardwood.model import ObliqueTree
from hardwood.search.scorer import Scorer
from hardwood.table.subset import n_rows, taken
from hardwood.table.target import class_positions, label_target, number_target
from hardwood.table.weights import row_weights
from hardwood.text.blocks import Block, TextTable
from hardwood.text.frames import columns_of
from hardwood.text.numbers import format_number, plural
from hardwood.text.report import Report

if TYPE_CHECKING:
    from hardwood.text.report import Tables

_VALIDATION_FRACTION = 0.1  # of the training rows, for named learners that need validation rows


@dataclass(frozen=True)
class Stage:
    """The result of one learner.

    Attributes
    ----------
    name
        Name of the learner; "start" for the initial tree.
    tree
        The tree that it learned, starting from the best tree before it.
    train_score, validation_score
        Scores of the tree on training rows and on validation rows.
    kept
        Whether its validation score is the highest so far; the next stage starts from it.
    seconds
        Time taken.
    """

    name: str
    tree: ObliqueTree
    train_score: float
    validation_score: float
    kept: bool
    seconds: float


@dataclass(frozen=True, repr=False)
class Refinement(Report):
    """The result of `refine`, stage by stage.

    ``print`` shows it as a table. `to_frame`, `to_dict`, `to_html` and `save` export it.

    Attributes
    ----------
    tree_
        The best tree.
    stages
        The initial tree, then one stage per learner.
    metric
        Name of the score; larger is better.
    n_train, n_validation
        Number of training rows and of validation rows.
    """

    tree_: ObliqueTree
    stages: tuple[Stage, ...]
    metric: str
    n_train: int
    n_validation: int

    @property
    def title(self) -> str:
        """The number of stages, training rows and validation rows."""
        return (
            f"Refinement of a tree: {plural(len(self.stages) - 1, 'stage')}, trained on "
            f"{plural(self.n_train, 'row')}, scored on {plural(self.n_validation, 'other')}"
        )

    def _blocks(self) -> Sequence[Block]:
        header = ["stage", f"{self.metric} (training)", f"{self.metric} (validation)", "leaves"]
        rows = [
            [
                stage.name,
                format_number(stage.train_score),
                format_number(stage.validation_score),
                str(stage.tree.n_leaves),
                f"{stage.seconds:.1f}",
                "yes" if stage.kept else "no",
            ]
            for stage in self.stages
        ]
        return [TextTable.of("Stages", [*header, "seconds", "kept"], rows)]

    def _content(self) -> dict[str, Any]:
        return {
            "metric": self.metric,
            "n_train": self.n_train,
            "n_validation": self.n_validation,
            "stages": [
                {**_facts(stage), "leaves": stage.tree.n_leaves, "splits": stage.tree.n_splits}
                for stage in self.stages
            ],
        }

    def _tables(self) -> Tables:
        columns = columns_of(Stage, self.stages)
        trees = columns.pop("tree")
        return {"stages": {**columns, "leaves": [tree.n_leaves for tree in trees]}}


def _facts(stage: Stage) -> dict[str, Any]:
    return {name: value for name, value in vars(stage).items() if name != "tree"}


def refine(
    tree: Any,
    X: Any,
    y: Any,
    *,
    learners: Any = ("dgt", "tao"),
    X_val: Any = None,
    y_val: Any = None,
    sample_weight: Any = None,
    validation_fraction: float = 0.2,
    scoring: Any = None,
    n_jobs: int | None = None,
    random_state: Any = None,
    verbose: int = 0,
) -> Refinement:
    """Improve a tree by several learners in turn, and keep what helps.

    Each learner starts from the best tree so far, learns from the training rows and is scored on
    validation rows, which no learner uses. A stage is kept only if its validation score is higher.
    Ctrl-C stops the refinement: the stages so far are returned, with a warning.

    Parameters
    ----------
    tree : ObliqueTree or fitted estimator with one
        The initial tree, from any learner or `from_sklearn`. Its decision weights are kept.
    X, y
        The table and its target, as in `fit`, with the columns and classes of the tree. If the
        initial tree was trained on all of these rows, its validation score is too high: then give
        `X_val`.
    learners : sequence of names and estimators, default=("dgt", "tao")
        Learners in turn: "dgt", "semantic", "tao", "non_greedy", "reinforced", a learner of
        `hardwood.learn`, or estimators that take ``init=``, with parameters of their own; those are
        cloned.
    X_val, y_val
        The validation rows. None: `validation_fraction` of the rows is held out.
    sample_weight
        (n,) row weights >= 0; None for equal weights.
    validation_fraction : float, default=0.2
        Fraction of the distinct rows to hold out, stratified by class, if `X_val` is None.
    scoring : str or function, default=None
        None for accuracy or, in regression, R2. Or a scorer of scikit-learn; larger is better.
    n_jobs, random_state, verbose
        Passed to learners given by name; `random_state` also draws the validation rows.

    Returns
    -------
    refinement
        `tree_` is the best tree; ``print`` shows all stages.

    Raises
    ------
    ValueError, TypeError
        If the tree is for another task, other columns or other classes, or if `learners` holds
        something that is not a learner.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import hardwood
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> start = hardwood.GreedyTreeClassifier(max_depth=2).fit(X, y)
    >>> refined = hardwood.refine(start, X, y, learners=["tao"], random_state=0)
    >>> refined.stages[-1].validation_score >= refined.stages[0].validation_score
    True
    """
    start = _start(tree)
    seed = drawn_seed(random_state)
    level = parameters.level("verbose", verbose)
    run = Run(drawn_seed(seed), parameters.n_threads(n_jobs))
    specs = [(_checked(each, start), each) for each in _sequence(learners)]
    if (X_val is None) != (y_val is None):
        raise ValueError("X_val and y_val belong together: give both, or none.")
    validation = None if X_val is None else (X_val, y_val)
    rows = _divided(start, X, y, sample_weight, validation, validation_fraction, seed)
    scorer = Scorer.of_given_trees(start.task, rows.task.classes, scoring)
    stages = [_stage("start", start, None, scorer, rows, 0.0)]
    try:
        for name, spec in specs:
            begun = time.perf_counter()
            learned, is_interrupted = _learned(spec, _best(stages).tree, rows, run, level - 1)
            learned = learned.replace(decision_weights=start.decision_weights)
            seconds = time.perf_counter() - begun
            stages.append(_stage(name, learned, _best(stages), scorer, rows, seconds))
            if level:
                print(_line(stages[-1], scorer), flush=True)
            if is_interrupted:
                raise KeyboardInterrupt
    except KeyboardInterrupt:
        _warn_of_interrupt(stages)
    return Refinement(
        _best(stages).tree,
        tuple(stages),
        scorer.name,
        len(rows.train.truth),
        len(rows.valid.truth),
    )


@dataclass(frozen=True)
class _Part:
    """Rows of a table, their numeric targets (n, t), and their weights, if any."""

    X: Any
    truth: np.ndarray
    weight: np.ndarray | None


@dataclass(frozen=True)
class _Divided:
    """Training rows and validation rows."""

    task: Task
    train: _Part
    valid: _Part


def _start(tree: Any) -> ObliqueTree:
    found = getattr(tree, "tree_", tree)
    if not isinstance(found, ObliqueTree):
        raise TypeError(
            f"tree must be an ObliqueTree or a fitted estimator with one, got {tree!r:.200}. "
            "hardwood.from_sklearn(tree) converts a tree of scikit-learn."
        )
    return found


def _sequence(learners: Any) -> list[Any]:
    """Return the learners as a list, also if there is only one."""
    if isinstance(learners, str | Learner) or hasattr(learners, "get_params"):
        return [learners]
    if not isinstance(learners, Iterable):
        raise TypeError(
            "learners must be a sequence of names and estimators, such as ['dgt', 'tao'], got "
            f"{learners!r:.200}."
        )
    return list(learners)


def _names() -> tuple[str, ...]:
    """Names of the learners that can start from a tree."""
    return tuple(name for name, learner in LEARNERS.items() if learner.takes_start)


def _checked(spec: Any, start: ObliqueTree) -> str:
    """Return the name of a learner; raise an error if it cannot refine this tree."""
    if isinstance(spec, str):
        name: str = parameters.choice("each of learners", spec, _names())
        if start.has_linear_leaves and "leaves" not in _parameters(name):
            raise ValueError(
                f"learners contains {name!r}, which learns constant leaves, but the tree has "
                "linear leaves. 'dgt', 'semantic' and 'tao' learn both."
            )
        return name
    if isinstance(spec, Learner) and spec.takes_start and not isinstance(spec, Bagging):
        return type(spec).__name__
    if isinstance(spec, type) or "init" not in getattr(spec, "get_params", dict)():
        raise TypeError(
            f"learners contains {spec!r:.200}; expected one of {list(_names())}, or an estimator "
            "that takes init=, such as DGTClassifier(max_depth=6)."
        )
    is_regression = start.task == "regression"
    if is_classifier(spec) if is_regression else is_regressor(spec):
        expected = "regressor" if is_regression else "classifier"
        raise TypeError(f"learners contains {spec!r:.200}; expected a {expected}, like the tree.")
    return type(spec).__name__


def _learner(spec: str, start: ObliqueTree) -> Learner:
    """Return the learner of this name, for trees as deep as the start."""
    options: dict[str, Any] = {}
    if "max_depth" in _parameters(spec):
        options["max_depth"] = max(1, start.depth)
    if start.has_linear_leaves:
        options["leaves"] = "linear"
    return LEARNERS[spec](**options)


def _parameters(name: str) -> set[str]:
    return {each.name for each in fields(LEARNERS[name])}


def _divided(
    start: ObliqueTree,
    X: Any,
    y: Any,
    sample_weight: Any,
    validation: tuple[Any, Any] | None,
    fraction: float,
    seed: int,
) -> _Divided:
    """Hold out validation rows unless they are given; equal rows stay together."""
    classifies = start.task != "regression"
    task = Task.read(X, y, sample_weight, classifies=classifies, loss=DGT().default_loss)
    fraction = parameters.real("validation_fraction", fraction, 0.0, 1.0, open_low=True)
    task = task.divided(0.0 if validation else fraction, seed)
    check_same_task(start, task, "tree")
    of_row = task.representatives()
    train, valid = (np.flatnonzero(np.isin(of_row, part)) for part in (task.train, task.valid))
    weight = row_weights(sample_weight, len(of_row))
    truth = task.target
    training = _Part(taken(X, train), truth[train], None if weight is None else weight[train])
    if validation is None:
        validating = _Part(taken(X, valid), truth[valid], None if weight is None else weight[valid])
    else:
        validating = _Part(validation[0], _truth(task, *validation), None)
    return _Divided(task, training, validating)


def _truth(task: Task, X: Any, y: Any) -> np.ndarray:
    """Return the targets of the given validation rows in the form of `Task.target`."""
    n = n_rows(X)
    if n != n_rows(y):
        raise ValueError(f"X_val has {plural(n, 'row')}, but y_val has {n_rows(y)}.")
    if task.kind == "regression":
        return number_target(y, n).values
    if task.kind == "multilabel":
        return label_target(y, n).values
    assert task.labels is not None
    return class_positions(y, n, task.labels)[:, None].astype(np.float64)


def _learned(
    spec: Any, start: ObliqueTree, rows: _Divided, run: Run, verbose: int
) -> tuple[ObliqueTree, bool]:
    """Let a learner start from a tree; return the result and whether it was interrupted."""
    part, task = rows.train, rows.task
    y: Any = part.truth if part.truth.shape[1] > 1 else part.truth[:, 0]
    if task.classes is not None and task.kind == "classification":
        y = task.classes[y.astype(np.int64)]
    if isinstance(spec, str | Learner):
        learner = _learner(spec, start) if isinstance(spec, str) else spec
        tree, is_interrupted = _by_learner(learner, start, part, y, run, verbose)
    else:
        tree, is_interrupted = _by_estimator(clone(spec).set_params(init=start), part, y)
    return tree.replace(target_names=task.target_names), is_interrupted  # the original names


def _by_learner(
    learner: Learner, start: ObliqueTree, part: _Part, y: Any, run: Run, verbose: int
) -> tuple[ObliqueTree, bool]:
    # Read again, so that centers and scales are not computed from validation rows.
    task = Task.read(
        part.X,
        y,
        part.weight,
        classifies=start.task != "regression",
        loss=learner.default_loss,
    )
    if learner.wants_validation(task):
        task = task.divided(_VALIDATION_FRACTION, run.seed)
    if verbose > 0:
        run = replace(run, callbacks=(learner.printer(task, verbose),))
    learned = learner.fit(task, run, start)
    model = finished(learned, task, learner.record(task), run.n_jobs)
    return model.hard("a refinement"), learned.interrupted


def _by_estimator(estimator: Any, part: _Part, y: Any) -> tuple[ObliqueTree, bool]:
    with warnings.catch_warnings():
        warnings.simplefilter("error", FitInterruptedWarning)  # raised at the end of a fit
        try:
            estimator.fit(part.X, y, part.weight)
        except FitInterruptedWarning:
            return estimator.tree_, True
    return estimator.tree_, False


def _warn_of_interrupt(stages: Sequence[Stage]) -> None:
    warnings.warn(
        f"The refinement was interrupted after {plural(len(stages) - 1, 'stage')}; the best tree "
        "so far is kept.",
        FitInterruptedWarning,
        stacklevel=3,
    )


def _stage(
    name: str, tree: ObliqueTree, best: Stage | None, scorer: Scorer, rows: _Divided, seconds: float
) -> Stage:
    train, valid = (
        scorer.score(_outputs(tree, part.X), part.truth, part.weight)
        for part in (rows.train, rows.valid)
    )
    kept = best is None or valid > best.validation_score
    return Stage(name, tree, train, valid, kept, seconds)


def _outputs(tree: ObliqueTree, X: Any) -> np.ndarray:
    if tree.task != "regression":
        return tree.predict_proba(X)
    return tree.predict(X).reshape(-1, tree.n_outputs)


def _best(stages: Sequence[Stage]) -> Stage:
    return [stage for stage in stages if stage.kept][-1]


def _line(stage: Stage, scorer: Scorer) -> str:
    word = "kept" if stage.kept else "not kept"
    return (
        f"{stage.name}  {scorer.name} {stage.validation_score:.5g}  {stage.seconds:.1f} s  {word}"
    )
