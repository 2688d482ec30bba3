"""What a Job is given, why it is not, and how it gets rid of it again."""

import json
from copy import deepcopy

import pytest

from reporter.core.facts import Form
from reporter.core.inject.decide import covers, decide
from reporter.core.inject.edits import Add, Put, Remove, apply, get
from reporter.core.inject.jobs import jobs, manifests
from reporter.core.inject.record import ANNOTATION, Record, read
from reporter.core.inject.rights import gives, role, role_binding
from reporter.core.inject.template import (
    SAME_ACCOUNT,
    Injected,
    Refused,
    Skipped,
    account_of,
    uninject,
)
from reporter.core.inject.wishes import LABEL, Wishes
from tests.unit.repository.manifests import FORMS, load

WISHES = Wishes("image")


def job(pod=None, spec=None, metadata=None, template=None):
    """A Job with one container, and what is to be different."""
    found = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "i"}]}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "j", **(metadata or {})},
        "spec": {"template": {"spec": found | (pod or {}), **(template or {})}, **(spec or {})},
    }


def variables(name, *more):
    """A container with what every reporter has in its environment, and more of it."""
    names = ("JOB_NAME", "JOB_NAMESPACE", "POD_NAME", *more)
    return {"name": name, "env": [{"name": each, "value": "x"} for each in names]}


def one(value):
    (found,) = jobs(value)
    return found


def said(value, wishes=WISHES):
    return decide(value, one(value), wishes).said


def made(value, wishes=WISHES):
    """Return the Job with its reporter."""
    decision = decide(value, one(value), wishes)
    return apply(apply(value, decision.out), decision.put_in)


def pod(value):
    return value["spec"]["template"]["spec"]


def reporter(value):
    spec = pod(value)
    (found,) = (
        each
        for each in spec.get("initContainers", []) + spec["containers"]
        if each["name"] == "status-reporter"
    )
    return found


def environment(value):
    return {each["name"]: each.get("value") for each in reporter(value)["env"]}


CRON = {
    "apiVersion": "batch/v1",
    "kind": "CronJob",
    "metadata": {"name": "c", "namespace": "n", "labels": {"a": "1", "b": "2"}},
    "spec": {"jobTemplate": {"metadata": {"labels": {"b": "3"}}, "spec": job()["spec"]}},
}
JOB_SET = {
    "apiVersion": "jobset.x-k8s.io/v1alpha2",
    "kind": "JobSet",
    "metadata": {"name": "s"},
    "spec": {
        "replicatedJobs": [
            {"name": "one", "template": {"spec": job()["spec"]}},
            "broken",
            {"name": "two", "template": {"spec": job()["spec"]}},
        ]
    },
}


class TestWhereJobsAre:
    """jobs.py."""

    @pytest.mark.parametrize(
        ("value", "shown"),
        [
            (job(), ["job.batch/j"]),
            (job(metadata={"name": "", "generateName": "g-"}), ["job.batch/g-*"]),
            (CRON, ["cronjob.batch/c"]),
            (JOB_SET, ["jobset.jobset.x-k8s.io/s (one)", "jobset.jobset.x-k8s.io/s (two)"]),
            (
                {"kind": "List", "items": [job(), {"kind": "JobList", "items": [CRON]}]},
                ["job.batch/j", "cronjob.batch/c"],
            ),
            ({**job(), "apiVersion": "other/v1"}, []),
            ({**CRON, "spec": {}}, []),
            ({"kind": "Pod"}, []),
            ([1], []),
            (None, []),
        ],
    )
    def test_kinds(self, value, shown):
        """By kind and group; a list is looked into."""
        assert shown == [found.shown for found in jobs(value)]

    def test_a_cronjobs_labels_are_those_of_its_jobs_before_its_own(self):
        """Either may ask for a form; what makes the Jobs is nearer."""
        found = one(CRON)

        assert {"a": "1", "b": "3"} == found.labels
        assert ("c", "n", ("spec", "jobTemplate")) == (found.name, found.namespace, found.job)

    @pytest.mark.parametrize(
        ("kind", "spec", "expected"),
        [
            ("Workflow", {"templates": [{"name": "t"}, {}]}, ("spec", "templates", 0)),
            (
                "CronWorkflow",
                {"workflowSpec": {"templates": [{"name": "t"}]}},
                ("spec", "workflowSpec", "templates", 0),
            ),
        ],
    )
    def test_manifests_of_workflows(self, kind, spec, expected):
        """Only of whole objects; a patch is none."""
        spec = deepcopy(spec)
        value = {"apiVersion": "argoproj.io/v1", "kind": kind, "spec": spec}
        template = get(value, expected)
        template["resource"] = {"action": "create", "manifest": "kind: Job"}
        whole = {"kind": "List", "items": [value]}

        assert [((*expected, "resource", "manifest"), f"{kind.lower()}.argoproj.io/* (t)")] == list(
            manifests(value)
        )
        assert 1 == len(list(manifests(whole)))
        template["resource"]["action"] = "patch"
        assert [] == list(manifests(value))
        assert [] == list(manifests({"kind": "Workflow"}))


class TestWhatIsAdded:
    """template.py and container.py."""

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

        assert ([port] if port else []) == [each["containerPort"] for each in ports]
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

    @pytest.mark.parametrize("field", ["parallelism", "completions"])
    def test_a_job_of_several_pods_is_remarked_on(self, field):
        """The contract is about one."""
        (remark,) = (each for each in said(job(spec={field: 3})).remarks if field in each)

        assert f"{field} is 3: the verdict is that of its newest Pod" == remark

    def test_a_token_of_the_same_account_is_remarked_on(self):
        """Whoever has it may write the verdict."""
        silent = job({"automountServiceAccountToken": False})
        own = job({"automountServiceAccountToken": False, "serviceAccountName": "mine"})

        assert SAME_ACCOUNT in said(job({"serviceAccountName": "mine"})).remarks
        assert SAME_ACCOUNT in said(silent).remarks, "every Pod of the namespace may have that one"
        assert SAME_ACCOUNT not in said(own).remarks

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


def mounted(mount, volume=None, path="/results/adapter-result.json"):
    """Return what is said of a Job whose adapter mounts a volume, and the Job with its reporter."""
    adapter = {"name": "main", "volumeMounts": [{"name": "v", **mount}]}
    volumes = [{"name": "other"}, {"name": "v", **({"emptyDir": {}} if volume is None else volume)}]
    value = job({"containers": [adapter], "volumes": volumes})
    wishes = Wishes("i", results_path=path)
    return said(value, wishes), made(value, wishes)


class TestVolumeOfTheResult:
    """results.py."""

    def test_one_that_is_there_is_used(self):
        """Nothing is added to the adapter then."""
        answer, value = mounted({"mountPath": "/results/", "subPath": "x"})

        assert isinstance(answer, Injected)
        assert 1 == len(pod(value)["containers"][0]["volumeMounts"])
        assert {
            "name": "v",
            "mountPath": "/results/",
            "subPath": "x",
            "readOnly": True,
        } == reporter(value)["volumeMounts"][0]

    def test_the_nearest_mount_counts(self):
        """A mount above it does not hold the file."""
        adapter = {
            "name": "main",
            "volumeMounts": [
                {"name": "near", "mountPath": "/data/out"},
                {"name": "far", "mountPath": "/work", "readOnly": True},
                {"name": "beside", "mountPath": "/data/o"},
            ],
        }
        value = job({"containers": [adapter]})
        added = made(value, Wishes("i", results_path="/data/out/r.json"))

        assert "near" == reporter(added)["volumeMounts"][0]["name"]
        assert "/data/out/r.json" == environment(added)["RESULTS_PATH"]

    def test_other_volumes_than_an_emptydir_are_remarked_on(self):
        """A result in one may be an old one."""
        answer, _ = mounted(
            {"mountPath": "/results"}, {"persistentVolumeClaim": {"claimName": "c"}}
        )

        assert answer.remarks[0].startswith("/results is not an emptyDir")

    @pytest.mark.parametrize(
        ("mount", "volume", "why"),
        [
            ({"mountPath": "/results", "readOnly": True}, None, "/results is mounted read-only"),
            (
                {"mountPath": "/results/adapter-result.json"},
                None,
                "/results/adapter-result.json is mounted as a single file",
            ),
            (
                {"mountPath": "/results", "subPathExpr": "$(X)"},
                None,
                "/results is mounted with subPathExpr, which the reporter cannot follow",
            ),
            (
                {"mountPath": "/results"},
                {"configMap": {}},
                "/results is a ConfigMap, which cannot be written",
            ),
            (
                {"mountPath": "/results"},
                {"persistentVolumeClaim": {"readOnly": True}},
                "/results is a read-only claim",
            ),
        ],
    )
    def test_one_that_cannot_be_written_is_refused(self, mount, volume, why):
        """The adapter could leave nothing there."""
        answer, value = mounted(mount, volume)

        assert Refused(f"no volume for results: {why}") == answer
        assert [] == [c for c in pod(value)["containers"] if c["name"] == "status-reporter"]

    @pytest.mark.parametrize("at", ["/", "/app", "/var/run", "/usr/lib"])
    def test_the_reporters_own_files_are_not_hidden(self, at):
        """It sees the same file elsewhere."""
        _, value = mounted({"mountPath": at}, path=f"{at.rstrip('/')}/out/r.json")

        assert "/results" == reporter(value)["volumeMounts"][0]["mountPath"]
        assert "/results/out/r.json" == environment(value)["RESULTS_PATH"]


class TestWhyNot:
    """What cannot have a reporter, or wants none."""

    @pytest.mark.parametrize(
        ("value", "answer"),
        [
            (job({"restartPolicy": "Always"}), "restartPolicy is Always; a Job's must be Never"),
            (job({"restartPolicy": None}), "restartPolicy is missing, which means Always"),
            (job({"os": {"name": "windows"}}), "its Pods run on Windows; the reporter needs Linux"),
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
                f"label {LABEL}=natve is none of native, classic and disabled",
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
        assert () == uninject(value, one(value))

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


BEFORE = [
    job(),
    job(metadata={"labels": {"a": "b"}, "annotations": {"c": "d"}}),
    job(metadata={"labels": {LABEL: "native"}}),
    job({"volumes": [], "initContainers": []}),
    job({"volumes": [{"name": "own", "emptyDir": {}}], "initContainers": [{"name": "init"}]}),
    job({"containers": [{"name": "main", "volumeMounts": []}]}),
    {key: value for key, value in job().items() if key != "metadata"},
    CRON,
    {"kind": "List", "items": [CRON]},
]


class TestTwiceAndBack:
    """decide.py and record.py."""

    @pytest.mark.parametrize("value", BEFORE)
    @pytest.mark.parametrize("form", list(Form))
    def test_twice_is_once_and_back_is_the_original(self, value, form):
        """Whatever was there before, empty lists too."""
        wishes = Wishes("i", form)
        once = made(value, wishes)

        assert once != value
        assert not decide(once, one(once), wishes).changes
        assert value == apply(once, uninject(once, one(once)))

    def test_other_options_replace_what_was_put_in(self):
        """As if it had been the first time."""
        once = made(job())

        assert made(job(), Wishes("other", Form.CLASSIC)) == made(
            once, Wishes("other", Form.CLASSIC)
        )

    def test_what_the_server_has_added_is_no_change(self):
        """Its defaults are not ours."""
        once = made(job())
        reporter(once)["terminationMessagePath"] = "/dev/termination-log"

        assert not decide(once, one(once), WISHES).changes

    def test_what_is_no_longer_wanted_is_a_change(self):
        """A mount elsewhere than the adapter's shows an empty directory: a wrong verdict."""
        mount, user = {"mountPath": "/results", "subPath": "one"}, {"runAsUser": 7, "runAsGroup": 7}
        adapter = {"name": "main", "volumeMounts": [{"name": "v", **mount}]}
        volumes = [{"name": "v", "emptyDir": {}}]
        once = made(job({"containers": [adapter | {"securityContext": user}], "volumes": volumes}))
        del pod(once)["containers"][0]["volumeMounts"][0]["subPath"]
        again = made(once)
        del pod(again)["containers"][0]["securityContext"]

        assert "subPath" not in reporter(again)["volumeMounts"][0]
        assert {"runAsUser", "runAsGroup"}.isdisjoint(reporter(made(again))["securityContext"])

    def test_what_people_have_added_stays(self):
        """Only our own parts go."""
        once = made(job())
        pod(once)["volumes"].append({"name": "theirs"})

        back = apply(once, uninject(once, one(once)))

        assert [{"name": "theirs"}] == pod(back)["volumes"]

    def test_disabled_afterwards_it_is_taken_out(self):
        """The label is the last word."""
        once = made(job())
        once["metadata"]["labels"][LABEL] = "disabled"
        again = made(once)

        assert job(metadata={"labels": {LABEL: "disabled"}}) == again

    def test_one_that_cannot_be_replaced_stays(self):
        """Options that do not fit must not cost the reporter that is there."""
        once = made(job())
        decision = decide(once, one(once), Wishes("i", adapter="nobody"))

        assert isinstance(decision.said, Refused)
        assert not decision.changes

    @pytest.mark.parametrize(
        ("value", "expected"),
        [
            (None, None),
            ("rights", Record()),
            ("[" * 100_000, Record()),
            ("[]", Record()),
            ('{"added":5}', Record()),
            ('{"added":["a",5]}', Record(("a",))),
        ],
    )
    def test_a_record_that_somebody_has_changed(self, value, expected):
        """Names nothing that would be removed."""
        assert expected == read({ANNOTATION: value})

    def test_without_its_record_containers_and_volumes_go_and_lists_stay(self):
        """Nothing is known of what was there before."""
        once = made(job())
        once["metadata"]["annotations"][ANNOTATION] = "?"
        back = apply(once, uninject(once, one(once)))

        assert ([], []) == (pod(back)["volumes"], pod(back)["initContainers"])
        assert {LABEL: "native"} == back["metadata"]["labels"]

    @pytest.mark.parametrize(
        ("shown", "wanted", "expected"),
        [
            ({"a": 1, "b": 2}, {"a": 1}, True),
            ({"b": 2}, {"a": 1}, False),
            ([{"a": 1, "b": 2}], [{"a": 1}], True),
            ({"a": 1, "subPath": "x"}, {"a": 1}, False),
            ([1, 2], [1], False),
            (1, [1], False),
            ({"a": 1}, 1, False),
        ],
    )
    def test_what_covers_what(self, shown, wanted, expected):
        """More of an object is the same, more of a list is not."""
        assert expected == covers(shown, wanted)


class TestRights:
    """rights.py."""

    def test_the_role_is_that_of_the_base(self):
        """Nothing more."""
        assert load("base/role.yaml") == role("")
        assert "n" == role("n")["metadata"]["namespace"]

    def test_the_binding_is_that_of_the_base_for_another_account(self):
        """The account's namespace is the Job's."""
        wanted = load("base/rolebinding.yaml")
        wanted["metadata"]["name"] += "-mine"
        wanted["subjects"][0]["name"] = "mine"

        assert wanted == role_binding("", "mine")
        assert "n" == role_binding("n", "mine")["subjects"][0]["namespace"]

    @pytest.mark.parametrize(
        ("changes", "expected"),
        [
            ({}, True),
            ({"rules": []}, False),
            ({"rules": [{}, *role("")["rules"][1:]]}, False),
            ({"rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]}, True),
        ],
    )
    def test_whether_a_role_gives_it(self, changes, expected):
        """One that gives more does too."""
        assert expected == gives(role("") | changes, role(""))

    @pytest.mark.parametrize(
        ("changes", "expected"),
        [
            ({}, True),
            ({"roleRef": {"kind": "Role", "name": "view"}}, False),
            ({"subjects": []}, False),
            ({"subjects": [{"kind": "User"}, *role_binding("", "a")["subjects"]]}, True),
        ],
    )
    def test_whether_a_binding_gives_it(self, changes, expected):
        """To this account, among others."""
        assert expected == gives(role_binding("", "a") | changes, role_binding("", "a"))

    @pytest.mark.parametrize(
        ("spec", "account"),
        [({"serviceAccountName": "a"}, "a"), ({"serviceAccount": "b"}, "b"), ({}, "default")],
    )
    def test_whose_rights(self, spec, account):
        """The old name of the field counts too."""
        assert account == account_of(spec)


def test_a_change_leaves_the_old_value_and_all_that_it_is_not_about():
    """The old one is needed for the next Job of a list; a copy of the whole would cost each Job."""
    old = {"a": [{"b": [1]}, {"c": {}}], "d": {"e": 2}}
    edits = [Add(("a", 0, "b"), 2), Put(("a", 1, "c", "x"), 1), Remove(("a", 0))]

    new = apply(old, edits)

    assert {"a": [{"c": {"x": 1}}], "d": {"e": 2}} == new
    assert {"a": [{"b": [1]}, {"c": {}}], "d": {"e": 2}} == old
    assert new["d"] is old["d"]


def test_nothing_is_at_a_path_that_leads_nowhere():
    """As an empty value, never an error."""
    assert [None] * 3 == [get(value, path) for value, path in [({}, (0,)), ([], (0,)), (1, ("a",))]]


def test_the_record_is_compact():
    """It is shown to people on every Job."""
    assert '{"added":["labels"]}' == Record(("labels",)).text()
    assert {"added": ["labels"]} == json.loads(Record(("labels",)).text())
