"""What the instrument writes down: who saw what, about whom, and when.

An observation is a fact of the IO side and never a judgement. The vocabulary is
closed, so that a recording made today can be judged by every later version.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from pytest_drainwatch.core.interval import Interval


class Source(StrEnum):
    """Who made the observation."""

    ORCHESTRATOR = "orchestrator"  # the conductor's own actions
    CLIENT = "client"  # the flow agent
    K8S = "k8s"  # a watch of the API server
    NODE = "node"  # the node's network stack
    PROBE = "probe"  # the workload's lifecycle log
    BALANCER = "balancer"  # the load balancer in front of the nodes


class Event(StrEnum):
    """What was observed. The comment names the fields of ``data``."""

    # --- orchestrator: its own actions -------------------------------------------------
    WORKLOAD_APPLIED = "workload_applied"
    WORKLOAD_FOUND = "workload_found"  # of the user's: namespace, kind, name, selector, replicas,
    #                                pod: {grace_period_s, containers: [{name, pre_stop,
    #                                stop_signal, readiness, ports}]}, service, service_type, port,
    #                                external_traffic_policy, session_affinity,
    #                                publish_not_ready_addresses
    WAY_CHOSEN = "way_chosen"  # address, tcp_port, udp_port, sources, note: what was changed for
    #                            it, node: whose NodePort it is; null: not known, or nobody's
    PREFLIGHT_CHECK = "preflight_check"  # name, passed, invariant, observed, expected, look_at
    PREFLIGHT_PASSED = "preflight_passed"
    SETTLE_COMPLETE = "settle_complete"
    TRIGGER_REQUESTED = "trigger_requested"  # at = [before the call, after it]; attempt, verb
    TRIGGER_BLOCKED = "trigger_blocked"  # verb, attempt, status, retry_after_s, causes, message
    TRIGGER_ACCEPTED = "trigger_accepted"  # attempt, verb, targets: [pod uid], pods: [name],
    #                                  calls: [[sent_ns, returned_ns], …]; verb none: nothing was
    #                                  asked, targets is the pod of the flows; container-kill:
    #                                  containers: {pod uid: [name, restarts of before]}
    TRIGGER_CONTINUED = "trigger_continued"  # what, problem: an eviction that was asked for after
    #                                  the trigger, accepted or (problem) without an answer
    NODE_CORDONED = "node_cordoned"  # node, already: it was before; at = [sent, returned]
    NODE_EVACUATED = "node_evacuated"  # others: pods beside the workload's that were evicted too,
    #                                  left: that a disruption budget held back to the end
    CLUSTER_START_BESIDE = "cluster_start_beside"  # starts: clusters that started on the machine
    #                                  the trial measured on, the first time that any was seen;
    #                                  at = [the look before, this look]
    ALL_FLOWS_TERMINAL = "all_flows_terminal"
    OBSERVATION_WINDOW_CLOSED = "observation_window_closed"
    VOID = "void"  # reason, phase
    INTERRUPTED = "interrupted"  # phase, signal
    POD_LOG = "pod_log"  # pod, tail: last lines; only for a void trial
    CLUSTER_EVENT = "cluster_event"  # reason, type, message, count; subject = the pod's uid, with
    #                                  container, first, last (wall clock); void: subject Kind/name
    CLUSTER_EVENTS_READ = "cluster_events_read"  # count, problem: why they are not all there
    LOG_ENDED = "log_ended"  # subject = pod uid; container, complete, problem: a probe's log

    # --- client: one flow's life; subject is the flow's id -----------------------------
    FLOW_CONNECTED = "flow_connected"  # proto, local, remote, attempts, failed: {errno: n},
    #                                    one_way, note: what its datagrams are signed with;
    #                                    anonymous: who answers does not say who he is, so his name
    #                                    is empty; held: nothing is said on it
    FLOW_CONNECT_FAILED = "flow_connect_failed"  # proto, remote, attempts, errno, failed
    FLOW_RESPONDER = "flow_responder"  # responder, clock, seq, previous, last_seq
    FLOW_ANSWERED = "flow_answered"  # responder, first_seq, last_seq, count, last_sent_ns,
    #                                  rtt_min_ns, rtt_max_ns, late, duplicates, reordered,
    #                                  lost, lost_first_seq, lost_last_seq: single losses
    FLOW_UNANSWERED = "flow_unanswered"  # first_seq, last_seq, count, first_sent_ns, last_sent_ns
    FLOW_SENT = "flow_sent"  # one-way: first_seq, last_seq, count, first_sent_ns, last_sent_ns;
    #                          send n of it lies at first_sent_ns + n * period_ns + [early_ns,
    #                          late_ns]
    FLOW_ANNOUNCED = "flow_announced"  # seq, reason
    FLOW_FIN = "flow_fin"  # bytes_pending: length of a partial last line
    FLOW_RESET = "flow_reset"  # errno
    FLOW_WRITE_ERROR = "flow_write_error"  # errno; UDP: count
    FLOW_READ_ERROR = "flow_read_error"  # errno; UDP: count
    FLOW_ICMP = "flow_icmp"  # type, code, errno, offender, count, seq: of the refused send
    FLOW_GARBAGE = "flow_garbage"  # length, starts, count; unasked: seq of a reply to nothing
    FLOW_OPEN_AT_END = "flow_open_at_end"  # sent, answered, unanswered, late, reordered,
    #                                  duplicates, last_seq, unsent; held: last_ack_ms: ago
    CLOCK_EXCHANGE = "clock_exchange"  # subject = responder; clock, t1, t2, t3, t4
    #                                    (t2, t3 on that clock)
    AGENT_STARTED = "agent_started"  # pid, clock, tcp_rate_hz, udp_rate_hz, tcp_sparse_rate_hz,
    #                                  udp_sparse_rate_hz, descriptors, scheduler, nice,
    #                                  session_nice, and the same with sparse_ before it;
    #                                  cpu_stat: v1, v2, or null: throttling cannot be seen
    AGENT_STALLED = "agent_stalled"  # late_ns: the loop did not run for this long; at = the gap
    AGENT_THROTTLED = "agent_throttled"  # throttled_ns, periods; at = [read, next read of cpu.stat]
    HOST_SUSPENDED = "host_suspended"  # suspended_ns; at = [tick before it, tick after it]
    AGENT_SENDING = "agent_sending"  # proto, rate_hz: planned, flows: that had a slot, sends,
    #                                  missed_slots, late_p50_ns, late_p99_ns, late_max_ns,
    #                                  quantum_ns: it looked again after that, at the latest;
    #                                  null: it was not set for this stretch;
    #                                  at = a stretch of one density
    AGENT_SUMMARY = "agent_summary"  # sends, missed_slots, late_p50_ns, late_p99_ns, late_max_ns

    NEW_CONNECTIONS = "new_connections"  # subject = the prober: tcp-new, udp-new,
    #                                  of further nodes tcp-new-2, ...; a run of attempts
    #                                  in the order of their slots that went the same way: result
    #                                  (core/probing/result), first_slot; if there are any:
    #                                  responder, errno, every: each so many-th slot was tried
    #                                  (absent: all); if it is more than one attempt: last_slot,
    #                                  count (fewer than slots: the others were missed), first_ns,
    #                                  last_ns: when the first and the last were begun,
    #                                  first_took_ns, last_took_ns, took_min_ns, took_max_ns: from
    #                                  there to the result; at = [first begun, all known]
    PROBER_SUMMARY = "prober_summary"  # subject; proto, period_ns, epoch_ns: slot n lies at
    #                                  epoch_ns + n * period_ns, patience_ns, source, address,
    #                                  node: whose address it is; null: not known,
    #                                  ports_round_ns: until a source port is used again, attempts,
    #                                  missed_slots, unfinished, late_p50_ns, late_p99_ns,
    #                                  late_max_ns, stretches: of one density each: at, every,
    #                                  attempts, missed_slots and late_... of it

    HTTP_REQUESTS = "http_requests"  # subject = the lane: keepalive-00; requests in the order of
    #                                  their slots that went the same way: kind, ended, and, if it
    #                                  is so: status, pool, written: false, received: part of a
    #                                  response, said_close, by_fin: the response had no length,
    #                                  responder, errno, connection,
    #                                  opening (core/http/ending), first_slot, written_ns: of one
    #                                  that was dialled for; of several: last_slot, count,
    #                                  first_ns, last_ns: when those were begun, first_took_ns,
    #                                  last_took_ns, took_min_ns, took_max_ns: from there to the
    #                                  end; at = [first begun, all ended]
    HTTP_CONNECTION = "http_connection"  # subject = the lane; connection, opened_ns, local,
    #                                  over (core/http/ending), answered: requests, said_close: the
    #                                  last response did, outstanding: a request was under way,
    #                                  unasked, responder, errno; at = when it ended
    HTTP_SUMMARY = "http_summary"  # method, expect_status, timeout_ns, in_flight_ns, identity: a
    #                                header was named, trigger_ns: planned, lanes: [{lane, kind,
    #                                requests: planned and made, missed_slots, epoch_ns, period_ns:
    #                                slot n lies at epoch_ns + n * period_ns}], late_p50_ns,
    #                                late_p99_ns, late_max_ns

    # --- the node's network: what its kernel and kube-proxy hold, ----------
    CONNTRACK = "conntrack"  # occasion (core/mechanism), entries: [{proto, src, sport, dst, dport,
    #                        to, to_port, state, assured, replied, id}]: of the flows alone;
    #                        problem, left_out; at = [asked, answered]
    PROXY_RULES = (
        "proxy_rules"  # occasion, mode, rules: [text]: those that name the Service, and the
    )
    #                        chains that they lead to;
    #                        problem, left_out

    # --- the load balancer in front of the nodes; subject = the node whose NodePort it is ------
    BALANCER_STARTED = "balancer_started"  # version, address, port, servers: [{node, address,
    #                        port}], check: what it asks them, check_interval_ms, fall, rise,
    #                        deregistration_seconds
    BALANCER_SERVER = "balancer_server"  # up: it gets new connections, check: how its last health
    #                        check went, sessions: open ones, given: ever; at = [asked before,
    #                        answered]
    BALANCER_DEREGISTERED = "balancer_deregistered"  # sessions: that were open when they were
    #                        closed; at = [asked, answered]

    # --- k8s: frames reduced to named fields -------------------------------------------
    WATCH_LISTED = "watch_listed"  # resource, subjects, resource_version
    WATCH_GAP = "watch_gap"  # resource (pods, endpointslices, apiserver), reason;
    #                          at = [last thing surely seen, seen again]
    WATCHER_STALLED = "watcher_stalled"  # late_ns, count: if several; the watches' process did
    #                                      not run; at = [last seen running, running again]
    POD = "pod"  # subject = pod uid; type, name, resource_version, phase, ready, node,
    #              deletion_timestamp, deletion_grace_period_s, reason, message,
    #              disruption: who is about to end it, containers: [{name, ready, restarts,
    #              state, exit_code, signal, reason, started_at, finished_at, last_state}]
    ENDPOINT_SLICE = "endpoint_slice"  # subject = slice name; type, resource_version, family,
    #                          endpoints: [{uid, name, addresses, node, ready, serving,
    #                          terminating}]

    # --- probe: its lifecycle log, stamped on the probe's own clock; subject = pod uid ---
    PROBE_STARTED = "probe_started"  # nonce, behavior, readiness_on_drain, drain_ns, …
    LISTENING = "listening"
    PRESTOP_CALLED = "prestop_called"  # delay_ns: its httpGet hook, answered that much later
    PRESTOP_ANSWERED = "prestop_answered"
    SIGTERM_RECEIVED = "sigterm_received"  # connections, in_flight_new: of connections that had
    #                                        no answer yet, in_flight: TCP requests that it had
    #                                        read and not answered, oldest_in_flight_ns
    SIGTERM_REPEATED = "sigterm_repeated"
    SIGTERM_IGNORED = "sigterm_ignored"
    READYZ_NOW_503 = "readyz_now_503"
    STOPPED_ACCEPTING = "stopped_accepting"
    DRAIN_STARTED = "drain_started"
    DRAIN_DEADLINE_REACHED = "drain_deadline_reached"
    DRAIN_COMPLETE = "drain_complete"
    TCP_FLOWS_CLOSED = "tcp_flows_closed"  # count, how
    ACCEPT_FAILED = "accept_failed"  # errno; it goes on accepting a moment later
    TCP_LINE_REFUSED = "tcp_line_refused"  # peer, reason, length: it closed that connection
    UDP_RECEIVED = "udp_received"  # final, untold; flows: one-way ones, since the start: [{flow,
    #                     first_seq, last_seq, count, duplicates, reordered, first_sent_ns,
    #                     last_sent_ns, first_ns, last_ns, passage_min_ns, passage_max_ns}]
    EXITING = "exiting"  # code
    FATAL = "fatal"  # message


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """One recorded fact.

    ``at`` is in nanoseconds of CLOCK_MONOTONIC: of the harness if ``clock`` is
    empty, else of the clock with that id (boot id + time namespace).
    ``data`` holds JSON values only.
    """

    source: Source
    event: Event
    at: Interval
    subject: str = ""
    clock: str = ""
    data: Mapping[str, object] = field(default_factory=dict)
