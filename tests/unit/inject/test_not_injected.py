"""Why a Job is given nothing: it is refused, or skipped; and which container is the adapter."""

import pytest

from reporter.inject.container import Wishes
from reporter.inject.transform import Injected, Refused, Skipped
from reporter.jobs.setting import LABEL
from tests.unit.inject.scene import environment, job, made, said, without


def variables(name, *more):
    """A container with what every reporter has in its environment, and more of it."""
    names = ("JOB_NAME", "JOB_NAMESPACE", "POD_NAME", *more)
    return {"name": name, "env": [{"name": each, "value": "x"} for each in names]}


class TestWhyNot:
    """What cannot have a reporter, or wants none."""

    @pytest.mark.parametrize(
        ("value", "answer"),
        [
            (job({"restartPolicy": "Always"}), "restartPolicy is Always; a Job's must be Never"),
            (job({"restartPolicy": None}), "restartPolicy is missing, which means Always"),
            (job({"os": {"name": "windows"}}), "its Pods run on Windows; the reporter needs Linux"),
            (
                job({"nodeSelector": {"kubernetes.io/os": "windows"}}),
                "its Pods run on Windows; the reporter needs Linux",
            ),
            (
                job({"volumes": [{"name": "status-reporter-token"}]}),
                "volume 'status-reporter-token' is not the reporter's",
            ),
            (job({"containers": []}), "no container can be the adapter; containers: none"),
            (
                job({"containers": [{"name": "envoy"}, {"name": "istio-proxy"}]}),
                "no container can be the adapter; containers: envoy, istio-proxy",
            ),
            (
                job(metadata={"labels": {LABEL: "natve"}}),
                f"label {LABEL}=natve must be native, classic or disabled",
            ),
        ],
    )
    def test_refused(self, value, answer):
        """With the reason, and the Job as it was."""
        assert said(value).reason.startswith(answer)
        assert isinstance(said(value), Refused)
        assert value == made(value)

    @pytest.mark.parametrize("deadline", [0, 1])
    def test_no_time_for_a_verdict(self, deadline):
        """No wait ends before such a deadline; one that is asked for is somebody's wish."""
        value = job(spec={"activeDeadlineSeconds": deadline})
        asked = Wishes("i", environment={"MAX_WAIT_TIME_SECONDS": "1"})

        assert said(value).reason.endswith("which leaves no time for a verdict")
        assert isinstance(said(value, asked), Injected)

    def test_no_such_adapter(self):
        """A name that fits some Jobs only is told for the others."""
        assert Refused("no container 'x'; containers: main") == said(
            job(), Wishes("i", adapter="x")
        )
        assert "main" == said(job(), Wishes("i", adapter="main")).adapter

    @pytest.mark.parametrize(
        ("value", "answer"),
        [
            (job(metadata={"labels": {LABEL: "disabled"}}), f"label {LABEL}=disabled"),
            (
                job({"initContainers": [{"name": "status-reporter"}]}),
                "has a container 'status-reporter' that was not added by status-ctl inject",
            ),
            (
                job({"containers": [variables("verdict", "REPORTER_FORM"), {"name": "main"}]}),
                "has a container 'verdict' that was not added by status-ctl inject",
            ),
            (
                job({"containers": [variables("verdict", "REPORTER_FORM")]}),
                "has a container 'verdict' that was not added by status-ctl inject",
            ),
        ],
    )
    def test_skipped(self, value, answer):
        """Wanted so, or there already."""
        assert Skipped(answer) == said(value)
        assert value == made(value)
        assert value == without(value)

    def test_a_container_that_may_be_a_reporter(self):
        """Two reporters would be wrong, and none too: somebody must say which it is."""
        two = job({"containers": [variables("verdict"), {"name": "main"}]})
        alone = job({"containers": [variables("main"), {"name": "istio-proxy"}]})

        assert said(two).reason.startswith("container 'verdict' has a reporter's variables")
        assert isinstance(said(two, Wishes("i", adapter="main")), Skipped)
        assert "verdict" == said(two, Wishes("i", adapter="verdict")).adapter
        assert "main" == said(alone).adapter

    @pytest.mark.parametrize(
        ("names", "annotation", "adapter", "doubt"),
        [
            (["a", "istio-proxy"], "", "a", False),
            (["a", "b"], "", "a", True),
            (["a", "b"], "b", "b", False),
        ],
    )
    def test_which_container_is_the_adapter(self, names, annotation, adapter, doubt):
        """As the reporter would find it; a guess is told."""
        metadata = {"annotations": {"kubectl.kubernetes.io/default-container": annotation}}
        value = job(
            {"containers": [{"name": name} for name in names]}, template={"metadata": metadata}
        )

        assert adapter == said(value).adapter
        assert doubt == any("set --adapter" in each for each in said(value).remarks)
        assert adapter == environment(made(value))["ADAPTER_CONTAINER_NAME"]
