"""What a Job is given: the reporter's container, its environment, its ports and its remarks."""

import pytest

from reporter.inject.container import Wishes
from reporter.inject.transform import SAME_ACCOUNT, Refused
from reporter.jobs.setting import LABEL
from reporter.verdict.facts import Form
from tests.unit.inject.scene import environment, job, made, pod, reporter, said
from tests.unit.repository.manifests import FORMS, load

MEMORY = {"memory": "64Mi"}


class TestWhatIsAdded:
    @pytest.mark.parametrize("form", FORMS)
    def test_it_is_the_container_of_the_kustomize_component(self, form):
        """But for the adapter's name, and for names of volumes that cannot meet the Job's own."""
        added = made(
            job(spec={"activeDeadlineSeconds": 310}), Wishes("status-reporter", Form(form))
        )
        patch = load(f"components/{form}/job.yaml")["spec"]["template"]["spec"]
        (wanted,) = patch[FORMS[form]]
        wanted["env"].append({"name": "ADAPTER_CONTAINER_NAME", "value": "main"})
        wanted["env"].append({"name": "MAX_WAIT_TIME_SECONDS", "value": "280"})
        wanted["volumeMounts"][0]["name"] = "status-reporter-results"
        patch["volumes"][0]["name"] = "status-reporter-results"

        assert wanted == pod(added)[FORMS[form]][0]
        assert patch["volumes"] == pod(added)["volumes"]

    def test_the_account_and_its_mounts_are_the_pods_own(self):
        """Nothing of them is touched."""
        value = job({"serviceAccountName": "mine", "automountServiceAccountToken": True})

        spec = pod(made(value))

        assert ("mine", True) == (spec["serviceAccountName"], spec["automountServiceAccountToken"])

    def test_it_stands_before_all_others(self):
        """In either form: the kubelet starts them in order."""
        value = job({"initContainers": [{"name": "init"}]})

        native, classic = made(value), made(value, Wishes("i", Form.CLASSIC))

        assert ["status-reporter", "init"] == [c["name"] for c in pod(native)["initContainers"]]
        assert ["status-reporter", "main"] == [c["name"] for c in pod(classic)["containers"]]
        assert "restartPolicy" not in reporter(classic)

    def test_the_jobs_label_says_the_form(self):
        """Before the option."""
        value = job(metadata={"labels": {LABEL: "classic"}})

        assert Form.CLASSIC == said(value).form
        assert "initContainers" not in pod(made(value))

    @pytest.mark.parametrize(
        ("deadline", "wait"),
        [(3600, "3570"), (100, "90"), (99, "89"), (20, "10"), (5, "3"), (2, "1")],
    )
    def test_it_waits_nearly_as_long_as_the_job_may_take(self, deadline, wait):
        """The lower of both deadlines; a reporter that gives up early would be wrong."""
        value = job({"activeDeadlineSeconds": deadline}, {"activeDeadlineSeconds": deadline + 1})

        assert wait == environment(made(value))["MAX_WAIT_TIME_SECONDS"]

    def test_a_wait_that_is_given_is_kept(self):
        """Even beside a deadline."""
        wishes = Wishes("i", environment={"MAX_WAIT_TIME_SECONDS": "7", "LOG_LEVEL": "debug"})
        found = environment(made(job(spec={"activeDeadlineSeconds": 60}), wishes))

        assert ("7", "debug") == (found["MAX_WAIT_TIME_SECONDS"], found["LOG_LEVEL"])

    @pytest.mark.parametrize(
        ("changes", "given", "port", "remark"),
        [
            ({}, {}, 9464, ""),
            ({}, {"METRICS_PORT": "9999"}, 9999, ""),
            ({"hostNetwork": True}, {}, 0, "no metrics: the Pod uses the node's network"),
            ({"hostNetwork": True}, {"METRICS_PORT": "9999"}, 9999, ""),
            ({}, {"METRICS_PORT": "0"}, 0, ""),
            (
                {"containers": [{"name": "main", "ports": [{"containerPort": 9464}]}]},
                {},
                0,
                "no metrics: port 9464 is container main's",
            ),
            (
                {"initContainers": [{"name": "side", "ports": [{"containerPort": 80}]}]},
                {"METRICS_PORT": "80"},
                80,
                "port 80 is also container side's",
            ),
        ],
    )
    def test_the_port_of_the_metrics(self, changes, given, port, remark):
        """Off where it would be somebody else's, unless it is asked for."""
        value, wishes = job(changes), Wishes("i", environment=given)
        ports = reporter(made(value, wishes)).get("ports", [])

        # The usual one is not declared: on the node's network it would become the node's.
        assert ([] if port in (0, 9464) else [port]) == [each["containerPort"] for each in ports]
        assert (None if port == 9464 else str(port)) == environment(made(value, wishes)).get(
            "METRICS_PORT"
        )
        assert bool(remark) == any(
            each.startswith(remark or "?") for each in said(value, wishes).remarks
        )

    def test_an_aggregator(self):
        """Address, whose result it is, and the certificate, which is the reporter's alone."""
        wishes = Wishes("i", aggregator="agg.checks")
        value = job(spec={"backoffLimit": 0})
        added = made(value, wishes)
        labelled = job(template={"metadata": {"labels": {"status-reporter.io/plugin": "p"}}})

        assert ("https://agg.checks:8080", "j") == (
            environment(added)["AGGREGATOR_URL"],
            environment(added)["RESULT_TYPE"],
        )
        assert "agg-j" == pod(added)["volumes"][-1]["secret"]["secretName"]
        assert "agg-p" == pod(made(labelled, wishes))["volumes"][-1]["secret"]["secretName"]
        assert environment(made(labelled, wishes))["RESULT_TYPE"] is None
        assert not [each for each in said(value, wishes).remarks if "backoffLimit" in each]
        assert [each for each in said(labelled, wishes).remarks if "backoffLimit" in each]
        assert isinstance(said(job(metadata={"name": ""}), wishes), Refused)

    @pytest.mark.parametrize(
        ("spec", "remark"),
        [
            ({"parallelism": 2}, "parallelism is 2: the verdict is that of its newest Pod"),
            ({"completions": 2}, "completions is 2: the verdict is that of its newest Pod"),
            (
                {"parallelism": 2, "completions": 3, "completionMode": "Indexed"},
                "completions is 3: a failed index keeps its verdict, else it is that of the newest "
                "Pod",
            ),
        ],
    )
    def test_a_job_of_several_pods_is_remarked_on(self, spec, remark):
        """Once: the contract is about one."""
        assert [remark] == [each for each in said(job(spec=spec)).remarks if "newest" in each]

    @pytest.mark.parametrize(
        ("limit", "whole", "resources", "remarked"),
        [
            ("", "1", {"requests": {"cpu": "50m", "memory": "48Mi"}, "limits": MEMORY}, 1),
            ("", "0", {"requests": {"cpu": "50m", "memory": "48Mi"}, "limits": MEMORY}, 0),
            ("500m", "1", {key: {"cpu": "500m"} | MEMORY for key in ("requests", "limits")}, 0),
        ],
    )
    def test_a_guaranteed_pod_stays_one_with_a_cpu_limit(self, limit, whole, resources, remarked):
        """A limit of 0 is none: such a Pod is not Guaranteed."""
        whole = {"limits": {"cpu": whole, "memory": "1Gi"}}
        value = job({"containers": [{"name": "main", "resources": whole}]})
        wishes = Wishes("i", cpu_limit=limit)

        assert resources == reporter(made(value, wishes))["resources"]
        found = [each for each in said(value, wishes).remarks if "Guaranteed" in each]
        assert remarked == len(found)
        assert not [each for each in said(job()).remarks if "Guaranteed" in each]

    @pytest.mark.parametrize(
        ("stated", "expected", "remarked"), [(None, False, 0), (True, True, 1), (False, False, 0)]
    )
    def test_the_reporter_alone_has_a_token_where_that_is_asked_for(
        self, stated, expected, remarked
    ):
        """Unless the Pod says that its containers get one."""
        own = {"serviceAccountName": "mine", "automountServiceAccountToken": stated}
        value = job({key: each for key, each in own.items() if each is not None})
        wishes = Wishes("i", own_token_only=True)

        once = made(value, wishes)

        assert expected == pod(once)["automountServiceAccountToken"]
        assert [bool(remarked)] * 2 == [
            SAME_ACCOUNT in said(value, wishes).remarks,
            "automountServiceAccountToken is true: the Pod's other containers keep their token"
            in said(value, wishes).remarks,
        ]

    def test_a_token_of_the_same_account_is_remarked_on(self):
        """Whoever has it may write the verdict."""
        silent = job({"automountServiceAccountToken": False})
        own = job({"automountServiceAccountToken": False, "serviceAccountName": "mine"})

        assert SAME_ACCOUNT in said(job({"serviceAccountName": "mine"})).remarks
        assert SAME_ACCOUNT in said(silent).remarks, "every Pod of the namespace may have that one"
        assert SAME_ACCOUNT not in said(own).remarks

    @pytest.mark.parametrize(
        ("stated", "account", "remarked"),
        [
            (None, ("", "mine"), False),
            (None, ("team", "mine"), False),
            (None, ("other", "mine"), True),
            (None, ("team", "yours"), True),
            (True, ("team", "mine"), True),
        ],
    )
    def test_an_account_whose_pods_get_no_token(self, stated, account, remarked):
        """Its manifest says so; the Pod's own word stands over it."""
        own = {} if stated is None else {"automountServiceAccountToken": stated}
        value = job({"serviceAccountName": "mine", **own}, metadata={"namespace": "team"})
        wishes = Wishes("i", without_token=frozenset({account}))

        assert remarked == (SAME_ACCOUNT in said(value, wishes).remarks)

    @pytest.mark.parametrize("field", ["shareProcessNamespace", "hostPID"])
    def test_processes_that_see_each_other_are_remarked_on(self, field):
        """The adapter reads the reporter's files below /proc then."""
        (remark,) = (each for each in said(job({field: True})).remarks if field in each)

        assert "can read the reporter's token" in remark
        assert not [each for each in said(job({field: False})).remarks if field in each]

    @pytest.mark.parametrize(("path", "hidden"), [("/etc/x", True), ("/out/x", False)])
    def test_a_volume_over_the_adapters_own_files_is_remarked_on(self, path, hidden):
        """An adapter without its /etc fails in ways that nobody understands."""
        remarks = said(job(), Wishes("i", results_path=path)).remarks

        assert hidden == ("the new volume hides what the adapter's image has at /etc" in remarks)

    def test_the_user_is_the_adapters(self):
        """Its file may be readable for nobody else."""
        value = job({"containers": [{"name": "main", "securityContext": {"runAsUser": 0}}]})
        context = reporter(made(value))["securityContext"]

        assert (0, False) == (context["runAsUser"], context["runAsNonRoot"])
