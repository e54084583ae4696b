"""The report on a new model."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from hardwood.cli.errors import naming_the_file
from hardwood.cli.output import Notes, print_json, print_text
from hardwood.cli.process.interrupts import INTERRUPTED
from hardwood.report.metrics import scores_json, scores_table
from hardwood.report.resampling import Score
from hardwood.text.numbers import format_number, plural

if TYPE_CHECKING:
    from hardwood.cli.fit import Dataset
    from hardwood.model.base import Model

# The meaning of a forest's `oob_score_`, by task.
_OOB_SCORES = {
    "classification": "accuracy",
    "multilabel": "subset accuracy",
    "regression": "R2",
}


@dataclass(frozen=True)
class FitOutcome:
    """A new model, its test scores, and those of the best constant prediction.

    ``metric`` is the score that comes first; "" for their usual order.
    """

    data: Dataset
    model: Model
    scores: list[Score]
    baseline: list[Score]
    metric: str = ""

    def save(self, output: Path) -> None:
        """Write the model file."""
        with naming_the_file(output):
            self.model.save(output)

    @property
    def main_metric(self) -> str:
        """The name of the score that comes first."""
        return self._ordered(self.scores)[0].name

    def print(self, output: Path) -> None:
        """Print the report."""
        model = self.model
        what = f"Forest of {plural(model.n_trees, 'tree')}" if model.is_ensemble else "Tree"
        print_text(f"{what}: {model.size_words}")
        if self.scores:
            title = f"Test score on {plural(self.data.test.size, 'row')}"
            scores, baseline = self._ordered(self.scores), self._ordered(self.baseline)
            grid = scores_table(title, scores, baseline, baseline_name(self.data))
            print_text(grid.to_text() + "\n")
        if "oob_score" in model.record:
            score = f"{_OOB_SCORES[model.task]} {format_number(model.record['oob_score'])}"
            print_text(
                f"Out-of-bag score: {score} on training rows, by the trees that did not draw them"
            )
        print_text(f"Wrote {output}   (to read it: hardwood describe {output})")

    def print_json(self, output: Path, notes: Notes, **further: Any) -> None:
        """Print the report as JSON, with further entries."""
        of_notes = {"interrupted": notes.was_interrupted, "notes": notes.messages}
        print_json(self._to_dict(output) | of_notes | further)

    def _ordered(self, scores: list[Score]) -> list[Score]:
        return sorted(scores, key=lambda score: score.name.split(" of ")[0] != self.metric)

    def _to_dict(self, output: Path) -> dict[str, Any]:
        data, model = self.data, self.model
        names = data.target.names
        return {
            "table": str(data.request.path),
            "model": str(output),
            "target": names[0] if len(names) == 1 else list(names),
            "task": model.task,
            "reason": data.target.reason,
            "n_features": data.features.num_columns,
            "left_out": data.left_out_json,
            "n_train": data.train.size,
            "n_test": data.test.size,
            "n_missing_target": data.target.n_missing,
            "n_trees": model.n_trees,
            "depth": model.depth,
            "n_leaves": model.n_leaves,
            "test": scores_json(self._ordered(self.scores)),
            "baseline": {
                "name": baseline_name(data),
                "test": scores_json(self._ordered(self.baseline)),
            },
            "oob_score": model.record.get("oob_score"),
        }


def baseline_name(data: Dataset) -> str:
    """Name the best constant prediction."""
    is_several = len(data.target.names) > 1
    if data.target.task == "regression":
        return "training means" if is_several else "training mean"
    return "most frequent labels" if is_several else "most frequent class"


def end_if_interrupted(notes: Notes) -> None:
    """End the command with the exit code of an interrupted one, if it was."""
    if notes.was_interrupted:
        raise typer.Exit(INTERRUPTED)
