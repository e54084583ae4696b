"""Random messy tables, from `fit` through every view of the model to its predictions.

::

    python tests/fuzz/messy_tables.py --cases 100000 --jobs 8 --failures FOLDER

A case is a table of `random_tables.py`, an estimator of `every_estimator.py` with few epochs, and
some views of what it learned, chosen by the number of the case. Each step works or refuses with a
clear error: one of hardwood's own, or a ValueError that hardwood or scikit-learn raised on purpose.
Anything else is a failure, and so are a crash, 20 seconds of the processor, and memory beyond
`MEMORY`, more than ten times the largest of these tables. A model must predict the same after it
was saved and loaded.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from unittest import mock

for library in ("OMP", "OPENBLAS", "MKL"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")
os.environ.setdefault("MPLBACKEND", "Agg")

import numpy as np  # noqa: E402
from sklearn.base import clone, is_classifier  # noqa: E402
from sklearn.exceptions import NotFittedError  # noqa: E402

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "estimators")]
from campaign import Campaign, parser  # noqa: E402  # found by the line above
from every_estimator import EVERY_ESTIMATOR, OTHER_SETTINGS, runnable  # noqa: E402
from random_tables import Case, Random, make_case, some_rows  # noqa: E402

from hardwood import explain, export, learn_from_rewards, report  # noqa: E402
from hardwood.errors import HardwoodError  # noqa: E402
from hardwood.export import probes  # noqa: E402
from hardwood.export.c.compiler import Compiler  # noqa: E402
from hardwood.model import dumps, loads  # noqa: E402
from hardwood.model.base import model_of  # noqa: E402
from hardwood.report import resampling  # noqa: E402

MEMORY = 192 * 2**20
SECONDS = 20.0
FEW = 3  # rows to explain
TWO = ("max_epochs", "n_estimators", "max_sweeps", "max_trials")
TINY: dict[str, Any] = {"n_jobs": 1, **dict.fromkeys(TWO, 2)}
LIBRARIES = ("torch._dynamo", "onnx", "polars", "matplotlib.pyplot")
"""They are imported before the first case, or every process would take time and memory for them."""
OWN = (f"{os.sep}hardwood{os.sep}", f"{os.sep}sklearn{os.sep}")


@cache
def estimators() -> list[Any]:
    """Return all estimators whose libraries are installed."""
    return runnable([*EVERY_ESTIMATOR, *OTHER_SETTINGS])


class RefusedError(Exception):
    """A step has refused, with a clear error."""


def unless_refused(step: Callable[[], Any]) -> Any:
    """Return the result of a step; raise RefusedError for a clear error, pass on others."""
    try:
        return step()
    except (HardwoodError, NotFittedError) as error:
        raise RefusedError(type(error).__name__) from error
    except ValueError as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        if any(folder in last.filename for folder in OWN):
            raise RefusedError("ValueError") from error
        raise


def fitted(rng: Random, case: Case) -> tuple[Any, Any]:
    """Return an estimator that was fitted to a table, and its target."""
    place = rng.integers(len(estimators()) + 1)
    if place == len(estimators()):
        return learned_from_rewards(rng, case), case.classes
    estimator = clone(estimators()[place])
    known = estimator.get_params(deep=False)
    tiny = {name: value for name, value in TINY.items() if isinstance(known.get(name), int)}
    estimator.set_params(random_state=int(rng.integers(9)), **tiny)
    if "n_clusters" in known:  # its tree is to see every column
        return estimator.set_params(targets="all").fit(case.X), case.numbers
    target = case.classes if is_classifier(estimator) else case.numbers
    return estimator.fit(case.X, target, sample_weight=case.weight), target


def learned_from_rewards(rng: Random, case: Case) -> Any:
    n_actions = int(rng.integers(1, 4))
    actions = [f"action {i}" for i in range(n_actions)]

    def reward(rows: Any, chosen: Any) -> np.ndarray:
        return np.sin(np.arange(len(chosen))) + (np.asarray(chosen) == actions[0])

    return learn_from_rewards(
        case.X, reward, actions=actions, max_depth=2, max_epochs=2, random_state=0
    )


# --- views --------------------------------------------------------------------------------------


def shown(found: Any) -> None:
    """Show a report in every form but its plots."""
    assert str(found).strip()
    found.to_json()
    for name in found.tables:
        found.to_frame(name)


def same_after_loading(model: Any, case: Case, target: Any) -> None:
    expected = model.outputs(case.X)
    assert not np.isnan(expected).any()
    for copy in (loads(dumps(model)), type(model).from_json(model.to_json())):
        assert copy == model
        np.testing.assert_array_equal(copy.outputs(case.X), expected)


def counterfactual(model: Any, case: Case, target: Any) -> None:
    rows, wanted = some_rows(np.random.default_rng(0), case.X, FEW), None
    outputs = model.outputs(rows)
    if model.task == "regression":
        middle = [(float(number), None) for number in np.median(outputs, axis=0)]
        wanted = middle if len(middle) > 1 else middle[0]
    elif model.task == "multilabel":
        wanted = [1] + [None] * (model.n_outputs - 1)
    found = explain.counterfactual(model, rows, wanted=wanted)
    np.testing.assert_array_equal(model.predict(found.X), found.predictions)
    assert str(found)
    found.to_frame()


def path(model: Any, case: Case, target: Any) -> None:
    row = some_rows(np.random.default_rng(0), case.X, 1)
    found = explain.path(model, row[0] if isinstance(row, list) else row)
    np.testing.assert_array_equal(found.outputs, model.outputs(row)[0])
    shown(found)


def shapley(model: Any, case: Case, target: Any) -> None:
    rows = some_rows(np.random.default_rng(0), case.X, FEW)
    found = explain.shapley(model, rows, rows, n_permutations=2)
    rounding = 1e-12 * np.abs(found.values).sum(axis=1).max(initial=1.0)  # they may cancel
    total = found.base + found.values.sum(axis=1)
    np.testing.assert_allclose(total, model.outputs(rows), rtol=1e-8, atol=rounding)
    shown(found)


def exported(write: Callable[..., Any], **options: Any) -> Callable[[Any, Case, Any], None]:
    def view(model: Any, case: Case, target: Any) -> None:
        write(model, data=case.X, **options)

    return view


def smaller(model: Any, case: Case, target: Any) -> None:
    hard = model.hard("pruning")
    for tree in hard.hard_trees:
        for less in (tree.simplify(), tree.prune(case.X), tree.sparsify(case.X, tolerance=0.1)):
            assert less.n_leaves <= tree.n_leaves
        assert str(tree.readable(case.X, tolerance=0.02))


def plot(model: Any, case: Case, target: Any) -> None:
    from matplotlib import pyplot

    try:
        model.plot().figure.canvas.draw()
    finally:
        pyplot.close("all")


def evaluated(model: Any, case: Case, target: Any) -> Any:
    return report.evaluate(model, case.X, target)


def analyzed(model: Any, case: Case, target: Any) -> Any:
    return report.analyze(model, case.X, target, n_repeats=2, n_grid=3)


def text(model: Any, case: Case, target: Any) -> None:
    assert repr(model)
    assert model.to_text()
    model.to_text(max_terms=None, digits=None)
    model.to_text(max_depth=0)


VIEWS: dict[str, Callable[[Any, Case, Any], Any]] = {
    "file": same_after_loading,
    "text": text,
    "page": lambda model, case, target: model.show(None, case.X, target).html,
    "notebook": lambda model, case, target: model._repr_html_(),
    "description": lambda model, case, target: shown(report.describe(model)),
    "description as HTML": lambda model, case, target: report.describe(model).to_html(),
    "evaluation": lambda model, case, target: shown(evaluated(model, case, target)),
    "analysis": lambda model, case, target: shown(analyzed(model, case, target)),
    "learning curves": lambda model, case, target: shown(report.learning_curves(model)),
    "path": path,
    "counterfactual": counterfactual,
    "Shapley values": shapley,
    "smaller": smaller,
    "C": exported(export.to_c),
    "C of 8 bits": exported(export.to_c, precision="int8", min_agreement=0.0),
    "JSON": exported(export.to_json),
    "Python": exported(export.to_python),
    "rules": exported(export.to_rules),
    "SQL": exported(export.to_sql),
    "ONNX": exported(export.to_onnx),
}
PLOTS: dict[str, Callable[[Any, Case, Any], Any]] = {
    "plot": plot,
    "plot of an evaluation": lambda *seen: evaluated(*seen).to_html(),
    "plot of an analysis": lambda *seen: analyzed(*seen).to_html(),
    "plot of learning curves": lambda model, case, target: report.learning_curves(model).to_html(),
}
SHARE_OF_VIEWS = 0.3
SHARE_OF_PLOTS = 0.03
"""Most of the time of a plot is text that matplotlib sets."""


def views_of(seed: int) -> dict[str, Callable[[Any, Case, Any], Any]]:
    """Return the views of a case; its table does not depend on them."""
    rng = np.random.default_rng((seed, 1))
    return {
        name: see
        for views, share in ((VIEWS, SHARE_OF_VIEWS), (PLOTS, SHARE_OF_PLOTS))
        for name, see in views.items()
        if rng.random() < share
    }


def other_rows(rng: Random, model: Any, case: Case) -> Any:
    """Predict rows of another table: a refusal, or one answer per row."""
    other = make_case(rng)
    X = other.X if rng.random() < 0.3 else some_rows(rng, case.X, int(rng.integers(0, 9)))
    assert len(model.predict(X)) == (X.shape[0] if hasattr(X, "shape") else len(X))


def try_case(seed: int, *, sees_all: bool = False) -> str:
    """Fit, look, predict; return whether the table was learned."""
    rng = np.random.default_rng(seed)
    case = make_case(rng)
    with (
        mock.patch.object(probes, "N_ROWS", 60),  # simulated, beside the rows of the table
        mock.patch.object(resampling, "n_resamples", return_value=40),
        mock.patch.object(Compiler, "find", return_value=None),  # compilers are slow
    ):
        try:
            estimator, target = unless_refused(lambda: fitted(rng, case))
        except RefusedError:
            return "refused"
        model = model_of(estimator)
        model.predict(case.X)
        for name, see in (VIEWS | PLOTS if sees_all else views_of(seed)).items():
            try_view(name, lambda see=see: see(model, case, target))
        try_view("other rows", lambda: other_rows(rng, model, case))
    return "learned"


def try_view(name: str, look: Callable[[], Any]) -> None:
    try:
        unless_refused(look)
    except RefusedError:
        pass  # which the tests of that view expect of some models
    except Exception as error:
        error.add_note(f"in the view {name!r}")
        raise


def main() -> int:
    """Try many tables; return how many failed."""
    options = parser(__doc__.split("\n")[0], cases=1000).parse_args()
    campaign = Campaign.of(options, case_seconds=SECONDS, case_memory=MEMORY)
    for library in LIBRARIES:
        if find_spec(library.split(".")[0]) is not None:
            import_module(library)
    return campaign.run(try_case)["failed"]


if __name__ == "__main__":
    sys.exit(min(main(), 1))
