"""What a run creates, shown to the real API server: strict validation, and Pod Security's own word.

Everything but namespaces and accounts is a dry run.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from reporter.kube.resources import KINDS
from reporter.launch.job import job, secret, secret_name
from reporter.run.plan import Plan, Plugin
from reporter.runctl.objects import objects
from reporter.runctl.pod_security import needed
from reporter.runctl.spec import RunSpec, StatusTls
from tests.aggregators.issued import issue_run
from tests.bed.controlplane import ControlPlane
from tests.contract.servers import RealServer, Reply
from tests.plugin_definitions import YAML
from tests.plugin_launches import PLACE, definition, launch_of, options_of, plugin_of
from tests.pod_templates import TEMPLATES
from tests.unit.runctl.test_objects import SITUATIONS

pytestmark = pytest.mark.cluster

Object = dict[str, Any]
LEVELS = ("restricted", "baseline", "privileged")
ISSUED = issue_run(Plan("r1", (Plugin("p"),)), ["r1"], now=0.0)
(PAIR,) = ISSUED.clients.values()
PEMS = {"client_ca": ISSUED.ca, "certificate": PAIR.certificate, "private_key": PAIR.key}
JSON = {"Content-Type": "application/json"}


class Cluster:
    """The real server as somebody who may do everything; a namespace for each level."""

    def __init__(self, server: RealServer) -> None:
        self._server, self._token = server, server.cluster_token()
        mark = uuid.uuid4().hex[:8]
        self.spaces = {level: f"{level}-{mark}" for level in LEVELS}
        self.empty = f"empty-{mark}"

    def __enter__(self) -> Cluster:
        self.create("Namespace", {"metadata": {"name": self.empty}}, query="")
        for level, name in self.spaces.items():
            labels = {"pod-security.kubernetes.io/enforce": level}
            self.create("Namespace", {"metadata": {"name": name, "labels": labels}}, query="")
            for account in ("default", "r1-plugin", "r1-aggregator", "theirs"):
                account_of = {"metadata": {"name": account, "namespace": name}}
                made = self.create("ServiceAccount", account_of, query="")
                assert made.status in {201, 409}, made.message
        return self

    def __exit__(self, *_: object) -> None:
        for name in (self.empty, *self.spaces.values()):
            self._server.call("DELETE", f"/api/v1/namespaces/{name}", token=self._token)

    def create(
        self, kind: str, body: Object, query: str = "?dryRun=All&fieldValidation=Strict"
    ) -> Reply:
        """POST it where it says that it belongs."""
        path, names = KINDS[kind].path(body["metadata"].get("namespace"))
        data = json.dumps(body).encode()
        return self._server.call("POST", path.format(**names) + query, data, JSON, self._token)

    def create_pod(self, template: Object, level: str) -> Reply:
        """Try a Pod of a template under a level of Pod Security."""
        metadata = {"name": "tried", "namespace": self.spaces[level]}
        metadata |= template.get("metadata", {})
        return self.create("Pod", {**template, "metadata": metadata})


@pytest.fixture(scope="module")
def server(controlplane: ControlPlane) -> Iterator[Cluster]:
    with RealServer(controlplane) as server, Cluster(server) as ready:
        yield ready


def accepted(reply: Reply) -> None:
    """Taken without a word."""
    said = reply.headers.get("Warning", reply.message)
    assert (201, None) == (reply.status, reply.headers.get("Warning")), said


def levels_that_admit(server: Cluster, template: Object) -> list[str]:
    """The levels under which the server takes a Pod; a refusal for another reason is an error."""
    admitting = []
    for level in LEVELS:
        reply = server.create_pod(template, level)
        if reply.status == 201:
            admitting.append(level)
        else:
            assert "violates PodSecurity" in reply.message, reply.message
    return admitting


def level_and_above(level: str) -> list[str]:
    return list(LEVELS[LEVELS.index(level) :])


@pytest.mark.parametrize("situation", TEMPLATES)
def test_a_template_is_admitted_from_the_level_that_we_say(server: Cluster, situation: str) -> None:
    template, level, _ = TEMPLATES[situation]
    assert level_and_above(level) == levels_that_admit(server, template)


@pytest.mark.parametrize("situation", YAML)
def test_jobs_and_their_pods_are_accepted(server: Cluster, situation: str) -> None:
    """The Job as it is, and its Pod under the very level that the definition alone needs."""
    found = definition(situation)
    place = replace(PLACE, namespace=server.spaces["privileged"])
    plugin = plugin_of(found)
    for key in plugin.keys:
        made = job(place, launch_of(found), plugin, key, index=1, timeout=60)
        accepted(server.create("Job", made))
        admitting = levels_that_admit(server, made["spec"]["template"])
        assert level_and_above(needed(found.template)[0]) == admitting
    name = secret_name(place.run, plugin, plugin.keys[0])
    pems = {
        "ca": PEMS["client_ca"],
        **{each: PEMS[each] for each in ("certificate", "private_key")},
    }
    accepted(server.create("Secret", secret(place, name, plugin.keys[0], **pems)))


@pytest.mark.parametrize("situation", SITUATIONS)
def test_the_objects_of_a_run_are_accepted(server: Cluster, situation: str) -> None:
    """Each of them, and the aggregator's Pod under the restricted profile."""
    options = replace(SITUATIONS[situation], namespace=server.empty)
    if options.status_tls is not None:
        options = replace(options, status_tls=StatusTls(**PEMS))
    accept_all(server, options)
    pod = objects(options)[-1]["spec"]["template"]
    assert list(LEVELS) == levels_that_admit(server, pod)


def test_a_run_of_a_thousand_nodes_fits_into_its_objects(server: Cluster) -> None:
    """Names of cloud nodes, a certificate for each: ConfigMap and Roles stay below the limits."""
    found = definition("adapter on each node")
    nodes = tuple(
        f"ip-10-{at // 250}-{at % 250}-17.eu-central-1.compute.internal" for at in range(1000)
    )
    plugin = replace(plugin_of(found, nodes), identity="node")
    options = options_of(found)
    options = replace(
        options,
        namespace=server.empty,
        plan=replace(options.plan, plugins=(plugin,)),
    )
    accept_all(server, options)


def accept_all(server: Cluster, options: RunSpec) -> None:
    """Every object of the run is accepted; a namespace under another name than what is there."""
    for made in objects(options):
        if made["kind"] == "Namespace":
            made["metadata"]["name"] += "-new"
        accepted(server.create(made["kind"], made))
