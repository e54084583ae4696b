"""Train a tree in which every node is a small convolutional network, on handwritten digits.

    python examples/reinforced_tree_digits.py

The network of a node sees the digits that reach it, and sends each one to a child of the node. A
digit passes one small network per level of the tree. The choice of a child has no derivative, so
the networks learn from the losses of sampled trajectories. Needs hardwood[torch].
"""

import argparse

import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn

from hardwood.nn import ReinforcedTree


def node(n_children: int) -> nn.Module:
    """Return the policy of one node: from images to the scores of its children."""
    return nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, n_children)
    )  # fmt: skip


def main(arguments: list[str] | None = None) -> dict[str, float]:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=40)
    epochs = parser.parse_args(arguments).epochs
    torch.manual_seed(0)
    torch.set_num_threads(1)  # batches this small gain nothing from more threads
    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32)[:, None] / 16
    X, X_test, y, y_test = train_test_split(
        images, torch.tensor(digits.target), test_size=0.25, random_state=0, stratify=digits.target
    )
    tree = ReinforcedTree(None, 10, max_depth=2, n_children=4, policy=node)
    optimizer = torch.optim.Adam(tree.parameters(), lr=1e-2)
    criterion = nn.CrossEntropyLoss(reduction="none")

    for epoch in range(epochs):
        total = 0.0
        for rows in torch.randperm(len(X)).split(128):
            optimizer.zero_grad()
            loss = tree.loss(X[rows], y[rows], criterion, n_trajectories=10, entropy_bonus=0.1)
            loss.backward()
            optimizer.step()
            total += loss.item() * len(rows)
        if (epoch + 1) % 10 == 0:
            print(f"epoch {epoch + 1}: mean loss of sampled trajectories {total / len(X):.3f}")

    tree.eval()
    found = {}
    for path in ("greedy", "most_probable"):
        right = tree.leaves[tree.leaf(X_test, path)].argmax(dim=1) == y_test
        found[path] = right.double().mean().item()
        print(f"{path.replace('_', ' ')} leaf: test accuracy {found[path]:.3f}")
    return found


if __name__ == "__main__":
    main()
