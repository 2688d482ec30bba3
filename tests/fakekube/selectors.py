"""Label and field selectors of lists and watches."""

from typing import Any

from tests.fakekube.answers import NotImitated
from tests.fakekube.journal import Entry


class LabelSelector:
    """`KEY=VALUE`, `KEY!=VALUE` and `KEY`, separated by commas; sets are not imitated."""

    def __init__(self, entry: Entry) -> None:
        self._terms = [
            self._term(term) for term in entry.query.get("labelSelector", "").split(",") if term
        ]

    def fits(self, found: dict[str, Any]) -> bool:
        """Whether the object has such labels."""
        labels = found["metadata"].get("labels", {})
        return all(
            (labels.get(key) != value)
            if differs
            else (key in labels and value in {None, labels[key]})
            for key, differs, value in self._terms
        )

    @staticmethod
    def _term(term: str) -> tuple[str, bool, str | None]:
        if set(term) & set("()! ") - set("!") or term.startswith("!"):
            raise NotImitated(f"the label selector {term!r}")
        key, same, value = term.partition("=")
        if not same:
            return key, False, None
        return key.removesuffix("!"), key.endswith("!"), value.removeprefix("=")


class FieldSelector:
    """`PATH=VALUE`, separated by commas."""

    def __init__(self, entry: Entry) -> None:
        self._terms = {}
        for term in filter(None, entry.query.get("fieldSelector", "").split(",")):
            path, _, value = term.partition("=")
            if path.endswith("!"):
                raise NotImitated(f"the field selector {term!r}")
            self._terms[path] = value.removeprefix("=")

    def fits(self, found: dict[str, Any]) -> bool:
        """Whether the object has such fields."""
        return all(_field(found, path) == value for path, value in self._terms.items())


def _field(found: Any, path: str) -> Any:
    for key in path.split("."):
        found = found.get(key, {})
    return found
