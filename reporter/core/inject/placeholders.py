"""Argo's placeholders in a text that is YAML only without them: masked to read it, and back."""

import re
from collections.abc import Mapping
from itertools import count
from typing import Any, Final

PLACEHOLDER: Final = re.compile(r"\{\{[^{}\n]*\}\}")
"""What Argo puts values in place of, in these manifests."""


def masked(manifest: str) -> tuple[str, dict[str, str]]:
    """Put names for placeholders, as long where they can be: YAML has another use for braces."""
    names: dict[str, str] = {}
    known: dict[str, str] = {}
    # Found nowhere else, and none is a part of another.
    unused = (f"x{number}" for number in count() if f"x{number}" not in manifest)

    def name(found: re.Match[str]) -> str:
        placeholder = found[0]
        if placeholder not in known:
            known[placeholder] = f"{next(unused)}x".ljust(len(placeholder), "x")
            names[known[placeholder]] = placeholder
        return known[placeholder]

    return PLACEHOLDER.sub(name, manifest), names


def unmasked(shown: str, names: Mapping[str, str]) -> str:
    """Return a text with the placeholders that it had."""
    for name, placeholder in names.items():
        shown = shown.replace(name, placeholder)
    return shown


def unmasked_value(value: Any, names: Mapping[str, str]) -> Any:
    """Return a value with the placeholders in all its texts."""
    if isinstance(value, str):
        return unmasked(value, names)
    if isinstance(value, list):
        return [unmasked_value(each, names) for each in value]
    if isinstance(value, dict):
        return {key: unmasked_value(each, names) for key, each in value.items()}
    return value
