"""The Secrets of plugins: for whom there is one, and what it holds."""

from __future__ import annotations

import base64

import pytest

from reporter.launch.job import secret, secret_name
from reporter.run import names
from reporter.run.plan import GLOBAL, Key, Plugin
from tests.plugin_launches import OWNER, PLACE, RUN
from tests.unit.launch.job_parts import environ, made, pod_of


@pytest.mark.parametrize(
    ("plugin", "key", "whose"),
    [
        (Plugin("p"), Key("p", GLOBAL), Key("p", GLOBAL)),
        (Plugin("p", ("a", "b")), Key("p", "b"), Key("p", "*")),
        (Plugin("p", ("a", "b"), identity="node"), Key("p", "b"), Key("p", "b")),
    ],
)
def test_nodes_share_a_secret_unless_each_has_an_identity(
    plugin: Plugin, key: Key, whose: Key
) -> None:
    assert names.entry_name(RUN, whose) == secret_name(RUN, plugin, key)


def test_a_secret_holds_what_the_containers_read() -> None:
    key = Key("p", "*")
    found = secret(PLACE, "name", key, ca=b"ca", certificate=b"crt", private_key=b"key")
    assert {"ca.crt": b"ca", "tls.crt": b"crt", "tls.key": b"key"} == {
        name: base64.b64decode(value) for name, value in found["data"].items()
    }
    assert ("kubernetes.io/tls", [OWNER]) == (found["type"], found["metadata"]["ownerReferences"])
    assert key == names.key_of(found)
    files = environ(pod_of(made("program that uploads by itself"))["containers"][0])
    read = {value.rpartition("/")[2] for name, value in files.items() if name.endswith("_FILE")}
    assert set(found["data"]) == read
