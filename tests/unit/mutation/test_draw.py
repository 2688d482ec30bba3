"""How many mutants each package gets, and in which order they are played."""

from pathlib import Path

from tests.mutation.__main__ import draw, quotas

LINES = "def f(x):\n" + "".join(f"    g(x < {number})\n" for number in range(100))


def test_small_packages_have_a_floor_and_the_others_share_by_size() -> None:
    assert {"a": 10, "b": 60, "c": 30} == quotas({"a": 1, "b": 600, "c": 300}, 100)
    assert {"a": 2, "b": 2} == quotas({"a": 1, "b": 1}, 4)


def test_a_first_part_of_the_drawn_has_all_packages_and_operators(tmp_path: Path) -> None:
    product = {}
    for name in ("a/one.py", "b/two.py"):
        product[name] = tmp_path / name.replace("/", "-")
        product[name].write_text(LINES)
    drawn = draw(product, ["a", "b"], 40, "7")
    assert drawn == draw(product, ["a", "b"], 40, "7")
    assert drawn != draw(product, ["a", "b"], 40, "8")
    assert ["a", "b"] * 4 == [package for package, _, _ in drawn[:8]]
    every = {mutant.operator for _, _, mutant in drawn}
    assert every == {mutant.operator for package, _, mutant in drawn[:8] if package == "a"}
    assert 40 == len({(file, mutant.line) for _, file, mutant in drawn})
