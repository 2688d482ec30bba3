"""The file with the facts of a node, as the gatherer `host` writes it."""

import json
from typing import Final

from reporter.core.host.compare import Facts

NAME: Final = "facts.json"
LARGEST: Final = 4 * 1024 * 1024  # bytes


def read_facts_file(data: bytes) -> Facts | None:
    """Return facts of our format; whatever a plugin of somebody else calls so is none."""
    try:
        facts = json.loads(data) if len(data) <= LARGEST else None
    except (ValueError, RecursionError):
        return None
    fits = isinstance(facts, dict) and facts.get("api_version") == "v1" and "collected_at" in facts
    return facts if fits else None
