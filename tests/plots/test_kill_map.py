"""The map of the museum: which check catches which mutant."""

import re

from flashlib.plots.museum import kill_map, kill_words


def test_kill_map_has_a_bar_for_every_catch():
    killed = {"broken": ("published", "second"), "bent": ("first",)}
    topics = {"first": "one", "second": "two", "published": "two"}
    drawn = kill_map(killed, topics, {"broken": 4, "bent": 5}, "published")
    titles = re.findall(r"<title>(.*?)</title>", drawn)
    assert titles == [
        "published catches broken",
        "second catches broken",
        "first catches bent",
    ]
    widths = re.findall(r'</title><rect x="[\d.]+" y="[\d.]+" width="([\d.]+)"', drawn)
    # the column in front is twice as wide, and says in it who survives
    assert widths == ["11", "5", "5"]
    assert drawn.count(">–<") == 1
    assert re.findall(r">(ch\. \d)<", drawn) == ["ch. 4", "ch. 5"]
    label = re.search(r'aria-label="(.*?)"', drawn).group(1)
    assert label.startswith("A map of 2 mutants and 3 checks.")
    assert label.endswith("the check named published misses, 1 in all: bent.")


def test_kill_map_runs_a_line_under_what_a_mutant_is_held_to():
    killed = {"broken": ("first",), "bent": ("second",)}
    topics = {"first": "one", "second": "two"}
    held_to = {"broken": ("first",), "bent": ("second",)}
    chapters = {"broken": 4, "bent": 5}
    drawn = kill_map(killed, topics, chapters, held_to=held_to, cell=20)
    (_, end), (start, _) = (
        (float(a), float(b))
        for a, b in re.findall(r'<line x1="([\d.]+)"[^>]* x2="([\d.]+)"', drawn)[-2:]
    )
    assert end < start and "published" not in drawn


def test_words_count_who_is_missed_and_who_is_caught_by_one_check():
    killed = {"a": (), "b": ("first",), "c": ("second",), "d": ("first", "second")}
    words = kill_words(killed, {"first": "one", "second": "two"})
    assert words == (
        "A map of 4 mutants and 2 checks. Mutants that no check catches: 1. "
        "Mutants that one check alone catches: 2."
    )


def test_a_survivor_is_not_marked_where_no_check_stands_in_front():
    drawn = kill_map({"a": ()}, {"first": "one"}, {"a": 4})
    assert ">–<" not in drawn


def test_a_chapter_stands_beside_its_first_mutant_alone():
    chapters = {"a": 4, "b": 4, "c": 5}
    drawn = kill_map(dict.fromkeys(chapters, ()), {"first": "one"}, chapters)
    assert re.findall(r">(ch\. \d)<", drawn) == ["ch. 4", "ch. 5"]
