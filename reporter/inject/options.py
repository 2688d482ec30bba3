"""What is asked for, for all Jobs of a call; the form may be another one by a Job's label."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from reporter.common.defaults import RESULTS_PATH
from reporter.jobs.setting import LABEL
from reporter.verdict.facts import Form

DISABLED: Final = "disabled"
OWN_VARIABLES: Final = frozenset(
    {
        "REPORTER_FORM",
        "JOB_NAME",
        "JOB_NAMESPACE",
        "POD_NAME",
        "ADAPTER_CONTAINER_NAME",
        "REPORTER_CONTAINER_NAME",
        "RESULTS_PATH",
    }
)
"""Variables that follow from the Pod and from other options."""


@dataclass(frozen=True, slots=True)
class Wishes:
    """The options of `status-ctl inject`. `adapter` and `aggregator` are names, empty for none.

    `cpu_limit` is a quantity, empty for none. `own_token_only`: the Pod's other containers get no
    token, unless the Pod says that they do.
    """

    image: str
    form: Form = Form.NATIVE
    adapter: str = ""
    results_path: str = RESULTS_PATH
    environment: Mapping[str, str] = field(default_factory=dict)
    aggregator: str = ""
    cpu_limit: str = ""
    own_token_only: bool = False


def wanted_form(labels: Mapping[str, str], otherwise: Form) -> Form | str:
    """Return the form that a Job's labels ask for, or the label's value if it names none."""
    value = labels.get(LABEL, otherwise.value)
    return Form(value) if value in {form.value for form in Form} else value
