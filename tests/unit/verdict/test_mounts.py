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


IN_MEMORY = {"name": "results", "emptyDir": {"medium": "Memory"}}
KEPT_BESIDE = [EMPTY, CLAIM | {"name": "kept"}]
INSIDE = native(us=[READ_ONLY, {"name": "kept", "mountPath": "/results/kept"}], volumes=KEPT_BESIDE)
ASIDE = native(us=[READ_ONLY, {"name": "kept", "mountPath": "/kept"}], volumes=KEPT_BESIDE)
THEIRS = {
    "native": (native(), True),
    "classic": (classic(), True),
    "we ourselves may write": (native(us=[MOUNT]), True),
    "in memory": (native(volumes=[IN_MEMORY]), True),
    "a volume that outlives the Pod": (native(volumes=[CLAIM]), False),
    "classic: one that outlives it": (classic(volumes=[CLAIM]), False),
    "no such volume": (native(volumes=[]), False),
    "null is none": (native(volumes=[{"name": "results", "emptyDir": None}]), False),
    "we do not mount it": (native(us=[]), False),
    "we are not in the Pod": (
        {"volumes": [EMPTY], "containers": [container("adapter", MOUNT)]},
        False,
    ),
    "an init container may write": (native(container("prepare", MOUNT)), False),
    "another sidecar may write": (native(container("proxy", MOUNT, restartPolicy="Always")), False),
    "classic: an init container may write": (classic(container("prepare", MOUNT)), False),
    "an init container may read": (native(container("prepare", READ_ONLY)), True),
    "an init container may write through its second mount": (
        native(container("prepare", READ_ONLY, MOUNT | {"mountPath": "/out"})),
        False,
    ),
    "an init container has another volume at that path": (
        native(container("prepare", MOUNT | {"name": "cache"})),
        True,
    ),
    "a closing slash": (native(us=[READ_ONLY | {"mountPath": "/results/"}]), True),
    "a part of the volume": (native(us=[READ_ONLY | {"subPath": "mine"}]), True),
    "a mount inside the mount": (INSIDE, False, "/results/kept/adapter-result.json"),
    "a path that leaves the mount": (ASIDE, False, "/results/../kept/adapter-result.json"),
}


@pytest.mark.parametrize("situation", THEIRS)
def test_what_lies_there_comes_from_this_pods_regular_containers(situation):
    """The volume of our own mount is an emptyDir that no other init container can write to."""
    spec, expected, *path = THEIRS[situation]
    names = Names(results_path=path[0] if path else PATH)

    assert expected is read_pod({"spec": spec}, names).only_adapters_write


SHARED = {
    "an emptyDir": (native(), False),
    "an emptyDir that others write to": (native(container("prepare", MOUNT)), False),
    "a claim": (native(volumes=[CLAIM]), True),
    "classic: a claim": (classic(volumes=[CLAIM]), True),
    "not known": (native(us=[]), True),
}


@pytest.mark.parametrize("situation", SHARED)
def test_a_volume_that_is_not_born_with_the_pod_may_be_shared(situation):
    spec, expected = SHARED[situation]

    assert expected is read_pod({"spec": spec}, Names(results_path=PATH)).not_empty_dir
