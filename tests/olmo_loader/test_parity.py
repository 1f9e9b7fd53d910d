"""The loader against OLMo's own recorded output, case by case.

Every case must be equal in dtype, shape, bytes, order of fields, metadata and errors. The
exceptions are named below, each with its reason; what the loader does instead is tested right
there.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from olmo_loader.errors import ConfigurationError, IntegrityError
from tests.olmo_loader.parity_cases import case_spec, differences, recorded, run_case
from tests.shared_data import parity_folder

pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create:UserWarning")

EQUAL = [
    "attn",
    "drop_last_small_workers",
    "filter_all3",
    "filter_small",
    "labelmask",
    "max12_ws2",
    "metadata_dict",
    "metadata_list",
    "noshuffle",
    "order_ws1_nw0_dl1",
    "order_ws1_nw2_dl1",
    "order_ws2_nw0_dl1",
    "order_ws2_nw1_dl0",
    "order_ws2_nw1_dl1",
    "order_ws2_nw2_dl0",
    "order_ws2_nw2_dl1",
    "order_ws2_nw3_dl0",
    "order_ws2_nw3_dl1",
    "order_ws3_nw0_dl0",
    "order_ws3_nw0_dl1",
    "order_ws3_nw1_dl0",
    "order_ws3_nw2_dl0",
    "order_ws3_nw2_dl1",
    "order_ws3_nw3_dl0",
    "order_ws3_nw3_dl1",
    "order_ws5_nw0_dl0",
    "order_ws5_nw0_dl1",
    "order_ws5_nw2_dl0",
    "order_ws5_nw2_dl1",
    "order_ws5_nw3_dl0",
    "order_ws5_nw3_dl1",
    "real_datasets",
    "real_paths",
    "repeat_paths",
    "second_pass_nw0",
    "second_pass_nw2",
    "start5_ws2_unaligned",
    "start_gt_max",
    "start_past_end",
    "tails_and_empty",
    "threads1",
    "threads3",
    "threads7",
    "u32",
    "u8",
]

ERRORS = {
    "doclens_no_eos_id_err": ValueError,
    "gbs_not_divisible_err": AssertionError,
    "labelmask_count_err": ValueError,
    "max13_ws2_err": AssertionError,
    "metadata_list_err": ValueError,
    "missing_file_err": FileNotFoundError,
    "real_bad_dtype_err": TypeError,
    "seed_neg_err": ValueError,
}

TAILS = ("filter_default", "noeos_doclens", "order_ws1_nw2_dl0", "order_ws1_nw3_dl0")
PERSISTENT = ("second_pass_nw2_persistent", "second_pass_nw2_persistent_nofile")
TOO_FEW = (
    *("fewer_than_ws_dl0", "fewer_than_ws_dl1"),
    *("fewer_than_ws_nofile_dl0", "fewer_than_ws_nofile_dl1"),
    *("zero_instances_dl1", "zero_instances_nofile_dl0", "zero_instances_nofile_dl1"),
)
OTHERS = ("u32_as_u16", "real_both_err")


def test_every_recorded_case_has_its_place():
    here = {path.stem for path in parity_folder("specs").glob("*.json")}
    assert here == {*EQUAL, *ERRORS, *TAILS, *PERSISTENT, *TOO_FEW, *OTHERS}


@pytest.mark.parametrize("name", EQUAL)
def test_equal_to_olmo(name: str, tmp_path: Path):
    assert differences(name, run_case(case_spec(name), tmp_path)) == []


@pytest.mark.parametrize("name", ERRORS)
def test_same_kind_of_error_as_olmo(name: str, tmp_path: Path):
    spec = case_spec(name)
    error = recorded(name)[1]["error"]
    assert error["type"] == ERRORS[name].__name__
    with pytest.raises(ERRORS[name]) as raised:
        run_case(spec, tmp_path)
    if name != "missing_file_err":  # the path stands in it
        assert error["message"] in str(raised.value)


@pytest.mark.parametrize("name", TAILS)
def test_departure_the_short_last_batch_does_not_depend_on_the_workers(name: str, tmp_path: Path):
    """OLMo deals the left-over instances to its workers one by one: several short batches.

    Here they are one batch, the one that 0 workers give; the instances are the same.
    """
    spec = case_spec(name)
    outcome = run_case(spec, tmp_path / "workers")
    single = run_case({**spec, "num_workers": 0}, tmp_path / "single")
    assert outcome.arrays.keys() == single.arrays.keys()
    for key, value in single.arrays.items():
        np.testing.assert_array_equal(outcome.arrays[key], value, err_msg=key)
    theirs = recorded(name)[0]
    full = theirs["rank0/batch_sizes"][0]
    np.testing.assert_array_equal(
        np.sort(outcome.arrays["rank0/order"]), np.sort(theirs["rank0/order"])
    )
    assert (outcome.arrays["rank0/batch_sizes"][:-1] == full).all()


@pytest.mark.parametrize("name", PERSISTENT)
def test_departure_persistent_workers_begin_a_new_epoch_at_its_start(name: str, tmp_path: Path):
    """OLMo's persistent workers keep start_index, and without a file the old order: data is
    lost."""
    outcome = run_case(case_spec(name), tmp_path)
    right = recorded("second_pass_nw2")[0]
    np.testing.assert_array_equal(outcome.arrays["rank0/pass2/order"], right["rank0/pass2/order"])
    assert sorted(outcome.arrays["rank0/pass2/order"]) == list(range(20))


@pytest.mark.parametrize("name", TOO_FEW)
def test_departure_fewer_instances_than_ranks_is_a_clear_error(name: str, tmp_path: Path):
    """OLMo repeats one instance on every rank, yields nothing, or writes a one-byte order file."""
    with pytest.raises(ConfigurationError, match=r"no instance|cannot feed 4 ranks"):
        run_case(case_spec(name), tmp_path)
    assert not (tmp_path / "global_indices.npy").exists()


def test_departure_uint32_read_as_uint16_is_refused(tmp_path: Path):
    """OLMo reads twice as many tokens, half of them the high halves."""
    with pytest.raises(IntegrityError, match="set memmap_dtype to uint32"):
        run_case(case_spec("u32_as_u16"), tmp_path)


def test_departure_there_is_one_argument_for_paths_and_labelled_paths():
    """OLMo refuses both together; here they are one argument, so both cannot be given."""
    spec = case_spec("real_both_err")
    assert recorded("real_both_err")[1]["error"]["type"] == "OLMoConfigurationError"
    assert spec["paths"]
    assert spec["datasets"]
