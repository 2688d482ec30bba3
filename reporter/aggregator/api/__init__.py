"""The aggregator's two HTTP listeners: connections with limits, who may speak, every answer.

Storage is not known here; `Store` and the intake decide.
"""

from reporter.aggregator.api.audience import Audience
from reporter.aggregator.api.details import Shown
from reporter.aggregator.api.files import ResultFiles
from reporter.aggregator.api.status_app import Health, StatusApp
from reporter.aggregator.api.worker_app import WorkerApp
from reporter.aggregator.server.listener import Listener
from reporter.aggregator.server.observer import Observer

__all__ = [
    "Audience",
    "Health",
    "Listener",
    "Observer",
    "ResultFiles",
    "Shown",
    "StatusApp",
    "WorkerApp",
]
