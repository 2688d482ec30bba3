"""What a server offers, by both forms of its discovery documents."""

from typing import Any

from reporter.core.resources import (
    STALE,
    DiscoveryTrouble,
    Offer,
    Resource,
    aggregated,
    groups,
    plain,
    preferred,
)

VERBS = frozenset({"get", "list"})
PODS = Resource("", "v1", "pods", "Pod", True, VERBS)
NODES = Resource("", "v1", "nodes", "Node", False, VERBS)


def described(resource: Resource) -> dict[str, Any]:
    kinds = {"group": resource.group, "version": resource.version, "kind": resource.kind}
    return {
        "resource": resource.plural,
        "responseKind": kinds,
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "verbs": sorted(resource.verbs),
    }


def test_names() -> None:
    """As people and objects have them, with and without a group."""
    scale = Resource("autoscaling", "v2", "scalers", "Scaler", True)

    assert ("pods", "v1") == (PODS.name, PODS.api_version)
    assert ("scalers.autoscaling", "autoscaling/v2") == (scale.name, scale.api_version)


def test_one_document_for_all() -> None:
    """Groups, their versions in the server's order, and which of them does not answer."""
    metrics = Resource("metrics.k8s.io", "v1beta1", "pods", "PodMetrics", True, VERBS)
    core = {"version": "v1", "resources": [described(PODS), described(NODES)]}
    found = aggregated(
        {
            "items": [
                {"metadata": {}, "versions": [core | {"freshness": "Current"}]},
                {
                    "metadata": {"name": "metrics.k8s.io"},
                    "versions": [
                        {"version": "v1beta1", "resources": [described(metrics)]},
                        {"version": "v1alpha1", "freshness": "Stale"},
                        {"resources": []},
                    ],
                },
            ]
        }
    )

    assert [
        Offer("", "v1", (PODS, NODES)),
        Offer("metrics.k8s.io", "v1beta1", (metrics,)),
        Offer("metrics.k8s.io", "v1alpha1", trouble=STALE),
    ] == found


def test_a_document_for_each_group() -> None:
    """The preferred version comes first; subresources are no resources."""
    core = {"versions": ["v1", "", 7]}
    others = {
        "groups": [
            {
                "name": "apps",
                "versions": [{"version": "v1beta1"}, {"version": "v1"}],
                "preferredVersion": {"version": "v1"},
            },
            {"name": "odd", "versions": [{}]},
            {"versions": [{"version": "v1"}]},
        ]
    }
    entry = {"namespaced": True, "kind": "Deployment", "verbs": ["get", "list", 3]}
    listed = [entry | {"name": "deployments"}, entry | {"name": "deployments/scale"}, {}]

    assert [("", "v1"), ("apps", "v1"), ("apps", "v1beta1")] == list(groups(core, others))
    assert Offer(
        "apps", "v1", (Resource("apps", "v1", "deployments", "Deployment", True, VERBS),)
    ) == plain("apps", "v1", {"resources": listed})
    assert [] == list(groups({"versions": "v1"}, {}))


def test_what_is_no_list_of_verbs_allows_nothing() -> None:
    """A resource without them cannot be listed."""
    (only,) = plain(
        "", "v1", {"resources": [{"name": "x", "kind": "X", "verbs": "list"}]}
    ).resources

    assert frozenset() == only.verbs


def test_each_resource_once_in_the_version_that_comes_first() -> None:
    """A second version adds what only it has, also where the first one is in trouble."""
    old = Resource("apps", "v1beta1", "deployments", "Deployment", True, VERBS)
    extra = Resource("apps", "v1beta1", "extras", "Extra", True, VERBS)
    new = Resource("apps", "v1", "deployments", "Deployment", True, VERBS)
    found = preferred(
        [
            Offer("batch", "v1", trouble="away"),
            Offer("apps", "v1", (new,)),
            Offer("apps", "v1beta1", (old, extra)),
            Offer("", "v1", (PODS,)),
        ]
    )

    assert (PODS, new, extra) == found.resources
    assert (DiscoveryTrouble("batch", "v1", "away"),) == found.troubles
