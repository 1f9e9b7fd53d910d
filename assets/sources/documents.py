"""The documents stage: decode every landed file once."""

from __future__ import annotations

from assets.root import Root
from assets.settings.schema import Settings
from assets.sources.damaged_files import check_replaced
from assets.sources.decode import decode_task
from assets.sources.landing_log import LandingLog
from assets.sources.tasks import STAGE, decode_tasks
from assets.stage import StageReport, check_accounting, check_limits, materialize_tasks


def materialize_documents(
    root: Root, settings: Settings, log: LandingLog, sources: tuple[str, ...]
) -> StageReport:
    """Decode the landed files of some sources, over all generations of the log.

    Raises:
        LossLimitError: a source lost more than `limits` allows, or a damaged file has taken the
            place of an earlier version; what was done stays committed.
        StageError: a worker process died.
        IntegrityError: a source's counts do not add up.
    """
    tasks = decode_tasks(root.url, settings, log, sources)
    report = materialize_tasks(root, STAGE, tasks, decode_task, processes=settings.engine.processes)
    check_accounting(report)
    check_limits(report, settings.limits, sources=sources)
    if settings.limits.damaged_replacements == "refuse":
        check_replaced(root, log, report.entries, sources)
    return report
