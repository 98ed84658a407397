/** What reading one module shares: the Fusion that it becomes, and where its tensors come from in the text. */
import { type Diagnostic, DiagnosticError, type Place } from "../../diagnostics/diagnostic.ts";
import { failAt, type Source } from "../../host/syntax/text/source.ts";
import type { Fusion } from "../../ir/api/fusion.ts";
import { fusionState } from "../../ir/api/handle.ts";
import type { TensorView } from "../../ir/api/tensor-view.ts";
import type { Tensor } from "../../numerics/tensor/host-tensor.ts";
import type { Meshes } from "./mesh.ts";
import type { MlirModule, Type } from "./syntax/nodes.ts";

export interface ValueType {
  /** As MLIR spells it. */
  readonly element: string;
  readonly shape: readonly number[];
}

export interface Reader {
  readonly source: Source;
  readonly module: MlirModule;
  readonly fusion: Fusion;
  readonly meshes: Meshes;
  /** Of types of the text, which share objects. */
  readonly types: Map<Type, ValueType>;
  /** The values of inputs that stand for constants of the file, by position. */
  readonly constants: Map<number, Tensor>;
  /** From which tensor on the text's position is which; both ascend. */
  readonly marks: { readonly tensor: number; readonly position: number }[];
  /** How each tensor is sharded that an annotation of the file places. */
  readonly placed: Map<number, string>;
  /** The functions that are being inlined. */
  readonly calls: string[];
  /** How many ops were read, those of inlined calls and unrolled loops each time. */
  operations: number;
}

/** A file may unroll a loop without an end. */
export const mostOperations = 500_000;

type Fault = Required<Pick<Diagnostic, "message" | "found" | "expected" | "help">>;

const printed = "pass the text as the framework printed it";

/** What a diagnostic of a place in the text needs. */
export type InText = Pick<Reader, "source">;

/** `help`: the text was edited or cut off, where nothing else is said. */
export function invalid(
  { source }: InText,
  position: number,
  { help = printed, ...fault }: Omit<Fault, "help"> & Partial<Pick<Fault, "help">>,
): never {
  return failAt(source, position, { code: "model-invalid", help, ...fault });
}

export function unsupported({ source }: InText, position: number, fault: Fault): never {
  return failAt(source, position, { code: "model-unsupported", ...fault });
}

/** The result of `make`, whose tensors come from `position`. Braid's own refusals gain that place. */
export function madeAt<T>(reader: Reader, position: number, make: () => T): T {
  const { tensors } = reader.fusion[fusionState];
  const before = reader.marks.at(-1)?.position ?? position;
  reader.marks.push({ tensor: tensors.length, position });
  try {
    const made = make();
    if (before !== position) reader.marks.push({ tensor: tensors.length, position: before });
    return made;
  } catch (error) {
    if (!(error instanceof DiagnosticError)) throw error;
    const [first] = error.diagnostics;
    if (first === undefined || isInText(first.place)) throw error;
    const { message, found = "", expected = "", help = "" } = first;
    return failAt(reader.source, position, { code: first.code, message, found, expected, help });
  }
}

function isInText(place: Place | undefined): boolean {
  return place?.kind === "file";
}

/** The extents of a tensor of the Fusion, which are all constant. */
export function extentsOf(tensor: TensorView): readonly number[] {
  return tensor.extents.map((extent) => (extent.kind === "constant" ? extent.value : Number.NaN));
}
