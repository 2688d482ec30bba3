"""On which node a plugin's Pod runs, and what it shares with others on that node's network."""

from __future__ import annotations

from dataclasses import replace

from tests.plugin_launches import NODES, definition, launch_of
from tests.unit.launch.job_parts import Object, container, environ, made, made_of, pod_of

FIELD = {"key": "metadata.name", "operator": "In", "values": [NODES[0]]}


class TestPlacement:
    """One node, through the scheduler."""

    def required(self, situation: str) -> list[Object]:
        affinity = pod_of(made(situation))["affinity"]["nodeAffinity"]
        return affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]

    def test_a_pod_without_affinity_is_bound_to_its_node(self) -> None:
        assert [{"matchFields": [FIELD]}] == self.required("adapter on each node")
        assert [{"operator": "Exists"}] == pod_of(made("adapter on each node"))["tolerations"]

    def test_every_alternative_of_a_template_is_bound(self) -> None:
        """One that matches no node is left out: the added field would make it match."""
        zone = {"key": "zone", "operator": "In", "values": ["a", "b"]}
        other = {"key": "metadata.name", "operator": "NotIn", "values": ["node9"]}
        assert [
            {"matchExpressions": [zone], "matchFields": [FIELD]},
            {"matchFields": [other, FIELD]},
        ] == self.required("adapter with everything of its own")
        pod = pod_of(made("adapter with everything of its own"))
        assert [{"key": "special", "operator": "Exists"}] == pod["tolerations"]
        given = definition("adapter with everything of its own").template["spec"]["affinity"]
        assert given["podAntiAffinity"] == pod["affinity"]["podAntiAffinity"]
        preferred = "preferredDuringSchedulingIgnoredDuringExecution"
        assert given["nodeAffinity"][preferred] == pod["affinity"]["nodeAffinity"][preferred]

    def test_terms_that_match_nothing_still_match_nothing(self) -> None:
        terms: list[Object] = [{}]
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
        found = definition("adapter on each node")
        spec = {**found.template["spec"], "affinity": {"nodeAffinity": required}}
        found = replace(found, template={"spec": spec})
        assert required == pod_of(made_of(found, launch_of(found)))["affinity"]["nodeAffinity"]

    def test_a_job_for_the_cluster_goes_anywhere(self) -> None:
        pod = pod_of(made("adapter that mounts nothing"))
        assert "affinity" not in pod
        assert "tolerations" not in pod


class TestHostNetwork:
    """Ports and names where a Pod has none of its own."""

    def test_ports_differ_by_plugin_and_metrics_are_off(self) -> None:
        pod = pod_of(made("adapter on the node's network", index=7))
        values = environ(pod["initContainers"][0])
        assert ("8106", "0") == (values["SONOBUOY_PROGRESS_PORT"], values["METRICS_PORT"])
        assert "8106" == environ(container(pod, "adapter"))["SONOBUOY_PROGRESS_PORT"]
        assert "ClusterFirstWithHostNet" == pod["dnsPolicy"]

    def test_elsewhere_all_have_the_known_port(self) -> None:
        pod = pod_of(made("adapter that mounts nothing", index=7))
        values = environ(pod["initContainers"][0])
        assert "8099" == values["SONOBUOY_PROGRESS_PORT"]
        assert "METRICS_PORT" not in values
        assert "dnsPolicy" not in pod

    def test_a_policy_of_the_templates_own_stays(self) -> None:
        assert "None" == pod_of(made("adapter with everything of its own"))["dnsPolicy"]
