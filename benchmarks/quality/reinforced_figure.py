"""Figure 1 (right) of the paper on reinforced trees: a frontier of 32 classes in the plane.

    python -m benchmarks.quality.reinforced_figure [--depth 8] [--quick]

The paper does not say how its points were drawn. Here 32 Gaussian clusters of 60 points each lie at
random in a square (seed 0), and a third of the points are test points. A reinforced tree and
scikit-learn's CART of the same depth are trained on the others. The picture shows the predicted
class at every place, with the test points; the test errors are recorded.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.tree import DecisionTreeClassifier

from benchmarks.record import RESULTS, Column, Table
from benchmarks.timing import one_thread
from hardwood import ReinforcedTreeClassifier

PICTURE = RESULTS.parents[1] / "docs" / "images" / "reinforced_frontier.png"
N_CLASSES, N_POINTS, SPREAD = 32, 60, 0.035
COLUMNS = (
    Column("method", "method", width=12, words=True),
    Column("depth", "depth"),
    Column("leaves", "leaves"),
    Column("error", "test error, %", ".2f"),
    Column("train_error", "on training", ".2f"),
)


def clouds(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return points of 32 classes in a square."""
    rng = np.random.default_rng(seed)
    centers = rng.uniform(size=(N_CLASSES, 2))
    X = np.repeat(centers, N_POINTS, axis=0) + SPREAD * rng.normal(size=(N_CLASSES * N_POINTS, 2))
    return X, np.repeat(np.arange(N_CLASSES), N_POINTS)


def draw(models: dict[str, Any], X: np.ndarray, y: np.ndarray, path: Path) -> None:
    """Draw the predictions of each model, and the points."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    colors = mpl.colors.ListedColormap(
        mpl.colormaps["hsv"](np.random.default_rng(1).permutation(N_CLASSES) / N_CLASSES)
    )
    (low_x, low_y), (high_x, high_y) = X.min(axis=0) - 0.03, X.max(axis=0) + 0.03
    grid_x, grid_y = np.meshgrid(np.linspace(low_x, high_x, 600), np.linspace(low_y, high_y, 600))
    places = np.column_stack([grid_x.ravel(), grid_y.ravel()])
    figure, axes = plt.subplots(1, len(models), figsize=(6 * len(models), 6), layout="constrained")
    for axis, (title, model) in zip(axes, models.items(), strict=True):
        predicted = model.predict(places).reshape(grid_x.shape)
        options = {"cmap": colors, "vmin": 0, "vmax": N_CLASSES - 1}
        axis.pcolormesh(grid_x, grid_y, predicted, alpha=0.45, rasterized=True, **options)
        axis.scatter(*X.T, c=y, s=9, edgecolors="black", linewidths=0.3, **options)
        axis.set(title=title, xticks=[], yticks=[], aspect="equal")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110, bbox_inches="tight", pad_inches=0.1)
    plt.close(figure)


def main() -> int:
    one_thread()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--depth", type=int, default=8)
    parser.add_argument("--quick", action="store_true", help="a smoke run, not recorded")
    arguments = parser.parse_args()
    X, y = clouds()
    X, test_X, y, test_y = train_test_split(X, y, test_size=1 / 3, random_state=0, stratify=y)
    models = {
        "reinforced tree": ReinforcedTreeClassifier(
            max_depth=arguments.depth, max_epochs=2 if arguments.quick else 400, random_state=0
        ),
        "CART": DecisionTreeClassifier(max_depth=arguments.depth, random_state=0),
    }
    table = Table("reinforced_frontier", __doc__.splitlines()[0], COLUMNS, kept=not arguments.quick)
    titles = {}
    for name, model in models.items():
        model.fit(X, y)
        error = 100 * (1 - model.score(test_X, test_y))
        table.add(
            method=name,
            depth=arguments.depth,
            leaves=int(model.get_n_leaves() if name == "CART" else model.tree_.n_leaves),
            error=error,
            train_error=100 * (1 - model.score(X, y)),
        )
        titles[f"{name}, depth {arguments.depth}: test error {error:.1f} %"] = model
    if not arguments.quick:
        draw(titles, test_X, test_y, PICTURE)
    table.finish()
    return 0


if __name__ == "__main__":
    sys.exit(main())
