"""Figure 3 and Table 6 of the DGT paper: regression from the losses of tried values.

In each round the learner sees a row, tries one number (Figure 3, Eq. 9) or two (Table 6, Eq. 10)
and observes only their losses. ``tree`` is `DGTBanditRegressor` with its defaults; ``paper`` is the
same estimator with the paper's methods; the baseline is a linear function trained by RMSprop on the
paper's gradient estimates. All are given the mean and the standard deviation of the training
targets (the authors scale targets to [0, 1]). The validation rows of each split choose the setting
(of ours with defaults: the depth), and for Table 6 the number of epochs, among models trained on
training rows. The reported model is trained on both parts and scored by the root mean squared error
on test rows. With Huber's loss the setting is the one chosen with the squared loss.
"""

from __future__ import annotations

import itertools
import time
from typing import Any, Protocol

import numpy as np

from benchmarks.quality.bandit_curves import Run, order
from benchmarks.quality.dgt_paper import TASKS
from benchmarks.quality.ledger import Entry, Ledger
from benchmarks.quality.parts import Parts, n_splits, parts
from benchmarks.quality.trials import OutOfTimeError
from benchmarks.record import alone

Setting = dict[str, Any]

NAMES = ("ailerons", "abalone", "cpu_act")
LEARNERS = {
    "tree": "DGTBanditRegressor",
    "paper": "DGTBanditRegressor, the paper's estimator",
    "linear": "linear",
}
LOSSES = ("squared", "huber")
# Table 6: by data set and kind of model, with the squared loss and with Huber's.
PAPER = {
    "ailerons": {"tree": (1.71, 1.72), "linear": (1.78, 1.87)},
    "abalone": {"tree": (2.16, 2.16), "linear": (2.28, 2.44)},
    "cpu_act": {"tree": (3.05, 2.99), "linear": (10.05, 10.27)},
}
FLOORS = {"ailerons": 1.73, "abalone": 2.19, "cpu_act": 3.25}
QUERIES = 100_000
PASSES = {"tree": (2, 5, 10, 20), "paper": (10, 20, 40, 80), "linear": (10, 20, 40, 80)}
_CHOOSING_SEED = 1000
_DECAY, _EPSILON = 0.99, 1e-5


class Regressor(Protocol):
    """A learner that processes rows in order and predicts."""

    def replay(self, X: np.ndarray, y: np.ndarray, loss: str) -> object: ...

    def predict(self, X: np.ndarray) -> np.ndarray: ...


class LinearBandit:
    """A linear function of standardized columns, trained by RMSprop on estimated gradients."""

    def __init__(
        self, X: np.ndarray, method: str, setting: Setting, about: tuple[float, float], seed: int
    ) -> None:
        self._mean, deviation = X.mean(axis=0), X.std(axis=0)
        self._deviation = np.where(deviation > 0, deviation, 1)
        self._weights = np.zeros(X.shape[1] + 1)
        self._square = np.zeros_like(self._weights)
        self._method, self._setting = method, setting
        self._start, self._scale = about
        self._rng = np.random.default_rng([seed, 1])

    def _columns(self, X: np.ndarray) -> np.ndarray:
        return np.hstack([(X - self._mean) / self._deviation, np.ones((len(X), 1))])

    def replay(self, X: np.ndarray, y: np.ndarray, loss: str) -> None:
        columns, batch = self._columns(X), self._setting["gradient_accumulation"]
        targets = (y - self._start) / self._scale
        for i in range(0, len(X), batch):
            rows = columns[i : i + batch]
            slopes = self._slopes(rows @ self._weights, targets[i : i + batch], loss)
            gradient = slopes @ rows
            self._square = _DECAY * self._square + (1 - _DECAY) * gradient**2
            step = gradient / (np.sqrt(self._square) + _EPSILON)
            self._weights -= self._setting["learning_rate"] * step

    def _slopes(self, predicted: np.ndarray, targets: np.ndarray, loss: str) -> np.ndarray:
        delta = self._setting["perturbation"]

        def lost(values: np.ndarray) -> np.ndarray:
            return losses(loss, self._scale * (values - targets)) / self._scale

        if self._method == "two_point":
            return (lost(predicted + delta) - lost(predicted - delta)) / (2 * delta)
        direction = self._rng.choice([-1.0, 1.0], len(predicted))
        return lost(predicted + delta * direction) * direction / delta

    def predict(self, X: np.ndarray) -> np.ndarray:
        return self._start + self._scale * (self._columns(X) @ self._weights)


def losses(name: str, errors: np.ndarray) -> np.ndarray:
    """Return the losses of errors; Huber's loss becomes linear at 1."""
    if name == "squared":
        return errors**2
    size = np.abs(errors)
    return np.where(size <= 1, errors**2 / 2, size - 0.5)


class _Tree:
    """`DGTBanditRegressor` with the interface of the baseline."""

    def __init__(
        self, method: str, setting: Setting, about: tuple[float, float], seed: int
    ) -> None:
        from hardwood.bandit import DGTBanditRegressor

        start, scale = about
        self._model = DGTBanditRegressor(
            method=method, start=start, scale=scale, random_state=seed, **setting
        )

    def replay(self, X: np.ndarray, y: np.ndarray, loss: str) -> None:
        self._model.replay(X, y, loss=loss)

    def predict(self, X: np.ndarray) -> np.ndarray:
        return self._model.predict(X)


def grid(learner: str, method: str) -> list[Setting]:
    """Return the settings to compare; of the paper's deltas only those that matter."""
    heights = (6, 8) if method == "two_point" else (8,)
    if learner == "tree":
        return [_defaults(method) | {"max_depth": height} for height in heights]
    deltas = (0.5,) if method == "two_point" else (1.0, 0.5, 0.1)
    keys = ("learning_rate", "perturbation", "gradient_accumulation")
    settings = [
        dict(zip(keys, values, strict=True))
        for values in itertools.product((1e-2, 3e-3, 1e-3), deltas, (4, 32))
    ]
    if learner == "linear":
        return settings
    return [{"max_depth": height} | setting for height in heights for setting in settings]


def _defaults(method: str) -> Setting:
    """Return every default by name, so that a changed default is run again."""
    from hardwood.bandit import DGTBanditRegressor

    used = DGTBanditRegressor(method=method).parameters_
    return {k: v for k, v in used.items() if k not in ("method", "start", "scale", "max_open")}


def regressor(
    learner: str, method: str, setting: Setting, table: tuple[np.ndarray, np.ndarray], seed: int
) -> Regressor:
    X, y = table
    about = (float(y.mean()), float(y.std()))
    if learner == "linear":
        return LinearBandit(X, method, setting, about, seed)
    return _Tree(f"paper_{method}" if learner == "paper" else method, setting, about, seed)


# --- one run -----------------------------------------------------------------------------------


def errors_at(
    table: Parts,
    rows: tuple[np.ndarray, np.ndarray],
    model: Regressor,
    loss: str,
    marks: list[int],
    seed: int,
) -> list[float]:
    """Return the RMSE on the second rows after each number of queries about the first."""
    known, scored = rows
    coming = known[order(len(known), marks[-1], seed)]
    found, seen = [], 0
    for mark in marks:
        model.replay(table.X[coming[seen:mark]], table.y[coming[seen:mark]], loss)
        wrong = model.predict(table.X[scored]) - table.y[scored]
        found.append(float(np.sqrt(np.mean(wrong**2))))
        seen = mark
    return found


def marks_of(run: Run, learner: str, method: str, n_rows: int) -> list[int]:
    """Return the numbers of queries at which errors are measured: epochs, or along a curve."""
    if method == "two_point":
        return [n * n_rows for n in PASSES[learner][: 1 if run.divisor > 1 else None]]
    last = QUERIES // run.divisor
    return sorted({int(mark) for mark in np.geomspace(last / 200, last, 15)})


class Trial:
    """A learner on a data set: a setting chosen on validation rows, then one run per seed."""

    def __init__(self, run: Run, name: str, learner: str, method: str) -> None:
        self.run, self.name, self.learner, self.method = run, name, learner, method
        key = {"name": name, "learner": learner, "method": method}
        self.ledger = Ledger(run.results, key, {"measure": "rmse"})

    def _errors(
        self, setting: Setting, split: int, seed: int, loss: str, mark: int | None = None
    ) -> Entry:
        """Train on training rows; if a mark was chosen, on validation rows too, up to that mark."""
        if time.monotonic() > self.run.deadline:
            raise OutOfTimeError
        table = parts(self.run.data, TASKS[self.name], split)
        rows = (table.train, table.valid) if mark is None else (table.learnable, table.test)
        marks = marks_of(self.run, self.learner, self.method, len(rows[0]))
        marks = marks if mark is None else marks[: mark + 1]
        known = (table.X[rows[0]], table.y[rows[0]])
        model = regressor(self.learner, self.method, setting, known, seed)
        start = time.process_time()
        errors = errors_at(table, rows, model, loss, marks, seed)
        seconds = time.process_time() - start
        return {"queries": marks, "values": errors, "seconds": seconds}

    def chosen(self, split: int) -> tuple[Setting, int]:
        """Return the setting with the smallest error on validation rows, and its mark."""
        settings = grid(self.learner, self.method)[: 2 if self.run.divisor > 1 else None]
        errors = []
        for setting in settings:
            entry = self.ledger.choice(split, setting, 0)
            if entry is None:
                found = self._errors(setting, split, _CHOOSING_SEED, "squared")
                entry = {"split": split, "repeat": 0, "setting": setting, **found}
                self.ledger.add_choice(entry)
            errors.append([v if np.isfinite(v) else np.inf for v in entry["values"]])
        if self.method == "two_point":
            best = np.unravel_index(np.argmin(errors), np.shape(errors))
            return settings[int(best[0])], int(best[1])
        # The whole second half of a curve is compared, not one lucky point.
        late = np.array(errors)[:, len(errors[0]) // 2 :].mean(axis=1)
        return settings[int(np.argmin(late))], len(errors[0]) - 1

    def work(self) -> None:
        splits = n_splits(self.run.data, TASKS[self.name])
        losses_met = LOSSES if self.method == "two_point" else LOSSES[:1]
        for seed in range(self.run.n_seeds):
            split = seed % splits
            setting, mark = self.chosen(split)
            for place, loss in enumerate(losses_met):
                key = split + splits * place  # the ledger knows one run per split and seed
                self.ledger.forget_runs(key, other_than=setting)
                if self.ledger.run(key, seed) is not None:
                    continue
                found = self._errors(setting, split, seed, loss, mark)
                entry = {"split": key, "seed": seed, "setting": setting, "loss": loss, **found}
                self.ledger.add_run(entry | {"score": found["values"][mark], "mark": mark})
                print(
                    f"{self.name} {self.learner} {loss} seed {seed}: {entry['values'][mark]:.3f}",
                    flush=True,
                )


def work(run: Run, names: list[str], method: str) -> None:
    for name in names:
        for learner in LEARNERS:
            trial = Trial(run, name, learner, method)
            with alone(trial.ledger.name) as is_alone:
                if is_alone:
                    trial.work()
