"""`status-ctl validate` and `status-ctl images` with plugin definitions, from the outside."""

import json
from pathlib import Path

import pytest

from reporter import __version__
from reporter.common import schema
from reporter.runctl.definitions import BUILT_IN
from tests import forked

ROOT = Path(__file__).resolve().parents[3]
BOUND = 60.0
GOOD = json.dumps(schema.load("plugin.v1")["examples"][0])
THEIRS = "sonobuoy-config: {driver: Job, plugin-name: NAME}\nspec: {name: p, image: IMAGE}\n"
OWN = f"status-reporter:{__version__}"


def call(*arguments, data=b""):
    """Run it; return exit code, lines of output and lines on standard error."""
    done = forked.run(
        [str(ROOT / "cmd" / "status-ctl.py"), *arguments],
        input=data,
        capture_output=True,
        timeout=BOUND,
    )
    return done.returncode, done.stdout.decode().splitlines(), done.stderr.decode().splitlines()


def theirs(name, image="i"):
    return THEIRS.replace("NAME", name).replace("IMAGE", image)


def test_every_problem_of_every_file_is_told_with_its_place(tmp_path):
    """Two plugins of one name too, in whichever files they stand."""
    bad, other = tmp_path / "bad.yaml", tmp_path / "other.yml"
    bad.write_text("apiVersion: status-reporter.io/v1\nkind: Plugin\nspec: {}\n")
    other.write_text(f"{theirs('quota-check')}---\n{GOOD}\n")

    code, out, err = call("validate", "--no-color", str(tmp_path))

    assert (1, []) == (code, err)
    assert [
        f"# {bad}: line 1: error: metadata: is required",
        f"# {bad}: line 3: error: spec.driver: is required",
        f"# {bad}: line 3: error: spec.contract: is required",
        f"# {bad}: line 3: error: spec.template: is required",
        f"# {other}: line 4: error: another plugin is named 'quota-check'",
        f"# {other}: line 1: note: the service account sonobuoy-serviceaccount is replaced by "
        "--service-account or the run's own",
    ] == out


def test_a_valid_definition_beside_a_result_file(tmp_path):
    """The name tells which is which; the worse of the two is the exit code."""
    definition, result = tmp_path / "plugin.yaml", tmp_path / "result.json"
    definition.write_text(GOOD)
    result.write_text("{}")

    code, out, _ = call("validate", str(definition), str(result))

    assert 1 == code
    assert f"# {definition}: line 1: plugin quota-check is valid" in out
    assert "  reason: InvalidResultFormat" in out


def test_a_definition_on_standard_input():
    assert (0, ["# standard input: line 1: plugin quota-check is valid"], []) == call(
        "validate", "--plugin", "-", data=GOOD.encode()
    )


def test_a_directory_without_definitions_and_a_file_that_is_not_there(tmp_path):
    (tmp_path / "more").mkdir()
    said = f"status-ctl: cannot read {tmp_path}: no file in it ends in .yaml or .yml"
    assert (2, [], [said]) == call("validate", str(tmp_path))

    missing = tmp_path / "missing.yaml"
    assert (2, [], [f"status-ctl: cannot read {missing}: No such file or directory"]) == call(
        "validate", str(missing)
    )


def test_a_file_cannot_be_a_definition_and_a_progress_file():
    code, _, err = call("validate", "--plugin", "--progress", "-")

    assert 2 == code
    assert "--plugin and --progress cannot be used together" in err[-1]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        pytest.param([], [OWN, "a", "docker.io/library/busybox:1.37"], id="default"),
        pytest.param(
            ["--image", "mirror/ours:1"],
            ["a", "docker.io/library/busybox:1.37", "mirror/ours:1"],
            id="our image elsewhere",
        ),
    ],
)
def test_images_of_all_definitions_once_each(tmp_path, arguments, expected):
    (tmp_path / "1.yaml").write_text(f"{theirs('x', 'a')}---\n{theirs('y', 'a')}---\n{GOOD}")

    assert (0, sorted(expected), []) == call("images", "-f", str(tmp_path), *arguments)


def test_our_image_is_the_one_that_a_run_would_have(tmp_path, monkeypatch):
    """A mirror lacks it otherwise."""
    monkeypatch.setenv("STATUS_CTL_IMAGE", "mirror/ours:2")
    (tmp_path / "1.yaml").write_text(theirs("x", "a"))

    assert (0, ["a", "mirror/ours:2"], []) == call("images", "-f", str(tmp_path))


def test_an_image_with_the_version_of_the_cluster(tmp_path):
    """What cannot be known without the cluster is asked for."""
    file = tmp_path / "e2e.yaml"
    file.write_text(theirs("e2e", '"conformance:$SONOBUOY_K8S_VERSION"'))

    assert (0, ["conformance:v1.34.1", OWN], []) == call(
        "images", "-f", str(file), "--kubernetes-version", "v1.34.1"
    )
    code, out, err = call("images", "-f", str(file))
    assert (0, ["conformance:$SONOBUOY_K8S_VERSION", OWN]) == (code, out)
    assert [
        "status-ctl: set --kubernetes-version to replace $SONOBUOY_K8S_VERSION in "
        "conformance:$SONOBUOY_K8S_VERSION"
    ] == err


def test_images_of_a_definition_that_is_invalid_or_missing(tmp_path):
    file = tmp_path / "bad.yaml"
    file.write_text("[]")

    assert (2, [], [f"status-ctl: {file}: line 1: not an object"]) == call(
        "images", "-f", str(file)
    )
    file.unlink()
    assert (2, [], [f"status-ctl: cannot read {file}: No such file or directory"]) == call(
        "images", "-f", str(file)
    )


def test_a_built_in_plugin_runs_the_image_of_the_run():
    """Its own images are those of the run, wherever they are."""
    code, out, err = call("images", "--plugin", "host-facts", "--image", "mirror/ours:1")

    assert (0, ["mirror/ours:1"], []) == (code, out, err)


def test_without_a_definition_or_a_built_in_plugin_all_of_these_are_meant():
    code, out, err = call("images", "--image", "mirror/ours:1")

    assert (0, ["mirror/ours:1"]) == (code, out)
    assert [
        f"status-ctl: no -f or --plugin: using all built-in plugins: {', '.join(BUILT_IN)}"
    ] == err


@pytest.mark.parametrize("name", BUILT_IN)
def test_a_built_in_plugin_twice_or_beside_one_of_its_name(tmp_path, name):
    file = tmp_path / "same.yaml"
    file.write_text(theirs(name))

    code, _, err = call("images", "-f", str(file), "--plugin", name)

    assert 2 == code
    assert f"--plugin {name}: another plugin is named '{name}'" in err[-1]


@pytest.mark.parametrize("command", [("validate",), ("images", "-f")])
def test_a_name_that_no_file_can_have(command):
    """It is too long to be looked up."""
    name = "a" * 300

    code, out, err = call(*command, name)

    assert (2, [], 1) == (code, out, len(err))
    assert err[0].startswith("status-ctl: cannot read aaa")
    assert err[0].endswith(": File name too long")
