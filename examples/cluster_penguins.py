"""Cluster penguins without their species, show the hierarchy, and compare it with the species.

    python examples/cluster_penguins.py [--figure clusters.png]

A latent tree regresses bill depth and body mass on the other measurements, the island and the sex.
Its splits are the hierarchy of clusters. It is printed, drawn as a dendrogram by SciPy, and
compared with the species, which training never sees. Needs hardwood[torch,plot] and pandas.
"""

from __future__ import annotations

import argparse
from importlib.resources import files

import pandas as pd
from scipy.cluster.hierarchy import dendrogram

from hardwood import LatentTreeClustering
from hardwood.report import dendrogram_purity

TARGETS = ["bill_depth_mm", "body_mass_g"]


def penguins() -> tuple[pd.DataFrame, pd.Series]:
    with files("hardwood").joinpath("data/penguins.csv").open() as file:
        table = pd.read_csv(file)
    return table.drop(columns=["species", "year"]), table["species"]


def draw(model: LatentTreeClustering, X: pd.DataFrame, species: pd.Series, path: str) -> None:
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4.2), width_ratios=(1, 1.3))
    counts = pd.crosstab(model.leaves_, species)
    labels = [f"{row.idxmax()}, {row.max()} of {row.sum()}" for _, row in counts.iterrows()]
    dendrogram(
        model.linkage(), labels=labels, orientation="left", ax=left, color_threshold=0.0,
        above_threshold_color="#0072B2",
    )  # fmt: skip
    left.set_xlabel("share of the variation within the cluster")
    left.set_title("Clusters, and the species most frequent in each", fontsize="medium")
    model.plot_routing(X, title="Percent of each level's rows; darker is more active", ax=right)
    figure.tight_layout()
    figure.savefig(path, dpi=90)
    print(f"\n{path}")


def main(arguments: list[str] | None = None) -> float:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--figure", help="where to draw the hierarchy, such as clusters.png")
    options = parser.parse_args(arguments)
    X, species = penguins()
    model = LatentTreeClustering(max_depth=3, targets=TARGETS, random_state=0).fit(X)
    print(model.tree_.to_text(digits=2))
    print("\nThree clusters, and the species, which training never saw:\n")
    print(pd.crosstab(model.labels_at(n_clusters=3), species, rownames=["cluster"]))
    purity = dendrogram_purity(species, model)
    print(f"\ndendrogram purity: {purity:.3f}")
    if options.figure:
        draw(model, X, species, options.figure)
    return purity


if __name__ == "__main__":
    main()
