"""Blanks what must not leave a cluster with a snapshot.

Blanked are: literal values of environment variables, annotations that repeat what was applied,
credentials in URLs, data of Secrets inside other objects; in all of that also where it is JSON in a
string. A Secret keeps nothing but its metadata, with blank annotations.
"""

import json
import re
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

BLANK: Final = "[redacted]"
_ENVIRONMENT: Final = frozenset(
    {
        *("env", "envs", "envVar", "envVars", "environment", "environmentVariables"),
        *("extraEnv", "extraEnvs", "extraEnvVar", "extraEnvVars", "Env", "variables"),
    }
)
_APPLIED: Final = (
    *("last-applied", "objectset.rio.cattle.io/applied", "kapp.k14s.io/original"),
    "kubernetes.io/change-cause",  # a command line of kubectl, perhaps of `set env`
)
_FIELDS: Final = frozenset({"properties", "patternProperties", "definitions"})
"""In a schema, what is below these describes fields and has no values of them."""
_SECRETS: Final = ("Secret", "SecretList")
_TYPES: Final = frozenset(
    {"array", "boolean", "integer", "null", "number", "object", "string"},
)
_NESTED: Final = (dict, list)
_SPACE: Final = " \n\t\r\ufeff"  # a byte order mark, too
_BEGINNING: Final = frozenset("{[" + _SPACE)
_SECRET_IN_TEXT: Final = re.compile(r'kind[\\"\s]*:[\\"\s]*Secret')
_MEMBERS: Final = frozenset({"name", "key", "valueFrom", "secretRef", "configMapRef"})
"""Members of a variable that do not hold its value."""
_DEEPEST_TEXT: Final = 3  # JSON in a string in JSON in a string
_LONGEST_TEXT: Final = 2**20

# Any text before an @ is a credential, whatever characters it has; digests of images are not, nor
# is what follows a port and a path.
_USER = re.compile(
    r"(://)(?:[^\s/\"'<>?#]+|[^\s/\"'<>?#:@]{0,256}:(?!\d+/)[^\s\"'<>@]{0,1024})@(?!sha\d+:)"
)
_PARAMETER = re.compile(
    r"([?&;][\w.\-]{0,64}(?:password|passwd|pwd|token|secret|signature|credential|api[-_]?key|access[-_]?key)"
    r"[\w.\-]{0,64}=|[?&;](?:sig|auth|key)=)[^&;\s\"'<>#]+",
    re.IGNORECASE,
)


def redact(found: Any) -> int:
    """Blank a JSON value in place; return how many values were blanked. RecursionError if deep."""
    redaction = _Redaction()
    redaction.inside(found, "")
    return redaction.blanked


def redact_text(text: str) -> tuple[str, int]:
    """Blank the credentials of URLs in a text."""
    if "://" not in text or not ("@" in text or "=" in text):
        return text, 0
    text, users = _USER.subn(rf"\1{BLANK}@", text)
    text, parameters = _PARAMETER.subn(rf"\1{BLANK}", text)
    return text, users + parameters


def secret_metadata(found: Mapping[str, Any]) -> tuple[dict[str, Any], int]:
    """Return what may be kept of a Secret, and how many annotations were blanked."""
    given = found.get("metadata")
    metadata = dict(given) if isinstance(given, Mapping) else {}
    metadata.pop("managedFields", None)
    annotations = metadata.get("annotations")
    names = list(annotations) if isinstance(annotations, Mapping) else []
    if names:
        metadata["annotations"] = dict.fromkeys(names, BLANK)
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata}, len(names)


class _Redaction:
    def __init__(self, depth: int = 0) -> None:
        self.blanked, self._depth = 0, depth

    def inside(self, found: Any, above: str) -> None:
        """Blank in place; `above` is the member that `found` is in."""
        if type(found) is dict:
            self._mapping(found, above)
        elif type(found) is list:
            self._list(found, above)

    def _mapping(self, found: dict[str, Any], above: str) -> None:
        if found.get("kind") == "Secret":
            self._secret(found)
        elif found.get("kind") == "SecretList" and "items" in found:
            values = found["items"]
            found["items"] = (
                # Mostly without a kind of their own.
                [self._secret(each) for each in values]
                if type(values) is list
                else self._blank(values)
            )
        urls = False
        for name, value in found.items():
            kind = type(value)
            urls = urls or "://" in name
            if kind is str:
                whole = (
                    any(each in name for each in _APPLIED)
                    if above == "annotations"
                    else name in _ENVIRONMENT and ("=" in value or value[:1] in _BEGINNING)
                )
                found[name] = self._blank(value) if whole else self._text(value)
            elif kind in _NESTED:
                if name in _ENVIRONMENT and not (above in _FIELDS and _schema(value)):
                    self._environment(value)
                self.inside(value, name)
        if urls:
            self._names(found)

    def _names(self, found: dict[str, Any]) -> None:
        """Blank in names, as of the registries in `auths`; two that become one keep apart."""
        members = list(found.items())
        found.clear()
        for name, value in members:
            new, blanked = redact_text(name)
            self.blanked += blanked
            while new in found:
                new += "*"
            found[new] = value

    def _list(self, found: list[Any], above: str) -> None:
        for at, value in enumerate(found):
            if type(value) is str:
                found[at] = self._text(value)
            else:
                self.inside(value, above)

    def _environment(self, found: Any) -> None:
        """Blank `[{name, value}]`, `{NAME: value}` and `["NAME=value"]`; references stay."""
        if type(found) is dict:
            for name, value in found.items():
                if name == "valueFrom":
                    continue
                if type(value) in _NESTED:
                    self._environment(value)  # as of several containers, each with its own
                else:
                    found[name] = self._blank(value)
            return
        for at, each in enumerate(found):
            if type(each) is dict:
                if "value" in each:
                    each["value"] = self._blank(each["value"])
                elif len(each) == 1:  # {NAME: value}
                    ((name, value),) = each.items()
                    if name not in _MEMBERS and type(value) not in _NESTED:
                        each[name] = self._blank(value)
            elif type(each) is str and "=" in each:
                found[at] = each.partition("=")[0] + "=" + self._blank(each)

    def _secret(self, found: Any) -> Any:
        if type(found) is not dict:
            return self._blank(found)
        for member in {"data", "stringData"} & found.keys():
            values = found[member]
            found[member] = (
                {name: self._blank(value) for name, value in values.items()}
                if type(values) is dict
                else self._blank(values)
            )
        return found

    def _text(self, text: str) -> str:
        if text[:1] in _BEGINNING and (new := self._json(text)) is not None:
            return new
        new, blanked = redact_text(text)
        self.blanked += blanked
        return new

    def _json(self, text: str) -> str | None:
        """Return JSON in a string with its values blanked; nothing if there is none to blank.

        A value that cannot be read is blanked as a whole if a Secret may be in it.
        """
        nested = _Redaction(self._depth + 1)
        try:
            if self._depth >= _DEEPEST_TEXT or len(text) > _LONGEST_TEXT:
                raise ValueError
            found = json.loads(text.lstrip(_SPACE), object_pairs_hook=nested.members)
        except (ValueError, RecursionError):
            looks_so = text.lstrip(_SPACE)[:1] in {"{", "["}
            return self._blank(text) if looks_so and _SECRET_IN_TEXT.search(text) else None
        nested.inside(found, "")
        self.blanked += nested.blanked
        return json.dumps(found, ensure_ascii=False) if nested.blanked else None

    def members(self, pairs: list[tuple[str, Any]]) -> Any:
        """Make an object of JSON; blank what it has twice: some readers take the first one."""
        found = dict(pairs)
        if len(found) < len(pairs):
            if any(name == "kind" and value in _SECRETS for name, value in pairs):
                self.blanked += 1
                return BLANK
            for name, times in Counter(name for name, _ in pairs).items():
                if times > 1:
                    found[name] = BLANK
                    self.blanked += 1
        return found

    def _blank(self, value: Any) -> Any:
        if value in {"", BLANK} if type(value) is str else value is None:
            return value
        self.blanked += 1
        return BLANK


def _schema(found: Any) -> bool:
    """Whether it is the schema of a field. Others have members of the schemas' names, too."""
    if type(found) is not dict:
        return False
    kind = found.get("type")
    if kind is not None:
        kinds = kind if type(kind) is list else [kind]
        return all(type(each) is str and each in _TYPES for each in kinds)
    reference = found.get("$ref")
    parts = (found.get(name) for name in ("allOf", "anyOf", "oneOf"))
    return (
        (type(reference) is str and "#" in reference)
        or type(found.get("properties")) is dict
        or any(type(each) is list and each and all(map(_schema, each)) for each in parts)
    )
