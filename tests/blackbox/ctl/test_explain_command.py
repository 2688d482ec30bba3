"""`status-ctl explain` against an API server, with a person's rights."""

import json

import pytest
import yaml

from tests import verdicts
from tests.blackbox.ctl.cluster import kubeconfig
from tests.blackbox.ctl.scripted import Home, interrupted
from tests.fakekube import Answer, FakeKube, Rule, make_job, make_pod, running, terminated, waiting
from tests.verdicts import with_verdicts

JOB_UID = make_job()["metadata"]["uid"]
TRACEBACK = b"""begin
Traceback (most recent call last):
  File "check.py", line 7, in <module>
    raise ValueError("no quota")
    ~~~~~^^^
ValueError: no quota
"""


def add_event(fake: FakeKube, reason: str, message: str, uid: str, name: str = "validate") -> None:
    fake.store.create(
        "Event",
        {
            "metadata": {"name": f"{reason}.1".lower()},
            "involvedObject": {"uid": uid, "name": name},
            "reason": reason,
            "message": message,
            "lastTimestamp": "2030-01-01T12:05:00Z",
        },
    )


@pytest.fixture
def pending(fake: FakeKube) -> None:
    """A Job whose adapter has no image, and whose reporter says so."""
    details = {
        "adapter": {"container": "adapter", "restarts": 0, "state": "waiting"},
        "waitedSeconds": 12,
    }
    trouble = verdicts.NOT_PULLED
    fake.create_job(with_verdicts(trouble, final=False, details=details))
    pod = make_pod(make_job(), phase="Pending", adapter_state=waiting("ImagePullBackOff", "later"))
    fake.create_pod(pod)
    fake.fail(Answer(body=b""), path="/log", times=None)
    said = 'Failed to pull image "x": no such manifest'
    add_event(fake, "Failed", said, pod["metadata"]["uid"], pod["metadata"]["name"])


TEXT = """\
Job default/validate

problem: Available=False AdapterImagePullFailed: ErrImagePull: not found (may still change)
         - waited 12 s; seen at  in Pod validate-x7k2p
         - Failed: Failed to pull image "x": no such manifest
         What to do: Check the image's name and tag, that the registry can be reached from the \
node, and imagePullSecrets.
"""


CRON = {"kind": "CronJob", "name": "nightly", "uid": "cron-uid"}


def add_cron_job(fake: FakeKube, **spec) -> None:
    fake.tokens.roles["person"] = (
        Rule(("get", "list"), ("pods", "jobs", "cronjobs", "events", "pods/log")),
    )
    metadata = {"name": "nightly", "uid": "cron-uid"}
    fake.store.create("CronJob", {"metadata": metadata, "spec": {"schedule": "@daily"} | spec})


def add_run(fake: FakeKube, day: int, *reports: verdicts.Report, owner=CRON, **more) -> None:
    made = with_verdicts(
        *reports, name=f"nightly-{day}", uid=f"uid-{day}", spec={"backoffLimit": 0}, **more
    )
    made["metadata"] |= {
        "ownerReferences": [owner],
        "creationTimestamp": f"2030-01-{day:02}T00:00:00Z",
    }
    fake.create_job(made)


class TestCronJob:
    """The last runs of a CronJob."""

    def test_the_runs_and_the_newest_one(self, at_home: Home, fake: FakeKube) -> None:
        """Newest first, its own only, at most five; what failed last is explained."""
        add_cron_job(fake)
        good = verdicts.result(True, "Fine", "12 of 12")
        for day in range(1, 7):
            add_run(fake, day, good)
        add_run(fake, 7, verdicts.TIMEOUT)
        add_run(fake, 8, good, owner=CRON | {"uid": "another"})
        code, out, err = at_home.run("explain", "cronjob/nightly")
        runs, _, last = out.partition("\n\nJob default/nightly-7\n\n")

        assert (0, "") == (code, err)
        assert [
            "CronJob default/nightly",
            "",
            "problem: Job nightly-7 of 2030-01-07T00:00:00Z: Available=False AdapterTimeout: "
            "Adapter did not produce results within 5m0s",
            *(
                f"info:    Job nightly-{day} of 2030-01-{day:02}T00:00:00Z: Available=True Fine: "
                "12 of 12"
                for day in (6, 5, 4, 3)
            ),
        ] == runs.splitlines()
        assert "What to do: Check whether the adapter hangs" in last

    def test_a_good_run_needs_no_explanation(self, at_home: Home, fake: FakeKube) -> None:
        """One line; in JSON there is none for the last."""
        add_cron_job(fake, suspend=True)
        add_run(fake, 1, verdicts.result(True, "Fine"))
        code, out, _ = at_home.run("explain", "cj/nightly", "-o", "json")
        document = json.loads(out)

        assert (0, "CronJobExplanation", None) == (code, document["kind"], document["last"])
        assert ["cron-suspended", "run"] == [each["code"] for each in document["findings"]]
        assert (0, "cron-suspended\nrun\n", "") == at_home.run(
            "explain", "cronjob/nightly", "-o", "name"
        )

    def test_there_is_none(self, at_home: Home, fake: FakeKube) -> None:
        """4, in its own words; also without the right."""
        add_cron_job(fake)

        assert (
            4,
            "",
            "status-ctl: no CronJob 'x' in namespace 'default': it was deleted or is in another "
            "namespace (-n)\n",
        ) == at_home.run("explain", "cronjob/x")
        fake.tokens.roles["person"] = ()
        assert 4 == at_home.run("explain", "cronjob/nightly")[0]


class TestExplain:
    """One Job."""

    @pytest.mark.parametrize("name", ["validate", "job/validate", "jobs.batch/validate"])
    def test_what_happened_and_what_to_do(self, at_home: Home, pending, name: str) -> None:
        """The name is taken as other commands print it."""
        assert (0, TEXT, "") == at_home.run("explain", name)

    def test_every_form(self, at_home: Home, pending) -> None:
        """JSON and YAML with their version, codes by name; on a terminal in colour."""
        code, out, err = at_home.run("explain", "validate", "-o", "json")
        shown = json.loads(out)
        assert (0, "", "v1", "Explanation") == (code, err, shown["api_version"], shown["kind"])
        assert ["verdict"] == [found["code"] for found in shown["findings"]]
        assert {"namespace": "default", "name": "validate", "uid": JOB_UID} == shown["job"]
        assert shown == yaml.safe_load(at_home.run("explain", "validate", "-o", "yaml")[1])
        assert (0, "verdict\n", "") == at_home.run("explain", "validate", "-o", "name")
        assert (0, TEXT, "") == at_home.run("explain", "validate", "-o", "wide")
        code, out = at_home.terminal("explain", "validate")
        assert (0, TEXT) == (code, out.replace("\x1b[31m", "").replace("\x1b[0m", ""))
        assert "\x1b[31mproblem: \x1b[0m" in out
        assert (0, TEXT) == at_home.terminal("explain", "validate", "--no-color")

    def test_the_log_tells_of_missing_rights(self, at_home: Home, fake: FakeKube) -> None:
        """Nobody else would say why there is no condition."""
        fake.create_job(make_job())
        fake.create_pod(make_pod(make_job()))
        line = b'{"message":"Request failed","failure":"forbidden","error":"403 Forbidden"}\n'
        fake.fail(Answer(body=line), path="/log", times=None)
        code, out, _ = at_home.run("explain", "validate")

        assert 0 == code
        assert "The reporter lacks permissions" in out
        assert "- Request failed: 403 Forbidden\n" in out
        (asked,) = fake.requests("GET", "/log")
        assert "status-reporter" == asked.query["container"]

    def test_the_log_tells_why_the_last_word_is_missing(
        self, at_home: Home, fake: FakeKube
    ) -> None:
        """Also where the first one is there; after the last one nobody asks for it."""
        fake.create_job(with_verdicts(verdicts.RUNNING, final=False))
        pod = make_pod(make_job())
        fake.create_pod(pod)
        line = {"message": "Request failed", "level": "warning", "request": "job"}
        line |= {"failure": "refused", "error": "admission webhook denied the request"}
        fake.fail(Answer(body=json.dumps(line).encode()), path="/log", times=None)
        _, out, _ = at_home.run("explain", "validate")

        assert "could not write to the Job.\n" in out
        assert "- Request failed: admission webhook denied the request\n" in out
        fake.update_job("validate", lambda _: with_verdicts(verdicts.TIMEOUT))
        asked = len(fake.requests("GET", "/log"))
        assert "could not write" not in at_home.run("explain", "validate")[1]
        containers = [each.query["container"] for each in fake.requests("GET", "/log")]
        assert ["adapter"] == containers[asked:]

    @pytest.mark.parametrize(
        ("answer", "said"),
        [
            (Answer(body=b"a\n\nb\nc\n\x1b[31md\ne\nf\n"), ["b", "c", "[31md", "e", "f"]),
            (Answer(body=TRACEBACK), ["begin", "ValueError: no quota"]),
            (Answer(body=b"unable to retrieve container logs for containerd://1"), ["its end"]),
            (Answer(body=b""), []),
            (Answer(404), ["its end"]),
            (Answer(400), ["its end"]),
        ],
    )
    def test_the_last_lines_of_the_adapter(
        self, at_home: Home, fake: FakeKube, answer: Answer, said: list[str]
    ) -> None:
        """Five of them; those of its status where the container has gone."""
        fake.create_job(with_verdicts(verdicts.result(False, "QuotaMissing")))
        fake.create_pod(make_pod(make_job(), adapter_state=terminated(1, message="its end")))
        fake.fail(answer, path="/log", times=None)
        code, out, err = at_home.run("explain", "validate")
        shown = [each.partition("- log: ")[2] for each in out.splitlines() if "- log: " in each]

        assert (0, "", said) == (code, err, shown)

    def test_an_adapter_that_prints_long_lines(self, at_home: Home, fake: FakeKube) -> None:
        """JSON, say; the last line is what people look for."""
        fake.create_job(with_verdicts(verdicts.result(False, "QuotaMissing")))
        fake.create_pod(pod := make_pod(make_job(), adapter_state=terminated(1)))
        printed = b"".join(b"%03d %s\n" % (at, b"x" * 5000) for at in range(99)) + b"no quota\n"
        fake.store.logs["default", pod["metadata"]["name"], "adapter"] = printed
        out = at_home.run("explain", "validate")[1]

        assert ["no quota"] == [
            each.partition("- log: ")[2] for each in out.splitlines() if "- log: " in each
        ]

    @pytest.mark.parametrize("state", [waiting("CrashLoopBackOff"), running()])
    def test_an_adapter_that_is_run_again(self, at_home: Home, fake: FakeKube, state) -> None:
        """The run that the verdict is about tells why."""
        fake.create_job(with_verdicts(verdicts.TIMEOUT))
        states = {"adapter_state": state, "last_state": terminated(1)}
        fake.create_pod(make_pod(make_job(), restarts=3, **states))
        fake.fail(Answer(body=b"no quota\n"), path="/log", times=None)

        assert "- log: no quota\n" in at_home.run("explain", "validate")[1]
        (asked,) = fake.requests("GET", "/log")
        assert ("adapter", "true") == (asked.query["container"], asked.query["previous"])

    @pytest.mark.parametrize("status", [403, 500, 502])
    def test_the_log_of_the_adapter_cannot_be_read(
        self, at_home: Home, fake: FakeKube, status: int
    ) -> None:
        """Not allowed, or the node does not answer."""
        fake.create_job(with_verdicts(verdicts.TIMEOUT))
        fake.create_pod(make_pod(make_job()))
        fake.fail(Answer(status), path="/log", times=None)

        assert "The adapter's log could not be read: " in at_home.run("explain", "validate")[1]

    def test_the_log_tells_of_a_broken_link(self, at_home: Home, fake: FakeKube) -> None:
        """The Job has its verdict, and the aggregator has not."""
        fake.create_job(with_verdicts(verdicts.TIMEOUT))
        pod = make_pod(make_job())
        reporter = pod["spec"]["initContainers"][0]
        reporter.setdefault("env", []).append({"name": "AGGREGATOR_URL", "value": "https://x"})
        fake.create_pod(pod)
        line = {"message": "Not delivered to the aggregator in time", "level": "error"}
        fake.fail(Answer(body=json.dumps(line).encode()), path="/log", times=None)
        _, out, _ = at_home.run("explain", "validate")

        assert "has problems with the link to the aggregator" in out
        assert "- Not delivered to the aggregator in time\n" in out

    def test_what_may_not_be_read_is_said(self, at_home: Home, fake: FakeKube) -> None:
        """The Job is enough to begin with."""
        fake.create_job(with_verdicts(verdicts.TIMEOUT))
        fake.tokens.roles["person"] = (Rule(("get",), ("jobs",)),)
        code, out, err = at_home.run("explain", "validate")

        assert (0, "") == (code, err)
        assert "Adapter did not produce results within 5m0s" in out
        assert "The pods could not be read: " in out
        assert "The events could not be read: " in out

    @pytest.mark.parametrize(
        ("trouble", "words"),
        [
            ("absent", "no Job 'validate' in namespace 'default': it was deleted or"),
            ("forbidden", "(forbidden)"),
            ("unreachable", "(unavailable)"),
            ("token", "(unauthorized)"),
        ],
    )
    def test_no_job(self, at_home: Home, fake: FakeKube, trouble: str, words: str) -> None:
        """4, one line."""
        where = ["--context", "nowhere"] if trouble == "unreachable" else []
        if trouble == "forbidden":
            fake.tokens.roles["person"] = ()
        elif trouble == "token":
            kubeconfig(at_home.folder / ".kube" / "config", fake, token="old")
        code, out, err = at_home.run("explain", "validate", *where)

        assert (4, "") == (code, out)
        assert words in err
        assert 1 == len(err.splitlines())

    def test_no_cluster(self, home: Home) -> None:
        """4: it says where a kubeconfig was looked for."""
        code, out, err = home.run("explain", "validate")

        assert (4, "") == (code, out)
        assert "no kubeconfig at ~/.kube/config" in err

    @pytest.mark.parametrize("words", [[], ["a", "b"], ["job/"], ["a", "-A"]])
    def test_usage(self, home: Home, words: list[str]) -> None:
        """2."""
        code, out, err = home.run("explain", *words)

        assert (2, "") == (code, out)
        assert "error: " in err

    def test_ctrl_c(self, at_home: Home, fake: FakeKube) -> None:
        """130 at once, with a server that does not answer."""
        assert (130, b"", b"") == interrupted(at_home, fake, "explain", "x")
