"""`status-ctl lint`, from the outside: files in, findings out, in every form."""

import json
from pathlib import Path

import pytest
import yaml

from reporter.lint.rules import RULES
from tests.blackbox.ctl.scripted import Home
from tests.fakekube import FakeKube, Rule
from tests.unit.lint.manifests import all_of, env, job, job_set, own, pod, pod_of, spec

LATE = spec(activeDeadlineSeconds=240)


def write(folder: Path, name: str, *objects: dict) -> Path:
    """Write a file of several documents."""
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("---\n".join(yaml.safe_dump(each, sort_keys=False) for each in objects))
    return path


def broken(*changes) -> dict:
    """A Job with these mistakes."""
    value = job()
    all_of(*changes)(value)
    return value


def test_nothing_is_wrong(home: Home) -> None:
    """Nothing on standard output; other kinds are skipped."""
    write(home.folder, "job.yaml", {"kind": "Service", "apiVersion": "v1"}, job())

    assert (0, "", "status-ctl: 1 Job with a status reporter: 0 errors, 0 warnings\n") == home.run(
        "lint", "-f", "job.yaml"
    )


def test_a_plain_job_after_inject(home: Home) -> None:
    """What inject makes of a Job with a deadline has no finding: `inject | lint --strict`."""
    adapter = {"name": "check", "image": "busybox"}
    plain = broken(pod(initContainers=[], containers=[adapter]))
    del pod_of(plain)["volumes"]
    write(home.folder, "job.yaml", plain)
    code, out, _ = home.run("inject", "-f", "job.yaml", "--with-rbac")
    (home.folder / "made.yaml").write_text(out)

    assert 0 == code
    assert (0, "") == home.run("lint", "--strict", "-f", "made.yaml")[:2]


def test_a_job_set(home: Home) -> None:
    """Its parts are Jobs."""
    write(home.folder, "set.yaml", job_set(broken(LATE), 1, 1))
    code, out, err = home.run("lint", "-f", "set.yaml")

    assert (1, 2) == (code, out.count("[wait-beyond-deadline]"))
    assert "JobSet team/nightly (part1): spec.replicatedJobs[1].template.spec" in out
    assert "status-ctl: 2 Jobs with a status reporter: 2 errors, 0 warnings\n" == err


def test_no_job_at_all(home: Home) -> None:
    """Who checks the wrong file is told."""
    write(home.folder, "x.yaml", {"kind": "Service", "apiVersion": "v1"})
    code, out, err = home.run("lint", "-f", "x.yaml")

    assert (0, "") == (code, out)
    assert "no Jobs with a status reporter found" in err


def test_a_label_without_a_reporter(home: Home) -> None:
    """No verdict would ever come; where a policy of the cluster adds the reporter, it is right."""
    labels = {"labels": {"status-reporter.io/inject": "native"}}
    asking = broken(pod(initContainers=[]), lambda value: value["metadata"].update(labels))
    write(home.folder, "job.yaml", asking)
    code, out, err = home.run("lint", "-f", "job.yaml")

    assert 1 == code
    assert "job.yaml:7: error: The label requests a reporter, but the Pod template" in out
    assert "status-ctl: no Jobs with a status reporter found; 1 error, 0 warnings\n" == err
    ignored = home.run("lint", "-f", "job.yaml", "--ignore", "not-injected", "-o", "json")
    assert (0, []) == (ignored[0], json.loads(ignored[1])["findings"])


def test_an_error_and_a_warning(home: Home) -> None:
    """Each with file, line, field, and what to do."""
    write(home.folder, "job.yaml", broken(LATE, pod(terminationGracePeriodSeconds=1)))
    text = (home.folder / "job.yaml").read_text().splitlines()
    deadline = 1 + next(at for at, line in enumerate(text) if "activeDeadline" in line)
    grace = 1 + next(at for at, line in enumerate(text) if "GracePeriod" in line)
    code, out, err = home.run("lint", "-f", "job.yaml")

    assert 1 == code
    assert (
        f"job.yaml:{deadline}: error: The reporter waits 5m0s, but the Job's "
        "activeDeadlineSeconds ends all work after 4m0s: that leaves little time to report an "
        "adapter that hangs. [wait-beyond-deadline]\n"
        "    Job team/nightly: spec.activeDeadlineSeconds\n"
        "    What to do: Set MAX_WAIT_TIME_SECONDS to at most 230, or the deadline to at least "
        "310.\n"
        f"job.yaml:{grace}: warning: The Pod has 1 s to terminate: when it is deleted, the "
        "reporter has too little time to write the verdict. [grace-too-short]\n"
        "    Job team/nightly: spec.template.spec.terminationGracePeriodSeconds\n"
        "    What to do: Set terminationGracePeriodSeconds to at least 5, or leave it out (30 s).\n"
    ) == out
    assert "status-ctl: 1 Job with a status reporter: 1 error, 1 warning\n" == err


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ([], 0),
        (["--strict"], 1),
        (["--strict", "--ignore", "no-deadline"], 0),
        (["--strict", "--ignore", "parallel"], 1),
    ],
)
def test_warnings(home: Home, words: list[str], code: int) -> None:
    """No failure, unless they are to be; a rule can be left out."""
    write(home.folder, "job.yaml", broken(spec(activeDeadlineSeconds=None)))

    assert code == home.run("lint", "-f", "job.yaml", *words)[0]


@pytest.mark.parametrize(("words", "code"), [([], 0), (["--strict"], 1)])
@pytest.mark.parametrize("form", ["text", "json"])
def test_files_without_a_job(home: Home, words: list[str], code: int, form: str) -> None:
    """A pipeline that looks in the wrong place is not to pass, and is told why."""
    (home.folder / "map.yaml").write_text("{apiVersion: v1, kind: ConfigMap}")
    found, _, err = home.run("lint", "-f", "map.yaml", *words, "-o", form)

    assert code == found
    assert "no Jobs with a status reporter found" in err


def test_the_variables_of_the_link_are_settings(home: Home) -> None:
    """A file of certificates is one, one of an address is not; what OpenSSL reads is none of ours.

    A suggestion is a variable that there is, and the order is the same each time.
    """
    settings = {"NODE_NAME": "n1", "CLIENT_CERT_FILE": "/c", "WORKER_CONFIG_FILE": "/w"}
    others = {"SSL_CERT_FILE": "/s", "RESULT_FILE": "/r"}
    wrong = {"CA_CERTS": "x", "AGGREGATOR_URL_FILE": "/u", "LOGLEVEL": "debug"}
    write(home.folder, "job.yaml", broken(env(**settings, **others, **wrong)))
    found = json.loads(home.run("lint", "-f", "job.yaml", "-o", "json")[1])["findings"]
    told = [each["what"].split()[0] for each in found if each["rule"] == "unknown-setting"]

    assert sorted(wrong) == told


@pytest.mark.parametrize(
    ("words", "count"),
    [
        (["-f", "all"], 2),
        (["-f", "all/deep"], 1),
        (["-f", "all/a.yaml", "-f", "all/deep/b.json"], 2),
    ],
)
def test_directories(home: Home, words: list[str], count: int) -> None:
    """All that is below one; other files are left alone."""
    write(home.folder, "all/a.yaml", job())
    (home.folder / "all" / "README.md").write_text("{{ no YAML")
    (home.folder / "all" / "deep").mkdir()
    (home.folder / "all" / "deep" / "b.json").write_text(json.dumps(job(), indent=2))
    code, _, err = home.run("lint", *words)

    assert 0 == code
    assert f"{count} Job" in err


def test_rights_from_another_file(home: Home) -> None:
    """All files are looked at together."""
    role = {"kind": "Role", "apiVersion": "rbac/v1", "metadata": {"name": "r"}, "rules": []}
    binding = {
        "kind": "RoleBinding",
        "apiVersion": "rbac/v1",
        "metadata": {"name": "b"},
        "roleRef": {"kind": "Role", "name": "r"},
        "subjects": [{"kind": "ServiceAccount", "name": "checks"}],
    }
    write(home.folder, "job.yaml", job())
    write(home.folder, "rbac.yaml", role, binding)
    code, out, _ = home.run("lint", "-f", "job.yaml", "-f", "rbac.yaml")

    assert 1 == code
    assert "[missing-rights]" in out


def test_a_file_that_is_no_yaml(home: Home) -> None:
    """An error with its line; the other files are checked."""
    (home.folder / "chart.yaml").write_text("kind: Job\nspec: {{ if x }}\nmetadata: [\n")
    write(home.folder, "job.yaml", broken(LATE))
    code, out, _ = home.run("lint", "-f", "chart.yaml", "-f", "job.yaml")

    assert 1 == code
    assert out.startswith("chart.yaml:4: error: invalid YAML: ")
    hint = "(is this a Helm template? Use the output of `helm template`). [unreadable]"
    assert out.splitlines()[0].endswith(hint)
    assert "[wait-beyond-deadline]" in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "-f"),
        (["-f", "none.yaml"], "cannot read none.yaml: No such file or directory"),
        (["-f", "empty"], "cannot read empty: no file in it ends in .yaml, .yml, .json"),
        (["-f", "empty", "--ignore", "nonsense"], "invalid choice"),
    ],
)
def test_usage(home: Home, words: list[str], said: str) -> None:
    """2."""
    (home.folder / "empty").mkdir()
    code, out, err = home.run("lint", *words)

    assert (2, "") == (code, out)
    assert said in err


@pytest.fixture
def found(home: Home) -> Home:
    """A home with a good Job and one with an error and a warning, whose name is hostile."""
    bad = broken(LATE, pod(terminationGracePeriodSeconds=1))
    bad["metadata"]["name"] = "a<b>\x07%0A"
    write(home.folder, "some jobs.yaml", job(), bad)
    return home


def test_json(found: Home) -> None:
    """All that is known."""
    code, out, err = found.run("lint", "-f", "some jobs.yaml", "-o", "json")
    document = json.loads(out)
    first, second = document["findings"]

    assert (1, "") == (code, err)
    assert ("v1", "Lint", 2) == (
        document["api_version"],
        document["kind"],
        len(document["jobs"]),
    )
    assert ("wait-beyond-deadline", "error", "some jobs.yaml", "spec.activeDeadlineSeconds") == (
        first["rule"],
        first["severity"],
        first["file"],
        first["field"],
    )
    assert "warning" == second["severity"]
    assert first["line"] < second["line"]


def test_sarif(found: Home) -> None:
    """What code scanning reads, also of a file that could not be read: a log of SARIF 2.1.0."""
    (found.folder / "bad.yaml").write_text("a: [\n")
    words = ["-f", "some jobs.yaml", "-f", "./bad.yaml"]
    code, out, err = found.run("lint", *words, "-o", "sarif")
    log = json.loads(out)
    (run,) = log.pop("runs")
    driver = run["tool"].pop("driver")
    deadline, grace, unreadable = run.pop("results")
    (place,) = deadline.pop("locations")
    rules = [each["id"] for each in driver["rules"]]

    assert (1, "") == (code, err)
    assert {"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0"} == log
    assert {"tool": {}, "columnKind": "unicodeCodePoints"} == run
    assert {"name", "version", "rules"} == driver.keys()
    assert [
        {
            "id": rule.id,
            "shortDescription": {"text": rule.summary},
            "defaultConfiguration": {"level": str(rule.severity)},
        }
        for rule in RULES
    ] == driver["rules"]
    assert deadline.pop("message")["text"].startswith("The reporter waits 5m0s")
    assert {
        "ruleId": "wait-beyond-deadline",
        "ruleIndex": rules.index("wait-beyond-deadline"),
        "level": "error",
    } == deadline
    assert {
        "physicalLocation": {
            "artifactLocation": {"uri": "some%20jobs.yaml"},
            "region": {"startLine": place["physicalLocation"]["region"]["startLine"]},
        },
        "logicalLocations": [
            {"fullyQualifiedName": "Job team/a<b>%0A: spec.activeDeadlineSeconds"}
        ],
    } == place
    assert ("grace-too-short", "warning") == (rules[grace["ruleIndex"]], grace["level"])
    assert {
        "physicalLocation": {
            "artifactLocation": {"uri": "bad.yaml"},
            "region": {"startLine": 2},
        }
    } == unreadable["locations"][0]


def test_nothing_is_a_result_too(home: Home) -> None:
    """An empty list, so that what was open before counts as fixed."""
    write(home.folder, "job.yaml", job())
    code, out, _ = home.run("lint", "-f", "job.yaml", "-o", "sarif")

    assert (0, []) == (code, json.loads(out)["runs"][0]["results"])


REVIEW = Rule(("create",), ("localsubjectaccessreviews",), groups=("authorization.k8s.io",))


@pytest.mark.parametrize(
    ("account", "code", "said"),
    [
        ("reporter", 0, ""),
        ("go-reporter", 0, "has no permission to watch pods, create events.events.k8s.io."),
        (
            "no-pods",
            1,
            "By the RBAC rules of the cluster, the service account 'no-pods' has no permission to",
        ),
    ],
)
def test_rights_by_the_cluster(
    at_home: Home, fake: FakeKube, account: str, code: int, said: str
) -> None:
    """Of the Job's account, in its namespace."""
    fake.tokens.roles["person"] = (REVIEW,)
    write(at_home.folder, "job.yaml", broken(pod(serviceAccountName=account)))
    exit_code, out, _ = at_home.run("lint", "-f", "job.yaml", "--cluster")
    asked = {json.loads(each.body)["spec"]["user"] for each in fake.requests()}

    assert code == exit_code
    assert said in out
    assert {f"system:serviceaccount:team:{account}"} == asked


def test_a_person_who_may_not_ask(at_home: Home) -> None:
    """4: that is no finding."""
    write(at_home.folder, "job.yaml", job())
    code, out, err = at_home.run("lint", "-f", "job.yaml", "--cluster")

    assert (4, "") == (code, out)
    assert "forbidden" in err


def test_the_reporters_own_words(home: Home) -> None:
    """What is wrong with a setting is said as `status-reporter --check` says it."""
    value = job()
    env(CONDITION_TYPE="Failed")(value)
    assert own(value)
    write(home.folder, "job.yaml", value)
    _, out, _ = home.run("lint", "-f", "job.yaml")

    assert 'The reporter does not start: CONDITION_TYPE="Failed": must be none of Complete' in out
