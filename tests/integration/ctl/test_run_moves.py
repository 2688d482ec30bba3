"""A run that is there, while its aggregator has no Pod: that moves, or is still to be created."""

import pytest

from reporter.core.launch.names import labels
from tests.fakekube import FakeKube, Rule, make_job
from tests.integration.ctl.cluster import add_aggregator, plugin
from tests.integration.ctl.scripted import Home

OWN = "status-reporter-nightly"
NO_POD = "status-ctl: run nightly: its aggregator has no Pod"
WAITED = f"{NO_POD}; waiting\nstatus-ctl: timed out: run nightly: its aggregator has no Pod\n"


@pytest.fixture
def fake(fake: FakeKube) -> FakeKube:
    """The API server shows a person what the role `view` does."""
    fake.tokens.roles["person"] += (
        Rule(("get", "list"), ("configmaps",)),
        Rule(("get", "list"), ("statefulsets",), groups=("apps",)),
    )
    return fake


def add_run(fake: FakeKube, kind: str, namespace: str) -> None:
    """Create the plan of the run `nightly`, and what makes its aggregator's Pods, if anything."""
    metadata = {"name": "nightly", "namespace": namespace, "labels": labels("nightly")}
    for each in filter(None, ("ConfigMap", kind)):
        fake.store.create(each, {"metadata": dict(metadata)})


@pytest.mark.parametrize("namespace", ["default", OWN])
@pytest.mark.parametrize("kind", ["StatefulSet", "Job", ""])
def test_a_bare_name_is_the_run(at_home: Home, fake: FakeKube, kind: str, namespace: str) -> None:
    """Not a Job, not even the aggregator's own."""
    add_run(fake, kind, namespace)
    found = at_home.run("wait", "nightly", "--timeout", "0s")

    assert (3, "", WAITED) == found


def test_its_pod_comes(at_home: Home, fake: FakeKube) -> None:
    """The run is waited for, to its end."""
    add_run(fake, "StatefulSet", "default")
    with at_home.started("wait", "nightly", "-o", "name") as waiting:
        assert waiting.stderr is not None
        told = waiting.stderr.readline().decode()
        add_aggregator(
            fake,
            "complete",
            plugin("disk", status="complete", verdict="passed"),
            launched="nightly",
            run={"run": "nightly", "status": "complete", "final": True},
        )
        out, _ = waiting.communicate(timeout=60)

    assert (f"{NO_POD}; waiting\n", 0, b"disk/global\n") == (told, waiting.returncode, out)


def test_its_status(at_home: Home, fake: FakeKube) -> None:
    """4, in the words of `runs`."""
    add_run(fake, "StatefulSet", "default")

    assert (4, "", f"{NO_POD}\n") == at_home.run("status", "nightly")


@pytest.mark.parametrize("options", [(), ("-n", "default")])
def test_a_config_map_of_that_name_is_no_run(
    at_home: Home, fake: FakeKube, options: tuple[str, ...]
) -> None:
    """Nor is a run of another namespace, where one is named: then the Job is meant."""
    fake.store.create("ConfigMap", {"metadata": {"name": "nightly", "namespace": "default"}})
    if options:
        add_run(fake, "StatefulSet", OWN)
    fake.create_job(make_job(name="nightly"))
    code, _, err = at_home.run("wait", "nightly", *options, "--timeout", "0s")

    assert 3 == code
    assert "job.batch/nightly" in err


def test_who_may_not_see_the_plan(at_home: Home, fake: FakeKube) -> None:
    """There may be no run: the Job is meant; run/NAME says otherwise."""
    fake.tokens.roles["person"] = (Rule(("get", "list"), ("pods", "jobs")),)
    add_run(fake, "Job", "default")
    _, _, bare = at_home.run("wait", "nightly", "--timeout", "0s")
    _, _, told = at_home.run("wait", "run/nightly", "--timeout", "0s")

    assert "job.batch/nightly" in bare
    assert "status-ctl: run 'nightly' not found in namespace 'default'; waiting\n" in told
