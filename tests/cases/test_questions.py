"""Cases that a question scenario answers: that very scenario, under the case's name.

What is asked, predicted and asserted stands in ``scenarios/``; each takes a minute or more.
"""

from __future__ import annotations

import pytest

from scenarios.test_last_pod import (
    test_it_does_for_as_long_as_it_is_ready as test_c37_without_a_replacement_it_serves_while_ready,
)
from scenarios.test_min_sync_period import (
    test_the_window_grows_with_it as test_c42_the_failing_window_grows_with_the_period,
)
from scenarios.test_pre_stop import (
    test_a_sleep_longer_than_a_sync_loses_nobody as test_c11_a_sleep_ends_the_refusals_of_a_rollout,
)
from scenarios.test_readiness import (
    test_with_one_replica_it_refuses_new_connections as test_c37_the_only_pod_unready_is_refused,
)
from scenarios.test_readiness import (
    test_with_two_replicas_it_changes_nothing_for_tcp as test_c37_with_another_replica_nobody_is,
)
from scenarios.test_real_servers import ended  # the fixture of those that follow
from scenarios.test_real_servers import (
    test_a_sync_worker_finishes_one_request_and_resets_the_rest as test_c15_gunicorn_itself_does,
)
from scenarios.test_real_servers import (
    test_nginx_finishes_what_it_began_on_quit as test_c23_nginx_is_sent_quit_and_not_term,
)
from scenarios.test_real_servers import (
    test_under_a_shell_python_serves_until_it_is_killed as test_c20_requests_keep_arriving,
)
from scenarios.test_versions import (
    test_only_the_new_clusterip_lets_go as test_c04_the_fix_is_for_clusterips_and_not_for_nodeports,
)

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

__all__ = [
    "ended",
    "test_c04_the_fix_is_for_clusterips_and_not_for_nodeports",
    "test_c11_a_sleep_ends_the_refusals_of_a_rollout",
    "test_c15_gunicorn_itself_does",
    "test_c20_requests_keep_arriving",
    "test_c23_nginx_is_sent_quit_and_not_term",
    "test_c37_the_only_pod_unready_is_refused",
    "test_c37_with_another_replica_nobody_is",
    "test_c37_without_a_replacement_it_serves_while_ready",
    "test_c42_the_failing_window_grows_with_the_period",
]
