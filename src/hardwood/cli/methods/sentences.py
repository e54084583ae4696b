"""A sentence of help for every parameter of a method."""

from __future__ import annotations

from hardwood.cli.methods.names import MethodName

_HELP = {
    "activation": "Function from the score of a split to the share of a row that goes right.",
    "baseline": "What is subtracted from sampled costs to reduce their variance.",
    "batch_norm": "Normalize columns by the mean and variance of each batch.",
    "batch_size": "Rows per gradient step.",
    "bootstrap": "Draw rows with replacement for each tree.",
    "calibrate": "Recalibrate the probabilities on held-out rows.",
    "combine": "How a forest combines its trees: average probabilities, or count votes.",
    "combine_runs": "With several restarts: keep the best ensemble, or average all of them.",
    "criterion": "Impurity that splits reduce.",
    "dropout": "Share of hidden values dropped at each step.",
    "early_stopping": "Stop when the validation loss no longer falls, and keep the best epoch.",
    "entropy_bonus": "Initial bonus for policies that explore; it falls to zero.",
    "gamma": "Width of the band around a split in which a row goes to both sides.",
    "gradient": "Compute the gradient exactly, or estimate it from sampled paths.",
    "head": "Predictor on top of the tree: linear, or the widths of hidden layers.",
    "inference": "Which leaves each row's own leaf is compared with.",
    "init": "Start from a greedy tree with these splits, or from the tree in a model file.",
    "l1": "L1 penalty on the weights of splits; larger values remove more terms.",
    "l2": "L2 penalty on the weights of splits.",
    "layers": "Linear layers that each split is trained through (overparameterization).",
    "leaf_l2": "L2 penalty on the slopes of linear leaves.",
    "leaf_prior": "Pseudo-count: rows with the mean target that are added to every leaf.",
    "learning_rate": "Largest step size of the schedule.",
    "leaves": "What a leaf predicts: one value, or a linear function of the columns.",
    "loss": "Loss to minimize: log_loss, hinge or squared_error of classes; squared_error, "
    "absolute_error, huber, quantile or poisson of regression targets.",
    "max_depth": "Largest number of splits on a path from the root to a leaf.",
    "max_epochs": "Largest number of passes over the training rows.",
    "max_features_per_split": "Largest number of features in a split.",
    "max_leaves": "Largest number of leaves.",
    "max_sweeps": "Largest number of sweeps over all splits.",
    "max_terms": "Largest number of features in a leaf or a split.",
    "max_trials": "Largest number of candidate trees to try.",
    "min_impurity_decrease": "Smallest decrease of the mean impurity that justifies a split.",
    "min_samples_leaf": "Rows that each side of a split needs.",
    "min_samples_split": "Rows that a node needs to be split.",
    "min_weight_fraction_leaf": "Share of the total weight that each side of a split needs.",
    "momentum": "Momentum of the optimizer (beta_1 of Adam).",
    "n_candidates": "For random splits: hyperplanes to try at each node.",
    "n_coordinates": "For OC1 splits: coordinates to try in each sweep.",
    "n_estimators": "Number of trees.",
    "n_jumps": "For OC1 splits: random directions to try when no coordinate helps.",
    "n_mixed": "Best leaves that a prediction mixes at first; falls to 1.",
    "n_restarts": "Random starts; the best run is kept.",
    "n_split_restarts": "For OC1 splits: starts at each node.",
    "n_trajectories": "Sampled trajectories per row, for a sampled gradient.",
    "noise": "Standard deviation of the noise that each step adds to its rows.",
    "nu": "Largest squared norm of a split, in standard units.",
    "oob_score": "Also score the forest out of bag: each row by the trees that did not draw it.",
    "parents": "Parent of each node, -1 for the root; none for a perfect binary tree.",
    "prefer": "Which tree to choose: the smallest within one standard error of the best, the best, "
    "or the best with at most 12 leaves and 3 terms.",
    "pruning": "Cost of a node: larger values remove more nodes.",
    "relaxation": "How gradients pass through hard decisions; may be repeated.",
    "sample_fraction": "Rows drawn for each tree, as a share of the training rows.",
    "scoring": "Scorer that ranks candidates: a name that scikit-learn knows, such as roc_auc.",
    "skip_connection": "Let the predictor see the columns as well as the tree.",
    "solver": "How rows are assigned to leaves during training.",
    "splitter": "How splits are searched.",
    "teacher": "Distill small neural networks into the tree where they are more accurate.",
    "temperature": "Divisor of the scores; two numbers anneal from the first to the second.",
    "time_limit": "Seconds that the search may take; it ends earlier when nothing improves.",
    "training": "Further settings of the optimizer; may be repeated.",
    "validation_fraction": "Share of the training rows held out for validation.",
    "weight_decay": "Decoupled weight decay.",
}

# Where a method gives a parameter another meaning.
_HELP_OF: dict[tuple[MethodName, str], str] = {
    ("greedy", "batch_size"): "For CO2 splits: rows per gradient step.",
    ("greedy", "learning_rate"): "For CO2 splits: largest step size.",
    ("greedy", "max_epochs"): "For CO2 splits: largest number of passes over the rows of a node.",
    ("greedy", "max_sweeps"): "For OC1 splits: largest number of sweeps over the coordinates.",
    ("greedy", "momentum"): "For CO2 splits: momentum of the optimizer.",
    ("greedy", "nu"): "For CO2 splits: largest squared norm of a split, in standard units.",
    ("latent", "activation"): "Scores of the splits: linear, or linear followed by an ELU.",
    ("semantic", "leaves"): "What a leaf stands for: one class each (dealt), a value, or a linear "
    "function of the columns.",
    ("tao", "loss"): "Loss to minimize: misclassification, log_loss or hinge of classes; "
    "squared_error, absolute_error, huber, quantile or poisson of regression targets.",
    ("tel", "l2"): "L2 penalty on the weights of splits, in standard units.",
}


def help_of(method: MethodName, parameter: str) -> str:
    """Say in a sentence what a parameter of a method does."""
    return _HELP_OF.get((method, parameter), _HELP.get(parameter, ""))
