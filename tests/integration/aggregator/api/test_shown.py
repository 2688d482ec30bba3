"""What the page asks about results: the tests that did not pass."""

import json
from typing import Any

import pytest

from reporter.run.plan import Key, Plan, Plugin
from reporter.run.upload import Meta
from tests.archives import tars
from tests.integration.aggregator.api.scene import situation
from tests.integration.aggregator.api.site import Site, serving

RUN = Plan(
    "run-1",
    (
        Plugin("junit", result_format="junit"),
        Plugin("go", result_format="gojson"),
        Plugin("checks", ("n1",)),
    ),
)
JUNIT, GO = (Key(name, "global") for name in ("junit", "go"))
PLAIN = Meta()
ARCHIVE = Meta(content_type="application/gzip", filename="r.tar.gz", disposition=True)
BAD_CASE = '<testcase name="c{}"><failure message="{}"/></testcase>'


async def read(site: Site, path: str) -> Any:
    """Ask for a document that is there."""
    reply = await site.get(path)
    assert 200 == reply.status, reply.said
    assert ("application/json", "nosniff") == (
        reply.headers["content-type"],
        reply.headers["x-content-type-options"],
    )
    return json.loads(reply.body)


async def end(site: Site) -> None:
    """Bring the run to its end, when the bytes of the results are gone."""
    await site.pack()
    await site.finish.clear(site.store.snapshot())
    assert [] == [*site.layout.blobs.iterdir()]


def packed(*files: tuple[str, bytes]) -> bytes:
    """An archive of these files."""
    return tars.tgz(*(tars.file(name.encode(), data) for name, data in files))


@situation
async def test_tests_that_did_not_pass(tmp_path):
    """Of two formats, what failed first, before and after the bytes of the result are gone."""
    report = f"<testsuite name='s'>{BAD_CASE.format(1, 'why')}<testcase/></testsuite>".encode()
    events = b'{"Action":"run","Package":"p","Test":"Open"}\n{"Action":"fail","Package":"q"}\n'
    async with serving(tmp_path, RUN, judged=True) as site:
        assert 404 == (await site.get("/results/junit/global/report")).status
        await site.put(JUNIT, packed(("out/a.xml", report)), ARCHIVE)
        await site.put(GO, events)
        for key in (JUNIT, GO):
            await site.judged(key)
        junit = await read(site, "/results/junit/global/report")
        go = await read(site, "/results/go/global/report")
        assert {
            "run": "run-1",
            "key": "junit/global",
            "result_status": "failed",
            "result_counts": {"failed": 1, "passed": 1},
            "reason": "TestsFailed",
            "message": "1 of 2 tests failed: c1: why",
            "unlisted": {},
            "tests": [{"path": ["a.xml", "s"], "name": "c1", "status": "failed", "text": "why"}],
        } == junit
        assert [("failed", "q"), ("unknown", "Open"), ("unknown", "p")] == [
            (each["status"], each["name"]) for each in go["tests"]
        ]
        await end(site)
        assert junit == await read(site, "/results/junit/global/report")
        assert "pod gone" == (await read(site, "/results/checks/n1/report"))["tests"][0]["text"]


@situation
async def test_a_report_that_is_as_large_as_it_can_be(tmp_path):
    """Bounded in tests and in bytes; what is left out is counted; a reader that has it gets 304."""
    cases = "".join(BAD_CASE.format(number, "x" * 9000) for number in range(2_000))
    async with serving(tmp_path, RUN, judged=True) as site:
        await site.put(JUNIT, f"<testsuite>{cases}</testsuite>".encode())
        await site.judged(JUNIT)
        reply = await site.get("/results/junit/global/report")
        document = json.loads(reply.body)
        listed = len(document["tests"])
        assert ["c0", "c1"] == [each["name"] for each in document["tests"][:2]]
        assert 20 < listed <= 200
        assert {"failed": 2_000 - listed} == document["unlisted"]
        assert len(reply.body) < 300_000
        again = await site.get(
            "/results/junit/global/report", f"If-None-Match: {reply.headers['etag']}"
        )
        assert (304, b"") == again.said


@situation
async def test_a_result_that_is_still_being_read(tmp_path):
    """409, and when to ask again."""
    async with serving(tmp_path, RUN) as site:
        await site.put(JUNIT, b"<testsuite/>")
        reply = await site.get("/results/junit/global/report")
        assert (409, b"the result is still being read\n", "2") == (
            *reply.said,
            reply.headers["retry-after"],
        )


@situation
async def test_hostile_reports_cost_only_their_own_answer(tmp_path):
    """One that cannot be read says why; a kept file that was damaged is not used."""
    async with serving(tmp_path, RUN, judged=True) as site:
        await site.put(JUNIT, BAD_CASE.format("&lt;b&gt;", "\u202ex").encode())
        await site.put(GO, b'{"Action":"fail","Package":"p","Test":"\\ud800\\u0000"}\nno\n')
        for key in (JUNIT, GO):
            await site.judged(key)
        junit = await read(site, "/results/junit/global/report")
        assert "not a JUnit report" in junit["tests"][0]["text"]
        go = await read(site, "/results/go/global/report")
        assert [("failed", "?\0"), ("unknown", "p"), ("unknown", "result")] == [
            (each["status"], each["name"]) for each in go["tests"]
        ]
        for each in site.layout.kept.iterdir():
            each.write_bytes(b"half")
        assert {"failed": 1, "unknown": 1} == (await read(site, "/results/go/global/report"))[
            "unlisted"
        ]


@pytest.mark.parametrize(
    "path",
    [
        "/results/junit/n1/report",
        "/results/no/global/report",
        "/results/junit/global/more",
        "/results/junit/global/report/",
        "/results/junit/../report",
        "/results/junit/%/report",
    ],
)
@situation
async def test_paths_that_are_none(tmp_path, path):
    """404; and none of it is for strangers."""
    async with serving(tmp_path, RUN) as site:
        assert 404 == (await site.get(path)).status
        assert 403 == (await site.get(path, host="evil.example")).status
