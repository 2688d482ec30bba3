"""Write what in deploy/ follows from other files there; --check compares.

deploy/plain is for people without kustomize, the components' patches of CronJobs are those of Jobs.

Run by `make fmt` and checked by `make lint`. sed fills in the parts in `<...>`.
"""

import sys
from typing import Any

import yaml
from generated import DEPLOY, keep, read

from reporter.sidecar.settings import Settings

NAMESPACE, IMAGE = "<namespace>", "<status-reporter-image>"
FROM = "# Generated from {} by `make fmt`: do not edit.\n"
RBAC = """#   sed 's/<namespace>/your-namespace/g' rbac.yaml | kubectl apply -f -
# An administrator of the namespace (ClusterRole admin) may do so after a cluster administrator has
# applied deploy/base/clusterrole.yaml.
"""
JOB = """#   sed -e 's|<namespace>|your-namespace|g' \\
#       -e 's|<status-reporter-image>|registry.example.org/team/status-reporter:0.1.0|g' \\
#       {} | kubectl apply -f -
"""
SOURCES = "deploy/examples/{0} and deploy/components/{0}"
FORMS = {"native": "initContainers", "classic": "containers"}
NATIVE = "# A native sidecar: needs Kubernetes 1.29 or newer. Before that use job-classic.yaml.\n"
CLASSIC = """# A second container, also for Kubernetes before 1.29. The settings of the link to an
# aggregator are not shown.
"""
MORE = "<settings>"
UNSAID = ("auto-detected", "all interfaces", "progress.json next to RESULTS_PATH")
"""Defaults that are no value; an empty one stands for them."""


class Dumper(yaml.SafeDumper):
    """Writes text of several lines as a block, as a person would."""


def _block(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, "|" if "\n" in value else None)


Dumper.add_representer(str, _block)


def load(path: str) -> dict[str, Any]:
    """Return the one object of a file below deploy/."""
    loaded: dict[str, Any] = yaml.safe_load(read(DEPLOY / path))
    return loaded


def placed(found: dict[str, Any]) -> dict[str, Any]:
    """Return the object with the namespace to be replaced in it."""
    name = found["metadata"]["name"]
    rest = {key: value for key, value in found["metadata"].items() if key != "name"}
    found["metadata"] = {"name": name, "namespace": NAMESPACE} | rest
    for subject in found.get("subjects", []):
        subject["namespace"] = NAMESPACE
    return found


def job(form: str) -> dict[str, Any]:
    """Return the example Job with what a component adds to it."""
    found, added = load(f"examples/{form}/job.yaml"), load(f"components/{form}/job.yaml")
    del found["metadata"]["labels"]
    pod, reporter = found["spec"]["template"]["spec"], added["spec"]["template"]["spec"]
    for key, listed in reporter.items():
        pod[key] = listed + pod.get(key, [])
    reporter[FORMS[form]][0]["image"] = IMAGE
    return placed(found)


def classic() -> str:
    """Return the Job with two containers, and as comments what else can be set."""
    made = job("classic")
    env = made["spec"]["template"]["spec"]["containers"][0]["env"]
    names = {each["name"] for each in env}
    env.append({"name": MORE})
    lines = ["# Optional, with the defaults; docs/settings.md has the rules:"]
    for name, default, _, meaning in Settings.described():
        if name not in names:
            value = "" if default in UNSAID else default
            said = f"{meaning} ({default})" if default in UNSAID else meaning
            lines += [f"# - name: {name}  # {said}", f'#   value: "{value}"']
    settings = "".join(f"        {line}\n" for line in lines)
    return text(made).replace(f"        - name: {MORE}\n", settings)


def text(*objects: dict[str, Any]) -> str:
    """Return the objects as YAML, in the order in which their keys were read."""
    return "---\n".join(
        yaml.dump(one, Dumper=Dumper, sort_keys=False, width=100) for one in objects
    )


def cronjob(form: str) -> str:
    """Return the component's patch of a Job, for the Jobs of a CronJob."""
    path = DEPLOY / "components" / form / "job.yaml"
    patch = load(f"components/{form}/job.yaml")
    head, _, spec = read(path).partition("\nspec:\n")
    assert patch["metadata"] == {"name": "any"}, "nothing else is known here"
    label = f"        status-reporter.io/inject: {form}\n"
    lines = [f"    {line}".rstrip() for line in f"spec:\n{spec}".splitlines()]
    inner = f"  jobTemplate:\n    metadata:\n      labels:\n{label}" + "\n".join(lines) + "\n"
    made = FROM.format(f"deploy/components/{form}/job.yaml") + head.replace(
        "kind: Job", "kind: CronJob"
    )
    return f"{made}\nspec:\n{inner}"


def manifests() -> dict[str, str]:
    """Return the text of each file that is written, by its path below deploy/."""
    rbac = (placed(load(f"base/{name}.yaml")) for name in ("serviceaccount", "role", "rolebinding"))
    return {
        **{f"components/{form}/cronjob.yaml": cronjob(form) for form in ("native", "classic")},
        "plain/rbac.yaml": FROM.format("deploy/base") + RBAC + text(*rbac),
        "plain/job.yaml": FROM.format(SOURCES.format("native"))
        + JOB.format("job.yaml")
        + NATIVE
        + text(job("native")),
        "plain/job-classic.yaml": FROM.format(SOURCES.format("classic"))
        + JOB.format("job-classic.yaml")
        + CLASSIC
        + classic(),
    }


def main() -> int:
    """Write or check; 1 if a file is not as it should be."""
    return keep({DEPLOY / name: wanted for name, wanted in manifests().items()}, "deploy/")


if __name__ == "__main__":
    sys.exit(main())
