"""The published schemas, applied. The only place of jsonschema.

Texts are built from path and rule: jsonschema's own messages repeat the instance, which may be a
megabyte and is not ours to publish.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError

from reporter.common.objects import Place, field
from reporter.errors import InvalidPayload

_DIRECTORY = Path(__file__).with_name("schemas")
MOST_PROBLEMS = 8
_TYPES = {
    "array": "a list",
    "boolean": "true or false",
    "integer": "an integer",
    "number": "a number",
    "object": "an object",
    "string": "a string",
}
_ALIKE = 0.65  # of 1.0; `resaon` and `reason` have 0.83, `mgs` and `msg` 0.67

TEXTS: dict[str, Callable[[Any], str]] = {
    "const": lambda value: f"must be '{value}'",
    "enum": lambda value: "must be either " + " or ".join(f"'{choice}'" for choice in value),
    "maximum": lambda value: f"must be at most {value}",
    "minimum": lambda value: f"must be at least {value}",
    "minItems": lambda value: f"must have at least {value} item" + ("s" if value > 1 else ""),
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
    for path, text in violations(name, instance, MOST_PROBLEMS):
        found.setdefault(field(path), text)
    return found


def check(name: str, instance: Mapping[str, object]) -> None:
    """Raise InvalidPayload with what breaks the schema of that name, if anything does."""
    if found := problems(name, instance):
        raise InvalidPayload("; ".join(f"{field}: {text}" for field, text in found.items()))


def violations(name: str, instance: object, most: int | None = None) -> Iterator[tuple[Place, str]]:
    """Yield what breaks the schema of that name, and where; at most so many rules of it."""
    told = set()
    for error in islice(_validator(name).iter_errors(instance), most):
        for each in _texts(error):
            if each not in told:  # every missing member is an error that names all of them
                told.add(each)
                yield each


def nearest(unknown: str, known: Iterable[str]) -> str | None:
    """Return the known name that an unknown one is probably meant to be."""
    # A sidecar ignores unknown members, so it does not need this.
    from difflib import get_close_matches

    return next(iter(get_close_matches(unknown, known, 1, _ALIKE)), None)


def _texts(error: ValidationError) -> Iterator[tuple[Place, str]]:
    path: Place = tuple(error.absolute_path)
    rule: str = str(error.validator)
    value: Any = error.validator_value
    instance: Any = error.instance
    if rule == "required":
        for name in value:
            if name not in instance:
                yield (*path, name), "is required"
    elif rule == "additionalProperties":
        schema: Any = error.schema
        known = schema["properties"]
        for name in instance:
            if name not in known:
                near = nearest(str(name), known)
                yield (*path, name), "is unknown" + (f"; did you mean {near}?" if near else "")
    else:
        yield path, TEXTS[rule](value)


def _types(value: str | list[str]) -> str:
    types = [value] if isinstance(value, str) else value
    return " or ".join(_TYPES[name] for name in types if name != "null")
