"""The sidecar's settings: every environment variable, its default and its rule.

Settings that need the Pod (container names) are not judged here.
"""

from __future__ import annotations

import ipaddress
import posixpath
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, ValidationInfo, field_validator

from reporter.common import settings as rules
from reporter.common.defaults import REPORTER, RESULTS_PATH, WAIT_SECONDS
from reporter.common.settings import (
    FILE_RULE,
    LONGEST,
    NAME_RULE,
    Boolean,
    File,
    Integer,
    LogFormat,
    LogLevel,
    ObjectName,
    Variables,
    setting,
)
from reporter.verdict.condition import (
    DEFAULT_TYPE,
    DETAILS_SUFFIX,
    RESERVED_TYPES,
    is_condition_type,
)

_DETAILED_TYPE = 63 - len(DETAILS_SUFFIX)


def _condition_type(text: str) -> str:
    if not is_condition_type(text):
        raise ValueError
    return text


def _address(text: str) -> str:
    return str(ipaddress.ip_address(text)) if text else ""


def _interval(read: dict[str, Any]) -> int:
    wait: int = read["max_wait_time_seconds"]
    return max(1, min(2, wait - 1))


def _beside_the_result(read: dict[str, Any]) -> str:
    return posixpath.join(posixpath.dirname(read["results_path"]), "progress.json")


class Settings(Variables):
    """Validated settings. Fields are the variables in lower case; all times are in seconds."""

    job_name: ObjectName = setting("the Job to report on", ..., NAME_RULE)
    job_namespace: ObjectName = setting("namespace of the Job", ..., NAME_RULE)
    pod_name: ObjectName = setting("name of the reporter's own Pod", ..., NAME_RULE)
    results_path: File = setting("the adapter's result file", RESULTS_PATH, FILE_RULE)
    # Before the interval: its rule looks at this one.
    max_wait_time_seconds: Integer = setting(
        "maximum time to wait for a result, from the adapter's first start",
        WAIT_SECONDS,
        f"an integer from 1 to {LONGEST}",
        ge=1,
        le=LONGEST,
    )
    poll_interval_seconds: Integer = setting(
        "maximum interval between checks of the file; file events trigger one immediately",
        _interval,
        "a positive integer, less than MAX_WAIT_TIME_SECONDS",
        shown="2",
        bad="default",
        ge=1,
        # The shortest wait is no longer than the shortest interval.
        validate_default=False,
    )
    condition_type: Annotated[str, AfterValidator(_condition_type)] = setting(
        "type of the condition to write",
        DEFAULT_TYPE,
        f"none of {', '.join(RESERVED_TYPES)}; after '/' -> '.' at most 63 of A-Za-z0-9-_., "
        "alphanumeric at both ends",
    )
    log_level: LogLevel = rules.log_level()
    log_format: LogFormat = rules.log_format()
    adapter_container_name: str = setting(
        "name of the adapter container",
        "",
        "a regular container of the Pod",
        shown="auto-detected",
    )
    reporter_container_name: str = setting(
        "name of the reporter's own container",
        REPORTER,
        "name of this container in the Pod",
    )
    reporter_form: Literal["auto", "native", "classic"] = setting(
        "`native` sidecar or `classic` second container; `auto` detects it",
        "auto",
        "auto, native or classic",
    )
    result_required: Boolean = setting(
        "whether exit code 0 without a result file is a failure", True, "true or false"
    )
    result_trust: Literal["at-once", "at-exit"] = setting(
        "when a valid result becomes the verdict; with `at-exit` a non-zero exit code overrides a "
        "success",
        "at-once",
        "at-once or at-exit",
    )
    report_running: Boolean = setting(
        "whether `AdapterRunning` is written at the start", True, "true or false", bad="default"
    )
    report_condition: Boolean = setting(
        "whether the verdict is written on the Job; if not, only the aggregator gets it",
        True,
        "true or false",
        bad="default",
    )
    report_events: Boolean = setting(
        "whether an Event on the Job announces the final verdict",
        True,
        "true or false",
        bad="default",
    )
    # After the type: its rule looks at that one.
    report_details: Boolean = setting(
        "whether the result's `details` are copied to an annotation",
        False,
        f"true or false; CONDITION_TYPE at most {_DETAILED_TYPE} bytes",
        bad="default",
    )
    exit_policy: Literal["infrastructure", "failure", "never"] = setting(
        "which verdicts make the classic form exit with 1",
        "infrastructure",
        "infrastructure, failure or never",
    )
    progress_path: File | None = setting(
        "the adapter's progress file",
        _beside_the_result,
        FILE_RULE,
        shown="progress.json next to RESULTS_PATH",
        bad="off",
    )
    metrics_port: Integer = setting(
        "port for metrics and health checks",
        9464,
        "an integer from 0 to 65535; 0 disables the endpoint",
        bad="default",
        ge=0,
        le=65535,
    )
    metrics_address: Annotated[str, AfterValidator(_address)] = setting(
        "listen address for metrics and health checks",
        "",
        "an IP address",
        shown="all interfaces",
        bad="default",
    )
    metrics_linger_seconds: Integer = setting(
        "maximum time to wait for one more scrape before exiting; in the native form after "
        "SIGTERM, at most the grace period minus 2 s",
        0,
        f"an integer from 0 to {LONGEST}",
        bad="default",
        ge=0,
        le=LONGEST,
    )
    kubernetes_relax_x509_strict: Boolean = setting(
        "accept a cluster CA that Python 3.13's strict check rejects", False, "true or false"
    )

    @field_validator("poll_interval_seconds")
    @classmethod
    def _shorter_than_the_wait(cls, value: int, info: ValidationInfo) -> int:
        if value >= info.data.get("max_wait_time_seconds", value + 1):
            raise ValueError
        return value

    @field_validator("report_details")
    @classmethod
    def _fits_an_annotation(cls, value: bool, info: ValidationInfo) -> bool:
        if value and len(info.data.get("condition_type", "")) > _DETAILED_TYPE:
            raise ValueError
        return value


def salvage(environ: Mapping[str, str]) -> Settings:
    """Read what is good of bad settings: defaults for the rest, empty names for the required."""
    good, wrong = Settings.sorted_out(Settings.given(environ))
    unnamed = {"JOB_NAME", "JOB_NAMESPACE", "POD_NAME"} - good.keys()
    while wrong:  # what is good may not fit a default
        good, wrong = Settings.sorted_out(good | dict.fromkeys(unnamed, "unnamed"))
    return Settings.model_validate(good).model_copy(update={name.lower(): "" for name in unnamed})
