"""What the layers need: torch, and nothing else."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

needs_torch = pytest.mark.skipif(
    find_spec("torch") is None, reason="torch is not installed: pip install '.[torch]'"
)

# An entry of None in sys.modules makes every import of that name fail, as if it were not installed.
WITHOUT = """
import sys
for name in {names!r}:
    sys.modules[name] = None
"""

USE = """
import torch
torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1)  # loads Triton where that is
torchs_own = set(sys.modules)
from hardwood.nn import DenseGradientTree, ReinforcedTree, TreeEnsembleLayer, engine_available

assert engine_available() is {engine}
network = torch.nn.Sequential(
    torch.nn.Linear(3, 5), TreeEnsembleLayer(5, 4, 3, 6), DenseGradientTree(4, 2, 4, layers=[6])
)
network[1].reachable_leaves(torch.randn(8, 5))
optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
network(torch.randn(8, 3)).square().sum().backward()
assert all(p.grad is not None for p in network.parameters())
optimizer.step()
policy = ReinforcedTree(3, 2, max_depth=2)
criterion = torch.nn.CrossEntropyLoss(reduction="none")
policy.loss(torch.randn(8, 3), torch.randint(2, (8,)), criterion).backward()
policy.eval()(torch.randn(8, 3))
loaded = {{m.split(".")[0] for m in set(sys.modules) - torchs_own}}
assert not loaded & {{"numpy", "scipy", "sklearn", "narwhals", "safetensors", "triton"}}, loaded
"""


def run(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=120
    )


OTHERS = ["numpy", "scipy", "sklearn", "narwhals", "safetensors", "joblib"]


@needs_torch
def test_torch_alone_is_enough():
    program = WITHOUT.format(names=[*OTHERS, "hardwood._native"]) + USE.format(engine=False)
    done = run(program)
    assert done.returncode == 0, done.stderr


@needs_torch
@pytest.mark.skipif(find_spec("hardwood._native") is None, reason="the engine is not built")
def test_the_engine_works_without_numpy():
    done = run(WITHOUT.format(names=OTHERS) + USE.format(engine=True))
    assert done.returncode == 0, done.stderr


def test_without_torch_the_error_has_the_install_line():
    done = run(WITHOUT.format(names=["torch"]) + "import hardwood.nn")
    assert done.returncode != 0
    assert "MissingExtraError: hardwood.nn needs the package 'torch'" in done.stderr
    assert "pip install '.[torch]'" in done.stderr


def test_importing_the_package_does_not_import_torch():
    done = run("import sys, hardwood; sys.exit('torch' in sys.modules)")
    assert done.returncode == 0, done.stderr
