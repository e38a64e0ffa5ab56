"""``daemon.*``: how the daemon is, and an operator's hand on it.

What comes in: nothing much. What goes out: counters, notices. What must not be here: doing it (``Control``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from memd.dispatch import translate
from memd.dispatch.handlers.hello import server_info
from memd.dispatch.notices import store_notices
from memd.dispatch.table import Method
from memd.protocol import params as p, results

if TYPE_CHECKING:
    from memd.dispatch.context import Context
    from memd.jobs import JobStatistics

US = 1_000_000

METRICS = (
    ("memd_uptime_seconds", "gauge", "Seconds since the daemon started."),
    ("memd_acknowledged", "counter", "Changes answered as durable."),
    ("memd_fsyncs", "counter", "Syncs of the journal."),
    ("memd_groups", "counter", "Group commits."),
    ("memd_requests", "counter", "Requests taken."),
    ("memd_request_errors", "counter", "Requests answered with an error."),
    ("memd_bugs", "counter", "Requests that failed by a bug in memd."),
    ("memd_connections", "gauge", "Open connections."),
    ("memd_sessions", "gauge", "Known agent sessions."),
    ("memd_open_turns", "gauge", "Sessions with an open turn."),
)
"""Families without labels: name, type, help."""

OUTCOMES = ("ok", "nothing", "partial", "failed", "cancelled")
"""What a job may come to."""

STORE_METRICS = (
    ("memd_store_chars", "Characters in a store."),
    ("memd_store_limit_chars", "Characters a store may hold."),
    ("memd_store_entries", "Entries in a store."),
    ("memd_store_revision", "Newest revision of a store."),
)
"""Families labelled by profile and target, all gauges."""


def status(context: Context, _params: p.DaemonStatus) -> results.StatusResult:
    """Everything a person wants to see first."""
    services = context.services
    figures = services.control.statistics()
    profiles = [services.profiles[name] for name in sorted(services.profiles)]
    notices = [*services.control.notices(), *(notice for profile in profiles for notice in store_notices(profile))]
    pending = [profile.approvals.pending() for profile in profiles]
    return results.StatusResult(
        server=server_info(services.control),
        uptime_s=max(0, services.clock() - figures.started_us) // US,
        commits=results.Commits(acknowledged=figures.acknowledged, fsyncs=figures.fsyncs, groups=figures.groups),
        connections=figures.connections,
        sessions=services.sessions.statistics().sessions,
        profiles=[translate.profile_info(profile) for profile in profiles],
        jobs=_job_figures(services.jobs.statistics()),
        pending=results.Pending(
            count=sum(count for count, _ in pending), oldest_s=max((oldest for _, oldest in pending), default=0)
        ),
        notices=[translate.notice(item) for item in notices],
    )


def _job_figures(figures: JobStatistics) -> dict[str, int]:
    """Living jobs by state, ended ones since the start by outcome, today's tokens in and out, endpoints that do not answer."""
    return {
        **figures.states,
        **{f"ended_{outcome}": figures.outcomes.get(outcome, 0) for outcome in OUTCOMES},
        "tokens_today": sum(taken + given for taken, _, given in figures.tokens.values()),
        "endpoints_down": len(figures.down),
    }


def metrics(context: Context, _params: p.DaemonMetrics) -> results.MetricsResult:
    """The counters as OpenMetrics text."""
    services = context.services
    figures, sessions = services.control.statistics(), services.sessions.statistics()
    values = (
        max(0, services.clock() - figures.started_us) // US,
        figures.acknowledged,
        figures.fsyncs,
        figures.groups,
        figures.requests,
        figures.request_errors,
        figures.bugs,
        figures.connections,
        sessions.sessions,
        sessions.open_turns,
    )
    lines: list[str] = []
    for (name, kind, text), value in zip(METRICS, values, strict=True):
        lines += [f"# TYPE {name} {kind}", f"# HELP {name} {text}"]
        lines.append(f"{name}{'_total' if kind == 'counter' else ''} {value}")
    lines += _store_lines(context)
    lines += _job_lines(services.jobs.statistics())
    return results.MetricsResult(text="\n".join([*lines, "# EOF", ""]))


def _store_lines(context: Context) -> list[str]:
    samples: dict[str, list[str]] = {name: [] for name, _ in STORE_METRICS}
    for name in sorted(context.services.profiles):
        profile = context.services.profiles[name]
        label = name.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        for target in ("memory", "user"):
            state = profile.state(target)
            figures = (state.usage.chars, state.usage.limit, len(state.document.entries), state.revision)
            for (metric, _), figure in zip(STORE_METRICS, figures, strict=True):
                samples[metric].append(f'{metric}{{profile="{label}",target="{target}"}} {figure}')
    lines: list[str] = []
    for metric, text in STORE_METRICS:
        lines += [f"# TYPE {metric} gauge", f"# HELP {metric} {text}", *samples[metric]]
    return lines


def _job_lines(figures: JobStatistics) -> list[str]:
    tokens = [sum(column) for column in zip(*figures.tokens.values(), strict=True)] or [0, 0, 0]
    lines = ["# TYPE memd_jobs gauge", "# HELP memd_jobs Reviews and flushes that have not ended, by state."]
    lines += [f'memd_jobs{{state="{state}"}} {count}' for state, count in figures.states.items()]
    lines += ["# TYPE memd_jobs_ended counter", "# HELP memd_jobs_ended Reviews and flushes that ended, by outcome."]
    lines += [f'memd_jobs_ended_total{{outcome="{one}"}} {figures.outcomes.get(one, 0)}' for one in OUTCOMES]
    lines += ["# TYPE memd_job_tokens_today gauge", "# HELP memd_job_tokens_today Tokens of today (UTC), by kind."]
    kinds = ("input", "cached", "output")
    lines += [f'memd_job_tokens_today{{kind="{kind}"}} {n}' for kind, n in zip(kinds, tokens, strict=True)]
    lines += ["# TYPE memd_endpoints_down gauge", "# HELP memd_endpoints_down Model endpoints that do not answer."]
    return [*lines, f"memd_endpoints_down {len(figures.down)}"]


async def reload(context: Context, _params: p.DaemonReload) -> results.Empty:
    """Read the settings again."""
    await context.services.control.reload()
    return results.Empty()


def stop(context: Context, _params: p.DaemonStop) -> results.Empty:
    """Begin to stop; the answer still goes out."""
    context.services.control.stop()
    return results.Empty()


def handover(context: Context, params: p.DaemonHandover) -> results.HandoverResult:
    """Let a newer daemon take over."""
    return results.HandoverResult(draining=context.services.control.handover(params.version))


METHODS = (
    Method("daemon.status", p.DaemonStatus, results.StatusResult, "read", status),
    Method("daemon.metrics", p.DaemonMetrics, results.MetricsResult, "read", metrics),
    Method("daemon.reload", p.DaemonReload, results.Empty, "operator", reload, "task"),
    Method("daemon.stop", p.DaemonStop, results.Empty, "operator", stop, once=True),
    Method("daemon.handover", p.DaemonHandover, results.HandoverResult, "operator", handover, once=True),
)
