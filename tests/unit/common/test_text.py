"""Text from outside is made fit to be shown; lengths of time are printed as Go prints them."""

from urllib.parse import unquote_to_bytes

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from reporter.common.text import (
    clean,
    clean_pieces,
    go_duration,
    is_host,
    last_lines,
    percent_decoded,
)

INVISIBLE = "\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\u2061\u2062\u2063\u2064\ufeff"
INVISIBLE += "".join(map(chr, range(0xE0000, 0xE0080)))
any_text = st.text(st.characters(codec=None, exclude_categories=()))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param("all good", "all good", id="plain text stays"),
        pytest.param("Prüfung 完了 😀", "Prüfung 完了 😀", id="other scripts stay"),
        pytest.param("a\ud800b", "a\ufffdb", id="lone high surrogate"),
        pytest.param("a\udfffb", "a\ufffdb", id="lone low surrogate"),
        pytest.param("a\nb", "a b", id="line feed"),
        pytest.param("a\rb", "a b", id="carriage return"),
        pytest.param("a\r\nb", "a b", id="CR LF is one line break"),
        pytest.param("a\n\nb", "a  b", id="two line breaks are two spaces"),
        pytest.param("a\tb", "a b", id="tab"),
        pytest.param("a\vb\fc", "a b c", id="vertical tab and form feed"),
        pytest.param("a\x85b", "a b", id="next line"),
        pytest.param("a\u2028b\u2029c", "a b c", id="line and paragraph separator"),
        pytest.param("a\x00b\x07c\x1bd\x1fe", "abcde", id="C0 controls go"),
        pytest.param("a\x7fb\x80c\x9fd", "abcd", id="DEL and C1 controls go"),
        pytest.param("a\u202ab\u202ec\u202dd", "abcd", id="bidirectional embedding and override"),
        pytest.param("a\u2066b\u2069c", "abc", id="bidirectional isolates"),
        pytest.param("a\u200eb\u200fc\u061cd", "abcd", id="direction marks"),
        pytest.param("a\u00adb\u200bc\u200dd\ufeffe", "abcde", id="soft hyphen, zero width"),
        pytest.param("a\u2060b\u2064c", "abc", id="word joiner and invisible operators"),
        pytest.param("a\U000e0000b\U000e007fc", "abc", id="tags"),
        pytest.param(f"a{INVISIBLE}b", "ab", id="all that show nothing"),
        pytest.param(
            "a\u200ab\u2010c\u2065d\U000e0080e",
            "a\u200ab\u2010c\u2065d\U000e0080e",
            id="their neighbours stay",
        ),
        pytest.param("  a b  ", "a b", id="spaces are trimmed"),
        pytest.param("\u00a0\u3000\u2003a\u1680", "a", id="Unicode white space is trimmed"),
        pytest.param("\n\u202e \x00a\u2066\t", "a", id="trimmed after controls have gone"),
    ],
)
def test_text_is_treated_in_the_order_of_the_contract(given, expected):
    """Surrogates, breaks, controls, then white space at the ends."""
    assert expected == clean(given, 128, "default")


@pytest.mark.parametrize("empty", ["", " ", "\n\t", "\u00a0", "\x00\x1b", "\u200b", "\u2028"])
def test_text_that_comes_to_nothing_becomes_the_default(empty):
    """Empty is judged after cleaning, so invisible text is empty too."""
    assert "NoReasonProvided" == clean(empty, 128, "NoReasonProvided")


@pytest.mark.parametrize(
    ("given", "limit", "expected"),
    [
        pytest.param("a" * 128, 128, "a" * 128, id="exactly the limit"),
        pytest.param("a" * 129, 128, "a" * 128, id="one byte over"),
        pytest.param("ä" * 65, 128, "ä" * 64, id="bytes are counted, not characters"),
        pytest.param("a" + "ä" * 64, 128, "a" + "ä" * 63, id="never half a character"),
        pytest.param("abc😀", 6, "abc", id="four-byte character over the edge"),
        pytest.param("ab cd", 3, "ab", id="trimmed again after the cut"),
        pytest.param("  ab", 2, "ab", id="trimmed before the cut"),
        pytest.param("a" + " " * 200 + "b", 128, "a", id="white space up to the cut and beyond"),
    ],
)
def test_long_text_is_cut_to_the_byte_limit(given, limit, expected):
    """Over-long text is cut on a code-point boundary, never refused."""
    assert expected == clean(given, limit)


@given(any_text, st.integers(min_value=4, max_value=64))
def test_cut_text_is_valid_utf8_within_the_limit(text, limit):
    """Whatever comes in, what goes out can be encoded and fits."""
    assert len(clean(text, limit).encode()) <= limit


@given(any_text, st.integers(min_value=4, max_value=64))
def test_cleaning_twice_changes_nothing(text, limit):
    """Cleaning is idempotent, so every layer may clean again."""
    once = clean(text, limit, "d")
    assert once == clean(once, limit, "d")


@given(any_text)
def test_clean_text_has_no_controls_and_no_white_space_at_the_ends(text):
    """Nothing is left that could break a line, a terminal or an encoder."""
    cleaned = clean(text, 1024)
    assert cleaned == cleaned.strip()
    assert not any(c < " " or "\x7f" <= c <= "\x9f" or "\ud800" <= c <= "\udfff" for c in cleaned)


@given(st.lists(any_text), st.integers(min_value=4, max_value=64))
@example(["a\r", "b"], 8)
def test_text_in_pieces_is_cleaned_like_the_whole(pieces, limit):
    """Where text is split does not matter, unless a CR LF is split."""
    pieces = [piece.removesuffix("\r") for piece in pieces]
    assert clean("".join(pieces), limit, "d") == clean_pieces(pieces, limit, "d")


def test_no_more_pieces_are_taken_than_the_limit_needs():
    """A megabyte behind the limit is never built."""
    pieces = iter(["ab", "cd", "ef"])
    assert "abc" == clean_pieces(pieces, 3)
    assert ["ef"] == list(pieces)


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (0, "0s"),
        (12, "12s"),
        (59, "59s"),
        (60, "1m0s"),
        (61, "1m1s"),
        (300, "5m0s"),
        (3599, "59m59s"),
        (3600, "1h0m0s"),
        (3661, "1h1m1s"),
        (90000, "25h0m0s"),
    ],
)
def test_durations_look_like_gos(seconds, expected):
    """The wording of the timeout is compatible with the Go reporter's."""
    assert expected == go_duration(seconds)


@given(
    st.lists(st.sampled_from([b"%", b"%2", b"%2f", b"%2F", b"%zz", b"a", b"\xff"])).map(b"".join)
)
def test_percent_decoding_is_the_standard_librarys(data):
    """Escapes become bytes once; what is none stays as it is."""
    assert unquote_to_bytes(data) == percent_decoded(data)


@pytest.mark.parametrize(
    "text", ["a", "a.b", "a.b.", "x" * 63, "10.0.0.7", "fd00::7", "bücher.example", "a_b", "-a"]
)
def test_a_host(text: str) -> None:
    assert is_host(text)


@pytest.mark.parametrize(
    "text", ["", ".", "..", "a..b", ".a", "x" * 64, "é..b", "ü" * 60, ".".join(["x" * 50] * 5)]
)
def test_what_no_name_service_could_know(text: str) -> None:
    assert not is_host(text)


FRAMES = """  File "check.py", line 7, in <module>
    main()
    ~~~~^^
  File "check.py", line 3, in main
    raise ValueError("no quota")
  [Previous line repeated 996 more times]
"""
BEGIN = "Traceback (most recent call last):\n"


@pytest.mark.parametrize(
    ("printed", "expected"),
    [
        ("", []),
        (" \n\n", []),
        ("a\nb\r\n\nc\n", ["b", "c"]),
        (f"a\n{BEGIN}{FRAMES}ValueError: no quota\n", ["a", "ValueError: no quota"]),
        (f"{FRAMES}ValueError: no quota\nbye", ["ValueError: no quota", "bye"]),
        (f"{BEGIN}{FRAMES}", []),
        ("a\n    b: indented\n", ["a", "b: indented"]),
        (f"short\n{'x' * 90}\n", ["x" * 80]),
    ],
    ids=["nothing", "blank", "lines", "traceback", "cut traceback", "frames", "YAML", "no room"],
)
def test_the_last_lines_of_what_was_printed(printed: str, expected: list[str]) -> None:
    assert expected == last_lines(printed, 2, 80)
