"""What is said of a run beside its entries: trouble, who is skipped, and the phases of its end."""

import pytest

from reporter.run.view import (
    FINISHING,
    REMOVING,
    UPLOADING,
    ending,
    hindrances,
    launcher_at_work,
    launcher_trouble,
    own_words,
)

HELD_UP = {"since": "2026-01-01T00:00:05.100000Z", "reason": "watching Jobs: 403"}


def run(step=None, status="post-processing", entries=("complete", "complete"), **more):
    """Return a run whose entries are so far."""
    return {
        "status": status,
        "final": False,
        "plugins": [{"name": "p", "status": each} for each in entries],
        "launcher": None if step is None else {"step": step},
    } | more


def test_what_hinders_a_run():
    """The launcher's trouble, what it could not remove, and the nodes that were left out."""
    document = {
        "launcher": {
            "degraded": HELD_UP,
            "stays": [{"object": "Job r1-p-1", "reason": "it is being deleted"}],
        },
        "skipped": [{"name": "p", "node": "win1", "reason": "not Linux"}],
    }
    assert [
        "the launcher has been blocked since 2026-01-01T00:00:05Z: watching Jobs: 403",
        "Job r1-p-1 could not be removed: it is being deleted",
        "plugin p skips node win1: not Linux",
    ] == hindrances(document)
    assert [] == hindrances({}) + hindrances({"launcher": None, "skipped": None})


@pytest.mark.parametrize(
    ("launcher", "trouble", "at_work"),
    [
        (None, False, False),
        ({"step": "watching", "degraded": HELD_UP}, True, False),
        ({"step": "removing", "degraded": None}, False, True),
        ({"step": "done", "degraded": None}, False, False),
    ],
)
def test_whether_the_launcher_is_held_up(launcher, trouble, at_work):
    """One that has ended tells of no trouble any more: that is no news that it works again."""
    document = {"launcher": launcher}

    assert (trouble, at_work) == (bool(launcher_trouble(document)), launcher_at_work(document))


def test_what_the_aggregator_says_of_itself():
    """Its own failure, and the upload."""
    upload = {"host": "store", "state": "uploaded"}

    assert [] == own_words({"error": None, "upload": None})
    assert ["the aggregator itself failed: disk full"] == own_words({"error": "disk full"})
    assert ["the results were uploaded to store"] == own_words({"upload": upload})


@pytest.mark.parametrize(
    ("document", "words"),
    [
        (run("watching", "running", ("complete", "running")), ""),
        (run("launching", "failed", ("failed", "running")), ""),
        (run("watching"), ""),  # the launcher has not looked yet
        (run("removing"), REMOVING),
        (run("removing", "failed", ("complete", "failed")), REMOVING),
        (run("done"), FINISHING),
        (run("done", "failed", ("complete", "timed_out")), FINISHING),
        (run("of the future"), ""),
        (run(), FINISHING),  # nobody launches
        (run(status="failed", entries=("failed",)), ""),  # a late result may still come
        (run("done", upload={"state": "waiting"}), FINISHING),
        (run("done", upload={"state": "uploading"}), UPLOADING),
        (run(upload={"state": "uploading"}), UPLOADING),
        (run("done", upload={"state": "uploaded"}, **{"tar-info": {"name": "x"}}), ""),
        (run("done", "complete", final=True), ""),
        (run("done", "complete", final=True, upload={"state": "uploading"}), ""),
    ],
)
def test_the_phases_of_the_end(document, words):
    """From the last decision to the tarball in its place; nothing is guessed."""
    assert words == ending(document)


def test_the_end_in_the_annotations():
    """They do not tell of the launcher, which may be at work; of the upload they do."""
    document = run()
    del document["launcher"]

    assert "" == ending(document)
    assert UPLOADING == ending(document | {"upload": {"state": "uploading"}})
