"""What a log says again, and what it does not."""

from bolide.machines.said import LINES_MAX, LINES_OF_ONE_MAX, PERIOD_MS, Said


def test_the_same_thing_is_said_again_after_a_while() -> None:
    said = Said()
    assert [said.is_news(now_ms, "a") for now_ms in (0, 1, PERIOD_MS - 1)] == [True, False, False]
    assert said.is_news(PERIOD_MS, "a")


def test_who_makes_up_ever_new_things_is_not_quoted_for_ever() -> None:
    said = Said()
    assert sum(said.is_news(0, number) for number in range(10_000)) == LINES_MAX
    assert said.is_news(PERIOD_MS, "later")


def test_one_who_makes_up_things_leaves_lines_for_what_others_have_to_say() -> None:
    said = Said()
    assert sum(said.is_news(0, number, by="a stranger") for number in range(10_000)) == LINES_OF_ONE_MAX
    assert said.is_news(0, "important", by="another")
    assert said.is_news(PERIOD_MS, "later", by="a stranger")
