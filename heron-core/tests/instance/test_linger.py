import pytest

from heron.instance.pacing import FlushPacer, Linger


def backlogged(most_s: float = 0.05) -> Linger:
    """Of a task whose input was last empty at 100 s."""
    linger = Linger(0.01)
    linger.grow_to(most_s)
    linger.ran_dry(100.0)
    return linger


def test_the_linger_grows_with_the_backlog_up_to_its_most() -> None:
    """A tuple that has waited for 0.1 s loses little if it waits for others for a quarter of that."""
    found = [backlogged().at(100.0 + age_s) for age_s in (0.0, 0.04, 0.1, 0.2, 10.0)]
    assert found == pytest.approx([0.01, 0.01, 0.025, 0.05, 0.05])


def test_an_input_that_runs_empty_ends_the_longer_linger() -> None:
    linger = backlogged()
    linger.ran_dry(110.0)
    assert linger.at(110.0) == 0.01


def test_without_a_backlog_to_measure_the_usual_linger_holds() -> None:
    """A spout has no input; a bolt has just started; the setting is longer than what the linger may grow to."""
    fresh = Linger(0.01)
    fresh.ran_dry(0.0)
    assert fresh.at(1000.0) == 0.01
    started = Linger(0.01)
    started.grow_to(0.05)
    assert started.at(1000.0) == 0.01
    long = Linger(0.2)
    long.grow_to(0.05)
    long.ran_dry(0.0)
    assert long.at(1000.0) == 0.2


def test_a_flush_is_due_when_the_linger_of_its_time_is_over() -> None:
    pacer = FlushPacer(backlogged())
    pacer.flushed(100.02)
    assert pacer.linger_is_over(100.032)
    pacer.flushed(101.0)
    assert not pacer.linger_is_over(101.04)
    assert pacer.linger_is_over(101.06)
