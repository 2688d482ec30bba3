"""`launch.json` in a run's ConfigMap: what the launcher is told beside the plan, as JSON.

Written by `status-ctl run`, read by the aggregator, and readable and changeable for people before
it is applied: unknown fields are an error.
"""

import json
from collections.abc import Mapping
from typing import Any

from reporter.common import schema
from reporter.common.objects import field
from reporter.errors import SettingsError
from reporter.run.definition import doubled, misfits
from reporter.run.definition_file import ours
from reporter.run.spec import Launch, launch_document

MAX_BYTES = 1024 * 1024  # what an object of the API server can hold


def encode(launch: Launch) -> str:
    """Write it as `decode` reads it."""
    return json.dumps(launch_document(launch), indent=1, ensure_ascii=False)


def decode(data: bytes) -> Launch:
    """Read it. Raises SettingsError with every problem, one line each."""
    if len(data) > MAX_BYTES:
        raise SettingsError([f"larger than {MAX_BYTES} bytes"])
    try:
        document = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise SettingsError([f"not JSON: {error}"]) from None
    problems = [
        f"{field(path)}: {text}" if path else text
        for path, text in schema.violations("launch.v1", document, schema.MOST_PROBLEMS)
    ]
    if problems:
        raise SettingsError(problems)
    found: list[Any] = document["plugins"]
    for at, each in enumerate(found):
        problems += [
            f"{field(('plugins', at, *path))}: {text}"
            for path, text in schema.violations("plugin.v1", each, schema.MOST_PROBLEMS)
        ]
    if problems:
        raise SettingsError(problems)
    definitions = tuple(ours(each) for each in found)
    for at, definition in enumerate(definitions):
        problems += [
            f"{field(('plugins', at, *path))}: {text}" for path, text in misfits(definition)
        ]
    names = [definition.name for definition in definitions]
    problems += [f"plugins[{at}]: {names[at]!r} appears more than once" for at in doubled(names)]
    if problems:
        raise SettingsError(problems)
    return _launch(document, definitions)


def _launch(document: Mapping[str, Any], definitions: tuple[Any, ...]) -> Launch:
    plain = Launch("", "", ())
    return Launch(
        document["image"],
        document["serviceAccountName"],
        definitions,
        tuple(document.get("imagePullSecrets", ())),
        document.get("kubernetesVersion", ""),
        document.get("writeConditions", plain.write_conditions),
        document.get("maxNodesAtOnce", plain.max_nodes_at_once),
        document.get("environment", {}),
        document.get("configKeys", {}),
        document.get("snapshot", ""),
    )
