"""deploy/admission/kyverno.yaml, applied by Kyverno's admission controller on a real API server.

The controller takes long to build, so that is not done here: KYVERNO_SOURCE names the folder of its
sources, where `go build -o cmd/kyverno/kyverno ./cmd/kyverno` has been run.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.bed import binaries
from tests.bed.controlplane import ControlPlane
from tests.bed.processes import Program
from tests.contract.labelled_jobs import (
    ADMISSION,
    IMAGE,
    as_created,
    changed,
    injected,
    left_alone,
)
from tests.ports import free_port

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]

SOURCE = os.environ.get("KYVERNO_SOURCE")
# One of the webhooks that it sets up for itself before there is any policy.
READY = (
    "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
    "/kyverno-policy-validating-webhook-cfg"
)
ENVIRONMENT = {
    "KYVERNO_NAMESPACE": "kyverno",
    "KYVERNO_SERVICEACCOUNT_NAME": "kyverno",
    "KYVERNO_DEPLOYMENT": "kyverno",
    "KYVERNO_POD_NAME": "kyverno",
    "INIT_CONFIG": "kyverno",
    "METRICS_CONFIG": "kyverno-metrics",
}


@contextmanager
def kyverno(bed: ControlPlane, source: Path) -> Iterator[Program]:
    """The controller as a process beside the API server, which asks it by its address."""
    bed.kubectl("create", "namespace", "kyverno")
    bed.kubectl("create", "--recursive", "-f", str(source / "config" / "crds"))
    port = free_port()
    program = Program(bed.folder, "kyverno")
    try:
        program.start(
            [
                str(source / "cmd" / "kyverno" / "kyverno"),
                f"--kubeconfig={bed.kubeconfig}",
                f"--serverIP=127.0.0.1:{port}",
                "--webhookServerHost=127.0.0.1",
                f"--webhookServerPort={port}",
                "--caSecretName=kyverno-ca",
                "--tlsSecretName=kyverno-tls",
                "--metricsHost=127.0.0.1",
                f"--metricsPort={free_port()}",
                "--controllerRuntimeMetricsAddress=0",
                "--disableLogColor",
                "-v=0",
            ],
            env=os.environ | ENVIRONMENT,
        )
        program.wait_ready(lambda: bed.api.get_or_none(READY) is not None, seconds=120)
        yield program
    finally:
        program.stop(signal.SIGKILL)


def is_applied(bed: ControlPlane, file: Path) -> bool:
    """Apply it; not yet where Kyverno, which checks policies, is still making its certificate."""
    try:
        bed.kubectl("apply", "-f", str(file))
    except subprocess.CalledProcessError:
        return False
    return True


@pytest.mark.skipif(not SOURCE, reason="needs Kyverno's sources, built: KYVERNO_SOURCE")
def test_the_controller_does_what_inject_does(tmp_path: Path) -> None:
    """The same Job, whether its manifest was changed or Kyverno changed it on its way in."""
    assert SOURCE
    if reason := binaries.why_not():
        pytest.skip(reason)
    policy = ADMISSION / "kyverno.yaml"
    assert IMAGE in policy.read_text()
    manifests = [injected(value, tmp_path) for value in changed()]
    with ControlPlane(tmp_path / "bed") as bed, kyverno(bed, Path(SOURCE)) as controller:
        untouched = [as_created(bed, "default", value) for value in left_alone()]
        wanted = [as_created(bed, "default", value) for value in manifests]
        controller.wait_ready(lambda: is_applied(bed, policy))
        first = changed()[0]
        controller.wait_ready(
            lambda: "annotations" in as_created(bed, "default", first)["metadata"]
        )

        assert wanted == [as_created(bed, "default", value) for value in changed()]
        assert untouched == [as_created(bed, "default", value) for value in left_alone()]
        # What has a reporter gets no second one.
        assert wanted == [as_created(bed, "default", value) for value in manifests]
