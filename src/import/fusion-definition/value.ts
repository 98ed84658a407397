/** The values that a definition computes with, and how its calls read them. */
import { failAt } from "../../host/syntax/text/source.ts";
import type { DeviceMesh } from "../../ir/device-mesh.ts";
import type { IterDomain } from "../../ir/api/iter-domain.ts";
import type { TensorView } from "../../ir/api/tensor-view.ts";
import type { Scalar } from "../../ir/scalar/scalar.ts";
import { type DType, dtypesBy } from "../../numerics/dtype.ts";
import type { Marked } from "../origins.ts";
import type { FusionOperand } from "./promotion.ts";
import type { PythonStatement } from "../python.ts";

export type FusionValue =
  | { readonly kind: "none" }
  /** A Double where `isFloat` is true, otherwise an Int. */
  | { readonly kind: "number"; readonly value: number; readonly isFloat?: boolean }
  | { readonly kind: "bool"; readonly value: boolean }
  | { readonly kind: "text"; readonly value: string }
  | { readonly kind: "list"; readonly items: readonly FusionValue[] }
  | { readonly kind: "tensor"; readonly tensor: TensorView }
  | { readonly kind: "axis"; readonly axis: IterDomain }
  /** That of an axis, which a run decides. */
  | { readonly kind: "extent"; readonly extent: Scalar }
  | { readonly kind: "mesh"; readonly mesh: DeviceMesh }
  | { readonly kind: "function"; readonly definition: Extract<PythonStatement, { readonly kind: "def" }> }
  /** `DataType.Float`, `fd.ops.add`: a name that the definition does not give a value. */
  | { readonly kind: "path"; readonly path: string };

export const none: FusionValue = { kind: "none" };

export function tensorValue(tensor: TensorView): FusionValue {
  return { kind: "tensor", tensor };
}

export function sizeValue(extent: TensorView["extents"][number]): FusionValue {
  return extent.kind === "constant" ? { kind: "number", value: extent.value } : { kind: "extent", extent };
}

/** What all of a definition share. */
export interface Definition extends Marked {
  /** The names of inputs and outputs, by tensor. */
  readonly names: Map<number, string>;
  /** What pads were made of, by their results. */
  readonly padded: Map<number, TensorView>;
  statements: number;
}

/** A call, with its arguments by name. */
export interface FusionCall {
  readonly definition: Definition;
  readonly position: number;
  readonly name: string;
  readonly args: ReadonlyMap<string, FusionValue>;
}

/** What a call of a name makes of its arguments, which have the names of `parameters`. */
export interface FusionOpRow {
  readonly parameters: readonly string[];
  readonly make: (call: FusionCall) => FusionValue;
}

export function madeBy(parameters: readonly string[], make: FusionOpRow["make"]): FusionOpRow {
  return { parameters, make };
}

/** A row that makes one tensor. */
export function tensorRow(parameters: readonly string[], make: (call: FusionCall) => TensorView): FusionOpRow {
  return { parameters, make: (call) => tensorValue(make(call)) };
}

/** Where something stands in the text of a definition. */
type PlaceInDefinition = Pick<FusionCall, "definition" | "position">;

export function refuseCall(
  { definition, position }: PlaceInDefinition,
  ...[message, expected, help]: readonly [message: string, expected: string, help: string]
): never {
  return failAt(definition.source, position, "model-unsupported", message, { expected, help });
}

export function invalidCall(
  { definition, position }: PlaceInDefinition,
  ...[message, found, expected]: readonly [message: string, found: string, expected: string]
): never {
  const help = "correct the definition";
  return failAt(definition.source, position, "model-invalid", message, { found, expected, help });
}

export function kindText(value: FusionValue): string {
  switch (value.kind) {
    case "none":
      return "None";
    case "number":
    case "bool":
      return String(value.value);
    case "text":
      return JSON.stringify(value.value);
    case "list":
      return `a list of ${value.items.length}`;
    case "tensor":
      return "a tensor";
    case "axis":
      return "an axis";
    case "extent":
      return "the size of an axis";
    case "mesh":
      return "a mesh";
    case "function":
      return `the function ${value.definition.name}`;
    case "path":
      return value.path;
  }
}

function wrong(call: FusionCall, parameter: string, value: FusionValue, expected: string): never {
  return invalidCall(call, `${call.name} takes another ${parameter}`, kindText(value), expected);
}

export function argument(call: FusionCall, parameter: string): FusionValue {
  return call.args.get(parameter) ?? none;
}

export function isGiven(call: FusionCall, parameter: string): boolean {
  return argument(call, parameter).kind !== "none";
}

export function tensorIn(call: FusionCall, parameter: string): TensorView {
  const value = argument(call, parameter);
  return value.kind === "tensor" ? value.tensor : wrong(call, parameter, value, "a tensor");
}

export function tensorsIn(call: FusionCall, parameter: string): readonly TensorView[] {
  return fusionList(call, parameter).map((each) =>
    each.kind === "tensor" ? each.tensor : wrong(call, parameter, each, "a list of tensors"),
  );
}

export function fusionList(call: FusionCall, parameter: string): readonly FusionValue[] {
  const value = argument(call, parameter);
  return value.kind === "list" ? value.items : wrong(call, parameter, value, "a list");
}

export function fusionNumber(call: FusionCall, parameter: string, otherwise?: number): number {
  const value = argument(call, parameter);
  if (value.kind === "number") return value.value;
  if (value.kind === "none" && otherwise !== undefined) return otherwise;
  return wrong(call, parameter, value, "a number");
}

/** Older prints have 0 and 1. */
export function flagIn(call: FusionCall, parameter: string, otherwise: boolean): boolean {
  const value = argument(call, parameter);
  if (value.kind === "bool") return value.value;
  if (value.kind === "number" && (value.value === 0 || value.value === 1)) return value.value === 1;
  return value.kind === "none" ? otherwise : wrong(call, parameter, value, "True or False");
}

export function fusionNumbers(call: FusionCall, parameter: string): readonly number[] {
  const value = argument(call, parameter);
  // One axis may stand for a list of it.
  if (value.kind === "number") return [value.value];
  return fusionList(call, parameter).map((each) =>
    each.kind === "number" ? each.value : wrong(call, parameter, each, "a list of numbers"),
  );
}

export function extentsIn(call: FusionCall, parameter: string): readonly (number | Scalar)[] {
  return fusionList(call, parameter).map((each) => {
    if (each.kind === "number") return each.value;
    return each.kind === "extent" ? each.extent : wrong(call, parameter, each, "a list of sizes");
  });
}

export function operandIn(call: FusionCall, parameter: string): FusionOperand {
  const value = argument(call, parameter);
  if (value.kind === "tensor") return value.tensor;
  if (value.kind === "bool") return { value: Number(value.value), dtype: "bool" };
  if (value.kind === "number") return { value: value.value, dtype: value.isFloat === true ? "double" : "int64" };
  return wrong(call, parameter, value, "a tensor or a number");
}

/** A number, or a bool as 0 or 1. */
export function scalarNumber(call: FusionCall, parameter: string, otherwise?: number): number {
  const value = argument(call, parameter);
  return value.kind === "bool" ? Number(value.value) : fusionNumber(call, parameter, otherwise);
}

const dtypeNames = dtypesBy("fusion");

/** Null for none, and for `DataType.Null`. */
export function fusionDType(call: FusionCall): DType | null {
  const value = argument(call, "dtype");
  if (value.kind === "none") return null;
  const name = value.kind === "path" ? (/DataType\.(\w+)$/u.exec(value.path)?.[1] ?? "") : "";
  if (name === "Null") return null;
  if (name === "Index") return "int64";
  return (
    dtypeNames.get(name) ??
    refuseCall(
      call,
      `Braid has no dtype ${name === "" ? kindText(value) : name}`,
      [...dtypeNames.keys()].map((each) => `DataType.${each}`).join(", "),
      "use one of these",
    )
  );
}
