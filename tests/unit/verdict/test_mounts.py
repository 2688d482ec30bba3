"""Which volume the result file lies on: is it born with the Pod, and who else can write to it."""

import pytest

from reporter.verdict.pod import Names, read_pod

PATH = "/results/adapter-result.json"
MOUNT = {"name": "results", "mountPath": "/results"}
READ_ONLY = MOUNT | {"readOnly": True}
EMPTY = {"name": "results", "emptyDir": {}}
CLAIM = {"name": "results", "persistentVolumeClaim": {"claimName": "kept"}}
US = "status-reporter"


def container(name, *mounts, **fields):
    """A declared container."""
    return {"name": name, "volumeMounts": list(mounts), **fields}


def native(*others, us=(READ_ONLY,), volumes=(EMPTY,)):
    """A spec with a native reporter and further init containers."""
    reporter = container(US, *us, restartPolicy="Always")
    return {
        "volumes": list(volumes),
        "initContainers": [*others, reporter],
        "containers": [container("adapter", MOUNT)],
    }


def classic(*others, volumes=(EMPTY,)):
    """A spec with a classic reporter and init containers."""
    return {
        "volumes": list(volumes),
        "initContainers": list(others),
        "containers": [container(US, READ_ONLY), container("adapter", MOUNT)],
    }


@pytest.mark.parametrize(
    ("spec", "path", "expected"),
    [
        pytest.param(native(), PATH, True, id="native"),
        pytest.param(classic(), PATH, True, id="classic"),
        pytest.param(native(us=[MOUNT]), PATH, True, id="we ourselves may write"),
        pytest.param(
            native(volumes=[{"name": "results", "emptyDir": {"medium": "Memory"}}]),
            PATH,
            True,
            id="in memory",
        ),
        pytest.param(native(volumes=[CLAIM]), PATH, False, id="a volume that outlives the Pod"),
        pytest.param(classic(volumes=[CLAIM]), PATH, False, id="classic: one that outlives it"),
        pytest.param(native(volumes=[]), PATH, False, id="no such volume"),
        pytest.param(
            native(volumes=[{"name": "results", "emptyDir": None}]), PATH, False, id="null is none"
        ),
        pytest.param(native(us=[]), PATH, False, id="we do not mount it"),
        pytest.param(
            {"volumes": [EMPTY], "containers": [container("adapter", MOUNT)]},
            PATH,
            False,
            id="we are not in the Pod",
        ),
        pytest.param(
            native(container("prepare", MOUNT)), PATH, False, id="an init container may write"
        ),
        pytest.param(
            native(container("proxy", MOUNT, restartPolicy="Always")),
            PATH,
            False,
            id="another sidecar may write",
        ),
        pytest.param(
            classic(container("prepare", MOUNT)),
            PATH,
            False,
            id="classic: an init container may write",
        ),
        pytest.param(
            native(container("prepare", READ_ONLY)), PATH, True, id="an init container may read"
        ),
        pytest.param(
            native(container("prepare", READ_ONLY, MOUNT | {"mountPath": "/out"})),
            PATH,
            False,
            id="an init container may write through its second mount",
        ),
        pytest.param(
            native(container("prepare", MOUNT | {"name": "cache"})),
            PATH,
            True,
            id="an init container has another volume at that path",
        ),
        pytest.param(
            native(
                us=[READ_ONLY, {"name": "kept", "mountPath": "/results/kept"}],
                volumes=[EMPTY, CLAIM | {"name": "kept"}],
            ),
            "/results/kept/adapter-result.json",
            False,
            id="a mount inside the mount",
        ),
        pytest.param(
            native(
                us=[READ_ONLY, {"name": "kept", "mountPath": "/kept"}],
                volumes=[EMPTY, CLAIM | {"name": "kept"}],
            ),
            "/results/../kept/adapter-result.json",
            False,
            id="a path that leaves the mount",
        ),
        pytest.param(
            native(us=[READ_ONLY | {"mountPath": "/results/"}]), PATH, True, id="a closing slash"
        ),
        pytest.param(
            native(us=[READ_ONLY | {"subPath": "mine"}]), PATH, True, id="a part of the volume"
        ),
    ],
)
def test_what_lies_there_comes_from_this_pods_regular_containers(spec, path, expected):
    """The volume of our own mount is an emptyDir that no other init container can write to."""
    assert expected is read_pod({"spec": spec}, Names(results_path=path)).only_adapters_write


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param(native(), False, id="an emptyDir"),
        pytest.param(
            native(container("prepare", MOUNT)), False, id="an emptyDir that others write to"
        ),
        pytest.param(native(volumes=[CLAIM]), True, id="a claim"),
        pytest.param(classic(volumes=[CLAIM]), True, id="classic: a claim"),
        pytest.param(native(us=[]), True, id="not known"),
    ],
)
def test_a_volume_that_is_not_born_with_the_pod_may_be_shared(spec, expected):
    assert expected is read_pod({"spec": spec}, Names(results_path=PATH)).not_empty_dir
