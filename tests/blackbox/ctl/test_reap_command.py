"""`status-ctl reap` against an API server: what it asks, writes, shows and returns.

What it decides is in tests/unit/reap; the real cluster in tests/blackbox/cluster/test_reap.py.
"""

from __future__ import annotations

import json
import signal
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import verdicts
from tests.blackbox.ctl.scripted import Home, interrupted
from tests.fakekube import Answer, Entry, FakeKube, Reset, Rule, make_job, make_pod
from tests.ports import free_port
from tests.verdicts import with_verdicts

ROOT = Path(__file__).resolve().parents[3]
ROLE = yaml.safe_load((ROOT / "deploy/reaper/rights/clusterrole.yaml").read_text())
RIGHTS = tuple(
    Rule(tuple(rule["verbs"]), tuple(rule["resources"]), groups=tuple(rule["apiGroups"]))
    for rule in ROLE["rules"]
)
NOW = datetime(2030, 1, 1, 12, 30, tzinfo=UTC)
ENDED = {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"}
ENDED |= {"lastTransitionTime": "2030-01-01T12:10:00Z"}
GONE = "Pod is gone before a verdict was known; adapter container cannot be observed"
Object = dict[str, Any]


@pytest.fixture
def fake() -> Iterator[FakeKube]:
    """An API server of the year 2030 that grants what deploy/reaper has, and no more."""
    with FakeKube(clock=lambda: NOW, role="person") as fake:
        fake.tokens.roles["person"] = RIGHTS
        yield fake


def lost(name: str, namespace: str = "default", *conditions: Object) -> Object:
    """A Job that has failed, whose Pod is gone and whose reporter wrote nothing."""
    made = make_job(name, namespace, uid=f"uid-{name}")
    made["status"]["conditions"] = [ENDED, *conditions]
    return made


def note(fake: FakeKube, name: str, namespace: str = "default") -> Any:
    annotations = fake.job(name, namespace)["metadata"].get("annotations", {})
    return json.loads(annotations["status-reporter.io/Available"])


def test_a_job_whose_pod_is_gone(at_home: Home, fake: FakeKube) -> None:
    """It gets its last word, with the guards of a reporter, and an Event; a second time nothing."""
    fake.create_job(lost("one"))
    version = fake.job("one")["metadata"]["resourceVersion"]
    code, out, err = at_home.run("reap")

    line = f"job.batch/one Available=Unknown AdapterInterrupted: {GONE} (final)"
    assert (0, [line]) == (code, [" ".join(each.split()) for each in out.splitlines()])
    assert "status-ctl: 1 condition checked, 1 written, 0 without a final verdict\n" == err
    condition = fake.condition("one", "Available")
    assert condition is not None
    assert ("Unknown", "AdapterInterrupted", GONE, "2030-01-01T12:30:00Z") == (
        condition["status"],
        condition["reason"],
        condition["message"],
        condition["lastProbeTime"],
    )
    assert note(fake, "one")["final"]
    (patch,) = fake.requests("PATCH")
    guards = json.loads(patch.body)["metadata"]
    assert ("uid-one", version) == (guards["uid"], guards["resourceVersion"])
    (event,) = fake.events()
    assert ("Warning", "AdapterInterrupted") == (event["type"], event["reason"])

    assert (0, "") == at_home.run("reap")[:2]
    assert 1 == len(fake.requests("PATCH"))


def test_rights(at_home: Home, fake: FakeKube) -> None:
    """Each right of the Role is used; nothing else is asked for: the fake would refuse it."""
    job = fake.create_job(make_job("cut-off"))
    fake.create_pod(make_pod(job) | {"apiVersion": "v1"})
    fake.mark_pod_deleted("cut-off-x7k2p")
    fake.create_job(lost("gone"))
    code, out, _ = at_home.run("reap", "-o", "name")

    assert (0, "job.batch/cut-off\njob.batch/gone\n") == (code, out)
    asked = {
        (entry.method, entry.path.partition("/v1/")[2].replace("namespaces/default/", ""))
        for entry in fake.requests()
    }
    assert {entry.status for entry in fake.requests()} <= {200, 201, 404}
    assert {
        ("GET", "jobs"),
        ("GET", "jobs/cut-off/status"),
        ("PATCH", "jobs/cut-off/status"),
        ("GET", "pods"),
        ("GET", "nodes/node1"),
        ("POST", "events"),
    } <= asked
    verbs = sum(len(rule["verbs"]) for rule in ROLE["rules"])
    assert verbs == len({(m, p.replace("gone", "cut-off")) for m, p in asked})


def test_a_node_that_may_not_be_read(at_home: Home, fake: FakeKube) -> None:
    """Counts as alive: its reporter may be, too."""
    fake.tokens.roles["person"] = tuple(r for r in RIGHTS if r.resources != ("nodes",))
    fake.create_pod(make_pod(fake.create_job(make_job("cut-off"))))
    fake.mark_pod_deleted("cut-off-x7k2p")

    assert (0, "") == at_home.run("reap")[:2]
    assert [] == fake.requests("PATCH")


def test_dry_run(at_home: Home, fake: FakeKube) -> None:
    """Says the same, and writes nothing."""
    fake.create_job(lost("one"))
    code, out, _ = at_home.run("reap", "--dry-run")

    assert (0, True) == (code, out.endswith("(final, dry run)\n"))
    assert [] == fake.requests("PATCH") + fake.requests("POST")


def test_data(at_home: Home, fake: FakeKube) -> None:
    """JSON and YAML are the same: what was written, and why others were left alone."""
    fake.create_job(lost("one"))
    fake.create_job(make_job("two", uid="2"))
    shown = json.loads(at_home.run("reap", "--dry-run", "-o", "json")[1])

    assert ("v1", "ReapedJobs", True) == (shown["api_version"], shown["kind"], shown["dry_run"])
    (one,) = shown["items"]
    assert ("one", "AdapterInterrupted", True, "N") == (
        one["name"],
        one["condition"]["reason"],
        one["condition"]["final"],
        one["condition"]["row"],
    )
    assert {"it has no Pod yet": 1} == shown["left_alone"]
    assert shown == yaml.safe_load(at_home.run("reap", "--dry-run", "-o", "yaml")[1])


@pytest.mark.parametrize(
    ("words", "names"),
    [
        ([], ["near", "other"]),
        (["-n", "far"], ["there"]),
        (["-A"], ["near", "other", "there"]),
        (["-l", "job-name=near"], ["near"]),
    ],
)
def test_which(at_home: Home, fake: FakeKube, words: list[str], names: list[str]) -> None:
    """Namespaces and labels, as for other commands."""
    for name, namespace in (("near", "default"), ("other", "default"), ("there", "far")):
        fake.create_job(lost(name, namespace))

    assert [f"job.batch/{name}" for name in names] == at_home.run("reap", "-o", "name", *words)[
        1
    ].split()


@pytest.mark.parametrize(("settle", "count"), [("20m", 1), ("1201s", 0)])
def test_settle(at_home: Home, fake: FakeKube, settle: str, count: int) -> None:
    """By the clock of the API server: ours may be years off, as here."""
    fake.create_job(lost("one"))
    at_home.run("reap", "--settle", settle)

    assert count == len(fake.requests("PATCH"))


def just_before(fake: FakeKube, method: str, path: str, act: Callable[[], object]) -> None:
    """Do something when the first such request has come, and before it is answered."""
    acts = [act]

    def once(entry: Entry) -> bool:
        if acts:
            acts.pop()()
        return False

    fake.fail(Reset(), method=method, path=path, where=once)


def test_somebody_writes_at_the_same_moment(at_home: Home, fake: FakeKube) -> None:
    """A conflict: look again. A verdict that came meanwhile stays."""
    result = verdicts.result(True, "AllChecked", "12 of 12")
    fake.create_job(lost("one"))
    two = fake.create_job(lost("two"))
    reported = with_verdicts(result, name="two", uid="uid-two", status=two["status"])
    counted = partial(fake.update_job, "one", lambda made: made["status"].update(failed=1))
    just_before(fake, "PATCH", "/one/", counted)
    just_before(fake, "PATCH", "/two/", partial(fake.update_job, "two", lambda _: reported))

    assert (0, "job.batch/one\n") == at_home.run("reap", "-o", "name")[:2]
    assert [409, 200, 409] == [entry.status for entry in fake.requests("PATCH")]
    assert ("N", "R") == (note(fake, "one")["rule"], note(fake, "two")["rule"])


def test_two_reapers(at_home: Home, fake: FakeKube) -> None:
    """One of them writes each, and neither complains."""
    for number in range(5):
        fake.create_job(lost(f"job-{number}"))
    with at_home.started("reap") as one, at_home.started("reap") as other:
        assert [0, 0] == [one.wait(60), other.wait(60)]

    assert 5 == sum(entry.status == 200 for entry in fake.requests("PATCH"))
    assert 5 == len(fake.events())


@pytest.mark.parametrize("moment", [("GET", "/pods"), ("GET", "/one/"), ("PATCH", "/one/")])
@pytest.mark.parametrize("again", [True, False])
def test_a_job_that_goes_away_meanwhile(
    at_home: Home, fake: FakeKube, moment: tuple[str, str], again: bool
) -> None:
    """Or that another one of that name replaces: no word about it, none on the new one."""
    fake.create_job(lost("one"))

    def replaced() -> None:
        fake.delete_job("one")
        if again:
            made = lost("one")
            made["metadata"]["uid"] = "another"
            fake.create_job(made)

    just_before(fake, *moment, replaced)

    assert (0, "") == at_home.run("reap")[:2]
    assert 200 not in {entry.status for entry in fake.requests("PATCH")}


def test_details_of_a_result_that_is_kept(at_home: Home, fake: FakeKube) -> None:
    """They stay with it; with another report they go."""
    key = "status-reporter.io/Available.details"
    for name, said in (
        ("kept", verdicts.result(True, "AllChecked", "12 of 12")),
        ("lost", verdicts.RUNNING),
    ):
        made = with_verdicts(said, final=False, name=name, uid=name, status={"conditions": [ENDED]})
        made["metadata"]["annotations"][key] = "{}"
        fake.create_job(made)
    code, _, _ = at_home.run("reap")

    assert (0, "R", "N") == (code, note(fake, "kept")["rule"], note(fake, "lost")["rule"])
    assert "{}" == fake.job("kept")["metadata"]["annotations"].get(key)
    assert key not in fake.job("lost")["metadata"]["annotations"]


def test_many_jobs(at_home: Home, fake: FakeKube) -> None:
    """Page by page; those with a final verdict cost no further request."""
    for number in range(250):
        fake.create_job(with_verdicts(verdicts.TIMEOUT, name=f"job-{number}", uid=str(number)))
    fake.create_job(lost("one"))
    code, _, err = at_home.run("reap")

    assert (0, True) == (
        code,
        "251 conditions checked, 1 written, 0 without a final verdict" in err,
    )
    assert 3 == len([e for e in fake.requests("GET", "/jobs") if e.path.endswith("/jobs")])
    assert 2 == len(fake.requests("GET", "/pods"))


def test_large_jobs(at_home: Home, fake: FakeKube) -> None:
    """A page that is too large is asked for again in smaller ones; nobody else's Job waits."""
    for number in range(3):
        made = lost(f"large-{number}")
        made["spec"]["template"]["spec"]["containers"][0]["args"] = ["x" * 1_450_000]
        fake.create_job(made)
    fake.create_job(lost("one", "zzz"))
    code, out, _ = at_home.run("reap", "-A", "-o", "name")

    assert (0, 4) == (code, len(out.splitlines()))


class TestTrouble:
    """What is not possible is said, and the exit code is 4."""

    @pytest.mark.parametrize("trouble", ["forbidden", "unreachable"])
    def test_no_list(self, at_home: Home, fake: FakeKube, trouble: str) -> None:
        """Nothing can be said."""
        fake.tokens.roles["person"] = ()
        where = ["--context", "nowhere"] if trouble == "unreachable" else []
        code, out, err = at_home.run("reap", *where)

        assert (4, "", 1) == (code, out, len(err.splitlines()))

    @pytest.mark.parametrize(
        ("status", "tries", "word"), [(403, 1, "denied"), (409, 5, "conflict")]
    )
    def test_one_job(
        self, at_home: Home, fake: FakeKube, status: int, tries: int, word: str
    ) -> None:
        """The others get what they need; a conflict may pass, but is not awaited for ever."""
        fake.create_job(lost("one"))
        fake.create_job(lost("two"))
        fake.fail(Answer(status), method="PATCH", path="/one/", times=None)
        code, out, err = at_home.run("reap", "-o", "name")

        assert (4, "job.batch/two\n") == (code, out)
        assert tries == len(fake.requests("PATCH", "/one/"))
        assert f"Job default/one could not be read or updated ({word})" in err

    def test_jobs_that_nobody_can_write(self, at_home: Home, fake: FakeKube) -> None:
        """However many: the API server is there, and the next Job gets its word."""
        for number in range(12):
            fake.create_job(lost(f"job-{number}", "a"))
        fake.create_job(lost("one", "zzz"))
        fake.fail(Answer(500), method="PATCH", path="/namespaces/a/", times=None)
        code, out, err = at_home.run("reap", "-A", "-o", "name")

        assert (4, "job.batch/one\n") == (code, out)
        assert 12 == err.count("could not be read or updated (unavailable)")

    def test_an_outage(self, at_home: Home, fake: FakeKube) -> None:
        """The pass is given up: the next one begins with what is."""
        for number in range(20):
            fake.create_job(lost(f"job-{number:02}"))
        listed: list[Entry] = []
        fake.fail(Reset(), times=None, where=lambda entry: bool(listed) or listed.append(entry))
        code, _, err = at_home.run("reap")

        assert (4, 5) == (code, len(fake.requests("GET", "/pods")))
        assert 1 == len(err.splitlines())

    @pytest.mark.parametrize(
        "words", [["x"], ["-o", "wide"], ["--metrics-port", "1"], ["--settle", "x"]]
    )
    def test_usage(self, home: Home, words: list[str]) -> None:
        """2."""
        assert 2 == home.run("reap", *words)[0]

    def test_ctrl_c(self, at_home: Home, fake: FakeKube) -> None:
        """130 soon, with a server that does not answer."""
        assert (130, b"", b"") == interrupted(at_home, fake, "reap")


def read(port: int, path: str) -> tuple[int, str]:
    """GET from the endpoint."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=60) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def test_watch(at_home: Home, fake: FakeKube) -> None:
    """Pass after pass, through an outage, until SIGTERM; it counts, and says that it lives."""
    fake.create_job(lost("one"))
    port = free_port()
    words = ("--watch", "--interval", "1s", "-o", "json", "--metrics-port", str(port))
    with at_home.started("reap", *words) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert "one" == json.loads(process.stdout.readline())["name"]
        outage = fake.fail(Answer(503), path="/jobs", times=None)
        assert b"trying again" in process.stderr.readline()
        outage.clear()
        fake.create_job(lost("two"))
        assert "two" == json.loads(process.stdout.readline())["name"]
        seen = len(fake.requests())
        fake.wait_for(lambda: len(fake.requests()) > seen + 4)
        status, page = read(port, "/metrics")
        lives, missing = read(port, "/livez"), read(port, "/other")[0]
        process.send_signal(signal.SIGTERM)
        assert 0 == process.wait(60)

    passes = [entry.time for entry in fake.requests("GET", "/jobs") if entry.path.endswith("/jobs")]
    assert all(later - earlier >= 1 for earlier, later in pairwise(passes))
    assert (200, (200, "ok\n"), 404) == (status, lives, missing)
    assert 'status_reporter_reaper_reports_total{reason="AdapterInterrupted"} 2.0' in page
    assert "status_reporter_reaper_last_pass_timestamp_seconds" in page
