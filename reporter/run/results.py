"""The words for what results say, and from the outcomes of single tests to those of what has them.

Reading a result is not done here: whoever takes it in keeps its verdict in the record.
"""

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final


class ResultStatus(StrEnum):
    """The words for a verdict. Empty instead of a word: nobody has judged the result."""

    PASSED = "passed"
    FAILED = "failed"
    UNKNOWN = "unknown"  # judged, but it says neither
    TIMEOUT = "timeout"


NOT_PASSED: Final = frozenset({ResultStatus.FAILED, ResultStatus.UNKNOWN, ResultStatus.TIMEOUT})


def without_result(verdict: str) -> str:
    """Return what an entry counts as whose result is missing; `verdict` is its sender's, if known.

    It has failed, also if the condition of its Job says that it passed; but not if its sender could
    not tell.
    """
    return verdict if verdict == ResultStatus.UNKNOWN else ResultStatus.FAILED


# -- counts of tests -------------------------------------------------------------------------------

SKIPPED: Final = "skipped"
KNOWN: Final = frozenset({*ResultStatus, SKIPPED})
"""All other words are a plugin's own."""

MOST_WORDS: Final = 32  # own words that are counted each; all others count as unknown
_WORD: Final = re.compile(r"[^\x00-\x1f\x7f-\x9f:,\ud800-\udfff]{1,64}")


def status_word(said: str) -> str:
    """Return the status of a leaf; unknown for none, and for what no count could show."""
    return said if said in KNOWN or _WORD.fullmatch(said) else ResultStatus.UNKNOWN


def verdict_of(counts: Mapping[str, int]) -> ResultStatus:
    """Return the verdict on so many leaves of each status. Nothing at all is unknown.

    So is a status that only its plugin knows: nobody may take it for a pass.
    """
    found = {word for word, many in counts.items() if many}
    if found & {ResultStatus.FAILED, ResultStatus.TIMEOUT}:
        return ResultStatus.FAILED
    return (
        ResultStatus.PASSED
        if found and found <= {ResultStatus.PASSED, SKIPPED}
        else ResultStatus.UNKNOWN
    )


def custom(counts: Mapping[str, int]) -> bool:
    """Whether there is a status that only its plugin knows."""
    return not counts.keys() <= KNOWN


def status_of(counts: Mapping[str, int], *, counted: bool = False) -> str:
    """Return the status of a branch with these leaves: its verdict, or if `counted` the counts."""
    if not counted:
        return verdict_of(counts)
    return ", ".join(f"{word}: {counts[word]}" for word in sorted(counts))


def count_in(counts: dict[str, int], more: Mapping[str, int]) -> None:
    """Add counts; a plugin's own words beyond the cap count as unknown."""
    for word, many in more.items():
        known = word in KNOWN or word in counts or len(counts) < MOST_WORDS
        kept = word if known else ResultStatus.UNKNOWN
        counts[kept] = counts.get(kept, 0) + many


def sum_of(each: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Return the sum of counts, within the cap on words."""
    found: dict[str, int] = {}
    for counts in each:
        count_in(found, counts)
    return found


class Sum:
    """The sum of the counts of things that change, by their names."""

    def __init__(self) -> None:
        self._each: dict[object, Mapping[str, int]] = {}
        self._sum: dict[str, int] = {}

    def put(self, name: object, counts: Mapping[str, int]) -> None:
        """Note the counts of a thing, in place of those it had."""
        before = self._each.get(name, {})
        if before == counts:
            return
        self._each[name] = counts
        if custom(before):  # it is not known any more under which word they were counted
            self._sum = sum_of(self._each.values())
            return
        for word, many in before.items():
            self._sum[word] -= many
        count_in(self._sum, counts)

    def counts(self) -> dict[str, int]:
        """Return the sum."""
        return {word: many for word, many in self._sum.items() if many}
