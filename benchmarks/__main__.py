"""Run all benchmarks, each in its own process: `python -m benchmarks [--data FOLDER] [--quick]`."""

from __future__ import annotations

import argparse
import subprocess
import sys

SCRIPTS = (
    "speed.dgt_step",
    "speed.semantic_step",
    "speed.dgt_layers",
    "speed.inference",
    "speed.forest_inference",
    "speed.one_row",
    "speed.counterfactual",
    "speed.gemm",
    "speed.import_time",
    "speed.memory",
    "speed.ensemble_inference",
    "speed.shapley",
    "speed.tel_step",
    "speed.tel_depth",
    "speed.bandit",
    "speed.reinforced",
    "quality.small_tables",
    "quality.reinforced_figure",
)
WITH_DATA = (
    "speed.dgt_fit",
    "speed.forest_fit",
    "speed.greedy",
    "speed.non_greedy_inference",
    "speed.tao",
    "quality.dgt_tables",
    "quality.default_tree",
    "quality.best_tree",
    "quality.ablations",
    "quality.readable",
    "quality.exports",
    "quality.non_greedy_figures",
    "quality.bandit_replay",
    "quality.bandit_figures",
    "quality.reinforced_options",
    "quality.reinforced_tables",
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="a folder of NAME.npz, for the scripts that need one")
    parser.add_argument("--quick", action="store_true", help="smoke run: minutes, not recorded")
    arguments = parser.parse_args()
    quick = ["--quick"] if arguments.quick else []
    commands = dict.fromkeys(SCRIPTS, quick)
    if arguments.data:
        commands |= {script: ["--data", arguments.data, *quick] for script in WITH_DATA}
        if not arguments.quick:
            names = (
                "dgt",
                "default_tree",
                "best_tree",
                "tel",
                "non_greedy",
                "bandit",
                "reinforced",
                "latent",
            )
            pages = [f"quality.{name}_page" for name in names]
            commands |= dict.fromkeys(pages, [])
    status = {
        script: subprocess.run([sys.executable, "-m", f"benchmarks.{script}", *options]).returncode
        for script, options in commands.items()
    }
    print()
    for script, code in status.items():
        print(f"{script:24}{'ok' if code == 0 else 'a floor was missed, or an error'}")
    return int(any(status.values()))


if __name__ == "__main__":
    sys.exit(main())
