"""Taking in results: from the head of an upload to a durable row."""

from reporter.aggregator.intake.intake import Intake
from reporter.aggregator.intake.slots import Uploads

__all__ = ["Intake", "Uploads"]
