"""Counters and the rates that follow from them."""

from bolide.machines.traffic import SAMPLES_MAX, Rates, Traffic


def test_without_a_past_there_is_no_rate() -> None:
    traffic = Traffic()
    traffic.stored = 100
    assert traffic.rates(5_000) == [Rates()] * 3
    traffic.sample(5_000)
    assert traffic.rates(5_000) == [Rates()] * 3


def test_each_span_has_its_own_rate() -> None:
    """One message a second for ten minutes, then a hundred a second for ten seconds."""
    traffic = Traffic()
    for second in range(600):
        traffic.sample(second * 1_000)
        traffic.stored += 1 if second < 590 else 100
    short, middle, long = traffic.rates(600_000)
    assert short.stored == 100
    assert middle.stored == (50 * 1 + 10 * 100) / 60
    assert long.stored == (590 * 1 + 10 * 100) / 600


def test_found_missed_and_transferred_are_told_apart() -> None:
    traffic = Traffic()
    traffic.sample(0)
    traffic.found, traffic.missed, traffic.transferred = 10, 20, 320
    assert traffic.rates(10_000)[0] == Rates(0.0, 1.0, 2.0, 32.0)


def test_the_past_is_bounded() -> None:
    traffic = Traffic()
    for second in range(SAMPLES_MAX * 2):
        traffic.sample(second * 1_000)
    assert len(traffic._samples) == SAMPLES_MAX
