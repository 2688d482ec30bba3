"""What the API server says that it offers, and lists of what nobody knew before: fake and real.

As in `test_api_behaviour.py`: where the two differ, the fake is wrong.
"""

from tests.contract.servers import Reply, Server

ALL_IN_ONE = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"
METADATA_ONLY = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
KNOWN = {"pods", "configmaps", "nodes", "namespaces", "secrets"}


def ask(api: Server, path: str, accept: str = "application/json") -> Reply:
    return api.call("GET", path, headers={"Accept": accept})


def test_all_groups_in_one_document(api: Server) -> None:
    """Versions in the server's order, resources with their kind, scope and verbs."""
    core, others = (ask(api, path, ALL_IN_ONE).json for path in ("/api", "/apis"))
    (version,) = core["items"][0]["versions"]
    resources = {each["resource"]: each for each in version["resources"]}
    batch = next(each for each in others["items"] if each["metadata"]["name"] == "batch")

    assert "APIGroupDiscoveryList" == core["kind"] == others["kind"]
    assert "name" not in core["items"][0]["metadata"]
    assert ("v1", "Current") == (version["version"], version["freshness"])
    assert resources.keys() >= KNOWN
    assert ("Namespaced", "Cluster") == (resources["pods"]["scope"], resources["nodes"]["scope"])
    assert "Pod" == resources["pods"]["responseKind"]["kind"]
    assert {"get", "list", "watch"} <= set(resources["pods"]["verbs"])
    assert {"jobs", "cronjobs"} == {each["resource"] for each in batch["versions"][0]["resources"]}


def test_the_groups_alone(api: Server) -> None:
    """For who does not ask for more."""
    core, others = (ask(api, path).json for path in ("/api", "/apis"))
    batch = next(each for each in others["groups"] if each["name"] == "batch")

    assert ("APIVersions", ["v1"]) == (core["kind"], core["versions"])
    assert ("APIGroupList", "v1") == (others["kind"], batch["preferredVersion"]["version"])
    assert [{"groupVersion": "batch/v1", "version": "v1"}] == batch["versions"]


def test_metadata_alone(api: Server) -> None:
    """The list says first what it is, and no object has more than its metadata."""
    api.create_pod("one", {"a": "b"})
    reply = ask(api, f"{api.pods}?limit=1", METADATA_ONLY)
    (only,) = reply.json["items"]

    assert "kind" == next(iter(reply.json))
    assert ("PartialObjectMetadataList", "meta.k8s.io/v1") == (
        reply.json["kind"],
        reply.json["apiVersion"],
    )
    assert {"kind", "apiVersion", "metadata"} == set(only)
    assert ("PartialObjectMetadata", "one") == (only["kind"], only["metadata"]["name"])
    assert {"a": "b"} == only["metadata"]["labels"]


def test_a_list_that_took_too_long(api: Server) -> None:
    """It is refused with 410, and with what continues it all the same, as things are now."""
    for name in ("one", "three", "two"):
        api.create_pod(name)
    first = ask(api, f"{api.pods}?limit=1")
    api.forget_pages()
    refused = ask(api, f"{api.pods}?limit=1&continue={first.json['metadata']['continue']}")
    more = refused.json["metadata"]["continue"]
    rest = ask(api, f"{api.pods}?limit=9&continue={more}")

    assert (410, "Expired") == (refused.status, refused.reason)
    assert "inconsistent list" in refused.message
    # What had been there, and what has come since, if it comes after the first page.
    assert {"three", "two"} <= {each["metadata"]["name"] for each in rest.json["items"]}
    assert not rest.json["metadata"].get("continue")
