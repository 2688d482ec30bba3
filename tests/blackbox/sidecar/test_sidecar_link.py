"""The sidecar with a link: what an aggregator gets, and that no Job suffers from it (W24)."""

import http.client
import json
import threading
from collections.abc import Callable
from typing import Any

import pytest

from tests.aggregators.identities import Authority, identities
from tests.aggregators.scripted import Scripted
from tests.blackbox.sidecar.linked import linked, results, short_grace
from tests.blackbox.sidecar.scene import BOUND, RUNNING, Scene
from tests.fakekube import Rule
from tests.scripted_server import Hold, Say, Silence

WRITTEN = '{"status": "success",  "reason": "AllGood", "message": "fine"}'


@pytest.mark.parametrize("status", ["success", "failure"])
def test_result_file_goes_out_as_it_is(scene: Scene, aggregator: Scripted, status: str) -> None:
    """A failure that the adapter reports is a result too; the bytes are the file's."""
    scene.create()
    reporter = scene.start(**linked(aggregator))
    scene.wait_condition(RUNNING)
    text = WRITTEN.replace("success", status)
    scene.write(text)

    assert 0 == reporter.join()
    expected = ("/api/v1/results/global/e2e", text.encode(), "")
    assert [expected] == results(aggregator)
    (upload,) = aggregator.heard(1, "results")
    assert "application/json" == upload.headers["content-type"]
    assert "status-reporter.io/adapter-result.v1" == upload.headers["result-format"]
    assert 'attachment; filename="adapter-result.json"' == upload.headers["content-disposition"]
    assert [] != scene.said("Delivered to the aggregator")


def test_condition_comes_first(scene: Scene, aggregator: Scripted) -> None:
    """While the aggregator thinks about the upload the verdict stands on the Job already."""
    gate = threading.Event()
    aggregator.script("results", Hold(gate))
    scene.create()
    reporter = scene.start(**linked(aggregator))
    scene.write_result()
    aggregator.heard(1, "results")

    assert "AllGood" == scene.wait_final()["reason"]
    assert reporter.alive
    gate.set()
    assert 0 == reporter.join()


def test_kill_for_memory_goes_out_as_an_error_report(scene: Scene, aggregator: Scripted) -> None:
    """Message, reason and evidence of our own verdict."""
    scene.create()
    reporter = scene.start(**linked(aggregator))
    scene.wait_condition(RUNNING)
    scene.adapter(scene.ended(137, "OOMKilled"))

    assert 1 == reporter.join()
    ((target, body, outcome),) = results(aggregator)
    assert ("/api/v1/results/global/e2e", "error") == (target, outcome)
    report = json.loads(body)
    assert ("AdapterOOMKilled", "failure") == (report["cause"], report["status"])
    assert "out of memory" in report["error"]
    assert 137 == report["evidence"]["adapter"]["exitCode"]


def test_exit_code_that_outranks_a_result_goes_out_as_an_error_report(
    scene: Scene, aggregator: Scripted
) -> None:
    """The aggregator hears what the Job says, not what the file said."""
    scene.create()
    reporter = scene.start(**linked(aggregator, RESULT_TRUST="at-exit"))
    scene.wait_condition(RUNNING)
    scene.write_result()
    scene.adapter(scene.ended(3))

    assert 1 == reporter.join()
    ((_, body, outcome),) = results(aggregator)
    report = json.loads(body)
    assert ("error", "AdapterExitedWithError") == (outcome, report["cause"])
    assert "AllGood" == report["evidence"]["file"]["resultReason"]
    assert {RUNNING, "AdapterExitedWithError"} == {reason for _, reason, _ in scene.history()}


def test_verdict_unknown_goes_out_as_such(scene: Scene, aggregator: Scripted) -> None:
    """A Pod that was deleted is no failure of the adapter, and no success either."""
    scene.create(form="native")
    reporter = scene.start(**linked(aggregator))
    scene.wait_condition(RUNNING)
    scene.fake.mark_pod_deleted(scene.pod_name)
    scene.wait_condition("AdapterInterrupted")

    assert 0 == reporter.finish()
    ((_, body, outcome),) = results(aggregator)
    report = json.loads(body)
    assert ("error", "AdapterInterrupted", "unknown") == (
        outcome,
        report["cause"],
        report["status"],
    )


def test_success_without_a_file_is_a_result(scene: Scene, aggregator: Scripted) -> None:
    """AdapterSucceeded is a success for the aggregator too."""
    scene.create()
    reporter = scene.start(**linked(aggregator, RESULT_REQUIRED="false"))
    scene.wait_condition(RUNNING)
    scene.adapter(scene.ended(0))

    assert 0 == reporter.join()
    ((_, body, outcome),) = results(aggregator)
    assert (
        {
            "status": "success",
            "reason": "AdapterSucceeded",
            "message": "Adapter container exited successfully (code 0)",
        },
        "",
    ) == (json.loads(body), outcome)


def test_scope_node_delivers_for_the_node(scene: Scene, aggregator: Scripted) -> None:
    """The node is a segment of the path."""
    scene.create()
    reporter = scene.start(**linked(aggregator, AGGREGATOR_SCOPE="node", NODE_NAME="node1"))
    scene.write_result()

    assert 0 == reporter.join()
    assert ["/api/v1/results/by-node/node1/e2e"] == [t for t, _, _ in results(aggregator)]


def test_refusing_aggregator_changes_nothing(scene: Scene, aggregator: Scripted) -> None:
    """Verdict and exit code stay, and one line says what happened."""
    aggregator.script("results", Say(403, b"result e2e/global unexpected\n"))
    scene.create()
    reporter = scene.start(**linked(aggregator))
    scene.write_result()

    assert 0 == reporter.join()
    assert "AllGood" == scene.condition()["reason"]
    (said,) = scene.said("Not delivered to the aggregator")
    assert 403 == said["status"]


@pytest.mark.parametrize("form", ["native", "classic"])
def test_job_that_is_only_read_is_never_written(
    scene: Scene, aggregator: Scripted, form: str
) -> None:
    """REPORT_CONDITION=false: nothing is tried that may not be done, and the end is as usual."""
    scene.fake.tokens.roles["reporter"] = (
        Rule(("get",), ("jobs/status",)),
        Rule(("get", "watch"), ("pods",)),
    )
    scene.create(form=form)
    reporter = scene.start(**linked(aggregator, REPORT_CONDITION="false"))
    scene.wait_log("Condition written")
    scene.write(WRITTEN)
    scene.wait_log("Delivered to the aggregator")
    scene.adapter(scene.ended())

    assert 0 == (reporter.finish() if form == "native" else reporter.join())
    assert [("/api/v1/results/global/e2e", WRITTEN.encode(), "")] == results(aggregator)
    assert ({}, {}) == (scene.condition(), scene.note())
    assert [] == scene.said("Request failed")
    assert not [each for each in scene.fake.requests() if each.method != "GET"]


@pytest.mark.parametrize("rights", [("get",), ()], ids=["may only read", "may nothing"])
@pytest.mark.parametrize("form", ["native", "classic"])
def test_verdict_that_may_not_be_written_is_delivered_at_once(
    scene: Scene, aggregator: Scripted, form: str, rights: tuple[str, ...]
) -> None:
    """The run must not lose what the Job may not have."""
    scene.fake.tokens.roles["reporter"] = (
        Rule(rights, ("jobs/status",)),
        Rule(("get", "watch"), ("pods",)),
    )
    scene.create(form=form)
    reporter = scene.start(**linked(aggregator))
    scene.write(WRITTEN)

    scene.wait_log("Delivered to the aggregator")
    assert [("/api/v1/results/global/e2e", WRITTEN.encode(), "")] == results(aggregator)
    assert {} == scene.condition()
    assert reporter.alive


def test_verdict_beside_one_of_another_index_is_delivered(
    scene: Scene, aggregator: Scripted
) -> None:
    """The Job keeps the failure of that index; the exit code is that of the own row."""

    def index(number: str) -> Callable[[dict[str, Any]], None]:
        annotations = {"batch.kubernetes.io/job-completion-index": number}
        return lambda pod: pod["metadata"].update(annotations=annotations, uid=f"uid-{number}")

    scene.create(
        adapter=scene.ended(1),
        job=lambda job: job["spec"].update(completions=3, completionMode="Indexed"),
        pod=index("0"),
    )
    assert 1 == scene.start().join()
    scene.fake.update_pod(scene.pod_name, index("1"))
    reporter = scene.start(**linked(aggregator))
    scene.write_result()

    assert 0 == reporter.join()
    assert [("False", "AdapterExitedWithError", True)] == scene.history()
    scene.wait_log("Another completion index has failed: its verdict stays on the Job")
    ((_, body, _),) = results(aggregator)
    assert {"status": "success", "reason": "AllGood", "message": "index 1: fine"} == json.loads(
        body
    )


def test_restarted_reporter_delivers_again(scene: Scene, aggregator: Scripted) -> None:
    """Its predecessor may have been killed before the delivery; 409 is a success."""
    scene.create(form="native")
    first = scene.start(WORKER_HEARTBEAT_SECONDS="0")
    scene.write_result()
    scene.wait_final()
    first.close()
    aggregator.script("results", Say(409, b"result e2e/global already received\n"))
    second = scene.start(**linked(aggregator))
    aggregator.heard(1, "results")
    said = scene.wait_log("Delivered to the aggregator")

    assert "duplicate" == said["outcome"]
    scene.adapter(scene.ended())
    assert 0 == second.finish()


def test_changed_file_does_not_change_the_verdict(scene: Scene, aggregator: Scripted) -> None:
    """What stands on the Job is what the aggregator gets, whatever the file says by then."""
    scene.create(form="native")
    first = scene.start(WORKER_HEARTBEAT_SECONDS="0")
    scene.write_result()
    scene.wait_final()
    first.close()
    scene.write_result("failure", "Later", "not what was reported")
    second = scene.start(**linked(aggregator))
    aggregator.heard(1, "results")

    ((_, body, _),) = results(aggregator)
    expected = {"status": "success", "reason": "AllGood", "message": "fine"}
    assert expected == json.loads(body)
    scene.adapter(scene.ended())
    assert 0 == second.finish()


def test_progress_file_is_forwarded(scene: Scene, aggregator: Scripted) -> None:
    """As updates that replace each other."""
    scene.create(form="native")
    scene.start(**linked(aggregator))
    scene.write_progress(msg="half", total=4, completed=2)
    (heard, *_) = aggregator.heard(1, "progress")

    assert "/api/v1/progress/global/e2e" == heard.target
    update = json.loads(heard.body)
    assert ("half", 4, 2) == (update["msg"], update["total"], update["completed"])


def test_progress_port_is_relayed(scene: Scene, aggregator: Scripted) -> None:
    """The adapter gets the aggregator's own answer."""
    aggregator.script("progress", Say(400, b"invalid progress update: no\n"))
    scene.create(form="native")
    variables = linked(aggregator)
    scene.start(**variables)
    scene.wait_condition(RUNNING)
    connection = http.client.HTTPConnection(
        "127.0.0.1", int(variables["SONOBUOY_PROGRESS_PORT"]), timeout=BOUND
    )
    connection.request("POST", "/progress", b'{"msg": "m"}')
    answer = connection.getresponse()

    assert (400, b"invalid progress update: no\n") == (answer.status, answer.read())
    connection.close()
    assert b'{"msg": "m"}' == aggregator.heard(1, "progress")[0].body


def test_heartbeats_until_the_delivery(scene: Scene, aggregator: Scripted) -> None:
    """The aggregator knows from the start that somebody is there."""
    scene.create(form="native")
    reporter = scene.start(**linked(aggregator, WORKER_HEARTBEAT_SECONDS="0.05"))
    aggregator.heard(2, "health")
    scene.write_result()
    scene.wait_log("Delivered to the aggregator")
    beats = len(aggregator.heard(0, "health"))
    scene.adapter(scene.ended())

    assert 0 == reporter.finish()
    assert beats == len(aggregator.heard(0, "health"))


def test_silent_aggregator_does_not_hold_up_the_verdict(scene: Scene, aggregator: Scripted) -> None:
    """Progress and beats that hang hang by themselves."""
    aggregator.script("progress", Silence())
    aggregator.script("health", Silence())
    aggregator.script("results", Silence())
    scene.create(form="native", pod=short_grace)
    scene.start(**linked(aggregator, WORKER_HEARTBEAT_SECONDS="0.05"))
    scene.write_progress(msg="half", total=4, completed=2)
    aggregator.heard(1, "progress")
    scene.write_result()

    assert "AllGood" == scene.wait_final()["reason"]


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"RESULT_TYPE": ""}, "RESULT_TYPE"),
        ({"AGGREGATOR_URL": "http://plain"}, "AGGREGATOR_URL"),
        ({"AGGREGATOR_SCOPE": "galaxy"}, "AGGREGATOR_SCOPE"),
        ({"CLIENT_KEY": "no key"}, "CLIENT_KEY"),
    ],
)
def test_link_settings_that_do_not_fit(
    scene: Scene, aggregator: Scripted, wrong: dict[str, str], named: str
) -> None:
    """One loud line, no link, and the verdict as without one."""
    scene.create()
    reporter = scene.start(**linked(aggregator, **wrong))
    scene.write_result()

    assert 0 == reporter.join()
    assert "AllGood" == scene.condition()["reason"]
    (said,) = scene.said("No link to the aggregator: invalid settings")
    assert any(problem.startswith(named) for problem in said["problems"])
    assert identities().client.sec1.splitlines()[1] not in str(scene.logs)
    assert [] == aggregator.requests


def test_foreign_certificate_is_told_and_nothing_is_sent(scene: Scene) -> None:
    """An aggregator of another run gets no byte of a request."""
    with Scripted() as aggregator:
        variables = linked(aggregator)
        variables["CA_CERT"] = Authority().pem
        scene.create()
        reporter = scene.start(**variables)
        scene.write_result()

        assert 0 == reporter.join()
        assert [] == aggregator.requests
    assert 1 == len(scene.said("Not delivered to the aggregator"))
    (told,) = scene.said("Cannot reach the aggregator")
    assert "certificate of another run" in told["error"]
