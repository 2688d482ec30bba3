"""What `status-ctl lint` has found, in the forms that people and programs read."""

from collections.abc import Iterator, Sequence
from typing import Any, Final
from urllib.parse import quote

from reporter import __version__
from reporter.common.text import clean
from reporter.lint.case import Finding
from reporter.lint.jobs import Job
from reporter.lint.rules import RULES

API_VERSION: Final = "v1"
SARIF_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
_MOST: Final = 4096  # bytes of one text


def as_data(found: Sequence[Finding], checked: Sequence[tuple[str, Job]]) -> dict[str, Any]:
    """Return the document of `-o json`; `checked` are all Jobs that were looked at, by file."""
    return {
        "api_version": API_VERSION,
        "kind": "Lint",
        "jobs": [{"file": file, "object": job.title} for file, job in checked],
        "findings": [
            {
                "rule": each.rule.id,
                "severity": str(each.rule.severity),
                "file": each.file,
                "line": each.line,
                "field": each.field,
                "object": each.object,
                "what": each.what,
                "todo": each.todo,
            }
            for each in found
        ],
    }


def as_sarif(found: Sequence[Finding]) -> dict[str, Any]:
    """Return a log of SARIF 2.1.0."""
    rules = [
        {
            "id": rule.id,
            "shortDescription": {"text": rule.summary},
            "defaultConfiguration": {"level": str(rule.severity)},
        }
        for rule in RULES
    ]
    driver = {"name": "status-ctl lint", "version": __version__, "rules": rules}
    results = [_result(each) for each in found]
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    return {"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}


def _result(found: Finding) -> dict[str, Any]:
    location: dict[str, Any] = {
        "physicalLocation": {
            "artifactLocation": {"uri": quote(found.file.removeprefix("./"), safe="/")},
            "region": {"startLine": found.line},
        }
    }
    if found.field:
        name = clean(f"{found.object}: {found.field}", _MOST)
        location["logicalLocations"] = [{"fullyQualifiedName": name}]
    return {
        "ruleId": found.rule.id,
        "ruleIndex": RULES.index(found.rule),
        "level": str(found.rule.severity),
        "message": {"text": clean(f"{found.what} {found.todo}", _MOST)},
        "locations": [location],
    }


def lines(found: Finding) -> Iterator[str]:
    """Yield what a person reads of a finding."""
    yield clean(
        f"{found.file}:{found.line}: {found.rule.severity}: {found.what} [{found.rule.id}]", _MOST
    )
    if found.field:
        yield f"    {clean(f'{found.object}: {found.field}', _MOST)}"
    if found.todo:
        yield f"    What to do: {clean(found.todo, _MOST)}"
