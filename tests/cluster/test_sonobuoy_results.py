"""The real `sonobuoy results` reads our tarballs and says the same as `status-ctl results`."""

from __future__ import annotations

import json
import random
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

import pytest

from reporter.run.plan import Key, Plan, Plugin
from reporter.run.state import Phase
from tests.blackbox.cluster.two_readers import check_both
from tests.integration.aggregator.intake.scene import ARCHIVE, JSON, Scene, play
from tests.integration.aggregator.test_judging import judged, judging, packed

pytestmark = pytest.mark.cluster
FORMATS = ("junit", "gojson", "manual", "raw", "adapter")
SUFFIXES = {"junit": "xml", "gojson": "json", "manual": "yaml", "raw": "txt"}
NODES, FILES = 3, 10  # thirty reports of each format
PLAN = Plan(
    "run-1",
    tuple(
        Plugin(
            name,
            tuple(f"node{at:02}" for at in range(NODES if name in SUFFIXES else NODES * FILES)),
            result_format=name,  # type: ignore[arg-type]
        )
        for name in FORMATS
    ),
)
TEXTS = ("plain", 'a "quoted" one', "two\nlines\tand a tab", "é 😀 <b>&amp;", "- x: #y", "", "  in")


def report(kind: str, chance: random.Random) -> bytes:
    """Make a report."""
    cases = [
        (f"{number} {chance.choice(TEXTS)}", chance.choice(("passed",) * 5 + ("failed", "skipped")))
        for number in range(chance.randrange(1, 6))
    ]
    said = chance.choice(TEXTS)
    if kind == "junit":
        inside = {
            "passed": "",
            "skipped": "<skipped/>",
            "failed": f"<{{0}} message={quoteattr(said)}>{escape(said)}</{{0}}>".format(
                chance.choice(("failure", "error"))
            ),
        }
        body = "".join(
            f"<testcase name={quoteattr(name)}>{inside[status]}</testcase>"
            for name, status in cases
        )
        return f'<testsuites><testsuite name="s">{body}</testsuite></testsuites>'.encode()
    if kind == "gojson":
        actions = {"passed": "pass", "failed": "fail", "skipped": "skip"}
        said = [{"Action": actions[status], "Package": "p", "Test": name} for name, status in cases]
        return b"\n".join(
            json.dumps(each).encode() for each in (*said, {"Action": "pass", "Package": "p"})
        )
    if kind == "manual":
        items = [
            {"name": name, "status": status, "details": {"said": said, "number": 3, "yes": True}}
            for name, status in cases
        ]
        return json.dumps(
            {"name": "m", "items": [{"name": "group", "items": items}]}, ensure_ascii=False
        ).encode()
    if kind == "adapter":
        status = chance.choice(("success", "failure"))
        return json.dumps({"status": status, "reason": "Because", "message": said}).encode()
    return said.encode()


@pytest.fixture(scope="module")
def tarball(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tarball of a run with thirty reports of each format."""
    chance = random.Random(1)

    async def story(here: Scene) -> None:
        for key in PLAN.keys:
            suffix = SUFFIXES.get(key.plugin)
            if suffix is None:
                await here.put(key, report(key.plugin, chance), JSON)
                continue
            files = [
                (f"{number:02}.{suffix}", report(key.plugin, chance)) for number in range(FILES)
            ]
            await here.put(key, packed(*files), ARCHIVE)
        async with judging(here):
            await judged(here, *(Key(key.plugin, key.node) for key in PLAN.keys))
        await here.store.advance_run(Phase.POST_PROCESSING)
        await here.finish.package(here.store.snapshot())

    done = play(tmp_path_factory.mktemp("run"), story, plan=PLAN)
    (path,) = done.layout.output.glob("*.tar.gz")
    return path


@pytest.mark.parametrize("plugin", FORMATS)
def test_both_say_the_same(tarball: Path, plugin: str) -> None:
    """Status, counts, and of every test its name, status, place and details."""
    check_both(tarball, plugin)
