"""What the pairs of racy and right kernels are about; the table in the documentation counts them."""

import re
from pathlib import Path

from cpp_defect_corpus import PAIRS

CATEGORIES = {
    "shared memory": """
        missing_barrier_before_read tree_reduction_without_barrier_in_loop
        scan_without_barrier_between_read_and_write fence_instead_of_barrier broadcast_without_barrier
        two_writers_of_one_cell bitonic_sort_without_barrier gemm_tile_used_before_it_is_complete
        halo_loaded_after_the_barrier dynamic_shared_views_overlap shift_in_place_within_shared
        transpose_tile_without_barrier vector_store_read_by_others flags_packed_into_a_word
    """,
    "global memory, within a block": """
        in_place_stencil_within_block scratch_in_global_memory_without_barrier
        transpose_in_place_by_every_thread aliased_input_and_output maximum_by_compare_and_store
    """,
    "between blocks": """
        two_blocks_write_one_output block_reads_its_neighbours_output in_place_stencil_between_blocks
        partials_read_by_any_block grid_stride_with_the_block_stride overlapping_tiles
        cleared_by_one_block_filled_by_all device_variable_shared_by_blocks
    """,
    "within a warp": """
        warp_synchronous_reduction syncwarp_where_the_block_must_meet warp_exchange_without_syncwarp
        volatile_warp_reduction warp_scan_without_syncwarp syncwarp_of_half_a_warp
        shuffle_taken_for_a_barrier result_of_the_first_lane warp_exchange_in_global_memory
        tile_sync_for_the_neighbour_tile
    """,
    "atomic and plain accesses": """
        plain_add_instead_of_atomic global_histogram_with_plain_add compaction_with_plain_counter
        counter_read_while_others_add shared_histogram_with_plain_add
        shared_histogram_cleared_without_barrier shared_atomic_mixed_with_plain_read
        place_of_the_maximum_stored_plainly word_stored_while_others_set_bits mailbox_peeked_at
        append_and_read_the_length list_read_by_its_length
    """,
    "scopes of atomics and fences": """
        block_scoped_counter one_block_adds_with_block_scope block_scoped_lock block_fence_before_the_ticket
        release_of_block_scope_between_blocks narrow_fence_before_a_wide_store
    """,
    "fences, release and acquire": """
        last_block_reduction_without_fence flag_published_without_fence handed_to_another_warp_without_fence
        fence_behind_the_flag fence_of_one_thread_for_all hand_made_grid_barrier_without_fence
        relaxed_store_of_the_flag relaxed_ticket_of_the_last_block lock_without_fences
        spin_lock_without_fences lock_released_by_a_plain_store lock_asked_once last_block_sum_without_fence
    """,
    "volatile flags": """
        volatile_flag_without_fence flag_without_volatile volatile_chain_with_a_weak_link volatile_counter
    """,
    "the same value": """
        flag_raised_by_every_block another_value_on_the_way cleared_by_all_and_set_by_one
        flag_raised_in_every_round common_value_read_back same_value_from_many_threads
    """,
    "a buffer used again": """
        missing_barrier_after_read gemm_tile_replaced_while_in_use scratch_reused_between_two_reductions
        sums_of_warps_reused_for_the_next_row flag_lowered_while_others_ask count_of_the_tile_set_back
    """,
    "double buffering": """
        double_buffer_without_barrier double_buffer_writes_the_buffer_in_use
        double_buffer_without_the_first_barrier two_global_buffers_and_barriers_of_blocks
        ring_one_buffer_short swapped_pointers_without_barrier
    """,
    "asynchronous copies": """
        copy_read_before_the_wait wait_for_the_wrong_group wait_without_barrier stage_refilled_while_read
        committed_after_the_wait cleared_while_the_copy_is_on_its_way
    """,
}
DOCUMENT = Path(__file__).parents[3] / "docs" / "explanation" / "races.md"


def test_every_racy_pair_has_one_category():
    named = [name for names in CATEGORIES.values() for name in names.split()]
    racy = {pair.name for pair in PAIRS if pair.kind == "race"}
    assert len(named) == len(set(named))
    assert set(named) == racy
    assert len(racy) >= 80
    assert all(len(names.split()) >= 4 for names in CATEGORIES.values())


def test_the_table_in_the_documentation_counts_them():
    rows = dict(re.findall(r"^\| ([a-z, ]+) \| (\d+) \|$", DOCUMENT.read_text(encoding="utf-8"), re.MULTILINE))
    assert {name: int(count) for name, count in rows.items()} == {
        name: len(names.split()) for name, names in CATEGORIES.items()
    }
