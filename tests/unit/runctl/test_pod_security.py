"""The Pod Security level that templates need, and why; the real server is asked elsewhere."""

from __future__ import annotations

import pytest

from reporter.runctl.pod_security import needed, pod_security
from tests.plugin_definitions import YAML
from tests.plugin_launches import definition
from tests.pod_templates import TEMPLATES


@pytest.mark.parametrize("situation", TEMPLATES)
def test_a_template_needs(situation: str) -> None:
    template, level, why = TEMPLATES[situation]
    assert (level, why) == needed(template)


def test_definitions_need_the_most_that_one_of_them_needs() -> None:
    names = ("restricted adapter", "Sonobuoy's systemd-logs", "adapter that mounts nothing")
    assert (
        "privileged",
        (
            "systemd-logs needs privileged: hostNetwork, hostPID, hostIPC, hostPath, privileged",
            "bare needs baseline: allowPrivilegeEscalation, capabilities, runAsNonRoot,"
            " seccompProfile",
        ),
    ) == pod_security([definition(name) for name in names])
    assert ("restricted", ()) == pod_security([])
    assert "privileged" == pod_security([definition(name) for name in YAML])[0]
