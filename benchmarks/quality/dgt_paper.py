"""The data sets and numbers of the DGT paper.

Karthikeyan, Jain, Natarajan, Jain. Learning Accurate Decision Trees with Bandit Feedback via
Quantized Gradient Descent. TMLR 2022. Tables 1, 2, 4, 5 and 7: means and standard deviations over
10 seeds of the test score at the depth in brackets. Of its 20 data sets, those here need neither a
license nor a large download; optdigits is in none of the paper's tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Measure = Literal["accuracy", "auc", "rmse"]
Score = tuple[float, float]
"""Mean and standard deviation; accuracies in percent."""


@dataclass(frozen=True, eq=False)
class Task:
    """A data set, its measure, and the known scores.

    Parameters
    ----------
    name
        Of its file, ``NAME.npz``.
    title
        The paper's spelling.
    measure
        Accuracy in percent, area under the ROC curve, or root mean squared error.
    heights
        Depths of one tree; among several, validation rows choose one.
    tables
        The paper's tables that contain it.
    paper
        Numbers of the paper, by method.
    floors
        Scores that we require, by method: the paper's mean, less one standard deviation.
    forest_height
        Depth of the trees of a forest (Table 4); None: that of one tree.
    unit
        Factor by which targets are multiplied before training and scoring.
    n_draws
        Number of random 64/16/20 splits, seeds 0, 1, ..., if no split is published.
    """

    name: str
    title: str
    measure: Measure
    heights: tuple[int, ...]
    tables: tuple[int, ...]
    paper: Mapping[str, Score] = field(default_factory=dict)
    floors: Mapping[str, float] = field(default_factory=dict)
    forest_height: int | None = None
    unit: float = 1.0
    n_draws: int = 1

    @property
    def has_classes(self) -> bool:
        return self.measure != "rmse"

    def is_better(self, score: float, other: float) -> bool:
        return score < other if self.measure == "rmse" else score > other

    def keeps(self, score: float, floor: float) -> bool:
        """Return whether a score is at least as good as a floor."""
        return not self.is_better(floor, score)


# Methods: ours are dgt, linear (linear leaves), forest and pat, and of Table 7 dgt with one design
# choice changed: product, one_layer and annealed. The others are compared with in the paper.
# TAO, LCN and TEL are quoted, not run: TAO has no published code, LCN and TEL are other models.
TASKS = {
    task.name: task
    for task in (
        Task(
            "pendigits",
            "PenDigits",
            "accuracy",
            (8,),
            (2,),
            {
                "dgt": (96.36, 0.25),
                "tao": (96.08, 0.34),
                "lcn": (93.26, 0.84),
                "tel": (94.67, 1.92),
                "cart": (89.94, 0.34),
            },
            {"dgt": 96.1},
        ),
        Task(
            "satimage",
            "SatImage",
            "accuracy",
            (6,),
            (2,),
            {
                "dgt": (86.64, 0.95),
                "tao": (87.41, 0.33),
                "lcn": (84.22, 1.13),
                "tel": (84.65, 1.18),
                "cart": (84.18, 0.30),
            },
            {"dgt": 85.7},
        ),
        Task(
            "segment",
            "Segment",
            "accuracy",
            (8,),
            (2,),
            {
                "dgt": (95.86, 1.16),
                "tao": (95.01, 0.86),
                "lcn": (92.79, 1.35),
                "tel": (92.10, 2.02),
                "cart": (94.23, 0.86),
            },
            {"dgt": 94.7},
            n_draws=5,  # one split has only 462 test rows
        ),
        Task(
            "letter",
            "Letter",
            "accuracy",
            (10,),
            (2,),
            {
                "dgt": (86.13, 0.72),
                "tao": (87.41, 0.41),
                "lcn": (66.34, 0.88),
                "tel": (60.35, 3.81),
                "cart": (70.13, 0.08),
            },
            {"dgt": 85.4},
        ),
        Task(
            "mnist",
            "Mnist",
            "accuracy",
            (8,),
            (2,),
            {
                "dgt": (94.00, 0.36),
                "tao": (95.05, 0.16),
                "lcn": (88.90, 0.63),
                "tel": (90.93, 1.37),
                "cart": (85.59, 0.06),
            },
            {"dgt": 93.6},
        ),
        Task(
            "connect4",
            "Connect4",
            "accuracy",
            (8,),
            (2,),
            {
                "dgt": (79.52, 0.24),
                "tao": (81.21, 0.25),
                "lcn": (79.71, 1.16),
                "tel": (80.68, 0.44),
                "cart": (74.03, 0.60),
            },
            {"dgt": 79.3},
        ),
        Task(
            "covtype",
            "ForestCover",
            "accuracy",
            (10,),
            (2,),
            {
                "dgt": (79.25, 0.50),
                "tao": (83.27, 0.32),
                "lcn": (67.13, 3.00),
                "tel": (73.47, 0.83),
                "cart": (77.85, 0.00),
            },
            {"dgt": 78.8},
        ),
        Task(
            "hiv",
            "HIV",
            "auc",
            (4, 6),
            (2,),
            {
                "dgt": (0.712, 0.020),
                "tao": (0.627, 0.000),
                "lcn": (0.738, 0.014),
                "cart": (0.562, 0.000),
            },
            {"dgt": 0.69},
        ),
        Task(
            "bace",
            "BACE",
            "auc",
            (4, 6),
            (2,),
            {
                "dgt": (0.767, 0.045),
                "tao": (0.734, 0.000),
                "lcn": (0.791, 0.019),
                "tel": (0.810, 0.028),
                "cart": (0.697, 0.000),
            },
            {"dgt": 0.72},
        ),
        Task("optdigits", "OptDigits", "accuracy", (8,), ()),
        Task(
            "ailerons",
            "Ailerons",
            "rmse",
            (6,),
            (1, 4, 5, 7),
            {
                "dgt": (1.72, 0.016),
                "tao": (1.76, 0.02),
                "lcn": (2.21, 0.068),
                "tel": (2.04, 0.130),
                "pat": (2.53, 0.050),
                "ridge": (1.75, 0.000),
                "cart": (2.01, 0.000),
                "tao_linear": (1.74, 0.01),
                "forest": (1.65, 0.00),
                "xgboost": (1.72, 0.00),
                "adaboost": (1.75, 0.00),
                "product": (2.02, 0.028),
                "one_layer": (1.90, 0.026),
                "annealed": (1.73, 0.021),
            },
            {"dgt": 1.74, "forest": 1.65},
            forest_height=6,
            unit=1e4,  # as the paper and those it quotes do
        ),
        Task(
            "abalone",
            "Abalone",
            "rmse",
            (6,),
            (1, 4, 5, 7),
            {
                "dgt": (2.15, 0.026),
                "tao": (2.18, 0.05),
                "lcn": (2.34, 0.066),
                "tel": (2.38, 0.203),
                "pat": (2.54, 0.113),
                "ridge": (2.23, 0.016),
                "cart": (2.29, 0.034),
                "tao_linear": (2.07, 0.01),
                "forest": (2.08, 0.00),
                "xgboost": (2.20, 0.00),
                "adaboost": (2.15, 0.00),
                "product": (2.40, 0.064),
                "one_layer": (2.21, 0.030),
                "annealed": (2.31, 0.06),
            },
            {"dgt": 2.18, "forest": 2.10},
            forest_height=8,
        ),
        Task(
            "cpu_act",
            "Comp-Activ",
            "rmse",
            (6,),
            (1, 4, 5),
            {
                "dgt": (2.91, 0.149),
                "tao": (2.71, 0.04),
                "lcn": (4.43, 0.498),
                "tel": (5.28, 0.837),
                "pat": (8.36, 1.427),
                "ridge": (10.05, 0.506),
                "cart": (3.35, 0.221),
                "tao_linear": (2.58, 0.02),
                "forest": (2.63, 0.08),
                "xgboost": (2.57, 0.00),
                "adaboost": (2.56, 0.11),
            },
            {"dgt": 3.06, "forest": 2.71},
            forest_height=8,
        ),
    )
}
