/** The drawn graphs of the GPU self-test, on the CPU: in 16 bits too, and half of them with gradients. */
import { expect, it } from "vitest";
import { DiagnosticError, MultiDeviceExecutor } from "@braid-compiler/braid";
import { compare } from "../../src/oracle/value.ts";
import { at } from "../../src/support/invariant.ts";
import { cpuBackends } from "../support/cpu-backends.ts";
import { runs } from "../support/suite.ts";
import { drawnGraph, isRefusedStream } from "./drawn-graphs.ts";

it.each([2, 3, 4])("drawn graphs on %i devices are within the oracle's bounds", async (devices) => {
  const count = runs({ quick: 6, long: 150 });
  const problems: string[] = [];
  let ran = 0;
  for (let seed = 1; seed <= count; seed++) {
    const { fusion, options, expectations } = drawnGraph(seed, devices);
    try {
      const executor = await MultiDeviceExecutor.create(fusion, { ...options, devices, on: at(cpuBackends, 0) });
      for (const { mode, inputs, outputs, bounds } of expectations()) {
        const results = await executor.run(inputs);
        outputs.forEach((wanted, i) => {
          const { firstBad } = compare(at(results, i), wanted, bounds[i] ?? new Float64Array(wanted.data.length));
          if (firstBad !== null) problems.push(`graph ${seed}, ${mode}, output ${i}: ${JSON.stringify(firstBad)}`);
        });
      }
      await executor.close();
      ran++;
    } catch (error) {
      if (error instanceof DiagnosticError && isRefusedStream(error)) continue;
      problems.push(`graph ${seed}: ${String(error)}`);
    }
  }
  expect(problems).toEqual([]);
  expect(ran).toBeGreaterThan(count / 2);
});
