/**
 * The time that the GEMMs of a Program take. A measured rate is that of a single GEMM in a run. With more of them, the
 * device lowers its clock, depending on how long it computes in total.
 */
import type { KernelId } from "../commands/command.ts";
import {
  isGemmKernel,
  type LinearKernel,
  type MatmulKernel,
  type UnitKernel,
  withoutAddend,
} from "../commands/kernel.ts";
import { allRanksOf } from "../commands/collectives.ts";
import type { Program } from "../commands/program.ts";
import {
  type Contraction,
  groupedContraction,
  type Groups,
  linearContraction,
  matmulContraction,
} from "../kernels/gemm/contraction.ts";
import { type DType, dtypes } from "../numerics/dtype.ts";
import { at, invariant } from "../support/invariant.ts";
import { type Assume, assumedErrors, type Assumption, doublings } from "./assumption.ts";
import { type GemmShape, gemmTime, loadFactor, marginOf, nearestTo } from "./interpolate.ts";
import {
  type GemmGrid,
  isTimedUnderLoad,
  type MachineProfile,
  type Timing,
  usualMarginFactor,
} from "./machine-profile.ts";
import { elementCount } from "../numerics/tensor/host-tensor.ts";

export interface GemmCost {
  /** Microseconds of a launch. */
  readonly time: number;
  /** The factor on that time with `measuredMargin` SMs left free. */
  readonly withMargin: number;
  /** Whether it leaves SMs for kernels in peers' memory even without a margin. */
  readonly leavesSms: boolean;
}

/**
 * Returns the cost of a launch of the kernel on the rank; null for kernels that are not GEMMs. `ofRun`: by rank, the
 * microseconds of all GEMMs of the run, of which the Program may be a part.
 */
export function gemmCosts(
  program: Program,
  profile: MachineProfile,
  assume: Assume,
  ofRun?: readonly number[],
): (rank: number, kernel: KernelId) => GemmCost | null {
  const { sustained = [] } = profile;
  const alone = gemmsAlone(program, profile, assume);
  const inRun = ofRun ?? gemmsOfRanks(program, alone);
  return (rank, kernel) => {
    const own = at(alone, kernel);
    if (own === null) return null;
    const load = own.isLoaded ? 1 : loadFactor(sustained, at(inRun, rank)) / loadFactor(sustained, own.one);
    const time = own.all * load * inUse(profile).gemms;
    return { time, withMargin: own.margin.factor, leavesSms: own.margin.room >= mostOfIt };
  };
}

type GemmAlone = ReturnType<typeof gemmKernelTime> | null;

function gemmsAlone(program: Program, profile: MachineProfile, assume: Assume): readonly GemmAlone[] {
  const assumed: Assumption[][] = program.kernels.map(() => []);
  const alone = program.kernels.map((kernel, id) =>
    isGemmKernel(kernel) ? gemmKernelTime(kernel, profile, (each) => void at(assumed, id).push(each)) : null,
  );
  if (assumed.some(({ length }) => length > 0)) assumeOfTimes(assumed, timesOf(program, alone), assume);
  return alone;
}

/** Microseconds of all launches of each kernel, on all ranks. */
function timesOf({ ranks, kernels }: Program, alone: readonly GemmAlone[]): readonly number[] {
  const times = kernels.map(() => 0);
  for (const { commands } of ranks)
    for (const command of commands)
      if (command.kind === "launch")
        times[command.kernel] = at(times, command.kernel) + (at(alone, command.kernel)?.all ?? 0);
  return times;
}

/**
 * What is assumed about each kernel, with the mean error of all GEMMs by their times: one that is outside of the grid says
 * little of a run of others.
 */
function assumeOfTimes(assumed: readonly (readonly Assumption[])[], times: readonly number[], assume: Assume): void {
  const total = times.reduce((sum, time) => sum + time, 0);
  const errors = new Map<string, number | null>();
  for (const [kernel, own] of assumed.entries())
    for (const { text, error } of own) {
      const before = errors.get(text) ?? (errors.has(text) ? null : 0);
      const part = total === 0 ? 1 : at(times, kernel) / total;
      errors.set(text, before === null || error === null ? null : before + part * error);
    }
  for (const [text, error] of errors) assume({ text, of: "gemms", error });
}

function gemmsOfRanks({ ranks }: Program, alone: readonly GemmAlone[]): readonly number[] {
  return ranks.map(({ commands }) =>
    commands.reduce((sum, command) => sum + (command.kind === "launch" ? (at(alone, command.kernel)?.all ?? 0) : 0), 0),
  );
}

/** By rank: the microseconds of all its GEMMs, were each the only one. */
export function gemmMicroseconds(program: Program, profile: MachineProfile): readonly number[] {
  return gemmsOfRanks(
    program,
    gemmsAlone(program, profile, () => {}),
  );
}

/**
 * A kernel that ran beside the GEMM for this part of its time found SMs soon enough: where 0.75 to 0.8 was measured,
 * all-reduces without a margin were the fastest on three machines. Between a grid point that leaves SMs free and one
 * that does not, only points near the first count as free.
 */
const mostOfIt = 0.7;

/**
 * Of the least k that was measured. Shorter GEMMs end before a kernel has found SMs: in four chunks of 2048 x 8192 x
 * 1024, an all-reduce without a margin took 1.25 times as long as with one.
 */
const shortest = 0.5;

type GemmKernel = MatmulKernel | LinearKernel | UnitKernel;

/** Microseconds of one GEMM of a batch and of all, which run one after the other. */
function gemmKernelTime(
  kernel: GemmKernel,
  { products, margins, memory, on }: MachineProfile,
  assume: Assume,
): {
  readonly one: number;
  readonly all: number;
  readonly margin: ReturnType<typeof marginOf>;
  /** Whether its times are those of a device under load. */
  readonly isLoaded: boolean;
} {
  const contraction = contractionOf(kernel);
  const { k, batch, groups } = contraction;
  const dtype = contraction.narrow ?? contraction.dtype;
  if (groups !== undefined) {
    const text = "grouped matmuls are timed as GEMMs of their rows, buffers as three quarters full";
    assume({ text, of: "gemms", error: assumedErrors.otherKernel });
  }
  const grid = gridOf(products, dtype);
  const isLoaded = isTimedUnderLoad(grid.dtype);
  const tiled = groups?.of === "m" && on === "cuda" ? tiledGroups(contraction, groups) : null;
  const count = tiled === null ? batch.reduce((total, { extent }) => total * extent, 1) : 1;
  const { m, n } = tiled ?? contraction;
  if (count * m * n * k === 0) return { one: 0, all: 0, margin: { factor: 1, room: 1 }, isLoaded };
  const least = leastTime({ m, n, k }, dtype, grid, on, assume);
  assumeShape({ m, n, k }, grid, assume);
  const ofGrid = gemmTime(grid, on === "cuda" ? { m: wholeTiles(m), n: wholeTiles(n), k } : { m, n, k });
  const computed = Math.max(least, ofGrid / (fasterThan(grid, dtype, on) * (isFast(kernel) ? ofFastAccumulation : 1)));
  const one = tiled === null ? computed : computed + beyondTiles(tiled, dtype, computed, memory);
  const margin = margins === undefined ? { factor: usualMarginFactor, room: 0 } : marginOf(margins, { m, n, k });
  const isShort = margins !== undefined && k < shortest * at(margins.k, 0);
  const all = count * one + addendTime(kernel, memory);
  return { one, all, margin: isShort ? { ...margin, room: 0 } : margin, isLoaded };
}

/** How many times as fast scaled GEMMs are with it: 1.06 to 1.19 in five of six shapes on H200, 1.01 in the largest. */
const ofFastAccumulation = 1.07;

function isFast(kernel: GemmKernel): boolean {
  const step = kernel.kind === "unit" ? kernel.steps[0] : undefined;
  return step?.kind === "Linear" && step.fastAccumulation === true;
}

/** One launch for all groups of rows, as one GEMM, and the elements of the groups' matrices. */
interface TiledGroups extends GemmShape {
  readonly elements: number;
}

/** Columns of a tile of the kernel of grouped matmuls, and the blocks that take tiles in turn: as many as a H100 has SMs. */
const [groupedColumns, groupedBlocks] = [256, 132];

/** Rows of one group are a buffer with room for more than come, 1.25 to 1.5 times as many in most routers. */
const usedOfBuffers = 0.75;

/**
 * With what its tiles have beyond the rows: half a half tile for each group and batch, and as much for each group of a
 * matrix, whose batches share tiles.
 */
function tiledGroups({ m, n, k, batch }: Contraction, { count }: Groups): TiledGroups {
  const batches = batch.reduce((total, { extent }) => total * extent, 1);
  const matrices = batch.reduce((total, { extent, b }) => (b === 0 ? total : total * extent), 1);
  const used = count === 1 ? usedOfBuffers * m : m;
  const rows = batches * m === 0 ? 0 : batches * used + (tile / 4) * count * (batches + matrices);
  return { m: rows, n: Math.ceil(n / groupedColumns) * groupedColumns, k, elements: matrices * count * n * k };
}

/**
 * Half a wave of tiles, because the last one is not full, and half of the time of reading the matrices, which launches
 * for parts of the rows read again. With the profile of 2 x H200 this gives 107 us where 105 were measured (32 experts,
 * 192 rows in use of each, 2048 x 1408), 466 for 454 (4 experts, 512 rows, 4096 x 14336) and 501 for 575 (14336 x 4096).
 */
function beyondTiles(
  { m, n, elements }: TiledGroups,
  dtype: DType,
  computed: number,
  memory: readonly Timing[],
): number {
  const waves = (m * n) / (tile * groupedColumns * groupedBlocks);
  const most = memory.at(-1);
  const read = most === undefined ? 0 : (elements * dtypes[dtype].bytes * most.microseconds) / most.bytes;
  return computed / (2 * Math.max(1, waves)) + read / 2;
}

/**
 * A GEMM reads what it adds to at the end of each tile. On two H100, 8 MiB took 5 us and 32 MiB 14 us: about this many
 * times as long as other kernels need to read them.
 */
const addendFactor = 1.5;

function addendTime(kernel: GemmKernel, memory: readonly Timing[]): number {
  const addend = withoutAddend(kernel)?.addend;
  const most = memory.at(-1);
  if (addend === undefined || most === undefined) return 0;
  const bytes = elementCount(addend.shape) * dtypes[addend.dtype].bytes;
  return (addendFactor * bytes * most.microseconds) / most.bytes;
}

/** Rows and columns of the tiles of a GPU's GEMMs, which compute each tile whole. */
const tile = 128;

function wholeTiles(extent: number): number {
  return Math.ceil(extent / tile) * tile;
}

/**
 * How many times slower than the fastest GEMM in bfloat16 one in float is, for which GPUs have no tensor cores: 14.8 by
 * the data sheets of H100 and H200, 16 by that of A100, 17 as measured on H200. Short ones take as long as in bfloat16.
 */
const ofFloat = 16;

/**
 * How many times as fast as in bfloat16 a GEMM of 8-bit floats is: 2 by data sheets, 1.48 to 1.78 as measured in six
 * shapes on H200.
 */
const ofFloat8 = 1.6;

function fasterThan(grid: GemmGrid, dtype: DType, on: MachineProfile["on"]): number {
  return on === "cuda" && dtypes[dtype].bytes === 1 && dtypes[grid.dtype].bytes === 2 ? ofFloat8 : 1;
}

/** The least microseconds of the GEMM in a dtype that was not measured. */
function leastTime(
  { m, n, k }: GemmShape,
  dtype: DType,
  grid: GemmGrid,
  on: MachineProfile["on"],
  assume: Assume,
): number {
  if (grid.dtype === dtype) return 0;
  if (dtypes[grid.dtype].bytes === dtypes[dtype].bytes) {
    const text = `GEMMs in ${dtype} are timed as in ${grid.dtype}`;
    assume({ text, of: "gemms", error: assumedErrors.otherDType });
    return 0;
  }
  const isSlower = on === "cuda" && dtype === "float" && dtypes[grid.dtype].bytes === 2;
  const factor = fasterThan(grid, dtype, on);
  const rate =
    factor > 1 ? `, ${factor} times as fast` : isSlower ? `, at most at 1/${ofFloat} of the fastest rate` : "";
  const text = `no calibration for ${dtype}: GEMMs are timed as in ${grid.dtype}${rate}`;
  const { float8OnGpus, floatOnGpus, otherElementSize } = assumedErrors;
  assume({ text, of: "gemms", error: factor > 1 ? float8OnGpus : isSlower ? floatOnGpus : otherElementSize });
  return isSlower ? (ofFloat * 2 * m * n * k) / (Math.max(...grid.teraflops) * 1e6) : 0;
}

/** A grid with one point along an axis says that the rate does not depend on it. */
function assumeShape(shape: GemmShape, grid: GemmGrid, assume: Assume): void {
  const measured = axes.filter((axis) => grid[axis].length > 1);
  const outside = measured.map((axis) => {
    const [least, most] = [at(grid[axis], 0), at(grid[axis], grid[axis].length - 1)];
    if (shape[axis] > most) return { near: assumedErrors.aboveGrid * doublings(shape[axis], most), below: 0 };
    if (shape[axis] >= least) return { near: 0, below: 0 };
    if (axis === "m" && least <= tile) return { near: assumedErrors.insideTile, below: 0 };
    return { near: 0, below: assumedErrors.belowGrid * doublings(shape[axis], least) };
  });
  const below = Math.hypot(...outside.map((each) => each.below));
  const error = Math.hypot(Math.min(below, assumedErrors.mostBelowGrid), ...outside.map(({ near }) => near));
  if (error === 0) return;
  const sizes = measured.map((axis) => `${axis} ${at(grid[axis], 0)} to ${at(grid[axis], grid[axis].length - 1)}`);
  assume({ text: `GEMMs outside ${sizes.join(", ")} are timed as at the nearest of these`, of: "gemms", error });
}

const axes = ["m", "n", "k"] as const;

function contractionOf(kernel: GemmKernel): Contraction {
  const { kind, inputs, outputs } = withoutAddend(kernel)?.product ?? kernel;
  const [a, b, bias] = inputs;
  invariant(a !== undefined && b !== undefined, "a GEMM has two operands");
  const c = at(outputs, 0);
  if (kernel.kind === "unit" && kernel.steps[0]?.kind === "Linear") {
    return { ...linearContraction(a, b, undefined, c), dtype: a.dtype };
  }
  if (kernel.kind === "unit") {
    const [x, y, ends] = [0, 1, 2].map((i) => at(inputs, at(at(kernel.steps, 0).inputs, i)));
    invariant(x !== undefined && y !== undefined && ends !== undefined, "a grouped matmul has three operands");
    return groupedContraction(x, y, ends, c);
  }
  return kind === "matmul" ? matmulContraction(a, b, c) : linearContraction(a, b, bias, c);
}

function gridOf(products: readonly GemmGrid[], dtype: DType): GemmGrid {
  const nearest = nearestTo(dtype, products);
  invariant(nearest !== undefined, "a profile has a grid of GEMMs");
  return nearest;
}

// What GPUs take longer in use than in the measurements of a profile. `braid calibrate` runs one small program at a time
// and keeps the least of 31 times, or for GEMMs the median; a run in use takes its median time. Found by
// bench/residuals.ts in the runs of bench/results (docs/simulation.md).

export interface InUse {
  /** The factor on GEMMs: a device that has computed for seconds is warm, and has a lower clock. */
  readonly gemms: number;
  /**
   * The factor on kernels and copies that are bound by the device's memory. The profile has the least time of a kernel
   * that does no more than read and write.
   */
  readonly memory: number;
  /** Microseconds of a run that communicates: its ranks start apart. In the least of 31 times they start together. */
  readonly start: number;
}

const onGpus: InUse = { gemms: 1.03, memory: 1.2, start: 7.5 };
const elsewhere: InUse = { gemms: 1, memory: 1, start: 0 };

export function inUse({ on }: Pick<MachineProfile, "on">): InUse {
  return on === "cuda" ? onGpus : elsewhere;
}

/** Microseconds of a run beside its commands. */
export function runCost({ transfers, slots }: Program, profile: MachineProfile): number {
  const communicates =
    slots.length > 0 ||
    transfers.some(({ participants: [first, ...others] }) => {
      const operation = first?.operation;
      return others.length > 0 || (operation?.kind === "collective" && allRanksOf(operation).length > 1);
    });
  return profile.costs.run + (communicates ? inUse(profile).start : 0);
}
