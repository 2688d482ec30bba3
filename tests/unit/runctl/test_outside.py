"""Where a run's status can be reached from outside, as the API server shows it."""

from reporter.runctl.outside import balancer_urls, inside_url, node_urls

SERVICE = {"spec": {"ports": [{"name": "status", "port": 8081, "nodePort": 31234}]}}
NODE = {
    "status": {
        "addresses": [
            {"type": "Hostname", "address": "node1"},
            {"type": "InternalIP", "address": "10.0.0.1"},
            {"type": "InternalIP", "address": "fd00::1"},
            {"type": "ExternalIP", "address": "192.0.2.7"},
        ]
    }
}
POD = {"status": {"hostIP": "10.0.0.1"}}


def test_a_node_is_best_reached_by_its_external_address() -> None:
    """Each address once, IPv6 in brackets; its host name is for the cluster."""
    assert [
        "https://192.0.2.7:31234",
        "https://10.0.0.1:31234",
        "https://[fd00::1]:31234",
    ] == node_urls(SERVICE, POD, NODE)


def test_who_may_not_read_nodes_has_the_pods_word() -> None:
    assert ["https://10.0.0.1:31234"] == node_urls(SERVICE, POD, {})


def test_nothing_is_known_yet() -> None:
    """No port is allotted, the Pod has no node, the balancer no address."""
    assert [] == node_urls({"spec": {"ports": [{"port": 8081}]}}, POD, NODE)
    assert [] == node_urls(SERVICE, {}, {})
    assert [] == balancer_urls(SERVICE | {"status": {"loadBalancer": {}}})


def test_a_balancer_has_an_address_or_a_name() -> None:
    ingress = [{"ip": "192.0.2.9"}, {"hostname": "lb.example"}, {"ports": []}]

    assert ["https://192.0.2.9:8081", "https://lb.example:8081"] == balancer_urls(
        {"status": {"loadBalancer": {"ingress": ingress}}}
    )


def test_pods_use_the_name_in_the_certificate() -> None:
    assert "https://r1-status.ns.svc:8081" == inside_url("r1", "ns")
