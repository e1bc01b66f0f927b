"""Whether containers fit into a cluster, and the messages when they do not."""

from __future__ import annotations

import random
from itertools import product

import pytest

from heron.errors import SchedulerError
from heron_scheduler_spark.application.cluster_check import WorkerSize, check_largest, check_size, fits
from heron_scheduler_spark.settings.container_request import ContainerRequest
from heron_scheduler_spark.settings.options import SparkOptions
from heron_scheduler_spark.settings.spark_settings import executor_requests

SMALL = ContainerRequest(1, 512, 512)
LARGE = ContainerRequest(5, 6144, 512)


def test_a_cluster_that_just_holds_the_containers_is_large_enough() -> None:
    """The large containers go where they just fit."""
    check_size([SMALL, LARGE, SMALL], [WorkerSize("a", 6, 8192), WorkerSize("b", 1, 1024)])


def test_a_cluster_that_is_too_small_is_refused_with_the_numbers() -> None:
    """The sum may suffice while no worker has room for one of the containers."""
    with pytest.raises(SchedulerError) as caught:
        check_size([SMALL, LARGE], [WorkerSize("a", 4, 8192), WorkerSize("b", 4, 8192)])
    for words in ("2 containers need 6 cores and 7680 MiB", "5 cores and 6656 MiB", "a 4 cores and 8192 MiB"):
        assert words in str(caught.value)
    with pytest.raises(SchedulerError, match="no worker"):
        check_size([SMALL], [])


def test_a_container_leaves_the_only_fitting_worker_to_another() -> None:
    """The container with more cores fits on both workers, but the other needs the worker with much memory."""
    assert fits([(2, 1024), (1, 4096)], [(2, 5120), (3, 1024)])


def test_the_answer_is_that_of_an_exhaustive_search() -> None:
    """Checked on small random clusters."""
    random_ = random.Random(7)
    answers = set()
    for _ in range(300):
        sizes = [(random_.randint(1, 3), random_.randint(1, 3)) for _ in range(random_.randint(1, 4))]
        rooms = [(random_.randint(1, 5), random_.randint(1, 5)) for _ in range(random_.randint(1, 3))]
        assert fits(sizes, rooms) is _by_trying(sizes, rooms), f"{sizes} in {rooms}"
        answers.add(fits(sizes, rooms))
    assert answers == {True, False}


@pytest.mark.timeout(10)
def test_the_search_of_a_large_cluster_is_short() -> None:
    """When the search gives up, the job is accepted."""
    assert fits([(3, 2), (2, 3)] * 90, [(7, 8)] * 65)
    assert fits([(1, 1)] * 5000, [(8, 8)] * 1000)
    assert not fits([(1, 1)] * 5000 + [(9, 1)], [(8, 8)] * 1000)


@pytest.mark.parametrize("written", ["false", "False", " FALSE "])
def test_executors_of_equal_size_are_checked_with_that_size(written: str) -> None:
    """Each has the size of the largest container: two of five cores do not fit into six."""
    fixed = SparkOptions(conf={"spark.dynamicAllocation.enabled": written})
    requested = executor_requests(fixed, [SMALL, LARGE])
    assert requested == [LARGE, LARGE]
    with pytest.raises(SchedulerError, match="need 10 cores"):
        check_size(requested, [WorkerSize("a", 6, 65536)])
    check_size(executor_requests(SparkOptions(), [SMALL, LARGE]), [WorkerSize("a", 6, 65536)])


@pytest.mark.parametrize("most", [WorkerSize("yarn", 4, 8192), WorkerSize("yarn", 32, 6000)])
def test_a_container_larger_than_yarns_largest_is_refused_with_the_numbers(most: WorkerSize) -> None:
    """The job would wait for ever."""
    message = rf"5 cores and 6656 MiB.*at most {most.cores} cores and {most.memory_mb} MiB"
    with pytest.raises(SchedulerError, match=message):
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
