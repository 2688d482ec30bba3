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

ROOT = {"name": "root", "mountPath": "/"}
NEAR = {"name": "near", "mountPath": "/result"}
TWO = (container("a", OTHER), container("b", RESULTS))
DEEP = container("status-reporter", ROOT, RESULTS | {"mountPath": "/results/"}, NEAR)
FOUND = {
    "the only one that is not ours": ("a", pod_with(US, container("a"))),
    "native: the only regular one": ("a", pod_with(container("a"), init=[NATIVE_US])),
    "the setting": (
        "b",
        pod_with(US, container("a"), container("b"), annotations=default("a")),
        Names(adapter="b"),
    ),
    "the annotation": (
        "b",
        pod_with(US, container("a", RESULTS), container("b"), annotations=default("b")),
    ),
    "an annotation that names us is passed over": (
        "a",
        pod_with(US, container("a"), annotations=default("status-reporter")),
    ),
    "an annotation that names nobody is passed over": (
        "a",
        pod_with(US, container("a"), annotations=default("gone")),
    ),
    "an annotation that names an init container is passed over": (
        "a",
        pod_with(US, container("a"), init=[container("i")], annotations=default("i")),
    ),
    "the only one that can write the results": ("b", pod_with(US, *TWO, container("c", READ_ONLY))),
    "a mesh proxy first in the list": (
        "b",
        pod_with(container("istio-proxy", RESULTS), US, container("b", RESULTS)),
    ),
    "native: our mount says which volume it is": (
        "b",
        pod_with(TWO[0], container("b", RESULTS | {"mountPath": "/out"}), init=[NATIVE_US]),
    ),
    "the longest mount path leads to the file": (
        "b",
        pod_with(DEEP, container("a", ROOT), container("b", RESULTS)),
    ),
    "our own name is not in the Pod: the writer is found by the others' mounts": (
        "b",
        pod_with(container("reporter", READ_ONLY), container("b", RESULTS)),
    ),
}


@pytest.mark.parametrize("situation", FOUND)
def test_the_adapter_is_found_without_a_remark(situation):
    """By the setting, the annotation, being alone, or being the only writer."""
    expected, pod, *names = FOUND[situation]

    assert (expected, "", ()) == find_adapter(pod, *names or [NAMES])


@pytest.mark.parametrize("proxy", sorted(PROXIES))
def test_known_proxies_are_no_adapters(proxy):
    """Whatever an injected proxy mounts."""
    pod = pod_with(container(proxy, RESULTS), US, container("b", RESULTS))

    assert ("b", "", ()) == find_adapter(pod, NAMES)


@pytest.mark.parametrize(
    "pod",
    [
        pod_with(US, container("a"), container("b")),
        pod_with(US, container("a", RESULTS), container("b", RESULTS)),
        pod_with(container("status-reporter"), *TWO),
    ],
    ids=["no writer", "two writers", "we do not mount the results"],
)
def test_where_nothing_tells_the_first_is_taken_with_a_remark(pod):
    """As the older product does, but loudly."""
    assert ("a", "", ("adapter container guessed: 'a' is the first of a, b",)) == find_adapter(
        pod, NAMES
    )


NOBODY = "the Pod has no container besides 'status-reporter'"
MISFITS = {
    "no such container": (
        pod_with(US, container("a"), init=[container("i")]),
        "'b' is not a container of the Pod; containers: status-reporter, a; init containers: i",
        Names(adapter="b"),
    ),
    "an init container named as adapter": (
        pod_with(container("a"), init=[NATIVE_US, container("i")]),
        "'i' is an init container of the Pod; containers: a; init containers: status-reporter, i",
        Names(adapter="i"),
    ),
    "the reporter named as adapter": (
        pod_with(US, container("a")),
        "'status-reporter' is the reporter itself;"
        " containers: status-reporter, a; init containers: none",
        Names(adapter="status-reporter"),
    ),
    "nobody besides us": (pod_with(US), NOBODY),
    "nobody at all": ({}, NOBODY),
    "our own name is not in the Pod, and nothing tells": (
        pod_with(container("reporter"), container("a")),
        "'status-reporter' is not a container of the Pod;"
        " containers: reporter, a; init containers: none",
    ),
    "a container without a name": (pod_with(US, {"image": "x"}), NOBODY),
    "no containers where one is named": (
        {},
        "'a' is not a container of the Pod; containers: none; init containers: none",
        Names(adapter="a"),
    ),
}


@pytest.mark.parametrize("situation", MISFITS)
def test_settings_that_do_not_fit_name_the_containers_that_exist(situation):
    """No adapter, and the reason for row M."""
    pod, expected, *given = MISFITS[situation]
    (names,) = given or [NAMES]

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
