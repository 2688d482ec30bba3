"""`status-ctl wait JOB...` against an API server: until when, with what exit code, what is seen."""

import json
import threading
from collections.abc import Callable
from typing import Any

import pytest

from tests import verdicts
from tests.blackbox.ctl.scripted import BOUND, Home, interrupt
from tests.fakekube import Answer, FakeKube, Hang, Rule, make_pod
from tests.verdicts import with_verdicts

GOOD = verdicts.result(True, "Fine", "12 of 12")
BAD = verdicts.result(False, "QuotaMissing", "no \x1b[2Jquota")
RUNNING = verdicts.RUNNING._replace(
    message="Adapter container cannot be observed; 3 of 10 completed"
)
COMPLETE = {"conditions": [{"type": "Complete", "status": "True"}]}
FAILED = {"conditions": [{"type": "Failed", "status": "True"}]}


def verdict(name: str, *reports: verdicts.Report, **more: Any) -> dict[str, Any]:
    """A Job of the user's with these words on it; only its first failure counts."""
    spec = {"backoffLimit": 0} | more.pop("spec", {})
    return with_verdicts(*reports, name=name, uid=f"uid-{name}", spec=spec, **more)


def asked(fake: FakeKube, name: str, count: int) -> None:
    """Return when this Job was asked for so often and answered."""
    fake.wait_for(
        lambda: (
            count
            <= sum(entry.status is not None for entry in fake.requests("GET", f"/jobs/{name}"))
        ),
        BOUND,
    )


class Meanwhile:
    """Something that happens to the API server while the command waits."""

    def __init__(self, act: Callable[[], object]) -> None:
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, args=(act,))

    def _run(self, act: Callable[[], object]) -> None:
        try:
            act()
        except BaseException as error:
            self._error = error

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._thread.join(BOUND)
        assert self._error is None, self._error


@pytest.mark.parametrize("written", ["job/one", "job.batch/one", "jobs.v1.batch/one"])
def test_a_job_that_is_decided_already(at_home: Home, fake: FakeKube, written: str) -> None:
    """One question, one line."""
    fake.create_job(verdict("one", GOOD))

    assert (0, "job.batch/one  Available=True  Fine: 12 of 12\n", "") == at_home.run(
        "wait", written
    )
    assert 1 == len(fake.requests())


@pytest.mark.parametrize(
    ("made", "code"),
    [
        (verdict("one", BAD), 1),
        (verdict("one", verdicts.INTERRUPTED), 1),
        (verdict("one", verdicts.TIMEOUT), 1),
        (verdict("one", BAD, spec={"backoffLimit": 6}, status=COMPLETE), 1),
        (verdict("one", BAD, spec={"backoffLimit": 6}, status=FAILED), 1),
    ],
    ids=["False", "Unknown", "a timeout", "the Job is complete", "the Job has failed"],
)
def test_a_failure_for_good(at_home: Home, fake: FakeKube, made, code: int) -> None:
    """1 at once, where kubectl wait would hang; nothing a terminal would obey."""
    fake.create_job(made)
    found, out, err = at_home.run("wait", "one")

    assert (code, "") == (found, err)
    assert out.startswith("job.batch/one  Available=")
    assert "\x1b" not in out


def test_a_job_that_does_not_exist_yet(at_home: Home, fake: FakeKube) -> None:
    """It is waited for, through its first words to the last."""

    def live() -> None:
        asked(fake, "one", 1)
        fake.create_job(verdict("one"))
        asked(fake, "one", 2)
        fake.update_job("one", lambda _: verdict("one", RUNNING, final=False))
        asked(fake, "one", 3)
        fake.update_job("one", lambda _: verdict("one", GOOD, final=False))
        asked(fake, "one", 4)
        fake.update_job("one", lambda _: verdict("one", GOOD))

    with Meanwhile(live):
        code, out, err = at_home.run("wait", "job/one")

    assert (0, "job.batch/one  Available=True  Fine: 12 of 12\n") == (code, out)
    assert [
        "status-ctl: job.batch/one: not found in namespace 'default' yet (-n for another one);"
        " waiting",
        "status-ctl: job.batch/one: Available=True Fine: 12 of 12 (not final: the adapter may run"
        " again); waiting",
    ] == err.splitlines()


def test_a_failure_that_another_pod_takes_back(at_home: Home, fake: FakeKube) -> None:
    """Each attempt's end is told, and the last one counts."""
    retried = {"backoffLimit": 6}
    fake.create_job(verdict("one", verdicts.TIMEOUT, spec=retried))

    def live() -> None:
        asked(fake, "one", 2)
        fake.update_job("one", lambda _: verdict("one", RUNNING, final=False, spec=retried))
        asked(fake, "one", 3)
        fake.update_job("one", lambda _: verdict("one", GOOD, spec=retried))

    with Meanwhile(live):
        code, out, err = at_home.run("wait", "one")

    assert (0, "job.batch/one  Available=True  Fine: 12 of 12\n") == (code, out)
    assert (
        "status-ctl: job.batch/one: Available=False AdapterTimeout: Adapter did not produce "
        "results within 5m0s (the Job may start another Pod); waiting\n"
    ) == err


def test_several_jobs(at_home: Home, fake: FakeKube) -> None:
    """Each verdict when it comes, once; 1 when one of them failed. A name said twice is one Job."""
    fake.create_job(verdict("two", BAD))

    def live() -> None:
        asked(fake, "three", 1)
        fake.create_job(verdict("three", GOOD))
        asked(fake, "three", 2)
        fake.create_job(verdict("one", GOOD))

    with Meanwhile(live):
        code, out, _ = at_home.run("wait", "one", "job/two", "three", "job/one", "-o", "name")

    assert (1, "job.batch/two\njob.batch/three\njob.batch/one\n") == (code, out)


def test_fail_fast(at_home: Home, fake: FakeKube) -> None:
    """The first failure ends it, whatever the others do."""
    fake.create_job(verdict("two", BAD))
    code, out, _ = at_home.run("wait", "one", "two", "--fail-fast", "-o", "name")

    assert (1, "job.batch/two\n") == (code, out)


def test_fail_fast_where_waiting_seldom_helps(at_home: Home, fake: FakeKube) -> None:
    """The reporter has waited for the image itself; Pods are not shown to us."""
    fake.tokens.roles["person"] = (Rule(("get",), ("jobs",)),)
    fake.create_job(verdict("one", verdicts.NOT_PULLED, final=False))
    code, out, _ = at_home.run("wait", "one", "two", "--fail-fast")

    assert 1 == code
    assert out.startswith("job.batch/one  Available=False  AdapterImagePullFailed: ")


@pytest.mark.parametrize(
    ("jobs", "code", "said"),
    [
        ([], 3, "timed out waiting for job.batch/one: does not exist"),
        ([verdict("one")], 3, "timed out waiting for job.batch/one: no condition yet"),
        (
            [verdict("one", RUNNING, final=False)],
            3,
            "timed out waiting for job.batch/one: Available=Unknown AdapterRunning: Adapter "
            "container cannot be observed; 3 of 10 completed",
        ),
        ([verdict("two", BAD)], 1, "timed out waiting for job.batch/one: does not exist"),
        ([verdict("two", GOOD)], 3, "timed out waiting for job.batch/one: does not exist"),
    ],
)
def test_the_time_is_over(at_home: Home, fake: FakeKube, jobs, code: int, said: str) -> None:
    """3, with what each one waits for; a failure that is known stays one."""
    for made in jobs:
        fake.create_job(made)
    names = {"one"} | {made["metadata"]["name"] for made in jobs}
    found, _, err = at_home.run("wait", *sorted(names), "--timeout", "1s")

    assert code == found
    assert f"status-ctl: {said}" == err.splitlines()[-1]


def test_the_time_is_over_while_nobody_answers(at_home: Home, fake: FakeKube) -> None:
    """A request in flight ends with it."""
    fake.fail(Hang(), times=None)
    code, _, err = at_home.run("wait", "job/one", "--timeout", "1s")

    assert 3 == code
    assert "(unavailable)" in err
    assert 2 >= len(fake.requests())


class TestCannotTell:
    """4."""

    @pytest.mark.parametrize("gone", ["deleted", "replaced"])
    def test_a_job_that_is_taken_away(self, at_home: Home, fake: FakeKube, gone: str) -> None:
        """The verdict it might have got never comes, and another Job's is not meant."""
        fake.create_job(verdict("one"))

        def live() -> None:
            asked(fake, "one", 1)
            with fake.store.changed:
                fake.delete_job("one")
                if gone == "replaced":
                    new = verdict("one", GOOD)
                    new["metadata"]["uid"] = "another"
                    fake.create_job(new)

        with Meanwhile(live):
            code, out, err = at_home.run("wait", "one")

        assert (4, "") == (code, out)
        assert f"status-ctl: job.batch/one was {gone} " in err

    def test_the_others_are_still_waited_for(self, at_home: Home, fake: FakeKube) -> None:
        """One is gone, one fails: that is a failure."""
        fake.create_job(verdict("one"))
        fake.create_job(verdict("two"))

        def live() -> None:
            asked(fake, "one", 1)
            fake.delete_job("one")
            asked(fake, "one", 2)
            fake.update_job("two", lambda _: verdict("two", BAD))

        with Meanwhile(live):
            code, out, _ = at_home.run("wait", "one", "two", "-o", "name")

        assert (1, "job.batch/two\n") == (code, out)

    @pytest.mark.parametrize("pods", [[], ["Failed"]], ids=["no Pod", "its Pod has ended"])
    def test_a_job_that_has_ended_without_a_verdict(
        self, at_home: Home, fake: FakeKube, pods: list[str]
    ) -> None:
        """Its reporter was killed together with it: nothing comes any more."""
        fake.create_job(verdict("one", RUNNING, final=False, status=FAILED))
        for phase in pods:
            fake.create_pod(make_pod(verdict("one"), phase=phase))
        code, out, err = at_home.run("wait", "one")

        assert (4, "") == (code, out)
        assert (
            "status-ctl: job.batch/one has ended without a final verdict (Available=Unknown "
            "AdapterRunning: Adapter container cannot be observed; 3 of 10 completed)\n"
        ) == err

    def test_a_job_whose_pod_is_still_ending(self, at_home: Home, fake: FakeKube) -> None:
        """The last word may come seconds after the Job's own end."""
        fake.create_job(verdict("one", RUNNING, final=False, status=FAILED))
        pod = make_pod(verdict("one"), phase="Running")
        fake.create_pod(pod)

        def live() -> None:
            asked(fake, "one", 3)
            with fake.store.changed:
                fake.update_job("one", lambda _: verdict("one", BAD, status=FAILED))
                fake.store.delete("Pod", "default", pod["metadata"]["name"])

        with Meanwhile(live):
            code, out, err = at_home.run("wait", "one", "-o", "name")

        assert (1, "job.batch/one\n", "") == (code, out, err)

    @pytest.mark.parametrize("trouble", ["forbidden", "token"])
    def test_not_allowed(self, at_home: Home, fake: FakeKube, trouble: str) -> None:
        """At once, in one line."""
        if trouble == "forbidden":
            fake.tokens.roles["person"] = ()
        else:
            fake.revoke(fake.read_token())
        code, out, err = at_home.run("wait", "one", "two")

        assert (4, "", 1) == (code, out, len(err.splitlines()))


def test_only_the_right_to_get_jobs_is_needed(at_home: Home, fake: FakeKube) -> None:
    """A CI account has little more."""
    fake.tokens.roles["person"] = (Rule(("get",), ("jobs",)),)
    fake.create_job(verdict("one", GOOD))

    assert 0 == at_home.run("wait", "one")[0]


def test_an_api_server_that_is_away_for_a_while(at_home: Home, fake: FakeKube) -> None:
    """It is asked again; the trouble is told once."""
    fake.create_job(verdict("one", GOOD))
    fake.fail(Answer(503), times=3)
    code, out, err = at_home.run("wait", "job/one", "-o", "name")

    assert (0, "job.batch/one\n", 1) == (code, out, len(err.splitlines()))
    assert "(unavailable)" in err


def test_every_form(at_home: Home, fake: FakeKube) -> None:
    """Data comes a line for each verdict, as it comes."""
    fake.create_job(verdict("one", GOOD))
    fake.create_job(verdict("two", GOOD, BAD))
    code, out, err = at_home.run("wait", "one", "two", "-o", "json")
    shown = [json.loads(line) for line in out.splitlines()]

    assert (1, "") == (code, err)
    assert [("one", "True", True), ("two", "True", True), ("two", "False", True)] == [
        (each["name"], each["condition"]["status"], each["condition"]["final"]) for each in shown
    ]
    _, out, _ = at_home.run("wait", "one", "-o", "yaml")
    assert out.startswith("---\ncondition:\n")
    _, out, _ = at_home.run("wait", "one", "-o", "wide")
    assert "job.batch/one  Available=True  Fine: 12 of 12 (row R, Pod one-x7k2p)\n" == out


def test_on_a_terminal(at_home: Home, fake: FakeKube) -> None:
    """A line tells what is waited for, fits, and is gone when the verdict stands there."""
    fake.create_job(verdict("one", RUNNING, final=False))

    def live() -> None:
        asked(fake, "one", 2)
        fake.update_job("one", lambda _: verdict("one", GOOD))

    with Meanwhile(live):
        code, out = at_home.terminal("wait", "one", columns=70)

    bar, _, last = out.rpartition("\r\x1b[K")
    assert (0, "job.batch/one  Available=\x1b[32mTrue\x1b[0m  Fine: 12 of 12\n") == (code, last)
    assert "\r\x1b[K0 of 1 decided; waiting for job.batch/one: Available=Unknown" in bar
    assert 70 > max(map(len, bar.replace("\x1b[K", "").split("\r")))


def test_ctrl_c(at_home: Home, fake: FakeKube) -> None:
    """130 at once, the line is gone."""
    told = []

    def seen(written: str, pid: int) -> None:
        if "0 of 1 decided" in written and not told:
            told.append(pid)
            interrupt(pid)

    code, out = at_home.terminal("wait", "one", seen=seen)

    assert 130 == code
    assert out.rstrip().endswith("\r\x1b[K")


@pytest.mark.parametrize(
    "words",
    [
        ["pod/one"],
        ["job/"],
        ["Not_A_Name"],
        ["../secrets"],
        ["job/one", "--for", "e2e"],
        ["job/one", "--delivery-only"],
        ["run/one", "two"],
        ["run/Not_A_Name"],
        ["one", "--url", "http://127.0.0.1:1"],
        ["one", "two", "-A"],
        ["job/one", "-A"],
    ],
)
def test_usage(home: Home, words: list[str]) -> None:
    """2, before anything is asked."""
    code, out, err = home.run("wait", *words)

    assert (2, "") == (code, out)
    assert "error: " in err
