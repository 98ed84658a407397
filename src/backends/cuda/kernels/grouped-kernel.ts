/**
 * A grouped matmul of bfloat16 or half on Hopper's tensor cores, with sums in float.
 *
 * As many blocks as multiprocessors take tiles of 128 rows in turn, all rows of a group before its next columns, so
 * that tiles share the group's matrix in L2. In a block, one thread copies operands by TMA into a ring of stages, and
 * two warpgroups multiply 64 rows each (wgmma). The descriptors that TMA needs are made by the block, in scratch.
 * The two halves of a tile may be of two batches that share a matrix, so that tiles are full where groups are not.
 *
 * A launch before it checks the ends of the groups: with a call anywhere in a kernel, ptxas lets every wgmma wait for
 * the one before it.
 *
 * A tile may read more rows than its group has, which it does not store. Terms after the group's last one are set to
 * zero in shared memory, in both operands, because what follows them may be NaN.
 *
 * Lines of operands in shared memory have 128 bytes, swizzled by TMA: 64 terms of a row of a or of a column of b, or,
 * if the operand is contiguous along those ("across"), 64 of them for one term.
 */
import type { Contraction, Groups } from "../../../kernels/gemm/contraction.ts";
import type { NestMemory } from "../../../kernels/nests/nest.ts";
import { dtypes } from "../../../numerics/dtype.ts";
import { at } from "../../../support/invariant.ts";
import type { DeviceTarget } from "../ops/planning.ts";
import { groupedBody, groupedHead, groupedThreads, multiplyText } from "./grouped-text.ts";
import { kernelName, type KernelSource } from "./kernel-source.ts";
import { withPrelude } from "./text/prelude.ts";

/** Of a tile. */
const tileRows = 128;
/** Of a stage, and elements of a line. */
const tileTerms = 64;
const checkThreads = 128;
/** Groups of all batches, whose places lie beside the stages. */
const mostGroups = 1024;
/** Descriptors of a and b. */
const maps = 2;
const mapBytes = 128;
const leastExtent = 64;
const mostDimensions = 5;

/** What the kernel's descriptors take of the scratch. */
export function groupedDescriptorBytes({ multiprocessors }: DeviceTarget): number {
  return maps * mapBytes * multiprocessors;
}

/** An operand as TMA reads it. Extents and strides are in elements, the contiguous dimension first, of stride 1. */
interface TensorMap {
  readonly extents: readonly number[];
  readonly strides: readonly number[];
  /** Lines of a copy. */
  readonly lines: number;
  /** Where a copy begins, in C. */
  readonly coordinates: readonly string[];
  /** Whether lines are terms. */
  readonly across: boolean;
}

/** Two launches: `check` has the ends as its parameter; `multiply` a, b, the ends, c and scratch for its descriptors. */
export interface GroupedKernels {
  readonly check: KernelSource;
  readonly multiply: KernelSource;
}

/**
 * Null for what it does not take:
 * another GPU, other dtypes, strides that are 0 or no multiples of 16 bytes, matrices that one tile would hardly fill.
 */
export function groupedKernels(
  contraction: Contraction,
  operands: readonly NestMemory[],
  target: DeviceTarget,
): GroupedKernels | null {
  const { dtype, m, n, k, c, batch, groups } = contraction;
  if (target.capability !== 90 || groups === undefined || (dtype !== "bfloat16" && dtype !== "half")) return null;
  const ofRows = groups.of === "m";
  const columns = n > 128 ? 256 : 128;
  const stages = columns === 256 ? 4 : 6;
  const [left, right] = [leftMap(contraction, ofRows), rightMap(contraction, groups, columns)];
  const batches = batch.reduce((product, { extent }) => product * extent, 1);
  // The rows after the last group are one more group, of zeros.
  const perBatch = groups.count + (ofRows ? 1 : 0);
  const steps = [...left.strides, ...right.strides, c.row, groups.stride, n, ...batch.map((axis) => axis.c)];
  const dimensions = Math.max(left.extents.length, right.extents.length);
  const repeats = [...left.strides, ...right.strides].includes(0);
  if (repeats || left.across === ofRows || !(ofRows || right.across) || c.column !== 1) return null;
  if (!isContiguous(contraction, left, right) || steps.some((step) => step % 8 !== 0)) return null;
  if (Math.min(m, n, k) < leastExtent) return null;
  if (dimensions > mostDimensions || batches * perBatch > mostGroups) return null;
  const tiles = ofRows ? Math.ceil(m / tileRows) + perBatch : groups.count * Math.ceil(m / tileRows);
  const sharing = ofRows ? batchesOfMatrix(batch) : 1;
  const numbers = {
    COLUMNS: columns,
    STAGES: stages,
    M: m,
    N: n,
    K: k,
    GROUPS: groups.count,
    PER_BATCH: perBatch,
    COUNT: batches * perBatch,
    SHARING: sharing,
    OF_ROWS: ofRows ? 1 : 0,
    A_ACROSS: left.across ? 1 : 0,
    B_ACROSS: right.across ? 1 : 0,
    C_STEP: c.row,
    GROUP_STEP: groups.stride,
    END_STEP: groups.ends.stride,
  };
  const text = [
    ...Object.entries(numbers).map(([name, value]) => `#define ${name} ${value}`),
    `#define TYPE "${dtype === "half" ? "f16" : "bf16"}"`,
    `typedef ${dtypes[groups.ends.dtype].cuda.c} End;`,
    groupedHead,
    batchText(contraction, groups),
    mapText("a", left, dtype),
    mapText("b", right, dtype),
    loadText("a", left),
    loadText("b", right),
    multiplyText(columns, left.across, right.across),
    groupedBody,
  ];
  const multiply: KernelSource = {
    text: withPrelude(`${text.join("\n")}\n`),
    grid: [Math.min(batches * tiles * Math.ceil(n / columns), target.multiprocessors), 1, 1],
    block: [groupedThreads, 1, 1],
    parameters: operands,
    // Alignment, stages with their barriers, descriptors, and the places of groups.
    sharedBytes: 1024 + stages * (2 * (tileRows + columns) * tileTerms + 16) + maps * mapBytes + 16 * (mostGroups + 1),
  };
  return { check: endsCheck(contraction, groups), multiply };
}

function isContiguous({ a, b }: Contraction, left: TensorMap, right: TensorMap): boolean {
  return (left.across ? a.row : a.column) === 1 && (right.across ? b.column : b.row) === 1;
}

function leftMap({ m, k, a, batch }: Contraction, ofRows: boolean): TensorMap {
  const across = a.column !== 1;
  return withBatch(
    {
      extents: across ? [m, k] : [k, m],
      strides: [across ? a.column : a.row],
      lines: tileTerms,
      coordinates: across ? ["half.row", ofRows ? "depth" : "tile.start + depth"] : ["depth", "half.row"],
      across,
    },
    batch.map((axis) => [axis.extent, axis.a]),
  );
}

function rightMap({ n, k, b, batch }: Contraction, { of, count, stride }: Groups, columns: number): TensorMap {
  const across = b.row !== 1;
  const depth = of === "m" ? "depth" : "tile.start + depth";
  const hasMatrices = of === "m" && count > 1;
  return withBatch(
    {
      extents: [...(across ? [n, k] : [k, n]), ...(hasMatrices ? [count] : [])],
      strides: [across ? b.row : b.column, ...(hasMatrices ? [stride] : [])],
      lines: across ? tileTerms : columns,
      coordinates: [
        ...(across ? ["tile.column", depth] : [depth, "tile.column"]),
        ...(hasMatrices ? ["tile.group"] : []),
      ],
      across,
    },
    batch.map((axis) => [axis.extent, axis.b]),
  );
}

/** How many batches in a row have the same matrices. */
function batchesOfMatrix(batch: Contraction["batch"]): number {
  const last = batch.findLastIndex(({ b }) => b !== 0);
  return batch.slice(last + 1).reduce((product, { extent }) => product * extent, 1);
}

/** An operand that is the same in all of an axis has no dimension for it. */
function withBatch(map: TensorMap, axes: readonly (readonly [extent: number, stride: number])[]): TensorMap {
  const own = axes.flatMap(([extent, stride], i) => (stride === 0 ? [] : [{ extent, stride, i }]));
  return {
    ...map,
    extents: [...map.extents, ...own.map(({ extent }) => extent)],
    strides: [...map.strides, ...own.map(({ stride }) => stride)],
    coordinates: [...map.coordinates, ...own.map(({ i }) => `index_of(half.batch, ${i})`)],
  };
}

/** The index of a batch along each of its axes, and its offsets in the ends and in c, in elements. */
function batchText({ batch }: Contraction, { ends }: Groups): string {
  const inner = batch.map((_, i) => batch.slice(i + 1).reduce((product, { extent }) => product * extent, 1));
  const indices = batch.map(({ extent }, i) => `axis == ${i} ? batch / ${at(inner, i)}u % ${extent}u : `);
  const offset = (name: string, strides: readonly number[]): string => {
    const terms = strides.map((stride, i) => ` + index_of(batch, ${i}) * ${stride}ll`);
    return `DEVICE long long ${name}_offset(u32 batch) { return 0${terms.join("")}; }`;
  };
  return `DEVICE u32 index_of(u32 batch, int axis) { return ${indices.join("")}0; }
${offset("ends", ends.batch)}
${offset(
  "c",
  batch.map(({ c }) => c),
)}`;
}

/** Makes a descriptor in shared memory. */
function mapText(name: string, { extents, strides, lines }: TensorMap, dtype: "bfloat16" | "half"): string {
  const replace = (field: string, type: string, ...values: readonly string[]): string =>
    `  asm volatile("tensormap.replace.tile.${field}.shared::cta.b1024.${type} [%0], ${values.slice(0, -1).join("")}%1;"
    : : "r"(map), ${values.at(-1) ?? ""} : "memory");`;
  const constant = (field: string, value: number): string =>
    `  asm volatile("tensormap.replace.tile.${field}.shared::cta.b1024.b32 [%0], ${value};" : : "r"(map) : "memory");`;
  const each = (field: string, type: string, values: readonly number[]): readonly string[] =>
    values.map((value, i) => replace(field, type, `${i}, `, type === "b64" ? `"l"(${value}ll)` : `"r"(${value}u)`));
  const box = extents.map((_, i) => (i === 0 ? tileTerms : i === 1 ? lines : 1));
  return `DEVICE void make_${name}(u32 map, const u16 *address) {
${[
  replace("global_address", "b64", '"l"(address)'),
  constant("rank", extents.length - 1),
  ...each("box_dim", "b32", box),
  ...each("global_dim", "b32", extents),
  ...each(
    "global_stride",
    "b64",
    strides.map((stride) => 2 * stride),
  ),
  ...each(
    "element_stride",
    "b32",
    extents.map(() => 1),
  ),
  constant("elemtype", dtype === "half" ? 6 : 10),
  constant("interleave_layout", 0),
  constant("swizzle_mode", 3),
  constant("fill_mode", 0),
].join("\n")}
}`;
}

/** Copies a part of an operand to a stage. */
function loadText(name: string, map: TensorMap): string {
  const { coordinates, across } = map;
  const places = coordinates.map((_, i) => `%${i + 3}`).join(", ");
  const moves = across && name === "b";
  const values = coordinates.map((each, i) => `"r"((int)(${each})${moves && i === 0 ? " + first" : ""})`).join(", ");
  const copy = `cp.async.bulk.tensor.${map.extents.length}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes`;
  return `DEVICE void load_${name}(u32 to, const void *map, u32 barrier, const Tile &tile, const Half &half, int depth, int first = 0) {
  asm volatile("${copy} [%0], [%1, {${places}}], [%2];"
    : : "r"(to), "l"(map), "r"(barrier), ${values} : "memory");
}`;
}

/** Ends the run unless the ends of the groups of each batch do not fall and are at most the rows. */
function endsCheck(contraction: Contraction, groups: Groups): KernelSource {
  const { m, k, batch } = contraction;
  const count = batch.reduce((product, { extent }) => product * extent, groups.count);
  const text = `typedef unsigned u32;
typedef ${dtypes[groups.ends.dtype].cuda.c} End;
#define DEVICE static __device__ __forceinline__
${batchText(contraction, groups)}
extern "C" __global__ void __launch_bounds__(${checkThreads}) ${kernelName}(const End *ends) {
  const u32 i = blockIdx.x * ${checkThreads}u + threadIdx.x;
  if (i >= ${count}u) return;
  const u32 batch = i / ${groups.count}u, group = i % ${groups.count}u;
  const End *const own = ends + ends_offset(batch);
  const long long start = group == 0 ? 0 : (long long)own[(group - 1) * ${groups.ends.stride}ll];
  const long long end = (long long)own[group * ${groups.ends.stride}ll];
  if (end < start || end > ${groups.of === "m" ? m : k}) braid_bad_ends();
}
`;
  return {
    text: withPrelude(text),
    grid: [Math.ceil(count / checkThreads), 1, 1],
    block: [checkThreads, 1, 1],
    parameters: [],
  };
}
