"""A tree learns to read handwritten digits from rewards alone, and is evaluated from a log.

    python examples/bandit_digits.py --plot digits_bandit.png

Every round shows an image. The tree chooses a digit, and its reward is 1 if that is right, else 0;
it never sees the label. It is compared with the paper's method, a linear learner, random actions,
and trees trained on all labels. Then a policy is evaluated from the log of another policy, as in
practice, where the rewards of other actions are unknown. Needs hardwood[plot] for the drawing.
"""

from __future__ import annotations

import argparse

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from hardwood.bandit import DGTBandit, classification_bandit, compare, evaluate, simulate

BANDITS = {
    "replay": lambda environment, seed: DGTBandit(environment.actions, random_state=seed),
    "paper": lambda environment, seed: DGTBandit(
        environment.actions, method="paper", random_state=seed
    ),
}


def learning_curves(X: np.ndarray, y: np.ndarray, rounds: int | None, runs: int):
    return compare(
        lambda seed: classification_bandit(X, y, n_rounds=rounds, random_state=seed),
        BANDITS,
        n_runs=runs,
        max_depth=8,
    )


def evaluated_from_a_log(X: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Evaluate a learned tree from the log of a bandit that still explores."""
    X, X_log, y, y_log = train_test_split(X, y, test_size=0.5, random_state=0)
    learned = DGTBandit(10, random_state=0)
    simulate(learned, classification_bandit(X, y, n_rounds=5000, random_state=0))
    policy = learned.policy()  # one readable tree, which does not explore

    environment = classification_bandit(X_log, y_log, random_state=1)
    log = simulate(DGTBandit(10, exploration=10.0, random_state=1), environment)
    print(f"\nMean reward in the log: {log.reward.mean():.3f}. Estimated for the policy:")
    for method in ("ips", "snips", "dm", "dr"):
        print(
            evaluate(policy, environment.X, log.action, log.reward, log.propensity, method=method)
        )
    truth = np.mean(policy.predict(X_log) == y_log)
    print(f"True value, known only in a simulation: {truth:.4f}")
    found = evaluate(policy, environment.X, log.action, log.reward, log.propensity)
    return {"truth": truth, "low": found.low, "high": found.high}


def main(arguments: list[str] | None = None) -> dict[str, float]:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, help="default: every image once")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--plot", help="where to draw the curves")
    options = parser.parse_args(arguments)
    X, y = load_digits(return_X_y=True)
    curves = learning_curves(X, y, options.rounds, options.runs)
    print(curves)
    if options.plot:
        curves.plot().savefig(options.plot, dpi=150, bbox_inches="tight")
    return evaluated_from_a_log(X, y)


if __name__ == "__main__":
    main()
