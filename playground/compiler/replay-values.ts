/** The outputs of a run in a given order of streams, compared with the oracle's. */
import { openMachineGroup } from "../../src/backends/cpu/machine-group.ts";
import { drawInputs } from "../../src/compile/program/inputs.ts";
import { copiesOf } from "../../src/executor/output-copies.ts";
import type { Program } from "../../src/commands/program.ts";
import { DiagnosticError } from "../../src/diagnostics/diagnostic.ts";
import { MultiDeviceExecutor } from "../../src/executor/multi-device-executor.ts";
import { indexLimits } from "../../src/ir/runs.ts";
import { nameOf } from "../../src/ir/origin.ts";
import { parseInterleaving } from "../../src/machine/interleaving.ts";
import { compare } from "../../src/oracle/value.ts";
import { evaluateFusion } from "../../src/oracle/evaluate.ts";
import { at } from "../../src/support/invariant.ts";
import { flopsOf } from "../../src/trace/command-work.ts";
import type { Analysed } from "./analyse.ts";
import type { OutputDifference, Replay } from "./parts.ts";

/** What a page computes in about a second. */
const mostFlops = 1e9;

type Values = Pick<Replay, "differences" | "withoutValues" | "isTooLarge">;

export async function valuesOf({ compilation, reference }: Analysed, order: string, seed: number): Promise<Values> {
  const { reported, signature, sizes, options } = compilation;
  if (reference === null) return without("host programs without a reference have nothing to compare outputs with");
  const flops = totalFlops(reported);
  if (flops > mostFlops) {
    const gflop = Math.round(flops / 1e9).toLocaleString("en-US");
    return { ...without(`these sizes take ${gflop} GFLOP, too many for a page`), isTooLarge: true };
  }
  const inputs = drawInputs(signature, sizes, seed, new Map(), indexLimits(reference, sizes));
  const backend = { name: "machine", open: async () => openMachineGroup({ interleaving: parseInterleaving(order) }) };
  try {
    const executor = await MultiDeviceExecutor.create(
      { ...compilation, program: reported },
      { devices: options.devices, on: backend, verify: "off" },
    );
    const outputs = await executor.run(inputs, { gather: false });
    const expected = evaluateFusion(reference, inputs, sizes);
    const copies = copiesOf(signature, sizes, outputs);
    return { differences: copies.map((each, i) => differenceOf(each, i)), withoutValues: null, isTooLarge: false };

    function differenceOf(each: ReturnType<typeof copiesOf>[number], i: number): OutputDifference {
      const tensor = at(signature.tensors, at(signature.outputs, i));
      const name = nameOf(tensor);
      const all = each.map((copy) => compare(copy.tensor, at(expected.outputs, i), at(expected.bounds, i)));
      const bad = all.find(({ firstBad }) => firstBad !== null)?.firstBad ?? null;
      return {
        name: name === null ? `T${tensor.id}` : `T${tensor.id} ${name}`,
        elements: at(expected.bounds, i).length,
        firstWrong:
          bad === null ? null : `element ${bad.index} is ${String(bad.actual)} instead of ${String(bad.expected)}`,
        largestError: Math.max(...all.map(({ maxError }) => maxError)),
      };
    }
  } catch (error) {
    if (!(error instanceof DiagnosticError)) throw error;
    return without(error.diagnostics[0]?.message ?? error.message);
  }
}

function without(reason: string): Values {
  return { differences: [], withoutValues: reason, isTooLarge: false };
}

function totalFlops({ ranks, kernels }: Program): number {
  return ranks.reduce(
    (sum, { commands }) =>
      commands.reduce(
        (own, command) => (command.kind === "launch" ? own + flopsOf(at(kernels, command.kernel)) : own),
        sum,
      ),
    0,
  );
}
