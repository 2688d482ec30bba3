"""Plugin definitions: what is read, and every mistake with its line and field."""

import json
from textwrap import dedent

import pytest

from reporter.common import schema
from reporter.run.definition import Definition, NodeSelection
from reporter.run.definition_file import MAX_BYTES, read_definitions
from tests.tables import table


def read(text):
    """Read a text that has no mistake and return its only definition."""
    found = read_definitions(dedent(text).encode())
    assert () == found.mistakes
    ((_, definition),) = found.definitions
    return definition


def mistakes(text):
    """Return what is wrong with a text."""
    data = text if isinstance(text, bytes) else dedent(text).encode()
    found = read_definitions(data)
    assert () == found.definitions
    return [f"line {mistake.line}: {mistake}" for mistake in found.mistakes]


OURS = """\
apiVersion: status-reporter.io/v1
kind: Plugin
metadata:
  name: dns
spec:
  driver: {driver}
  contract: {contract}
  template:
    spec:
      containers:
        - name: adapter
          image: example.org/dns:1
"""
THEIRS = """\
sonobuoy-config:
  driver: {driver}
  plugin-name: sysd
spec:
  name: plugin
  image: example.org/sysd:$SONOBUOY_K8S_VERSION
"""


def ours(driver="Job", contract="result-file", more=""):
    """Return a definition in our shape, with more members of its spec."""
    return OURS.format(driver=driver, contract=contract) + more


def test_our_shape_with_nothing_but_what_is_required():
    definition = read(ours())

    assert (
        Definition(
            "dns",
            "Job",
            "result-file",
            {"spec": {"containers": [{"name": "adapter", "image": "example.org/dns:1"}]}},
            result_format="adapter",
        )
        == definition
    )


@pytest.mark.parametrize(
    ("contract", "expected"),
    [
        ("result-file", ("adapter", True)),
        ("done-file", ("raw", True)),
        ("link", ("raw", False)),
    ],
)
def test_format_and_heartbeats_follow_from_the_contract(contract, expected):
    definition = read(ours(contract=contract))

    assert expected == (definition.result_format, definition.heartbeats)


def test_our_shape_with_everything():
    more = """\
  order: 2
  timeoutSeconds: 300
  startTimeoutSeconds: 60
  resultFormat: junit
  resultFiles: [junit.xml, more.xml]
  heartbeats: false
  nodes: {selector: "pool=a,zone in (x, y)", includeNotReady: true}
  cleanup: success
  identity: node
"""
    definition = read(ours("Node", "done-file", more))

    assert (2, 300, 60) == (
        definition.order,
        definition.timeout_seconds,
        definition.start_timeout_seconds,
    )
    assert ("junit", ("junit.xml", "more.xml")) == (
        definition.result_format,
        definition.result_files,
    )
    assert (False, "success") == (definition.heartbeats, definition.cleanup)
    assert "node" == definition.identity
    assert NodeSelection("pool=a,zone in (x, y)", include_not_ready=True) == definition.nodes


def test_the_published_examples_are_valid():
    """What we show to authors is accepted; JSON is YAML."""
    for example in schema.load("plugin.v1")["examples"]:
        assert "quota-check" == read(json.dumps(example)).name


def test_sonobuoys_shape_without_a_pod_spec_gets_its_default_pod_of_a_job():
    definition = read(THEIRS.format(driver="Job"))

    spec = definition.template["spec"]
    assert ("sysd", "Job", "done-file", "raw") == (
        definition.name,
        definition.driver,
        definition.contract,
        definition.result_format,
    )
    assert {"kubernetes.io/os": "linux"} == spec["nodeSelector"]
    assert ["plugin"] == [container["name"] for container in spec["containers"]]
    assert [{"name": "results", "emptyDir": {}}] == spec["volumes"]
    assert "Never" == spec["restartPolicy"]
    assert "serviceAccountName" not in spec
    replaced = "is replaced by --service-account or the run's own"
    assert (f"the service account sonobuoy-serviceaccount {replaced}",) == definition.remarks


def test_sonobuoys_daemon_set_mounts_the_hosts_root_as_its_plugins_expect():
    definition = read(THEIRS.format(driver="daemonset"))

    spec = definition.template["spec"]
    assert "Node" == definition.driver
    assert [{"name": "root", "hostPath": {"path": "/"}}, {"name": "results", "emptyDir": {}}] == (
        spec["volumes"]
    )
    assert [{"operator": "Exists"}] == spec["tolerations"]
    assert (True, True, True) == (spec["hostPID"], spec["hostIPC"], spec["hostNetwork"])


def test_a_plugin_of_sonobuoys_on_its_nodes_network_is_told_that_its_progress_port_is_another():
    """It may have 8099 written out, as Sonobuoy's pages do, and would lose its progress."""
    definition = read(THEIRS.format(driver="DaemonSet"))
    named = THEIRS.replace(
        "spec:", "spec:\n  env: [{{name: SONOBUOY_PROGRESS_PORT, value: '8099'}}]"
    )
    said = "with hostNetwork the progress port is not 8099 but $SONOBUOY_PROGRESS_PORT"

    assert definition.remarks[-1].startswith(said)
    assert [] == [
        each
        for text in (named.format(driver="DaemonSet"), THEIRS.format(driver="Job"))
        for each in read(text).remarks
        if "PORT" in each
    ]


def test_sonobuoys_shape_with_everything():
    """Its own Pod comes first, unknown members are ignored."""
    definition = read(
        """\
        sonobuoy-config:
          driver: Job
          plugin-name: e2e
          result-format: junit
          result-files: [junit.xml]
          skip-cleanup: true
          order: 3
          description: more
          result-type: e2e
        podSpec:
          restartPolicy: OnFailure
          serviceAccountName: mine
          containers: [{name: sidecar, image: s}]
          volumes: [{name: a, emptyDir: {}}]
        extra-volumes: [{name: b, emptyDir: {}}]
        config-map: {go.sh: echo}
        spec: {name: plugin, image: p}
        """
    )

    spec = definition.template["spec"]
    assert ("junit", ("junit.xml",), "never", 3) == (
        definition.result_format,
        definition.result_files,
        definition.cleanup,
        definition.order,
    )
    assert {"go.sh": "echo"} == definition.config
    assert ["sidecar", "plugin"] == [each["name"] for each in spec["containers"]]
    assert ["a", "results", "b"] == [each["name"] for each in spec["volumes"]]
    assert ("mine", "Never") == (spec["serviceAccountName"], spec["restartPolicy"])
    assert ("restartPolicy OnFailure becomes Never",) == definition.remarks


def test_several_documents_in_one_file_are_told_with_their_lines():
    text = f"# a comment\n---\n{ours()}---\n{THEIRS.format(driver='Job')}---\n"

    found = read_definitions(text.encode())

    assert [(3, "dns"), (16, "sysd")] == [(line, each.name) for line, each in found.definitions]


def test_all_mistakes_are_told_at_once_in_the_order_of_the_file():
    text = """\
    apiVersion: status-reporter.io/v1
    kind: Plugin
    metadata: {}
    spec:
      driver: Jobs
      contract: link
      resaltFormat: raw
      zzz: 1
      timeoutSeconds: 0
      template:
        spec:
          containers:
            - image: 0644
            - name: a
              name: b
              image: i
          initContainers: []
    """
    assert [
        "line 3: metadata.name: is required",
        "line 5: spec.driver: must be either 'Job' or 'Node'",
        "line 7: spec.resaltFormat: is unknown; did you mean resultFormat?",
        "line 8: spec.zzz: is unknown",
        "line 9: spec.timeoutSeconds: must be at least 1",
        "line 13: spec.template.spec.containers[0].image: must be a string",
        "line 13: spec.template.spec.containers[0].name: is required",
        "line 15: spec.template.spec.containers[1].name: appears more than once",
        "line 17: spec.template.spec.initContainers: must have at least 1 item",
    ] == sorted(mistakes(text), key=lambda each: (int(each.split()[1][:-1]), each))


def test_the_largest_file_that_is_read():
    """The limit itself is allowed."""
    text = OURS.format(driver="Job", contract="link").encode()
    read = read_definitions(text + b"#" * (MAX_BYTES - len(text)))

    assert (1, ()) == (len(read.definitions), read.mistakes)


def test_two_missing_members():
    """The library has an error for each that names both; each is told once."""
    text = "apiVersion: status-reporter.io/v1\nkind: Plugin\nmetadata: {}\nspec: {driver: Job}\n"
    told = mistakes(text)

    assert len(set(told)) == len(told)
    assert {"template: is required", "contract: is required"} <= {
        each.rpartition("spec.")[2] for each in told
    }


@table(
    ("text", "expected"),
    {
        "empty": ("", "line 1: no plugin definition found"),
        "comment": ("# nothing\n", "line 1: no plugin definition found"),
        "list": ("- a\n", "line 1: not an object"),
        "another kind": ("kind: Pod\n",
            "line 1: not a plugin definition: neither kind Plugin of status-reporter.io/v1 nor "
            "Sonobuoy's"),
        "not UTF-8": (b"a: 1\nb: \xff\n", "line 2: not UTF-8"),
        "too large": (b"#" + b" " * MAX_BYTES, f"line 1: larger than {MAX_BYTES} bytes"),
        "aliases that multiply": (f"a: &a [{'1,' * 200}]\nb: [{'*a,' * 200}]\n",
            "line 1: more than 20000 values"),
        "merge key": ("a: &a {b: 1}\nc: {<<: *a}\nkind: Pod\n",
            "line 2: c.<<: merge keys are not supported"),
        "list as a key": ("? [a]\n: 1\n", "line 1: a key that is not text"),
    },
)  # fmt: skip
def test_what_cannot_be_read(text, expected):
    assert expected in mistakes(text)


@table(
    ("text", "expected"),
    {
        "name": (
            OURS.format(driver="Job", contract="link").replace("dns\n", "-x\n", 1),
            "line 4: metadata.name: must consist of letters, digits, '.', '_' and '-', at most 63, "
            "with a letter or digit at both ends",
        ),
        "nodes of a Job": (
            ours(more="  nodes: {selector: a}\n"),
            "line 13: spec.nodes: is only for the driver Node",
        ),
        "a certificate for each node of a Job": (
            ours(more="  identity: node\n"),
            "line 13: spec.identity: can be node only for the driver Node",
        ),
        "one DaemonSet": (
            ours(driver="Node", more="  dispatch: daemonset\n"),
            "line 13: spec.dispatch: is unknown: the driver Node always runs one Job for each node",
        ),
        "selector of nodes": (
            ours(driver="Node", more="  nodes: {selector: a in b}\n"),
            "line 13: spec.nodes.selector: 'a in b' is not a label requirement",
        ),
        "our own volume": (
            ours(more="      volumes: [{name: status-reporter-token, emptyDir: {}}]\n"),
            "line 13: spec.template.spec.volumes[0].name: 'status-reporter-token' is reserved for "
            "the volume that is added",
        ),
        "format of a result file": (
            ours(more="  resultFormat: junit\n"),
            "line 13: spec.resultFormat: must be adapter for the contract result-file",
        ),
        "restarts": (
            ours(more="      restartPolicy: Always\n"),
            "line 13: spec.template.spec.restartPolicy: must be Never",
        ),
        "name twice": (
            ours(more="        - {name: adapter, image: i}\n"),
            "line 13: spec.template.spec.containers[1].name: another container is named 'adapter'",
        ),
        "our own name": (
            ours(more="        - {name: status-reporter, image: i}\n"),
            "line 13: spec.template.spec.containers[1].name: 'status-reporter' is reserved for the "
            "container that is added",
        ),
        "Sonobuoy's driver": (
            THEIRS.format(driver="Cron"),
            "line 2: sonobuoy-config.driver: must be either 'Job' or 'DaemonSet'",
        ),
        "Sonobuoy's name": (
            THEIRS.format(driver="Job").replace("sysd\n", "sys d\n"),
            "line 3: sonobuoy-config.plugin-name: must consist of letters, digits, '.', '_' and "
            "'-', at most 63, with a letter or digit at both ends",
        ),
        "Sonobuoy's container": (
            THEIRS.format(driver="Job").replace("name: plugin", "name: status-worker"),
            "line 5: spec.name: 'status-worker' is reserved for the container that is added",
        ),
        "Sonobuoy's container without a name": (
            THEIRS.format(driver="Job").replace("name: plugin\n", ""),
            "line 4: spec.name: is required",
        ),
    },
)
def test_what_fits_the_shape_and_cannot_work(text, expected):
    assert [expected] == mistakes(text)


def test_a_good_document_beside_a_bad_one():
    found = read_definitions(f"{ours()}---\nkind: Pod\n".encode())

    assert ["dns"] == [each.name for _, each in found.definitions]
    assert [14] == [mistake.line for mistake in found.mistakes]


def test_a_pod_spec_of_sonobuoys_shape_that_names_the_policy_we_use():
    text = THEIRS.format(driver="Job") + "podSpec: {restartPolicy: Never}\n"

    assert () == read(text).remarks


def test_images_with_the_version_of_the_cluster_and_our_own():
    theirs = read(THEIRS.format(driver="Job"))
    linked = read(ours(contract="link", more="      initContainers: [{name: i, image: init}]\n"))

    assert {"example.org/sysd:v1.34.1", "ours"} == theirs.images("ours", "v1.34.1")
    assert {"example.org/sysd:$SONOBUOY_K8S_VERSION", "ours"} == theirs.images("ours")
    assert {"example.org/dns:1", "init"} == linked.images("ours")
