/** Evaluates the body of a function of StableHLO on numbers. */
import { importModel, Tensor } from "@braid-compiler/braid";
import { evaluateFusion } from "../../src/oracle/evaluate.ts";
import { at } from "../../src/support/invariant.ts";

type Numbers = Parameters<typeof Tensor.from>[0];

export interface OpRow {
  readonly name: string;
  /** Of the arguments `%0`, `%1`, ... and of the results `%r`, `%s`. */
  readonly types: readonly [into: readonly string[], out: readonly string[]];
  readonly body: string;
  readonly inputs: readonly Numbers[];
  readonly outputs: readonly Numbers[];
}

const names = ["%r", "%s"];

export async function evaluateOps({ types: [into, out], body, inputs }: OpRow): Promise<readonly Numbers[]> {
  const tensor = (type: string): string => `tensor<${type}>`;
  const text = `func.func @main(${into.map((type, i) => `%${i}: ${tensor(type)}`).join(", ")}) -> (${out.map(tensor).join(", ")}) {
    ${body}
    return ${out.map((_, i) => names[i]).join(", ")} : ${out.map(tensor).join(", ")}
  }`;
  const { fusion, inputs: own } = await importModel(text);
  const data = fusion.data();
  const values = data.inputs.map((id, i) => own[i]?.value ?? Tensor.from(at(inputs, i), at(data.tensors, id).dtype));
  return evaluateFusion(data, values, new Map()).outputs.map((output) => Tensor.toArray(output));
}
