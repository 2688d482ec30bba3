"""How the API server serves a watch: the fake and the real one."""

import time

import pytest

from tests.contract.conditions import version
from tests.contract.servers import POD, Server


@pytest.mark.parametrize("query", ["", "resourceVersion=0"])
def test_a_watch_starts_with_the_present_state(api: Server, query: str) -> None:
    """ADDED with the whole Pod, then every change."""
    made = api.create_pod()
    watch = api.watch_pod(f"timeoutSeconds=10&{query}")
    kind, pod = watch.event()
    api.touch_pod("first")
    changed, after = watch.event()

    assert ("ADDED", made["metadata"]["uid"]) == (kind, pod["metadata"]["uid"])
    assert ("MODIFIED", "first") == (changed, after["status"]["message"])
    assert pod["kind"] == "Pod"


def test_a_watch_from_the_pods_own_version_waits_for_a_change(api: Server) -> None:
    """Nothing of what was before."""
    made = api.create_pod()
    watch = api.watch_pod(f"timeoutSeconds=10&resourceVersion={version(made)}")
    api.touch_pod("first")

    kind, pod = watch.event()
    assert ("MODIFIED", "first") == (kind, pod["status"]["message"])


def test_a_watch_from_an_earlier_version_catches_up(api: Server) -> None:
    """What happened in between comes first."""
    made = api.create_pod()
    api.touch_pod("first")
    api.touch_pod("second")
    watch = api.watch_pod(f"timeoutSeconds=10&resourceVersion={version(made)}")

    assert ["first", "second"] == [watch.event()[1]["status"]["message"] for _ in range(2)]


def test_the_servers_timeout_ends_the_stream_cleanly(api: Server) -> None:
    """After that many seconds, and the connection can be used again."""
    api.create_pod()
    started = time.monotonic()
    watch = api.watch_pod("timeoutSeconds=1")
    assert ["ADDED"] == [kind for kind, _ in watch.rest()]
    assert 0.9 < time.monotonic() - started < 5

    watch.connection.request(
        "GET", f"{api.pods}/{POD}", headers={"Authorization": f"Bearer {api.admin}"}
    )
    assert 200 == watch.connection.getresponse().status


def test_the_first_bookmark_says_that_the_start_is_over(api: Server) -> None:
    """It comes at once after the initial events, where bookmarks are allowed."""
    made = api.create_pod()
    watch = api.watch_pod("timeoutSeconds=2&allowWatchBookmarks=true")
    events = list(watch.rest())

    # A busy server may send another one before the end.
    assert ["ADDED", "BOOKMARK"] == [kind for kind, _ in events[:2]]
    assert {"BOOKMARK"} == {kind for kind, _ in events[1:]}
    bookmark = events[1][1]
    assert "true" == bookmark["metadata"]["annotations"]["k8s.io/initial-events-end"]
    assert int(version(bookmark)) >= int(version(made))
    assert "Pod" == bookmark["kind"]
    assert "name" not in bookmark["metadata"]


@pytest.mark.long
@pytest.mark.timeout(300)
def test_a_quiet_watch_hears_bookmarks(api: Server) -> None:
    """Every minute while any Pod of the cluster changes; where none does, some stay away."""
    api.create_pod()
    watch = api.watch_pod("timeoutSeconds=150&allowWatchBookmarks=true")
    assert watch.connection.sock is not None
    watch.connection.sock.settimeout(200)

    assert ["ADDED", "BOOKMARK", "BOOKMARK"] == [watch.event()[0] for _ in range(3)]


def test_a_version_that_is_too_old(api: Server) -> None:
    """200, an ERROR event of code 410, and the end."""
    made = api.create_pod()
    api.touch_pod("later")
    api.forget_versions()
    watch = api.watch_pod(f"timeoutSeconds=10&resourceVersion={version(made)}")
    assert 200 == watch.status
    ((kind, error),) = watch.rest()

    assert ("ERROR", "Status", 410, "Expired") == (
        kind,
        error["kind"],
        error["code"],
        error["reason"],
    )
    assert "too old resource version" in error["message"]


def test_a_pod_that_does_not_exist_is_silence(api: Server) -> None:
    """A watch opened after the deletion never says so."""
    watch = api.watch_pod("timeoutSeconds=10")

    assert 200 == watch.status
    assert watch.is_silent()


def test_deletion_is_an_event_with_the_last_state_and_no_end(api: Server) -> None:
    """The stream stays open until its timeout."""
    api.create_pod()
    api.touch_pod("last")
    watch = api.watch_pod("timeoutSeconds=10")
    assert "ADDED" == watch.event()[0]
    api.delete_pod()
    (marked, _), (kind, pod) = watch.event(), watch.event()

    assert ("MODIFIED", "DELETED") == (marked, kind)
    assert "last" == pod["status"]["message"]
    assert 0 == pod["metadata"]["deletionGracePeriodSeconds"]
    assert "deletionTimestamp" in pod["metadata"]
    assert watch.is_silent()


def test_other_pods_do_not_show_in_a_watch_by_name(api: Server) -> None:
    """The field selector holds for the initial events and for changes."""
    api.create_pod()
    watch = api.watch("timeoutSeconds=10&fieldSelector=metadata.name=none")
    api.touch_pod("first")

    assert watch.is_silent()
