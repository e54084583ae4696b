"""A C compiler, where the machine has one, to try a header with."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from hardwood.errors import ExportError

_KNOWN = ("cc", "gcc", "clang")
_FLAGS = ("-std=c99", "-O1", "-ffp-contract=off")
_SECONDS = 600


@dataclass(frozen=True)
class Compiler:
    """A command that compiles C."""

    command: tuple[str, ...]

    @classmethod
    def find(cls) -> Compiler | None:
        """Return the compiler that ``CC`` names, or one of the usual ones; None without any."""
        wanted = shlex.split(os.environ.get("CC", ""))
        for command in ([wanted] if wanted else []) + [[name] for name in _KNOWN]:
            if shutil.which(command[0]):
                return cls(tuple(command))
        return None

    @property
    def version(self) -> str:
        """The first line of what the compiler says of itself."""
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
            If it does not compile or does not end well.
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
            said = done.stderr.decode(errors="replace").strip()
            raise ExportError(
                f"the export to C was not written: it {trouble} with {shlex.join(self.command)} "
                f"(exit code {done.returncode}): {said[-1000:]}"
            )
        return done.stdout
