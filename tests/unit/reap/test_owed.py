"""Which Jobs have a reporter of ours, and which conditions it is to write."""

from __future__ import annotations

from typing import Any

import pytest

from reporter.reap.decide import conditions_owed
from reporter.verdict import rows
from tests.fakekube import make_job
from tests.verdicts import with_verdicts

Object = dict[str, Any]
REFERENCE = {"valueFrom": {"configMapKeyRef": {"name": "settings", "key": "type"}}}
WHOLE = {"envFrom": [{"configMapRef": {"name": "settings"}}]}


def job(*reporters: Object, labels: Object | None = None) -> Object:
    """A Job with these containers beside its adapter."""
    made = make_job()
    made["spec"]["template"]["spec"]["initContainers"] = list(reporters)
    made["metadata"]["labels"] |= labels or {}
    return made


def reporter(name: str = "status-reporter", **variables: str | Object) -> Object:
    """A reporter with these settings."""
    env = [
        {"name": key} | ({"value": value} if isinstance(value, str) else value)
        for key, value in variables.items()
    ]
    return {"name": name, "restartPolicy": "Always", "env": env}


OWN = {"JOB_NAME": "validate", "JOB_NAMESPACE": "default", "POD_NAME": "$(POD)"}
JOBS: dict[str, tuple[Object, list[str]]] = {
    "a reporter": (job(reporter()), ["Available"]),
    "a reporter with a type": (job(reporter(CONDITION_TYPE="Checked")), ["Checked"]),
    "two reporters": (
        job(reporter(), reporter("second", CONDITION_TYPE="Checked", **OWN)),
        ["Available", "Checked"],
    ),
    "a type that the Job controller would act on": (
        job(reporter(CONDITION_TYPE="FailureTarget")),
        ["Available"],
    ),
    "a type that makes no annotation": (job(reporter(CONDITION_TYPE="a b")), ["Available"]),
    "a type that nobody knows yet": (job(reporter(CONDITION_TYPE=REFERENCE)), []),
    "a type from another variable": (job(reporter(CONDITION_TYPE="$(TYPE)")), []),
    "a type that may come from a whole ConfigMap": (job(reporter() | WHOLE), []),
    "a type of its own beside a whole ConfigMap": (
        job(reporter(CONDITION_TYPE="Checked") | WHOLE),
        ["Checked"],
    ),
    "a reporter that writes to another Job": (job(reporter(JOB_NAME="parent")), []),
    "a reporter that writes to another namespace": (job(reporter(JOB_NAMESPACE="other")), []),
    "a reporter that is told its own Job": (job(reporter(**OWN)), ["Available"]),
    "a name that another variable has": (job(reporter(JOB_NAME="$(NAME)")), ["Available"]),
    "no reporter": (job({"name": "init"}), []),
    "the label, and a template that does not show it": (
        job(labels={"status-reporter.io/inject": "native"}),
        ["Available"],
    ),
    "the label with a value that nothing reads": (
        job(labels={"status-reporter.io/inject": "yes"}),
        [],
    ),
    "the label, and a reporter that writes to another Job": (
        job(reporter(JOB_NAME="parent"), labels={"status-reporter.io/inject": "native"}),
        [],
    ),
}


@pytest.mark.parametrize("name", JOBS)
def test_types(name: str) -> None:
    """As template and labels show them."""
    made, expected = JOBS[name]

    assert expected == [each.type for each in conditions_owed(made)]


@pytest.mark.parametrize("seen", [True, False])
def test_a_type_that_is_on_the_job_already(seen: bool) -> None:
    """Is judged as the reporter would that has it from elsewhere; or by the usual names."""
    made = with_verdicts(rows.running(None, None), final=False)
    template = made["spec"]["template"]["spec"]
    told = reporter("mine", CONDITION_TYPE=REFERENCE, ADAPTER_CONTAINER_NAME="main", **OWN)
    template["initContainers"] = [told] if seen else []
    (owed,) = conditions_owed(made)

    assert "Available" == owed.type
    assert (("mine", "main") if seen else ("status-reporter", "")) == (
        owed.names.reporter,
        owed.names.adapter,
    )


@pytest.mark.parametrize("told", [reporter(CONDITION_TYPE="$(TYPE)"), reporter() | WHOLE])
def test_a_final_verdict_of_a_type_that_the_template_does_not_show(told: Object) -> None:
    """Is all that is owed: no second condition is written beside it."""
    made = with_verdicts(rows.timeout(300))
    made["status"]["conditions"][0]["type"] = "Custom"
    note = made["metadata"]["annotations"].pop("status-reporter.io/Available")
    made["metadata"]["annotations"]["status-reporter.io/Custom"] = note
    made["spec"]["template"]["spec"]["initContainers"] = [told]

    assert ["Custom"] == [each.type for each in conditions_owed(made)]
