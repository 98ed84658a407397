/**
 * Runs nvFuser's multi-device tests on all GPUs, in every idiom, eager and as graphs: a row for each test, and one for
 * each way of running it that fails. All eager runs share a Group, and all graphs another one, so NCCL connects once
 * per team. A failed run ends the part.
 */
import { createCudaBackend } from "../../src/cuda.ts";
import { checkCase } from "../../test/gpu/check-case.ts";
import { referenceCases } from "../../test/gpu/reference/reference-cases.ts";
import { shareGroup } from "../../test/gpu/shared-group.ts";
import { goesOn } from "./goes-on.ts";
import { labelOf } from "./lowering-label.ts";
import { type PartContext, type Row, rowOf } from "./rows.ts";

const timeout = 20;

interface ReferencePlan {
  /** Selects rows by name. */
  readonly wanted?: (name: string) => boolean;
}

export async function* referenceRows(
  { world }: PartContext,
  { wanted = () => true }: ReferencePlan = {},
): AsyncGenerator<Row> {
  const { rank, worldSize: devices } = world;
  const groups = {
    off: shareGroup(createCudaBackend({ rendezvous: world, graph: "off", timeout })),
    on: shareGroup(createCudaBackend({ rendezvous: world, graph: "on", timeout })),
  };
  for (const [file, tests] of Object.entries(referenceCases)) {
    for (const test of tests) {
      const name = `${file}, ${test.name}`;
      if (!test.runsOn(devices) || !wanted(name)) continue;
      const start = performance.now();
      const expectations = test.expectations(devices);
      let passed = 0;
      let failed = 0;
      for (const lowering of test.lowerings) {
        for (const graph of ["off", "on"] as const) {
          const { on } = groups[graph];
          let done = false;
          const row = await rowOf(`${name}, ${labelOf(lowering)}, graph ${graph}`, async () => {
            const options = { ...lowering, rank, devices, on, timeout, repeat: test.repeat };
            const problems = await checkCase(test.source(devices, lowering), expectations, options);
            done = true;
            if (problems.length > 0) throw new Error(problems.slice(0, 3).join("; "));
            return "";
          });
          if (row.ok) passed += 1;
          else {
            failed += 1;
            yield row;
          }
          if (!(await goesOn(world, done))) return;
        }
      }
      const ways = `${passed} of ${passed + failed} ways`;
      yield { name, ok: failed === 0, text: `${ways}, ${(performance.now() - start).toFixed(0)} ms`, cases: passed };
    }
  }
  for (const group of [groups.off, groups.on]) await group.close();
}
