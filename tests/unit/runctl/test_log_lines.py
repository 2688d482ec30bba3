"""A log that is read in streams which are cut and begun again."""

from itertools import accumulate

from hypothesis import given
from hypothesis import strategies as st

from reporter.runctl.log_lines import LogLines


def stamped(seconds: list[int], texts: list[bytes]) -> list[bytes]:
    """Return lines as the kubelet gives them; several may have the same stamp."""
    return [
        b"2030-01-01T00:%02d:%02d.000000000Z %s\n" % (*divmod(second, 60), text)
        for second, text in zip(seconds, texts, strict=True)
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


@given(st.lists(st.integers(1, 60), min_size=1, max_size=4), st.integers(0, 60))
def test_a_line_that_is_too_long_comes_in_parts(cuts: list[int], length: int) -> None:
    """Each part once, also where a stream is cut in the middle of it."""
    text = bytes(65 + place % 26 for place in range(length))
    (line,) = stamped([0], [text])
    lines, found = LogLines(longest=40), list[bytes]()
    for cut in [*cuts, 10**6]:
        lines.begin()
        for byte in line[:cut]:
            found += lines.take(bytes([byte]))

    assert text == b"".join(found)


def test_a_long_line_has_one_stamp_and_comes_once() -> None:
    """A part of it that looks like a stamp is text; whole, it is known after a cut."""
    (line,) = stamped([0], [b"x" * 40 + b"2040-01-01T00:00:00Z y" * 9])
    lines, found = LogLines(longest=40), list[bytes]()
    for _ in range(2):
        lines.begin()
        for at in range(0, len(line), 40):
            found += lines.take(line[at : at + 40])

    assert line.partition(b" ")[2][:-1] == b"".join(found)
    assert "2030-01-01T00:00:00Z" == lines.since


def test_a_line_whose_end_is_missing_is_continued_later() -> None:
    """Another one of the same moment comes whole."""
    lines = LogLines()
    lines.begin()

    assert [] == lines.take(b"2030-01-01T00:00:00+01:00 one")
    assert [b"one"] == lines.flush()
    assert [] == lines.flush()
    lines.begin()
    again = b"2030-01-01T00:00:00+01:00 one, two\n2030-01-01T00:00:00+01:00 three\n"
    assert [b", two", b"three"] == lines.take(again)
    assert "2030-01-01T00:00:00+01:00" == lines.since


def test_what_has_no_stamp_is_shown_as_it_is() -> None:
    """As the kubelet's own words about a log that it cannot read."""
    lines = LogLines()
    lines.begin()

    assert [b"unable to retrieve", b""] == lines.take(b"unable to retrieve\n\n")
    lines.begin()
    assert [b"unable to retrieve"] == lines.take(b"unable to retrieve\n")
    assert "" == lines.since
