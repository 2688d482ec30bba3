"""Trouble with the API: the verdict is written, it is right, and it comes once."""

from tests.blackbox.sidecar.scene import BOUND, RUNNING, Scene
from tests.fakekube import Answer


def check(scene: Scene, verdict: tuple[str, str]) -> None:
    """The right verdict, final once, and logged once; no other False or True before it."""
    history = scene.history()
    assert {verdict} == {entry[:2] for entry in history if entry[0] != "Unknown"}
    assert [(*verdict, True)] == [entry for entry in history if entry[2]] == history[-1:]
    assert verdict == (scene.condition()["status"], scene.condition()["reason"])
    pods = [event["attempt"]["pod"] for event in scene.said("Verdict")]
    assert 1 == pods.count(scene.pod_name)


def away(scene: Scene, until: object) -> None:
    """Take the server away, and bring it back when a request has failed."""
    said = len(scene.said("Request failed"))
    scene.fake.stop()
    assert callable(until)
    until()
    scene.fake.wait_for(lambda: len(scene.said("Request failed")) > said)
    scene.fake.start()


def test_the_api_is_away_when_the_result_comes(scene: Scene) -> None:
    """It costs nothing but delay."""
    scene.create()
    reporter = scene.start()
    scene.wait_condition(RUNNING)
    away(scene, scene.write_result)

    assert 0 == reporter.join()
    check(scene, ("True", "AllGood"))


def test_the_api_is_away_when_the_adapter_ends(scene: Scene) -> None:
    """The end is seen when the server is back; the reporter has not guessed meanwhile."""
    scene.create()
    reporter = scene.start()
    scene.wait_condition(RUNNING)
    away(scene, lambda: scene.adapter(scene.ended(1)))

    assert 1 == reporter.join()
    check(scene, ("False", "AdapterExitedWithError"))


def test_the_api_is_away_at_the_start(scene: Scene) -> None:
    """Nothing is known but the file."""
    scene.create()
    scene.write_result()
    scene.fake.stop()
    reporter = scene.start()
    scene.wait_log("Request failed")
    scene.fake.start()

    assert 0 == reporter.join()
    check(scene, ("True", "AllGood"))


def test_handshakes_are_refused(scene: Scene) -> None:
    """As a load balancer without a server behind it does."""
    scene.create()
    scene.fake.refuse_handshakes(4)
    reporter = scene.start()
    scene.write_result()

    assert 0 == reporter.join()
    check(scene, ("True", "AllGood"))


def test_the_servers_certificate_is_not_trusted_for_a_while(scene: Scene) -> None:
    """A rotated CA reaches us later than the server."""
    scene.create()
    reporter = scene.start()
    scene.wait_condition(RUNNING)
    scene.fake.new_authority(publish=False)
    scene.fake.drop_connections()
    scene.write_result()
    scene.fake.wait_for(lambda: "CERTIFICATE_VERIFY_FAILED" in str(scene.said("Request failed")))
    scene.fake.publish_authority()

    assert 0 == reporter.join()
    check(scene, ("True", "AllGood"))


def test_the_token_is_rotated(scene: Scene) -> None:
    """The old one is refused: the file is read again and nobody notices."""
    scene.create()
    reporter = scene.start()
    scene.wait_condition(RUNNING)
    old, new = scene.fake.read_token(), scene.fake.token("reporter")
    scene.fake.write_token(new)
    scene.fake.revoke(old)
    scene.write_result()

    assert 0 == reporter.join()
    check(scene, ("True", "AllGood"))
    assert [] == scene.said("Request failed")


def test_the_token_comes_late(scene: Scene) -> None:
    """401 with the present file, until it is replaced; no token is ever logged."""
    scene.create()
    old = scene.fake.read_token()
    scene.fake.revoke(old)
    reporter = scene.start()
    scene.write_result()
    scene.wait_log("Request failed")
    new = scene.fake.token("reporter")
    scene.fake.write_token(new)

    assert 0 == reporter.join()
    check(scene, ("True", "AllGood"))
    assert not [e for e in scene.logs if old in str(e) or new in str(e) or "Bearer" in str(e)]


def test_the_rights_come_late(scene: Scene) -> None:
    """403 is retried: a RoleBinding may come after the Job. The hint says what is missing."""
    scene.create()
    rights = scene.fake.tokens.roles["reporter"]
    scene.fake.tokens.roles["reporter"] = ()
    reporter = scene.start()
    assert "Role" in scene.wait_log("Request failed")["hint"]
    scene.fake.wait_for(lambda: len(scene.fake.requests("GET", "/jobs/")) > 1)
    scene.fake.tokens.roles["reporter"] = rights
    scene.write_result()

    assert 0 == reporter.join()
    check(scene, ("True", "AllGood"))


def test_the_right_to_pods_comes_late(scene: Scene) -> None:
    """Until then the file alone is looked at; the Pod is asked for when the file changes."""
    scene.create()
    rights = scene.fake.tokens.roles["reporter"]
    scene.fake.tokens.roles["reporter"] = scene.fake.tokens.roles["no-pods"]
    reporter = scene.start(REPORTER_FORM="classic")
    assert "container cannot be observed" in scene.wait_condition(RUNNING)["message"]
    scene.fake.tokens.roles["reporter"] = rights
    scene.write_result()

    assert 0 == reporter.join()
    check(scene, ("True", "AllGood"))


def test_the_same_failure_is_not_logged_again_and_again(scene: Scene) -> None:
    """Every half minute is enough, whatever the number of tries."""
    scene.create()
    script = scene.fake.fail(Answer(503), path="/jobs/", times=None)
    reporter = scene.start()
    scene.fake.wait_for(lambda: script.hits >= 4, BOUND)
    script.clear()
    scene.write_result()
    reporter.join()

    assert 1 == len([e for e in scene.said("Request failed") if e["request"] == "job"])


def test_retry_after_is_a_floor(scene: Scene) -> None:
    """The server's wish is heard."""
    scene.create()
    scene.fake.fail(Answer(429, {"Retry-After": "1"}), path="/jobs/")
    scene.start()
    scene.wait_condition(RUNNING)

    first, second = scene.fake.requests("GET", "/jobs/")[:2]
    assert second.time - first.time >= 1.0
