"""docs/openapi.yaml says what the aggregator does while it starts and in states that are brief."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from jsonschema import Draft202012Validator

from reporter.aggregator.api import page
from reporter.aggregator.api.status_app import StartupGate
from tests.aggregators.trapped import Trapped
from tests.blackbox.smoke.test_routes import DOCUMENT, STATUS


def valid(name: str, document: Any) -> Any:
    """Return what fits a schema of the document."""
    schema = {"$ref": f"#/components/schemas/{name}", "components": DOCUMENT["components"]}
    assert [] == [
        f"{e.json_path}: {e.message}" for e in Draft202012Validator(schema).iter_errors(document)
    ]
    return document


def test_the_page_is_documented() -> None:
    """All of its files."""
    (file,) = DOCUMENT["paths"]["/page/{file}"]["parameters"]
    assert page.PATHS == {"/", *(f"/page/{name}" for name in file["schema"]["enum"])}


@pytest.mark.parametrize("name", STATUS)
def test_answers_while_the_aggregator_starts_are_documented(name: str) -> None:
    """Only the liveness probes are 200 then."""
    method, _, path = name.partition(" ")
    answer = asyncio.run(StartupGate()(cast("Any", SimpleNamespace(raw_path=path))))
    described = DOCUMENT["paths"][path][method.lower()]["responses"]

    assert answer.status == (200 if name.endswith(("/livez", "/healthz")) else 503)
    assert str(answer.status) in described


def test_status_in_every_state(tmp_path: Path) -> None:
    """Entries running, complete, failed, timed out; a run at work, packing, failed, complete."""
    names = ("good", "bad", "slow", "open")
    timeouts = {"slow": {"timeout_seconds": 1}}
    document = {"run": "states", "plugins": [{"name": n} | timeouts.get(n, {}) for n in names]}
    flags = ("--hold-seconds", "0")
    with Trapped(tmp_path, document, *flags, trap=tmp_path / "trap") as running:
        good, bad, last = (running.worker(name) for name in ("good", "bad", "open"))
        assert "running" == valid("Status", running.status())["status"]
        assert 200 == good.put("global/good").status
        report = b'{"error": "it broke", "cause": "Broken"}'
        assert 200 == bad.put("global/bad", report, Result_Outcome="error").status
        assert 500 == last.put("global/open", b"no", Content_Type="application/gzip").status
        assert 200 == last.beat("global/open").status
        assert 200 == last.post("global/open", msg="m", failures=["f"], errors=["e"]).status
        running.wait_status(lambda found: found["plugins"][2]["status"] == "timed_out")
        shown = valid("Status", running.status())
        assert ["complete", "failed", "timed_out", "running"] == [
            entry["status"] for entry in shown["plugins"]
        ]
        assert ("failed", False) == (shown["status"], shown["final"])
        for name in names:
            valid("Entry", running.detail(f"{name}/global"))

        running.arm("EIO package member")
        assert 200 == last.put("global/open").status
        failed = valid("Status", running.wait_status(lambda found: found["error"]))
        assert "failed" == failed["status"]
        assert 0 == running.stop()
        running.arm("")
        running.start()
        shown = valid("Status", running.wait_status(lambda found: found["tar-info"]))
        assert ("failed", True, None) == (shown["status"], shown["final"], shown["error"])


def test_status_of_a_run_without_failures(tmp_path: Path) -> None:
    """Packing, then complete."""
    document = {"run": "states", "plugins": [{"name": "good"}]}
    with Trapped(tmp_path, document, trap=tmp_path / "trap") as running:
        running.arm("hold package member")
        assert 200 == running.worker("good").put("global/good").status
        running.wait_log("Run closed: the set of results is final")
        assert "post-processing" == valid("Status", running.status())["status"]
        running.arm("")
        done = valid("Status", running.wait_status(lambda found: found["tar-info"]))
        assert "complete" == done["status"]
