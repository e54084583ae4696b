"""The example that clusters penguins runs, and finds their species; so does the guide's code."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

pytest.importorskip("torch")
matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
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


@pytest.mark.slow
def test_the_code_of_the_guide_runs(tmp_path, monkeypatch, capsys):
    page = ROOT / "docs" / "guide" / "clustering.md"
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 5
    monkeypatch.chdir(tmp_path)
    exec(compile("\n".join(blocks), str(page), "exec"), {})
    assert "10,000 pairs" in capsys.readouterr().out
    assert len(list(tmp_path.glob("*.png"))) == 4
    matplotlib.pyplot.close("all")
