"""Fixtures of the tests of deploy/."""

import pytest

from tests.unit.repository.manifests import FORMS, load


@pytest.fixture(params=FORMS)
def form(request) -> str:
    """Each form of the reporter in turn."""
    return request.param


@pytest.fixture
def pod(form) -> dict:
    """The Pod spec that the component of the form adds."""
    return load(f"components/{form}/job.yaml")["spec"]["template"]["spec"]


@pytest.fixture
def container(form, pod) -> dict:
    """The container that the component of the form adds."""
    (added,) = pod[FORMS[form]]
    return added
