"""Objects of Kubernetes as YAML files of ours, with values put in.

A scalar `$name` stands for the value of that name and is left out where that is None: only whole
scalars, so nothing has to be quoted. What has `$if` is there only where the value of that name is
true. A list of which nothing is there is left out as well.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

Values = Mapping[str, Any]

_LEFT_OUT: Final = object()


def filled(package: str, name: str, values: Values) -> list[dict[str, Any]]:
    """Return the objects of a file in `manifests` of a package."""
    found = (_fill(each, values) for each in manifest(package, name))
    return [each for each in found if each is not _LEFT_OUT]


@cache
def manifest(package: str, name: str) -> list[Any]:
    """Return the objects of such a file as they are written."""
    # Here, because most commands create nothing.
    from importlib.resources import files

    import yaml

    found = files(package).joinpath("manifests", name).read_text(encoding="utf-8")
    return list(yaml.safe_load_all(found))


def _fill(part: Any, values: Values) -> Any:
    if isinstance(part, dict):
        if "$if" in part and not values[part["$if"]]:
            return _LEFT_OUT
        found = {key: _fill(each, values) for key, each in part.items() if key != "$if"}
        return {key: each for key, each in found.items() if each is not _LEFT_OUT}
    if isinstance(part, list):
        listed = [_fill(each, values) for each in part]
        return [each for each in listed if each is not _LEFT_OUT] or _LEFT_OUT
    if isinstance(part, str) and part.startswith("$"):
        value = values[part[1:]]
        return _LEFT_OUT if value is None else value
    return part
