"""The published schemas, applied. The only place of jsonschema.

Texts are built from path and rule: jsonschema's own messages repeat the instance, which may be a
megabyte and is not ours to publish.
"""

import json
from collections.abc import Callable, Mapping
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError

_DIRECTORY = Path(__file__).with_name("schemas")
MOST_PROBLEMS = 8
_TYPES = {"array": "a list", "integer": "an integer", "string": "a string"}

TEXTS: dict[str, Callable[[Any], str]] = {
    "enum": lambda value: "must be either " + " or ".join(f"'{choice}'" for choice in value),
    "maximum": lambda value: f"must be at most {value}",
    "minimum": lambda value: f"must be at least {value}",
    "type": lambda value: f"must be {_types(value)}",
}
"""What a rule demands, from its own value; `required` is told of the member that is missing."""


@cache
def load(name: str) -> dict[str, Any]:
    """The published schema of that name, for example `result.v1`."""
    text = (_DIRECTORY / f"{name}.schema.json").read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema


@cache
def _validator(name: str) -> Draft202012Validator:
    return Draft202012Validator(load(name))


def problems(name: str, instance: Mapping[str, object]) -> dict[str, str]:
    """What breaks the schema of that name: field (as `failures[3]`) to the first rule it breaks.

    At most `MOST_PROBLEMS` of them: a list of a thousand wrong entries is told in a few.
    """
    found: dict[str, str] = {}
    for error in islice(_validator(name).iter_errors(instance), MOST_PROBLEMS):
        for field, text in _texts(error):
            found.setdefault(field, text)
    return found


def _texts(error: ValidationError) -> list[tuple[str, str]]:
    path = [f"[{step}]" if isinstance(step, int) else f".{step}" for step in error.absolute_path]
    field = "".join(path).removeprefix(".")
    rule: str = str(error.validator)
    value: Any = error.validator_value
    instance: Any = error.instance
    if rule == "required":
        return [(name, "is required") for name in value if name not in instance]
    return [(field, TEXTS[rule](value))]


def _types(value: str | list[str]) -> str:
    types = [value] if isinstance(value, str) else value
    return " or ".join(_TYPES[name] for name in types if name != "null")
