"""Speed of the engine's small matrix product, compared with OpenBLAS.

    python -m benchmarks.speed.gemm [--quick]

C = A B in float32 with the shapes of the DGT step, compared with OpenBLAS through NumPy's `matmul`
(row-major) and SciPy's `sgemm` (column-major, so it gets the transposed problem without copies).
The engine's kernel is repeated inside one call. NumPy and SciPy need a Python call per product; the
time of a call, measured with 8 x 8 matrices, is subtracted, which favors OpenBLAS if anything.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import numpy as np
from scipy.linalg.blas import sgemm

from benchmarks.record import Column, Table, asks_quick
from benchmarks.timing import Call, Timing, interleaved, one_thread
from benchmarks.workloads import aligned
from hardwood import _probes

TILE = 128
REPEATS = 20

COLUMNS = [
    Column("what", "product", width=11, words=True),
    Column("d", "d"),
    Column("h", "h"),
    Column("m", "rows"),
    Column("k", "inner"),
    Column("n", "columns"),
    Column("ours_us", "hardwood, us", ".2f"),
    Column("numpy_us", "NumPy, us", ".2f"),
    Column("scipy_us", "SciPy, us", ".2f"),
    Column("ours_gflops", "GFLOP/s", ".0f"),
    Column("library_gflops", "library", ".0f"),
    Column("ratio", "x better library", ".2f"),
]


def shapes() -> Iterator[tuple[str, int | None, int, int, int, int]]:
    """Yield the name, d, h, and the rows, inner size and columns; d = 100 is stored as 104."""
    for d, h in ((16, 4), (16, 6), (16, 8), (16, 10), (104, 4), (104, 6), (104, 8), (104, 10)):
        yield "scores", d, h, 2**h - 1, d, TILE
        yield "gradient", d, h, 2**h - 1, TILE, d
    for h in (4, 6, 8, 10):
        yield "leaf values", None, h, 2**h, 10, TILE


def random_matrix(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    A = aligned(shape)
    A[:] = rng.standard_normal(shape, dtype=np.float32)
    return A


def calls(m: int, k: int, n: int) -> dict[str, Call]:
    """Return one product per implementation; ours is REPEATS products."""
    rng = np.random.default_rng([m, k, n])
    A, B, C = random_matrix(rng, (m, k)), random_matrix(rng, (k, n)), aligned((m, n))
    expected = A.astype(np.float64) @ B
    made: dict[str, Call] = {
        "ours": lambda: _probes.gemm_into(A, B, C, REPEATS),
        "numpy": lambda: np.matmul(A, B, out=C),
        "scipy": lambda: sgemm(1.0, B.T, A.T, beta=0.0, c=C.T, overwrite_c=True),
    }
    for name, call in made.items():
        C[:] = np.nan if name == "ours" else 0
        call()
        np.testing.assert_allclose(C, expected, rtol=0, atol=1e-4 * np.abs(expected).max())
    return made


def timed(m: int, k: int, n: int, rounds: int) -> dict[str, Timing]:
    makers = {name: (lambda call=call: call) for name, call in calls(m, k, n).items()}
    return interleaved(makers, rounds=rounds, seconds=0.01)


def main() -> int:
    one_thread()
    quick = asks_quick(__doc__, "a few rounds")
    rounds = 3 if quick else 15
    table = Table(
        "gemm",
        "Small matrix products of the DGT step, float32, one thread: microseconds, GFLOP/s, and "
        "how many times faster hardwood's kernel is than the better of OpenBLAS' two callers.",
        COLUMNS,
        {"rounds": rounds, "tile": TILE},
        kept=not quick,
    )
    call_alone = timed(8, 8, 8, rounds)
    for what, d, h, m, k, n in shapes():
        times = timed(m, k, n, rounds)
        ours = times["ours"].best / REPEATS
        libraries = {name: times[name].best - call_alone[name].best for name in ("numpy", "scipy")}
        flops = 2e-9 * m * k * n
        better = min(libraries.values())
        table.add(
            what=what,
            **{"d": d, "h": h, "m": m, "k": k, "n": n},
            ours_us=1e6 * ours,
            **{f"{name}_us": 1e6 * seconds for name, seconds in libraries.items()},
            ours_gflops=flops / ours,
            library_gflops=flops / better,
            ratio=better / ours,
        )
    spent = ", ".join(f"{name} {1e6 * call_alone[name].best:.2f} us" for name in ("numpy", "scipy"))
    table.finish(f"Subtracted for the call from Python: {spent}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
