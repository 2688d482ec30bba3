"""What may be wished of a snapshot, and which resources and rights follow from it."""

from typing import Any

import pytest

from reporter.collect.snapshot.choice import choose
from reporter.collect.snapshot.options import Pattern, SnapshotOptions, read_options
from reporter.collect.snapshot.rights import remarks, rights
from reporter.kube.resources import Resource

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
        ("SNAPSHOT_NAMESPACES", "", "must not be empty"),
        ("SNAPSHOT_NAMESPACES", " , ", "must not be empty"),
        ("SNAPSHOT_NAMESPACE_SELECTOR", " ", "must not be empty"),
        ("SNAPSHOT_RESOURCES", ",", "must not be empty"),
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


def rule(group: str, verb: str, *plurals: str, **more: list[str]) -> dict[str, Any]:
    return {"apiGroups": [group], "resources": list(plurals), "verbs": [verb], **more}


NAMED = rule("", "get", "namespaces", resourceNames=["a", "b"])
PODS_AND_METRICS = [rule("", "list", "pods"), rule("metrics.k8s.io", "list", "pods")]


@pytest.mark.parametrize(
    ("resources", "wished", "cluster", "inside"),
    [
        ((PODS, METRICS), {}, PODS_AND_METRICS, []),
        ((METRICS,), {"pod_logs": "true"}, [*PODS_AND_METRICS, rule("", "get", "pods/log")], []),
        (
            (PODS,),
            {"kubelet": "true"},
            [rule("", "list", "nodes", "pods"), rule("", "get", "nodes/proxy")],
            [],
        ),
        (
            (PODS, SECRETS),
            {"namespace_selector": "team=a", "secrets": "metadata"},
            [rule("", "list", "namespaces", "pods", "secrets")],
            [],
        ),
        (
            (NODES, PODS, SECRETS),
            {"namespaces": "a,b", "secrets": "metadata"},
            [rule("", "list", "nodes"), NAMED],
            [rule("", "list", "pods", "secrets")],
        ),
        (
            (METRICS,),
            {"namespaces": "a,b", "pod_logs": "true", "kubelet": "true"},
            [rule("", "list", "nodes"), rule("", "get", "nodes/proxy"), NAMED],
            [*PODS_AND_METRICS, rule("", "get", "pods/log")],
        ),
        (
            (PODS,),
            {"namespaces": "a,b"},
            [],
            [rule("", "list", "pods"), rule("", "get", "namespaces")],
        ),
        ((NODES,), {"namespaces": "a,b"}, [rule("", "list", "nodes"), NAMED], []),
    ],
)
def test_rights(
    resources: tuple[Resource, ...],
    wished: dict[str, str],
    cluster: list[dict[str, Any]],
    inside: list[dict[str, Any]],
) -> None:
    """Each resource by its name, in namespaces chosen by name only there: no rule says "but"."""
    granted = rights(resources, options(**wished))

    assert (cluster, inside) == (list(granted.cluster), list(granted.inside))
    assert granted.namespaces == (("a", "b") if "namespaces" in wished else ())


@pytest.mark.parametrize(
    ("wished", "reach"),
    [
        ({}, "its account may list 3 resources in the whole cluster"),
        ({"resources": "nodes"}, "its account may list 1 resource in the whole cluster"),
        (
            {"namespaces": "a"},
            "its account may list 2 namespaced resources in namespace a only, "
            "and 1 cluster-scoped resource",
        ),
        (
            {"namespaces": "a,b,c,d,e,f,g", "resources": "pods.core"},
            "its account may list 1 namespaced resource in namespaces a, b, c, d, e and 2 more "
            "only",
        ),
    ],
)
def test_where_the_account_may_read_is_said(wished: dict[str, str], reach: str) -> None:
    """And nothing more, where that is all."""
    chosen = options(**wished)

    assert [reach] == remarks(rights(choose((NODES, PODS, METRICS), chosen).chosen, chosen), chosen)


def test_what_rights_mean_is_said() -> None:
    """Of those that allow more than they are used for."""
    everything = {"secrets": "metadata", "kubelet": "true", "pod_logs": "true"}

    def said(**wished: str) -> str:
        chosen = options(**everything, **wished)
        return "\n".join(remarks(rights(ALL, chosen), chosen))

    assert all(words in said() for words in ("reading their values", "runs commands", "logs"))
    assert "may list Secrets of these namespaces: " in said(namespaces="a")
    assert "may list Secrets: " in said(namespace_selector="team=a")
    assert "in all namespaces" not in said() + said(namespaces="a")
    assert "only" not in said(namespaces="a").partition("\n")[0]
    wide = "in all namespaces, not only in those with the chosen labels, the Secrets of all"
    assert wide in said(namespace_selector="team=a")
    plain = options(namespace_selector="team=a")
    assert "Secrets" not in "".join(remarks(rights(ALL, plain), plain))
