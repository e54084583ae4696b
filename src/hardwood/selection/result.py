"""The result of a search."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from hardwood.text.numbers import plural

if TYPE_CHECKING:
    from optuna.study import Study


@dataclass(frozen=True)
class FinishedTrial:
    """One set of parameters, and its result.

    Attributes
    ----------
    number
        Its place in the search, from 0.
    state
        "complete"; "pruned", when it was ended early; "failed", when learning raised an error.
    value
        On the validation rows; None unless complete.
    params
        Parameters of the estimator.
    seconds
        How long it took.
    curve
        The smallest validation loss of the first restart so far, by twelfths of its epochs: what
        the pruner saw. The validation part is the estimator's own.
    error
        The message of a failed trial.
    """

    number: int
    state: Literal["complete", "pruned", "failed"]
    value: float | None
    params: dict[str, Any]
    seconds: float
    curve: dict[int, float] = field(default_factory=dict)
    error: str | None = None


@dataclass(frozen=True, repr=False)
class TuningResult:
    """The result of `hardwood.tune`.

    Attributes
    ----------
    best_params
        The parameters of the best trial.
    best_value
        Its value on the validation rows, the mean over folds.
    best_estimator
        The estimator with these parameters, learned from all rows; None with ``refit=False``.
    trials
        All finished trials, in order.
    metric
        What `best_value` is, in words.
    direction
        Whether small or large values are good.
    study
        Optuna's study, with everything it can plot and analyze.
    interrupted
        Whether Ctrl-C ended the search.
    """

    best_params: dict[str, Any]
    best_value: float
    best_estimator: Any
    trials: tuple[FinishedTrial, ...]
    metric: str
    direction: Literal["minimize", "maximize"]
    study: Study
    interrupted: bool = False

    @property
    def best_trial(self) -> FinishedTrial:
        """The best of the complete trials, the first among equals."""
        return best_of(self.trials, self.direction)

    def count(self, state: Literal["complete", "pruned", "failed"]) -> int:
        """Return the number of trials with this state."""
        return sum(trial.state == state for trial in self.trials)

    def to_columns(self) -> dict[str, list[Any]]:
        """Return the trials as columns, which pandas, polars and Arrow make a table of.

        One column for every parameter, None where a trial did not choose it.
        """
        names = list(dict.fromkeys(name for trial in self.trials for name in trial.params))
        columns: dict[str, list[Any]] = {
            name: [getattr(trial, name) for trial in self.trials]
            for name in ("number", "state", "value", "seconds")
        }
        for name in names:
            columns[name] = [trial.params.get(name) for trial in self.trials]
        return columns

    def __repr__(self) -> str:
        states = ", ".join(
            f"{self.count(state)} {state}" for state in ("complete", "pruned", "failed")
        )
        return (
            f"TuningResult({self.metric} {self.best_value:.6g} with {self.best_params}; "
            f"{plural(len(self.trials), 'trial')}: {states})"
        )


def best_of(
    trials: tuple[FinishedTrial, ...], direction: Literal["minimize", "maximize"]
) -> FinishedTrial:
    """Return the best complete trial, the first among equals.

    Raises
    ------
    ValueError
        Where none is complete.
    """
    complete = [trial for trial in trials if trial.value is not None]
    if not complete:
        errors = [trial.error for trial in trials if trial.error]
        hint = f" The last error: {errors[-1]}" if errors else ""
        raise ValueError(f"None of {plural(len(trials), 'trial')} was completed.{hint}")
    sign = 1.0 if direction == "minimize" else -1.0
    return min(complete, key=lambda trial: (sign * (trial.value or 0.0), trial.number))
