"""Each rule of `status-ctl lint`: the mistake that it is about, and what is no mistake."""

import pytest

from reporter.lint.rules import RULES
from tests.unit.lint.manifests import (
    all_of,
    container,
    cron_job,
    env,
    field,
    ids,
    job,
    lint,
    own,
    pod,
    pod_of,
    reporter,
    spec,
)

OTHER = {"name": "other", "volumeMounts": [{"name": "results", "mountPath": "/results"}]}
ALL_RIGHTS = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}
SECRET = {"valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}


def second(**variables):
    """Add a reporter after the adapter's container."""

    def change(value):
        added = reporter("classic", name="second")
        added["env"] += [{"name": "REPORTER_CONTAINER_NAME", "value": "second"}]
        added["env"] += [{"name": name, "value": given} for name, given in variables.items()]
        pod_of(value)["containers"].insert(0, added)

    return change


def classic_after_the_adapter(value):
    pod_of(value)["containers"].reverse()


def unmounted(value):
    pod_of(value)["containers"][0]["volumeMounts"] = []


def read_only(value):
    pod_of(value)["containers"][0]["volumeMounts"][0]["readOnly"] = True


def adapter_mounts(**mount):
    """Change the adapter's mount of the results."""
    return lambda value: pod_of(value)["containers"][0]["volumeMounts"][0].update(mount)


def reporter_mounts(**mount):
    return lambda value: own(value)["volumeMounts"][0].update(mount)


def results_volume(**source):
    return pod(volumes=[{"name": "results", **source}])


METRICS = {"name": "metrics", "containerPort": 9999}
EQUAL = {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "1000m", "memory": "1024Mi"}}


def whole_adapter(**resources):
    """Give the adapter these resources."""
    return lambda value: pod_of(value)["containers"][0].update(resources=resources)


@pytest.mark.parametrize("form", ["native", "classic"])
@pytest.mark.parametrize("kind", ["Job", "CronJob"])
def test_nothing_is_wrong_with_what_we_ship(form, kind):
    """Neither form, neither kind."""
    value = job(form)

    assert [] == lint(cron_job(value) if kind == "CronJob" else value)


MISTAKES = [
    # settings
    ("settings", env(JOB_NAME=None), "Pod"),
    ("settings", env(CONDITION_TYPE="Failed"), "env"),
    ("settings", env(MAX_WAIT_TIME_SECONDS="5m"), "env"),
    ("settings", env(MAX_WAIT_TIME_SECONDS=120), "value"),
    ("settings-ignored", env(LOG_LEVEL="loud"), "env"),
    ("settings-ignored", env(POLL_INTERVAL_SECONDS="300"), "env"),
    ("unknown-setting", env(REPORT_EVENT="false"), "env"),
    ("unknown-setting", env(RESULT_PATH=field("metadata.name")), "env"),
    # names
    ("job-name", env(JOB_NAME="hourly"), "value"),
    ("job-name", env(JOB_NAME=field("metadata.name")), "fieldPath"),
    ("job-name", env(JOB_NAME=field("metadata.labels['app']")), "fieldPath"),
    ("job-name", env(JOB_NAMESPACE="other"), "value"),
    ("job-name", env(JOB_NAMESPACE=field("metadata.name")), "fieldPath"),
    ("job-name", env(POD_NAME="nightly-x"), "value"),
    ("job-name", env(POD_NAME=field("metadata.uid")), "fieldPath"),
    ("reporter-name", env(REPORTER_CONTAINER_NAME="us"), "env"),
    ("reporter-name", container(name="us"), "Pod"),
    ("adapter-not-found", env(ADAPTER_CONTAINER_NAME="work"), "env"),
    ("adapter-not-found", env(ADAPTER_CONTAINER_NAME="status-reporter"), "env"),
    ("adapter-not-found", pod(containers=[]), "Pod"),
    ("adapter-guessed", lambda value: pod_of(value)["containers"].append(OTHER), "Pod"),
    # form and order
    ("form", container(restartPolicy="Never"), "Pod"),
    ("form", env(REPORTER_FORM="classic"), "value"),
    (
        "native-not-first",
        lambda value: pod_of(value)["initContainers"].insert(0, {"name": "setup"}),
        "Pod",
    ),
    # times
    ("wait-beyond-deadline", spec(activeDeadlineSeconds=300), "activeDeadlineSeconds"),
    ("wait-beyond-deadline", pod(activeDeadlineSeconds=5), "activeDeadlineSeconds"),
    ("wait-beyond-deadline", env(MAX_WAIT_TIME_SECONDS="3600"), "activeDeadlineSeconds"),
    ("wait-near-deadline", spec(activeDeadlineSeconds=309), "activeDeadlineSeconds"),
    ("no-deadline", spec(activeDeadlineSeconds=None), "activeDeadlineSeconds"),
    ("grace-too-short", pod(terminationGracePeriodSeconds=4), "terminationGracePeriodSeconds"),
    ("ttl-too-short", spec(ttlSecondsAfterFinished=0), "ttlSecondsAfterFinished"),
    ("ttl-too-short", spec(ttlSecondsAfterFinished=120), "ttlSecondsAfterFinished"),
    ("repeated", spec(backoffLimit=None), "backoffLimit"),
    ("repeated", spec(backoffLimit=1), "backoffLimit"),
    ("repeated", spec(backoffLimit=None, backoffLimitPerIndex=2), "backoffLimit"),
    ("repeated", all_of(spec(backoffLimit=4), pod(restartPolicy="OnFailure")), "restartPolicy"),
    # results
    ("results-not-shared", unmounted, "volumeMounts"),
    ("results-not-shared", read_only, "volumeMounts"),
    ("results-not-shared", env(RESULTS_PATH="/elsewhere/result.json"), "volumeMounts"),
    ("results-not-shared", adapter_mounts(subPath="one"), "volumeMounts"),
    ("results-not-shared", reporter_mounts(subPath="one"), "volumeMounts"),
    (
        "results-not-shared",
        all_of(reporter_mounts(subPath="one"), adapter_mounts(subPath="two", mountPath="/out")),
        "volumeMounts",
    ),
    (
        "results-not-emptydir",
        pod(volumes=[{"name": "results", "persistentVolumeClaim": {"claimName": "c"}}]),
        "volumes",
    ),
    ("results-not-emptydir", pod(volumes=["", {"name": "results", "emptyDir": 5}]), "volumes"),
    # the reporter's container, and the Pod
    ("liveness-probe", container(livenessProbe={}), "livenessProbe"),
    ("startup-probe", container(startupProbe={}), "startupProbe"),
    ("memory-limit", container(resources={"limits": {"memory": "32Mi"}}), "memory"),
    ("memory-limit", container(resources={"limits": {"memory": 33554432}}), "memory"),
    ("parallel", spec(parallelism=3), "parallelism"),
    ("completions", spec(completions=3), "completions"),
    ("completions", spec(completions=3, completionMode="NonIndexed"), "completions"),
    (
        "host-network",
        all_of(pod(hostNetwork=True), env(METRICS_PORT="9999"), container(ports=[METRICS])),
        "ports",
    ),
    ("host-network", pod(hostNetwork=True), "env"),
    ("not-guaranteed", whole_adapter(**EQUAL), "resources"),
    ("not-guaranteed", whole_adapter(limits={"cpu": 1, "memory": "1Gi"}), "resources"),
    ("token-shared", pod(automountServiceAccountToken=True), "automountServiceAccountToken"),
    ("token-shared", pod(automountServiceAccountToken=None), "automountServiceAccountToken"),
    (
        "token",
        lambda value: own(value)["volumeMounts"].pop(),
        "volumeMounts",
    ),
]


@pytest.mark.parametrize(("rule", "change", "where"), MISTAKES)
def test_a_mistake_is_found_where_it_is(rule, change, where):
    """By its rule and no other; the place ends where the mistake stands."""
    value = job()
    change(value)
    (found,) = lint(value)
    last = [str(step) for step in found.place if not isinstance(step, int)]

    assert rule == found.rule.id
    assert where == (last[-1] if last[-1] not in {"initContainers", "containers"} else "Pod")
    assert found.what.endswith(".")
    assert found.todo.endswith((".", ")"))


def test_classic_behind_the_adapter():
    """Only this form has to be first."""
    value = job("classic")
    classic_after_the_adapter(value)

    assert ["classic-not-first"] == ids(lint(value))


def test_how_often_a_failed_check_is_repeated():
    """As Kubernetes' own examples have it: six restarts, unless the Job says another number."""
    said = {}
    for policy, limit in (("OnFailure", None), ("OnFailure", 1), ("Never", 3)):
        value = job()
        all_of(spec(backoffLimit=limit), pod(restartPolicy=policy))(value)
        (said[policy, limit],) = [(each.what, each.todo) for each in lint(cron_job(value))]

    repeated = "A check that exits with an error is repeated"
    changes = "and its verdict may change until then."
    keep = "backoffLimit: 0, or keep it if repeating is intended (--ignore repeated)."
    assert said == {
        ("OnFailure", None): (
            f"{repeated} up to 6 times, with growing pauses, {changes}",
            f"Set restartPolicy: Never and {keep}",
        ),
        ("OnFailure", 1): (
            f"{repeated} once, {changes}",
            f"Set restartPolicy: Never and {keep}",
        ),
        ("Never", 3): (
            f"{repeated} up to 3 times, with growing pauses, {changes}",
            f"Set {keep}",
        ),
    }


def test_two_classic_reporters():
    """Both are before the adapter, and that is enough."""
    value = job("classic")
    all_of(
        second(CONDITION_TYPE="Other", ADAPTER_CONTAINER_NAME="adapter"),
        env(ADAPTER_CONTAINER_NAME="adapter"),
    )(value)

    assert [] == ids(lint(value))


def test_two_reporters_of_one_condition():
    """Each is told; another type is fine, also one that cannot be seen."""
    for variables, expected in (
        ({}, ["same-condition"] * 2),
        ({"CONDITION_TYPE": "Other"}, []),
        ({"CONDITION_TYPE": "$(TYPE)"}, []),
    ):
        value = job()
        all_of(second(**variables), env(ADAPTER_CONTAINER_NAME="adapter"))(value)
        own_second = pod_of(value)["containers"][0]["env"]
        own_second.append({"name": "ADAPTER_CONTAINER_NAME", "value": "adapter"})

        assert expected == ids(lint(value)), variables


def test_one_condition_in_two_spellings():
    """The annotation of both has one name."""
    value = job()
    all_of(
        second(CONDITION_TYPE="team.io", ADAPTER_CONTAINER_NAME="adapter"),
        env(CONDITION_TYPE="team/io", ADAPTER_CONTAINER_NAME="adapter"),
    )(value)

    assert ["same-condition"] * 2 == ids(lint(value))


def test_what_is_wrong_with_the_pod_is_told_once():
    """Two reporters, one Pod."""
    value = job()
    all_of(
        second(CONDITION_TYPE="Other", ADAPTER_CONTAINER_NAME="adapter"),
        env(ADAPTER_CONTAINER_NAME="adapter"),
        spec(parallelism=2),
    )(value)

    assert ["parallel"] == ids(lint(value))


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(env(JOB_NAME=SECRET, JOB_NAMESPACE=SECRET, POD_NAME=SECRET), id="names"),
        pytest.param(env(MAX_WAIT_TIME_SECONDS=SECRET), id="wait time"),
        pytest.param(
            all_of(spec(activeDeadlineSeconds=60), env(MAX_WAIT_TIME_SECONDS=SECRET)), id="deadline"
        ),
        pytest.param(all_of(env(RESULTS_PATH=SECRET), unmounted), id="results"),
        pytest.param(
            all_of(
                env(JOB_NAME=None, RESULTS_PATH=None), container(envFrom=[{"configMapRef": {}}])
            ),
            id="all of it",
        ),
        pytest.param(env(ADAPTER_CONTAINER_NAME="$(ADAPTER)"), id="a reference"),
        pytest.param(env(REPORTER_CONTAINER_NAME=SECRET), id="own name"),
        pytest.param(env(REPORTER_FORM=SECRET), id="form"),
    ],
)
def test_what_the_manifest_does_not_show_is_not_judged(change):
    """Values from elsewhere may be right."""
    value = job()
    change(value)

    assert [] == lint(value)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(env(JOB_NAME="nightly", JOB_NAMESPACE="team"), id="the right names"),
        pytest.param(
            all_of(
                lambda value: value["spec"]["template"].update(
                    metadata={"labels": {"check": "nightly"}}
                ),
                env(JOB_NAME=field("metadata.labels['check']")),
            ),
            id="a label with the Job's name",
        ),
        pytest.param(
            env(JOB_NAME=field("metadata.labels['batch.kubernetes.io/job-name']")), id="new label"
        ),
        pytest.param(env(REPORTER_FORM=""), id="blank"),
        pytest.param(all_of(env(RESULT_REQUIRED="false"), unmounted), id="no result wanted"),
        pytest.param(spec(activeDeadlineSeconds=310), id="ten seconds longer"),
        pytest.param(pod(terminationGracePeriodSeconds=5), id="enough grace"),
        pytest.param(spec(ttlSecondsAfterFinished=121), id="enough time to read the condition"),
        pytest.param(
            all_of(env(REPORT_CONDITION="false"), spec(ttlSecondsAfterFinished=0)),
            id="no condition to read",
        ),
        pytest.param(pod(restartPolicy="OnFailure"), id="a restart that the Job stops"),
        pytest.param(
            spec(backoffLimit=9, backoffLimitPerIndex=0), id="indexes that are not repeated"
        ),
        pytest.param(
            spec(backoffLimit=3, podFailurePolicy={"rules": []}), id="failures that were chosen"
        ),
        pytest.param(container(resources={"limits": {"memory": "much"}}), id="no quantity"),
        pytest.param(container(resources={}), id="no limit"),
        pytest.param(pod(volumes=None), id="volumes that are not there"),
        pytest.param(
            all_of(reporter_mounts(subPath="one"), adapter_mounts(subPath="one/")), id="one part"
        ),
        pytest.param(
            all_of(reporter_mounts(subPath="one"), adapter_mounts(mountPath="/work")),
            id="a part of what the adapter has",
        ),
        pytest.param(
            all_of(
                env(RESULTS_PATH="/results/one/a.json"),
                adapter_mounts(subPath="one", mountPath="/out"),
            ),
            id="a part of what the reporter has",
        ),
        pytest.param(
            adapter_mounts(subPathExpr="$(POD_NAME)"), id="a part that only the Pod knows"
        ),
        pytest.param(results_volume(ephemeral={}), id="a volume of this Pod"),
        pytest.param(results_volume(emptyDir=None), id="an emptyDir without a value"),
        pytest.param(results_volume(), id="a volume without a source is an emptyDir"),
        pytest.param(spec(completions=3, completionMode="Indexed"), id="completions by index"),
        pytest.param(
            all_of(pod(hostNetwork=True), env(METRICS_PORT="0")), id="no metrics on the node"
        ),
        pytest.param(
            all_of(pod(hostNetwork=True), env(METRICS_PORT=SECRET)), id="a port from elsewhere"
        ),
        pytest.param(container(ports=[METRICS]), id="a port of the Pod"),
        pytest.param(
            all_of(whole_adapter(**EQUAL), container(resources=EQUAL)), id="a Guaranteed Pod"
        ),
        pytest.param(
            all_of(whole_adapter(**EQUAL), pod(resources={"limits": {"cpu": "2"}})),
            id="resources of the whole Pod",
        ),
        pytest.param(whole_adapter(limits=EQUAL["limits"], requests={"cpu": "1m"}), id="Burstable"),
        pytest.param(lambda value: pod_of(value)["initContainers"].append(5), id="no container"),
        pytest.param(lambda value: own(value)["env"].append("X=1"), id="no variable"),
        pytest.param(env(METRICS_PORT="tcp://10.0.0.1:9090"), id="a Service's variable"),
        pytest.param(pod(enableServiceLinks=True), id="such variables of every Service"),
    ],
)
def test_what_is_no_mistake(change):
    """Right, or for the API server to refuse."""
    value = job()
    change(value)

    assert [] == lint(value)


@pytest.mark.parametrize("form", ["native", "classic"])
@pytest.mark.parametrize("name", ["status-reporter", "verdict"])
def test_an_adapter_that_knows_its_job(form, name):
    """It may have all three variables; a container that says that it is a reporter is the one."""
    value = job(form)
    all_of(env(REPORTER_CONTAINER_NAME=name), container(name=name))(value)
    pod_of(value)["containers"][-1]["env"] = [
        {"name": "JOB_NAME", **field("metadata.labels['job-name']")},
        {"name": "JOB_NAMESPACE", **field("metadata.namespace")},
        {"name": "POD_NAME", **field("metadata.name")},
    ]

    assert [] == ids(lint(value))


def test_names_of_jobs_that_a_cron_job_makes():
    """They are generated: a fixed name is never right, nor is a label with it."""
    for name in ("nightly", field("metadata.labels['check']")):
        value = job()
        value["spec"]["template"]["metadata"] = {"labels": {"check": "nightly"}}
        env(JOB_NAME=name)(value)

        assert ["job-name"] == ids(lint(cron_job(value)))


def test_a_mistake_in_a_cron_job_is_found_below_its_template():
    """The place is the one in the CronJob."""
    value = job()
    spec(parallelism=2)(value)
    (found,) = lint(cron_job(value))

    assert ("spec", "jobTemplate", "spec", "parallelism") == found.place


def test_an_account_that_mounts_no_token():
    """The Pod has the last word."""
    value = job()
    own(value)["volumeMounts"].pop()
    pod(automountServiceAccountToken=None)(value)
    account = {
        "kind": "ServiceAccount",
        "metadata": {"name": "checks", "namespace": "team"},
        "automountServiceAccountToken": False,
    }

    assert ["token-shared"] == ids(lint(value))
    assert ["token"] == ids(lint(value, account))
    assert ["token-shared"] == ids(lint(value, account | {"metadata": {"name": "other"}}))


def test_an_account_by_the_older_name():
    """`serviceAccount` counts as long as `serviceAccountName` is not there."""
    value = job()
    pod(serviceAccountName=None, serviceAccount="checks")(value)
    role = {"kind": "Role", "metadata": {"name": "r"}, "rules": [ALL_RIGHTS]}
    binding = {
        "kind": "RoleBinding",
        "metadata": {"name": "b"},
        "roleRef": {"kind": "Role", "name": "r"},
        "subjects": [{"kind": "ServiceAccount", "name": "checks"}],
    }

    assert [] == ids(lint(value, role, binding))


def test_a_patch_is_not_judged_as_a_whole_job():
    """Without a restart policy it is a part of one; what stands there is judged."""
    value = job()
    value["spec"]["template"]["spec"] = {"initContainers": [{"name": "status-reporter"}]}

    assert [] == lint(value)

    own_container = pod_of(value)["initContainers"][0]
    own_container["livenessProbe"] = {}
    own_container["env"] = [{"name": "CONDITION_TYPE", "value": "Failed"}]

    assert ["settings", "liveness-probe"] == ids(lint(value))


def test_ids_are_published():
    """Each is there once, and says in a line what it is about."""
    assert len(RULES) == len({rule.id for rule in RULES})
    assert all(rule.summary and "|" not in rule.summary for rule in RULES)
