/**
 * Waits that sink below other statements: the bits stay, and one that sinks too far is a finding. Where Waits go is in
 * test/fixtures/sink-waits, and what it is worth in sink-waits.long.test.ts.
 */
import { expect, it } from "vitest";
import { compile, type HostProgram, lower, MultiDeviceExecutor, type Statement } from "@braid-compiler/braid";
import { randomInputs } from "../../src/oracle/random-inputs.ts";
import { at } from "../../src/support/invariant.ts";
import { createRandom } from "../../src/support/random.ts";
import fixtures from "../fixtures/sink-waits/fixtures.ts";
import { cpuBackends } from "../support/cpu-backends.ts";
import { exampleFusion } from "../support/example-program.ts";

const devices = 4;
const example = "transformer/data-parallel.ts";
const rightAfter = { disablePass: ["sink-waits"] };

it("leaves the Waits of the CUDA backend, and nvFuser's form", async () => {
  const fusion = await exampleFusion(example, devices, {});
  const cuda = { backend: "cuda" } as const;
  expect(lower(fusion, cuda).body).toEqual(lower(fusion, { ...cuda, ...rightAfter }).body);
  const limits = { nvfuserLimits: true };
  expect(lower(fixtures["to-reader"].build(), limits).body).toEqual(
    lower(fixtures["to-reader"].build(), { ...limits, ...rightAfter }).body,
  );
  expect(lower(fixtures["to-reader"].build()).body).not.toEqual(lower(fixtures["to-reader"].build(), rightAfter).body);
});

it("keeps the bits", async () => {
  const fusion = await exampleFusion(example, devices, {});
  const { inputs, tensors } = fusion.data();
  const values = randomInputs(
    inputs.map((id) => ({
      dtype: at(tensors, id).dtype,
      shape: at(tensors, id).domain.logical.map(({ extent }) =>
        extent.kind === "constant" ? Number(extent.value) : 0,
      ),
    })),
    createRandom(1),
    "uniform",
  );
  const [first, second] = await Promise.all(
    [rightAfter, {}].map(async (options) => {
      const executor = await MultiDeviceExecutor.create(fusion, { devices, on: at(cpuBackends, 0), ...options });
      try {
        return await executor.run(values);
      } finally {
        await executor.close();
      }
    }),
  );
  expect(second).toEqual(first);
});

/** Moves the first Wait that comes just before a read of its communication's output to after that statement. */
function tooFar(host: HostProgram): HostProgram {
  const { body } = host;
  const outputs = new Map(body.flatMap((each) => (each.kind === "Communication" ? [[each.id, each.output]] : [])));
  const reads = (statement: Statement | undefined, tensor: number | undefined): boolean =>
    statement !== undefined && "inputs" in statement && statement.inputs.some((input) => input === tensor);
  const place = body.findIndex((each, i) => each.kind === "Wait" && reads(body[i + 1], outputs.get(each.target)));
  return { ...host, body: [...body.slice(0, place), at(body, place + 1), at(body, place), ...body.slice(place + 2)] };
}

it("a Wait that sinks too far is a finding of the verifier", async () => {
  const fusion = await exampleFusion(example, devices, { S: 1 });
  const hosts = Array.from({ length: devices }, (_, rank) => lower(fusion, { rank, deallocate: false }));
  expect(compile(hosts, { devices }).report.ok).toBe(true);
  const { findings } = compile(hosts.map(tooFar), { devices }).report;
  const errors = findings.filter(({ severity }) => severity === "error").map(({ code }) => code);
  expect(new Set(errors)).toEqual(new Set(["transfer-not-waited"]));
});
