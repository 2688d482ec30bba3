"""What a running reporter shows beside the condition: metrics, health, logs, progress."""

import json
import re
import socket
import time

import pytest

from tests.blackbox.sidecar.scene import BOUND, RUNNING, Reporter, Scene, ask, now
from tests.fakekube import make_job, running

GRACE = {"terminationGracePeriodSeconds": 600}
"""So much that only what is tested can end a linger."""


@pytest.fixture
def port() -> int:
    """A port that is free now."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        found: int = listener.getsockname()[1]
    return found


def wait_metrics(scene: Scene, port: int, text: str) -> str:
    """Return the first page that has this line."""
    pattern = re.compile(rf"^status_reporter_{re.escape(text)}$", re.MULTILINE)
    return scene.fake.wait_for(
        lambda: (page := ask(port, "/metrics")[1]) and pattern.search(page) and page, BOUND
    )


def test_the_metrics_show_the_verdict(scene: Scene, port: int) -> None:
    """Condition, reason, exit code and what it cost; a reason from a file is `FromResult`."""
    scene.create(form="native")
    scene.start(METRICS_PORT=str(port), METRICS_ADDRESS="127.0.0.1")
    scene.wait_condition(RUNNING)
    wait_metrics(scene, port, 'verdict{reason="AdapterRunning"} 1.0')
    scene.write_result("failure", "DiskFull")
    scene.wait_final()
    scene.adapter(scene.ended(3))
    page = wait_metrics(scene, port, "adapter_exit_code 3.0")

    shown = dict(line.rsplit(" ", 1) for line in page.splitlines() if not line.startswith("#"))
    expected = {
        'condition{status="True"}': "0.0",
        'condition{status="False"}': "1.0",
        'condition{status="Unknown"}': "0.0",
        'verdict{reason="FromResult"}': "1.0",
        "verdict_final": "1.0",
        'publishes_total{result="written"}': "2.0",
        'publishes_total{result="failed"}': "0.0",
        'failures_total{failure="unavailable"}': "0.0",
        'result_reads_total{outcome="valid"}': shown[
            'status_reporter_result_reads_total{outcome="valid"}'
        ],
    }
    assert expected == {name: shown[f"status_reporter_{name}"] for name in expected}
    assert "DiskFull" not in page
    assert float(shown['status_reporter_result_reads_total{outcome="valid"}']) >= 1


def test_it_gets_ready(scene: Scene, port: int) -> None:
    """Not before Job and Pod were read, and /livez does not care."""
    scene.create(form="native")
    rights = scene.fake.tokens.roles["reporter"]
    scene.fake.tokens.roles["reporter"] = ()
    scene.start(METRICS_PORT=str(port), METRICS_ADDRESS="127.0.0.1")
    scene.fake.wait_for(lambda: "forbidden" in ask(port, "/readyz")[1], BOUND)
    status, text = ask(port, "/readyz?verbose")
    assert (503, True, True) == (
        status,
        "[-]job failed: the Job has not been read yet" in text,
        "[-]pod failed: reading the Pod is forbidden" in text,
    )
    assert (200, "ok\n") == ask(port, "/livez")
    scene.fake.tokens.roles["reporter"] = rights
    scene.write_result()

    scene.fake.wait_for(lambda: ask(port, "/readyz") == (200, "ok\n"), BOUND)


def test_a_job_never_seen_is_not_ready(scene: Scene, port: int) -> None:
    """The native form stays, so that somebody can see it."""
    scene.create(form="native")
    scene.fake.create_job(make_job("other", uid="another"))
    scene.start(JOB_NAME="other", METRICS_PORT=str(port), METRICS_ADDRESS="127.0.0.1")
    scene.wait_log("No such Job: check JOB_NAME and JOB_NAMESPACE")

    assert "[-]job failed: no such Job" in ask(port, "/readyz?verbose")[1]


def test_a_port_in_use_costs_the_metrics_only(scene: Scene) -> None:
    """It is said, and the verdict is written."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        scene.create()
        scene.write_result()
        reporter = scene.start(
            METRICS_PORT=str(taken.getsockname()[1]), METRICS_ADDRESS="127.0.0.1"
        )
        assert 0 == reporter.join()

    assert "error" == scene.wait_log("No metrics: cannot listen on the port")["level"]


def test_the_linger_ends_with_the_first_scrape_of_the_verdict(scene: Scene, port: int) -> None:
    """Classic form: it is there for one more scrape, and gone at once after it."""
    scene.create()
    scene.write_result()
    reporter = scene.start(
        METRICS_PORT=str(port), METRICS_ADDRESS="127.0.0.1", METRICS_LINGER_SECONDS="1000"
    )
    scene.wait_final()
    wait_metrics(scene, port, "verdict_final 1.0")

    assert 0 == reporter.join()


def test_the_linger_is_bounded(scene: Scene, port: int) -> None:
    """Nobody scrapes: the time is over some day."""
    scene.create()
    scene.write_result()
    begun = time.monotonic()
    reporter = scene.start(
        METRICS_PORT=str(port), METRICS_ADDRESS="127.0.0.1", METRICS_LINGER_SECONDS="1"
    )

    assert 0 == reporter.join()
    assert time.monotonic() - begun >= 1.0


def test_sigterm_ends_the_linger(scene: Scene, port: int) -> None:
    """Classic form: there are better things to do with a grace period."""
    scene.create()
    scene.write_result()
    reporter = scene.start(
        METRICS_PORT=str(port), METRICS_ADDRESS="127.0.0.1", METRICS_LINGER_SECONDS="1000"
    )
    scene.wait_final()

    assert 0 == reporter.finish()


def test_nobody_lingers_without_an_endpoint(scene: Scene) -> None:
    """There is nothing to scrape."""
    scene.create()
    scene.write_result()

    assert 0 == scene.start(METRICS_LINGER_SECONDS="1000").join()


@pytest.fixture
def lingering(scene: Scene, port: int) -> Reporter:
    """A native reporter after its verdict, the adapter's end and SIGTERM; it waits for a scrape."""
    scene.create(form="native", pod=lambda pod: pod["spec"].update(GRACE))
    reporter = scene.start(
        METRICS_PORT=str(port), METRICS_ADDRESS="127.0.0.1", METRICS_LINGER_SECONDS="1000"
    )
    scene.write_result()
    scene.wait_final()
    scene.adapter(scene.ended(0))
    reporter.sigterm()
    return reporter


def test_the_native_form_lingers_after_sigterm(
    scene: Scene, port: int, lingering: Reporter
) -> None:
    """The first scrape of the verdict ends it."""
    wait_metrics(scene, port, "verdict_final 1.0")

    assert 0 == lingering.join()


def test_a_deletion_ends_the_native_linger(scene: Scene, lingering: Reporter) -> None:
    """Who deletes a Pod is not kept waiting for a scrape."""
    scene.fake.mark_pod_deleted(scene.pod_name, grace=600)

    assert 0 == lingering.join()


def test_a_page_scraped_before_sigterm_was_enough(scene: Scene, port: int) -> None:
    """The verdict has been seen."""
    scene.create(form="native", pod=lambda pod: pod["spec"].update(GRACE))
    reporter = scene.start(
        METRICS_PORT=str(port), METRICS_ADDRESS="127.0.0.1", METRICS_LINGER_SECONDS="1000"
    )
    scene.write_result()
    scene.wait_final()
    wait_metrics(scene, port, "verdict_final 1.0")
    scene.adapter(scene.ended(0))

    assert 0 == reporter.finish()


def test_without_a_final_verdict_the_native_form_does_not_linger(scene: Scene, port: int) -> None:
    """No scrape could show one."""
    short = {"terminationGracePeriodSeconds": 4}
    scene.create(form="native", pod=lambda pod: pod["spec"].update(short))
    reporter = scene.start(
        METRICS_PORT=str(port), METRICS_ADDRESS="127.0.0.1", METRICS_LINGER_SECONDS="1000"
    )
    scene.wait_condition(RUNNING)

    assert 0 == reporter.finish()
    assert not scene.note()["final"]


def test_progress_is_in_the_first_condition_and_in_the_metrics(scene: Scene, port: int) -> None:
    """The metrics follow at once; the message is throttled."""
    scene.create(form="native")
    scene.write_progress(msg="half way", total=4, completed=2, failures=["a"])
    scene.start(METRICS_PORT=str(port), METRICS_ADDRESS="127.0.0.1")
    message = scene.wait_condition(RUNNING)["message"]
    assert "Adapter container is running; 2 of 4 completed, 1 failed, half way" == message
    wait_metrics(scene, port, "progress_completed 2.0")
    for completed in (3, 4):
        scene.write_progress(total=4, completed=completed)
        wait_metrics(scene, port, f"progress_completed {completed}.0")

    assert 1 == len(scene.writes())


def test_malformed_progress_is_logged_once(scene: Scene) -> None:
    """And is never a verdict."""
    scene.create()
    reporter = scene.start()
    scene.wait_condition(RUNNING)
    for text in ("{", "[]", '{"total": "four"}'):
        scene.write(text, scene.progress)
        scene.wait_log("Progress file ignored")
    scene.write_result()

    assert 0 == reporter.join()
    assert 1 == len(scene.said("Progress file ignored"))
    assert ("True", "AllGood", True) == scene.history()[-1]


def test_one_canonical_line_tells_every_fact_used(scene: Scene) -> None:
    """What is on the Job, whose it is, and what it rests on."""
    scene.create(adapter=running(now(-20)))
    reporter = scene.start()
    scene.wait_condition(RUNNING)
    scene.write_result("failure", "DiskFull", "no space left")
    scene.adapter(scene.ended(1, started_at=now(-20)))
    reporter.join()

    (line,) = scene.said("Verdict")
    expected = {
        "level": "info",
        "message": "Verdict",
        "status": "False",
        "reason": "DiskFull",
        "text": "no space left",
        "rule": "R",
        "final": True,
    }
    assert expected == {key: line[key] for key in expected}
    assert scene.pod_name == line["attempt"]["pod"]
    assert {"observedAt", "file", "pod", "adapter", "job", "waitedSeconds"} <= set(line["evidence"])
    assert scene.note()["evidence"] == json.loads(json.dumps(line["evidence"]))
    assert 0 < line["publishSeconds"] < BOUND


def test_no_token_and_no_content_of_the_file_is_logged(scene: Scene) -> None:
    """Only what the contract puts into the condition."""
    scene.create()
    token = scene.fake.read_token()
    scene.write(
        '{"status": "success", "reason": "AllGood", "details": {"password": "hunter2"}, "x": "y12"}'
    )
    scene.start(LOG_LEVEL="debug").join()

    shown = json.dumps(scene.logs, default=str)
    assert [] == [secret for secret in (token, "hunter2", "y12") if secret in shown]


def test_remarks_on_a_result_are_logged_once(scene: Scene) -> None:
    """A key in another letter case is taken, and said."""
    scene.create(restart_policy="OnFailure")
    reporter = scene.start()
    scene.write('{"Status": "success"}')
    scene.wait_condition("NoReasonProvided")
    scene.adapter(scene.ended(0))
    reporter.join()

    assert 1 == len(scene.said("Result file needs attention"))


def test_a_job_with_many_pods_is_warned_about(scene: Scene) -> None:
    """It is outside the contract: the newest Pod's verdict stands."""
    scene.create(job=lambda job: job["spec"].update(parallelism=3))
    scene.write_result()
    scene.start().join()

    assert scene.said("Job runs several Pods at once: the newest Pod's verdict counts")
