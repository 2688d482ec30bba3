"""Wall clocks of single reporters, that can be stepped while they run.

libfaketime does not fit: with it Python's `time.sleep` fails as soon as the clock is stepped.
"""

from __future__ import annotations

import subprocess
import tempfile
from base64 import b64encode
from contextlib import suppress
from functools import cache
from pathlib import Path

from tests.bed.api import ApiError
from tests.bed.controlplane import ControlPlane
from tests.bed.node import Node
from tests.blackbox.scenarios.jobs import REPORTER, Object, container

SOURCE = Path(__file__).with_suffix(".c")
NAME = "clock"


def give_clock(controlplane: ControlPlane, namespace: str, job: Object) -> None:
    """Let the reporter of a Job that is not created yet have a clock of its own."""
    library = {"metadata": {"name": NAME}, "binaryData": {"clock.so": _library()}}
    with suppress(ApiError):  # another Job has brought it
        controlplane.request("POST", f"/api/v1/namespaces/{namespace}/configmaps", library)
    pod = job["spec"]["template"]["spec"]
    pod["volumes"].append({"name": NAME, "configMap": {"name": NAME}})
    reporter = container(pod, REPORTER)
    reporter["volumeMounts"].append({"name": NAME, "mountPath": "/clock", "readOnly": True})
    reporter["env"].append({"name": "LD_PRELOAD", "value": "/clock/clock.so"})


def step_clocks(node: Node, seconds: int) -> None:
    """Set all these clocks on the node off by so many seconds."""
    for found in node.places.kubelet.glob(f"pods/*/volumes/kubernetes.io~configmap/{NAME}"):
        with suppress(OSError):  # the Pod is going
            (found.parents[1] / "kubernetes.io~empty-dir" / "results" / ".clock").write_text(
                str(seconds)
            )


@cache
def _library() -> str:
    with tempfile.NamedTemporaryFile(suffix=".so") as file:
        command = ["gcc", "-shared", "-fPIC", "-O2", "-o", file.name, str(SOURCE)]
        subprocess.run(command, check=True)
        return b64encode(Path(file.name).read_bytes()).decode()
