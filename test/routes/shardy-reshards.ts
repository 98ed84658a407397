/**
 * The reshardings of Shardy's tests, translated into the notation of layout.ts. Names, extents, meshes and shardings are
 * those of shardy/dialect/sdy/transforms/export/test/reshard_to_collectives.mlir of openxla/shardy at a0277a83e7f8,
 * Copyright The Shardy Authors, licensed under the Apache License, Version 2.0; the programs are ours. Elements are
 * floats.
 */
import { type Layout, layout, type Part } from "./layout.ts";

export interface Reshard {
  readonly name: string;
  readonly shape: readonly number[];
  readonly before: Layout;
  readonly after: Layout;
}

function reshard(name: string, shape: readonly number[], before: Layout, after: Layout): Reshard {
  return { name, shape, before, after };
}

/** Up to which numbers of devices the quick suite compares values, and counts bytes. */
export const quickDevices = { values: 6, bytes: 64 };

/** Whether it is on one mesh of at most three dimensions, none of which is cut in parts. */
export function isPlain({ before, after }: Reshard): boolean {
  const { mesh, devices } = before;
  const isWhole = (part: Part): boolean => mesh.some(({ name, size }) => name === part.name && size === part.size);
  return (
    mesh.length <= 3 &&
    JSON.stringify([mesh, devices]) === JSON.stringify([after.mesh, after.devices]) &&
    [before, after].every(({ cuts }) => cuts.flat().every(isWhole))
  );
}

export const shardyReshards: readonly Reshard[] = [
  reshard("redundant_reshard_fully_replicated", [16, 8], layout("x2 y2", "[][]"), layout("x2 y2", "[][]")),
  reshard(
    "redundant_reshard_fully_replicated_different_meshes",
    [16, 8],
    layout("x2 y3", "[][]"),
    layout("x6", "[][]"),
  ),
  reshard(
    "redundant_reshard_fully_replicated_same_mesh_different_device_ids",
    [16, 8],
    layout("x2 y2", "[][]"),
    layout("x2 y2", "[][]", { devices: [3, 2, 1, 0] }),
  ),
  reshard("redundant_reshard", [16, 8], layout("x2 y2", "[x][y]"), layout("x2 y2", "[x][y]")),
  reshard("reshard_from_sharded_to_fully_replicated_same_meshes", [24, 8], layout("x6", "[x][]"), layout("x6", "[][]")),
  reshard(
    "reshard_from_sharded_to_fully_replicated_different_meshes",
    [24, 8],
    layout("x6", "[x][]"),
    layout("x2 y3", "[][]"),
  ),
  reshard("reshard_from_sharded_to_sharded_different_meshes", [24, 8], layout("x6", "[x][]"), layout("x2 y3", "[x][]")),
  reshard("all_gather_single_axis", [16, 8], layout("x2 y2", "[y][x]"), layout("x2 y2", "[y][]")),
  reshard("all_gather_multiple_axes", [16, 8], layout("x2 y2 z2", "[x y z][]"), layout("x2 y2 z2", "[x][]")),
  reshard("all_gather_multiple_dims", [16, 8], layout("x2 y2 z2", "[y z][x]"), layout("x2 y2 z2", "[y][x]")),
  reshard("all_gather_with_subaxis", [16, 8], layout("x2 y8", "[y][x]"), layout("x2 y8", "[y(1)4][x]")),
  reshard("all_slice_multiple_axes", [16, 8], layout("x2 y2 z2", "[][]"), layout("x2 y2 z2", "[x][y z]")),
  reshard("all_slice_with_subaxis", [16, 8], layout("x2 y2 z2", "[][]"), layout("x2 y2 z2", "[x][y z]")),
  reshard("all_slice_minor_axis", [16, 8], layout("x2 y2 z2", "[x][y]"), layout("x2 y2 z2", "[x][y z]")),
  reshard("all_slice_missing_input_sharding", [16, 8], layout("x2 y2 z2", "[][]"), layout("x2 y2 z2", "[x][y z]")),
  reshard("all_to_all_single_axis", [16, 8, 8], layout("x2 y2 z2", "[x][y][]"), layout("x2 y2 z2", "[][y][x]")),
  reshard("all_to_all_multiple_axes", [16, 8, 8], layout("x2 y2 z2", "[x][][y z]"), layout("x2 y2 z2", "[x][y z][]")),
  reshard(
    "all_to_all_move_partial_axes_from_src_dim_to_non_empty_tgt_dim",
    [16, 8],
    layout("x2 y2 z2", "[x z][y]"),
    layout("x2 y2 z2", "[x][y z]"),
  ),
  reshard(
    "two_all_to_alls_different_tgt_dims",
    [16, 8, 8],
    layout("x4 y2 z4", "[][y x][]"),
    layout("x4 y2 z4", "[x][][y]"),
  ),
  reshard(
    "two_all_to_alls_tgt_dim_not_empty",
    [16, 8, 8],
    layout("x4 y2 z4", "[x][y z][]"),
    layout("x4 y2 z4", "[x z][][y]"),
  ),
  reshard(
    "two_all_to_alls_same_tgt_dim_reverse_order",
    [16, 8, 8],
    layout("x2 y2 z2", "[y][x][]"),
    layout("x2 y2 z2", "[][][x y]"),
  ),
  reshard(
    "two_all_to_alls_same_tgt_dim_non_contiguous",
    [16, 8, 8],
    layout("x2 y2 z2", "[y][x z][]"),
    layout("x2 y2 z2", "[][][x y z]"),
  ),
  reshard("slice_then_all_to_alls", [16, 8, 8], layout("x4 y2 z4", "[][y z][]"), layout("x4 y2 z4", "[x z][][y]")),
  reshard(
    "all_to_all_subaxis_then_all_gather",
    [16, 8, 8],
    layout("x4 y2 z4", "[x][z y][]"),
    layout("x4 y2 z4", "[x z(2)2][][y]"),
  ),
  reshard(
    "all_to_all_subaxis_and_full_axis_then_all_gather",
    [16, 8, 8],
    layout("x2 y2 z4 w2", "[x][z w y][]"),
    layout("x2 y2 z4 w2", "[x z(2)2 w][][y]"),
  ),
  reshard(
    "slice_on_src_dim_then_all_to_all",
    [16, 8],
    layout("x2 y2 z2 w4", "[][w(1)2]"),
    layout("x2 y2 z2 w4", "[w][]"),
  ),
  reshard(
    "slice_on_src_dim_then_all_to_all_multiple_axes",
    [16, 8, 8],
    layout("x2 y2 z2", "[][x][]"),
    layout("x2 y2 z2", "[][][x y z]"),
  ),
  reshard(
    "slice_on_src_dim_then_two_all_to_alls",
    [16, 8, 8],
    layout("x2 y2 z2", "[z][x][]"),
    layout("x2 y2 z2", "[][][x y z]"),
  ),
  reshard(
    "slice_on_src_dim_then_two_all_to_alls_2",
    [16, 8, 8],
    layout("x2 y2 z2", "[y][x][]"),
    layout("x2 y2 z2", "[][][x y z]"),
  ),
  reshard(
    "slice_on_src_dim_then_two_all_to_alls_diff_tgts",
    [16, 8, 8],
    layout("x2 y2 z2", "[][x y][]"),
    layout("x2 y2 z2", "[x][][y z]"),
  ),
  reshard(
    "slice_on_src_dim_then_all_to_all_and_all_gather",
    [16, 8],
    layout("x2 y2 z2 w4", "[y z w(1)2][]"),
    layout("x2 y2 z2 w4", "[y][x w]"),
  ),
  reshard(
    "slice_on_multiple_src_dims",
    [16, 8, 8],
    layout("x2 y2 z2 w2", "[z][x][]"),
    layout("x2 y2 z2 w2", "[][][x y z w]"),
  ),
  reshard(
    "slice_on_one_src_dim_but_not_other",
    [2, 8, 8],
    layout("x2 y2 z2 w2", "[z][x][]"),
    layout("x2 y2 z2 w2", "[][][x y z w]"),
  ),
  reshard(
    "slice_on_src_dim_considering_existing_axes_on_src_dim",
    [8, 4],
    layout("x2 y2 z2", "[x y][]"),
    layout("x2 y2 z2", "[x][y z]"),
  ),
  reshard(
    "slice_on_src_dim_and_replace_axis_in_another_dim",
    [16, 8, 8],
    layout("x2 y2 z2 w2", "[z][x][]"),
    layout("x2 y2 z2 w2", "[w][][x y]"),
  ),
  reshard(
    "cannot_slice_on_src_dim_output_sharded",
    [16, 8],
    layout("x2 y2 z2", "[][x]"),
    layout("x2 y2 z2", "[x y][z]"),
  ),
  reshard(
    "cannot_slice_on_src_dim_tgt_dim_sharded",
    [16, 8, 8],
    layout("x2 y2 z2", "[][x][z]"),
    layout("x2 y2 z2", "[][][x y z]"),
  ),
  reshard(
    "cannot_slice_on_src_dim_axes_out_of_order",
    [4, 10],
    layout("x2 y2 z2", "[][x z]"),
    layout("x2 y2 z2", "[x y z][]"),
  ),
  reshard(
    "cannot_slice_on_src_dim_axes_non_contiguous",
    [4, 10],
    layout("x2 y2 z2 w2", "[][z w y]"),
    layout("x2 y2 z2 w2", "[x y z][]"),
  ),
  reshard(
    "cannot_slice_on_src_dim_size_too_small",
    [16, 4],
    layout("x2 y2 z2", "[][x]"),
    layout("x2 y2 z2", "[x y z][]"),
  ),
  reshard(
    "cannot_slice_on_src_dim_size_too_small_2",
    [16, 4, 8],
    layout("x2 y2 z2", "[][x y][]"),
    layout("x2 y2 z2", "[x][][y z]"),
  ),
  reshard(
    "cannot_slice_on_src_dim_considering_existing_axes_on_src_dim",
    [4, 4],
    layout("x2 y2 z2", "[x y][]"),
    layout("x2 y2 z2", "[x][y z]"),
  ),
  reshard("cannot_slice_on_src_dim_size_non_divisible", [4, 10], layout("x2 y2", "[][x]"), layout("x2 y2", "[x y][]")),
  reshard("replace_same_size_axes_same_dim", [16, 8], layout("x2 y2 z2", "[z][y]"), layout("x2 y2 z2", "[z][x]")),
  reshard(
    "replace_smaller_axis_with_bigger_same_dim",
    [16, 8],
    layout("x4 y2 z4", "[z][y]"),
    layout("x4 y2 z4", "[z][x]"),
  ),
  reshard(
    "replace_bigger_axis_with_smaller_same_dim",
    [16, 8],
    layout("x4 y2 z4", "[z][x]"),
    layout("x4 y2 z4", "[z][y]"),
  ),
  reshard(
    "replace_major_most_axis_in_dim",
    [16, 8],
    layout("x2 y2 z2 w2", "[x y z][]"),
    layout("x2 y2 z2 w2", "[w y z][]"),
  ),
  reshard(
    "replace_major_most_axis_then_all_gather",
    [16, 8],
    layout("x2 y2 z2", "[x y][]"),
    layout("x2 y2 z2", "[z][]"),
  ),
  reshard(
    "replace_major_most_axis_then_all_gather_sub_axis",
    [16, 8],
    layout("x4 y2 z4", "[x z][]"),
    layout("x4 y2 z4", "[y][]"),
  ),
  reshard(
    "replace_major_most_axis_then_all_gather_two_dims",
    [16, 8],
    layout("x2 y2 z2", "[x y][z]"),
    layout("x2 y2 z2", "[z][]"),
  ),
  reshard("replace_same_size_axes_diff_dims", [16, 8], layout("x2 y2", "[x][]"), layout("x2 y2", "[][y]")),
  reshard("replace_bigger_axis_with_smaller_diff_dims", [16, 8], layout("x4 y2", "[x][]"), layout("x4 y2", "[][y]")),
  reshard(
    "replace_multiple_axes_diff_dims",
    [8, 8, 8, 8],
    layout("x2 y2 z2 w2 u2 v2", "[x][y z][][]"),
    layout("x2 y2 z2 w2 u2 v2", "[][][w u][v]"),
  ),
  reshard("replace_smaller_axis_with_bigger_diff_dims", [16, 8], layout("x4 y2", "[y][]"), layout("x4 y2", "[][x]")),
  reshard(
    "slice_tgt_dim_then_all_to_all_then_all_gather",
    [16, 8],
    layout("x2 y2 z2 w4", "[y z w][]"),
    layout("x2 y2 z2 w4", "[y][x w]"),
  ),
  reshard("swap_same_size_axes_between_dims", [16, 8], layout("x2 y2", "[x][y]"), layout("x2 y2", "[y][x]")),
  reshard("swap_diff_size_axes_between_dims", [16, 8], layout("x4 y2", "[x][y]"), layout("x4 y2", "[y][x]")),
  reshard("slice_and_swap_axes_between_dims", [16, 8], layout("x2 y2 z2", "[x][y]"), layout("x2 y2 z2", "[x y][z]")),
  reshard(
    "swap_axes_between_dims_then_all_to_all",
    [8, 8, 8],
    layout("x2 y2", "[x][y][]"),
    layout("x2 y2", "[][x][y]"),
  ),
  reshard(
    "slice_sub_axes_then_swap_between_dims",
    [16, 8],
    layout("x4 y2 z4", "[z][y]"),
    layout("x4 y2 z4", "[y z][x]"),
  ),
  reshard(
    "swap_sub_axes_then_all_to_all_and_all_gather",
    [16, 8],
    layout("x4 y2 z4", "[z y][x]"),
    layout("x4 y2 z4", "[x z][]"),
  ),
  reshard("reorder_axes_single_dim", [16, 8], layout("x4 y2 z4", "[x y][z]"), layout("x4 y2 z4", "[y x][z]")),
  reshard("reorder_axes_across_dims", [16, 8], layout("x4 y2 z4", "[x y][z]"), layout("x4 y2 z4", "[y z][x]")),
  reshard("slice_then_reorder_axes", [16, 8, 8], layout("x2 y2", "[y][][]"), layout("x2 y2", "[x y][][]")),
  reshard("reorder_axes_for_all_gather", [16, 8], layout("x2 y2 z2", "[y x z][]"), layout("x2 y2 z2", "[z][]")),
  reshard(
    "reorder_axes_for_all_to_all_then_all_gather_single_axis",
    [16, 8],
    layout("x2 y2 z2", "[y x z][]"),
    layout("x2 y2 z2", "[z][y]"),
  ),
  reshard(
    "reorder_axes_for_all_to_all_then_all_gather_remaining_axes",
    [16, 8],
    layout("x2 y2 z2", "[z y x][]"),
    layout("x2 y2 z2", "[][y]"),
  ),
  reshard(
    "all_to_all_axes_at_src_out_of_order",
    [16, 8, 8],
    layout("x2 y2", "[][y x][]"),
    layout("x2 y2", "[x y][][]"),
  ),
  reshard(
    "all_to_all_axes_at_src_and_tgt_out_of_order",
    [16, 8, 8],
    layout("x4 y2 z4", "[z][y x][]"),
    layout("x4 y2 z4", "[x y z][][]"),
  ),
  reshard(
    "all_to_all_two_tgt_dims_src_out_of_order",
    [16, 8, 8],
    layout("x4 y2 z4", "[][x z y][]"),
    layout("x4 y2 z4", "[x y][][z]"),
  ),
  reshard(
    "all_to_all_two_tgt_dims_src_out_of_order_2",
    [16, 8, 8],
    layout("x4 y2 z4", "[][y z x][]"),
    layout("x4 y2 z4", "[x y][][z]"),
  ),
  reshard(
    "all_to_all_and_gather_src_dim_out_of_order",
    [16, 8, 8],
    layout("x2 y2 z4 w2", "[x][y z w][]"),
    layout("x2 y2 z4 w2", "[x z(2)2 w][][y]"),
  ),
  reshard("reorder_sub_axes", [16, 8], layout("x2 y2 z2 w4", "[y w(1)2 z w(2)2][]"), layout("x2 y2 z2 w4", "[y][x w]")),
  reshard("replace_sub_axes", [16, 8], layout("x2 y2 z2 w4", "[y z w(2)2][]"), layout("x2 y2 z2 w4", "[y][x w]")),
  reshard(
    "replace_sub_axes_2",
    [16, 8],
    layout("x2 y2 z2 w16", "[y w(4)2 z w(1)2][]"),
    layout("x2 y2 z2 w16", "[y][x w(2)8]"),
  ),
  reshard(
    "replace_sub_axes_3",
    [16, 8],
    layout("x2 y2 z2 w16", "[y w(4)2 z w(1)2][]"),
    layout("x2 y2 z2 w16", "[y][x w]"),
  ),
  reshard(
    "reorder_device_ids",
    [16, 8],
    layout("x2 y2", "[x][y]"),
    layout("x2 y2", "[x][y]", { devices: [3, 2, 1, 0] }),
  ),
  reshard(
    "reorder_axes_and_device_ids",
    [16, 8],
    layout("x2 y2", "[x y][]"),
    layout("x2 y2", "[y x][]", { devices: [3, 2, 1, 0] }),
  ),
  reshard(
    "reorder_device_ids_then_all_gather",
    [16, 8],
    layout("x2 y2", "[x][y]"),
    layout("x2 y2", "[x][]", { devices: [3, 2, 1, 0] }),
  ),
  reshard(
    "slice_then_reorder_axes_and_device_ids",
    [16, 8],
    layout("x2 y2", "[x][]"),
    layout("x2 y2", "[y x][]", { devices: [3, 2, 1, 0] }),
  ),
  reshard(
    "slice_then_reorder_device_ids_then_all_to_all",
    [16, 8],
    layout("x2 y2", "[x][]", { devices: [3, 2, 1, 0] }),
    layout("x2 y2", "[][x y]", { devices: [3, 1, 2, 0] }),
  ),
  reshard(
    "reorder_device_ids_then_two_all_to_alls",
    [16, 8, 8],
    layout("x2 y2", "[][y x][]"),
    layout("x2 y2", "[x][][y]", { devices: [3, 2, 1, 0] }),
  ),
  reshard("reshard_on_while_block_arg", [32, 96], layout("x2 y2", "[x][]"), layout("x2 y2", "[][x]")),
  reshard(
    "replace_smaller_axis_with_bigger_same_dim_non_divisible",
    [12, 12],
    layout("x2 y3", "[x][]"),
    layout("x2 y3", "[y][]"),
  ),
  reshard(
    "replace_bigger_axis_with_smaller_same_dim_non_divisible",
    [12, 12],
    layout("x2 y3", "[y][]"),
    layout("x2 y3", "[x][]"),
  ),
  reshard(
    "replace_smaller_axis_with_bigger_gcd_greater_than_one",
    [12, 12],
    layout("x4 y6", "[x][]"),
    layout("x4 y6", "[y][]"),
  ),
  reshard(
    "replace_bigger_axis_with_smaller_gcd_greater_than_one",
    [12, 12],
    layout("x4 y6", "[y][]"),
    layout("x4 y6", "[x][]"),
  ),
  reshard("swap_non_divisible_axes_diff_dim", [12, 12], layout("x2 y3", "[x][y]"), layout("x2 y3", "[y][x]")),
  reshard(
    "replace_axes_and_all_gather_gcd_greater_than_one",
    [12, 12],
    layout("x4 y6", "[x][y(1)2]"),
    layout("x4 y6", "[y][]"),
  ),
  reshard(
    "replace_axes_and_all_gather_gcd_greater_than_one_2",
    [12, 12],
    layout("x4 y6 z2", "[x][z]"),
    layout("x4 y6 z2", "[y][]"),
  ),
  reshard(
    "replace_axes_and_all_gather_gcd_greater_than_one_3",
    [12, 10],
    layout("x4 y6 z5", "[x][z]"),
    layout("x4 y6 z5", "[y][]"),
  ),
  reshard("reshard_with_propagation_barrier", [8, 8, 8], layout("x2 y2 z2", "[x][y][z]"), layout("x2 y2 z2", "[][][]")),
];

/** Cases that Braid cannot say, with the reason in a word: no mesh on a side, or an input of pending sums. */
export const leftOut: Readonly<Record<string, "meshless" | "pending">> = {
  redundant_reshard_fully_replicated_same_empty_meshes: "meshless",
  redundant_reshard_fully_replicated_different_empty_meshes: "meshless",
  redundant_reshard_fully_replicated_input_mesh_nonempty_output_mesh_empty: "meshless",
  out_unreduced_axes_preserved: "pending",
  single_device_in_sharding: "meshless",
  single_device_out_sharding: "meshless",
};
