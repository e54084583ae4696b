"""Table 4 of the TEL paper: dense layers or trees at the end of a CNN, on MNIST and Fashion-MNIST.

    python -m benchmarks.quality.tel_cnn --data FOLDER [--networks printed] [--names mnist]
        [--draws 96] [--seeds 5] [--by loss] [--workers 6] [--out FOLDER] [--quick]

FOLDER holds ``mnist.npz`` and ``fashion_mnist.npz`` with the official split. Networks are those of
Appendix D.1: two convolutions of 3 x 3 with f and 2f filters, maximum over 2 x 2, dropout, batch
normalization, then dense layers (CNN-Dense) or one dense layer and a `TreeEnsembleLayer` (CNN-TEL),
and a softmax.

For each of both, ``--draws`` settings are drawn at random from the paper's space, without batches
of 32, learning rates of 0.1 and 1e-5, and more than 20 epochs. They are compared by the best
accuracy after any epoch on 10,000 held-out training rows: all of them with 3 epochs, the best
quarter with 10, the best sixteenth with 20. The best setting, with its number of epochs, is trained
on all training rows with ``--seeds`` seeds and scored on the test rows. Every finished network is
recorded in ``tel_cnn.jsonl`` at once and is not trained again. With ``--by loss``, loss replaces
accuracy everywhere, and the results are in ``tel_cnn_by_loss.jsonl``. The script needs only torch
and NumPy, and uses a GPU if there is one.

With ``--networks printed``, the sizes of all layers are those of the paper's table: its numbers of
parameters, as Keras counts them, belong to one network each in the space of Appendix D.1
(`PRINTED`), and the script checks that ours have as many. Starts, batch normalization and Adam then
have the defaults of Keras, and the splits the start and the missing biases of the authors' layer.
Only the learning rate (0.001 or 0.0001), the batch (64 to 512), the dropout, gamma (0.03 to 1) and
the number of epochs are chosen: 40 settings with 5 epochs, the best 10 with 25, the best 3 with
100. On a GPU, convolutions and products of matrices are in TF32. Results are in
``tel_cnn_printed.jsonl``.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks.provenance import provenance
from benchmarks.record import RESULTS, Record, append, file_of, read
from hardwood.nn import TreeEnsembleLayer

NAMES = ("mnist", "fashion_mnist")
KINDS = ("dense", "tel")
N_HELD_OUT = 10_000
N_CLASSES = 10
N_WARM_UP = 3  # steps before a step is recorded as a CUDA graph
RUNGS = ((1, 3), (4, 10), (16, 20))  # one of n draws continues, for this many epochs
PRINTED_RUNGS = ((1, 5), (4, 25), (12, 100))
# [TEL20] Table 4: accuracy, loss, parameters.
PAPER = {
    ("mnist", "dense"): {"accuracy": 0.9926, "loss": 0.03620, "parameters": 5_830_538},
    ("mnist", "tel"): {"accuracy": 0.9930, "loss": 0.03379, "parameters": 699_585},
    ("fashion_mnist", "dense"): {"accuracy": 0.9299, "loss": 0.6930, "parameters": 5_567_882},
    ("fashion_mnist", "tel"): {"accuracy": 0.9297, "loss": 0.3247, "parameters": 699_585},
}
# The one network of Appendix D.1 with each number of parameters.
PRINTED: dict[tuple[str, str], dict[str, Any]] = {
    ("mnist", "dense"): {"units": [512] * 5},
    ("fashion_mnist", "dense"): {"units": [512] * 4},
    **dict.fromkeys(((name, "tel") for name in NAMES), {"units": [64], "depth": 4, "n_trees": 48}),
}
Setting = dict[str, Any]
Entry = dict[str, Any]


class Parts(NamedTuple):
    """Images (n, 1, 28, 28) in [0, 1] and classes, on the device."""

    X: Tensor
    y: Tensor
    test_X: Tensor
    test_y: Tensor


@cache
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


def drawn(name: str, kind: str, draw: int) -> Setting:
    """Draw a setting from the space of Appendix D.1; it does not depend on the number of draws."""
    random = np.random.default_rng((NAMES.index(name), KINDS.index(kind), draw))
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


def drawn_printed(name: str, kind: str, draw: int) -> Setting:
    """Draw what is not known of the network of Table 4."""
    random = np.random.default_rng((NAMES.index(name), KINDS.index(kind), draw))
    setting = {
        "learning_rate": float(random.choice([1e-3, 1e-4])),
        "batch_size": int(random.choice([64, 128, 256, 512])),
        "filters": 32,
        "dropout": float(random.uniform(0.1, 0.5)),
        **PRINTED[name, kind],
        "printed": True,
    }
    if kind == "tel":
        setting["gamma"] = float(10 ** random.uniform(-1.5, 0))
    return setting


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
    trees = {
        "n_estimators": setting["n_trees"],
        "max_depth": setting["depth"],
        "gamma": setting["gamma"],
        "bias": not setting.get("printed", False),
    }
    return nn.Sequential(*layers, TreeEnsembleLayer(width, N_CLASSES, **trees))


@torch.no_grad()
def as_in_keras(model: nn.Sequential) -> None:
    """Give a network the start and the batch normalization of Keras and of the authors' layer."""
    for module in model.modules():
        if isinstance(module, nn.Conv2d | nn.Linear):
            nn.init.xavier_uniform_(module.weight)
            nn.init.zeros_(cast("Tensor", module.bias))
        elif isinstance(module, nn.BatchNorm1d):
            module.eps, module.momentum = 1e-3, 0.01
        elif isinstance(module, TreeEnsembleLayer):
            nn.init.uniform_(module.weight, -0.01, 0.01)


def printed_network(name: str, kind: str, setting: Setting) -> nn.Sequential:
    model = network(kind, setting)
    as_in_keras(model)
    found, printed = keras_count(model), PAPER[name, kind]["parameters"]
    if found != printed:
        raise ValueError(
            f"{name}, CNN-{kind}: {found:,} parameters, but the paper has {printed:,}. "
            "Use the sizes in PRINTED."
        )
    return model


def batches(n: int, size: int, generator: torch.Generator, device: str) -> Iterator[Tensor]:
    order = torch.randperm(n, generator=generator).to(device)
    yield from order[: n - n % size].split(size)


def step_of(model: nn.Module, X: Tensor, y: Tensor, setting: Setting) -> Callable[[Tensor], None]:
    """Return a function that trains on one batch, given its rows."""
    on_gpu = X.is_cuda
    optimizer = torch.optim.Adam(
        model.parameters(),
        lr=setting["learning_rate"],
        eps=1e-7 if setting.get("printed", False) else 1e-8,  # Keras: 1e-7
        fused=on_gpu,
        capturable=on_gpu,
    )

    def step(rows: Tensor) -> None:
        optimizer.zero_grad(set_to_none=True)
        F.cross_entropy(model(X[rows]), y[rows]).backward()
        optimizer.step()

    return replayed(step, setting["batch_size"]) if on_gpu else step


def replayed(step: Callable[[Tensor], None], batch_size: int) -> Callable[[Tensor], None]:
    """Record a step as a CUDA graph: in networks this small the GPU waits for Python."""
    rows = torch.zeros(batch_size, dtype=torch.int64, device="cuda")
    graph = torch.cuda.CUDAGraph()
    n_steps = 0

    def learn_from(batch: Tensor) -> None:
        nonlocal n_steps
        if n_steps < N_WARM_UP:
            stream = torch.cuda.Stream()
            stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(stream):
                step(batch)
            torch.cuda.current_stream().wait_stream(stream)
        else:
            rows.copy_(batch)
            if n_steps == N_WARM_UP:
                with torch.cuda.graph(graph):  # is written down, not done
                    step(rows)
            graph.replay()
        n_steps += 1

    return learn_from


@torch.no_grad()
def scored(model: nn.Module, X: Tensor, y: Tensor) -> dict[str, float]:
    model.eval()
    scores = torch.cat([model(part) for part in X.split(2000)])
    model.train()
    return {
        "accuracy": float((scores.argmax(1) == y).float().mean()),
        "loss": float(F.cross_entropy(scores, y)),
    }


def n_parameters(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


def keras_count(model: nn.Module) -> int:
    """Count as Keras does: with the running means and variances, and with gamma as a variable."""
    buffers = [b.numel() for b in model.buffers() if b.is_floating_point()]
    n_layers = sum(isinstance(module, TreeEnsembleLayer) for module in model.modules())
    return n_parameters(model) + sum(buffers) + n_layers


class Task(NamedTuple):
    """One network to train, scored on held-out rows or, at the end, on the test rows."""

    folder: Path
    name: str
    kind: str
    setting: Setting
    n_passes: int
    number: int  # of the draw, or of the seed
    is_final: bool
    max_rows: int | None
    by: str  # what is compared

    @property
    def key(self) -> tuple[Any, ...]:
        return self.name, self.kind, self.number, self.n_passes


def made_network(task: Task) -> nn.Sequential:
    if task.setting.get("printed", False):
        return printed_network(task.name, task.kind, task.setting)
    return network(task.kind, task.setting)


def result(task: Task) -> tuple[Task, Entry]:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.backends.cudnn.benchmark = True
    # Convolutions are in TF32 by default.
    torch.backends.cuda.matmul.allow_tf32 = task.setting.get("printed", False)
    data = parts(task.folder, task.name, device, task.max_rows)
    n = len(data.X) if task.is_final else len(data.X) - min(N_HELD_OUT, len(data.X) // 4)
    seed = task.number if task.is_final else 0
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    model = made_network(task).to(device)
    step = step_of(model, data.X[:n], data.y[:n], task.setting)
    test = (data.test_X, data.test_y) if task.is_final else (data.X[n:], data.y[n:])
    start = time.perf_counter()
    after = []  # of validation rows after each epoch; of test rows after the last
    for number in range(1, task.n_passes + 1):
        for rows in batches(n, task.setting["batch_size"], generator, device):
            step(rows)
        if not task.is_final or number == task.n_passes:
            after.append({"passes": number, **scored(model, *test)})
    about = {"name": task.name, "kind": task.kind, "setting": task.setting}
    about |= {"seed" if task.is_final else "draw": task.number}
    about |= {"parameters": n_parameters(model), "seconds": time.perf_counter() - start}
    best = min(after, key=lambda row: worse_by(task.by, row))
    return task, about | {"of_passes": task.n_passes} | best


def worse_by(what: str, entry: Entry) -> float:
    return entry["loss"] if what == "loss" else -entry["accuracy"]


class Networks:
    """The trained networks, in the file where they are recorded."""

    def __init__(self, path: Path | None, settings: Setting) -> None:
        self.path = path
        self.settings = settings
        self.entries = [] if path is None else [record.result for record in read(path)]

    def entry(self, task: Task) -> Entry | None:
        phase, number = ("run", "seed") if task.is_final else ("choice", "draw")
        entries = (entry for entry in self.entries if entry["phase"] == phase)
        keys = ("name", "kind", number, "of_passes")
        return next((e for e in entries if tuple(e[key] for key in keys) == task.key), None)

    def add(self, task: Task, entry: Entry) -> None:
        found = {"phase": "run" if task.is_final else "choice", **entry}
        self.entries.append(found)
        if self.path is not None:
            device = torch.cuda.get_device_name() if torch.cuda.is_available() else None
            append(self.path, Record(found, provenance(settings=self.settings, device=device)))


def made(tasks: list[Task], record: Networks, pool: Any) -> list[Entry]:
    """Return the results of the tasks; train those that are not recorded yet, in parallel."""
    missing = [task for task in tasks if record.entry(task) is None]
    # The longest first, so that no worker starts a long one last.
    missing.sort(key=lambda task: task.setting["batch_size"])
    answers = map(result, missing) if pool is None else pool.imap_unordered(result, missing)
    for task, entry in answers:
        record.add(task, entry)
    return [entry for task in tasks if (entry := record.entry(task)) is not None]


def chosen(options: Any, record: Networks, pool: Any, names: list[str]) -> dict[Any, Entry]:
    """Return the best draw of each data set and kind of network."""
    keys = [(name, kind) for name in names for kind in KINDS]
    going_on = {key: list(range(options.draws)) for key in keys}
    how = (options.max_rows, options.by)
    draw_one = drawn_printed if options.networks == "printed" else drawn
    for share, n_passes in options.rungs:
        n_going_on = max(options.draws // share, 1)
        tasks = [
            Task(options.data, *key, draw_one(*key, draw), n_passes, draw, False, *how)
            for key, draws in going_on.items()
            for draw in draws[:n_going_on]
        ]
        found = made(tasks, record, pool)
        found.sort(key=lambda entry: worse_by(options.by, entry))
        going_on = {
            key: [e["draw"] for e in found if (e["name"], e["kind"]) == key] for key in keys
        }
        print(f"{len(found)} networks over {n_passes} passes", flush=True)
    return {key: next(e for e in found if (e["name"], e["kind"]) == key) for key in keys}


def report(found: list[Entry]) -> None:
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


def parsed_options() -> Any:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--names", nargs="+", choices=NAMES, default=list(NAMES))
    parser.add_argument("--networks", choices=("drawn", "printed"), default="drawn")
    parser.add_argument("--draws", type=int, help="default: 96, of printed networks 40")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--by", choices=("accuracy", "loss"), default="accuracy")
    parser.add_argument("--workers", type=int, default=6, help="networks learned side by side")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--quick", action="store_true", help="few rows and draws, not recorded")
    options = parser.parse_args()
    printed = options.networks == "printed"
    options.draws = options.draws or (40 if printed else 96)
    options.rungs, options.max_rows = PRINTED_RUNGS if printed else RUNGS, None
    if options.quick:
        options.draws, options.seeds, options.workers = 2, 1, 1
        options.rungs, options.max_rows = ((1, 1),), 2000
    return options


def main() -> None:
    options = parsed_options()
    settings = {"draws": options.draws, "rungs": options.rungs}
    parts_of_name = ["tel_cnn"]
    if options.networks == "printed":
        parts_of_name.append("printed")
    if options.by != "accuracy":
        parts_of_name.append(f"by_{options.by}")
    name = "_".join(parts_of_name)
    record = Networks(None if options.quick else file_of(name, options.out), settings)
    spawn = multiprocessing.get_context("spawn")
    pool = spawn.Pool(options.workers) if options.workers > 1 else None
    how = (options.max_rows, options.by)
    finals = [
        Task(options.data, *key, best["setting"], best["passes"], seed, True, *how)
        for key, best in chosen(options, record, pool, options.names).items()
        for seed in range(1, options.seeds + 1)
    ]
    report(made(finals, record, pool))
    if pool is not None:
        pool.terminate()


if __name__ == "__main__":
    sys.exit(main())
