"""The published schema of the status is true in every state a run can be in."""

import itertools
import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from reporter.common import schema
from reporter.run.entry import Entry, Window
from reporter.run.heartbeats import Beat
from reporter.run.plan import Skipped
from reporter.run.progress import Progress, combine
from reporter.run.record import Cause, Failure, Record, record_of
from reporter.run.state import LauncherState, LauncherTrouble, Phase, PodState, Status, Step, Tar
from reporter.run.status import entry_document, run_document
from reporter.run.view import EntryState, entry_display, run_display
from tests.unit.run.world import (
    E2E,
    EVICTED,
    FAILED,
    LOST,
    NODE1,
    NODE2,
    PLAN,
    RESULT,
    START,
    UNREADABLE,
    WORKER_ERROR,
    sent,
    snapshot,
    status_document,
)

NAME = "run-status.v1"
MONO = 1_000.0
TAR = Tar("202601010000_sonobuoy_run-1.tar.gz", "2026-01-01T00:00:09Z", "ab" * 32, 3)

SKIPPING = replace(
    PLAN,
    plugins=tuple(
        replace(plugin, skipped=(Skipped("win1", "not Linux"),)) if plugin.nodes else plugin
        for plugin in PLAN.plugins
    ),
)
OPEN = {
    "never heard": Entry(NODE1),
    "launched": Entry(NODE1, launched_at=START, deadline=START + 9, started_at=START),
    "retrying": Entry(NODE1, window=Window(START, START + 120, "reset"), attempts=3),
}
DECIDED: dict[str, Record] = {
    "result": RESULT,
    "empty result": replace(RESULT, size=0),
    "worker's error": replace(WORKER_ERROR, reason="nodes_gone"),
    "result that failed": FAILED,
    "result that is none": UNREADABLE,
    "evicted": EVICTED,
    "error without a cause": replace(WORKER_ERROR, cause=None),
    "lost": LOST,
    **{str(cause): record_of(Failure("final", START, "x" * 5000, cause)) for cause in Cause},
}
ENTRIES = OPEN | {name: Entry(NODE1, record) for name, record in DECIDED.items()}
ENTRIES["late"] = Entry(NODE1, RESULT, superseded=record_of(Failure("final", START, "gone")))
BEATS = {"silent": {}, "beating": {NODE1: Beat(MONO - 3.9, True)}, "stale": {NODE1: Beat(1, True)}}
PROGRESS = {
    "none": {},
    "some": {NODE1: sent(msg="m", total=3, completed=1)},
    "much": {
        NODE1: sent(
            msg="\u2028<b>☃",
            failures=tuple(map(str, range(50))),
            errors=("e",),
            failures_total=2**63 - 1,
        )
    },
}
PHASES = {
    "running": {"phase": Phase.RUNNING},
    "packing": {"phase": Phase.POST_PROCESSING},
    "closed": {"phase": Phase.CLOSED, "tar": TAR},
    "failed": {"phase": Phase.POST_PROCESSING, "error": "no space left"},
}


def broken(document, at=None):
    """What is wrong with a document, or with a part of one."""
    whole = schema.load(NAME)
    rules = whole if at is None else {"$ref": f"#/$defs/{at}", "$defs": whole["$defs"]}
    errors = Draft202012Validator(rules).iter_errors(json.loads(json.dumps(document)))
    return [(error.json_path, error.message) for error in errors]


def shown(run):
    """The document of a run."""
    return status_document(run, now=START, mono=MONO)


def undescribed(document):
    """Members that the schema does not name, at any depth."""
    rules = schema.load(NAME)
    found = set(document) - set(rules["properties"])
    for entry in document["plugins"]:
        for name, part in (("entry", entry), ("error", entry["error"])):
            found |= set(part or {}) - set(rules["$defs"][name]["properties"])
        found |= set(entry["progress"] or {}) - set(rules["$defs"]["progress"]["properties"])
        found |= set(entry["pod"] or {}) - set(rules["$defs"]["pod"]["properties"])
        display = rules["$defs"]["entry"]["properties"]["display"]["properties"]
        found |= set(entry["display"]) - set(display)
    found |= set(document["display"]) - set(rules["properties"]["display"]["properties"])
    found |= set(document["launcher"] or {}) - set(rules["$defs"]["launcher"]["properties"])
    return found | set(document["tar-info"] or {}) - set(rules["$defs"]["tar"]["properties"])


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("entry", ENTRIES)
def test_every_state_of_an_entry_in_every_phase(entry, phase):
    """With and without heartbeats and progress; nothing is shown that is not described."""
    for beats, progress in itertools.product(BEATS.values(), PROGRESS.values()):
        run = snapshot(
            {E2E: RESULT, NODE2: RESULT},
            entries={NODE1: ENTRIES[entry]},
            beats=beats,
            progress=progress,
            **PHASES[phase],
        )
        document = shown(run)
        whole = entry_document(run, NODE1, now=START, mono=MONO)

        assert [] == broken(document) + broken(whole, "entry")
        assert set() == undescribed(document)


POD = PodState("p-1", "node1", "Pending", "ImagePullBackOff", "x" * 5000, START, 2)
NO_POD = PodState("", "", "", "NoPod", "The Job has no Pod", None, 0)
HINDERED = LauncherState(
    Step.REMOVING,
    LauncherTrouble(START, "watching Jobs: reset"),
    {"r1-sysd-1": "it is being deleted"},
)


@pytest.mark.parametrize("pod", [POD, NO_POD, None])
@pytest.mark.parametrize("launcher", [None, HINDERED, *map(LauncherState, Step)])
def test_every_state_of_a_launcher(pod, launcher):
    """An entry that is decided has no Pod to speak of any more."""
    pods = {NODE1: pod, NODE2: pod} if pod else {}
    run = snapshot({NODE2: RESULT}, pods=pods, launcher=launcher, plan=SKIPPING)
    document = shown(run)

    assert ([], set()) == (broken(document), undescribed(document))
    by_key = {each["key"]: each["pod"] for each in document["plugins"]}
    assert by_key[str(NODE2)] is None
    assert (pod is None) == (by_key[str(NODE1)] is None)
    assert [{"name": "sysd", "node": "win1", "reason": "not Linux"}] == document["skipped"]


def test_every_status_is_named():
    """No word is published that never comes, and none comes that is not published."""
    rules = schema.load(NAME)

    assert set(Status) == set(rules["properties"]["status"]["enum"])
    assert set(Step) == set(rules["$defs"]["launcher"]["properties"]["step"]["enum"])
    assert {"", *Cause} == set(rules["$defs"]["error"]["properties"]["cause"]["enum"])
    display = rules["$defs"]["entry"]["properties"]["display"]["properties"]
    assert list(EntryState) == display["state"]["enum"]
    assert {entry.state for entry in ENTRIES.values()} == set(
        rules["$defs"]["entry"]["properties"]["status"]["enum"]
    )


def test_a_run_without_entries():
    """Is complete at once."""
    assert [] == broken(shown(snapshot(plan=replace(PLAN, plugins=()))))


def test_the_events():
    """`run` is the document without its entries."""
    run = snapshot(**PHASES["closed"])
    document = shown(run)
    del document["plugins"]

    assert document == run_document(run, now=START)


def test_the_published_example():
    """Is valid, and shows every member of an entry."""
    (example,) = schema.load(NAME)["examples"]
    display, *each = example["display"], *(entry["display"] for entry in example["plugins"])

    assert run_display(example) == display
    assert [entry_display(entry) for entry in example["plugins"]] == each
    assert [] == broken(example)
    assert set() == undescribed(example)


@pytest.mark.parametrize(
    "wrong",
    [
        {"status": "done"},
        {"percent_complete": 50},
        {"revision": "42"},
        {"time": "yesterday"},
        {"plugins": [{}]},
        {"tar-info": {"name": "x"}},
        {"api_version": "v2"},
    ],
)
def test_what_is_not_a_status(wrong):
    """The schema refuses something at all."""
    assert broken(shown(snapshot()) | wrong)


def test_the_schema_is_valid_and_described():
    """Against the metaschema; each member says what it is."""
    rules = schema.load(NAME)
    Draft202012Validator.check_schema(rules)
    parts = [rules, *rules["$defs"].values()]
    members = [part for each in parts for part in each.get("properties", {}).values()]

    assert f"https://status-reporter.io/schemas/{NAME}.json" == rules["$id"]
    assert [] == [part for part in parts + members if not part.get("description")]


NUMBERS = st.integers(-(2**70), 2**70)
TEXTS = st.text(st.characters(), max_size=50)
UPDATES = st.builds(
    Progress,
    msg=TEXTS,
    total=NUMBERS,
    completed=NUMBERS,
    failures=st.lists(TEXTS, max_size=30).map(tuple),
    errors=st.lists(TEXTS, max_size=3).map(tuple),
    failures_total=NUMBERS,
    appendfailing=st.lists(TEXTS, max_size=3).map(tuple),
    appendcompleted=NUMBERS,
)


@given(UPDATES, UPDATES)
def test_whatever_a_plugin_says(first, second):
    """Its progress, as it is stored, is shown within the schema."""
    stored = combine(combine(None, first), second)
    run = snapshot(progress={NODE1: replace(sent(), progress=stored)})

    assert [] == broken(shown(run))
