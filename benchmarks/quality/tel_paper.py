"""The TEL paper's data sets, search spaces and numbers.

[TEL20] Tables 2 and 3, Appendix D.1. AUCs are test AUCs, averaged over 15 random 70/30 splits (5
starts in Table 2) after 50 rounds of tuning.
"""

from __future__ import annotations

from typing import NamedTuple


class PaperRow(NamedTuple):
    """AUCs of Table 3, by method."""

    tel: float
    xgboost: float
    logistic: float
    cart: float


TABLE_3 = {
    "ann-thyroid": PaperRow(0.996, 1.0, 0.92, 0.997),
    "breast-cancer-wisconsin": PaperRow(0.995, 0.992, 0.991, 0.929),
    "car-evaluation": PaperRow(1.0, 1.0, 0.985, 0.981),
    "churn": PaperRow(0.916, 0.92, 0.814, 0.885),
    "crx": PaperRow(0.911, 0.933, 0.916, 0.905),
    "dermatology": PaperRow(0.998, 0.998, 0.998, 0.962),
    "diabetes": PaperRow(0.831, 0.82, 0.824, 0.774),
    "dna": PaperRow(0.993, 0.994, 0.991, 0.964),
    "ecoli": PaperRow(0.97, 0.962, 0.972, 0.902),
    "flare": PaperRow(0.732, 0.738, 0.736, 0.717),
    "heart-c": PaperRow(0.903, 0.893, 0.908, 0.829),
    "hypothyroid": PaperRow(0.971, 0.987, 0.93, 0.926),
    "nursery": PaperRow(1.0, 1.0, 0.916, 0.996),
    "optdigits": PaperRow(1.0, 1.0, 0.998, 0.958),
    "pima": PaperRow(0.831, 0.825, 0.832, 0.758),
    "satimage": PaperRow(0.99, 0.99, 0.955, 0.949),
    "sleep": PaperRow(0.925, 0.927, 0.889, 0.876),
    "solar-flare_2": PaperRow(0.925, 0.924, 0.92, 0.907),
    "spambase": PaperRow(0.986, 0.989, 0.972, 0.926),
    "texture": PaperRow(1.0, 1.0, 1.0, 0.974),
    "twonorm": PaperRow(0.998, 0.997, 0.998, 0.865),
    "vehicle": PaperRow(0.953, 0.931, 0.941, 0.871),
    "yeast": PaperRow(0.861, 0.859, 0.852, 0.779),
}
