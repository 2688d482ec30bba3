"""The test bed for people: ``python -m tests.bed up --dir D`` and so on; see ``--help``."""

from __future__ import annotations

import argparse
import shlex
import shutil
import sys
import tempfile
from pathlib import Path

from tests.bed import binaries, building, images, node
from tests.bed.attached import ATTACHED
from tests.bed.controlplane import ControlPlane
from tests.bed.hollow import HollowNodes
from tests.bed.node import Node
from tests.bed.product_image import (
    PRODUCT_IMAGE,
    PROJECT,
    build_product_image,
    digests_of_two_builds,
)

EXAMPLES_IMAGE = "docker.io/library/busybox:1.37"
VOLUMES = 32  # each serves one claim; kept, because people look into them


def up(folder: Path, hollow: int = 0) -> None:
    """Start a cluster that stays in the background; its folder has the kubeconfig and the logs.

    So many `hollow` nodes are added.
    """
    no_node = node.why_not()
    controlplane = ControlPlane(
        folder, pods=no_node is None, scheduler=True, loses_nodes=not hollow
    )
    if controlplane.running:
        raise RuntimeError(f"{folder} has a running cluster; KUBECONFIG={controlplane.kubeconfig}")
    try:
        _stage("Starting the API server, its controllers and the scheduler")
        controlplane.start()
        if no_node is None:
            _stage("Starting the node")
            running = Node(controlplane, services=True)
            running.start()
            import_images(running)
            _stage(f"Making {VOLUMES} volumes")
            create_volumes(controlplane)
        if hollow:
            _stage(f"Adding {hollow} nodes that run nothing")
            nodes = HollowNodes(controlplane)
            nodes.start()
            nodes.add_many(f"hollow-{number}" for number in range(1, hollow + 1))
        kubectl = binaries.program("kubectl")
    except BaseException:
        down(folder)
        raise
    if no_node:
        _stage(f"no node, Pods stay pending: {no_node}")
    _stage(first_steps(controlplane.kubeconfig, kubectl))


def first_steps(kubeconfig: Path, kubectl: Path) -> str:
    """Return what a person can do with the cluster, from this repository."""
    return f"""\
The cluster is ready:
  export KUBECONFIG={shlex.quote(str(kubeconfig))} PATH=$PWD/.venv/bin:$PATH
  export STATUS_CTL_IMAGE={PRODUCT_IMAGE}
  alias kubectl={shlex.quote(str(kubectl))}
For example:
  kubectl apply -k deploy/examples/native
  status-ctl wait greeting
  status-ctl run -f deploy/plugins/first-run.yaml --name first --wait"""


def _stage(text: str) -> None:
    """Say it at once: what follows takes its time, and the output may be a pipe."""
    print(text, flush=True)


def down(folder: Path) -> None:
    """End the bed of this folder by what was recorded there; safe to repeat and after a crash."""
    controlplane = ControlPlane(folder)
    HollowNodes(controlplane).stop()
    Node(controlplane, second=True).stop()
    Node(controlplane).stop()
    controlplane.stop()


def import_images(running: Node) -> None:
    """The examples' image and the product's."""
    _stage(f"Loading {EXAMPLES_IMAGE}")
    _import_busybox(running)
    _import_product(running)


def _import_busybox(running: Node) -> None:
    """The examples' image by the name they have for it."""
    with tempfile.NamedTemporaryFile(suffix=".tar") as archive:
        images.write_busybox_image(Path(archive.name))
        running.import_image(Path(archive.name), EXAMPLES_IMAGE)


def create_volumes(controlplane: ControlPlane, many: int = VOLUMES) -> None:
    """A few volumes on the node for claims; nothing in the cluster makes more."""
    here = {"key": "kubernetes.io/hostname", "operator": "In", "values": [Node.name]}
    shutil.rmtree(controlplane.folder / "volumes", ignore_errors=True)
    for number in range(many):
        place = controlplane.folder / "volumes" / str(number)
        place.mkdir(parents=True)
        place.chmod(0o777)
        spec = {
            "capacity": {"storage": "10Gi"},
            "accessModes": ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": "Retain",
            "local": {"path": str(place)},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}},
        }
        volume = {"metadata": {"name": f"local-{number}"}, "spec": spec}
        controlplane.request("POST", "/api/v1/persistentvolumes", volume)


def _import_product(running: Node) -> None:
    reason = building.why_not()
    if reason is None and not (PROJECT / "Dockerfile").is_file():
        reason = "there is no Dockerfile"
    if reason:
        _stage(f"{PRODUCT_IMAGE} is not on the node: {reason}")
        return
    _stage(f"Building {PRODUCT_IMAGE}")
    with tempfile.NamedTemporaryFile(suffix=".tar") as archive:
        try:
            build_product_image(Path(archive.name))
        except RuntimeError as error:
            _stage(f"{PRODUCT_IMAGE} is not on the node: {error}")
            return
        running.import_image(Path(archive.name), PRODUCT_IMAGE)
    _stage(f"{PRODUCT_IMAGE} is on the node")


def main() -> int:
    """Run one command; 0 for success, 1 with one line on why not."""
    parser = argparse.ArgumentParser(prog="python -m tests.bed", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, text in (("up", "start a cluster"), ("down", "end it and leave nothing behind")):
        command = commands.add_parser(name, help=text)
        command.add_argument("--dir", type=lambda value: Path(value).resolve(), required=True)
        command.add_argument(
            "--attached",
            action="store_true",
            help="end it when standard input ends, and only then",
        )
        if name == "up":
            words = "Node objects that accept Pods and never run them"
            command.add_argument("--hollow", type=int, default=0, metavar="NUMBER", help=words)
    image = commands.add_parser("image", help=f"build {PRODUCT_IMAGE} into an OCI archive")
    image.add_argument("--out", type=Path, required=True)
    words = "build it once more and compare the digests"
    image.add_argument("--twice", action="store_true", help=words)
    commands.add_parser("binaries", help="build and print all programs")
    chosen = parser.parse_args()
    try:
        if chosen.command in {"up", "down"}:
            try:
                if chosen.command == "up":
                    up(chosen.dir, chosen.hollow)
                if chosen.attached:
                    print(ATTACHED, flush=True)
                    sys.stdin.read()
            finally:
                if chosen.attached or chosen.command == "down":
                    down(chosen.dir)
        elif chosen.command == "image":
            built = build_product_image(chosen.out)
            print(f"{built.archive}: {PRODUCT_IMAGE}, {built.own_bytes} bytes without the base")
            if chosen.twice:
                first, again = digests_of_two_builds()
                if first != again:
                    raise RuntimeError(f"two builds differ: {first} and {again}")
                print(f"two builds have the digest {first}")
        else:
            for path in binaries.programs("etcd", *binaries.KUBERNETES.packages).values():
                print(path)
    except (binaries.BedUnavailable, RuntimeError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
