"""Reading the API's Pod: which container is the adapter, and in which form the reporter runs."""

import pytest

from reporter.verdict.facts import Form
from reporter.verdict.pod import PROXIES, Names, find_adapter, find_form, read_pod
from tests.unit.verdict.api_pods import (
    NAMES,
    NATIVE_US,
    OTHER,
    READ_ONLY,
    RESULTS,
    US,
    container,
    default,
    pod_with,
)

FOUND = {
    "the only one that is not ours": (pod_with(US, container("a")), NAMES, "a"),
    "native: the only regular one": (pod_with(container("a"), init=[NATIVE_US]), NAMES, "a"),
    "the setting": (
        pod_with(US, container("a"), container("b"), annotations=default("a")),
        Names(adapter="b"),
        "b",
    ),
    "the annotation": (
        pod_with(US, container("a", RESULTS), container("b"), annotations=default("b")),
        NAMES,
        "b",
    ),
    "an annotation that names us is passed over": (
        pod_with(US, container("a"), annotations=default("status-reporter")),
        NAMES,
        "a",
    ),
    "an annotation that names nobody is passed over": (
        pod_with(US, container("a"), annotations=default("gone")),
        NAMES,
        "a",
    ),
    "an annotation that names an init container is passed over": (
        pod_with(US, container("a"), init=[container("i")], annotations=default("i")),
        NAMES,
        "a",
    ),
    "the only one that can write the results": (
        pod_with(US, container("a", OTHER), container("b", RESULTS), container("c", READ_ONLY)),
        NAMES,
        "b",
    ),
    "a mesh proxy first in the list": (
        pod_with(container("istio-proxy", RESULTS), US, container("b", RESULTS)),
        NAMES,
        "b",
    ),
    "native: our mount says which volume it is": (
        pod_with(
            container("a", OTHER),
            container("b", {"name": "results", "mountPath": "/out"}),
            init=[NATIVE_US],
        ),
        NAMES,
        "b",
    ),
    "the longest mount path leads to the file": (
        pod_with(
            container(
                "status-reporter",
                {"name": "root", "mountPath": "/"},
                {"name": "results", "mountPath": "/results/"},
                {"name": "near", "mountPath": "/result"},
            ),
            container("a", {"name": "root", "mountPath": "/"}),
            container("b", RESULTS),
        ),
        NAMES,
        "b",
    ),
    "our own name is not in the Pod: the writer is found by the others' mounts": (
        pod_with(container("reporter", READ_ONLY), container("b", RESULTS)),
        NAMES,
        "b",
    ),
}


@pytest.mark.parametrize(("pod", "names", "expected"), FOUND.values(), ids=FOUND.keys())
def test_the_adapter_is_found_without_a_remark(pod, names, expected):
    """By the setting, the annotation, being alone, or being the only writer."""
    assert (expected, "", ()) == find_adapter(pod, names)


@pytest.mark.parametrize("proxy", sorted(PROXIES))
def test_known_proxies_are_no_adapters(proxy):
    """Whatever an injected proxy mounts."""
    pod = pod_with(container(proxy, RESULTS), US, container("b", RESULTS))

    assert ("b", "", ()) == find_adapter(pod, NAMES)


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(pod_with(US, container("a"), container("b")), id="no writer"),
        pytest.param(
            pod_with(US, container("a", RESULTS), container("b", RESULTS)), id="two writers"
        ),
        pytest.param(
            pod_with(container("status-reporter"), container("a", OTHER), container("b", RESULTS)),
            id="we do not mount the results",
        ),
    ],
)
def test_where_nothing_tells_the_first_is_taken_with_a_remark(pod):
    """As the older product does, but loudly."""
    assert ("a", "", ("adapter container guessed: 'a' is the first of a, b",)) == find_adapter(
        pod, NAMES
    )


MISFITS = {
    "no such container": (
        pod_with(US, container("a"), init=[container("i")]),
        Names(adapter="b"),
        "'b' is not a container of the Pod; containers: status-reporter, a; init containers: i",
    ),
    "an init container named as adapter": (
        pod_with(container("a"), init=[NATIVE_US, container("i")]),
        Names(adapter="i"),
        "'i' is an init container of the Pod; containers: a; init containers: status-reporter, i",
    ),
    "the reporter named as adapter": (
        pod_with(US, container("a")),
        Names(adapter="status-reporter"),
        "'status-reporter' is the reporter itself;"
        " containers: status-reporter, a; init containers: none",
    ),
    "nobody besides us": (
        pod_with(US),
        NAMES,
        "the Pod has no container besides 'status-reporter'",
    ),
    "nobody at all": ({}, NAMES, "the Pod has no container besides 'status-reporter'"),
    "our own name is not in the Pod, and nothing tells": (
        pod_with(container("reporter"), container("a")),
        NAMES,
        "'status-reporter' is not a container of the Pod;"
        " containers: reporter, a; init containers: none",
    ),
    "a container without a name": (
        pod_with(US, {"image": "x"}),
        NAMES,
        "the Pod has no container besides 'status-reporter'",
    ),
    "no containers where one is named": (
        {},
        Names(adapter="a"),
        "'a' is not a container of the Pod; containers: none; init containers: none",
    ),
}


@pytest.mark.parametrize(("pod", "names", "expected"), MISFITS.values(), ids=MISFITS.keys())
def test_settings_that_do_not_fit_name_the_containers_that_exist(pod, names, expected):
    """No adapter, and the reason for row M."""
    assert ("", expected, ()) == find_adapter(pod, names)
    assert (None, expected) == (read_pod(pod, names).adapter, read_pod(pod, names).misfit)


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param(pod_with(US, container("a")), Form.CLASSIC, id="regular container"),
        pytest.param(pod_with(container("a"), init=[NATIVE_US]), Form.NATIVE, id="init container"),
        pytest.param(pod_with(container("a")), None, id="not in the Pod"),
    ],
)
def test_the_form_is_where_our_container_stands(pod, expected):
    """By our own name in the Pod's spec."""
    assert expected is find_form(pod["spec"], "status-reporter")
    assert expected is read_pod(pod, NAMES).form


def test_the_form_that_was_set_is_kept():
    """REPORTER_FORM needs no right to read Pods, and no search."""
    pod = pod_with(container("a"), init=[NATIVE_US])

    assert Form.CLASSIC is read_pod(pod, Names(form=Form.CLASSIC)).form
