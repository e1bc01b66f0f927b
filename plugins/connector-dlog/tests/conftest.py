"""What tests with a real DistributedLog share."""

from __future__ import annotations

import pytest

from heron_connector_dlog import LogNamespace
from heron_testing_servers.distributedlog import DistributedLogCluster
from heron_testing_servers.log_streams import LogStreams


@pytest.fixture
def streams(distributedlog: DistributedLogCluster) -> LogStreams:
    """The other side."""
    distributedlog.start()
    return distributedlog.streams


@pytest.fixture
def namespace(distributedlog: DistributedLogCluster) -> LogNamespace:
    """Two of the three bookies have each record, so that one may die."""
    quorum = {"bkcEnsembleSize": 2, "bkcWriteQuorumSize": 2, "bkcAckQuorumSize": 2}
    return LogNamespace(distributedlog.uri, f"{distributedlog.jars}/*", quorum)
