"""A run that is there, while its aggregator has no Pod: that moves, or is still to be created."""

import pytest

from tests import verdicts
from tests.blackbox.ctl.cluster import add_aggregator, labels, plugin
from tests.blackbox.ctl.launched import VIEW
from tests.blackbox.ctl.scripted import Home
from tests.fakekube import Answer, FakeKube, Rule, make_job
from tests.verdicts import with_verdicts

OWN = "status-reporter-nightly"
NO_POD = "status-ctl: run nightly: its aggregator has no Pod"
ENDED = (
    "status-ctl: the aggregator has ended (job/nightly: failed: it was evicted)"
    " without the status of the run\n"
)
WAITED = f"{NO_POD}; waiting\nstatus-ctl: timed out: run nightly: its aggregator has no Pod\n"


@pytest.fixture
def fake(fake: FakeKube) -> FakeKube:
    """The API server shows a person what the role `view` does."""
    fake.tokens.roles["person"] += VIEW
    return fake


def add_run(fake: FakeKube, kind: str, namespace: str) -> None:
    """Create the plan of the run `nightly`, and what makes its aggregator's Pods, if anything."""
    metadata = {"name": "nightly", "namespace": namespace, "labels": labels("nightly")}
    for each in filter(None, ("ConfigMap", kind)):
        fake.store.create(each, {"metadata": dict(metadata)})


def fail_job(fake: FakeKube, namespace: str) -> None:
    """It makes no Pod any more: its node was drained."""
    failed = {"type": "Failed", "status": "True", "message": "it was evicted"}
    end = {"status": {"conditions": [failed]}}
    fake.store.update("Job", namespace, "nightly", lambda job: job | end)


PLACES = pytest.mark.parametrize(
    ("namespace", "where"), [("default", ()), (OWN, ()), ("elsewhere", ("-A",))]
)
"""Where a run is, and how it is found there."""


@PLACES
@pytest.mark.parametrize("kind", ["Job", ""])
@pytest.mark.parametrize("name", ["nightly", "run/nightly"])
def test_a_bare_name_is_the_run(
    at_home: Home, fake: FakeKube, kind: str, name: str, namespace: str, where: tuple[str, ...]
) -> None:
    """Not a Job, not even the aggregator's own; `status` says what `runs` does."""
    add_run(fake, kind, namespace)

    assert (3, "", WAITED) == at_home.run("wait", *where, name, "--timeout", "0s")
    assert (4, "", f"{NO_POD}\n") == at_home.run("status", *where, "nightly")


@PLACES
@pytest.mark.parametrize("words", ["wait run/nightly", "wait nightly", "watch nightly"])
def test_a_job_that_ended_with_its_pod_before_anybody_looked(
    at_home: Home, fake: FakeKube, words: str, namespace: str, where: tuple[str, ...]
) -> None:
    """No Pod will come, and nobody has to have seen one to learn that."""
    add_run(fake, "Job", namespace)
    fail_job(fake, namespace)

    assert (4, "", ENDED) == at_home.run(*words.split(), *where)


def test_an_ended_job_of_that_name_that_is_not_the_runs(at_home: Home, fake: FakeKube) -> None:
    """It says nothing of the run."""
    add_run(fake, "", "default")
    fake.create_job(make_job(name="nightly"))
    fail_job(fake, "default")

    assert (3, "", WAITED) == at_home.run("wait", "run/nightly", "--timeout", "0s")


@pytest.mark.parametrize("options", [(), ("-n", "default")])
def test_a_config_map_of_that_name_is_no_run(
    at_home: Home, fake: FakeKube, options: tuple[str, ...]
) -> None:
    """Nor is a run of another namespace, where one is named: then the Job is meant."""
    fake.store.create("ConfigMap", {"metadata": {"name": "nightly", "namespace": "default"}})
    if options:
        add_run(fake, "Job", OWN)
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
    places = "'default' or 'status-reporter-nightly'"
    assert f"status-ctl: run 'nightly' not found in namespace {places}; waiting\n" in told


class TestInAllNamespaces:
    """`-A`."""

    PLACE = "elsewhere"

    def test_of_two_the_newer(self, at_home: Home, fake: FakeKube) -> None:
        """As of two Pods."""
        for place, year in (("one", 2026), ("elsewhere", 2025)):
            add_run(fake, "Job", place)
            created = {"creationTimestamp": f"{year}-01-01T00:00:00Z"}
            fake.store.update(
                "ConfigMap",
                place,
                "nightly",
                lambda found, more=created: found | {"metadata": found["metadata"] | more},
            )
        fail_job(fake, "elsewhere")

        assert (3, "", WAITED) == at_home.run("wait", "-A", "nightly", "--timeout", "0s")

    def test_there_is_none(self, at_home: Home, fake: FakeKube) -> None:
        """Nor is a ConfigMap of that name one, nor another run."""
        fake.store.create("ConfigMap", {"metadata": {"name": "nightly", "namespace": self.PLACE}})
        other = {"name": "daily", "namespace": self.PLACE, "labels": labels("daily")}
        fake.store.create("ConfigMap", {"metadata": other})
        found = at_home.run("status", "-A", "nightly")

        assert (4, "", "status-ctl: run 'nightly' not found in any namespace\n") == found

    def test_who_may_not_list_plans(self, at_home: Home, fake: FakeKube) -> None:
        """It is said, once, and a Pod is still found."""
        add_run(fake, "Job", self.PLACE)
        fake.tokens.roles["person"] = (Rule(("get", "list"), ("pods",)),)
        with at_home.started("wait", "-A", "nightly", "-o", "name") as waiting:
            assert waiting.stderr is not None
            told = waiting.stderr.readline().decode()
            asked = lambda: 2 <= len(fake.requests("GET", "/pods"))  # noqa: E731
            fake.wait_for(asked)
            add_aggregator(fake, "complete", plugin("disk", status="complete"), launched="nightly")
            out, err = waiting.communicate(timeout=60)

        assert told.startswith(
            "status-ctl: run 'nightly' not found in any namespace; "
            "a run without a Pod is found only with the right to list configmaps in all namespaces"
        )
        assert told.endswith("; waiting\n")
        assert (0, b"disk/global\n", b"") == (waiting.returncode, out, err)
        assert 1 == len(fake.requests("GET", "/configmaps"))


class TestABlip:
    """The API server does not answer at the start: nobody knows yet whether there is a run."""

    @pytest.mark.parametrize("path", ["/pods", "/configmaps/nightly"])
    def test_the_run_is_waited_for(self, at_home: Home, fake: FakeKube, path: str) -> None:
        """It is asked again, and not taken for a Job."""
        add_run(fake, "Job", "default")
        fake.fail(Answer(503), path=path)
        with at_home.started("wait", "nightly", "-o", "name") as waiting:
            assert waiting.stderr is not None
            told = [waiting.stderr.readline().decode() for _ in range(2)]
            add_aggregator(fake, "complete", plugin("disk", status="complete"), launched="nightly")
            out, err = waiting.communicate(timeout=60)

        assert told[0].startswith("status-ctl: cannot read from the cluster (unavailable): ")
        assert [True, f"{NO_POD}; waiting\n"] == [told[0].endswith("; waiting\n"), told[1]]
        assert (0, b"disk/global\n", b"") == (waiting.returncode, out, err)

    @pytest.mark.parametrize("path", ["/pods", "/configmaps/nightly"])
    def test_then_there_is_none(self, at_home: Home, fake: FakeKube, path: str) -> None:
        """The Job is meant."""
        good = verdicts.result(True, "Fine", "12 of 12")
        fake.create_job(with_verdicts(good, name="nightly"))
        fake.fail(Answer(503), path=path)
        code, out, err = at_home.run("wait", "nightly", "-o", "name")

        assert (0, "job.batch/nightly\n", 1) == (code, out, len(err.splitlines()))
        assert err.startswith("status-ctl: cannot read from the cluster (unavailable): ")

    @pytest.mark.parametrize("time", ["0s", "1s"])
    def test_without_end(self, at_home: Home, fake: FakeKube, time: str) -> None:
        """That ends with the time, which is counted once."""
        fake.fail(Answer(503), times=None)
        code, out, err = at_home.run("wait", "nightly", "--timeout", time)

        assert (3, "") == (code, out)
        assert "status-ctl: timed out waiting for job.batch/nightly: cannot read from" in err

    def test_who_is_not_let_in(self, at_home: Home, fake: FakeKube) -> None:
        """4 at once: asking again cannot help."""
        fake.fail(Answer(401), times=None)
        code, out, err = at_home.run("wait", "nightly")

        assert (4, "") == (code, out)
        assert err.startswith("status-ctl: cannot read from the cluster (unauthorized): ")
