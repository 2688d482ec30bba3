"""`status-ctl inject` and `uninject` from the outside: output, report, exit code."""

import json
from pathlib import Path

import pytest
import yaml

from tests import forked

ROOT = Path(__file__).resolve().parents[3]
STATUS_CTL = [str(ROOT / "cmd" / "status-ctl.py")]
BOUND = 60.0
JOB = """\
apiVersion: batch/v1
kind: Job
metadata:
  name: greeting  # its name
spec:
  template:
    spec:
      automountServiceAccountToken: false
      restartPolicy: Never
      containers:
        - name: main
          image: busybox
"""
OTHER = "# not ours\nkind: ConfigMap\ndata: {a:   1}\n"


def ctl(*arguments, data=""):
    done = forked.run(
        [*STATUS_CTL, *arguments], input=data.encode(), capture_output=True, timeout=BOUND
    )
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def test_a_stream_is_passed_on_with_the_reporter_in_its_jobs():
    """The rest byte for byte; what was done is reported; twice is once; back is the original."""
    stream = f"{OTHER}---\n{JOB}"

    code, once, report = ctl("inject", "-f", "-", "--image", "i:1", data=stream)

    assert (0, True) == (code, once.startswith(f"{OTHER}---\n"))
    _, job = yaml.safe_load_all(once)
    assert "i:1" == job["spec"]["template"]["spec"]["initContainers"][0]["image"]
    assert [
        "status-ctl: job.batch/greeting: injected (native form, adapter main)",
        "  waits 300 s for a result: set --env MAX_WAIT_TIME_SECONDS if it may take longer",
        "status-ctl: every container with a token of a Job's account can write the verdict of any "
        "Job in the namespace: give these Jobs their own account, and use --own-token-only (or "
        "automountServiceAccountToken: false) unless their containers need the API",
    ] == report.splitlines()
    assert (0, once) == ctl("inject", "-f", "-", "--image", "i:1", data=once)[:2]
    assert (0, stream, "status-ctl: job.batch/greeting: uninjected\n") == ctl(
        "uninject", "-f", "-", data=once
    )


def test_check_tells_whether_something_would_change(tmp_path):
    """For pipelines: nothing is written but the report."""
    file = tmp_path / "job.yaml"
    file.write_text(JOB)

    code, out, report = ctl("inject", "--check", "-f", str(file))

    assert (1, "") == (code, out)
    assert f"{file}: line 1: job.batch/greeting: injected" in report
    file.write_text(ctl("inject", "-f", str(file))[1])
    assert (0, "") == ctl("inject", "--check", "-f", str(file))[:2]


def test_a_wrong_label_is_refused():
    """A typing error must not cost a verdict: `kubectl kustomize . | status-ctl inject --check`."""
    wrong = JOB.replace("  name: g", "  labels: {status-reporter.io/inject: natve}\n  name: g")

    code, out, report = ctl("inject", "-f", "-", data=wrong)

    assert (1, wrong) == (code, out)
    assert "not injected: label status-reporter.io/inject=natve must be native" in report


def test_only_jobs_that_are_selected():
    """Nothing is said of the others."""
    arguments = ("inject", "--check", "-l", "status-reporter.io/inject", "-f", "-")

    assert (0, "", "status-ctl: no Jobs found\n") == ctl(*arguments, data=JOB)


def test_a_directory_with_what_is_below_it(tmp_path):
    """As one stream, in the order of names; what is hidden or no manifest is left out."""
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "job.yml").write_text(JOB)
    (tmp_path / "a.yaml").write_text(OTHER.rstrip("\n"))
    (tmp_path / ".hidden.yaml").write_text(JOB)
    (tmp_path / "notes.txt").write_text(JOB)

    code, out, report = ctl("inject", "-f", str(tmp_path))

    assert (0, 1) == (code, report.count("injected"))
    assert out.startswith(f"{OTHER}---\napiVersion: batch/v1\nkind: Job\n")


def test_rights_for_each_account_are_added_once_and_taken_away():
    """No account depends on another's; nothing comes that is in the stream already."""
    mine = JOB.replace(
        "    spec:\n      auto", "    spec:\n      serviceAccountName: mine\n      auto"
    )
    stream = f"{mine}---\n{JOB.replace('name: g', 'namespace: n' + chr(10) + '  name: g')}".rstrip()

    code, once, _ = ctl("inject", "--with-rbac", "-f", "-", data=stream)

    rights = [each for each in yaml.safe_load_all(once) if each["kind"] != "Job"]
    assert 0 == code
    assert [
        ("Role", None, "status-reporter-mine"),
        ("Role", "n", "status-reporter-default"),
        ("RoleBinding", None, "status-reporter-mine"),
        ("RoleBinding", "n", "status-reporter-default"),
    ] == [(r["kind"], r["metadata"].get("namespace"), r["metadata"]["name"]) for r in rights]
    assert once == ctl("inject", "--with-rbac", "-f", "-", data=once)[1]
    assert stream == ctl("uninject", "-f", "-", data=once)[1]


def test_a_token_and_a_cpu_limit_for_the_reporter_are_taken_away_with_it():
    stream = JOB.replace("      automountServiceAccountToken: false\n", "")
    options = ("--own-token-only", "--cpu-limit", "500m")

    code, once, _ = ctl("inject", *options, "-f", "-", data=stream)

    pod = yaml.safe_load(once)["spec"]["template"]["spec"]
    assert (0, False) == (code, pod["automountServiceAccountToken"])
    assert "500m" == pod["initContainers"][0]["resources"]["requests"]["cpu"]
    assert once == ctl("inject", *options, "-f", "-", data=once)[1]
    assert stream == ctl("uninject", "-f", "-", data=once)[1]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "-f"),
        (("-f", "-", "--results-path", "r.json"), "--results-path"),
        (("-f", "-", "--results-path", "/r.json"), "--results-path"),
        (("-f", "-", "--env", "A"), "must be NAME=VALUE"),
        (("-f", "-", "--env", "JOB_NAME=x"), "set by inject itself"),
        (("-f", "-", "--env", "MAX_WAIT_TIME_SECONDS=soon"), "MAX_WAIT_TIME_SECONDS"),
        (("-f", "-", "--env", "METRICS_PORT=many"), "METRICS_PORT"),
        (("-f", "-", "--aggregator", "https://x"), "--aggregator"),
        (("-f", "-", "-l", "a in"), "--selector"),
        (("-f", "-", "--cpu-limit", "half"), "--cpu-limit"),
        (("-f", "-", "--cpu-limit", "0"), "--cpu-limit"),
        (("-f", "/nowhere"), "cannot read /nowhere: No such file or directory"),
    ],
)
def test_wrong_usage(arguments, said):
    """One line, exit code 2, no output."""
    code, out, err = ctl("inject", *arguments)

    assert (2, "") == (code, out)
    assert said in err


def test_what_is_no_text_cannot_be_read(tmp_path):
    """Told with its line; a directory without manifests likewise."""
    (tmp_path / "x.yaml").write_bytes(b"a: 1\nb: \xff\n")
    (tmp_path / "empty").mkdir()

    assert (2, "", f"status-ctl: cannot read {tmp_path}/x.yaml: line 2: not UTF-8\n") == ctl(
        "inject", "-f", str(tmp_path / "x.yaml")
    )
    assert 2 == ctl("inject", "-f", str(tmp_path / "empty"))[0]


def test_variables_that_are_no_settings():
    """A typing error is shown; a Service's address is no port, as in the reporter itself."""
    link = "METRICS_PORT=tcp://10.0.0.1:9090"

    code, out, report = ctl(
        "inject", "-f", "-", "--env", "MAX_WAIT_TIME=60", "--env", link, data=JOB
    )

    reporter = yaml.safe_load(out)["spec"]["template"]["spec"]["initContainers"][0]
    given = {each["name"]: each.get("value") for each in reporter["env"]}
    assert (0, "60", False) == (code, given["MAX_WAIT_TIME"], "METRICS_PORT" in given)
    assert "ports" not in reporter
    assert "--env MAX_WAIT_TIME: not a setting of the reporter" in report
    assert "--env METRICS_PORT='tcp://10.0.0.1:9090': set by Kubernetes for a Service" in report


def test_json_stays_json():
    """As `kubectl get -o json` writes it, and as it was afterwards."""
    text = json.dumps(yaml.safe_load(JOB), indent=4) + "\n"

    _, once, _ = ctl("inject", "-f", "-", data=text)

    assert "initContainers" in json.loads(once)["spec"]["template"]["spec"]
    assert text == ctl("uninject", "-f", "-", data=once)[1]


def test_a_document_that_is_no_yaml_is_passed_on_and_told():
    """The Job after it gets its reporter."""
    code, out, report = ctl("inject", "-f", "-", data=f"kind: Job\n  a: [\n---\n{JOB}")

    assert (1, True) == (code, out.startswith("kind: Job\n  a: [\n---\n"))
    assert "the document: unchanged: invalid YAML" in report
    assert "job.batch/greeting: injected" in report
