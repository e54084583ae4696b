"""Train an ensemble of soft trees together with convolutions, on handwritten digits.

    python examples/conv_tree_ensemble_digits.py

The trees replace the dense layers of such a network, as in Section 4.3 of the TEL paper. During
training, each digit reaches fewer and fewer of their leaves. Needs hardwood[torch].
"""

import argparse

import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn

from hardwood.nn import TreeEnsembleLayer


def convolutions() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(),
        nn.MaxPool2d(2), nn.Flatten(), nn.Dropout(0.2), nn.Linear(512, 32), nn.ReLU(),
    )  # fmt: skip


def main(arguments: list[str] | None = None) -> tuple[float, float]:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=15)
    epochs = parser.parse_args(arguments).epochs
    torch.manual_seed(0)
    torch.set_num_threads(1)  # batches this small gain nothing from more threads
    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32)[:, None] / 16
    X, X_test, y, y_test = train_test_split(
        images, torch.tensor(digits.target), test_size=0.25, random_state=0, stratify=digits.target
    )
    features, trees = (
        convolutions(),
        TreeEnsembleLayer(32, 10, n_estimators=10, max_depth=5, gamma=0.5),
    )
    model = nn.Sequential(features, trees)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

    def test() -> tuple[float, float]:
        model.eval()
        right = (model(X_test).argmax(dim=1) == y_test).double().mean().item()
        return right, trees.reachable_leaves(features(X_test)).double().mean().item()

    for epoch in range(epochs):
        if epoch % 5 == 0:
            print("epoch {}: accuracy {:.3f}, {:.1f} of 32 leaves reached".format(epoch, *test()))
        model.train()
        for rows in torch.randperm(len(X)).split(128):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(X[rows]), y[rows]).backward()
            optimizer.step()
    found = test()
    print("epoch {}: accuracy {:.3f}, {:.1f} of 32 leaves reached".format(epochs, *found))
    return found


if __name__ == "__main__":
    main()
