"""Taking in results: from the head of an upload to a durable row.

`Intake` is the whole of it; everything else exported here is what it takes and gives.
"""

from reporter.aggregator.uploads.intake import Intake
from reporter.aggregator.uploads.recovery import Recovered
from reporter.aggregator.uploads.slots import Sender

__all__ = ["Intake", "Recovered", "Sender"]
