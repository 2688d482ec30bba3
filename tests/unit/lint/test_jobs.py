"""Which objects of manifests are Jobs with a reporter."""

import pytest

from reporter.lint.jobs import read_jobs
from tests.unit.lint.manifests import cron_job, env, ids, job, job_set, lint, pod, pod_of, spec

LABEL = "status-reporter.io/inject"


def bare(form="native"):
    """A Job without a reporter, with a label."""
    value = job()
    pod(initContainers=[])(value)
    value["metadata"]["labels"] = {LABEL: form}
    return value


@pytest.mark.parametrize(
    "value",
    [
        pytest.param({"kind": "Job", "apiVersion": "batch/v1"}, id="an empty Job"),
        pytest.param(job() | {"kind": "Pod"}, id="another kind"),
        pytest.param(job() | {"apiVersion": "batch.volcano.sh/v1alpha1"}, id="somebody else's Job"),
        pytest.param(job() | {"spec": "x"}, id="no spec"),
    ],
)
def test_not_ours(value):
    """Nothing to say."""
    assert [] == list(read_jobs(value, ()))


def test_without_a_reporter():
    """Not ours either."""
    value = job()
    pod_of(value)["initContainers"] = []

    assert [] == list(read_jobs(value, ()))


@pytest.mark.parametrize(
    ("metadata", "elsewhere", "title"),
    [
        ({"name": "a", "namespace": "b"}, "c", "Job b/a"),
        ({"name": "a"}, "c", "Job c/a"),
        ({"name": "a"}, "", "Job a"),
        ({"generateName": "a-"}, "", "Job a-*"),
    ],
)
def test_how_it_is_named(metadata, elsewhere, title):
    """With its namespace where there is one."""
    (found,) = read_jobs(job() | {"metadata": metadata}, (), elsewhere)

    assert title == found.title


def test_a_cron_job_of_the_older_version():
    """batch/v1beta1 is one too."""
    value = cron_job(job()) | {"apiVersion": "batch/v1beta1"}

    (found,) = read_jobs(value, ())

    assert "CronJob team/nightly" == found.title


def test_a_job_set():
    """Each part is a Job; one that is there once has a name that is known."""
    first, second = read_jobs(job_set(job(), None, 2), ("items", 3))

    assert ("JobSet team/nightly (part0)", "nightly-part0-0") == (first.title, first.name)
    assert ("JobSet team/nightly (part1)", "") == (second.title, second.name)
    spec_place = ("spec", "replicatedJobs", 1, "template", "spec")
    assert ("items", 3, *spec_place) == second.place
    assert second.reporters[0].place == (*second.pod_place, "initContainers", 0)


def test_what_is_wrong_in_a_job_set():
    """By the same rules, where it stands; the name of its Job is no other's."""
    value = job()
    env(JOB_NAME="nightly-part0-0")(value)

    assert [] == ids(lint(job_set(value, 1)))
    assert ["job-name"] == ids(lint(job_set(value, 2)))
    assert [] == list(read_jobs(job_set(value), ()))


@pytest.mark.parametrize("form", ["native", "classic"])
def test_a_job_that_was_not_injected(form):
    """It asks for a reporter and has none: that, at its label, and nothing else."""
    (found,) = lint(bare(form))

    assert ("not-injected", "error") == (found.rule.id, found.rule.severity)
    assert ("metadata", "labels", LABEL) == found.place
    assert "The label requests a reporter, but the Pod template has none." == found.what


def test_a_job_that_a_policy_injects_and_that_is_deleted_too_soon():
    """The label is enough to say so."""
    value = bare()
    spec(ttlSecondsAfterFinished=60)(value)

    assert ["not-injected", "ttl-too-short"] == ids(lint(value))


@pytest.mark.parametrize("wrap", [lambda made: made, cron_job, lambda made: job_set(made, 1)])
def test_a_label_on_the_pod_template(wrap):
    """Nothing reads it there."""
    made = bare()
    made["spec"]["template"]["metadata"] = {"labels": made["metadata"].pop("labels")}
    whole = wrap(made)
    whole.get("metadata", {}).pop("labels", None)

    (found,) = lint(whole)

    assert "not-injected" == found.rule.id
    assert ("template", "metadata", "labels", LABEL) == found.place[-4:]
    assert "The label is on the Pod template, where it has no effect." == found.what


@pytest.mark.parametrize("form", ["nativ", "", 5])
def test_a_form_that_does_not_exist(form):
    """A misspelt label is a wish too."""
    assert ["not-injected"] == ids(lint(bare(form)))


def test_a_label_of_what_makes_jobs():
    """Of a CronJob or its template, of a JobSet: wherever `status-ctl inject` reads it."""
    inside = cron_job(bare())
    inside["metadata"].pop("labels")
    inside["spec"]["jobTemplate"]["metadata"] = {"labels": {LABEL: "native"}}
    place = ("spec", "jobTemplate", "metadata", "labels", LABEL)
    (read,) = read_jobs(inside, ("items", 2))

    assert [place] == [each.place for each in lint(inside)]
    assert ("items", 2, *place) == read.asked
    for outside in (cron_job(bare()), job_set(bare(), 1)):
        assert [("metadata", "labels", LABEL)] == [each.place for each in lint(outside)]


def test_a_template_that_wants_none():
    """Its label counts before that of the CronJob."""
    value = cron_job(bare())
    value["spec"]["jobTemplate"]["metadata"] = {"labels": {LABEL: "disabled"}}

    assert [] == list(read_jobs(value, ()))


def test_a_label_that_asks_for_none():
    """Nothing is missing."""
    assert [] == list(read_jobs(bare("disabled"), ()))


def test_a_label_and_a_reporter():
    """As `status-ctl inject` leaves it; a patch with the label alone is no Job yet."""
    injected, patch = job(), bare()
    injected["metadata"]["labels"] = {LABEL: "native"}
    pod(restartPolicy=None)(patch)

    assert [] == lint(injected) == lint(patch)
