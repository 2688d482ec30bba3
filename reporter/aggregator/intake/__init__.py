"""Taking in results: from the head of an upload to a durable row.

`Intake` is the whole of it; everything else exported here is what it takes and gives.
"""

from reporter.aggregator.intake.intake import Intake
from reporter.aggregator.intake.recovery import Recovered
from reporter.aggregator.intake.slots import Sender

__all__ = ["Intake", "Recovered", "Sender"]
