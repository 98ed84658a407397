/** One node of an ATen op as a model, and what Braid computes of it. */
import { buildModel } from "../../../src/import/torch-export/build.ts";
import { sourceOfBytes } from "../../../src/import/byte-source.ts";
import { readExportedProgram } from "../../../src/import/torch-export/read.ts";
import { Tensor } from "../../../src/numerics/tensor/host-tensor.ts";
import type { DType } from "../../../src/numerics/dtype.ts";
import { evaluateFusion } from "../../../src/oracle/evaluate.ts";
import { modelFile, type WrittenDType, type WrittenNode } from "./written-model.ts";

export type Values = number | readonly Values[];

/** A tensor argument; floats unless a dtype is given. */
export interface Given {
  readonly values: Values;
  readonly dtype: DType;
}

export const tensor = (values: Values, dtype: DType = "float"): Given => ({ values, dtype });

export interface Case {
  readonly op: string;
  readonly inputs: WrittenNode["inputs"];
  readonly given: Readonly<Record<string, Given>>;
  /** Of the first result, or of each. */
  readonly results: readonly (readonly [WrittenDType, Values])[];
}

export const one = (
  op: string,
  given: Readonly<Record<string, Given>>,
  inputs: WrittenNode["inputs"],
  values: Values,
  dtype: WrittenDType = "float",
): Case => ({ op, given, inputs, results: [[dtype, values]] });

export function shapeOf(values: Values): readonly number[] {
  if (typeof values === "number") return [];
  const [first] = values;
  return [values.length, ...(first === undefined ? [] : shapeOf(first))];
}

export function flat(values: Values): readonly number[] {
  return typeof values === "number" ? [values] : values.flatMap(flat);
}

function hostTensor({ values, dtype }: Given): Tensor {
  return Tensor.from(values, dtype);
}

/** The results of one node, of user inputs or of buffers. */
export function computed({ op, inputs, given, results }: Case, asConstants: boolean): readonly Tensor[] {
  const tensors = Object.fromEntries(Object.entries(given).map(([name, each]) => [name, hostTensor(each)]));
  const names = results.map((_, i) => `r${i}`);
  const model = buildModel(
    readExportedProgram(
      sourceOfBytes(
        modelFile({
          inputs: asConstants
            ? {}
            : Object.fromEntries(
                Object.entries(given).map(([name, { values, dtype }]) => [name, [dtype, shapeOf(values)]]),
              ),
          buffers: asConstants ? tensors : {},
          nodes: [
            {
              op,
              inputs,
              outputs: Object.fromEntries(results.map(([dtype, values], i) => [`r${i}`, [dtype, shapeOf(values)]])),
              list: /^(?:split|chunk|unbind|meshgrid)/u.test(op),
            },
          ],
          outputs: names,
        }),
      ),
    ),
  );
  return [
    ...evaluateFusion(
      model.fusion.data(),
      model.inputs.map(({ name, read }) => read() ?? (tensors[name] as Tensor)),
    ).outputs,
  ];
}
