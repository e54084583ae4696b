"""Explanations, reports, and edits of models."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from hardwood import explain, report
from hardwood.model import LatentTreeModel
from ledger import models
from ledger.cases import Case, each_of
from ledger.models import Subject
from ledger.values import picture

_QUICK = {"tree of a data frame", "forest of numbers", "policy tree of two branches"}


def _shapley(subject: Subject) -> Any:
    return explain.shapley(subject.model, subject.named[:6], subject.named[6:40])


def _sampled(subject: Subject) -> Any:
    return explain.shapley(
        subject.model, subject.named[:4], subject.named[4:30], n_permutations=20, exact=False
    )


def _path(subject: Subject) -> Any:
    return explain.path(subject.model, subject.named.iloc[3].to_dict(), X=subject.named)


def _counterfactual(subject: Subject, **options: Any) -> Any:
    model, rows = subject.model, subject.named[:5]
    if model.task == "regression":
        middle = np.median(model.predict(subject.named).reshape(len(subject.named), -1), axis=0)
        options["wanted"] = [(float(low), None) for low in middle]
        if model.n_outputs == 1:
            options["wanted"] = options["wanted"][0]
    if model.task == "multilabel":
        options["wanted"] = [1, *[None] * (model.n_outputs - 1)]
    return explain.counterfactual(model, rows, **options)


def _evaluation(subject: Subject) -> Any:
    return report.evaluate(subject.model, subject.named, subject.table.y_other)


def _analysis(subject: Subject) -> Any:
    return report.analyze(
        subject.model, subject.named, subject.table.y_other, n_repeats=2, n_grid=5
    )


_REPORTS: Mapping[str, Callable[[Subject], Any]] = {
    "shapley": _shapley,
    "shapley, sampled": _sampled,
    "path": _path,
    "counterfactual": _counterfactual,
    "counterfactual, l1": lambda s: _counterfactual(s, norm="l1", fixed=[s.model.feature_names[0]]),
    "counterfactual, integers": lambda s: _counterfactual(
        s, norm="l0", integers=[s.model.feature_names[-1]], margin=1e-3
    ),
    "evaluate": _evaluation,
    "analyze": _analysis,
    "describe": lambda s: report.describe(s.model),
    "learning curves": lambda s: report.learning_curves(s.model),
}

_EDITS: Mapping[str, Callable[[Subject], Any]] = {
    "prune": lambda s: s.model.prune(s.named, s.table.y_other, alpha=0.01),
    "prune, held out": lambda s: s.model.prune(
        s.table.X, s.table.y, validation=(s.table.X_other, s.table.y_other)
    ),
    "prune, one standard error": lambda s: s.model.prune(
        s.table.X,
        s.table.y,
        validation=(s.table.X_other, s.table.y_other),
        one_standard_error=True,
        complexity="weights",
    ),
    "prune, unreached": lambda s: s.model.prune(s.named[:20], min_samples=2),
    "prune path": lambda s: s.model.prune_path(s.table.X, s.table.y),
    "sparsify": lambda s: s.model.sparsify(s.table.X, tolerance=0.05),
    "readable": lambda s: s.model.readable(s.table.X, tolerance=0.05),
    "simplify": lambda s: s.model.simplify(),
    "perfect": lambda s: s.model.to_perfect(),
    "oblique": lambda s: s.model.to_oblique(),
    "harden": lambda s: _hardened(s),
    "hardening cost": lambda s: s.model.hardening_cost(
        *([_hardened(s)] if isinstance(s.model, LatentTreeModel) else []),
        s.table.X,
        s.table.y,
    ),
}


def _hardened(subject: Subject) -> Any:
    if isinstance(subject.model, LatentTreeModel):
        return subject.model.harden(subject.table.X, subject.table.y)
    return subject.model.harden()


def cases() -> Iterator[Case]:
    """Return cases of every explanation, report and edit of every model."""
    for name in models.KINDS:
        is_quick = name in _QUICK
        yield Case(f"explain/{name}", functools.partial(_explained, name), is_quick)
        yield Case(f"edit/{name}", functools.partial(_edited, name), is_quick)


def _explained(name: str) -> dict[str, Any]:
    subject = models.subject(name)
    made = each_of({what: functools.partial(make, subject) for what, make in _REPORTS.items()})
    parts: dict[str, Any] = {}
    for what, report_ in made.items():
        parts.update({what: report_} if isinstance(report_, str) else _faces(what, report_))
    return parts


def _faces(what: str, made: Any) -> dict[str, Any]:
    """Return a report as values, as text, as a page and as a plot."""
    return each_of(
        {
            what: lambda: made.to_dict(),
            f"{what}, text": lambda: str(made),
            f"{what}, page": lambda: made.to_html(),
            f"{what}, drawing": lambda: picture(made.plot()),
        }
    )


def _edited(name: str) -> dict[str, Any]:
    subject = models.subject(name)
    return each_of({what: functools.partial(make, subject) for what, make in _EDITS.items()})
