"""What a server offers, by its discovery documents."""

from typing import Any

from reporter.kube.resources import STALE, DiscoveryTrouble, Resource, discovered

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


def group(name: str, *versions: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": {"name": name} if name else {}, "versions": list(versions)}


def version(name: str, *resources: Resource, freshness: str = "Current") -> dict[str, Any]:
    made = [described(each) for each in resources]
    return {"version": name, "resources": made, "freshness": freshness}


def test_each_resource_once_in_the_version_that_comes_first() -> None:
    """A second version adds what only it has; a group in another document may have its name."""
    old = Resource("apps", "v1beta1", "deployments", "Deployment", True, VERBS)
    extra = Resource("apps", "v1beta1", "extras", "Extra", True, VERBS)
    new = Resource("apps", "v1", "deployments", "Deployment", True, VERBS)
    metrics = Resource("metrics.k8s.io", "v1beta1", "pods", "PodMetrics", True, VERBS)
    core = {"items": [group("", version("v1", PODS, NODES))]}
    others = {
        "items": [
            group("metrics.k8s.io", version("v1beta1", metrics)),
            group("apps", version("v1", new), version("v1beta1", old, extra)),
        ]
    }

    assert (NODES, PODS, new, extra, metrics) == discovered([core, others]).resources


def test_a_group_whose_server_does_not_answer() -> None:
    """It is named, with what it had to offer before."""
    stale = Resource("metrics.k8s.io", "v1", "pods", "PodMetrics", True, VERBS)
    away = version("v1", stale, freshness="Stale")
    found = discovered([{"items": [group("metrics.k8s.io", away)]}])

    assert (stale,) == found.resources
    assert (DiscoveryTrouble("metrics.k8s.io", "v1", STALE),) == found.troubles


def test_what_is_no_list_of_verbs_allows_nothing() -> None:
    """A resource without them cannot be listed."""
    odd = {"version": "v1", "resources": [described(PODS) | {"verbs": "list"}]}
    (only,) = discovered([{"items": [group("", odd)]}]).resources

    assert frozenset() == only.verbs
