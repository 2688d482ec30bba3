"""The Pods that a run will have, before it exists: one of each template, to be tried."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from reporter.common.objects import items, section, text
from reporter.launch.job import job
from reporter.run.options import RunOptions
from reporter.run.spec import RunLocation
from reporter.runctl.preflight import Template


def templates(chosen: RunOptions, made: Sequence[Mapping[str, Any]]) -> list[Template]:
    """Return a Pod of the aggregator, and one of each plugin with what will make it."""
    return [*_aggregators(made), *_plugins(chosen)]


def _aggregators(made: Sequence[Mapping[str, Any]]) -> Iterator[Template]:
    for each in made:
        if text(each, "kind") not in {"StatefulSet", "Job"}:
            continue
        pod = section(each, "spec", "template")
        spec = section(pod, "spec")
        claims = [
            {"name": text(section(claim, "metadata"), "name"), "emptyDir": {}}
            for claim in items(section(each, "spec"), "volumeClaimTemplates")
        ]
        volumes = [*items(spec, "volumes"), *claims]
        yield Template("the aggregator", {**pod, "spec": {**spec, "volumes": volumes}})


def _plugins(chosen: RunOptions) -> Iterator[Template]:
    place = RunLocation(
        chosen.run,
        chosen.namespace,
        None,
        f"https://{chosen.run}.{chosen.namespace}.svc:8080",
    )
    for at, plugin in enumerate(chosen.plan.plugins):
        made = job(
            place,
            chosen.launch,
            plugin,
            plugin.keys[0],
            index=at,
            timeout=chosen.plan.timeout_of(plugin.name),
        )
        yield Template(f"plugin {plugin.name}", section(made, "spec", "template"), made)
