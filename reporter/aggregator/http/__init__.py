"""The aggregator's two HTTP listeners: connections with limits, who may speak, every answer.

Storage is not known here; `Store` and the intake decide.
"""

from reporter.aggregator.http.audience import Audience
from reporter.aggregator.http.files import ResultFiles
from reporter.aggregator.http.listener import Listener
from reporter.aggregator.http.observer import Observer
from reporter.aggregator.http.shown import Shown
from reporter.aggregator.http.status_app import Health, StatusApp
from reporter.aggregator.http.worker_app import WorkerApp

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
