/** The program that a HostProgramBuilder has built, once it is known to be whole and valid. */
import { DiagnosticError } from "../../diagnostics/diagnostic.ts";
import { call, reject } from "../../ir/ops/call.ts";
import { at } from "../../support/invariant.ts";
import type { BuilderState } from "./state.ts";
import type { HostProgram } from "../nodes.ts";
import { validateHostProgram } from "../validate/validate.ts";

/** Throws `bad-argument` inside a loop or branch and where ops of a Fusion got in, and what `validateHostProgram` finds. */
export function programOf(state: BuilderState): HostProgram {
  requireOutermost(state);
  requireNoFusionOps(state);
  const { tensors, streams, units, awaitables, scopes } = state;
  const program: HostProgram = {
    kind: "HostProgram",
    tensors: [...tensors.tensors],
    inputs: [...tensors.inputs],
    outputs: [...tensors.outputs],
    streams: [...streams],
    units: [...units],
    body: [...at(scopes, 0)],
    iterDomainCount: tensors.iterDomainCount,
    scalarCount: tensors.scalarCount,
    exprCount: awaitables.length,
  };
  const findings = validateHostProgram(program);
  if (findings.length > 0) throw new DiagnosticError(findings);
  return program;
}

function requireOutermost({ scopes }: BuilderState): void {
  if (scopes.length === 1) return;
  reject(call("build"), {
    code: "bad-argument",
    message: "the program is built inside a loop or branch",
    found: "build() in the body of forLoop or ifThenElse",
    expected: "build() after the last statement",
    help: "call build() outside",
  });
}

/** The free functions `add(a, b)` of the Fusion API take the same handles, but append to a Fusion. */
function requireNoFusionOps({ tensors: { ops } }: BuilderState): void {
  const [first] = ops;
  if (first === undefined) return;
  reject(call("build"), {
    code: "bad-argument",
    message: "an op of the Fusion API was called with a tensor of a HostProgramBuilder",
    found: `T${first.output} = ${first.kind}(${first.inputs.map((id) => `T${id}`).join(", ")})`,
    expected: "computations by the builder's own methods",
    help: "call builder.add(a, b) instead of add(a, b), or put the op into a Fusion and post it with postOnStream",
  });
}
