/** nvFuser's tests/python/multidevice/test_overlap.py: the Fusions, at small sizes. */
import { linear, matmul, set } from "@braid-compiler/braid";
import { cut, place, type SuiteProgram } from "./setup.ts";
import { h, overlap, sharded, streamed } from "./overlap-programs.ts";

/** linear(inp[t<3>, 4h<d>], w[h, 4h<d>]). */
const rowParallelOf = (t: number, name: string): SuiteProgram =>
  overlap(
    name,
    "Allreduce 1",
    (f, s) => {
      const [x, w] = [f.input([t, 4 * h], "bfloat16"), f.input([h, 4 * h], "bfloat16")];
      const y = linear(x, w);
      place(s.mesh, x, w);
      sharded(x, 1, s);
      cut(x, 0, 3, "Stream");
      sharded(w, 1, s);
      return [y];
    },
    { streams: 3, rounds: true },
  );

export const rowParallel = rowParallelOf(6, "test_row_parallel_linear_forward");

/** linear(set(inp[t<d>, h]), w[4h<d>, h]), with the set in chunks. */
const columnParallel = (
  form: string,
  communications: string,
  p2p: "rotated" | "broadcast",
  t: number = 24,
): SuiteProgram =>
  overlap(
    `test_column_parallel_linear_forward, ${form}`,
    communications,
    (f, s) => {
      const [x, w] = [f.input([t, h], "bfloat16"), f.input([s.wide, h], "bfloat16")];
      const gathered = set(x);
      const y = linear(gathered, w);
      place(s.mesh, x, w, gathered);
      sharded(x, 0, s);
      sharded(w, 0, s);
      streamed(gathered, 0, s);
      return [y];
    },
    { p2p },
  );

/** nvFuser asserts that the chunks divide the rows. Here the last chunks are shorter or empty. */
export const unevenOverlapPrograms: readonly SuiteProgram[] = [
  rowParallelOf(7, "test_row_parallel_linear_forward, 7 rows in 3 chunks"),
  rowParallelOf(2, "test_row_parallel_linear_forward, 2 rows in 3 chunks"),
  columnParallel("rotated, 25 rows", "", "rotated", 25),
  columnParallel("rotated, 5 rows", "", "rotated", 5),
  columnParallel("broadcast, 25 rows", "Broadcast 1", "broadcast", 25),
];

/** linear(x[s, d, m/(sd), k], w[n, k], b[n]) of the tensor [m, k], in `chunks` chunks of rows. */
const streamOutermost = (chunks: number): SuiteProgram =>
  overlap(`test_overlap_allgather_matmul_stream_outermost, ${chunks} chunks`, "Allgather 1", (f, s) => {
    const rows = 2 * chunks * s.devices;
    const [x, w, b] = [f.input([rows, 4], "bfloat16"), f.input([3, 4], "bfloat16"), f.input([3], "bfloat16")];
    const y = linear(x, w, b);
    place(s.mesh, x, w, b, y);
    x.outerSplit(0, chunks);
    sharded(x, 1, s);
    return [cut(y, 0, chunks, "Stream")];
  });

const shardOutermost = (backend: "nccl" | "cuda"): SuiteProgram =>
  overlap(
    `test_overlap_allgather_matmul_shard_outermost, ${backend}`,
    "",
    (f, s) => {
      const [x, w, b] = [f.input([s.t, 4], "bfloat16"), f.input([3, 4], "bfloat16"), f.input([3], "bfloat16")];
      const y = linear(x, w, b);
      place(s.mesh, x, w, b, y);
      sharded(x, 0, s);
      return [streamed(y, 0, s)];
    },
    { backend, p2p: "rotated" },
  );

const noOverlap = (backend: "nccl" | "cuda"): SuiteProgram =>
  overlap(
    `test_allgather_matmul_no_overlap, ${backend}`,
    "Allgather 1",
    (f, s) => {
      const [a, b] = [f.input([s.t, 4]), f.input([4, 3])];
      const c = matmul(a, b);
      if (backend === "cuda") c.setMemoryType("symmetric");
      place(s.mesh, a, b, c);
      sharded(a, 0, s);
      return [c];
    },
    { backend },
  );

export const pythonOverlapPrograms: readonly SuiteProgram[] = [
  rowParallel,
  columnParallel("collective_permute", "", "rotated"),
  columnParallel("broadcast", "Broadcast 1", "broadcast"),
  streamOutermost(1),
  streamOutermost(8),
  shardOutermost("nccl"),
  shardOutermost("cuda"),
  noOverlap("nccl"),
  noOverlap("cuda"),
];
