"""Many corrupted files of models and bandits: each is refused with `ModelFileError`, or works.

::

    python tests/fuzz/mutated_files.py --cases 1000000 --jobs 8 --failures FOLDER

Without coverage or shrinking, this is faster than `fuzz_model_file.py` and the tests: it is for
numbers. Mutations are those of `mutations.py`, several at a time, mostly under a digest that is
right. A load that raises anything else, takes 20 seconds or adds 64 MB to the peak memory is a
failure; its file is kept.
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent / "bandit")]
import test_learner_file  # noqa: E402  # found by the line above
import test_model_file  # noqa: E402
from campaign import Campaign, parser  # noqa: E402
from mutations import join_file, signed, split_file  # noqa: E402

from hardwood.bandit import file as bandit_file  # noqa: E402
from hardwood.errors import ModelFileError  # noqa: E402
from hardwood.model import loads  # noqa: E402

MODELS = [*test_model_file.CONTENTS.values()]
BANDITS = [*test_learner_file.CONTENTS.values()]
HOSTILE: tuple[Any, ...] = (
    None, True, False, -1, 0, 1, 2, 3, 7, 16, 2**16, 2**31 - 1, 2**31, 2**53, 2**63, 2**64,
    -(2**63),

    10**30, 0.5, -0.0, 1e-300, 1e300, -1e300, 1.7e308, float("nan"), float("inf"), "", "x", "F64",
    "I32", "softmax", "logistic", "exp", "sum", "vote", "tree", "forest", "elu", "\ud800", [], {},
    [0], [[]], [1, 2], {"a": 1}, ["x", "y"],
)  # fmt: skip
WORDS = tuple(
    bytes.fromhex(text)
    for text in (
        "ffffff7f", "ffffffff", "00000000", "01000000", "000000000000f87f", "000000000000f0ff",
        "ffffffffffffef7f", "0000000000000080", "9c7500883ce4377e", "0000c07f", "0000807f",
        "ffff7f7f",
    )
)  # fmt: skip


def cut(content: bytes, rng: random.Random) -> bytes:
    """A piece less, or some bytes more."""
    first = rng.randrange(len(content))
    last = rng.choice([first, len(content), rng.randrange(first, len(content))])
    return content[:first] + rng.randbytes(rng.choice([0, 0, 1, 8])) + content[last:]


def flip(content: bytes, rng: random.Random) -> bytes:
    """Some bits the other way."""
    corrupted = bytearray(content)
    for _ in range(rng.randint(1, 8)):
        corrupted[rng.randrange(len(corrupted))] ^= 1 << rng.randrange(8)
    return bytes(corrupted)


def change_header(content: bytes, rng: random.Random) -> bytes:
    """An entry of the header, or of the JSON inside it, is replaced, copied or removed."""
    header, data = split_file(content)
    document = json.loads(header["__metadata__"]["hardwood"])
    inside = rng.random() < 0.7
    target = document if inside else header
    for _ in range(rng.randint(0, 4)):
        inner = [v for v in values_of(target) if isinstance(v, dict | list) and v]
        if not inner:
            break
        target = rng.choice(inner)
    key = rng.choice(list(target) if isinstance(target, dict) else range(len(target)))
    kind = rng.random()
    if kind < 0.6:
        target[key] = rng.choice(HOSTILE)
    elif kind < 0.75:
        target[key] = rng.choice(values_of(target))
    elif kind < 0.85 and isinstance(target, list):
        target += target[:1] * rng.choice([1, 50])
    else:
        del target[key]
    if inside:
        header["__metadata__"]["hardwood"] = json.dumps(document)
    return join_file(header, data)


def overwrite(content: bytes, rng: random.Random) -> bytes:
    """Some entries of arrays are others."""
    header, data = split_file(content)
    corrupted = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        word = rng.choice(WORDS) if rng.random() < 0.8 else rng.randbytes(rng.choice([1, 4, 8]))
        at = rng.randrange(max(len(corrupted) // 4, 1)) * 4
        corrupted[at : at + len(word)] = word
    return join_file(header, bytes(corrupted[: len(data)]))


def resize(content: bytes, rng: random.Random) -> bytes:
    """An array has rows dropped, doubled or in another order; all places are right."""
    header, data = split_file(content)
    metadata = header.pop("__metadata__")
    arrays = {name: data[slice(*place["data_offsets"])] for name, place in header.items()}
    name = rng.choice(sorted(set(arrays) - {"sha256"}))
    n = min(header[name]["shape"][0], len(arrays[name]))  # another mutation may claim more rows
    size = len(arrays[name]) // n if n else 0
    order = (
        [rng.randrange(n) for _ in range(rng.choice([0, 1, n, n - 1, n + 1, 2 * n]))] if n else []
    )
    arrays[name] = b"".join(arrays[name][i * size : (i + 1) * size] for i in order)
    header[name]["shape"][0] = len(order)
    joined, end = b"", 0
    for other in sorted(header, key=lambda key: header[key]["data_offsets"]):
        header[other]["data_offsets"] = [end, end + len(arrays[other])]
        joined, end = joined + arrays[other], end + len(arrays[other])
    return join_file({"__metadata__": metadata, **header}, joined)


def values_of(target: Any) -> list[Any]:
    return list(target.values()) if isinstance(target, dict) else list(target)


MUTATIONS = (cut, flip, change_header, change_header, overwrite, overwrite, resize)


def mutated(content: bytes, rng: random.Random) -> bytes:
    """The file after one to three mutations."""
    for _ in range(rng.choice([1, 1, 2, 3])):
        try:
            content = rng.choice(MUTATIONS)(content, rng)
        except (ValueError, KeyError, TypeError, IndexError, AttributeError):
            break  # the last one left nothing that this one could change
    return signed(content) if rng.random() < 0.85 and len(content) > 32 else content


def try_one(content: bytes, *, is_bandit: bool) -> str:
    """Load a file and use what it holds; returns the outcome."""
    try:
        found = (bandit_file.loads if is_bandit else loads)(content)
    except ModelFileError:
        return "refused"
    if is_bandit:
        test_learner_file.check_works(found)
    else:
        test_model_file.check_whole(found)
    return "worked"


def main() -> int:
    """Try many files; return how many failed."""
    options = parser(__doc__.split("\n")[0], cases=100_000).parse_args()
    campaign = Campaign.of(options)

    def try_case(case: int) -> str:
        rng = random.Random(case)
        place = rng.randrange(len(MODELS) + len(BANDITS))
        corrupted = mutated([*MODELS, *BANDITS][place], rng)
        try:
            with np.errstate(all="ignore"):
                return try_one(corrupted, is_bandit=place >= len(MODELS))
        except Exception:
            (campaign.folder / f"{case}.hardwood").write_bytes(corrupted)
            raise

    return campaign.run(try_case)["failed"]


if __name__ == "__main__":
    sys.exit(min(main(), 1))
