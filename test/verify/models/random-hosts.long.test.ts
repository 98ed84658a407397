/** Random host programs under both models: the judge and the machine agree with the verifier. */
import { describe, expect, it } from "vitest";
import { link, record, verify } from "@braid-compiler/braid";
import { memoryModels } from "../../../src/compile/memory-models.ts";
import { createRandom } from "../../../src/support/random.ts";
import { compareProgram } from "../mutants/compare.ts";
import { outputsOf } from "../mutants/replay.ts";
import { devices, randomHosts } from "./random-hosts.ts";

const [programs, steps] = [75, 14];

describe.each([1, 2])("seed %d", (seed) => {
  it("has one verdict for each model", async () => {
    const random = createRandom(seed);
    const counts = { braid: 0, nvfuser: 0, both: 0, neither: 0, shown: 0 };
    for (let i = 0; i < programs; i++) {
      const hostOf = randomHosts(random, steps);
      const right: boolean[] = [];
      for (const model of ["braid", "nvfuser"] as const) {
        const program = link(
          Array.from({ length: devices }, (_, rank) => record(hostOf(rank), { rank, devices, ...memoryModels[model] })),
        );
        const { ok, findings } = verify(program, { notes: false });
        right.push(ok);
        expect([i, model, compareProgram(program).disagreement]).toEqual([i, model, null]);
        const usual = await outputsOf(program, "seed:0");
        const orders = [...findings.flatMap(({ interleaving }) => interleaving ?? []), "seed:1", "seed:2"];
        const others = await Promise.all(orders.map((order) => outputsOf(program, order)));
        if (ok) expect([i, model, new Set([usual, ...others]).size]).toEqual([i, model, 1]);
        else if (others.some((outputs) => outputs !== usual)) counts.shown++;
      }
      const [braid, nvfuser] = right;
      counts[braid === nvfuser ? (braid === true ? "both" : "neither") : braid === true ? "braid" : "nvfuser"]++;
    }
    for (const count of Object.values(counts)) expect(count).toBeGreaterThan(0);
  }, 120_000);
});
