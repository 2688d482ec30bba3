"""Pods as the API shows them, with only what a test is about."""

from reporter.verdict.pod import Names

START = "2026-01-02T03:04:05Z"


AT = 1_767_323_045.0


NAMES = Names()


RESULTS = {"name": "results", "mountPath": "/results"}


READ_ONLY = RESULTS | {"readOnly": True}


OTHER = {"name": "cache", "mountPath": "/cache"}


US = {"name": "status-reporter", "volumeMounts": [READ_ONLY]}


NATIVE_US = US | {"restartPolicy": "Always"}


def container(name, *mounts, **fields):
    """A declared container."""
    return {"name": name, "volumeMounts": list(mounts), **fields}


def pod_with(*containers, init=(), annotations=None, **spec):
    """An API Pod with these containers."""
    return {
        "metadata": {"name": "job-x7k2p", "annotations": annotations or {}},
        "spec": {"containers": list(containers), "initContainers": list(init), **spec},
    }


def shown(state, **fields):
    """An API Pod whose adapter is in that state."""
    pod = pod_with(container("adapter"), init=[NATIVE_US])
    status = {"name": "adapter", "state": state, **fields}
    return pod | {"status": {"containerStatuses": [status]}}


def default(name):
    """The annotation that names a default container."""
    return {"kubectl.kubernetes.io/default-container": name}
