/**
 * Runs a dump on every CPU back end with 1 and 3 streams, and compares its output with the oracle's for an equivalent
 * Fusion.
 */
import { expect } from "vitest";
import { type HostProgram, MultiDeviceExecutor, type Tensor } from "@braid-compiler/braid";
import { parseContainers } from "@braid-compiler/braid/internals";
import { rankContainers } from "../../../src/host/parse/rank-containers.ts";
import { shapeOf } from "../../../src/ir/sizes.ts";
import { compare } from "../../../src/oracle/value.ts";
import { evaluateFusion } from "../../../src/oracle/evaluate.ts";
import { randomInputs } from "../../../src/oracle/random-inputs.ts";
import { createRandom } from "../../../src/support/random.ts";
import { cpuBackends } from "../../support/cpu-backends.ts";
import { type DumpCase, dumpText } from "./dump-cases.ts";

/** The host programs of all ranks. */
export function hostsOf({ file, text = dumpText(file) }: DumpCase): readonly HostProgram[] {
  const containers = rankContainers(parseContainers(text), { file, devices: null, container: null });
  return containers.map(({ program }) => program);
}

export async function expectDumpRuns(dump: DumpCase): Promise<void> {
  const { devices, reference } = dump;
  const hosts = hostsOf(dump);
  const data = reference().data();
  const shapes = data.inputs.map((id) => {
    const tensor = data.tensors[id];
    if (tensor === undefined) throw new Error("an input without a tensor");
    return { dtype: tensor.dtype, shape: shapeOf(tensor, new Map()) };
  });
  const inputs = randomInputs(shapes, createRandom(7), "uniform");
  const { outputs, bounds } = evaluateFusion(data, inputs);
  const [expected] = outputs;
  if (expected === undefined) throw new Error("one output");
  const [machine, one, two] = cpuBackends;
  for (const [on, streams] of [[machine, 1] as const, [one, 3] as const, [two, 3] as const]) {
    // Tests verify dumps by themselves; here two of three need not.
    const executor = await MultiDeviceExecutor.create(hosts, {
      devices,
      on,
      streams,
      verify: on === machine ? "on" : "off",
    });
    try {
      const [result] = (await executor.run(inputs)) as Tensor[];
      if (result === undefined) throw new Error("one output");
      expect(result.shape).toEqual(expected.shape);
      const comparison = compare(result, expected, bounds[0] ?? new Float64Array());
      expect(comparison.firstBad, JSON.stringify(comparison)).toBeNull();
    } finally {
      await executor.close();
    }
  }
}
