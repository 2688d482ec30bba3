"""What may be wished of a snapshot, and which resources and rights follow from it."""

from typing import Any

import pytest

from reporter.core.resources import Resource
from reporter.core.snapshot.choice import choose
from reporter.core.snapshot.options import Pattern, SnapshotOptions, read_options
from reporter.core.snapshot.rights import remarks, rules

LISTED = frozenset({"list"})
PODS = Resource("", "v1", "pods", "Pod", True, LISTED)
METRICS = Resource("metrics.k8s.io", "v1", "pods", "PodMetrics", True, LISTED)
SECRETS = Resource("", "v1", "secrets", "Secret", True, LISTED)
NODES = Resource("", "v1", "nodes", "Node", False, LISTED)
EVENTS = Resource("", "v1", "events", "Event", True, LISTED)
NEW_EVENTS = Resource("events.k8s.io", "v1", "events", "Event", True, LISTED)
REVIEWS = Resource("", "v1", "reviews", "Review", False, frozenset({"create"}))
ALL = (EVENTS, NODES, PODS, REVIEWS, SECRETS, NEW_EVENTS, METRICS)


def options(**variables: str) -> SnapshotOptions:
    found, problems = read_options({f"SNAPSHOT_{k.upper()}": v for k, v in variables.items()})
    assert [] == problems
    return found


def test_nothing_is_asked_for() -> None:
    """The careful defaults; other variables are not ours."""
    found, problems = read_options({"PATH": "/bin"})

    assert ([], SnapshotOptions()) == (problems, found)
    assert (True, "none", False, False) == (
        found.all_namespaces,
        found.secrets,
        found.kubelet,
        found.pod_logs,
    )


def test_everything_is_asked_for() -> None:
    """Lists are separated by commas, with any blanks."""
    found = options(
        resources="pods, deployments.apps,*.example.com",
        exclude="events.*",
        namespace_selector=" team in (a,b)",
        secrets="metadata",
        kubelet="true",
        pod_logs="true",
        log_kib="1",
        seconds="10",
    )

    assert (Pattern("pods"), Pattern("deployments", "apps"), Pattern("*", "example.com")) == (
        found.resources
    )
    assert ((Pattern("events"),), "team in (a,b)") == (found.exclude, found.namespace_selector)
    assert ("metadata", True, True, 1, 10) == (
        found.secrets,
        found.kubelet,
        found.pod_logs,
        found.log_kib,
        found.seconds,
    )
    assert not found.all_namespaces
    assert ("a", "b") == options(namespaces="a,b,a").namespaces


@pytest.mark.parametrize(
    ("variable", "value", "words"),
    [
        ("SNAPSHOT_SECRET", "metadata", "is not an option"),
        ("SNAPSHOT_SECRETS", "all", "must be none or metadata"),
        ("SNAPSHOT_KUBELET", "yes", "must be true or false"),
        ("SNAPSHOT_SECONDS", "0", "must be an integer from 1"),
        ("SNAPSHOT_SECONDS", "-1", "must be an integer from 1"),
        ("SNAPSHOT_RESOURCES", "Pods", "'Pods' is not RESOURCE or RESOURCE.GROUP"),
        ("SNAPSHOT_NAMESPACES", "../x", "'../x' is not the name of a namespace"),
        ("SNAPSHOT_NAMESPACE_SELECTOR", "a b", "is not a label requirement"),
    ],
)
def test_a_wish_that_cannot_be_heard_is_a_problem(variable: str, value: str, words: str) -> None:
    """A typing error must not widen or narrow a snapshot without a word."""
    _, (problem,) = read_options({variable: value})

    assert problem.startswith(f"{variable}: ")
    assert words in problem


def test_namespaces_by_name_or_by_label() -> None:
    """Not both: nobody could tell what was meant."""
    wished = {"SNAPSHOT_NAMESPACES": "a", "SNAPSHOT_NAMESPACE_SELECTOR": "team=a"}

    assert ["SNAPSHOT_NAMESPACES: must not be set together with a selector"] == read_options(
        wished
    )[1]


@pytest.mark.parametrize(
    ("wished", "chosen"),
    [
        ({}, (EVENTS, NODES, PODS, METRICS)),
        ({"secrets": "metadata"}, (EVENTS, NODES, PODS, SECRETS, METRICS)),
        ({"resources": "pods"}, (PODS, METRICS)),
        ({"resources": "pods.metrics.k8s.io,nodes"}, (NODES, METRICS)),
        ({"resources": "pods.core"}, (PODS,)),
        ({"resources": "secrets"}, ()),
        ({"exclude": "*.metrics.k8s.io,events"}, (NODES, PODS)),
    ],
)
def test_what_is_collected(wished: dict[str, str], chosen: tuple[Resource, ...]) -> None:
    """The rest is left out, each with a reason."""
    found = choose(ALL, options(**wished))

    assert chosen == found.chosen
    assert set(ALL) == set(chosen) | {each.resource for each in found.left_out}
    assert all(each.reason for each in found.left_out)


@pytest.mark.parametrize(
    "name",
    [
        "oauthaccesstokens.oauth.openshift.io",
        "signingkeies.dex.coreos.com",
        "refreshtokens.dex.coreos.com",
        "offlinesessionses.dex.coreos.com",
        "passwords.dex.coreos.com",
        "tokens.management.cattle.io",
    ],
)
def test_what_is_a_credential_as_a_whole_is_never_collected(name: str) -> None:
    """Not even if it is asked for by name."""
    plural, _, group = name.partition(".")
    resource = Resource(group, "v1", plural, "Any", False, LISTED)
    found = choose((resource,), options(resources=name))

    assert () == found.chosen
    assert ["their names or fields are credentials"] == [each.reason for each in found.left_out]


@pytest.mark.parametrize(
    ("wished", "more"),
    [
        ({}, []),
        (
            {"namespaces": "a"},
            [{"apiGroups": [""], "resources": ["namespaces"], "verbs": ["list"]}],
        ),
        (
            {"kubelet": "true"},
            [{"apiGroups": [""], "resources": ["nodes/proxy"], "verbs": ["get"]}],
        ),
        ({"pod_logs": "true"}, [{"apiGroups": [""], "resources": ["pods/log"], "verbs": ["get"]}]),
    ],
)
def test_rights(wished: dict[str, str], more: list[dict[str, Any]]) -> None:
    """Each resource by its name: nothing else says "all but Secrets"."""
    made = rules((METRICS,), options(**wished))
    metrics = {"apiGroups": ["metrics.k8s.io"], "resources": ["pods"], "verbs": ["list"]}

    assert metrics in made
    assert all(each in made for each in more)
    assert not any({"*", "secrets"} & {*each["resources"], *each["apiGroups"]} for each in made)


def test_what_rights_mean_is_said() -> None:
    """Of those that allow more than they are used for."""
    said = " ".join(remarks(options(secrets="metadata", kubelet="true", pod_logs="true")))

    assert [] == remarks(SnapshotOptions())
    for narrow in (options(namespaces="a"), options(namespace_selector="team=a")):
        (width,) = remarks(narrow)
        assert "all namespaces, not only in those that are chosen" in width
    first, *_ = remarks(options(namespaces="a", secrets="metadata"))
    assert "Secrets of all namespaces" in first
    assert all(words in said for words in ("reads their values", "runs commands", "logs"))
