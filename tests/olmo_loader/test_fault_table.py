"""Each fault that loaders are known for, and the test that keeps it out of this one.

`DEPARTURES` are places where OLMo's loader yields wrong data, or nothing, without a word, and this
one does not. `FAULTS` are complaints about other loaders. `BAD_INPUT` is what a run may be given.
"""

from __future__ import annotations

import re
from functools import cache

import pytest

from tests.shared_data import CHECKOUT

FOLDER = "tests/olmo_loader"

DEPARTURES = {
    "a file that became shorter is padded silently": (
        "test_memmap_dataset::test_departure_a_file_that_became_shorter_is_an_error"
    ),
    "a file of numpy.save is read with its header": (
        "test_memmap_dataset::test_departure_a_real_numpy_file_is_refused"
    ),
    "uint32 is read as uint16": "test_parity::test_departure_uint32_read_as_uint16_is_refused",
    "dtype and size are not checked at open": (
        "test_memmap_dataset::test_departure_a_shard_is_read_only_as_its_header_says"
    ),
    "the vocabulary is never checked": (
        "test_verify::test_a_shard_of_another_vocabulary_is_refused_at_open"
    ),
    "types that hold no ids are accepted": "test_memmap_dataset::test_what_is_no_token_dtype",
    "ids above 2^63 wrap": "test_memmap_dataset::test_ids_beyond_int64_are_refused",
    "a label mask some bytes short passes": (
        "test_memmap_dataset::test_departure_label_masks_are_checked_in_bytes"
    ),
    "a path given twice is checked against its last mask": (
        "test_interruptions::test_a_path_given_twice_may_have_two_masks"
    ),
    "a + b drops options": (
        "test_memmap_dataset::test_departure_adding_keeps_every_option_or_refuses"
    ),
    "a field that some items lack makes a short stack": (
        "test_memmap_dataset::test_the_collator_takes_bare_rows_and_refuses_mixed_items"
    ),
    "the last batches depend on the number of workers": (
        "test_parity::test_departure_the_short_last_batch_does_not_depend_on_the_workers"
    ),
    "persistent workers skip the start of later epochs": (
        "test_parity::test_departure_persistent_workers_begin_a_new_epoch_at_its_start"
    ),
    "no instance, or fewer than ranks: nothing, or one byte": (
        "test_parity::test_departure_fewer_instances_than_ranks_is_a_clear_error"
    ),
    "the order is rewritten in place": (
        "test_iterable_dataset::test_a_failed_write_leaves_the_old_order"
    ),
    "other ranks never look at the order they map": (
        "test_iterable_dataset::test_a_rank_does_not_take_an_order_of_something_else"
    ),
    "a changed file list resumes into another order": (
        "test_iterable_dataset::test_a_changed_file_list_is_refused_with_what_changed"
    ),
    "a resume knows nothing of its data": (
        "test_file_list::test_a_refused_resume_lists_shards_without_a_work_dir"
    ),
    "indices end at 2^32 - 2": "test_global_indices::test_numbers_of_8_bytes_where_olmo_stops",
    "a 404 page's length is taken as the file's": (
        "test_remote_data::test_pages_of_errors_are_no_sizes"
    ),
    "a 500 body of the right length becomes tokens": (
        "test_http_ranges::test_the_body_of_an_error_page_is_never_data_even_at_the_right_length"
    ),
    "one connection per instance": "test_http_ranges::test_connections_are_kept",
    "a missing file is asked for again for a minute": (
        "test_http_ranges::test_what_will_not_change_is_not_tried_again"
    ),
    "the audit log is erased by a resume": (
        "test_audit::test_after_a_crash_the_last_attempt_counts_and_earlier_lines_are_replayed"
    ),
    "looking at a step gives no document": (
        "test_command_line::test_inspect_names_documents_and_their_spans"
    ),
}

FAULTS = {
    "a new epoch keeps the old offset": (
        "test_loader::test_stopped_in_epoch_1_and_run_through_epoch_2_everything_is_seen"
    ),
    "the same, with persistent workers": (
        "test_resumable::test_stopped_in_epoch_1_and_run_through_epoch_2_with_persistent_workers"
    ),
    "resuming past epoch 1 replays epoch 0": (
        "test_resumable::test_resume_from_every_position_gives_the_same_rest"
    ),
    "the state is not saved, and nobody says so": (
        "test_work_dir::test_a_run_that_starts_at_0_although_a_state_exists_says_so"
    ),
    "a resume does not say where it is": "test_work_dir::test_a_resume_says_where",
    "skipping reads everything again": (
        "test_loader::test_resume_reads_no_byte_before_the_position"
    ),
    "a shuffle buffer is lost at resume": (
        "test_loader::test_resume_from_every_position_gives_the_same_rest"
    ),
    "workers without data": "test_interruptions::test_more_readers_than_files",
    "what Ctrl-C leaves behind": (
        "test_interruptions::test_ctrl_c_ends_everything_and_leaves_nothing"
    ),
    "jobs on one host meet": "test_order_file::test_two_jobs_in_one_work_dir_keep_their_own",
    "memory grows in workers": "test_flat_memory::test_memory_is_flat",
    "workers are sent the index": "test_process_workers::test_a_worker_gets_little_to_begin_with",
    "only rank 0 can build the order": (
        "test_order_file::test_of_several_processes_one_builds_and_all_map_the_same"
    ),
    "the builder dies": "test_order_file::test_a_killed_builder_is_replaced",
    "shares are of documents, not of tokens": (
        "test_mixture::test_realised_shares_follow_the_average_temperature_not_the_weights"
    ),
    "two seeds mix alike, tails are never read": (
        "test_mixture::test_two_seeds_differ_and_the_tail_is_reachable"
    ),
    "a dead worker is an endless wait": (
        "test_process_workers::test_errors_and_deaths_come_in_seconds_with_their_place"
    ),
    "a hung worker is an endless wait": (
        "test_process_workers::test_a_hung_worker_is_an_error_with_its_stack"
    ),
    "dead threads are an endless wait": (
        "test_prefetch::test_threads_that_died_are_an_error_not_a_hang"
    ),
    "looking at a step reads the data set": (
        "test_command_line::test_inspect_reads_only_that_step_s_bytes"
    ),
    "the same, over the web": "test_remote_data::test_a_step_reads_only_its_own_bytes",
    "documents leak into each other": (
        "test_document_masks::test_logits_and_gradients_of_document_b_do_not_depend_on_document_a"
    ),
    "boundaries are guessed from EOS": (
        "test_boundaries::test_differences_are_counted_per_source_as_doc_lens_tell"
    ),
    "the order depends on ranks and workers": (
        "test_loader::test_ranks_and_threads_change_nothing"
    ),
    "another batch size loses or repeats": (
        "test_loader::test_another_batch_size_neither_loses_nor_repeats"
    ),
    "changed bytes of the same size": (
        "test_first_touch::test_a_flipped_byte_is_found_by_the_first_read_of_its_block"
    ),
    "a record of the index is missing or altered": (
        "test_shard_index::test_a_missing_or_exchanged_record_is_named"
    ),
    "a slow worker changes the order": (
        "test_process_workers::test_the_order_is_the_same_for_sleeping_workers_and_every_one_works"
    ),
    "numpy's shuffle changes with a release": (
        "test_global_indices::test_the_permutation_is_pinned"
    ),
}

BAD_INPUT = {
    "short file": "test_loader::test_files_without_an_instance_are_named",
    "a file that shrinks under a run": (
        "test_loader::test_a_shard_that_shrinks_while_training_is_an_error_with_its_place"
    ),
    "a file that vanishes under a run": (
        "test_interruptions::test_a_shard_that_vanishes_under_a_run_is_named"
    ),
    "wrong dtype": "test_memmap_dataset::test_departure_a_shard_is_read_only_as_its_header_says",
    "real .npy header": "test_memmap_dataset::test_departure_a_real_numpy_file_is_refused",
    "bad mask": "test_memmap_dataset::test_departure_label_masks_are_checked_in_bytes",
    "404 and 500 bodies of the right length": (
        "test_http_ranges::test_the_body_of_an_error_page_is_never_data_even_at_the_right_length"
    ),
    "Range ignored": "test_http_ranges::test_what_will_not_change_is_not_tried_again",
    "truncated body": "test_http_ranges::test_one_fault_costs_one_attempt",
    "slow server": (
        "test_http_ranges::test_a_server_that_sends_a_byte_now_and_then_does_not_outlast_the_total_time"
    ),
    "empty data set": "test_parity::test_departure_fewer_instances_than_ranks_is_a_clear_error",
    "fewer instances than ranks": "test_loader::test_arguments_that_cannot_work",
    "stale order file of another data set": (
        "test_order_file::test_the_order_of_other_data_under_this_name_is_refused"
    ),
    "half-written order": "test_order_file::test_a_half_written_order_is_built_again",
    "two jobs in one work_dir": "test_work_dir::test_two_jobs_in_one_work_dir",
    "Ctrl-C": "test_interruptions::test_ctrl_c_ends_everything_and_leaves_nothing",
}


@cache
def source(module: str) -> str:
    return (CHECKOUT / FOLDER / f"{module}.py").read_text(encoding="utf-8")


@pytest.mark.parametrize("table", [DEPARTURES, FAULTS, BAD_INPUT], ids=["olmo", "others", "input"])
def test_every_fault_has_its_test(table: dict[str, str]):
    for fault, name in table.items():
        module, _, function = name.partition("::")
        assert re.search(rf"^def {function}\(", source(module), re.MULTILINE), (fault, name)


def test_every_departure_is_in_the_table():
    found = set()
    for path in (CHECKOUT / FOLDER).glob("test_*.py"):
        for function in re.findall(r"^def (test_departure_\w+)\(", source(path.stem), re.MULTILINE):
            found.add(f"{path.stem}::{function}")
    found.discard("test_parity::test_departure_there_is_one_argument_for_paths_and_labelled_paths")
    assert found <= {*DEPARTURES.values()}
