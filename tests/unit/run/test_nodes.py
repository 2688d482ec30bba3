"""On which nodes a plugin runs, and the words for those on which it does not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reporter.run.definition import Definition, NodeSelection
from reporter.run.nodes import Selected, affinity, select
from reporter.run.plan import LONGEST_REASON, Skipped, parse_plan, plan_document
from tests.plugin_launches import definition, options_of
from tests.tables import table

Object = dict[str, Any]
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def node(name: str = "n1", ready: Object | None = None, **given: Any) -> Object:
    """A Linux node that is Ready, with these labels (underscores for what Python cannot say)."""
    labels = {"kubernetes.io/os": "linux"} | given.pop("labels", {})
    condition = {"type": "Ready", "status": "True"} if ready is None else ready
    pressure = {"type": "DiskPressure", "status": "True"}
    return {
        "metadata": {
            "name": name,
            "labels": {key: value for key, value in labels.items() if value is not None},
        },
        "spec": {"taints": given.pop("taints", [])},
        "status": {"conditions": [pressure, condition], **given},
    }


def plugin(selector: str = "", *, not_ready: bool = False, **spec: Any) -> Definition:
    """A plugin of each node with these fields of its Pod."""
    found = definition("adapter on each node")
    return replace(
        found,
        nodes=NodeSelection(selector, not_ready),
        template={"spec": {**found.template["spec"], **spec}},
    )


def required(*terms: Object) -> Object:
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": list(terms)}}}


def expression(key: str, operator: str, *values: str) -> Object:
    return {"key": key, "operator": operator, "values": list(values)}


def term(*expressions: Object) -> Object:
    return {"matchExpressions": list(expressions)}


def taint(key: str, value: str = "", effect: str = "NoSchedule") -> Object:
    return {"key": key, "value": value, "effect": effect}


STOPPED = {
    "type": "Ready",
    "status": "Unknown",
    "reason": "NodeStatusUnknown",
    "message": "Kubelet stopped posting node status.\n" + "x" * 500,
}
WINDOWS = {"kubernetes.io/os": "windows"}
AFFINITY = "the template's node affinity does not match"
ZONE = term(expression("zone", "In", "a", "b"))
OWN = [{"key": "dedicated", "operator": "Equal", "value": "infra"}]


@table(
    ("asked", "found", "reason"),
    {
        "Linux and Ready": (plugin(), node(), ""),
        "Windows": (plugin(), node(labels=WINDOWS), "its operating system is windows"),
        "no label": (
            plugin(),
            node(labels={"kubernetes.io/os": None}),
            "its operating system is unknown",
        ),
        "no label, but the kubelet says it": (
            plugin(),
            node(labels={"kubernetes.io/os": None}, nodeInfo={"operatingSystem": "linux"}),
            "",
        ),
        "Windows is asked for": (plugin(nodeSelector=WINDOWS), node(labels=WINDOWS), ""),
        "by the selector": (plugin("kubernetes.io/os=windows"), node(labels=WINDOWS), ""),
        "by the affinity": (
            plugin(affinity=required(term(expression("kubernetes.io/os", "In", "windows")))),
            node(labels=WINDOWS),
            "",
        ),
        "virtual kubelet": (
            plugin(),
            node(labels={"type": "virtual-kubelet"}),
            "it is virtual: type=virtual-kubelet",
        ),
        "Fargate": (
            plugin(),
            node(labels={"eks.amazonaws.com/compute-type": "fargate"}),
            "it is virtual: eks.amazonaws.com/compute-type=fargate",
        ),
        "its kubelet is silent": (
            plugin(),
            node(ready=STOPPED),
            "it is not Ready: Kubelet stopped posting node status. " + "x" * 123,
        ),
        "not Ready, in a word": (
            plugin(),
            node(ready={"type": "Ready", "status": "False", "reason": "KubeletNotReady"}),
            "it is not Ready: KubeletNotReady",
        ),
        "no condition yet": (plugin(), node(ready={}), "it is not Ready"),
        "not Ready is wanted": (plugin(not_ready=True), node(ready={}), ""),
        "another disk, which lasts longer than not being Ready": (
            plugin(nodeSelector={"disk": "ssd"}),
            node(labels={"disk": "hdd"}, ready={}),
            "the template's nodeSelector has disk=ssd",
        ),
        "that disk": (plugin(nodeSelector={"disk": "ssd"}), node(labels={"disk": "ssd"}), ""),
        "zone b": (plugin(affinity=required(ZONE)), node(labels={"zone": "b"}), ""),
        "no zone": (plugin(affinity=required(ZONE)), node(), AFFINITY),
        "the other alternative": (
            plugin(affinity=required(ZONE, term(expression("gpu", "Exists")))),
            node(labels={"gpu": ""}),
            "",
        ),
        "half of a term": (
            plugin(
                affinity=required(term(expression("zone", "In", "a"), expression("gpu", "Exists")))
            ),
            node(labels={"zone": "a"}),
            AFFINITY,
        ),
        "more than eight": (
            plugin(affinity=required(term(expression("cores", "Gt", "8")))),
            node(labels={"cores": "16"}),
            "",
        ),
        "by its name": (
            plugin(affinity=required({"matchFields": [expression("metadata.name", "In", "n1")]})),
            node("n1"),
            "",
        ),
        "not by its name": (
            plugin(
                affinity=required({"matchFields": [expression("metadata.name", "NotIn", "n1")]})
            ),
            node("n1"),
            AFFINITY,
        ),
        "a term of nothing": (plugin(affinity=required({})), node(), AFFINITY),
        "no values": (
            plugin(affinity=required({"matchExpressions": [{"key": "a", "operator": "In"}]})),
            node(labels={"a": ""}),
            AFFINITY,
        ),
        "the node that is named": (plugin(nodeName="n1"), node("n1"), ""),
        "another node": (plugin(nodeName="n2"), node("n1"), "the template's nodeName is n2"),
        "cordoned: everything is tolerated": (
            plugin(),
            node(taints=[taint("node.kubernetes.io/unschedulable")]),
            "",
        ),
        "a taint that is tolerated": (
            plugin(tolerations=OWN),
            node(taints=[taint("dedicated", "infra")]),
            "",
        ),
        "another value of a taint": (
            plugin(tolerations=OWN),
            node(taints=[taint("dedicated", "db", "NoExecute")]),
            "the template does not tolerate its taint dedicated=db:NoExecute",
        ),
        "another taint": (
            plugin(tolerations=OWN),
            node(taints=[taint("other")]),
            "the template does not tolerate its taint other:NoSchedule",
        ),
        "a taint that is only a wish": (
            plugin(tolerations=OWN),
            node(taints=[taint("other", effect="PreferNoSchedule")]),
            "",
        ),
        "all taints of one effect are tolerated": (
            plugin(tolerations=[{"operator": "Exists", "effect": "NoSchedule"}]),
            node(taints=[taint("a"), taint("b", effect="NoExecute")]),
            "the template does not tolerate its taint b:NoExecute",
        ),
        "all values of a taint are tolerated": (
            plugin(tolerations=[{"key": "a", "operator": "Exists"}]),
            node(taints=[taint("a", "x"), taint("a", "y", "NoExecute")]),
            "",
        ),
    },
)
def test_a_node_is_chosen_or_skipped_with_its_reason(
    asked: Definition, found: Object, reason: str
) -> None:
    chosen = Selected(("n1",), ()) if not reason else Selected((), (Skipped("n1", reason),))
    assert chosen == select(asked, [found])


def test_nodes_that_were_never_meant_are_not_skipped() -> None:
    """Of 5,000 nodes with one that has a GPU nobody wants to read of 4,999."""
    nodes = [
        node("n3"),
        node("n2", labels={"gpu": "a"}, ready=STOPPED),
        node("n1", labels={"gpu": "a"}),
        node("n0", labels={"gpu": "b"}),
    ]
    found = select(plugin("gpu in (a,b)"), nodes)
    assert (("n0", "n1"), ["n2"]) == (found.chosen, [each.node for each in found.skipped])


def test_a_selector_that_cannot_be_read_is_an_error() -> None:
    with pytest.raises(ValueError, match="is not a label requirement"):
        select(plugin("a b"), [node()])


LABELS = st.dictionaries(st.sampled_from("abc"), st.sampled_from(["1", "2"]), max_size=3)
TERMS = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "matchExpressions": st.lists(
                st.builds(
                    expression,
                    st.sampled_from("abc"),
                    st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]),
                    st.just("1"),
                ),
                max_size=2,
            ),
            "matchFields": st.lists(
                st.builds(
                    expression,
                    st.just("metadata.name"),
                    st.sampled_from(["In", "NotIn"]),
                    st.sampled_from(["n1", "n2"]),
                ),
                max_size=2,
            ),
        },
    ),
    max_size=3,
)


@given(TERMS, st.lists(LABELS, min_size=2, max_size=4))
def test_a_pod_that_is_bound_to_a_node_matches_that_one_alone_if_it_was_chosen(
    terms: list[Object], labels: list[dict[str, str]]
) -> None:
    """Choosing and binding have one meaning: what is added to the terms takes nothing away."""
    nodes = [node(f"n{at}", labels=each) for at, each in enumerate(labels)]
    asked = plugin(affinity=required(*terms)) if terms else plugin()
    chosen = select(asked, nodes).chosen
    for each in nodes:
        name = each["metadata"]["name"]
        bound = plugin(affinity=affinity(asked.template["spec"], name))
        assert tuple({name} & set(chosen)) == select(bound, nodes).chosen


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=300),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)


@given(
    st.fixed_dictionaries(
        {}, optional={"metadata": ANYTHING, "spec": ANYTHING, "status": ANYTHING}
    ),
    st.dictionaries(
        st.sampled_from(["affinity", "tolerations", "nodeSelector", "nodeName"]), ANYTHING
    ),
)
def test_any_object_is_chosen_or_skipped_with_words_that_fit_a_plan(
    found: Object, spec: Object
) -> None:
    """A half answer must not end the command."""
    chosen, skipped = select(plugin(**spec), [found])
    assert 1 == len(chosen) + len(skipped)
    assert all(0 < len(each.reason) <= LONGEST_REASON for each in skipped)


def test_what_is_skipped_stands_in_the_plan() -> None:
    asked = plugin(nodeSelector={"disk": "ssd"})
    chosen, skipped = select(asked, [node("n1", labels={"disk": "ssd"}), node("n2")])
    plan = options_of(asked).plan
    plan = replace(plan, plugins=(replace(plan.plugins[0], nodes=chosen, skipped=skipped),))
    assert plan == parse_plan(plan_document(plan))
