"""deploy/monitoring: rules, dashboard and scrapes ask for what the two programs really serve."""

from __future__ import annotations

import json
import re

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from reporter.aggregator import metrics as aggregator
from reporter.reap.metrics import ReaperMetrics
from reporter.sidecar.settings import Settings
from reporter.verdict.condition import Attempt, Statement, encode_annotation
from reporter.verdict.rows import Report
from tests.promtool import promtool
from tests.unit.aggregator.test_metrics import scrape
from tests.unit.repository.manifests import DEPLOY, load
from tests.unit.repository.test_docs import METRICS, full_metrics, section

FOLDER = DEPLOY / "monitoring"
DOCUMENT = (DEPLOY.parent / "docs" / "monitoring.md").read_text(encoding="utf-8")
RULES = (FOLDER / "rules.yaml").read_text(encoding="utf-8")
FROM_SCRAPE = {"namespace", "pod", "job_name", "run"}
OF_JOBS = {  # what kube-state-metrics and the relabelling make
    "status_reporter_job_verdict": {"type", "final", "status", "reason", "rule"},
    "kube_job_complete": {"condition"},
    "kube_job_failed": {"condition"},
}


def aggregator_page() -> str:
    """Return the page of an aggregator that knows everything it can know."""
    metrics = aggregator.Metrics(float)
    metrics.request("results", 200, 0.1, 0)
    return scrape(metrics).body.decode()


def reaper_page() -> str:
    """Return the page of a reaper after its first pass."""
    metrics = ReaperMetrics()
    metrics.passed(done=True, waiting=1, failures=0, now=1.0)
    return metrics.page("").body.decode()


def served() -> dict[str, set[str]]:
    """The labels of every series by its name."""
    found = {name: set(labels) for name, labels in OF_JOBS.items()}
    for page in (full_metrics(link=True), aggregator_page(), reaper_page()):
        for family in text_string_to_metric_families(page):
            for sample in family.samples:
                found.setdefault(sample.name, set()).update(sample.labels)
    return found


def asked() -> list[tuple[str, list[str]]]:
    """Every expression of the rules and of the dashboard, and the labels shown of its series."""
    rules = [rule for group in yaml.safe_load(RULES)["groups"] for rule in group["rules"]]
    panels = json.loads((FOLDER / "dashboard.json").read_text(encoding="utf-8"))["panels"]
    targets = [target for panel in panels for target in panel.get("targets", [])]
    return [
        *((each["expr"], re.findall(r"\$labels\.(\w+)", str(each))) for each in rules),
        *((each["expr"], re.findall(r"\{\{(\w+)", each["legendFormat"])) for each in targets),
    ]


def test_rules_and_dashboard_ask_for_series_and_labels_that_exist():
    """A name that is not served would never alert and leave its panel empty."""
    known = served()
    found = [
        (name, label)
        for expression, _ in asked()
        for name, inside in re.findall(r"\b((?:status|kube)_\w+)(?:\{([^}]*)\})?", expression)
        for label in ["", *re.findall(r"(\w+)\s*[!=]", inside)]
    ]

    assert len(found) > 60
    assert [] == [name for name, _ in found if name not in known]
    assert [] == [
        (name, label) for name, label in found if label and label not in known[name] | FROM_SCRAPE
    ]


def test_labels_that_are_grouped_by_or_shown_exist():
    """One that does not exist makes one group of all, and is shown as nothing."""
    known = served()
    wrong, count = [], 0
    for expression, shown in asked():
        series = re.findall(r"\b(?:status|kube)_\w+", expression)
        there = FROM_SCRAPE.union(*(known[name] for name in series))
        lists = re.findall(r"\b(by|without|on|ignoring|group_left) ?\(([^()]*)\)", expression)
        named = [(word, re.findall(r"\w+", inside)) for word, inside in lists]
        kept = there.intersection(*(labels for word, labels in named if word == "by"))
        gone = {label for word, labels in named if word == "without" for label in labels}
        used = [label for _, labels in named for label in labels]
        wrong += [(expression, label) for label in used if label not in there]
        wrong += [(expression, label) for label in shown if label not in kept - gone]
        count += len(used) + len(shown)

    assert count > 90
    assert [] == wrong


def test_the_rules_fire_when_they_should():
    """Promtool runs the cases beside them, and finds nothing to criticise."""
    promtool("check", "rules", "--lint-fatal", str(FOLDER / "rules.yaml"))

    assert "SUCCESS" in promtool("test", "rules", str(FOLDER / "rules_test.yaml"))[0]


def test_every_alert_has_a_case_in_which_it_fires():
    """And a severity and the two texts that people read."""
    groups = yaml.safe_load(RULES)["groups"]
    rules = {rule["alert"]: rule for group in groups for rule in group["rules"]}
    cases = yaml.safe_load((FOLDER / "rules_test.yaml").read_text(encoding="utf-8"))["tests"]
    tried = [tried for case in cases for tried in case["alert_rule_test"]]

    assert set(rules) == {each["alertname"] for each in tried if each["exp_alerts"]}
    assert {"summary", "description"} == set.union(*(set(r["annotations"]) for r in rules.values()))
    assert {"critical", "warning", "info"} == {r["labels"]["severity"] for r in rules.values()}


def snake(name: str) -> str:
    """The name in Prometheus' own configuration of a field of the operator."""
    return re.sub("([A-Z])", lambda found: f"_{found[1].lower()}", name)


def relabelled_jobs() -> list[dict]:
    """How prometheus.yaml makes labels of the annotation."""
    (job,) = (
        job
        for job in load("monitoring/prometheus.yaml")["scrape_configs"]
        if job["job_name"] == "status-reporter-jobs"
    )
    return job["metric_relabel_configs"]


def test_the_operator_relabels_jobs_in_the_same_way():
    """Field by field, in the operator's spelling."""
    (endpoint,) = load("monitoring/kube-state-metrics/servicemonitor.yaml")["spec"]["endpoints"]

    assert relabelled_jobs() == [
        {snake(name): value for name, value in step.items()}
        for step in endpoint["metricRelabelings"]
    ]


@pytest.mark.parametrize("final", [True, False])
@pytest.mark.parametrize("status", ["True", "False", "Unknown"])
def test_what_the_reporter_writes_becomes_labels(status, final):
    """The expressions fit the annotation as it is encoded, to the end."""
    attempt = Attempt("p", "uid", 1.0, 1.0, 1.0, 0)
    report = Report("W1", status, "AdapterImagePullFailed", 'the "message"\n')
    value = encode_annotation(Statement(report, final, attempt, {"file": {"path": "/a\nb"}}, 0.0))
    found = {}
    for step in relabelled_jobs():
        if step.get("target_label") and (match := re.fullmatch(step["regex"], value)):
            found[step["target_label"]] = step["replacement"] if "replacement" in step else match[1]

    assert {
        "__name__": "status_reporter_job_verdict",
        "type": "Available",
        "final": str(final).lower(),
        "status": status,
        "reason": "AdapterImagePullFailed",
        "rule": "W1",
    } == found


def test_scrapes_find_the_containers_of_the_manifests():
    """Names of containers, ports and labels are one."""
    monitored, aggregators, reapers = yaml.safe_load_all(
        (FOLDER / "podmonitors.yaml").read_text(encoding="utf-8")
    )
    (container,) = load("components/native/job.yaml")["spec"]["template"]["spec"]["initContainers"]
    deployed = load("aggregator/statefulset.yaml")["spec"]["template"]
    (endpoint,) = monitored["spec"]["podMetricsEndpoints"]
    (status,) = aggregators["spec"]["podMetricsEndpoints"]

    assert [container["name"]] == [
        step["regex"] for step in endpoint["relabelings"] if step.get("action") == "keep"
    ]
    (reporters, *_) = load("monitoring/prometheus.yaml")["scrape_configs"]
    assert "port" not in endpoint, "the container declares none"
    assert "ports" not in container
    assert (
        f"$1:{Settings.model_fields['metrics_port'].default}"
        == (endpoint["relabelings"][2]["replacement"])
    )
    assert reporters["relabel_configs"][:4] == [
        {snake(name): value for name, value in step.items()} for step in endpoint["relabelings"][:4]
    ]
    assert aggregators["spec"]["selector"]["matchLabels"] == {
        "app.kubernetes.io/name": deployed["metadata"]["labels"]["app.kubernetes.io/name"]
    }
    assert status["port"] in {port["name"] for port in deployed["spec"]["containers"][0]["ports"]}
    reaper = load("reaper/deployment.yaml")["spec"]["template"]
    (own,) = reapers["spec"]["podMetricsEndpoints"]
    assert reapers["spec"]["selector"]["matchLabels"] == reaper["metadata"]["labels"]
    assert [own["port"]] == [port["name"] for port in reaper["spec"]["containers"][0]["ports"]]
    intervals = [
        job["scrape_interval"] for job in load("monitoring/prometheus.yaml")["scrape_configs"]
    ]
    assert [endpoint["interval"], status["interval"], own["interval"]] == intervals[:3]


def test_every_metric_of_the_aggregator_is_documented():
    """The table names exactly the families that are served; the page says what the names tell."""
    families = dict(re.findall(r"^# TYPE (\S+) (\S+)", aggregator_page(), re.MULTILINE))
    named = re.findall(r"\| `(status_aggregator_\w+)", section(METRICS, "aggregator"))
    ends = {"_total": "counter", "_duration_seconds": "histogram", "": "gauge"}

    assert set(families) == set(named)
    assert families == {
        name: next(kind for end, kind in ends.items() if name.endswith(end)) for name in families
    }


def test_every_alert_is_documented():
    """The table of alerts has their severities."""
    groups = yaml.safe_load(RULES)["groups"]
    rules = {(rule["alert"], rule["labels"]["severity"]) for g in groups for rule in g["rules"]}

    assert rules == set(re.findall(r"^\| `(Status\w+)` \| (\w+) ", DOCUMENT, re.MULTILINE))
