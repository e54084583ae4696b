"""The machine's C compiler, if there is one: compiles a header and runs it on the probes."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hardwood.errors import ExportError
from hardwood.export.plan import Plan
from hardwood.export.probes import Probes
from hardwood.export.verify import Predictions

_KNOWN = ("cc", "gcc", "clang")
_FLAGS = ("-std=c99", "-O1", "-ffp-contract=off")
_SECONDS = 600


@dataclass(frozen=True)
class Compiler:
    """A command that compiles C."""

    command: tuple[str, ...]

    @classmethod
    def find(cls) -> Compiler | None:
        """Return the compiler that ``CC`` names, or a common one; None if there is none."""
        wanted = shlex.split(os.environ.get("CC", ""))
        for command in ([wanted] if wanted else []) + [[name] for name in _KNOWN]:
            if shutil.which(command[0]):
                return cls(tuple(command))
        return None

    @property
    def version(self) -> str:
        """The first line of the compiler's version text."""
        done = subprocess.run(
            [*self.command, "--version"], capture_output=True, text=True, timeout=_SECONDS
        )
        lines = done.stdout.splitlines()
        return lines[0] if lines else self.command[0]

    def run(self, sources: dict[str, str], stdin: bytes) -> bytes:
        """Compile ``main.c`` among the sources, run it on ``stdin`` and return its stdout.

        Raises
        ------
        ExportError
            If it does not compile or exits with an error.
        """
        with tempfile.TemporaryDirectory(prefix="hardwood-") as folder:
            for name, text in sources.items():
                (Path(folder) / name).write_bytes(text.encode())
            program = str(Path(folder) / "probe")
            build = [*self.command, *_FLAGS, "main.c", "-o", program, "-lm"]
            self._call(build, folder, b"", "does not compile")
            return self._call([program], folder, stdin, "stops")

    def _call(self, command: list[str], folder: str, stdin: bytes, trouble: str) -> bytes:
        done = subprocess.run(
            command, cwd=folder, input=stdin, capture_output=True, timeout=_SECONDS
        )
        if done.returncode:
            message = done.stderr.decode(errors="replace").strip()
            raise ExportError(
                f"the export to C was not written: it {trouble} with {shlex.join(self.command)} "
                f"(exit code {done.returncode}): {message[-1000:]}"
            )
        return done.stdout


def compiled_predictions(
    compiler: Compiler, probes: Probes, prefix: str, text: str, *, real: str = "double"
) -> Predictions:
    """Compile a header, run it on the probes and return its predictions.

    ``real`` is the type of its outputs. A header of integers has ``float`` and quantizes the rows.
    """
    plan = probes.plan
    sources = {"header.h": text, "main.c": probe_program(plan, prefix, real)}
    printed = compiler.run(sources, np.ascontiguousarray(probes.matrix, np.float64).tobytes())
    n_trees, k = len(plan.trees), plan.model.n_outputs
    width = n_trees + k + (1 if plan.model.classes is not None else k)
    rows = np.frombuffer(printed, np.float64)
    if rows.size != probes.n_rows * width:
        raise ExportError("the export to C was not written: its program prints too little")
    leaves, outputs, predictions = np.split(rows.reshape(-1, width), [n_trees, n_trees + k], axis=1)
    if plan.model.task == "regression":
        if not np.array_equal(predictions, outputs):
            raise ExportError("the export to C was not written: predict and outputs differ")
        return Predictions(outputs, None, leaves)
    positions = predictions.astype(np.int64)
    return Predictions(
        outputs, positions[:, 0] if plan.model.classes is not None else positions, leaves
    )


def probe_program(plan: Plan, prefix: str, real: str) -> str:
    """Write a program that reads rows of doubles from stdin and writes predictions as doubles."""
    one = plan.model.task == "classification" or (
        plan.model.task == "regression" and plan.model.n_outputs == 1
    )
    if one:
        prediction = f"prediction[0] = {prefix}_predict(row);"
    else:
        kind = "uint8_t" if plan.model.task == "multilabel" else real
        prediction = f"{kind} many[K]; {prefix}_predict(row, many);\n"
        prediction += "    for (int i = 0; i < K; ++i) prediction[i] = many[i];"
    is_quantized = real == "float"
    return _PROGRAM.format(
        n_features=plan.schema.n_features,
        n_outputs=plan.model.n_outputs,
        n_trees=len(plan.trees),
        n_answers=1 if plan.model.classes is not None else plan.model.n_outputs,
        prefix=prefix,
        real=real,
        quantize=f"{prefix}_quantize_row(raw, row);"
        if is_quantized
        else "for (int i = 0; i < P; ++i) row[i] = raw[i];",
        prediction=prediction,
    )


_PROGRAM = """#include "header.h"
#include <stdio.h>
enum {{ P = {n_features}, K = {n_outputs}, T = {n_trees}, A = {n_answers} }};
static double raw[P], result[T + K + A], *prediction = result + T + K;
static {prefix}_value row[P];
static {real} outputs[K];
static int32_t leaves[T];
int main(void) {{
  while (fread(raw, sizeof(double), P, stdin) == P) {{
    {quantize}
    {prefix}_leaves(row, leaves);
    for (int i = 0; i < T; ++i) result[i] = leaves[i];
    {prefix}_outputs(row, outputs);
    for (int i = 0; i < K; ++i) result[T + i] = outputs[i];
    {prediction}
    fwrite(result, sizeof(double), T + K + A, stdout);
  }}
  return 0;
}}
"""
