"""The test bed for people: ``python -m tests.bed up --dir D`` and so on; see ``--help``."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.bed import binaries, node, product_image
from tests.bed.controlplane import ControlPlane
from tests.bed.node import Node
from tests.bed.product_image import PRODUCT_IMAGE, PROJECT, build_product_image


def up(folder: Path) -> None:
    """Start a bed that stays in the background; its folder has the kubeconfig and the logs."""
    no_node = node.why_not()
    controlplane = ControlPlane(folder, pods=no_node is None)
    if controlplane.running:
        raise RuntimeError(f"{folder} has a running cluster; KUBECONFIG={controlplane.kubeconfig}")
    try:
        controlplane.start()
        if no_node is None:
            running = Node(controlplane)
            running.start()
            _import_product(running)
    except BaseException:
        down(folder)
        raise
    print(f"no node: {no_node}" if no_node else f"node {Node.name} is ready; Pods must name it:")
    if no_node is None:
        environment = ", ".join(f"{e['name']}={e['value']}" for e in controlplane.service_env())
        print(f"    spec.nodeName: {Node.name}\n    container env: {environment}")
    print(f"export KUBECONFIG={controlplane.kubeconfig}")
    print(f"{binaries.program('kubectl')} get all --all-namespaces")


def down(folder: Path) -> None:
    """End the bed of this folder by what was recorded there; safe to repeat and after a crash."""
    controlplane = ControlPlane(folder)
    Node(controlplane).stop()
    controlplane.stop()


def _import_product(running: Node) -> None:
    reason = product_image.why_not()
    if reason is None and not (PROJECT / "Dockerfile").is_file():
        reason = "there is no Dockerfile"
    if reason:
        print(f"{PRODUCT_IMAGE} is not on the node: {reason}")
        return
    with tempfile.NamedTemporaryFile(suffix=".tar") as archive:
        try:
            build_product_image(Path(archive.name))
        except RuntimeError as error:
            print(f"{PRODUCT_IMAGE} is not on the node: {error}")
            return
        running.import_image(Path(archive.name), PRODUCT_IMAGE)
    print(f"{PRODUCT_IMAGE} is on the node")


def main() -> int:
    """Run one command; 0 for success, 1 with one line on why not."""
    parser = argparse.ArgumentParser(prog="python -m tests.bed", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, text in (("up", "start a cluster"), ("down", "end it and leave nothing behind")):
        command = commands.add_parser(name, help=text)
        command.add_argument("--dir", type=lambda value: Path(value).resolve(), required=True)
    image = commands.add_parser("image", help=f"build {PRODUCT_IMAGE} into an OCI archive")
    image.add_argument("--out", type=Path, required=True)
    commands.add_parser("binaries", help="build and print all programs")
    chosen = parser.parse_args()
    try:
        if chosen.command == "up":
            up(chosen.dir)
        elif chosen.command == "down":
            down(chosen.dir)
        elif chosen.command == "image":
            built = build_product_image(chosen.out)
            print(f"{built.archive}: {PRODUCT_IMAGE}, {built.own_bytes} bytes without the base")
        else:
            for path in binaries.programs("etcd", *binaries.KUBERNETES.packages).values():
                print(path)
    except (binaries.BedUnavailable, RuntimeError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
