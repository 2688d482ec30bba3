"""Twenty runs whose tarballs are on record: what was sent and given up, in order, bytes fixed."""

from __future__ import annotations

import gzip
from dataclasses import dataclass, replace

from reporter.run.plan import Key, Plan, Plugin
from reporter.run.record import Cause
from reporter.run.upload import Meta
from tests.archives.tars import (
    END,
    GNU,
    file,
    folder,
    gnu_name,
    hard_link,
    header,
    link,
    pax,
    tgz,
)

E2E = Key("e2e", "global")
NODES = tuple(f"node{n}" for n in range(12))
PLAN = Plan(
    "run-1",
    (
        Plugin("e2e"),
        Plugin("sysd", NODES),
        Plugin("a-b"),
        Plugin("a"),
        Plugin("a.b", ("Z", "a", "a-1")),
    ),
)

JSON = Meta(content_type="application/json", filename="a.json", disposition=True)
ARCHIVE = Meta(content_type="application/gzip", filename="r.tar.gz", disposition=True)
REPORT = Meta(content_type="application/json", filename="error.json", disposition=True, error=True)
PARTIAL = replace(ARCHIVE, error=True)
SAID = b'{"error": "it broke", "cause": "Broken", "more": [1, 2]}'


@dataclass(frozen=True)
class Sent:
    """One body of a worker."""

    key: Key
    body: bytes
    meta: Meta


@dataclass(frozen=True)
class GivenUp:
    """An error of the aggregator's own."""

    key: Key
    text: str
    cause: Cause


def _sysd(number: int) -> Key:
    return Key("sysd", NODES[number])


def _archive(*parts: bytes, key: Key = E2E, meta: Meta = ARCHIVE) -> Sent:
    return Sent(key, tgz(*parts), meta)


# What is kept as it was sent must not depend on the zlib of the machine.
_GZIP = bytes.fromhex("1f8b0800000000000203ab564a54b232ac0500afac1b5607000000")
_DEEP = b"/".join(b"d%d" % n for n in range(70))

RUNS: dict[str, tuple[Sent | GivenUp, ...]] = {
    "empty": (),
    "opaque files": (
        Sent(E2E, b"1", JSON),
        Sent(_sysd(0), b"", JSON),
        Sent(_sysd(10), b"ten", Meta()),
        Sent(_sysd(2), b"two", replace(JSON, filename="ü b.json")),
    ),
    "plugins and nodes in order of their bytes": tuple(
        Sent(key, str(key).encode(), JSON) for key in PLAN.keys
    ),
    "one archive": (_archive(file(b"a.txt", b"A"), folder(b"d/"), file(b"d/b.txt", b"B")),),
    "members in no order": (
        _archive(
            file(b"z", b"z"),
            file(b"m/z", b"1"),
            file(b"b", b"b"),
            file(b"m.txt", b"m"),
            file(b"m/a/c", b"2"),
            folder(b"empty"),
            file(b"m/B", b"3"),
            file(b"m-1/x", b"4"),
        ),
    ),
    "names twice": (
        _archive(
            file(b"a", b"1"),
            file(b"d/x", b"old and longer"),
            file(b"a", b"22"),
            folder(b"d"),
            file(b"./d//x", b"new"),
            file(b"a", b""),
        ),
    ),
    "an empty archive": (
        _archive(),
        _archive(folder(b"./"), key=_sysd(1)),
        Sent(_sysd(2), gzip.compress(b"", mtime=0), ARCHIVE),
        _archive(folder(b"./"), folder(b"/"), key=_sysd(3)),
    ),
    "links and devices": (
        _archive(
            file(b"first", b"1"),
            link(b"only/in/links", b"../../../etc/passwd"),
            header(b"dev/ice", 0, b"3"),
            hard_link(b"hard", b"first"),
            folder(b"locked", mode=0),
            file(b"locked/inside", b"2", mode=0),
        ),
    ),
    "deep": (_archive(gnu_name(_DEEP + b"/f"), file(b"f", b"deep")),),
    "long names": (
        _archive(
            gnu_name(b"n" * 255),
            file(b"x", b"1"),
            pax(path=b"p" * 200 + b"/" + b"q" * 200),
            file(b"x", b"2"),
            file(b"a" * 90, b"3", prefix=b"pre/fix"),
        ),
    ),
    "names that are no text": (
        _archive(
            file(b"\xff\xfe", b"1"),
            file("ü".encode(), b"2"),
            file(b"a\nb", b"3"),
            file(b" ", b"4"),
            file(b"-rf", b"5"),
        ),
    ),
    "unusual archives": (
        Sent(E2E, gzip.compress(header(b"a", 1) + b"1", mtime=0), ARCHIVE),
        _archive(file(b"a", b"1"), END, file(b"b", b"2"), key=_sysd(0)),
        _archive(file(b"V", b"vv", kind=b"V"), file(b"a", b"1", magic=GNU), key=_sysd(1)),
        Sent(
            _sysd(2),
            gzip.compress(file(b"a", b"1")[:700], mtime=0)
            + gzip.compress(file(b"a", b"1")[700:] + file(b"b", b"2") + END, mtime=0),
            ARCHIVE,
        ),
    ),
    "gzip that is no archive": (Sent(E2E, _GZIP, replace(ARCHIVE, filename="a.json.gz")),),
    "error reports": (
        Sent(E2E, SAID, REPORT),
        Sent(_sysd(0), b'{"error":"of Sonobuoy"}', Meta(content_type="application/json")),
        Sent(_sysd(1), b'{"error":"no name"}', replace(REPORT, filename="")),
    ),
    "partial output": (
        _archive(file(b"log", b"L"), file(b"error.json", SAID), meta=PARTIAL),
        _archive(file(b"log", b"L"), file(b"d/x", b"X"), key=_sysd(0), meta=PARTIAL),
        _archive(key=_sysd(1), meta=PARTIAL),
        _archive(link(b"error.json", b"log"), file(b"log", b"L"), key=_sysd(2), meta=PARTIAL),
        _archive(
            file(b"error.json", b'{"error":"first"}'),
            file(b"./error.json", SAID),
            file(b"zz", b"Z"),
            key=_sysd(3),
            meta=PARTIAL,
        ),
    ),
    "errors of the aggregator": (
        GivenUp(E2E, "pod gone", Cause.POD_FAILED),
        GivenUp(_sysd(0), "", Cause.DEADLINE),
        GivenUp(_sysd(1), "no heartbeat for 120 s", Cause.HEARTBEAT),
        GivenUp(_sysd(2), "exceeds 5 bytes", Cause.UPLOAD_FAILED),
        GivenUp(_sysd(3), 'ü "quoted"', Cause.START_FAILED),
    ),
    "late results": (
        GivenUp(E2E, "pod gone", Cause.POD_FAILED),
        _archive(file(b"d/a", b"late")),
        GivenUp(_sysd(0), "gone", Cause.DEADLINE),
        Sent(_sysd(0), SAID, REPORT),
        Sent(_sysd(1), SAID, REPORT),
        Sent(_sysd(1), b"late", JSON),
        GivenUp(Key("a", "global"), "gone", Cause.DEADLINE),
        Sent(Key("a", "global"), SAID, REPORT),
        Sent(Key("a", "global"), b"late", JSON),
    ),
    "partial output replaced": (
        _archive(file(b"log", b"L"), file(b"e/f", b"F"), meta=PARTIAL),
        Sent(E2E, b"result", JSON),
        _archive(file(b"error.json", SAID), key=_sysd(0), meta=PARTIAL),
        Sent(_sysd(0), b"result", JSON),
    ),
    "one of everything": (
        _archive(file(b"d/a.txt", b"A"), link(b"l", b"d"), file(b"d/a.txt", b"AA")),
        Sent(_sysd(0), bytes(1_000_000) + b"end", JSON),
        Sent(_sysd(1), b"refused", ARCHIVE),
        GivenUp(_sysd(1), "gone", Cause.HEARTBEAT),
        _archive(file(b"part", b"P"), key=_sysd(2), meta=PARTIAL),
        GivenUp(_sysd(3), "gone", Cause.LOST),
        Sent(_sysd(3), b"after all", JSON),
        Sent(Key("a.b", "Z"), tgz(file(b"big", bytes(700_000)), file(b"b", b"b")), ARCHIVE),
        Sent(Key("a.b", "a"), tgz(file(b"big", bytes(700_000)), file(b"b", b"b")), ARCHIVE),
    ),
}
