"""All data of the speed benchmarks, from seeds, created outside the timed parts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hardwood import ObliqueTree

if TYPE_CHECKING:
    from sklearn.tree import DecisionTreeClassifier

_CHUNK = 50_000  # rows drawn at once, so that no temporary is as large as the table


def rows(n: int, d: int, *, seed: int = 0) -> np.ndarray:
    """Draw a table of standard normal numbers, (n, d) float32, aligned for vector instructions."""
    rng = np.random.default_rng([seed, n, d])
    X = aligned((n, d))
    for first in range(0, n, _CHUNK):
        part = X[first : first + _CHUNK]
        rng.standard_normal(part.shape, dtype=np.float32, out=part)
    return X


def noisy_labels(X: np.ndarray, *, n_classes: int = 2, seed: int = 0) -> np.ndarray:
    """Label rows by the quantile of the sum of their features plus noise, (n,) int64.

    Every feature has the same effect, so the best splits are near the middle of a node. The noise
    keeps nodes from becoming pure, so a tree of any depth is full.
    """
    rng = np.random.default_rng([seed, *X.shape])
    score = X.sum(axis=1) / np.sqrt(X.shape[1]) + 0.3 * rng.standard_normal(len(X))
    inner = np.linspace(0, 1, n_classes + 1)[1:-1]
    return np.searchsorted(np.quantile(score, inner), score).astype(np.int64)


def aligned(shape: tuple[int, ...]) -> np.ndarray:
    """Return float32 zeros that start at a cache line."""
    size = int(np.prod(shape))
    memory = np.zeros(size + 16, dtype=np.float32)
    first = (-memory.ctypes.data % 64) // 4
    return memory[first : first + size].reshape(shape)


def perfect_tree(d: int, h: int, *, n_classes: int = 2, seed: int = 0) -> ObliqueTree:
    """Return a perfect tree whose dense random splits send about half of the rows each way."""
    rng = np.random.default_rng([seed, d, h])
    m = 2**h - 1
    values = rng.random((m + 1, n_classes))
    return ObliqueTree.of(
        rng.standard_normal((m, d)),
        thresholds=0.1 * rng.standard_normal(m),
        values=values / values.sum(axis=1, keepdims=True),
        classes=list(range(n_classes)),
    )


def full_cart(X: np.ndarray, h: int, *, seed: int = 0) -> DecisionTreeClassifier:
    """Fit a nearly perfect CART: depth h, and almost every row goes all the way.

    An ordinary tree of depth 12 has many short paths, and would be faster than its depth suggests.
    Therefore leaves have many rows, and none is much smaller than the others.
    """
    from sklearn.tree import DecisionTreeClassifier

    n = min(len(X), max(20_000, 64 * 2**h))
    cart = DecisionTreeClassifier(
        max_depth=h,
        min_samples_leaf=max(1, n // 2**h // 10),
        max_features=0.25,
        random_state=seed,
    )
    return cart.fit(X[:n], noisy_labels(X[:n], seed=seed))


def mean_path(cart: DecisionTreeClassifier, X: np.ndarray) -> float:
    """Return the mean number of splits on the path of a row."""
    return float(cart.decision_path(X).sum() / len(X) - 1)


def onnx_session(model: Any, d: int) -> Any:
    """Return an onnxruntime session of a scikit-learn model, one thread, without zipmap."""
    import onnxruntime
    from skl2onnx import to_onnx

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    graph = to_onnx(model, np.zeros((1, d), dtype=np.float32), options={"zipmap": False})
    return onnxruntime.InferenceSession(
        graph.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )


def boosted_trees(X: np.ndarray, *, n_trees: int = 100, seed: int = 0) -> Any:
    """Return a LightGBM model with this many trees and its default 31 leaves."""
    import lightgbm

    X = X[:20_000]
    options = {"objective": "binary", "num_threads": 1, "verbose": -1, "seed": seed}
    data = lightgbm.Dataset(X, noisy_labels(X, seed=seed))
    return lightgbm.train(options, data, num_boost_round=n_trees)


class Batch(NamedTuple):
    """A batch and a DGT tree, as a training step needs them."""

    X: np.ndarray  # (n, d)
    target: np.ndarray  # (n, 1): a number, or a class
    W: np.ndarray  # (m, d)
    b: np.ndarray  # (m,)
    theta: np.ndarray  # (2^h, k)


def dgt_batch(n: int, d: int, h: int, k: int, *, seed: int = 0) -> Batch:
    """Draw a batch and a tree whose scores are exact in float32.

    X and W are multiples of small powers of two. All implementations then compute the same scores,
    also at 0 and at +-1, and gradients can be compared: rounding sends no row to another leaf.
    """
    rng = np.random.default_rng([seed, n, d, h, k])
    m = 2**h - 1

    def multiples(shape: tuple[int, ...], unit: float, spread: float) -> np.ndarray:
        numbers = np.clip(rng.standard_normal(shape), -3, 3) * spread
        return (np.round(numbers / unit) * unit).astype(np.float32)

    target = rng.random((n, 1)) if k == 1 else rng.integers(0, k, (n, 1))
    return Batch(
        multiples((n, d), 2**-5, 1.0),
        target.astype(np.float32),
        multiples((m, d), 2**-9, d**-0.5),
        multiples((m,), 2**-9, d**-0.5),
        (0.5 * rng.standard_normal((m + 1, k))).astype(np.float32),
    )
