"""The rules of a run's Roles: what its aggregator may do, and what our containers may do."""

from typing import Any

from reporter.common.objects import section
from reporter.launch.job import secret_names
from reporter.run import names
from reporter.run.options import RunOptions
from reporter.run.plan import Key


def aggregator_rules(options: RunOptions) -> list[dict[str, Any]]:
    """Return what the aggregator may do: what its launcher asks for and nothing more."""
    run = options.run
    secrets = sorted(secret_names(options.plan))
    return [
        _rule("batch", "jobs", "create", "delete", "get", "list", "watch"),
        _rule("", "pods", "list", "watch"),
        _rule("", "pods/log", "get"),
        _rule("", "events", "list", "watch"),
        _rule("", "configmaps", "get", only=[run]),
        _rule("", "secrets", "create"),
        _rule("", "secrets", "delete", "get", only=secrets),
        # The run's status on its own Pod. A Job's Pod has no name that is known before.
        _rule("", "pods", "patch", only=None if options.exit else [f"{run}-0"]),
    ]


def plugin_rules(options: RunOptions) -> list[dict[str, Any]]:
    """Return what our containers beside the plugins may do with the account that is theirs."""
    rules = [_rule("", "pods", "get", "watch")]
    jobs = [names.entry_name(options.run, key) for key in _watched_over(options)]
    if jobs:
        verbs = ["get", "patch"] if options.launch.write_conditions else ["get"]
        rules.append(_rule("batch", "jobs/status", *verbs, only=jobs))
    return rules


def _watched_over(options: RunOptions) -> list[Key]:
    """List the entries with our sidecar under the plugins' account."""
    found: list[Key] = []
    for plugin in options.plan.plugins:
        definition = options.launch.definition(plugin.name)
        spec = section(definition.template, "spec")
        named = spec.get("serviceAccountName") or spec.get("serviceAccount")
        if definition.contract == "result-file" and not named:
            found += plugin.keys
    return found


def _rule(group: str, resource: str, *verbs: str, only: list[str] | None = None) -> dict[str, Any]:
    rule: dict[str, Any] = {
        "apiGroups": [group],
        "resources": [resource],
        "verbs": list(verbs),
    }
    if only is not None:
        rule["resourceNames"] = only
    return rule
