"""Reports that are read in pieces, and what was read of them."""

from __future__ import annotations

from reporter.results import gojson, junit, manual
from reporter.results.items import Item
from reporter.results.report import Report, Room
from reporter.run.results import status_of

HOME = "results/global"
PARSE = {"junit": junit.parse, "gojson": gojson.parse, "manual": manual.parse}


def read(result_format: str, data: bytes, room: Room | None = None, piece: int = 7) -> Report:
    """Read a report that comes in pieces."""
    found = Report(f"{HOME}/r", room or Room.of_list())
    pieces = (data[at : at + piece] for at in range(0, len(data), piece))
    found.read(PARSE[result_format], pieces)
    return found


def judged(result_format: str, data: bytes, room: Room | None = None) -> tuple[Item, str]:
    """Return the item and the note of a report."""
    found = read(result_format, data, room)
    return found.item, found.note


def plain(item: Item) -> list:
    """Return the items below as lists of name, status, details, meta and their own items."""
    return [
        [
            each.name,
            each.status or status_of(each.counts),
            dict(each.details),
            dict(each.meta),
            *plain(each),
        ]
        for each in item.items
    ]


def suite(inside: str, name: str = "s") -> bytes:
    """A report with one suite."""
    return f'<testsuites><testsuite name="{name}">{inside}</testsuite></testsuites>'.encode()


MANUAL = b"""\
name: mine
status: ignored
details: {version: 3, when: 2026-01-01}
items:
- name: disks
  items:
  - {name: sda, status: passed, meta: {size: 3, other: [x]}, details: &d {ok: yes, n: 1.5, s: "7"}}
  - {name: sdb, status: failed, details: *d}
- name: 12
- name: nil
  details: {a: [1, {b: ~}], big: 0o7}
  items: []
---
status: failed
"""
