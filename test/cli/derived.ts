/** Gradients of calls, and what `--check` says of them. */
import { Fusion, gradients } from "@braid-compiler/braid";
import { checkGradients } from "../../src/cli/run/gradient-check.ts";
import { drawInputs } from "../../src/compile/program/inputs.ts";
import type { FusionData } from "../../src/ir/fusion-data.ts";
import type { DType } from "../../src/numerics/dtype.ts";
import type { Tensor } from "../../src/numerics/tensor/host-tensor.ts";
import type { Build } from "../ir/gradients/composition-cases.ts";

/** A Fusion whose outputs are the gradients of all inputs, for cotangents that are inputs. */
export function derived(build: Build, shapes: readonly (readonly number[])[], dtype: DType = "double"): FusionData {
  const f = new Fusion();
  const wrt = shapes.map((shape) => f.input(shape, dtype));
  const built = build(...wrt);
  const of = "id" in built ? [built] : built;
  const cotangents = of.map((y) => f.input(y.extents, y.dtype));
  for (const gradient of gradients(f, { of, cotangents, wrt })) if (gradient !== null) f.output(gradient);
  return f.data();
}

/** Of each gradient: `passed`, `failed`, or why it was not compared. Inputs are random if none are given. */
export function verdictsOf(data: FusionData, inputs?: readonly Tensor[], full = false): readonly string[] {
  const sizes = new Map<string, number>();
  const checks = checkGradients(data, inputs ?? drawInputs(data, sizes, 3, new Map()), sizes, { seed: 3, full });
  return checks.map(({ failure, notCompared }) => notCompared ?? (failure === null ? "passed" : "failed"));
}
