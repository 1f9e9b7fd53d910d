"""``python -m olmo_loader inspect|verify|stats|bench DATASET``: look at a data set.

Only ``bench`` needs torch.

Exit status: 0 done, 1 faults found, 2 the question cannot be answered (the message says why).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from olmo_loader.arguments import check_global_batch, check_whole
from olmo_loader.errors import ConfigurationError, LoaderError
from olmo_loader.order_file import verify_orders
from olmo_loader.published import PublishedDataset, open_published
from olmo_loader.run_folder import read_state
from olmo_loader.state import LoaderState
from olmo_loader.tools.audit import audit_run
from olmo_loader.tools.boundaries import count_differences
from olmo_loader.tools.decode import Decode, open_decoder, printable
from olmo_loader.tools.ladder import LadderOptions, Rung, climb, measure_against
from olmo_loader.tools.step import (
    InstanceReport,
    describe_step,
    state_positions,
    step_positions,
)
from olmo_loader.tools.summary import summarize
from olmo_loader.tools.verdict import diagnose, tokens_needed
from olmo_loader.verify import verify_dataset


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m olmo_loader", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    inspect = commands.add_parser("inspect", help="what one training step reads")
    inspect.add_argument("dataset", help="a published data set: a folder or a url")
    which = inspect.add_mutually_exclusive_group(required=True)
    which.add_argument("--state", type=Path, help="file of a state: the batch it describes")
    which.add_argument("--step", type=int, help="from 0 in its epoch")
    inspect.add_argument("--global-batch-size", type=int, help="instances; needed with --step")
    inspect.add_argument("--epoch", type=int, default=0)
    inspect.add_argument("--plan", help="id of a plan; the current one by default")
    inspect.add_argument("--world-size", type=int, help="number of ranks")
    inspect.add_argument("--rank", type=int, help="only what this rank reads")
    inspect.add_argument(
        "--balance-attention",
        action="store_true",
        help="with --step: ranks share batches as build_train_dataloader(balance_attention=True)",
    )
    inspect.add_argument("--text", action="store_true", help="decode (needs tokenizers)")
    verify = commands.add_parser("verify", help="check every byte and name every fault")
    verify.add_argument("dataset", help="a published data set: a folder or a url")
    verify.add_argument(
        "--audit", type=Path, help="compare a run's logs (WORK_DIR/audit/RUN) with their plans"
    )
    verify.add_argument("--work-dir", type=Path, help="check the orders in a run's folder")
    verify.add_argument("--quiet", action="store_true", help="no progress on stderr")
    stats = commands.add_parser("stats", help="what the data set holds, per source")
    stats.add_argument("dataset", help="a folder or a url")
    stats.add_argument("--plan", help="id of a plan; the current one by default")
    stats.add_argument(
        "--boundaries",
        action="store_true",
        help="read all tokens, and count where stored boundaries and those by EOS differ",
    )
    _add_bench(commands)
    return parser


def _add_bench(commands: Any) -> None:
    bench = commands.add_parser("bench", help="how fast it can be read here, and what takes time")
    bench.add_argument("dataset", help="a folder or a url")
    bench.add_argument("--plan", help="id of a plan; the current one by default")
    bench.add_argument("--batch-size", type=int, default=8, help="instances")
    bench.add_argument("--seconds", type=float, default=1.0, help="of each rung")
    bench.add_argument("--threads", type=int, default=2)
    bench.add_argument("--processes", type=int, default=2, help="0 leaves the last rung out")
    bench.add_argument("--need", type=float, help="tokens per second that the trainer takes")
    bench.add_argument("--params", type=float, help="of the model; with --flops instead of --need")
    bench.add_argument("--flops", type=float, help="peak FLOP per second of this rank's device")
    bench.add_argument("--utilization", type=float, default=0.4, help="share of it that is reached")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; see the module's docstring for the exit status."""
    options = _parser().parse_args(arguments)
    commands = {
        "inspect": run_inspect,
        "verify": run_verify,
        "stats": run_stats,
        "bench": run_bench,
    }
    try:
        return commands[options.command](options)
    except BrokenPipeError:  # the reader of the output had enough
        return 0
    except (LoaderError, OSError) as error:
        sys.stderr.write(f"error: {error}\n")
        return 2


@dataclass(frozen=True, kw_only=True)
class _Step:
    """What `inspect` was asked for."""

    data: PublishedDataset
    title: str
    world_size: int
    begin: int
    index: NDArray[np.int64]
    balance_attention: bool


def _find_step(options: argparse.Namespace) -> _Step:
    if options.world_size is not None:
        check_whole("--world-size", options.world_size, 1)
    if options.state is not None:
        state = LoaderState.from_json(read_state(options.state))
        data = open_published(options.dataset, state.plan)
        world = options.world_size or state.world_size or 1
        begin, index = state_positions(data, state, world)
        title = f"epoch {state.epoch}, the batch after which {state.steps} steps were done"
        return _Step(
            data=data,
            title=title,
            world_size=world,
            begin=begin,
            index=index,
            balance_attention=state.balance_attention,
        )
    if options.global_batch_size is None:
        raise ConfigurationError("--step needs --global-batch-size")
    check_whole("--epoch", options.epoch, 0)
    world = options.world_size or 1
    check_global_batch(options.global_batch_size, world)
    data = open_published(options.dataset, options.plan)
    begin, index = step_positions(
        data,
        step=options.step,
        global_batch_size=options.global_batch_size,
        epoch=options.epoch,
        world_size=world,
    )
    title = f"epoch {options.epoch}, step {options.step}"
    return _Step(
        data=data,
        title=title,
        world_size=world,
        begin=begin,
        index=index,
        balance_attention=options.balance_attention,
    )


def run_inspect(options: argparse.Namespace) -> int:
    """Print the instances of a step and the documents in them."""
    step = _find_step(options)
    data = step.data
    reports = list(
        describe_step(
            data,
            step.begin,
            step.index,
            world_size=step.world_size,
            rank=options.rank,
            balance_attention=step.balance_attention,
        )
    )
    _write(
        f"plan {data.plan.plan_id}, {step.title}: "
        f"{len(reports)} instances of {data.plan.sequence_length} tokens"
    )
    decode = open_decoder(data) if options.text else None
    for report in reports:
        chosen = step.index[[report.position - step.begin]]
        _write_instance(report, decode, data.reader.read(chosen).ids[0] if decode else None)
    return 0


def _write_instance(report: InstanceReport, decode: Decode | None, ids: Any) -> None:
    head = f"position {report.position}  instance {report.index}  rank {report.rank}"
    for number, piece in enumerate(report.pieces):
        masked = f", {piece.masked} tokens masked" if piece.masked else ""
        _write(
            f"{head if number == 0 else '  and'}  {piece.source}  {piece.shard} "
            f"tokens {piece.start}..{piece.end}{masked}"
        )
        for document in piece.documents:
            mark = " (continued)" if document.continued else ""
            _write(f"    {document.doc_id}  {document.start}..{document.end}{mark}")
            if decode is not None:
                first = piece.place + document.start - piece.start
                inside = ids[first : first + document.end - document.start]
                _write(f"        {printable(decode(inside.tolist()))}")


def run_verify(options: argparse.Namespace) -> int:
    """Print every fault; nothing but a last line when there is none."""

    def report(line: str) -> None:
        if not options.quiet:
            sys.stderr.write(f"{line}\n")

    if options.audit is not None:
        audit = audit_run(options.dataset, options.audit)
        counts = ", ".join(f"{count} {status}" for status, count in sorted(audit.lines.items()))
        report(
            f"{audit.steps} steps of {audit.ranks} ranks in {audit.attempts} attempts; "
            f"lines: {counts or 'none'}"
        )
        return _write_faults(audit.faults)
    if options.work_dir is not None:
        return _write_faults(verify_orders(options.work_dir))
    return _write_faults(verify_dataset(options.dataset, report))


def _write_faults(faults: Iterable[str]) -> int:
    number = 0
    for fault in faults:
        number += 1
        _write(fault)
    _write(f"{number} faults" if number else "no fault found")
    return 1 if number else 0


def run_stats(options: argparse.Namespace) -> int:
    """Print one line per source and the totals."""
    data = open_published(options.dataset, options.plan)
    rows = summarize(data)
    _write_plan(data)
    names = ("shards", "documents", "tokens", "instances", "left_over", "masked")
    width = max(len(row.source) for row in rows) + 2
    _write(f"{'source':<{width}}" + "".join(f"{name:>14}" for name in names) + f"{'share':>9}")
    total = sum(row.instances for row in rows)
    for row in rows:
        cells = "".join(f"{getattr(row, name):>14,}" for name in names)
        _write(f"{row.source:<{width}}{cells}{row.instances / total:>9.2%}")
    sums = "".join(f"{sum(getattr(row, name) for row in rows):>14,}" for name in names)
    _write(f"{'total':<{width}}{sums}{1:>9.2%}")
    if options.boundaries:
        _write_boundaries(data, width)
    return 0


def _write_boundaries(data: PublishedDataset, width: int) -> None:
    _write("document boundaries inside instances: stored ones, and those a scan for EOS finds")
    names = ("documents", "without_eos", "eos_inside", "instances", "differing")
    _write(f"{'source':<{width}}" + "".join(f"{name:>14}" for name in names))
    for row in count_differences(data):
        cells = "".join(f"{getattr(row, name):>14,}" for name in names)
        _write(f"{row.source:<{width}}{cells}")


def run_bench(options: argparse.Namespace) -> int:
    """Print the ladder, the realised share of each source, and the verdict."""
    if (options.params is None) != (options.flops is None):
        raise ConfigurationError("--params and --flops go together")
    for name in ("need", "params", "flops", "utilization"):
        value = getattr(options, name)
        if value is not None and not value > 0:
            raise ConfigurationError(f"--{name} is a number above 0, not {value:g}")
    need = options.need
    if options.params is not None:
        need = tokens_needed(options.params, options.flops, options.utilization)
    ladder = LadderOptions(
        batch_size=options.batch_size,
        seconds=options.seconds,
        threads=options.threads,
        processes=options.processes,
    )
    data = open_published(options.dataset, options.plan)
    _write_plan(data)
    _write(f"{'rung':<18}{'tokens/s':>16}{'CPU ms/Mtok':>14}{'of raw':>9}")
    rungs: list[Rung] = []
    for rung in climb(options.dataset, options.plan, ladder):
        rungs.append(rung)
        share = rung.tokens_per_s / rungs[0].tokens_per_s
        _write(
            f"{rung.name:<18}{rung.tokens_per_s:>16,.0f}{rung.cpu_ms_per_mtok:>14,.1f}{share:>9.1%}"
        )
    report = measure_against(options.dataset, options.plan, ladder, need or rungs[0].tokens_per_s)
    _write_shares(data, next(rung.tokens_per_source for rung in rungs if rung.tokens_per_source))
    _write(f"a batch that waits in the queue: {report.bytes_per_batch:,} bytes")
    if need is None:
        _write(diagnose(rungs, None))
    else:
        _write(f"needed: {need:,.0f} tokens/s")
        _write(diagnose(rungs, report.wait_share, report.queue_fill))
    return 0


def _write_shares(data: PublishedDataset, realised: Mapping[str, int]) -> None:
    rows, tokens = summarize(data), sum(realised.values())
    width, total = max(len(row.source) for row in rows) + 2, sum(row.instances for row in rows)
    _write(f"{'source':<{width}}{'planned':>9}{'realised':>9}  in {tokens:,} tokens with threads")
    for row in rows:
        found = realised.get(row.source, 0) / max(tokens, 1)
        _write(f"{row.source:<{width}}{row.instances / total:>9.2%}{found:>9.2%}")


def _write_plan(data: PublishedDataset) -> None:
    plan = data.plan
    _write(
        f"plan {plan.plan_id} of {len(data.file.plans)}, generation {plan.record['generation']}: "
        f"{plan.num_instances:,} instances of {plan.sequence_length} tokens, "
        f"{plan.dtype.name}, seed {plan.seed}"
    )


def _write(line: str) -> None:
    sys.stdout.write(f"{line}\n")


if __name__ == "__main__":
    sys.exit(main())
