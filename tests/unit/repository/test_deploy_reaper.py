"""deploy/reaper: both forms of the reaper, read as plain YAML, and the pages about it.

That its rights are those that it uses is tested in tests/blackbox/ctl/test_reap_command.py, that
the cluster takes it and it works there in tests/blackbox/cluster/test_reap.py.
"""

import argparse
import re
from pathlib import Path

import pytest

from reporter.reap import command as reap
from reporter.reap.metrics import ReaperMetrics
from tests.unit.repository.manifests import load, rights
from tests.unit.repository.test_docs import METRICS, section

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "reaper.md").read_text(encoding="utf-8")
DEPLOYMENT = load("reaper/deployment.yaml")["spec"]["template"]["spec"]
CRONJOB = load("reaper/cronjob/cronjob.yaml")["spec"]["jobTemplate"]["spec"]["template"]["spec"]


@pytest.mark.parametrize("pod", [DEPLOYMENT, CRONJOB], ids=["deployment", "cronjob"])
class TestPod:
    """What both have in common."""

    def test_command(self, pod):
        """The options are those of the command, for all namespaces."""
        (container,) = pod["containers"]
        parser = argparse.ArgumentParser(exit_on_error=False)
        reap.arguments(parser)
        program, command, *words = container["command"]

        assert ("status-ctl", "reap") == (program, command)
        assert parser.parse_args(words).all_namespaces

    def test_restricted_profile(self, pod):
        """And memory is limited, and no Service becomes a variable."""
        (container,) = pod["containers"]
        context = container["securityContext"]

        assert (False, True, True, ["ALL"], "RuntimeDefault") == (
            context["allowPrivilegeEscalation"],
            context["runAsNonRoot"],
            context["readOnlyRootFilesystem"],
            context["capabilities"]["drop"],
            context["seccompProfile"]["type"],
        )
        assert {"memory"} == container["resources"]["limits"].keys()
        assert pod["enableServiceLinks"] is False

    def test_account(self, pod):
        """It is bound to the role, in the namespace that all of it is in."""
        binding = load("reaper/rights/clusterrolebinding.yaml")
        account = load("reaper/rights/serviceaccount.yaml")["metadata"]["name"]
        namespace = load("reaper/rights/namespace.yaml")["metadata"]["name"]
        (subject,) = binding["subjects"]

        assert (account, account, namespace) == (
            pod["serviceAccountName"],
            subject["name"],
            subject["namespace"],
        )
        role = load("reaper/rights/clusterrole.yaml")["metadata"]["name"]
        assert role == binding["roleRef"]["name"]


def test_the_page_names_the_rights():
    """Every one of them, and no other."""
    text = PAGE.partition("## Rights")[2].partition("\n\n")[2].partition("\n\n")[0]
    said = [*re.findall(r"`([a-z/]+): ([a-z, ]+)`", text), ("events", "create")]
    named = {(resource, verb) for resource, verbs in said for verb in verbs.split(", ")}

    assert {(r, verb) for _, r, verb in rights(load("reaper/rights/clusterrole.yaml"))} == named


def test_the_table_names_the_metrics():
    """Every family and its labels."""
    metrics = ReaperMetrics()
    metrics.passed(done=True, waiting=3, failures=2, now=2.0)
    page = metrics.page("").body.decode()
    shown = {
        name + "".join(f"{{{label}}}" for label in re.findall(r"(\w+)=", labels))
        for name, labels in re.findall(r"(?m)^(status_\w+)(\{.*\})? ", page)
    }
    table = section(METRICS, "reaper")
    told = {line.split("`")[1] for line in table.splitlines() if line.startswith("| `status_")}

    assert shown == told
