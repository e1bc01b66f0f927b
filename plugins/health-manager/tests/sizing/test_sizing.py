"""The arithmetic of DS2: the loads, the parallelism in one step, bounds, and what cannot be known."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heron.spi.health_values import ComponentShape, Subscription, TopologyShape
from heron_health_manager.sizing.sizing import ComponentRates, Utilisation, size

FULL = Utilisation(1.0, 1.0)


def shape_of(*components: ComponentShape) -> TopologyShape:
    return TopologyShape("words", components)


def part(name: str, tasks: int, *inputs: str, least: int = 1, most: int | None = None) -> ComponentShape:
    """A component that reads the default streams of others; its tasks divide them."""
    subscriptions = tuple(Subscription(each, "default") for each in inputs)
    places = dict.fromkeys(range(1, tasks + 1), 1)
    return ComponentShape(name, "bolt" if inputs else "spout", places, subscriptions, least, most)


def rates(true_rate: float, ratio: float = 1.0) -> ComponentRates:
    return ComponentRates(true_rate, {"default": ratio}, scales=False)


def bolt_rates(true_rate: float, ratio: float = 1.0) -> ComponentRates:
    return ComponentRates(true_rate, {"default": ratio})


WORD_COUNT = shape_of(part("source", 1), part("split", 1, "source"), part("count", 1, "split"))
MEASURED = {"source": rates(1e6), "split": bolt_rates(200.0, 20.0), "count": bolt_rates(1500.0, 0.0)}


def test_sizes_all_components_in_one_pass() -> None:
    """1,000 lines/s need 5 splitters; their 20,000 words/s need 14 counters, though only 200 lines/s arrive now."""
    sizing = size(WORD_COUNT, MEASURED, {"source": 1000.0}, FULL)
    assert sizing.changes() == {"split": 5, "count": 14}
    count = sizing.need("count")
    assert count is not None
    assert (count.load, count.limit) == (20_000.0, "")
    assert count.used == pytest.approx(20_000 / 1500)
    assert sizing.served == {"source": 1.0}


def test_adds_the_loads_of_all_inputs() -> None:
    """A join gets both streams; one of them comes by two ways."""
    diamond = shape_of(part("a", 1), part("b", 1), part("left", 1, "a"), part("join", 1, "left", "a", "b"))
    measured = {"a": rates(1e6), "b": rates(1e6), "left": bolt_rates(100.0, 3.0), "join": bolt_rates(100.0)}
    sizing = size(diamond, measured, {"a": 100.0, "b": 200.0}, FULL)
    assert sizing.changes() == {"join": 6}


def test_tuples_for_every_task_take_a_part_of_each_task() -> None:
    """A task can do 100/s, of which 60/s are the rules that every task gets: 40/s are left of the 400/s."""
    detect = replace(
        part("detect", 1, "events"), inputs=(Subscription("events", "default"), Subscription("rules", "default", False))
    )
    shape = shape_of(part("events", 1), part("rules", 1), detect)
    measured = {"events": rates(1e6), "rules": rates(1e6), "detect": bolt_rates(100.0)}
    assert size(shape, measured, {"events": 400.0, "rules": 60.0}, FULL).changes() == {"detect": 10}
    too_much = size(shape, measured, {"events": 400.0, "rules": 120.0}, FULL)
    assert too_much.changes() == {}
    need = too_much.need("detect")
    assert need is not None
    assert "more tasks do not help" in need.limit


def test_more_tasks_do_not_help_when_each_gets_everything() -> None:
    """It is said, instead of a plan that changes nothing for the better."""
    show = replace(part("show", 2, "source"), inputs=(Subscription("source", "default", False),))
    shape = shape_of(part("source", 1), show)
    sizing = size(shape, {"source": rates(1e6), "show": bolt_rates(10.0)}, {"source": 40.0}, FULL)
    assert sizing.changes() == {}
    assert sizing.served == {"source": 0.25}
    assert [each.limit for each in sizing.needs] == ["", "more tasks do not help: each task gets every tuple"]


def test_a_bound_limits_the_sources_and_so_the_other_components() -> None:
    """With 2 of 5 splitters, 40 % of the lines arrive: 8,000 words/s need 6 counters, not 14."""
    bounded = shape_of(part("source", 1), part("split", 1, "source", most=2), part("count", 1, "split"))
    sizing = size(bounded, MEASURED, {"source": 1000.0}, FULL)
    assert sizing.changes() == {"split": 2, "count": 6}
    assert sizing.served == {"source": 0.4}
    split = sizing.need("split")
    assert split is not None
    assert split.limit == "5 tasks are needed, and at most 2 are possible"


def test_a_source_that_does_not_feed_the_bound_keeps_its_target() -> None:
    """Back pressure throttles only the spouts that feed the culprit."""
    shape = shape_of(part("a", 1), part("b", 1), part("x", 1, "a", most=1), part("y", 1, "b"))
    measured = {"a": rates(1e6), "b": rates(1e6), "x": bolt_rates(10.0), "y": bolt_rates(10.0)}
    sizing = size(shape, measured, {"a": 100.0, "b": 100.0}, FULL)
    assert sizing.served == {"a": 0.1, "b": 1.0}
    assert sizing.changes() == {"y": 10}


def test_a_minimum_is_kept() -> None:
    """The author may want spare tasks."""
    shape = shape_of(part("source", 1), part("split", 5, "source", least=3))
    sizing = size(shape, {"source": rates(1e6), "split": bolt_rates(1e4)}, {"source": 10.0}, FULL)
    assert sizing.changes() == {"split": 3}


def test_between_the_two_utilisations_nothing_changes() -> None:
    """At 90 % of the time, 0.85 is exceeded and 0.97 is not."""
    shape = shape_of(part("source", 1), part("split", 10, "source"))
    measured = {"source": rates(1e6), "split": bolt_rates(100.0)}
    assert size(shape, measured, {"source": 900.0}, Utilisation()).changes() == {}
    assert size(shape, measured, {"source": 980.0}, Utilisation()).changes() == {"split": 12}
    assert size(shape, measured, {"source": 765.0}, Utilisation()).changes() == {"split": 9}


@pytest.mark.parametrize(
    ("missing", "reasons"),
    [
        ("source", {"source": "the rate of its source is not known", "split": "source", "count": "split"}),
        ("split", {"split": "it has executed no tuples", "count": "split"}),
    ],
)
def test_what_is_not_measured_keeps_its_tasks(missing: str, reasons: dict[str, str]) -> None:
    """Load that is not known is not zero: without this, the components behind would be scaled down."""
    measured = {name: each for name, each in MEASURED.items() if name != missing}
    targets = {} if missing == "source" else {"source": 1000.0}
    sizing = size(WORD_COUNT, measured, targets, FULL)
    behind = "{} is not known, which it reads from"
    assert sizing.unknown == {
        name: reason if " " in reason else behind.format(reason) for name, reason in reasons.items()
    }
    assert sizing.changes() == {}


def test_a_spout_grows_only_where_more_tasks_make_it_faster() -> None:
    """Most sources have a rate that tasks do not change."""
    shape = shape_of(part("source", 2))
    measured = ComponentRates(100.0, {}, scales=False)
    assert size(shape, {"source": measured}, {"source": 1000.0}, FULL).changes() == {}
    grows = {"source": replace(measured, scales=True)}
    assert size(shape, grows, {"source": 1000.0}, FULL).changes() == {"source": 10}


@pytest.mark.parametrize(("wanted", "most"), [(0.0, 0.9), (0.9, 0.8), (0.9, 1.1), (float("nan"), 1.0)])
def test_refuses_a_utilisation_out_of_range(wanted: float, most: float) -> None:
    """A wanted share above the most would change the plan in every round."""
    with pytest.raises(ValueError, match="utilisation"):
        Utilisation(wanted, most)


@given(
    st.lists(st.tuples(st.floats(1e-3, 1e6), st.floats(0.0, 50.0), st.integers(1, 40)), min_size=1, max_size=6),
    st.floats(0.0, 1e6),
    st.integers(1, 5),
    st.none() | st.integers(0, 30),
)
def test_no_plan_is_outside_its_bounds_and_none_wastes_a_task(
    bolts: list[tuple[float, float, int]], target: float, least: int, spread: int | None
) -> None:
    """In a chain: within the bounds, enough or limited, and one task less would not be enough."""
    most = None if spread is None else least + spread
    names = [f"b{number}" for number in range(len(bolts))]
    components = [part("source", 1)]
    for number, (name, (_, _, tasks)) in enumerate(zip(names, bolts, strict=True)):
        bounded = min(max(tasks, least), most) if most is not None else max(tasks, least)
        components.append(part(name, bounded, names[number - 1] if number else "source", least=least, most=most))
    measured = {name: bolt_rates(rate, ratio) for name, (rate, ratio, _) in zip(names, bolts, strict=True)}
    sizing = size(shape_of(*components), {"source": rates(1e9), **measured}, {"source": target}, FULL)
    assert not sizing.unknown
    assert 0.0 < sizing.served["source"] <= 1.0
    for need in sizing.needs[1:]:
        rate = measured[need.component].true_rate
        assert least <= need.needed
        assert most is None or need.needed <= most
        assert need.load / need.needed <= rate * (1 + 1e-6)
        if need.needed > least and not need.limit:
            assert need.load / (need.needed - 1) > rate * (1 - 1e-6)
