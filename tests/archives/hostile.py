"""Archives that somebody made to get out of their directory, or to break who reads them.

Each has a name and says what becomes of it: refused with a reason, or the files that are there
afterwards; nothing in any case where `OUTSIDE` is.
"""

from __future__ import annotations

import gzip
import zlib

from tests.archives.tars import (
    END,
    GNU,
    USTAR,
    checked,
    file,
    folder,
    gnu_name,
    hard_link,
    header,
    link,
    padded,
    pax,
    record,
    tgz,
)

UP = b"../" * 12
BAD = b"evil"
GOOD = file(b"good.txt", b"good")
KEPT = {"good.txt": b"good"}

NOT_ALLOWED = "the path is not allowed: "

DAMAGED = "a tar header is damaged"
CUT = "the gzip data is cut off"

Outcome = str | dict[str, bytes]


def hostile(outside: bytes) -> dict[str, tuple[bytes, Outcome]]:
    """All of them; `outside` is the path of a directory that must stay as it is."""
    target = outside + b"/target"
    inside = outside.decode().lstrip("/")
    return {
        # names that climb
        "dot-dot": (tgz(GOOD, file(UP + b"slip", BAD)), NOT_ALLOWED + (UP + b"slip").decode()),
        "dot-dot-in-the-middle": (tgz(file(b"a/../../slip", BAD)), NOT_ALLOWED + "a/../../slip"),
        "dot-dot-back-inside": (tgz(file(b"a/../b", BAD)), NOT_ALLOWED + "a/../b"),
        "dot-dot-alone": (tgz(folder(b"..")), NOT_ALLOWED + ".."),
        "dot-dot-at-the-end": (tgz(folder(b"a/..")), NOT_ALLOWED + "a/.."),
        "dot-dot-on-a-directory": (tgz(folder(UP + b"d")), NOT_ALLOWED + (UP + b"d").decode()),
        "dot-dot-on-a-link": (tgz(link(b"../l", b"/")), NOT_ALLOWED + "../l"),
        "dot-dot-on-a-device": (tgz(header(b"../dev", 0, b"3")), NOT_ALLOWED + "../dev"),
        "dot-dot-in-the-prefix": (
            tgz(file(b"slip", BAD, prefix=b"../..")),
            NOT_ALLOWED + "../../slip",
        ),
        "dot-dot-by-pax": (tgz(pax(path=b"../slip"), file(b"ok", BAD)), NOT_ALLOWED + "../slip"),
        "dot-dot-by-gnu": (
            tgz(gnu_name(b"../slip"), file(b"ok", BAD, magic=GNU)),
            NOT_ALLOWED + "../slip",
        ),
        "dot-dot-made-of-two-fields": (
            tgz(file(b"./slip", BAD, prefix=b"..")),
            NOT_ALLOWED + ".././slip",
        ),
        # names that start at the root
        "absolute": (tgz(file(outside + b"/x", BAD)), {f"{inside}/x": BAD}),
        "absolute-over-a-file": (tgz(file(target, BAD)), {f"{inside}/target": BAD}),
        "many-slashes": (tgz(file(b"///" + target, BAD)), {f"{inside}/target": BAD}),
        "dot-slash-absolute": (tgz(file(b".//" + target, BAD)), {f"{inside}/target": BAD}),
        "absolute-by-pax": (
            tgz(pax(path=target), file(b"x", BAD)),
            {f"{inside}/target": BAD},
        ),
        # links, and what is written through them
        "link-then-below": (
            tgz(link(b"l", b"../../.."), file(b"l/slip", BAD)),
            _clash("l"),
        ),
        "link-then-same-name": (tgz(link(b"l", target), file(b"l", BAD)), _clash("l")),
        "link-then-directory": (tgz(link(b"l", outside), folder(b"l")), _clash("l")),
        "link-to-absolute": (tgz(link(b"l", outside), file(b"l/x", BAD)), _clash("l")),
        "chain-of-links": (
            tgz(link(b"a", b"."), link(b"a/b", b".."), file(b"a/b/slip", BAD)),
            _clash("a"),
        ),
        "long-chain-of-links": (
            tgz(*(link(b"l%d" % n, b"l%d/.." % (n + 1)) for n in range(40)), file(b"l0/x", BAD)),
            _clash("l0"),
        ),
        "directory-becomes-a-link": (
            tgz(folder(b"d"), file(b"d/a", b"1"), link(b"d", outside), file(b"d/x", BAD)),
            _clash("d"),
        ),
        "file-becomes-a-link": (
            tgz(file(b"f", b"1"), link(b"f", target), file(b"f", BAD)),
            _clash("f"),
        ),
        "link-by-another-spelling": (
            tgz(link(b"l", outside), file(b"./l//x", BAD)),
            _clash("l"),
        ),
        "hard-link-to-outside": (tgz(hard_link(b"h", target), GOOD), KEPT),
        "hard-link-then-write": (tgz(hard_link(b"h", target), file(b"h", BAD)), _clash("h")),
        "hard-link-chain": (
            tgz(link(b"l", target), hard_link(b"h", b"l"), file(b"h", BAD)),
            _clash("h"),
        ),
        "link-to-itself": (tgz(link(b"l", b"l"), GOOD), KEPT),
        "link-target-by-pax": (
            tgz(pax(linkpath=target), link(b"l", b"x"), file(b"l", BAD)),
            _clash("l"),
        ),
        # what is no file
        "character-device": (tgz(header(b"null", 0, b"3"), GOOD), KEPT),
        "block-device": (tgz(header(b"sda", 0, b"4"), GOOD), KEPT),
        "pipe": (tgz(header(b"pipe", 0, b"6"), GOOD), KEPT),
        "unknown-type": (tgz(file(b"odd", BAD, kind=b"Z"), GOOD), KEPT),
        "set-uid": (tgz(file(b"suid", b"#!", mode=0o6777)), {"suid": b"#!"}),
        "directory-without-rights": (
            tgz(folder(b"d", mode=0), file(b"d/x", b"1", mode=0)),
            {"d/x": b"1"},
        ),
        # names that are nearly the same
        "letter-case": (
            tgz(file(b"Name", b"1"), file(b"NAME", b"2"), file(b"name", b"3")),
            {"Name": b"1", "NAME": b"2", "name": b"3"},
        ),
        "letter-case-of-a-link": (
            tgz(link(b"Dir", outside), file(b"dir/x", b"1")),
            {"dir/x": b"1"},
        ),
        "trailing-spaces": (
            tgz(file(b"a", b"1"), file(b"a ", b"2"), file(b".. /x", b"3")),
            {"a": b"1", "a ": b"2", ".. /x": b"3"},
        ),
        "trailing-dots": (tgz(file(b".../x", b"1")), {".../x": b"1"}),
        "windows-separators": (tgz(file(rb"..\..\slip", b"1")), {r"..\..\slip": b"1"}),
        "composed-and-decomposed": (
            tgz(file("é".encode(), b"1"), file("e\u0301".encode(), b"2")),
            {"é": b"1", "e\u0301": b"2"},
        ),
        "control-characters": (tgz(file(b"a\nb\x1b[2J", b"1")), {"a\nb\x1b[2J": b"1"}),
        "no-utf-8": (tgz(file(b"\xff\xfe", b"1")), {"\udcff\udcfe": b"1"}),
        "nul-in-a-pax-name": (
            tgz(pax(path=b"ok\0/../../slip"), file(b"x", BAD)),
            NOT_ALLOWED + r"ok\x00/../../slip",
        ),
        "nul-in-a-gnu-name": (
            tgz(gnu_name(b"ok\0slip"), file(b"x", BAD, magic=GNU)),
            NOT_ALLOWED + r"ok\x00slip",
        ),
        "file-without-a-name": (tgz(file(b"/", BAD)), "a file has no name"),
        "long-component": (
            tgz(gnu_name(b"n" * 256), file(b"x", BAD)),
            "a file name is longer than 255 bytes",
        ),
        # members in each other's way
        "file-where-a-directory-is": (
            tgz(folder(b"d"), file(b"d/x"), file(b"d", BAD)),
            _clash("d"),
        ),
        "directory-where-a-file-is": (tgz(file(b"f", BAD), folder(b"f")), _clash("f")),
        "below-a-file": (tgz(file(b"f", BAD), file(b"f/x", BAD)), _clash("f")),
        # headers that lie
        "bad-checksum-later": (
            tgz(GOOD, file(b"x", BAD).replace(b"x", b"y", 1)),
            DAMAGED,
        ),
        "one-block-of-an-end-marker-inside": (tgz(GOOD, bytes(512), GOOD), DAMAGED),
        "checksum-in-words": (
            tgz(GOOD, header(b"x")[:148] + b"checksum" + header(b"x")[156:]),
            DAMAGED,
        ),
        "checksum-of-blanks": (tgz(GOOD, bytes(148) + b" " * 8 + b"0" * 356), DAMAGED),
        "negative-size": (
            tgz(file(b"x", b"", size_field=b"\xff" * 12)),
            DAMAGED,
        ),
        "size-in-words": (
            tgz(GOOD, file(b"x", b"", size_field=b"lots")),
            DAMAGED,
        ),
        "enormous-size": (
            tgz(file(b"x", b"", size_field=b"\x80" + b"\x7f" * 11)),
            "a file is larger than 1073741824 bytes",
        ),
        "size-beyond-the-end": (
            tgz(header(b"x", 10_000), BAD, end=b""),
            "the archive ends in the middle of a file",
        ),
        "pax-size-negative": (tgz(pax(size=b"-1"), file(b"x", BAD)), DAMAGED),
        "pax-size-enormous": (tgz(pax(size=b"9" * 30), file(b"x", BAD)), DAMAGED),
        "pax-length-zero": (tgz(_raw_pax(b"0 path=x\n"), GOOD), DAMAGED),
        "pax-length-beyond": (tgz(_raw_pax(b"99 path=x\n"), GOOD), DAMAGED),
        "pax-length-missing": (tgz(_raw_pax(b"path=x\n"), GOOD), DAMAGED),
        "pax-length-signed": (tgz(_raw_pax(b"+9 path=x\n"), GOOD), DAMAGED),
        "pax-without-equals": (tgz(_raw_pax(b"8 path\n\n"), GOOD), DAMAGED),
        "pax-second-record-overrides": (
            tgz(_raw_pax(record(b"path", b"ok") + record(b"path", b"../slip")), GOOD),
            NOT_ALLOWED + "../slip",
        ),
        "global-path": (
            tgz(pax(b"g", path=b"../slip"), GOOD),
            "global tar headers with names or sizes are not supported",
        ),
        "extended-header-at-the-end": (
            tgz(GOOD, pax(path=b"x")),
            "the archive ends after an extended header",
        ),
        "extended-header-cut": (
            tgz(header(b"pax", 600, b"x"), b"9 a=b\n", end=b""),
            "the archive ends in the middle of a header",
        ),
        # gzip that lies
        "cut-gzip": (tgz(GOOD)[:-9], CUT),
        "cut-in-the-header": (tgz(GOOD)[:5], CUT),
        "cut-before-the-checksum": (tgz(GOOD)[:-8], CUT),
        "wrong-gzip-checksum": (
            tgz(GOOD)[:-8] + b"\0" * 8,
            "the gzip data is damaged",
        ),
        "second-gzip-member-broken": (
            gzip.compress(GOOD) + b"\x1f\x8b\x08\0" + b"\xff" * 30,
            "the gzip data is damaged",
        ),
        "junk-instead-of-the-end": (gzip.compress(GOOD) + b"junk", "the gzip data is damaged"),
        "zlib-instead-of-gzip": (zlib.compress(GOOD + END), "not gzip"),
        "plain-tar": (GOOD + END, "not gzip"),
        "nothing": (b"", "not gzip"),
        "one-byte-short-of-a-header": (gzip.compress(GOOD[:511]), "not a tar archive"),
        "tar-in-a-gzip-in-a-gzip": (gzip.compress(tgz(GOOD)), "not a tar archive"),
        "checksum-right-content-random": (
            tgz(checked(b"\xfe" * 100 + b"\xaa" * 412)),
            "not a tar archive",
        ),
        "version-of-ustar-unknown": (
            tgz(header(b"good.txt", 4, magic=USTAR[:6] + b"99") + padded(b"good")),
            KEPT,
        ),
    }


def _clash(path: str) -> str:
    return f"{path} conflicts with another file, directory or link"


def _raw_pax(data: bytes) -> bytes:
    return header(b"pax", len(data), b"x") + padded(data)


NAMES = tuple(hostile(b"/x"))
