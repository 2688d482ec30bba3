"""The file with the facts of a node, as the gatherer `host` writes it."""

from typing import Final

from reporter.collect.host.compare import Facts
from reporter.common.objects import json_object

NAME: Final = "facts.json"
LARGEST: Final = 4 * 1024 * 1024  # bytes


def read_facts_file(data: bytes) -> Facts | None:
    """Return facts of our format; whatever a plugin of somebody else calls so is none."""
    facts = json_object(data) if len(data) <= LARGEST else None
    fits = facts and facts.get("api_version") == "v1" and "collected_at" in facts
    return facts if fits else None
