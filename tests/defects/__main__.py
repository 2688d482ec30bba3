"""``python -m tests.defects [NAME...]``: whether the soak finds defects made on purpose.

Each of `defects.toml` is made in a copy of the project, and the soak of that copy plays with its
image and its commands. Exit code 0 when all were found.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path

from tests.bed.building import copy_sources
from tests.bed.product_image import PROJECT

FILE = Path(__file__).with_name("defects.toml")


@dataclass(frozen=True)
class Defect:
    """A defect: `old`, which stands in `file` once, is replaced by `new`."""

    name: str
    breaks: str
    player: str
    file: str
    old: str
    new: str

    def apply(self, text: str) -> str:
        """The text of the file with the defect; ValueError where it does not fit any more."""
        if (times := text.count(self.old)) != 1:
            raise ValueError(f"{self.name}: its text stands {times} times in {self.file}")
        return text.replace(self.old, self.new)


def read() -> list[Defect]:
    """All defects."""
    return [Defect(**each) for each in tomllib.loads(FILE.read_text())["defect"]]


def main() -> int:
    """Play with one after the other, and print what became of each."""
    parser = argparse.ArgumentParser(prog="python -m tests.defects", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="these alone")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", default="defects")
    options = parser.parse_args()
    known = {each.name: each for each in read()}
    missed = 0
    for name in options.names or known:
        found, told = _play(known[name], options.minutes, options.seed)
        missed += not found
        print(f"{name} ({known[name].player}): {told}", flush=True)
    return 1 if missed else 0


def _play(defect: Defect, minutes: float, seed: str) -> tuple[bool, str]:
    """Whether it was found, and the first and the last words of the soak."""
    with tempfile.TemporaryDirectory(prefix="defect-") as folder:
        project = Path(folder)
        copy_sources(PROJECT, project)
        # What enters an image is what git would commit.
        subprocess.run(["git", "init", "--quiet", str(project)], check=True)
        changed = project / defect.file
        changed.write_text(defect.apply(changed.read_text()))
        command = [sys.executable, "-m", "tests.blackbox.soak"]
        command += ["--seed", seed, "--minutes", str(minutes)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=project)
    lines = done.stdout.splitlines()
    for line in lines:
        if line.startswith("soak: contradiction"):
            return True, f"{line.removeprefix('soak: ')}: {lines[1]}"
    return False, "NOT FOUND" if done.returncode == 0 else f"no soak\n{done.stderr[-2000:]}"


if __name__ == "__main__":
    sys.exit(main())
