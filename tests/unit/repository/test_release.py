"""What `make release-check` finds wrong with a release; it is run as a whole by .ci/run."""

import pytest

from tests.unit.repository.test_packaging import script

release_check = script("release_check")


def component(name: str, *licences: dict[str, object]) -> dict[str, object]:
    return {"name": name, "licenses": list(licences)}


@pytest.mark.parametrize(
    "licences",
    [
        [{"license": {"id": "MIT"}}],
        [{"expression": "Apache-2.0 AND BSD-2-Clause"}],
        [{"expression": "GPL-3.0-only OR MIT"}],
        [{"license": {"name": "License :: OSI Approved :: Apache Software License"}}],
    ],
)
def test_a_permissive_licence(licences):
    assert [] == list(release_check.licence_problems([component("some", *licences)]))


def test_a_licence_that_asks_for_more():
    found = [
        component("a", {"expression": "MIT AND GPL-3.0-only"}),
        component("b", {"license": {"name": "ask the author"}}),
        component("c"),
    ]

    assert [
        "a has the licence MIT AND GPL-3.0-only",
        "b has the licence ask the author",
        "c names no licence",
    ] == list(release_check.licence_problems(found))


def test_manifests_that_name_another_version():
    texts = {
        "deploy/a.yaml": "images:\n  - {name: status-reporter, newTag: 1.2.3}\n",
        "README.md": "docker pull example.org/status-reporter:1.2.2\n",
        "deploy/chart/Chart.yaml": 'name: x\nversion: 1.2.3\nappVersion: "1.2.1"\n',
        "examples/into/chart/Chart.yaml": "version: 7.0.0\n",
        "deploy/other.yaml": "image: busybox:9.9.9\nversion: 7\n",
    }

    assert [
        "README.md:1 says 1.2.2, not 1.2.3",
        "deploy/chart/Chart.yaml:3 says 1.2.1, not 1.2.3",
    ] == list(release_check.other_versions(texts, "1.2.3"))


def test_the_changelog_of_a_version():
    text = "# Changelog\n\n## [1.1.0] - 2030-01-01\n\n### Added\n\n- x\n\n## [1.0.0]\n\n- y\n"

    assert "### Added\n\n- x" == release_check.changelog_section(text, "1.1.0")
    assert "- y" == release_check.changelog_section(text, "1.0.0")
    assert release_check.changelog_section(text, "1.1") is None
