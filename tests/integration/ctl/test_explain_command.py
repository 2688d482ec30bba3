"""`status-ctl explain` and `jobs` against an API server, with a person's rights."""

import json
import re

import pytest
import yaml

from reporter.core import rows
from reporter.core.condition import Attempt
from reporter.wire.annotation import encode_note
from tests.fakekube import Answer, FakeKube, Rule, make_job, make_pod, waiting
from tests.integration.ctl.cluster import kubeconfig
from tests.integration.ctl.scripted import Home

JOB_UID = make_job()["metadata"]["uid"]


def judged(name: str, report: rows.Report, *, final: bool = True, **fields):
    """A Job with that verdict."""
    made = make_job(name, **fields)
    made["metadata"]["annotations"] = {
        "status-reporter.io/Available": encode_note(
            Attempt(f"{name}-x7k2p", "uid", 1.9e9, 1.9e9),
            report,
            {
                "adapter": {"container": "adapter", "restarts": 0, "state": "waiting"},
                "waitedSeconds": 12,
            },
            final=final,
        )
    }
    made["status"]["conditions"] = [
        {
            "type": "Available",
            "status": report.status,
            "reason": report.reason,
            "message": report.message,
            "lastTransitionTime": "2020-01-01T12:00:30Z",
        }
    ]
    return made


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
    fake.create_job(judged("validate", rows.trouble("W1", "ErrImagePull: not found"), final=False))
    pod = make_pod(make_job(), phase="Pending", adapter_state=waiting("ImagePullBackOff", "later"))
    fake.create_pod(pod)
    fake.fail(Answer(body=b""), path="/log", times=None)
    said = 'Failed to pull image "x": no such manifest'
    add_event(fake, "Failed", said, pod["metadata"]["uid"], pod["metadata"]["name"])


TEXT = """\
Job default/validate

problem: Available=False AdapterImagePullFailed: ErrImagePull: not found (may still change)
         - adapter 'adapter': waiting
         - waited 12 s; seen at  in Pod validate-x7k2p
         - Failed: Failed to pull image "x": no such manifest
         What to do: Check the image's name and tag, that the registry can be reached from the \
node, and imagePullSecrets.
"""


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
        fake.create_job(judged("validate", rows.running(None, None), final=False))
        pod = make_pod(make_job())
        fake.create_pod(pod)
        line = {"message": "Request failed", "level": "warning", "request": "job"}
        line |= {"failure": "refused", "error": "admission webhook denied the request"}
        fake.fail(Answer(body=json.dumps(line).encode()), path="/log", times=None)
        _, out, _ = at_home.run("explain", "validate")

        assert "could not write to the Job.\n" in out
        assert "- Request failed: admission webhook denied the request\n" in out
        fake.update_job("validate", lambda _: judged("validate", rows.timeout(300)))
        asked = len(fake.requests("GET", "/log"))
        assert "could not write" not in at_home.run("explain", "validate")[1]
        assert asked == len(fake.requests("GET", "/log"))

    def test_the_log_tells_of_a_broken_link(self, at_home: Home, fake: FakeKube) -> None:
        """The Job has its verdict, and the aggregator has not."""
        fake.create_job(judged("validate", rows.timeout(300)))
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
        fake.create_job(judged("validate", rows.timeout(300)))
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


@pytest.fixture
def several(fake: FakeKube) -> None:
    """Jobs of all sorts in two namespaces."""
    fake.create_job(judged("bad", rows.timeout(300), uid="1"))
    fake.create_job(judged("good", rows.result(rows.ResultPayload(True, "Fine", "好")), uid="2"))
    fake.create_job(make_job("new", uid="3"))
    foreign = make_job("foreign", uid="4")
    foreign["spec"]["template"]["spec"].pop("initContainers")
    fake.create_job(foreign)
    fake.create_job(judged("far", rows.out_of_memory(), uid="5", namespace="other"))


class TestJobs:
    """All Jobs."""

    def test_the_table(self, at_home: Home, several) -> None:
        """Those with a verdict, those with a reporter, and no others."""
        code, out, err = at_home.run("jobs")
        lines = [line.split() for line in out.splitlines()]

        assert (0, "") == (code, err)
        assert ["NAME", "CONDITION", "STATUS", "SINCE", "REASON", "FINAL", "MESSAGE"] == lines[0]
        assert ["bad", "good", "new"] == [line[0] for line in lines[1:]]
        bad = lines[1]
        assert ["bad", "Available", "False"] == bad[:3]
        assert re.fullmatch("[0-9]+[smhd].*", bad[3])
        assert ["AdapterTimeout", "yes"] == bad[4:6]
        assert ["no", "condition", "yet"] == lines[3][-3:]

    def test_all_namespaces_and_wide(self, at_home: Home, several) -> None:
        """With the namespace first, row and Pod."""
        _, out, _ = at_home.run("jobs", "-A", "-o", "wide")
        lines = [line.split() for line in out.splitlines()]

        assert "NAMESPACE" == lines[0][0]
        assert ["default"] * 3 + ["other"] == [line[0] for line in lines[1:]]
        assert ["O", "far-x7k2p"] == lines[4][7:9]

    @pytest.mark.parametrize(
        ("words", "names"),
        [
            ([], ["bad", "good", "new"]),
            (["-n", "other"], ["far"]),
            (["-l", "job-name=bad"], ["bad"]),
        ],
    )
    def test_names(self, at_home: Home, several, words, names) -> None:
        """As kubectl takes them."""
        expected = "".join(f"job.batch/{name}\n" for name in names)

        assert (0, expected, "") == at_home.run("jobs", "-o", "name", *words)

    def test_two_of_one_name(self, at_home: Home, fake: FakeKube) -> None:
        """Jobs of two namespaces are two."""
        for number, namespace in enumerate(("default", "other")):
            fake.create_job(make_job("same", uid=f"s{number}", namespace=namespace))

        assert (0, "job.batch/same\n" * 2, "") == at_home.run("jobs", "-A", "-o", "name")

    def test_data(self, at_home: Home, several) -> None:
        """JSON and YAML are the same; a Job without a condition has null."""
        _, out, _ = at_home.run("jobs", "-o", "json")
        shown = json.loads(out)

        assert ("v1", "Jobs") == (shown["api_version"], shown["kind"])
        assert [("bad", True), ("good", True), ("new", None)] == [
            (item["name"], item["condition"] and item["condition"]["final"])
            for item in shown["items"]
        ]
        assert shown == yaml.safe_load(at_home.run("jobs", "-o", "yaml")[1])

    def test_on_a_terminal(self, at_home: Home, several) -> None:
        """Status in colour; the message is cut to the line."""
        _, out = at_home.terminal("jobs", columns=70)

        assert "\x1b[31mFalse\x1b[0m" in out
        assert "\x1b[32mTrue\x1b[0m" in out
        assert 70 >= max(
            map(len, at_home.terminal("jobs", "--no-color", columns=70)[1].split("\n"))
        )

    def test_none(self, at_home: Home) -> None:
        """0: that is an answer; data stays data."""
        assert (0, "", "status-ctl: no Job in namespace 'default' has a status reporter\n") == (
            at_home.run("jobs")
        )
        assert '"items": []' in at_home.run("jobs", "-o", "json")[1]

    @pytest.mark.parametrize("count", [300, pytest.param(2000, marks=pytest.mark.long)])
    def test_many_jobs(self, at_home: Home, fake: FakeKube, count: int) -> None:
        """Page by page, one row each."""
        for number in range(count):
            fake.create_job(judged(f"job-{number:04}", rows.timeout(300), uid=str(number)))
        code, out, _ = at_home.run("jobs", "-o", "name")

        assert (0, count) == (code, len(set(out.split())))
        assert count // 100 == len(fake.requests("GET", "/jobs"))

    @pytest.mark.parametrize("trouble", ["forbidden", "unreachable"])
    def test_cannot_tell(self, at_home: Home, fake: FakeKube, trouble: str) -> None:
        """4."""
        fake.tokens.roles["person"] = ()
        where = ["--context", "nowhere"] if trouble == "unreachable" else []
        code, out, err = at_home.run("jobs", *where)

        assert (4, "") == (code, out)
        assert 1 == len(err.splitlines())

    @pytest.mark.parametrize("words", [["x"], ["-o", "xml"], ["-n"]])
    def test_usage(self, home: Home, words: list[str]) -> None:
        """2."""
        assert 2 == home.run("jobs", *words)[0]

    @pytest.mark.parametrize("command", [["jobs"], ["explain", "x"]])
    def test_ctrl_c(self, at_home: Home, fake: FakeKube, command: list[str]) -> None:
        """130 at once, with a server that does not answer."""
        from tests.fakekube import Hang

        fake.fail(Hang(), times=None)
        with at_home.started(*command) as process:
            fake.wait_for(lambda: fake.journal)
            process.send_signal(2)
            out, err = process.communicate(timeout=30)

        assert (130, b"", b"") == (process.returncode, out, err)
