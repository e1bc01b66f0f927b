"""Whether containers find room in a cluster, and what is said when they do not."""

from __future__ import annotations

import random
from itertools import product

import pytest

from heron.errors import SchedulerError
from heron_scheduler_spark.cluster_size import WorkerSize, check_largest, check_size
from heron_scheduler_spark.container_request import ContainerRequest
from heron_scheduler_spark.options import SparkOptions
from heron_scheduler_spark.placement import fits
from heron_scheduler_spark.spark_settings import executors_asked_for

SMALL = ContainerRequest(1, 512, 512)
LARGE = ContainerRequest(5, 6144, 512)


def test_a_cluster_that_just_holds_the_containers_is_large_enough() -> None:
    """The large ones go where they just fit."""
    check_size([SMALL, LARGE, SMALL], [WorkerSize("a", 6, 8192), WorkerSize("b", 1, 1024)])


def test_a_cluster_that_is_too_small_is_refused_with_the_numbers() -> None:
    """Enough in all is not enough where no worker has room for one of them."""
    with pytest.raises(SchedulerError) as caught:
        check_size([SMALL, LARGE], [WorkerSize("a", 4, 8192), WorkerSize("b", 4, 8192)])
    for words in ("2 containers need 6 cores and 7680 MiB", "5 cores and 6656 MiB", "a 4 cores and 8192 MiB"):
        assert words in str(caught.value)
    with pytest.raises(SchedulerError, match="no worker"):
        check_size([SMALL], [])


def test_many_cores_and_much_memory_may_be_of_different_containers() -> None:
    """The one with more cores must leave the worker with much memory to the other, although it fits there."""
    assert fits([(2, 1024), (1, 4096)], [(2, 5120), (3, 1024)])


def test_all_ways_are_tried() -> None:
    """Against every assignment there is, for small clusters of any shape."""
    random_ = random.Random(7)
    answers = set()
    for _ in range(300):
        sizes = [(random_.randint(1, 3), random_.randint(1, 3)) for _ in range(random_.randint(1, 4))]
        rooms = [(random_.randint(1, 5), random_.randint(1, 5)) for _ in range(random_.randint(1, 3))]
        assert fits(sizes, rooms) is _by_trying(sizes, rooms), f"{sizes} in {rooms}"
        answers.add(fits(sizes, rooms))
    assert answers == {True, False}


@pytest.mark.timeout(10)
def test_a_large_cluster_is_not_searched_for_long() -> None:
    """Nor is a job refused there on a guess."""
    assert fits([(3, 2), (2, 3)] * 90, [(7, 8)] * 65)
    assert fits([(1, 1)] * 5000, [(8, 8)] * 1000)
    assert not fits([(1, 1)] * 5000 + [(9, 1)], [(8, 8)] * 1000)


@pytest.mark.parametrize("written", ["false", "False", " FALSE "])
def test_executors_that_are_all_alike_are_checked_as_such(written: str) -> None:
    """Each has the size of the largest then: five cores twice are not in six."""
    fixed = SparkOptions(conf={"spark.dynamicAllocation.enabled": written})
    asked = executors_asked_for(fixed, [SMALL, LARGE])
    assert asked == [LARGE, LARGE]
    with pytest.raises(SchedulerError, match="need 10 cores"):
        check_size(asked, [WorkerSize("a", 6, 65536)])
    check_size(executors_asked_for(SparkOptions(), [SMALL, LARGE]), [WorkerSize("a", 6, 65536)])


@pytest.mark.parametrize("most", [WorkerSize("yarn", 4, 8192), WorkerSize("yarn", 32, 6000)])
def test_what_yarn_never_gives_is_refused_with_the_numbers(most: WorkerSize) -> None:
    """It would wait for ever."""
    said = rf"5 cores and 6656 MiB.*at most {most.cores} cores and {most.memory_mb} MiB"
    with pytest.raises(SchedulerError, match=said):
        check_largest([SMALL, LARGE], most)
    check_largest([SMALL], most)


def _by_trying(sizes: list[tuple[int, int]], rooms: list[tuple[int, int]]) -> bool:
    for places in product(range(len(rooms)), repeat=len(sizes)):
        free = [list(room) for room in rooms]
        for size, place in zip(sizes, places, strict=True):
            free[place] = [free[place][0] - size[0], free[place][1] - size[1]]
        if min(map(min, free)) >= 0:
            return True
    return False
