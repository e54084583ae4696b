"""Coverage-guided fuzzing of the model file's reader, with atheris.

Atheris is no dependency of the tests; give it an environment of its own that also has hardwood::

    python -m venv /tmp/fuzz && /tmp/fuzz/bin/pip install atheris .
    /tmp/fuzz/bin/python tests/fuzz/fuzz_model_file.py --seconds 60 [--corpus FOLDER]

The fuzzer starts from valid files and from whatever is in the corpus folder, where it also keeps
what it finds. It stops at the first input for which ``loads`` or ``from_json`` raises anything but
``ModelFileError``, or accepts a model that does not predict or cannot be saved and loaded again;
that input is written to ``crash-*``. An input that takes 10 seconds or 1 GB counts as such, too.
Inputs come as raw bytes, or as a repaired file (right lengths around a fuzzed header), so that the
fuzzer spends its time behind the first few checks.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

import atheris
import numpy as np

with atheris.instrument_imports(include=["hardwood"]):
    from hardwood.errors import ModelFileError
    from hardwood.model import (
        LatentTreeModel,
        ObliqueForest,
        ObliqueTree,
        PolicyTree,
        TreeEnsemble,
        dumps,
        loads,
    )
    from hardwood.table import Feature, Schema


def seeds() -> list[bytes]:
    """Return valid files to start from, of models of all kinds."""
    mixed = Schema(
        (
            Feature("a", "numeric", center=1.5, scale=2.0, has_missing=True),
            Feature("b", "categorical", levels=("x", 1, 2.5), has_missing=True),
        )
    )
    trees = [
        ObliqueTree.of([[1.0, -1.0]], bias=[0.5], values=np.eye(2), classes=["no", "yes"]),
        ObliqueTree.of(np.zeros((0, 1)), bias=[], values=[3.0], record={"epochs": 3}),
        ObliqueTree.of(
            np.ones((3, mixed.n_columns)),
            bias=[0, 1, 2],
            values=[1, 2, 3, 4],
            schema=mixed,
            counts=np.arange(7),
        ),
    ]
    linear = ObliqueTree(
        np.ones((1, mixed.n_columns)),
        [0.5],
        [[-1, -2]],
        [[1.0], [2.0]],
        schema=mixed,
        task="regression",
        leaf_weights=np.ones((2, 1, mixed.n_columns)),
        link="exp",
    )
    labels = trees[0].replace(task="multilabel", classes=None)
    forests = [
        ObliqueForest([trees[0], trees[0].simplify()], combine="vote", record={"trees": 2}),
        ObliqueForest([trees[2], linear, trees[2]]),
        ObliqueForest([labels]),
        ObliqueForest([trees[2], trees[2]], combine="sum", target_names="price"),
    ]
    soft = TreeEnsemble(
        np.ones((2, 3, mixed.n_columns)),
        np.zeros((2, 3)),
        np.ones((2, 4, 2)),
        gamma=0.5,
        schema=mixed,
        task="classification",
        classes=["no", "yes"],
        counts=np.ones((2, 7)),
    )
    harder = soft.replace(activation="logistic", counts=None, gamma=2)
    policy = PolicyTree(
        [-1, 0, 0, 0],
        np.ones((4, mixed.n_columns)) * [[0], [1], [2], [3]],
        [0, 1, 2, 3],
        np.ones((3, 2)),
        schema=mixed,
        task="classification",
        classes=["no", "yes"],
        counts=[3, 1, 1, 1],
    )
    latent = LatentTreeModel(
        [0, 1, 2, 5],
        [1.0, 1.0, 0.5, 0.25],
        np.ones((2, mixed.n_columns)),
        [0.0, 1.0],
        np.ones(3 * (4 + mixed.n_columns) + 2 * 3),
        np.zeros(3 + 2),
        widths=(3,),
        skip_connection=True,
        activation="elu",
        schema=mixed,
        task="classification",
        classes=["no", "yes"],
    )
    models = [*trees, linear, labels, *forests, soft, harder, soft.harden(), policy, latent]
    return [dumps(model) for model in models] + [model.to_json().encode() for model in models]


def repaired(content: bytes) -> bytes:
    """Use the text up to the last brace as the header, the rest as the arrays."""
    end = content.rfind(b"}") + 1
    text = content[8:end]
    return len(text).to_bytes(8, "little") + text + content[end:]


def check(model: ObliqueTree | ObliqueForest | TreeEnsemble | PolicyTree | LatentTreeModel) -> None:
    """Use an accepted model in every way that should work."""
    row = [[None] * model.n_features]
    with np.errstate(all="ignore"):  # what linear leaves say may be beyond float64
        expected = model.predict(row)
        again = loads(dumps(model))
        np.testing.assert_array_equal(again.predict(row), expected)
    if again != model:
        raise AssertionError("a loaded model is not what is saved again")
    if type(model).from_json(model.to_json()) != model:
        raise AssertionError("a loaded model is not what is written as JSON")
    model.to_text()
    if isinstance(model, ObliqueTree | PolicyTree):
        model.simplify()
    if isinstance(model, PolicyTree) and np.isnan(model.leaf_probabilities(row)).any():
        raise AssertionError("a leaf has no probability")
    if isinstance(model, TreeEnsemble):
        model.harden()
        if not (model.reachable_leaves(row) >= 1).all():
            raise AssertionError("a row reaches no leaf")
    if isinstance(model, LatentTreeModel) and not (model.traversals(row)[:, 0] > 0).all():
        raise AssertionError("a row does not pass the root")


def one_input(content: bytes) -> None:
    """Try one input with all readers."""
    for read, text in (
        (loads, content),
        (loads, repaired(content)),
        (ObliqueTree.from_json, content),
        (ObliqueForest.from_json, content),
        (TreeEnsemble.from_json, content),
        (PolicyTree.from_json, content),
        (LatentTreeModel.from_json, content),
    ):
        try:
            model = read(text)
        except ModelFileError:
            continue
        check(model)


def main() -> None:
    """Run for the given time."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--corpus", type=Path, default=None)
    options = parser.parse_args()
    corpus = options.corpus or Path(tempfile.mkdtemp(prefix="hardwood-corpus-"))
    corpus.mkdir(parents=True, exist_ok=True)
    words = corpus / "seeds"
    words.mkdir(exist_ok=True)
    for i, content in enumerate(seeds()):
        (words / f"seed-{i}").write_bytes(content)
    dictionary = corpus.with_suffix(".dict")
    keys = [
        "__metadata__",
        "hardwood",
        "dtype",
        "shape",
        "data_offsets",
        "F64",
        "I32",
        "features",
        "format",
        "kind",
        "tree",
        "weights",
        "bias",
        "children",
        "values",
        "counts",
        "levels",
        "forest",
        "leaf_weights",
        "link",
        "logistic",
        "softmax",
        "combine",
        "trees",
        "n_splits",
        "multilabel",
        "ensemble",
        "policy_tree",
        "latent_tree",
        "sum",
        "gamma",
        "activation",
        "smooth_step",
    ]
    dictionary.write_text("\n".join(json.dumps(key) for key in keys) + "\n")
    atheris.Setup(
        [
            sys.argv[0],
            f"-max_total_time={options.seconds}",
            f"-dict={dictionary}",
            "-timeout=10",
            "-rss_limit_mb=1024",
            "-max_len=8192",
            str(corpus),
            str(words),
        ],
        one_input,
    )
    atheris.Fuzz()


if __name__ == "__main__":
    main()
