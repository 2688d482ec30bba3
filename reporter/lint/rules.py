"""The table of all rules. Their ids are published: a rule may go, its id never means another."""

from typing import Final

from reporter.lint import name_rules, pod_rules, time_rules
from reporter.lint.case import Rule, Severity, nothing

_ERROR, _WARNING = Severity.ERROR, Severity.WARNING


UNREADABLE: Final = Rule(
    "unreadable", _ERROR, "the file is not valid YAML, or a key appears twice", nothing
)
RULES: Final = (
    UNREADABLE,
    Rule(
        "not-injected",
        _ERROR,
        "the label `status-reporter.io/inject` is set, and the Pod template has no reporter",
        nothing,
        without=pod_rules.not_injected,
    ),
    Rule(
        "settings",
        _ERROR,
        "the reporter does not start with these settings",
        name_rules.settings,
        partial=True,
    ),
    Rule(
        "settings-ignored",
        _WARNING,
        "a setting is invalid, and the default is used instead",
        name_rules.settings_ignored,
        partial=True,
    ),
    Rule(
        "job-name",
        _ERROR,
        "`JOB_NAME`, `JOB_NAMESPACE` or `POD_NAME` does not match the Job or its Pod",
        name_rules.job_name,
    ),
    Rule(
        "reporter-name",
        _ERROR,
        "`REPORTER_CONTAINER_NAME` is not the name of the reporter's container",
        name_rules.reporter_name,
        partial=True,
    ),
    Rule(
        "adapter-not-found",
        _ERROR,
        "`ADAPTER_CONTAINER_NAME` names no container, or there is none to watch",
        name_rules.adapter_not_found,
    ),
    Rule(
        "adapter-guessed",
        _WARNING,
        "several containers could be the adapter",
        name_rules.adapter_guessed,
    ),
    Rule(
        "same-condition",
        _ERROR,
        "two reporters of a Pod write the same condition",
        name_rules.same_condition,
    ),
    Rule(
        "form",
        _ERROR,
        "`REPORTER_FORM` does not match, or an init container has no `restartPolicy: Always`",
        pod_rules.form,
        partial=True,
    ),
    Rule(
        "classic-not-first",
        _ERROR,
        "the reporter is not the first container: a hanging image pull blocks it",
        pod_rules.classic_not_first,
        partial=True,
    ),
    Rule(
        "native-not-first",
        _WARNING,
        "the failure of an init container before the reporter is not reported",
        pod_rules.native_not_first,
        partial=True,
    ),
    Rule(
        "wait-beyond-deadline",
        _ERROR,
        "`MAX_WAIT_TIME_SECONDS` is not less than `activeDeadlineSeconds` of the Job or Pod",
        time_rules.wait_beyond_deadline,
        partial=True,
    ),
    Rule(
        "wait-near-deadline",
        _WARNING,
        "`activeDeadlineSeconds` is less than 10 s longer than `MAX_WAIT_TIME_SECONDS`",
        time_rules.wait_near_deadline,
        partial=True,
    ),
    Rule(
        "no-deadline",
        _WARNING,
        "neither the Job nor its Pods have `activeDeadlineSeconds`",
        time_rules.no_deadline,
    ),
    Rule(
        "grace-too-short",
        _WARNING,
        "`terminationGracePeriodSeconds` is less than 5",
        time_rules.grace_too_short,
        partial=True,
    ),
    Rule(
        "ttl-too-short",
        _WARNING,
        "`ttlSecondsAfterFinished` is at most 120: too short for readers and the reaper",
        time_rules.ttl_too_short,
        partial=True,
        without=time_rules.ttl_too_short_for,
    ),
    Rule(
        "repeated",
        _WARNING,
        "`restartPolicy` and `backoffLimit` repeat a failed check; its verdict may change",
        time_rules.repeated,
    ),
    Rule(
        "results-not-shared",
        _ERROR,
        "the adapter does not mount the volume of the result file",
        pod_rules.results_not_shared,
    ),
    Rule(
        "results-not-emptydir",
        _WARNING,
        "the volume of the result file outlives the Pod",
        pod_rules.results_not_emptydir,
        partial=True,
    ),
    Rule(
        "liveness-probe",
        _ERROR,
        "the reporter has a liveness probe, which can kill it before the verdict is written",
        pod_rules.liveness_probe,
        partial=True,
    ),
    Rule(
        "startup-probe",
        _WARNING,
        "the reporter has a startup probe, which delays the adapter",
        pod_rules.startup_probe,
        partial=True,
    ),
    Rule(
        "memory-limit",
        _ERROR,
        "the reporter's memory limit is below its measured peak",
        pod_rules.memory_limit,
        partial=True,
    ),
    Rule(
        "token",
        _ERROR,
        "no service account token is mounted into the reporter",
        pod_rules.token,
    ),
    Rule(
        "token-shared",
        _WARNING,
        "every container of the Pod has a token that can write the verdict",
        pod_rules.token_shared,
    ),
    Rule(
        "missing-rights",
        _ERROR,
        "the service account may not read or write what the verdict needs",
        pod_rules.missing_rights,
    ),
    Rule(
        "missing-optional-rights",
        _WARNING,
        "the service account may not watch Pods or create Events",
        pod_rules.missing_optional_rights,
    ),
    Rule(
        "parallel",
        _WARNING,
        "the Job runs several Pods at once",
        pod_rules.parallel,
        partial=True,
    ),
    Rule(
        "completions",
        _WARNING,
        "the Job needs several Pods and is not `Indexed`: a later verdict replaces a failure",
        pod_rules.completions,
        partial=True,
    ),
    Rule(
        "host-network",
        _WARNING,
        "with `hostNetwork` the reporter's port is on the node",
        pod_rules.host_network,
    ),
    Rule(
        "not-guaranteed",
        _WARNING,
        "the reporter's resources make a Guaranteed Pod Burstable",
        pod_rules.not_guaranteed,
    ),
)
