"""What the link to an aggregator says in one word, as level and sentence of a log line."""

from collections.abc import Mapping
from typing import Any

from reporter.common import log

_WORDS = {
    "retry": ("warning", "Request to the aggregator failed, retrying"),
    "another_result_held": ("warning", "The aggregator already has a different result"),
    "checked_by_hand": ("info", "The aggregator has a Sonobuoy-style certificate"),
    "certificate_expires": ("warning", "The client certificate expires soon or has expired"),
    "relay_listens": ("info", "Progress relay listening"),
    "relay_gave_up": ("error", "Progress relay gave up on a connection"),
    "relay_port_taken": ("warning", "Progress relay not listening yet: port already in use"),
    "progress_not_delivered": ("warning", "Progress not delivered"),
    "progress_unwanted": ("warning", "The aggregator does not accept progress from this worker"),
    "heartbeat_unanswered": ("warning", "Heartbeat not answered"),
    "heartbeat_refused": ("warning", "The aggregator rejects heartbeats"),
    "heartbeats_end": ("info", "No more heartbeats: the aggregator does not accept them"),
}


def say(event: str, facts: Mapping[str, Any], **fields: Any) -> None:
    """Log an event of the link with its facts; `fields` go before them."""
    level, sentence = _WORDS.get(event, ("info", event))
    getattr(log.get(**fields), level)(sentence, **facts)
