"""The example of a tree over convolutions runs and learns."""

from __future__ import annotations

import importlib.util
from pathlib import Path

EXAMPLES = Path(__file__).parents[2] / "examples"


def load(name: str):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_trees_learn_digits_from_pixels_and_through_convolutions(capsys):
    # Too short to tell which is better; that takes the whole example.
    answers = load("conv_tree_digits").main(["--epochs", "15", "--seeds", "1"])
    assert answers.keys() == {"raw pixels", "convolutions"}
    assert min(answers.values()) > 0.75
    assert capsys.readouterr().out.count("test accuracy") == 2
