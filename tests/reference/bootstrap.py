"""Reference of the engine's bootstrap samples, in Python integers.

A forest's member learns from rows drawn with replacement (DGT, Sec. C.3.1). What is drawn is a pure
function of the seed and the member's number, so a forest is the same for any number of threads, and
a later call can ask which rows a member has not seen.

The generator is Philox4x32-10: Salmon, Moraes, Dror, Shaw. *Parallel random numbers: as easy as 1,
2, 3*. SC 2011.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

MULTIPLIERS = 0xD2511F53, 0xCD9E8D57
KEY_STEPS = 0x9E3779B9, 0xBB67AE85  # the golden ratio and the square root of 3, minus one
WORD = 0xFFFFFFFF
BOOTSTRAP_STREAM = WORD  # no epoch of a training run has this number


def philox(counter: tuple[int, ...], key: tuple[int, ...]) -> tuple[int, ...]:
    """Four words of 32 bits from a counter of four and a key of two, in ten rounds."""
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(10):
        p0, p1 = MULTIPLIERS[0] * c0, MULTIPLIERS[1] * c2
        c0, c1, c2, c3 = (p1 >> 32) ^ c1 ^ k0, p1 & WORD, (p0 >> 32) ^ c3 ^ k1, p0 & WORD
        k0, k1 = (k0 + KEY_STEPS[0]) & WORD, (k1 + KEY_STEPS[1]) & WORD
    return c0, c1, c2, c3


def words(seed: int, stream: int) -> Iterator[int]:
    """All words of a stream, block by block."""
    key, n = (seed & WORD, seed >> 32), 0
    while True:
        yield from philox((n & WORD, n >> 32, stream & WORD, stream >> 32), key)
        n += 1


def bootstrap_counts(n_rows: int, n_draws: int, seed: int, member: int) -> np.ndarray:
    """How often each of ``n_rows`` is among ``n_draws`` draws with replacement, shape (n_rows,)."""
    stream = words(seed, member << 32 | BOOTSTRAP_STREAM)
    counts = np.zeros(n_rows, dtype=np.int64)
    for _ in range(n_draws):
        word = next(stream) << 32 | next(stream)
        counts[word * n_rows >> 64] += 1
    return counts


def bootstrap_sample(
    rows: np.ndarray, weight: np.ndarray, fraction: float, seed: int, member: int
) -> tuple[np.ndarray, np.ndarray]:
    """Rows that a member learns from, each once, and their weights.

    Parameters
    ----------
    rows
        Row numbers to draw from.
    weight
        Weights of all rows of the table.
    fraction
        Draws per row, at least one draw in all.
    seed, member
        Which sample.

    Returns
    -------
    drawn, drawn_weight
        The rows drawn, in their order, and weight times number of draws, of mean one unless all
        of them are zero.
    """
    n_draws = max(1, int(np.floor(fraction * len(rows) + 0.5)))
    counts = bootstrap_counts(len(rows), n_draws, seed, member)
    drawn = np.asarray(rows)[counts > 0]
    drawn_weight = np.asarray(weight, dtype=np.float64)[drawn] * counts[counts > 0]
    return drawn, drawn_weight / (drawn_weight.mean() or 1.0)
