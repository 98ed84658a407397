/** Prints a Fusion of the random graphs as StableHLO with Shardy's shardings of its inputs: the reader's inverse, for tests. */
import type { FusionData } from "@braid-compiler/braid";
import { type Tensor, withoutReductions } from "../../src/ir/domain.ts";
import { cutOf } from "../../src/ir/parts.ts";
import type { Op } from "../../src/ir/ops/op.ts";
import { shapeOf } from "../../src/ir/sizes.ts";
import type { DType } from "../../src/numerics/dtype.ts";
import { at } from "../../src/support/invariant.ts";

const elements: { readonly [D in DType]: string } = {
  double: "f64",
  float: "f32",
  half: "f16",
  bfloat16: "bf16",
  float8_e4m3fn: "f8E4M3FN",
  float8_e5m2: "f8E5M2",
  int: "i32",
  int64: "i64",
  bool: "i1",
};

const binary: Readonly<Record<string, string>> = { add: "add", sub: "subtract", mul: "multiply", div: "divide" };
const combined: Readonly<Record<string, readonly [op: string, initial: string]>> = {
  sum: ["add", "0.0"],
  amax: ["maximum", "0xFF800000"],
};

export function printStablehlo({ tensors, ops, inputs, outputs }: FusionData): string {
  const lines: string[] = [];
  let count = 0;
  const shape = (id: number): readonly number[] => shapeOf(at(tensors, id), new Map());
  const type = (extents: readonly number[], dtype: DType): string =>
    `tensor<${[...extents, elements[dtype]].join("x")}>`;
  const typeOf = (id: number): string => type(shape(id), at(tensors, id).dtype);
  const emit = (text: string): string => {
    const name = `%v${count++}`;
    lines.push(`  ${name} = ${text}`);
    return name;
  };
  const names = new Map<number, string>(inputs.map((id, i) => [id, `%arg${i}`]));
  const nameOf = (id: number): string => names.get(id) ?? "";
  /** An operand of an elementwise op, stretched to its result. */
  const stretched = (id: number, to: readonly number[]): string => {
    const { dtype } = at(tensors, id);
    if (shape(id).join() === to.join()) return nameOf(id);
    const dims = to.map((_, i) => i).join(", ");
    return emit(`stablehlo.broadcast_in_dim ${nameOf(id)}, dims = [${dims}] : (${typeOf(id)}) -> ${type(to, dtype)}`);
  };
  const product = (a: number, b: number, axisOfB: number, output: number): string => {
    const [left, right] = [shape(a), shape(b)];
    const batch = Array.from({ length: right.length - 2 }, (_, i) => i).join(", ");
    const free = axisOfB < 0 ? right.length + axisOfB : axisOfB;
    const batches = batch === "" ? "" : `batching_dims = [${batch}] x [${batch}], `;
    return `stablehlo.dot_general ${nameOf(a)}, ${nameOf(b)}, ${batches}contracting_dims = [${left.length - 1}] x [${free}] : (${typeOf(a)}, ${typeOf(b)}) -> ${typeOf(output)}`;
  };
  const textOf = (op: Op): string => {
    const [first = op.inputs[0], second] = op.inputs;
    const x = first ?? at(inputs, 0);
    const out = shape(op.output);
    const signature = `: (${typeOf(x)}) -> ${typeOf(op.output)}`;
    switch (op.kind) {
      case "Set":
        return `stablehlo.optimization_barrier ${nameOf(x)} : ${typeOf(x)}`;
      case "Cast":
        return `stablehlo.convert ${nameOf(x)} ${signature}`;
      case "Unary": {
        if (op.op !== "relu") return `stablehlo.${op.op === "exp" ? "exponential" : op.op} ${nameOf(x)} : ${typeOf(x)}`;
        const zero = emit(`stablehlo.constant dense<0.0> : ${typeOf(x)}`);
        return `stablehlo.maximum ${nameOf(x)}, ${zero} : ${typeOf(x)}`;
      }
      case "Binary":
        return `stablehlo.${binary[op.op]} ${stretched(x, out)}, ${stretched(second ?? x, out)} : ${typeOf(op.output)}`;
      case "Broadcast": {
        const dims = op.flags.flatMap((added, i) => (added ? [] : [i]));
        return `stablehlo.broadcast_in_dim ${nameOf(x)}, dims = [${dims.join(", ")}] ${signature}`;
      }
      case "Permute":
        return `stablehlo.transpose ${nameOf(x)}, dims = [${op.order.join(", ")}] ${signature}`;
      case "Reshape":
        return `stablehlo.reshape ${nameOf(x)} ${signature}`;
      case "Reduction": {
        const [name = "", initial = ""] = combined[op.op] ?? [];
        const { dtype } = at(tensors, x);
        const bits = { double: "0xFFF0000000000000", half: "0xFC00", bfloat16: "0xFF80" } as const;
        const start = initial.startsWith("0x") && dtype in bits ? bits[dtype as keyof typeof bits] : initial;
        const from = emit(`stablehlo.constant dense<${start}> : ${type([], dtype)}`);
        return `stablehlo.reduce(${nameOf(x)} init: ${from}) applies stablehlo.${name} across dimensions = [${op.axes.join(", ")}] : (${typeOf(x)}, ${type([], dtype)}) -> ${typeOf(op.output)}`;
      }
      case "Matmul":
        return product(x, second ?? x, -2, op.output);
      case "Linear": {
        const [, , bias] = op.inputs;
        const text = product(x, second ?? x, -1, op.output);
        if (bias === undefined) return text;
        const made = emit(text);
        const { dtype } = at(tensors, bias);
        const wide = emit(
          `stablehlo.broadcast_in_dim ${nameOf(bias)}, dims = [${out.length - 1}] : (${typeOf(bias)}) -> ${type(out, dtype)}`,
        );
        return `stablehlo.add ${made}, ${wide} : ${typeOf(op.output)}`;
      }
      default:
        throw new Error(`random graphs have no ${op.kind}`);
    }
  };
  for (const op of ops) names.set(op.output, emit(textOf(op)));
  const given = inputs.map((id) => `${nameOf(id)}: ${typeOf(id)}${sharding(at(tensors, id))}`);
  const results = outputs.map(typeOf).join(", ");
  const mesh = tensors.find((tensor) => tensor.mesh !== null)?.mesh;
  const axes = mesh?.shape.map((size, i) => `"${axisNames[mesh.shape.length - 1 - i]}"=${size}`) ?? [];
  return [
    ...(mesh === undefined || mesh === null ? [] : [`sdy.mesh @mesh = <[${axes.join(", ")}]>`]),
    `func.func @main(${given.join(", ")}) -> (${results}) {`,
    ...lines,
    `  return ${outputs.map(nameOf).join(", ")} : ${results}`,
    "}",
  ].join("\n");
}

const axisNames = ["x", "y"];

function sharding(tensor: Tensor): string {
  if (tensor.mesh === null) return "";
  const axes = withoutReductions(tensor.domain.logical).map((axis) => {
    const types = cutOf(tensor.domain, axis).parts.flatMap(({ type }) =>
      type.startsWith("DID") ? [`"${type.slice(3)}"`] : [],
    );
    return `{${types.join(", ")}}`;
  });
  return ` {sdy.sharding = #sdy.sharding<@mesh, [${axes.join(", ")}]>}`;
}
