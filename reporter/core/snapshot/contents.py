"""What a snapshot holds, for people: its index, read with doubt and cut to what a page can show.

The missing parts come first, since nothing else shows them.
"""

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Final

from reporter.core.objects import items, number, section, text
from reporter.core.text import clean
from reporter.core.within import within

_RESOURCES: Final = 2_000
_SIZE: Final = 384 * 2**10  # bytes of all resources
_OTHERS: Final = 200
_OTHERS_SIZE: Final = 64 * 2**10
_WORDS: Final = 512  # bytes of one text
_PARTS: Final = ("hosts", "podlogs")


def contents_document(index: Mapping[str, Any]) -> dict[str, Any]:
    """Write what an index says; what it lacks, or has in another type, is empty or 0."""
    parts = [{"name": name, **_told(section(index, name))} for name in _PARTS if name in index]
    resources = [{**_named(each), **_told(each)} for each in items(index, "resources")]
    resources.sort(key=lambda each: not (each["error"] or each["truncated"]))
    shown, more = within(resources, _RESOURCES, _SIZE)
    left_out, more_left_out = within(_left_out(index), _OTHERS, _OTHERS_SIZE)
    groups, more_groups = within(_group_errors(index), _OTHERS, _OTHERS_SIZE)
    namespaces = index.get("namespaces")
    listed = namespaces if isinstance(namespaces, list) else []
    return {
        "server_version": _text(index, "serverVersion"),
        "started_at": _text(index, "startedAt"),
        "ended_at": _text(index, "endedAt"),
        "complete": index.get("complete") is True,
        "problem": _problem(index),
        "namespaces": None
        if namespaces is None
        else [clean(each, _WORDS) for each in listed[:_OTHERS] if isinstance(each, str)],
        "totals": {
            name: sum(each[name] for each in (*resources, *parts))
            for name in ("count", "bytes", "redacted")
        },
        "resources": shown,
        "more_resources": more,
        "parts": parts,
        "left_out": left_out,
        "more_left_out": more_left_out,
        "group_errors": groups,
        "more_group_errors": more_groups,
    }


def _problem(index: Mapping[str, Any]) -> str:
    if said := _text(index, "stopped") or _text(index, "error"):
        return said
    failed = islice(items(index, "namespaceErrors"), _OTHERS)
    words = (f"namespace {_text(each, 'namespace')}: {_text(each, 'error')}" for each in failed)
    return clean("; ".join(words), _WORDS)


def _named(found: Mapping[str, Any]) -> dict[str, Any]:
    version = "/".join(filter(None, (_text(found, "group"), _text(found, "version"))))
    return {"name": _text(found, "resource"), "version": version}


def _told(found: Mapping[str, Any]) -> dict[str, Any]:
    numbers = {name: number(found, name) or 0 for name in ("count", "bytes", "redacted")}
    return {
        **numbers,
        "truncated": _text(found, "truncated"),
        "inconsistent": found.get("inconsistent") is True,
        "error": _text(found, "error"),
    }


def _left_out(index: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    for each in items(index, "leftOut"):
        yield {**_named(each), "reason": _text(each, "reason")}


def _group_errors(index: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    for each in items(index, "groupErrors"):
        yield {name: _text(each, name) for name in ("group", "version", "error")}


def _text(found: Mapping[str, Any], name: str) -> str:
    return clean(text(found, name), _WORDS)
