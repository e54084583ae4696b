"""Matrix products and random numbers of the engine."""

from __future__ import annotations

import numpy as np
import pytest

from hardwood import _probes


@pytest.mark.parametrize("m", [1, 2, 5, 6, 7, 31])
@pytest.mark.parametrize("k", [1, 16, 255, 256, 257, 600])
@pytest.mark.parametrize("n", [1, 8, 15, 16, 40, 63])
def test_gemm_equals_numpy(rng, m, k, n):
    A = rng.normal(size=(m, k)).astype(np.float32)
    B = rng.normal(size=(k, n)).astype(np.float32)
    expected = A.astype(np.float64) @ B.astype(np.float64)
    bound = 1e-6 * (np.abs(A) @ np.abs(B)) + 1e-6
    assert (np.abs(_probes.gemm(A, B) - expected) <= bound).all()


@pytest.mark.parametrize(
    ("counter", "key", "expected"),
    [  # known answers of Random123's kat_vectors, philox4x32 10 rounds
        ([0] * 4, [0] * 2, [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
        ([2**32 - 1] * 4, [2**32 - 1] * 2, [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
        (
            [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344],
            [0xA4093822, 0x299F31D0],
            [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1],
        ),
    ],
)
def test_philox_gives_the_known_answers(counter, key, expected):
    assert _probes.philox(counter, key) == expected
