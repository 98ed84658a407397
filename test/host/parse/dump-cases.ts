/** The dumps of the fixtures, each with a Fusion that computes the same and with sizes. */
import { readFileSync } from "node:fs";
import path from "node:path";
import {
  broadcast,
  cast,
  exp,
  Fusion,
  linear,
  matmul,
  mul,
  neg,
  permute,
  reshape,
  set,
  sum,
} from "@braid-compiler/braid";

export interface DumpCase {
  /** Below test/fixtures/dumps. */
  readonly file: string;
  /** The file's text if not given. */
  readonly text?: string;
  /** The style in which `print` prints it back. */
  readonly style: "2025-04" | "2025-05" | "2025-10" | "2026-01";
  readonly devices: number;
  readonly sizes: Readonly<Record<string, number>>;
  /** On whole tensors: no mesh, no schedule. */
  readonly reference: () => Fusion;
}

const folder = path.resolve(import.meta.dirname, "../../fixtures/dumps");

export function dumpText(file: string): string {
  return readFileSync(path.join(folder, file), "utf8");
}

function fusion(build: (f: Fusion) => ReturnType<Fusion["input"]>): () => Fusion {
  return () => {
    const f = new Fusion();
    f.output(build(f));
    return f;
  };
}

const copied = (shape: readonly number[]): (() => Fusion) => fusion((f) => set(f.input(shape)));

const linearOf = (shape: readonly number[]): (() => Fusion) =>
  fusion((f) => {
    const dtype = "bfloat16";
    return linear(f.input(shape, dtype), f.input([1024, 1024], dtype), f.input([1024], dtype));
  });

/** The containers of nvFuser's pull requests that say all that a run needs: all but `undefinedDump`. */
export const realDumps: readonly DumpCase[] = [
  { file: "e1-single-set.hir", style: "2025-04", devices: 1, sizes: { i0: 5, i2: 3 }, reference: copied([5, 3]) },
  {
    file: "e1-two-sets.hir",
    style: "2025-04",
    devices: 1,
    sizes: { i0: 4, i2: 7 },
    reference: fusion((f) => set(set(f.input([4, 7])))),
  },
  {
    file: "e1-three-sets.hir",
    style: "2025-04",
    devices: 1,
    sizes: { i0: 5, i2: 3 },
    reference: fusion((f) => set(set(set(f.input([5, 3]))))),
  },
  {
    file: "draft-reduction.hir",
    style: "2025-04",
    devices: 1,
    sizes: { i0: 4, i2: 3, i3: 5 },
    reference: fusion((f) => sum(f.input([4, 3, 5]), [2])),
  },
  ...["draft-allgather-linear-one-loop.hir", "draft-allgather-linear.hir"].map((file): DumpCase => ({
    file,
    style: "2025-05",
    devices: 2,
    sizes: {},
    reference: linearOf([8, 2, 64, 1024]),
  })),
  {
    file: "e2-allgather.hir",
    style: "2025-05",
    devices: 8,
    sizes: { i0: 4 },
    reference: copied([4, 8]),
  },
  {
    file: "e2-allreduce.hir",
    style: "2025-05",
    devices: 8,
    sizes: { i0: 3, i3: 5 },
    reference: fusion((f) => sum(f.input([3, 8, 5]), [1])),
  },
  {
    file: "e2-allgather-matmul.hir",
    style: "2025-05",
    devices: 8,
    sizes: { i0: 3, i3: 2, i4: 5, i5: 5, i6: 4 },
    reference: fusion((f) => matmul(f.input([3, 8, 2, 5]), f.input([5, 4]))),
  },
  {
    file: "e2-reduce-scatter.hir",
    style: "2025-05",
    devices: 8,
    sizes: { i0: 3, i4: 5 },
    reference: fusion((f) => sum(f.input([3, 8, 8, 5]), [1])),
  },
  {
    file: "e2-matmul-allreduce.hir",
    style: "2025-05",
    devices: 8,
    sizes: { i0: 3, i3: 2, i4: 5, i6: 5, i7: 4 },
    reference: fusion((f) => sum(matmul(f.input([3, 8, 2, 5]), f.input([8, 5, 4])), [1])),
  },
  {
    file: "e2-matmul-reduce-scatter.hir",
    style: "2025-05",
    devices: 8,
    sizes: { i0: 3, i4: 2, i5: 5, i7: 5, i8: 4 },
    reference: fusion((f) => {
      const [a, b] = [f.input([3, 8, 8, 2, 5]), f.input([8, 5, 4])];
      return sum(matmul(a, broadcast(b, [true, false, true, false, false])), [1]);
    }),
  },
  {
    file: "e2b-allgather-matmul-p2p-nccl.hir",
    style: "2025-05",
    devices: 8,
    sizes: { i2: 2, i3: 5, i4: 5, i5: 4 },
    reference: fusion((f) => matmul(f.input([8, 2, 5]), f.input([5, 4]))),
  },
  {
    file: "e2b-allgather-p2p-nccl.hir",
    style: "2025-05",
    devices: 8,
    sizes: { i2: 6 },
    reference: copied([8, 6]),
  },
  {
    file: "e3-allgather-linear-p2p-cuda.hir",
    style: "2025-10",
    devices: 8,
    sizes: {},
    reference: linearOf([8, 128, 1024]),
  },
];

/** The same program as e3 with other slices, printed without the definitions of i84, i90 and i107. */
export const undefinedDump = "e3-allgather-linear-p2p-cuda-undefined.hir";

/** Of nvFuser's FusionExecutorCache path: dumps that its tests print, and written ones. */
export const otherPathDumps: readonly DumpCase[] = otherPathDumpsOf([6, 4]);

/** With these rows, which are cut into 3 chunks or among 2 devices. */
export function otherPathDumpsOf([rows, shared]: readonly [number, number]): readonly DumpCase[] {
  return [
    {
      file: "fec-two-matmuls.hir",
      style: "2025-10",
      devices: 1,
      sizes: { i0: rows, i2: 4, i4: 5, i6: 3 },
      reference: fusion((f) => matmul(matmul(f.input([rows, 4]), f.input([4, 5])), f.input([5, 3]))),
    },
    ...["fec-row-parallel-linear.hir", "written/fec-row-parallel-linear-2026-04.hir"].map((file): DumpCase => ({
      file,
      style: "2026-01",
      devices: 2,
      sizes: { i0: rows },
      // Each device rounds its partial result.
      reference: fusion((f) => {
        const [x, weight] = [f.input([rows, 8], "bfloat16"), f.input([2, 8], "bfloat16")];
        const [left, right] = [
          permute(reshape(x, [rows, 2, 4]), [1, 0, 2]),
          permute(reshape(weight, [2, 2, 4]), [1, 2, 0]),
        ];
        return sum(matmul(left, right), [0]);
      }),
    })),
    {
      file: "fec-matmul.hir",
      style: "2025-10",
      devices: 1,
      sizes: { i0: 5, i2: 7, i4: rows },
      reference: fusion((f) => matmul(f.input([5, 7]), f.input([7, rows]))),
    },
    ...["written/fec-broadcast.hir", "written/fec-permute.hir"].map((file): DumpCase => ({
      file,
      style: "2026-01",
      devices: 2,
      sizes: { i0: shared },
      reference: fusion((f) => linear(f.input([shared, 6]), f.input([8, 6]))),
    })),
  ];
}

export const writtenDumps: readonly DumpCase[] = [
  { file: "written/call-style.hir", style: "2025-10", devices: 8, sizes: { i0: 4 }, reference: copied([4, 8]) },
  {
    file: "written/unnumbered-coalescing.hir",
    style: "2025-05",
    devices: 8,
    sizes: { i2: 6 },
    reference: copied([8, 6]),
  },
  {
    file: "written/launcher-log.txt",
    style: "2025-05",
    devices: 8,
    sizes: { i0: 3, i3: 5 },
    reference: fusion((f) => sum(f.input([3, 8, 5]), [1])),
  },
  {
    file: "written/host-unit.hir",
    style: "2025-10",
    devices: 1,
    sizes: { i0: 3, i2: 4, i3: 4, i4: 3 },
    reference: fusion((f) => {
      const [x, y] = [f.input([3, 4], "bfloat16"), f.input([4, 3], "bfloat16")];
      const scaled = mul(neg(exp(cast(x, "float"))), cast(permute(y, [1, 0]), "float"));
      return sum(cast(scaled, "bfloat16"), [1]);
    }),
  },
];
