"""Jobs and CronJobs as the tests of this folder need them, and what is said and made of them."""

from reporter.inject.container import Wishes
from reporter.inject.jobs import get, jobs, put
from reporter.inject.transform import decide, without_reporter

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


def one(value):
    (found,) = jobs(value)
    return found


def decision(value, wishes=WISHES):
    found = one(value)
    return decide(get(value, found.job), found, wishes)


def said(value, wishes=WISHES):
    return decision(value, wishes).said


def made(value, wishes=WISHES):
    """Return the object with a reporter in its Job."""
    return put(value, one(value).job, decision(value, wishes).job)


def without(value):
    place = one(value).job
    return put(value, place, without_reporter(get(value, place)))


def changes(value, wishes=WISHES):
    return made(value, wishes) != value


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
