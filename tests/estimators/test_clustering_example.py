"""The example that clusters penguins, and the guide's page, run from first line to last."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

pytest.importorskip("torch")
matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "guide" / "clustering.md"


def test_penguins_fall_into_their_species(tmp_path, capsys):
    spec = importlib.util.spec_from_file_location(
        "cluster_penguins", ROOT / "examples" / "cluster_penguins.py"
    )
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    purity = example.main(["--figure", str(tmp_path / "clusters.png")])
    assert purity > 0.85
    assert (tmp_path / "clusters.png").stat().st_size > 10_000
    assert "Three clusters" in capsys.readouterr().out
    matplotlib.pyplot.close("all")


def test_the_code_of_the_page_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) >= 5
    exec(compile("\n".join(blocks), str(PAGE), "exec"), {})
    assert "pairs)" in capsys.readouterr().out
    assert (tmp_path / "classes.png").exists()
    matplotlib.pyplot.close("all")
