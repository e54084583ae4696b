"""Table 4 of the TEL paper: dense layers or trees at the end of a CNN, on MNIST and Fashion-MNIST.

    python -m benchmarks.quality.tel_cnn --data FOLDER [--draws 16] [--choosing-epochs 8]
        [--seeds 5] [--epochs 20] [--workers 6] [--out FOLDER] [--quick]

FOLDER holds ``mnist.npz`` and ``fashion_mnist.npz`` with the official split. Networks are those of
Appendix D.1: two convolutions of 3 x 3 with f and 2f filters, maximum over 2 x 2, dropout, batch
normalisation, then dense layers (CNN-Dense) or one dense layer and a `TreeEnsembleLayer` (CNN-TEL),
and a softmax. For each of both, so many settings are drawn at random from the same space (the
paper's, with passes fixed and learning rates from 1e-2 to 1e-4) and compared by accuracy on 10,000
training rows that are kept apart; the best is learned from all training rows, with so many seeds,
and judged on the test rows. Needs torch and NumPy alone, and uses a GPU where there is one.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hardwood.nn import TreeEnsembleLayer

NAMES = ("mnist", "fashion_mnist")
KINDS = ("dense", "tel")
N_KEPT_APART = 10_000
N_CLASSES = 10
# [TEL20] Table 4: accuracy, loss, parameters.
PAPER = {
    ("mnist", "dense"): {"accuracy": 0.9926, "loss": 0.03620, "parameters": 5_830_538},
    ("mnist", "tel"): {"accuracy": 0.9930, "loss": 0.03379, "parameters": 699_585},
    ("fashion_mnist", "dense"): {"accuracy": 0.9299, "loss": 0.6930, "parameters": 5_567_882},
    ("fashion_mnist", "tel"): {"accuracy": 0.9297, "loss": 0.3247, "parameters": 699_585},
}
Setting = dict[str, Any]


class Parts(NamedTuple):
    """Images (n, 1, 28, 28) in [0, 1] and classes, on the device."""

    X: Tensor
    y: Tensor
    test_X: Tensor
    test_y: Tensor


def parts(folder: Path, name: str, device: str, max_rows: int | None) -> Parts:
    with np.load(folder / f"{name}.npz") as arrays:
        X, y, split = arrays["X"], arrays["y"], arrays["split"]
    rows = [np.flatnonzero(split != 2)[:max_rows], np.flatnonzero(split == 2)[:max_rows]]
    images, classes = (
        [torch.from_numpy(array[of].astype(kind)).to(device) for of in rows]
        for array, kind in ((X, np.float32), (y, np.int64))
    )
    images = [image.div(255).reshape(-1, 1, 28, 28) for image in images]
    return Parts(images[0], classes[0], images[1], classes[1])


def drawn(kind: str, random: np.random.Generator) -> Setting:
    """Draw a setting from the space of Appendix D.1."""
    setting = {
        "learning_rate": float(random.choice([1e-2, 1e-3, 1e-4])),
        "batch_size": int(random.choice([64, 128, 256, 512])),
        "filters": int(random.choice([4, 8, 16, 32])),
        "dropout": float(random.uniform(0.1, 0.5)),
    }
    if kind == "dense":
        n_layers = int(random.integers(1, 6))
        units = [int(random.choice([16, 32, 64, 128, 256, 512])) for _ in range(n_layers)]
        return setting | {"units": units}
    return setting | {
        "units": [int(random.choice([16, 32, 64]))],
        "depth": int(random.integers(2, 7)),
        "n_trees": int(random.integers(1, 51)),
        "gamma": float(10 ** random.uniform(-4, 0)),
    }


def network(kind: str, setting: Setting) -> nn.Sequential:
    f = setting["filters"]
    width = 2 * f * 12 * 12  # 28 - 2 - 2 = 24 on a side, halved
    layers: list[nn.Module] = [
        nn.Conv2d(1, f, 3),
        nn.ReLU(),
        nn.Conv2d(f, 2 * f, 3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Dropout(setting["dropout"]),
        nn.BatchNorm1d(width),
    ]
    for units in setting["units"]:
        layers += [nn.Linear(width, units), nn.ReLU()]
        width = units
    if kind == "dense":
        return nn.Sequential(*layers, nn.Linear(width, N_CLASSES))
    trees = {key: setting[key] for key in ("n_trees", "depth", "gamma")}
    return nn.Sequential(*layers, TreeEnsembleLayer(width, N_CLASSES, **trees))


def batches(n: int, size: int, generator: torch.Generator, device: str) -> Iterator[Tensor]:
    order = torch.randperm(n, generator=generator).to(device)
    yield from order[: n - n % size].split(size)


def learned(kind: str, setting: Setting, X: Tensor, y: Tensor, epochs: int, seed: int) -> nn.Module:
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    device = str(X.device)
    model = network(kind, setting).to(device)
    optimiser = torch.optim.Adam(model.parameters(), lr=setting["learning_rate"])
    for _ in range(epochs):
        for rows in batches(len(X), setting["batch_size"], generator, device):
            optimiser.zero_grad(set_to_none=True)
            F.cross_entropy(model(X[rows]), y[rows]).backward()
            optimiser.step()
    return model.eval()


@torch.no_grad()
def judged(model: nn.Module, X: Tensor, y: Tensor) -> dict[str, float]:
    scores = torch.cat([model(part) for part in X.split(2000)])
    return {
        "accuracy": float((scores.argmax(1) == y).float().mean()),
        "loss": float(F.cross_entropy(scores, y)),
    }


def n_parameters(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


class Task(NamedTuple):
    """One network to learn, and what to judge it by."""

    folder: Path
    name: str
    kind: str
    setting: Setting
    epochs: int
    seed: int
    is_final: bool
    max_rows: int | None


def result(task: Task) -> dict[str, Any]:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.backends.cudnn.benchmark = True
    data = parts(task.folder, task.name, device, task.max_rows)
    n_learned = len(data.X) if task.is_final else len(data.X) - min(N_KEPT_APART, len(data.X) // 4)
    start = time.perf_counter()
    model = learned(
        task.kind, task.setting, data.X[:n_learned], data.y[:n_learned], task.epochs, task.seed
    )
    seconds = time.perf_counter() - start
    test = (data.test_X, data.test_y) if task.is_final else (data.X[n_learned:], data.y[n_learned:])
    return {
        "name": task.name,
        "kind": task.kind,
        "setting": task.setting,
        "seed": task.seed,
        "parameters": n_parameters(model),
        "seconds": seconds,
        **judged(model, *test),
    }


def all_results(tasks: list[Task], n_workers: int) -> list[dict[str, Any]]:
    """Learn side by side: networks this small leave a GPU waiting for its next kernel."""
    if n_workers == 1:
        return [result(task) for task in tasks]
    with multiprocessing.get_context("spawn").Pool(n_workers) as pool:
        return pool.map(result, tasks, chunksize=1)


def best(found: list[dict[str, Any]], name: str, kind: str) -> Setting:
    of_both = [row for row in found if (row["name"], row["kind"]) == (name, kind)]
    return max(of_both, key=lambda row: row["accuracy"])["setting"]


def report(found: list[dict[str, Any]]) -> None:
    print(
        "| data | network | accuracy | loss | parameters | s | paper: accuracy, loss, parameters |"
    )
    print("|---|---|---|---|---|---|---|")
    for (name, kind), paper in PAPER.items():
        rows = [row for row in found if (row["name"], row["kind"]) == (name, kind)]
        if not rows:
            continue
        cells = [
            f"{np.mean(values):.4f} ± {np.std(values, ddof=1) if len(rows) > 1 else 0:.4f}"
            for values in ([row[key] for row in rows] for key in ("accuracy", "loss"))
        ]
        seconds = np.mean([row["seconds"] for row in rows])
        words = ", ".join(str(value) for value in paper.values())
        print(
            f"| {name} | CNN-{kind} | {cells[0]} | {cells[1]} | {rows[0]['parameters']:,} | "
            f"{seconds:.0f} | {words} |",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--draws", type=int, default=16)
    parser.add_argument("--choosing-epochs", type=int, default=8)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--workers", type=int, default=6, help="networks learned side by side")
    parser.add_argument("--out", type=Path, default=Path(__file__).parents[1] / "results")
    parser.add_argument("--quick", action="store_true", help="few rows and draws, not recorded")
    options = parser.parse_args()
    if options.quick:
        options.draws, options.seeds, options.workers = 2, 1, 1
        options.choosing_epochs = options.epochs = 1
    max_rows = 1000 if options.quick else None
    random = np.random.default_rng(0)
    settings = {
        (name, kind): [drawn(kind, random) for _ in range(options.draws)]
        for name in NAMES
        for kind in KINDS
    }
    common = (options.choosing_epochs, 0, False, max_rows)
    choosing = all_results(
        [Task(options.data, *key, one, *common) for key, of in settings.items() for one in of],
        options.workers,
    )
    finals = [
        Task(options.data, *key, best(choosing, *key), options.epochs, seed, True, max_rows)
        for key in settings
        for seed in range(1, options.seeds + 1)
    ]
    found = []
    for round_of_seeds in range(options.seeds):  # recorded as they come
        found += all_results(finals[round_of_seeds :: options.seeds], options.workers)
        _write(options, found, choosing)
    report(found)


def _write(options: Any, found: list[dict[str, Any]], choosing: list[dict[str, Any]]) -> None:
    if options.quick:
        return
    about = {key: getattr(options, key) for key in ("draws", "choosing_epochs", "epochs")}
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU"
    document = {
        **about,
        "torch": torch.__version__,
        "device": device,
        "runs": found,
        "choosing": choosing,
    }
    path = options.out / "tel_cnn.json"
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
