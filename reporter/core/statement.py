"""What every place for reports is given: one report with all that it rests on."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reporter.core.condition import Attempt
from reporter.core.rows import Report


@dataclass(frozen=True, slots=True)
class Statement:
    """What is to be written: a report, whose it is, and what it rests on."""

    report: Report
    final: bool
    attempt: Attempt
    evidence: Mapping[str, Any]
    wall: float  # time of the look, epoch seconds
