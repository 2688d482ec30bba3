"""A real Prometheus on loopback, with targets that the test gives it.

Debian's has no discovery in Kubernetes; what that would find is written to a file instead.
"""

from __future__ import annotations

import json
import shutil
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self, TypeVar

import yaml

from tests.bed.processes import Program
from tests.ports import free_port

Object = dict[str, Any]
T = TypeVar("T")
BOUND = 60.0
"""Nothing takes so long unless it hangs."""


def why_not() -> str | None:
    """The reason why there is no Prometheus here, or None."""
    return None if shutil.which("prometheus") else "there is no prometheus: run tests/bed/setup.sh"


class Prometheus:
    """One Prometheus: `config` is its configuration, in which a job may look into `targets`."""

    def __init__(self, folder: Path, config: Object) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder, self._port = folder, free_port()
        file = folder / "config.yaml"
        file.write_text(yaml.safe_dump(config))
        self._program = Program(folder, "prometheus")
        self._command = [
            "prometheus",
            f"--config.file={file}",
            f"--storage.tsdb.path={folder / 'data'}",
            f"--web.listen-address=127.0.0.1:{self._port}",
        ]

    @staticmethod
    def found_in(file: Path) -> Object:
        """The discovery of what `point` writes into a file."""
        return {"file_sd_configs": [{"files": [str(file)], "refresh_interval": "1s"}]}

    @staticmethod
    def point(file: Path, targets: Mapping[str, Mapping[str, str]]) -> None:
        """Let these be scraped from now on: labels by address."""
        groups = [{"targets": [each], "labels": dict(targets[each])} for each in targets]
        part = file.with_suffix(".part")
        part.write_text(json.dumps(groups))
        part.rename(file)

    def __enter__(self) -> Self:
        try:
            self._program.start(self._command)
            self._program.wait_ready(self._answers)
        except BaseException:
            self._program.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._program.stop()

    def query(self, expression: str) -> list[Object]:
        """The series of an expression."""
        query = urllib.parse.urlencode({"query": expression})
        found: list[Object] = self._get(f"/api/v1/query?{query}")["result"]
        return found

    def firing(self) -> list[Object]:
        """The labels of the alerts that fire."""
        alerts = self._get("/api/v1/alerts")["alerts"]
        return [alert["labels"] for alert in alerts if alert["state"] == "firing"]

    def scraped(self, job: str) -> list[str]:
        """The addresses of a job's targets."""
        found = self._get("/api/v1/targets")["activeTargets"]
        return [each["labels"]["instance"] for each in found if each["scrapePool"] == job]

    def wait_for(self, look: Callable[[], T]) -> T:
        """Return what `look` sees once that is true; it may be asked often."""
        end = time.monotonic() + BOUND
        while not (seen := look()):
            assert time.monotonic() < end, (seen, self.firing(), self._get("/api/v1/targets"))
            time.sleep(0.1)
        return seen

    def _get(self, path: str) -> Any:
        with urllib.request.urlopen(f"http://127.0.0.1:{self._port}{path}", timeout=30) as answer:
            return json.load(answer)["data"]

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._port}/-/ready", timeout=5):
                return True
        except OSError:
            return False
