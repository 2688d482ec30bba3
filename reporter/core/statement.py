"""What is given to every place for reports: one report and what it is based on."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reporter.core.condition import Attempt
from reporter.core.rows import Report


@dataclass(frozen=True, slots=True)
class Statement:
    """What is to be written: a report, whose it is, and what it is based on."""

    report: Report
    final: bool
    attempt: Attempt
    evidence: Mapping[str, Any]
    wall: float  # time of the look, epoch seconds
