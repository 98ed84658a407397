/** What reading one module shares: the Fusion that it becomes, and where its tensors come from in the text. */
import { failAt } from "../../host/syntax/text/source.ts";
import type { Fusion } from "../../ir/api/fusion.ts";
import type { TensorView } from "../../ir/api/tensor-view.ts";
import type { IterDomain, Tensor, TensorId } from "../../ir/domain.ts";
import type { Op } from "../../ir/ops/op.ts";
import type { Tensor as HostTensor } from "../../numerics/tensor/host-tensor.ts";
import type { DevicePart } from "../manual/parts.ts";
import type { ModelFault } from "../model.ts";
import type { Marked } from "../origins.ts";
import type { Meshes } from "./mesh.ts";
import type { MlirModule, Operation, Type } from "./syntax/nodes.ts";

export interface ValueType {
  /** As MLIR spells it. */
  readonly element: string;
  readonly shape: readonly number[];
}

export interface Reader extends Marked {
  readonly module: MlirModule;
  readonly meshes: Meshes;
  /** Of types of the text, which share objects. */
  readonly types: Map<Type, ValueType>;
  /** The values of inputs that stand for constants of the file, by position. */
  readonly constants: Map<number, HostTensor>;
  /** How each tensor is sharded that an annotation of the file places. */
  readonly placed: Map<number, string>;
  /** The functions that are being inlined. */
  readonly calls: string[];
  /** How many ops were read, those of inlined calls and unrolled loops each time. */
  operations: number;
  /** What lines have made, by the first of their form (repeat.ts). */
  readonly lines: Map<Operation, LineOps>;
  /** Where a row puts its ops while its operands differ between devices; null otherwise: they go to the Fusion. */
  device: DeviceProgram | null;
}

/** The ops that a line has made, for lines like it. */
export interface LineOps {
  readonly operands: readonly { readonly type: ValueType; readonly axes: readonly IterDomain[] }[];
  /** The tensors of the operands. */
  readonly given: readonly TensorId[];
  readonly results: readonly { readonly type: ValueType; readonly id: TensorId }[];
  readonly ops: readonly Op[];
  readonly tensors: readonly Tensor[];
  /** The first of the tensors, and of their axes. */
  readonly first: number;
  readonly firstAxis: number;
  readonly axes: number;
}

/** The ops of one row for one device, which become ops on the parts of all devices (value.ts). */
export interface DeviceProgram {
  readonly fusion: Fusion;
  readonly inputOf: (part: DevicePart) => TensorView;
}

/** A file may unroll a loop without an end. */
export const mostOperations = 500_000;

const printed = "pass the text as the framework printed it";

/** What a diagnostic of a place in the text needs. */
export type InText = Pick<Marked, "source">;

/** `help`: the text was edited or cut off, where nothing else is said. */
export function invalidText(
  { source }: InText,
  position: number,
  { help = printed, ...fault }: Omit<ModelFault, "help"> & Partial<Pick<ModelFault, "help">>,
): never {
  return failAt(source, position, { code: "model-invalid", help, ...fault });
}

export function unsupported({ source }: InText, position: number, fault: ModelFault): never {
  return failAt(source, position, { code: "model-unsupported", ...fault });
}
