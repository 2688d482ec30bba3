"""What the RBAC objects of the files, or the cluster, say of the reporter's account."""

import pytest

from reporter.inject.rights import EVENTS, NEEDED, WATCH
from reporter.lint.rights import Account
from tests.unit.lint.manifests import all_of, cron_job, env, ids, job, lint, pod

REPORTER = [
    {"apiGroups": ["batch"], "resources": ["jobs/status"], "verbs": ["get", "patch"]},
    {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "watch"]},
    {"apiGroups": ["events.k8s.io"], "resources": ["events"], "verbs": ["create"]},
]
GO = [
    {"apiGroups": ["batch"], "resources": ["jobs/status"], "verbs": ["get", "update", "patch"]},
    {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]},
]
ACCOUNT = {"kind": "ServiceAccount", "name": "checks", "namespace": "team"}


def role(rules, kind="Role", name="reporter", namespace="team", **more):
    return {"kind": kind, "metadata": {"name": name, "namespace": namespace}, "rules": rules} | more


def binding(*subjects, to="reporter", kind="Role", namespace="team"):
    return {
        "kind": "RoleBinding",
        "metadata": {"name": "b", "namespace": namespace},
        "roleRef": {"kind": kind, "name": to},
        "subjects": list(subjects),
    }


def cluster_binding(*subjects, to="reporter"):
    return {**binding(*subjects, to=to, kind="ClusterRole"), "kind": "ClusterRoleBinding"}


LACKING = ["missing-rights", "missing-optional-rights"]


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        pytest.param([], [], id="no RBAC in the files"),
        pytest.param([role(REPORTER), binding(ACCOUNT)], [], id="our Role"),
        pytest.param([role(GO), binding(ACCOUNT)], LACKING[1:], id="the Go reporter's Role"),
        pytest.param([role(REPORTER[:1]), binding(ACCOUNT)], LACKING, id="no Pods"),
        pytest.param([role([]), binding(ACCOUNT)], LACKING, id="a Role that allows nothing"),
        pytest.param([role(None), binding(ACCOUNT)], LACKING, id="a Role without rules"),
        pytest.param(
            [role(REPORTER), binding(ACCOUNT | {"name": "default"})], LACKING, id="another's"
        ),
        pytest.param(
            [role([]), binding(ACCOUNT | {"name": "app"})], [], id="another's that is not ours"
        ),
        pytest.param([binding(ACCOUNT, to="elsewhere")], [], id="a Role that is not in the files"),
        pytest.param(
            [binding(ACCOUNT | {"name": "app"}, to="elsewhere")], [], id="nobody knows of whom"
        ),
        pytest.param(
            [role([], kind="ClusterRole", aggregationRule={}), cluster_binding(ACCOUNT)],
            [],
            id="an aggregated role",
        ),
        pytest.param(
            [role(REPORTER, kind="ClusterRole", namespace=""), cluster_binding(ACCOUNT)],
            [],
            id="a ClusterRole for the whole cluster",
        ),
        pytest.param(
            [
                role(REPORTER, kind="ClusterRole", namespace=""),
                binding(ACCOUNT, kind="ClusterRole"),
            ],
            [],
            id="a ClusterRole in the namespace",
        ),
        pytest.param(
            [role(REPORTER, namespace="far"), binding(ACCOUNT, namespace="far")],
            [],
            id="another namespace's",
        ),
        pytest.param(
            [role(REPORTER, namespace=""), binding(ACCOUNT | {"namespace": ""}, namespace="")],
            [],
            id="namespaces that kustomize adds",
        ),
        pytest.param(
            [role(REPORTER), binding({"kind": "Group", "name": "system:serviceaccounts:team"})],
            [],
            id="all accounts of the namespace",
        ),
        pytest.param(
            [
                role(REPORTER),
                binding({"kind": "User", "name": "system:serviceaccount:team:checks"}),
            ],
            [],
            id="the account as a user",
        ),
        pytest.param(
            [role(REPORTER), binding({"kind": "User", "name": "jane"}, ACCOUNT)],
            [],
            id="several subjects",
        ),
        pytest.param(
            [role([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]), binding(ACCOUNT)],
            [],
            id="everything",
        ),
        pytest.param(
            [
                role(
                    [
                        {"apiGroups": ["batch"], "resources": ["*/status"], "verbs": ["*"]},
                        *REPORTER[1:],
                    ]
                ),
                binding(ACCOUNT),
            ],
            [],
            id="any status",
        ),
        pytest.param(
            [role([REPORTER[0] | {"resourceNames": ["nightly"]}, *REPORTER[1:]]), binding(ACCOUNT)],
            [],
            id="this Job",
        ),
        pytest.param(
            [role([REPORTER[0] | {"resourceNames": ["hourly"]}, *REPORTER[1:]]), binding(ACCOUNT)],
            LACKING[:1],
            id="another Job",
        ),
        pytest.param(
            [
                role([REPORTER[0], REPORTER[1] | {"resourceNames": ["nightly"]}, REPORTER[2]]),
                binding(ACCOUNT),
            ],
            LACKING,
            id="Pods by a name that they do not have",
        ),
        pytest.param(
            [role(REPORTER), role([], name="other"), binding(ACCOUNT, to="other")],
            LACKING,
            id="the wrong Role",
        ),
    ],
)
def test_by_the_files(objects, expected):
    """A right is missed only where the files say so."""
    assert expected == ids(lint(job(), *objects))


def test_the_namespace_that_is_given_for_the_files():
    """For a Job that names none."""
    value = job()
    del value["metadata"]["namespace"]
    far = [
        role(REPORTER, namespace="far"),
        binding(ACCOUNT | {"namespace": "far"}, namespace="far"),
    ]
    near = [role([]), binding(ACCOUNT)]

    assert [] == ids(lint(value, *far, *near, elsewhere="far"))
    assert LACKING == ids(lint(value, *far, *near, elsewhere="team"))


def test_a_named_job_of_a_cron_job_is_none():
    """Its Jobs have other names."""
    rules = [REPORTER[0] | {"resourceNames": ["nightly"]}, *REPORTER[1:]]

    assert LACKING[:1] == ids(lint(cron_job(job()), role(rules), binding(ACCOUNT)))


def test_no_event_is_wanted():
    """With REPORT_EVENTS=false nothing is created."""
    value = job()
    all_of(env(REPORT_EVENTS="false"))(value)

    assert [] == ids(lint(value, role(REPORTER[:2]), binding(ACCOUNT)))


def test_the_message_names_what_lacks():
    """As people ask for it, and the account it is about."""
    (found,) = lint(job(), role(REPORTER[1:]), binding(ACCOUNT))

    assert (
        "By the RBAC rules of the files, the service account 'checks' has no permission to get "
        "jobs.batch/status, patch jobs.batch/status."
    ) == found.what
    assert "serviceAccountName" == found.place[-1]


@pytest.mark.parametrize(
    ("denied", "objects", "expected"),
    [
        ((), [], []),
        (NEEDED, [], LACKING[:1]),
        ((WATCH, EVENTS), [], LACKING[1:]),
        (NEEDED, [role(REPORTER), binding(ACCOUNT)], []),
        (NEEDED, [binding(ACCOUNT, to="elsewhere")], LACKING[:1]),
        (NEEDED, [role(REPORTER), binding(ACCOUNT | {"name": "app"})], LACKING[:1]),
    ],
)
def test_by_the_cluster(denied, objects, expected):
    """What the files will grant does not lack."""
    answers = {(Account("team", "checks"), "nightly"): frozenset(denied)}

    assert expected == ids(lint(job(), *objects, denied=answers))


def test_the_default_account():
    """That of Pods which name none."""
    value = job()
    pod(serviceAccountName=None)(value)

    assert LACKING == ids(lint(value, role([]), binding(ACCOUNT | {"name": "default"})))


BEFORE = {"annotations": {"helm.sh/hook": "pre-install", "helm.sh/hook-weight": "-1"}}
OWN = {"kind": "ServiceAccount", "metadata": {"name": "checks", "namespace": "team"}}


def hooked(value):
    return value | {"metadata": value["metadata"] | BEFORE}


@pytest.mark.parametrize(
    ("objects", "late"),
    [
        pytest.param([], "", id="nothing in the files"),
        pytest.param(
            [OWN, role(REPORTER), binding(ACCOUNT)],
            "ServiceAccount checks, RoleBinding b, Role reporter",
            id="all of the release",
        ),
        pytest.param(
            [*map(hooked, (OWN, role(REPORTER), binding(ACCOUNT)))], "", id="all of them hooks"
        ),
        pytest.param(
            [hooked(OWN), role(REPORTER), hooked(binding(ACCOUNT))], "Role reporter", id="the Role"
        ),
        pytest.param(
            [role(REPORTER), binding(ACCOUNT), *map(hooked, (role(REPORTER), binding(ACCOUNT)))],
            "",
            id="one of two bindings",
        ),
        pytest.param(
            [role(REPORTER), binding(ACCOUNT), binding(ACCOUNT, to="elsewhere")],
            "",
            id="nobody knows of what a third gives",
        ),
    ],
)
def test_rights_that_helm_creates_after_a_hook(objects, late):
    """They would come when the hook has ended, and it does not end without them."""
    value = job()
    value["metadata"]["annotations"] = {"helm.sh/hook": "pre-install"}
    found = [each for each in lint(value, *objects) if each.rule.id == "rights-after-hook"]

    assert [late] * bool(late) == [each.what.split("creates ")[1].rstrip(".") for each in found]
    assert [] == [each for each in lint(job(), *objects) if each.rule.id == "rights-after-hook"]
