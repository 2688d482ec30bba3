"""Scenarios that a person asks about: what `status-ctl explain` has to say of their Jobs.

The real command asks the real API server, with the administrator's kubeconfig, and what it prints
is read as a person reads it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from tests.blackbox.ctl.scripted import Home
from tests.blackbox.scenarios import scenario
from tests.blackbox.scenarios.run import Run

ALARMS = ("problem:", "warning:")
GOOD = ("info:    Available=True Checked: All is well (final)",)
"""What is said of `jobs.writes`, and nothing else that anybody has to do."""
SAYS_NO_JOB = (
    "status-ctl: no Job '<job>' in namespace '<namespace>': it was deleted or is in another "
    "namespace (-n)",
)


@dataclass(frozen=True)
class Scenario(scenario.Scenario):
    """A situation with the sentences that a person needs once its end or its condition is there.

    Each is a part of a line, with <pod>, <job> and <namespace> for the names; every problem and
    warning that is told has to hold one of them. `explain_classic` and `explain_native` are told in
    that form besides. What is to be said on the way, `act` asks by `explains`.
    """

    explain: tuple[str, ...] = field(kw_only=True)
    explain_classic: tuple[str, ...] = ()
    explain_native: tuple[str, ...] = ()


def asked(scenario: Scenario) -> Scenario:
    """The same scenario, and somebody who asks in the end, before the Job is deleted."""

    def act(run: Run) -> None:
        if scenario.act:
            scenario.act(run)
        if scenario.ends:
            run.wait_ended(scenario.seconds)
        else:
            run.wait_reason(scenario.expected.reason, scenario.seconds)
        classic = run.form == "classic"
        also = scenario.explain_classic if classic else scenario.explain_native
        explains(run, *scenario.explain, *also)

    return replace(scenario, act=act)


def explains(run: Run, *sentences: str) -> None:
    """`status-ctl explain` says this now, and raises no other alarm."""
    home = Home(run.controlplane.folder)
    cluster = ("-n", run.namespace, "--kubeconfig", str(run.controlplane.kubeconfig))
    code, out, err = home.run("explain", run.name, *cluster)
    if run.versions()[-1].gone:
        assert (4, "") == (code, out)
    else:
        assert (0, "") == (code, err)
    said = out + err
    for pod in run.pods():
        said = said.replace(pod[-1].object["metadata"]["name"], "<pod>")
    lines = said.replace(run.name, "<job>").replace(run.namespace, "<namespace>").splitlines()
    missing = [each for each in sentences if not any(each in line for line in lines)]
    alarms = [
        line
        for line in lines
        if line.startswith(ALARMS) and not any(each in line for each in sentences)
    ]
    assert ([], []) == (missing, alarms), "\n".join(lines)
