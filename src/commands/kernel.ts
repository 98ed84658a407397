/**
 * Kernels: the computation of a `launch`, without addresses. Launches of the same computation share one Kernel, so that
 * a back end prepares it once. Shapes are local and concrete. Strides of inputs may be 0 (broadcast), so that operands
 * are read in place.
 *
 * In place: `unary`, `cast` between dtypes of equal size, `binary` and `combine` may write exactly the region that they
 * read, with the same offset and strides. Outputs of all other kernels must not overlap inputs. `matmul` and `linear`
 * with `accumulate` also read their output.
 */
import type { DType } from "../numerics/dtype.ts";
import type { SeenKeys } from "../ir/ops/kinds/attention/attention.ts";
import type { NumberOperand } from "../ir/ops/number-operand.ts";
import type { RunTimeAttribute } from "../ir/ops/row.ts";
import type { BinaryOpType, Op, ReductionOpType, UnaryOpType } from "../ir/ops/op.ts";

export interface Operand {
  readonly dtype: DType;
  readonly shape: readonly number[];
  /** In elements, one per axis of `shape`. */
  readonly strides: readonly number[];
}

interface KernelBase {
  readonly inputs: readonly Operand[];
  readonly outputs: readonly Operand[];
}

/** Elementwise over equal shapes. */
export interface UnaryKernel extends KernelBase {
  readonly kind: "unary";
  readonly op: UnaryOpType;
}
export interface CastKernel extends KernelBase {
  readonly kind: "cast";
}
export interface BinaryKernel extends KernelBase {
  readonly kind: "binary";
  readonly op: BinaryOpType;
  /** The operand that is a number. The kernel then has one input. */
  readonly scalar?: NumberOperand;
}
/** The output has the input's axes without `axes`. */
export interface ReductionKernel extends KernelBase {
  readonly kind: "reduction";
  readonly op: ReductionOpType;
  readonly axes: readonly number[];
}
interface ContractionKernel extends KernelBase {
  /** Whether the result is added to the output: beta = 1 of a BLAS. */
  readonly accumulate?: boolean;
  /** Whether the result is added to the last input, which has the output's shape: C of a BLAS. */
  readonly addend?: boolean;
}
/** a [..batch, M, K], b [..batch, K, N] -> [..batch, M, N]. Batch axes are equal; stride 0 broadcasts. */
export interface MatmulKernel extends ContractionKernel {
  readonly kind: "matmul";
}
/** x [..batch, M, K], weight [N, K], optional bias [N] -> [..batch, M, N]. */
export interface LinearKernel extends ContractionKernel {
  readonly kind: "linear";
}
/**
 * Combines the inputs in their order, with one rounding, and writes the result to every output. An output may be one
 * of the inputs: at every index all inputs are read before an output is written.
 */
export interface CombineKernel extends KernelBase {
  readonly kind: "combine";
  readonly op: ReductionOpType;
}
/** Writes 0 to every element of its one output: an ALLOCATE with zero_init. */
export interface FillKernel extends KernelBase {
  readonly kind: "fill";
}
/** Writes start + (origin + i) step to element i of its one output. The origin is the launch's. */
export interface IotaKernel extends KernelBase {
  readonly kind: "iota";
  readonly start: number;
  readonly step: number;
}
/** The attributes of the op, with its scale as a number. Operands and outputs as the op's. */
interface AttentionKernel extends KernelBase, SeenKeys {
  readonly scale: number;
}
export interface SdpaKernel extends AttentionKernel {
  readonly kind: "sdpa";
}
export interface SdpaBackwardKernel extends AttentionKernel {
  readonly kind: "sdpaBackward";
}
/**
 * A fused HostUnit. `values[i]` is a tensor of the unit; the first values are the inputs. Each of `steps` computes
 * one value, in order. `results[j]` is the value that outputs[j] gets.
 */
export interface UnitKernel extends KernelBase {
  readonly kind: "unit";
  readonly values: readonly UnitValue[];
  readonly steps: readonly UnitStep[];
  readonly results: readonly number[];
  /** Outputs that are in the memory of inputs; absent if there are none. */
  readonly inPlace?: readonly InPlace[];
}

/** The positions of an input and of the output that is written over it. */
export interface InPlace {
  readonly input: number;
  readonly output: number;
}

/** Computes something unknown, of all inputs, and writes all of its outputs. It can be verified and not run. */
export interface OpaqueKernel extends KernelBase {
  readonly kind: "opaque";
  /** The unknown op, such as `sin`, or what launches the kernel. */
  readonly op: string;
}

export interface UnitValue {
  readonly dtype: DType;
  /** Local, concrete, without reduced axes. */
  readonly shape: readonly number[];
}

/**
 * An op of a unit over value numbers. Indices and axes are concrete, and an operand that is read permuted is a value
 * of its own.
 */
export type UnitStep = UnitStepOf<Exclude<Op, { readonly kind: "Sdpa" | "SdpaBackward" }>>;
type UnitStepOf<T> = T extends Op
  ? Omit<T, "inputs" | "output" | "further" | RunTimeAttribute> & {
      readonly inputs: readonly number[];
      readonly output: number;
    } & (T extends { kind: "Select" } ? { readonly index: number } : unknown) &
      (T extends { kind: "Slice" } ? { readonly ranges: readonly SliceRange[] } : unknown) &
      (T extends { kind: "Iota" } ? IotaRange : unknown)
  : never;

/** Index i of the step's output is index origin + i of the whole tensor, and has the value start + (origin + i) step. */
export interface IotaRange {
  readonly start: number;
  readonly step: number;
  /** The position of the origin among the launch's `origins`. */
  readonly origin: number;
}

/** The indices of a slice along one axis. */
export interface SliceRange {
  readonly start: number;
  readonly stop: number;
  /** From one index to the next; 1 if absent. */
  readonly step?: number;
}

export type Kernel =
  | IotaKernel
  | UnaryKernel
  | CastKernel
  | BinaryKernel
  | ReductionKernel
  | MatmulKernel
  | LinearKernel
  | CombineKernel
  | FillKernel
  | SdpaKernel
  | SdpaBackwardKernel
  | UnitKernel
  | OpaqueKernel;

/** How many origins a launch of the kernel gives. */
export function originsOf(kernel: Kernel): number {
  if (kernel.kind === "iota") return 1;
  if (kernel.kind !== "unit") return 0;
  return kernel.steps.reduce((count, step) => (step.kind === "Iota" ? Math.max(count, step.origin + 1) : count), 0);
}

/** The GEMM without what it is added to, and that operand; null for other kernels. */
export function withoutAddend(
  kernel: Kernel,
): { readonly product: MatmulKernel | LinearKernel; readonly addend: Operand } | null {
  if (kernel.kind !== "matmul" && kernel.kind !== "linear") return null;
  const { addend: hasAddend = false, ...product } = kernel;
  const addend = kernel.inputs.at(-1);
  if (!hasAddend || addend === undefined) return null;
  return { product: { ...product, inputs: kernel.inputs.slice(0, -1) }, addend };
}

/** Whether the kernel is a GEMM, or one of groups of rows. */
export function isGemmKernel(kernel: Kernel): kernel is MatmulKernel | LinearKernel | UnitKernel {
  return (
    kernel.kind === "matmul" ||
    kernel.kind === "linear" ||
    isUnitOf("Linear", kernel) ||
    isUnitOf("GroupedMatmul", kernel)
  );
}

/** Whether the kernel is a unit of one step, of this kind. A `Linear` in it has scales: another is a LinearKernel. */
export function isUnitOf(kind: UnitStep["kind"], kernel: Kernel): kernel is UnitKernel {
  return kernel.kind === "unit" && kernel.steps.length === 1 && kernel.steps[0]?.kind === kind;
}

/** Whether the kernel reads its output. */
export function accumulates(kernel: Kernel): boolean {
  return (kernel.kind === "matmul" || kernel.kind === "linear") && kernel.accumulate === true;
}
