"""Where a run's status can be reached from outside its cluster, as its objects say."""

from collections.abc import Iterable, Mapping
from typing import Any

from reporter.common.objects import items, number, section, text
from reporter.run.options import status_name
from reporter.runctl.aggregator_pod import STATUS_PORT

_PREFERRED = ("ExternalIP", "InternalIP")


def status_host(run: str, namespace: str) -> str:
    """Return the name in the status certificate, which is that of the Service in the cluster."""
    return f"{status_name(run)}.{namespace}.svc"


def inside_url(run: str, namespace: str) -> str:
    """Return where Pods of the cluster reach it."""
    return _url(status_host(run, namespace), STATUS_PORT)


def node_urls(
    service: Mapping[str, Any], pod: Mapping[str, Any], node: Mapping[str, Any]
) -> list[str]:
    """Return the URLs of a Service of the type NodePort on the aggregator's node, the best first.

    Nothing while no port is allotted. Without the Node the Pod says one of its addresses.
    """
    ports = [number(each, "nodePort") for each in items(section(service, "spec"), "ports")]
    found = [
        text(each, "address")
        for kind in _PREFERRED
        for each in items(section(node, "status"), "addresses")
        if text(each, "type") == kind
    ]
    found.append(text(section(pod, "status"), "hostIP"))
    return _urls(found, ports)


def balancer_urls(service: Mapping[str, Any]) -> list[str]:
    """Return the URLs of a Service of the type LoadBalancer; nothing while it has no address."""
    ingress = items(section(service, "status", "loadBalancer"), "ingress")
    return _urls((text(each, "ip") or text(each, "hostname") for each in ingress), [STATUS_PORT])


def _urls(hosts: Iterable[str], ports: Iterable[int | None]) -> list[str]:
    known = list(dict.fromkeys(filter(None, hosts)))
    return [_url(host, port) for port in ports if port for host in known]


def _url(host: str, port: int) -> str:
    return f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
