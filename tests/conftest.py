"""The real cluster as fixtures: one control plane and one node for a process's whole run.

Where one of them is not possible its tests are skipped with the reason, or fail when the
environment has REQUIRE_CLUSTER=1.

Properties are about what holds, not about how fast: no time limit for one example. `make test`
tries a few; PROPERTY_EXAMPLES=NUMBER says how many, as `make test-long` and `make test-coverage`
do.

What has been collected stays until the end: the garbage collector is not to look at it again and
again, in every worker.
"""

from __future__ import annotations

import gc
import os
import shutil
import signal
import tempfile
import uuid
from collections.abc import Callable, Generator, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from tests.bed import binaries, building
from tests.bed import node as bed_node
from tests.bed.attached import attached
from tests.bed.controlplane import ControlPlane
from tests.bed.node import Node
from tests.bed.product_image import PRODUCT_IMAGE, build_product_image

# Their asserts tell the values too; it has to be said before they are imported.
pytest.register_assert_rewrite("tests.blackbox")

from tests.blackbox.scenarios.stage import Stage  # noqa: E402

# Whoever starts us in the background lets SIGINT be ignored, which every program that a test starts
# would inherit; a handler is not inherited.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

EXAMPLES = int(os.environ.get("PROPERTY_EXAMPLES", "25"))
settings.register_profile("untimed", deadline=None, max_examples=EXAMPLES)
settings.load_profile("untimed")

FIGURES = "figures"
TEMPORARY = pytest.StashKey[Path]()
REAL = ("cluster", "node")
SHARED = ("stage", "node", "controlplane", "cluster")
"""What tests share on the real cluster: the first of these fixtures that a test has counts."""
PROGRAMS = ("etcd", "kube-apiserver", "kube-controller-manager", "kubectl")


def _leave_out(reason: str) -> None:
    if os.environ.get("REQUIRE_CLUSTER") == "1":
        pytest.fail(f"REQUIRE_CLUSTER=1, but {reason}", pytrace=False)
    pytest.skip(reason)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Work in a folder of this run's own; where a test has failed it stays, to be looked at.

    In pytest's usual place each run removes what it takes for an older one's, and fails where a
    node has mounted something there.
    """
    if config.option.basetemp is None:
        config.option.basetemp = tempfile.mkdtemp(prefix="status-reporter-tests-")
        config.stash[TEMPORARY] = Path(config.option.basetemp)


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Keep the folder, or let it go at the very end."""
    folder = session.config.stash.get(TEMPORARY, None)
    if folder and exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        session.config.add_cleanup(partial(shutil.rmtree, folder, ignore_errors=True))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Generator[None, object, object]:
    """Thousands of modules and tests, and nothing among them that could be freed."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests on the real cluster come first, those that share something after each other.

    So each thing is made once, and as little as possible of it runs while others are tested: those
    that share nothing begin. Those on the cluster of `make cluster` are marked: the others can run
    beside them.
    """
    for item in items:
        if "cluster" in getattr(item, "fixturenames", ()):
            item.add_marker("people")

    def shared(item: pytest.Item) -> int:
        fixtures = getattr(item, "fixturenames", ())
        found = (place for place, name in enumerate(SHARED) if name in fixtures)
        return next(found, -1)

    real = [item for item in items if any(map(item.get_closest_marker, REAL))]
    chosen = set(real)
    items[:] = [*sorted(real, key=shared), *(item for item in items if item not in chosen)]


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Show the figures of the tests that have `figures`."""
    reports = [each for kind in ("passed", "failed") for each in terminalreporter.getreports(kind)]
    said = [text for each in reports for name, text in each.user_properties if name == FIGURES]
    if said:
        terminalreporter.section("figures")
        terminalreporter.write_line("\n".join(said))


def pytest_collection_finish(session: pytest.Session) -> None:
    """Build before the first test: a cold build takes longer than a test's time limit."""
    if session.config.option.collectonly:
        return
    # By mark, not by name alone: a parameter called `node` would build a kubelet for a unit test.
    real = [item for item in session.items if any(map(item.get_closest_marker, REAL))]
    wanted = {name for item in real for name in getattr(item, "fixturenames", ())}
    try:
        if "controlplane" in wanted and binaries.why_not() is None:
            binaries.programs(*PROGRAMS)
        if "node" in wanted and bed_node.why_not() is None:
            binaries.program("kubelet")
        if binaries.why_not() is None:
            # What else a module needs it says itself.
            modules = {item.module for item in real if isinstance(item, pytest.Function)}
            more = sorted({name for each in modules for name in getattr(each, "PROGRAMS", ())})
            binaries.programs(*more)
        if "product_image" in wanted and building.why_not() is None:
            with binaries.locked("image"):
                building.base_image()
    except binaries.BedUnavailable:
        # The fixture meets the same error and reports it with its test.
        return


@pytest.fixture(scope="session")
def controlplane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A running control plane; with a node to come it also listens for Pods."""
    if reason := binaries.why_not():
        _leave_out(reason)
    folder = tmp_path_factory.mktemp("bed")
    try:
        binaries.programs(*PROGRAMS)
    except binaries.BedUnavailable as error:
        _leave_out(str(error))
    with (
        attached(folder),
        ControlPlane(folder, pods=bed_node.why_not() is None) as running,
    ):
        yield running


@pytest.fixture(scope="session")
def node(controlplane: ControlPlane) -> Iterator[Node]:
    """The running node `node1` with the busybox image."""
    if reason := bed_node.why_not():
        _leave_out(reason)
    with Node(controlplane) as running:
        yield running


@pytest.fixture(scope="session")
def product_image(node: Node, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The name of the product's image, built from the Dockerfile and known to the node."""
    if reason := building.why_not():
        _leave_out(reason)
    archive = tmp_path_factory.mktemp("image") / "product.tar"
    build_product_image(archive)
    node.import_image(archive, PRODUCT_IMAGE)
    archive.unlink()
    return PRODUCT_IMAGE


@pytest.fixture(scope="session")
def stage(node: Node, product_image: str) -> Iterator[Stage]:
    """The node with the product on it, recorded from now on."""
    with Stage(node) as ready:
        yield ready


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """The cluster that `make cluster` gives to people; one of a machine at a time."""
    if reason := bed_node.why_not():
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("people")
    controlplane = ControlPlane(folder)
    with attached(folder, up=True):
        yield controlplane
    controlplane.stop()  # what a test has started again is a child of this process


@pytest.fixture
def namespace(controlplane: ControlPlane) -> Iterator[str]:
    """A namespace of its own under the restricted Pod security profile; gone after the test."""
    name = f"test-{uuid.uuid4().hex[:8]}"
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    controlplane.request(
        "POST", "/api/v1/namespaces", {"metadata": {"name": name, "labels": labels}}
    )
    # Until the account is there the API server refuses Pods.
    controlplane.api.wait_for(f"/api/v1/namespaces/{name}/serviceaccounts/default", bool)
    yield name
    pods = f"/api/v1/namespaces/{name}/pods"
    controlplane.request("DELETE", f"/api/v1/namespaces/{name}")
    controlplane.request("DELETE", f"{pods}?gracePeriodSeconds=1")


@pytest.fixture
def figures(record_property: Callable[[str, object], None]) -> Callable[[str], None]:
    """Takes what was measured, to be shown at the end of the run."""
    return partial(record_property, FIGURES)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder for a bed of the test's own."""
    return tmp_path / "bed"
