"""Columns as wide as a terminal shows them."""

import io

import pytest

from reporter.cli.output import ago, size
from reporter.cli.table import cut, table, terminal_columns, terminal_lines, wants_colour, width


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("", 0),
        ("node1", 5),
        ("Ünïcode", 7),
        ("U\u0308", 1),
        ("节点", 4),
        ("\uff46\uff4c", 4),
        ("한국", 4),
        ("👍", 2),
        ("❤\ufe0f", 2),
        ("a\u200bb", 2),
        ("é", 1),
        ("Ω", 1),
    ],
)
def test_the_width_of_a_text(text, columns):
    """East Asian characters and emoji take two columns, combining ones none."""
    assert columns == width(text)


@pytest.mark.parametrize(
    ("text", "columns", "expected"),
    [
        ("abc", 3, "abc"),
        ("abcd", 3, "ab…"),
        ("节点一", 4, "节…"),
        ("节点一", 5, "节点…"),
        ("abc", 1, "…"),
        ("abc", 0, ""),
    ],
)
def test_a_text_is_cut_between_characters(text, columns, expected):
    """Never in the middle of a wide one, never wider than wished."""
    assert expected == cut(text, columns)
    assert columns >= width(cut(text, columns))


def test_columns_stand_below_each_other():
    """Whatever alphabet; an empty cell is a dash; no blanks at the end of a line."""
    lines = table(("A", "NAME"), [("节点", "x"), ("y", ""), ("ü", "z")])

    assert ["A     NAME", "节点  x", "y     -", "ü     z"] == lines


def test_a_line_fits_the_terminal():
    """The columns at the end are cut; a terminal too narrow shows what it can."""
    lines = table(("A", "B"), [("aaaa", "bbbbbbbb")], columns=10)
    assert ["A     B", "aaaa  bbb…"] == lines
    assert 3 >= max(map(width, table(("A", "B"), [("aaaa", "bbbb")], columns=3)))


def test_control_characters_never_reach_a_terminal():
    """A cell is one line of text."""
    assert "a b31mc" == table(("A",), [("a\nb\x1b31m\x9bc",)])[1]


def test_only_whole_cells_are_coloured():
    """And the header is not; the colour takes no columns."""
    lines = table(("failed", "B"), [("failed", "failed too")], colours={"failed": "31"})

    assert ["failed  B", "\x1b[31mfailed\x1b[0m  failed too"] == lines


def test_2000_rows_take_no_time():
    """They are shown at once: linear, not more."""
    rows = [(f"plugin{at}", "节点", "complete", "x" * 100) for at in range(2000)]

    assert 2001 == len(table(("A", "B", "C", "D"), rows, columns=80))


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, ""),
        (-3, "0s"),
        (0, "0s"),
        (119.9, "119s"),
        (120, "2m"),
        (7199, "119m"),
        (7200, "2h"),
        (7260, "2h1m"),
        (172_800, "2d"),
    ],
)
def test_an_age(seconds, text):
    """Short, as people say it."""
    assert text == ago(seconds)


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (None, ""),
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (5 * 2**30, "5.0 GiB"),
        (2**50, "1024.0 TiB"),
    ],
)
def test_a_size(count, text):
    """In binary units."""
    assert text == size(count)


class Terminal(io.StringIO):
    """A stream that says it is one."""

    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("out", "refused", "environ", "expected"),
    [
        (Terminal(), False, {}, True),
        (Terminal(), False, {"NO_COLOR": ""}, True),
        (Terminal(), False, {"NO_COLOR": "1"}, False),
        (Terminal(), False, {"TERM": "dumb"}, False),
        (Terminal(), True, {}, False),
        (io.StringIO(), False, {}, False),
    ],
)
def test_colours_are_for_terminals(out, refused, environ, expected):
    """Unless somebody does not want them."""
    assert expected is wants_colour(out, refused=refused, environ=environ)


def test_a_stream_without_a_terminal_has_no_width():
    """Whatever kind of stream it is."""
    assert None is terminal_columns(io.StringIO())
    assert None is terminal_columns(Terminal())
    assert 24 == terminal_lines(Terminal())
