/**
 * Communications that lowering gives something to run beside: the order of statements, and the bits. Each case of the
 * pass is in test/fixtures/cover-communications, and what it is worth in cover-communications.long.test.ts.
 */
import { expect, it } from "vitest";
import { compile } from "@braid-compiler/braid";
import { at } from "../../src/support/invariant.ts";
import { exampleFusion } from "../support/example-program.ts";

const devices = 4;

it("lets the weight of the next layer arrive while a layer computes", async () => {
  const fusion = await exampleFusion("transformer/weight-prefetch.ts", devices, { LAYERS: 5 });
  const { hosts, report, program } = compile(fusion, { devices });
  expect(report.ok).toBe(true);
  const order = at(hosts, 0).body.flatMap((each) => {
    if (each.kind === "Communication") return [`gather ${each.id}`];
    if (each.kind === "Wait") return [`wait ${each.target}`];
    return each.kind === "Linear" ? ["linear"] : [];
  });
  expect(order.join(", ")).toBe(
    "gather 0, wait 0, gather 1, linear, wait 1, gather 2, linear, wait 2, gather 3, linear, " +
      "wait 3, gather 4, linear, wait 4, linear",
  );
  // Two weights, and the rows before and after a linear.
  expect(at(program.ranks, 0).arenaBytes.temporary).toBe(4 * (2 * 48 * 48 + 2 * (192 / devices) * 48));
});
