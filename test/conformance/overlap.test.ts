/** nvFuser's hand-built overlap programs: proven free of races, and equal to the matmul, on every back end and over repeated runs. */
import { describe, expect, it } from "vitest";
import { link, MultiDeviceExecutor, record, type Tensor } from "braid";
import { compare } from "../../src/oracle/compare.ts";
import { evaluateFusion } from "../../src/oracle/evaluate.ts";
import { randomInputs } from "../../src/oracle/random-inputs.ts";
import { shapeOf, sizesFromMeshes } from "../../src/ir/sizes.ts";
import { createRandom } from "../../src/support/random.ts";
import { verify } from "../../src/verify/verify.ts";
import { cpuBackends } from "../support/cpu-backends.ts";
import { overlapPrograms } from "./overlap-programs.ts";

describe.each(overlapPrograms)("$name", ({ devices: counts, build, reference }) => {
  it.each(counts)("on %i devices", async (devices) => {
    const data = reference(devices).data();
    const shapes = data.inputs.map((id) => {
      const tensor = data.tensors[id];
      if (tensor === undefined) throw new Error("an input without a tensor");
      return { dtype: tensor.dtype, shape: shapeOf(tensor, new Map()) };
    });
    const hosts = Array.from({ length: devices }, (_, rank) => build(devices, rank));
    const lists = hosts.map((host, rank) =>
      record(host, { rank, sizes: sizesFromMeshes(host.tensors), numberOfStreams: 4 }),
    );
    const findings = verify(link(lists)).findings.filter(({ severity }) => severity === "error");
    expect(findings.map(({ code, message }) => `${code}: ${message}`)).toEqual([]);
    for (const on of cpuBackends) {
      const executor = await MultiDeviceExecutor.create(hosts, { devices, on });
      for (let run = 0; run < 4; run++) {
        const inputs = randomInputs(shapes, createRandom(run), "uniform");
        const expected = evaluateFusion(data, inputs);
        const outputs = (await executor.run(inputs)) as readonly Tensor[];
        outputs.forEach((output, i) => {
          const { outputs: wanted, bounds } = expected;
          const [tensor, bound] = [wanted[i], bounds[i]];
          if (tensor === undefined || bound === undefined) throw new Error("an output too many");
          expect(compare(output, tensor, bound).firstBad).toBeNull();
        });
      }
      await executor.close();
    }
  });
});
