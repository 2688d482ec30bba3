"""The run plan: which keys it makes, and what it refuses."""

import json
from dataclasses import replace

import pytest

from reporter.run.plan import (
    DEFAULT_TIMEOUT,
    GLOBAL,
    LONGEST_REASON,
    LONGEST_TIMEOUT,
    Key,
    Plan,
    PlanError,
    Plugin,
    Skipped,
    differences,
    parse_plan,
    plan_document,
)
from tests.tables import table

NAME = "not a name (letters, digits, '.', '_', '-', at most 63, a letter or digit at both ends)"
NODES = "not a list of names; leave it out for one global entry"
REASON = f"not a text of at most {LONGEST_REASON} characters"
SECONDS = f"not whole seconds from 1 to {LONGEST_TIMEOUT}"


def plugins(*documents):
    """A plan of these plugins."""
    return {"run": "r1", "plugins": list(documents)}


def test_a_plan_as_the_launcher_writes_it():
    """One cluster-wide plugin and one on two nodes; the keys are sorted by node."""
    plan = parse_plan(
        {
            "run": "0b0c",
            "timeout_seconds": 60,
            "plugins": [
                {"name": "e2e", "order": 0},
                {
                    "name": "sysd",
                    "nodes": ["node2", "node1"],
                    "heartbeats": True,
                    "identity": "node",
                    "timeout_seconds": 5,
                },
            ],
        }
    )
    sysd = Plugin("sysd", ("node2", "node1"), 0, True, "node", 5)
    assert Plan("0b0c", (Plugin("e2e"), sysd), 60) == plan
    assert (Key("e2e", GLOBAL), Key("sysd", "node1"), Key("sysd", "node2")) == plan.keys
    assert sysd == plan.plugin("sysd")
    assert None is plan.plugin("nope")
    assert [60, 5, 60] == [plan.timeout_of(name) for name in ("e2e", "sysd", "nope")]


def test_plan_order_is_the_order_of_the_list():
    """Not the alphabet, and not the launch groups."""
    plan = parse_plan(plugins({"name": "z", "order": 2}, {"name": "a", "order": 1}))
    assert ["z/global", "a/global"] == [str(key) for key in plan.keys]


@pytest.mark.parametrize("absent", [{}, {"timeout_seconds": None}])
def test_a_missing_timeout_is_six_hours(absent):
    """A54: never "forever"."""
    plan = parse_plan({**plugins({"name": "e2e", **absent}), **absent})
    assert DEFAULT_TIMEOUT == plan.timeout_of("e2e") == 21_600


def test_an_empty_plan_is_a_plan():
    """A54: there is nothing to wait for."""
    assert () == parse_plan(plugins()).keys


def test_null_and_unknown_fields_are_as_if_absent():
    """A newer launcher may say more than we know."""
    fields = ("nodes", "order", "heartbeats", "identity", "timeout_seconds")
    document = plugins({"name": "e2e", "colour": "red", **dict.fromkeys(fields)})
    assert (Plugin("e2e"),) == parse_plan(document).plugins


@table(
    ("document", "problems"),
    {
        "A54 not an object": ([], ["plan: not a JSON object"]),
        "A54 nothing in it": ({}, [f"run: {NAME}", "plugins: not a list"]),
        "A54 a run that is no name": ({"run": "a/b", "plugins": []}, [f"run: {NAME}"]),
        "A54 a plugin as a string": (plugins("e2e"), ["plugins[0]: not an object"]),
        "A54 no name": (plugins({}), [f"plugins[0].name: {NAME}"]),
        "A54 bad name": (plugins({"name": "-x"}), [f"plugins[0].name: {NAME}"]),
        "A54 long name": (plugins({"name": "x" * 64}), [f"plugins[0].name: {NAME}"]),
        "A54 line break": (plugins({"name": "x\n"}), [f"plugins[0].name: {NAME}"]),
        "A54 doubled plugin": (
            plugins({"name": "a"}, {"name": "b"}, {"name": "a"}),
            ["plugins: 'a' appears more than once"],
        ),
        "A54 doubled node": (
            plugins({"name": "a", "nodes": ["n1", "n2", "n1"]}),
            ["plugins[0].nodes: 'n1' appears more than once"],
        ),
        "A54 node called global": (
            plugins({"name": "a", "nodes": ["n1", "global"]}),
            ["plugins[0].nodes[1]: global is reserved"],
        ),
        **{
            f"A54 node {node!r}": (
                plugins({"name": "a", "nodes": [node]}),
                ["plugins[0].nodes[0]: not a node name"],
            )
            for node in ("", ".", "..", "a/b", "a\0b", "*", "é", "n" * 254, 7)
        },
        **{
            f"A54 nodes {nodes!r}": (
                plugins({"name": "a", "nodes": nodes}),
                [f"plugins[0].nodes: {NODES}"],
            )
            for nodes in ([], "n1", {})
        },
        "several problems at once": (
            plugins({"name": "a", "order": True, "heartbeats": 1, "identity": "pod"}),
            [
                'plugins[0].identity: neither "plugin" nor "node"',
                "plugins[0].heartbeats: not true or false",
                "plugins[0].order: not an integer",
            ],
        ),
        "skipped": (plugins({"name": "a", "skipped": {}}), ["plugins[0].skipped: not a list"]),
        "skipped nodes without names or reasons": (
            plugins(
                {
                    "name": "a",
                    "skipped": [
                        "n1",
                        {"node": "a/b", "reason": "x"},
                        {"node": "n1"},
                        {"node": "n1", "reason": ""},
                        {"node": "n1", "reason": "x" * (LONGEST_REASON + 1)},
                        {"node": "n1", "reason": "x" * LONGEST_REASON},
                    ],
                }
            ),
            [
                *(f"plugins[0].skipped[{at}].node: not a node name" for at in (0, 1)),
                *(f"plugins[0].skipped[{at}].reason: {REASON}" for at in (2, 3, 4)),
            ],
        ),
        **{
            f"timeout {value!r}": (
                {**plugins({"name": "a", "timeout_seconds": value}), "timeout_seconds": value},
                [f"timeout_seconds: {SECONDS}", f"plugins[0].timeout_seconds: {SECONDS}"],
            )
            for value in (0, -1, 1.5, True, "60", LONGEST_TIMEOUT + 1)
        },
    },
)
def test_a_plan_that_is_refused(document, problems):
    """Each of these makes a key that collides or that nobody can ever meet."""
    with pytest.raises(PlanError) as caught:
        parse_plan(document)
    assert problems == caught.value.problems
    assert "; ".join(problems) == str(caught.value)


@pytest.mark.parametrize("name", ["a", "A9", "a.b_c-d", "x" * 63])
def test_names_that_are_accepted(name):
    """Letters, digits and three signs, up to 63."""
    assert (Key(name, GLOBAL),) == parse_plan(plugins({"name": name})).keys


@pytest.mark.parametrize(
    "plan",
    [
        Plan("r1", ()),
        Plan("r1", (Plugin("e2e"), Plugin("s", ("b", "a"), 3, True, "node", 9)), 17),
        Plan("r1", (Plugin("s", ("a",), skipped=(Skipped("b", "it is not Ready"),)),)),
    ],
)
def test_a_plan_survives_being_stored(plan):
    """The document says everything, also through JSON."""
    assert plan == parse_plan(json.loads(json.dumps(plan_document(plan))))


KEPT = Plan("r", (Plugin("a", ("n1", "n2")), Plugin("b", timeout_seconds=9)), timeout_seconds=60)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (KEPT, []),
        (
            Plan(
                "r", (Plugin("b", timeout_seconds=9), Plugin("a", ("n2", "n1"), timeout_seconds=60))
            ),
            [],
        ),
        (Plan("r", KEPT.plugins[:1], 60), ["b is missing"]),
        (Plan("r", (*KEPT.plugins, Plugin("c")), 60), ["c is new"]),
        (
            Plan(
                "r", (replace(KEPT.plugins[0], skipped=(Skipped("n3", "x"),)), KEPT.plugins[1]), 60
            ),
            [],
        ),
        (Plan("r", KEPT.plugins, 61), ["a: timeout_seconds was 60, not 61"]),
        (
            Plan("r", (Plugin("a", ("n1", "n3"), 1, True, "node"), KEPT.plugins[1]), 60),
            [
                "a: order was 0, not 1",
                "a: heartbeats was false, not true",
                'a: identity was "plugin", not "node"',
                "a/n2 is missing",
                "a/n3 is new",
            ],
        ),
    ],
)
def test_what_contradicts_the_plan_that_a_run_began_with(given, expected):
    """Whatever an entry follows from; where things are listed is nobody's business."""
    assert expected == differences(KEPT, given)


def test_how_results_are_read():
    """The format is one that is known, the files are names; both are in the document again."""
    plugin = {"name": "unit", "result_format": "junit", "result_files": ["a.xml"]}
    made = parse_plan({"run": "r", "plugins": [plugin]})
    assert ("junit", ("a.xml",)) == (made.plugins[0].result_format, made.plugins[0].result_files)
    assert made == parse_plan(plan_document(made))
    bad = {"name": "unit", "result_format": "tap", "result_files": [1]}
    with pytest.raises(PlanError) as caught:
        parse_plan({"run": "r", "plugins": [bad]})
    assert [
        "plugins[0].result_format: not one of raw, adapter, junit, e2e, gojson, manual",
        "plugins[0].result_files: not a list of file names",
    ] == caught.value.problems
