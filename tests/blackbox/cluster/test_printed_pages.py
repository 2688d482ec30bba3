"""Each command of README and docs, in order and as it is printed, in a shell without a terminal."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.bed import binaries
from tests.bed.controlplane import ControlPlane
from tests.bed.product_image import PRODUCT_IMAGE
from tests.blackbox.cluster.printed_pages import PAGES, ROOT, Page, blocks, outputs

PROGRAMS = ("helm",)
BOUND = 1_200.0
STEP = """
echo "+ {command}"
. ./.step-{number} </dev/null
echo "{number} $?" >>.codes
"""

pytestmark = [pytest.mark.node, pytest.mark.long, pytest.mark.timeout(1_500)]


class Reader:
    """Somebody in a folder where this repository is, with what a page takes for granted."""

    def __init__(self, folder: Path, programs: dict[str, list[str]], namespace: str) -> None:
        self.folder, self.namespace = folder / "repository", namespace
        self._bin, self._home = folder / "bin", folder / "home"
        for made in (self.folder, self._bin, self._home):
            made.mkdir()
        for name, words in programs.items():
            quoted = " ".join(f"'{word}'" for word in words)
            (self._bin / name).write_text(f'#!/bin/sh\nexec {quoted} "$@"\n')
            (self._bin / name).chmod(0o755)
        for each in ROOT.iterdir():
            # What a page writes into must not be the repository's own.
            if each.name == "deploy":
                shutil.copytree(each, self.folder / each.name)
            elif each.name not in {".git", "dist"}:
                (self.folder / each.name).symlink_to(each)

    def prepare(self, page: Page) -> None:
        """Make the files that the page's commands name."""
        for name, source in page.files.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(source, tuple):
                where, language, number = source
                path.write_text(blocks(where, language)[number])
                path.chmod(0o755)
            elif (ROOT / source).is_dir():
                shutil.copytree(ROOT / source, path)
            else:
                shutil.copy(ROOT / source, path)

    def run(self, steps: list[tuple[str, int]]) -> tuple[list[int], str]:
        """Run commands in one shell; return their exit codes, and all that was written."""
        script = ["set -o pipefail", "trap 'kill $(jobs -p) 2>/dev/null' EXIT"]
        for number, (command, _) in enumerate(steps):
            (self.folder / f".step-{number}").write_text(f"{command}\n")
            script.append(
                STEP.format(number=number, command=re.sub(r'(["\\$`])', r"\\\1", command))
            )
        codes = self.folder / ".codes"
        codes.unlink(missing_ok=True)
        with (self.folder / ".output").open("w+") as output:
            shell = subprocess.Popen(
                ["bash", "-c", "\n".join(script)],
                cwd=self.folder,
                env={
                    "HOME": str(self._home),
                    "KUBECONFIG": str(self.folder / "kubeconfig"),
                    "PATH": f"{self._bin}:{os.defpath}",
                    "PYTHONPATH": str(ROOT),
                    "STATUS_CTL_IMAGE": PRODUCT_IMAGE,
                },
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                shell.wait(BOUND)
            finally:
                if shell.poll() is None:
                    os.killpg(shell.pid, signal.SIGKILL)
            output.seek(0)
            said = output.read()
        ended = codes.read_text().splitlines() if codes.exists() else []
        return [int(line.split()[1]) for line in ended], said

    def leave(self, page: Page) -> None:
        """Take away what would be in the way of others, the runs among it."""
        noted = (self._home / ".local" / "state" / "status-reporter").glob("runs/*/*")
        runs = [path.read_text().split() for path in noted]
        gone = [f"status-ctl delete {run} -n {place} --yes" for place, run in runs]
        self.run([(command, 0) for command in [*gone, page.after] if command])


@pytest.fixture
def reader(
    cluster: ControlPlane, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[Reader]:
    """A reader with a namespace for the page."""
    name = request.node.callspec.params["name"]
    namespace = "printed-" + re.sub(r"[^a-z]+", "-", Path(name).stem.lower())
    programs = {
        "kubectl": [str(binaries.program("kubectl"))],
        "helm": [str(binaries.program("helm"))],
        **{
            each: [sys.executable, str(ROOT / "cmd" / f"{each}.py")]
            for each in ("status-ctl", "status-aggregator")
        },
    }
    made = Reader(tmp_path, programs, namespace)
    made.prepare(PAGES[name])
    (made.folder / "kubeconfig").write_text(cluster.kubeconfig.read_text())
    cluster.kubectl("create", "namespace", namespace)
    made.run([(f"kubectl config set-context --current --namespace={namespace}", 0)])
    try:
        yield made
    finally:
        made.leave(PAGES[name])
        cluster.kubectl("delete", "namespace", namespace, "--wait=false")


@pytest.mark.parametrize("name", PAGES)
def test_a_page_as_it_is_printed(reader: Reader, name: str) -> None:
    """Every command ends, with the exit code that the page tells and what it shows."""
    steps = PAGES[name].steps(name, reader.namespace)
    codes, said = reader.run(steps)

    ended = [(command, code) for (command, _), code in zip(steps, codes, strict=False)]
    assert steps == ended, said
    # How far the removal is when a run is over depends on the machine.
    said = said.replace(", removing the plugins", "")
    written = [" ".join(line.split()) for line in said.splitlines()]
    assert {" ".join(line.split()) for line in outputs(name)} <= {*written}, said
