"""Train a decision tree together with convolutional features, on handwritten digits.

    python examples/conv_tree_digits.py

The gradient of the tree reaches its input, so the convolutions learn features that a few oblique
splits can separate. The script compares it with the same tree on raw pixels. Needs hardwood[torch].
"""

from __future__ import annotations

import argparse

import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import Tensor, nn

from hardwood.nn import DenseGradientTree

DEPTH = 6


# Both end with features of mean 0 and standard deviation 1, because splits pass gradients only for
# scores of about 1.
def convolutions() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(128, 64), nn.BatchNorm1d(64, affine=False),
    )  # fmt: skip


def raw_pixels() -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.BatchNorm1d(64, affine=False))


def train(features: nn.Module, tree: nn.Module, images: Tensor, labels: Tensor, epochs: int):
    model = nn.Sequential(features, tree).train()
    # The tree has a larger learning rate: if the features settle first, it loses whole classes.
    groups = [{"params": features.parameters(), "lr": 1e-3}, {"params": tree.parameters()}]
    optimizer = torch.optim.RMSprop(groups, lr=3e-2)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
    for _ in range(epochs):
        for rows in torch.randperm(len(images)).split(128):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(images[rows]), labels[rows]).backward()
            optimizer.step()
        schedule.step()
    return model.eval()


def main(arguments: list[str] | None = None) -> dict[str, float]:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)  # batches this small gain nothing from more threads
    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32)[:, None] / 16
    X, X_test, y, y_test = train_test_split(
        images, torch.tensor(digits.target), test_size=0.25, random_state=0, stratify=digits.target
    )
    accuracy = {}
    for make_features in (raw_pixels, convolutions):
        scores = []
        for seed in range(options.seeds):
            torch.manual_seed(seed)
            features, tree = make_features(), DenseGradientTree(64, 10, max_depth=DEPTH)
            model = train(features, tree, X, y, options.epochs)
            scores.append((model(X_test).argmax(dim=1) == y_test).double().mean().item())
        name = make_features.__name__.replace("_", " ")
        accuracy[name] = sum(scores) / len(scores)
        each = ", ".join(f"{score:.3f}" for score in scores)
        print(f"tree of depth {DEPTH} over {name:12}  test accuracy {accuracy[name]:.3f}  ({each})")
    return accuracy


if __name__ == "__main__":
    main()
