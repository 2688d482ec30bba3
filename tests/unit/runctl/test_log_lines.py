"""A log that is read in streams which are cut and begun again."""

from itertools import accumulate

from hypothesis import given
from hypothesis import strategies as st

from reporter.runctl.log_lines import LONGEST, LogLines


def stamped(seconds: list[int], texts: list[bytes]) -> list[bytes]:
    """Return lines as the kubelet gives them; each has a stamp of its own."""
    return [
        b"2030-01-01T00:%02d:%02d.%dZ %s\n" % (*divmod(second, 60), at, text)
        for at, (second, text) in enumerate(zip(seconds, texts, strict=True))
    ]


def served(log: list[bytes], since: str) -> bytes:
    """Return what the server has from that second on."""
    return b"".join(line for line in log if line[:19] >= since[:19].encode())


LOGS = st.lists(
    st.tuples(st.integers(0, 2), st.binary(max_size=5).map(lambda text: text.replace(b"\n", b""))),
    max_size=12,
).map(
    lambda lines: stamped(list(accumulate(step for step, _ in lines)), [text for _, text in lines])
)


@given(LOGS, st.lists(st.tuples(st.integers(0, 400), st.integers(1, 60)), max_size=5))
def test_cut_anywhere_and_in_any_pieces_it_is_the_same(
    log: list[bytes], cuts: list[tuple[int, int]]
) -> None:
    """Nothing is lost, nothing comes twice, in order."""
    lines, found = LogLines(), list[bytes]()
    for cut, size in [*cuts, (10**6, 7)]:
        lines.begin()
        stream = served(log, lines.since)[:cut]
        for at in range(0, len(stream), size):
            found += lines.take(stream[at : at + size])
    found += lines.flush()

    assert [line.partition(b" ")[2][:-1] for line in log] == found


def test_a_line_that_does_not_end_comes_in_parts() -> None:
    """It takes no memory without end."""
    (line,) = stamped([0], [b"x" * 3 * LONGEST])
    lines = LogLines()
    lines.begin()
    parts = [part for at in range(0, len(line), 99) for part in lines.take(line[at : at + 99])]

    assert line.partition(b" ")[2][:-1] == b"".join(parts)
    assert LONGEST + 99 >= max(map(len, parts))


def test_a_line_whose_end_is_missing_is_continued_later() -> None:
    """Another one that comes later comes whole."""
    lines = LogLines()
    lines.begin()

    assert [] == lines.take(b"2030-01-01T00:00:00.1+01:00 one")
    assert [b"one"] == lines.flush()
    assert [] == lines.flush()
    lines.begin()
    again = b"2030-01-01T00:00:00.1+01:00 one, two\n2030-01-01T00:00:00.2+01:00 three\n"
    assert [b", two", b"three"] == lines.take(again)
    assert "2030-01-01T00:00:00+01:00" == lines.since


def test_what_has_no_stamp_is_shown_as_it_is() -> None:
    """As the kubelet's own words about a log that it cannot read."""
    lines = LogLines()
    lines.begin()

    assert [b"unable to retrieve", b""] == lines.take(b"unable to retrieve\n\n")
    assert "" == lines.since
