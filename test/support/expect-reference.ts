/**
 * Runs host programs written by hand on the machine and on worker threads, several times over with other inputs, and
 * compares with the oracle's evaluation of a Fusion that says what they compute, or with what a function says. The
 * verifier must find exactly what is expected of it.
 */
import { expect } from "vitest";
import { type HostProgram, link, MultiDeviceExecutor, record, type Tensor, verify } from "@braid-compiler/braid";
import { sizesFromMeshes } from "../../src/ir/sizes.ts";
import { compare } from "../../src/oracle/value.ts";
import { randomInputs } from "../../src/oracle/random-inputs.ts";
import { at } from "../../src/support/invariant.ts";
import { createRandom } from "../../src/support/random.ts";
import { backendsFor } from "./cpu-backends.ts";
import type { Reference } from "./reference.ts";

export interface ReferenceSetting {
  /** How often the same prepared Program runs; 2 if not given. */
  readonly runs?: number;
  readonly streams?: number;
  readonly protocol?: "get" | "put";
  readonly scalars?: Readonly<Record<string, number>>;
  /** Codes of the errors that the verifier reports: the program has them and runs nevertheless. */
  readonly findings?: readonly string[];
}

/** `hosts[rank]`. */
export async function expectReference(
  hosts: readonly HostProgram[],
  reference: Reference,
  { runs = 2, streams = 4, protocol = "get", scalars = {}, findings = [] }: ReferenceSetting = {},
): Promise<void> {
  const lists = hosts.map((host, rank) =>
    record(host, { rank, sizes: sizesFromMeshes(host.tensors), streams, protocol, scalars }),
  );
  const errors = verify(link(lists), { notes: false, counterexamples: false }).findings.filter(
    ({ severity }) => severity === "error",
  );
  expect([...new Set(errors.map(({ code }) => code))].toSorted(), errors[0]?.message).toEqual(findings.toSorted());
  const cases = Array.from({ length: runs }, (_, run) => {
    const inputs = randomInputs(reference.inputs, createRandom(run), run % 2 === 0 ? "small-integers" : "uniform");
    return { inputs, ...reference.evaluate(inputs) };
  });
  for (const on of backendsFor(at(hosts, 0).tensors.length)) {
    // The verifier's findings are compared above.
    const options = { devices: hosts.length, on, streams, protocol, verify: "off" } as const;
    const executor = await MultiDeviceExecutor.create(hosts, options);
    for (const { inputs, outputs, bounds } of cases) {
      const results = (await executor.run(inputs, { scalars })) as readonly Tensor[];
      expect(results).toHaveLength(outputs.length);
      results.forEach((result, i) => {
        expect(result.shape).toEqual(at(outputs, i).shape);
        const comparison = compare(result, at(outputs, i), at(bounds, i));
        expect(comparison.firstBad, JSON.stringify(comparison)).toBeNull();
        // An element without a bound is not compared: a test that relies on it would prove nothing.
        expect(comparison.unbounded).toBe(0);
      });
    }
    await executor.close();
  }
}
