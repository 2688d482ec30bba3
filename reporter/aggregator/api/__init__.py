"""Routes and responses of the aggregator's two listeners."""

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
