/** Disabled passes: the program still lowers, or a diagnostic explains why not. */
import path from "node:path";
import { describe, expect, it } from "vitest";
import { DiagnosticError, type Fusion, lower, type LowerOptions } from "@braid-compiler/braid";
import { isFusion, passes } from "@braid-compiler/braid/internals";
import { loadPattern, patternFiles } from "../support/example-program.ts";
import type { Fixture, Fixtures } from "../support/fixture.ts";
import { diagnosticOf } from "../ir/expect-diagnostic.ts";

const fixtures = path.resolve(import.meta.dirname, "../fixtures");
const names = Object.values(passes).map(({ name }) => name);

/** `lowered`, or the code of the diagnostic. */
function outcome(fusion: Fusion, options: LowerOptions): string {
  try {
    lower(fusion, options);
    return "lowered";
  } catch (error) {
    if (error instanceof DiagnosticError) return error.diagnostics[0]?.code ?? "no diagnostic";
    throw error;
  }
}

async function fixtureOf(name: string): Promise<Fixture> {
  const file = path.join(fixtures, path.dirname(name), "fixtures.ts");
  const { default: table } = (await import(file)) as { readonly default: Fixtures };
  const fixture = table[path.basename(name)];
  if (fixture === undefined) throw new Error(`no fixture ${name}`);
  return fixture;
}

/** As the page of each pass says. */
const outcomes: readonly (readonly [fixture: string, outcome: string])[] = [
  ["remove-dead-ops/unused-result", "lowered"],
  ["decompose-attention/causal-heads", "lowered"],
  ["propagate-shardings/megatron-mlp", "mesh-missing"],
  ["place-scalars/two-meshes", "mesh-missing"],
  ["place-casts/promoted-operand", "mesh-missing"],
  ["ignore-unit-dimensions/one-host", "lowered"],
  ["ignore-stream-axes/pipeline", "lowered"],
  ["fold-permutes/permuted-operands", "lowered"],
  ["fold-sums/summed-chunks", "stream-on-reduction-axis"],
  ["split-indices/embedding", "lowered"],
  ["insert-routes/contraction-split", "resharding-unsupported"],
  ["insert-routes/one-input", "resharding-unsupported"],
  ["insert-routes/allgather-matmul", "resharding-unsupported"],
  ["insert-routes/two-did-types", "lowered"],
  ["insert-routes/local", "resharding-unsupported"],
  ["exchange-sums/reduce-scatter", "lowered"],
  ["loop-over-devices/gather", "lowered"],
  ["exchange-reductions/reduce-rotated", "point-to-point-unsupported"],
  ["stream-parallel-type/single-set", "lowered"],
  ["convert-op-to-communication/allgather", "lowered"],
  ["sink-waits/to-reader", "lowered"],
  ["cover-communications/hoists", "lowered"],
  ["write-over-inputs/cache", "lowered"],
  ["deallocate/intermediates", "lowered"],
  ["shrink-stream-buffers/chain", "lowered"],
];

describe("each pass but segment", () => {
  it.each(outcomes)("%s: %s", async (name, expected) => {
    const { build, options } = await fixtureOf(name);
    expect(outcome(build(), { ...options, disablePass: [path.dirname(name)] })).toBe(expected);
  });

  it("has a row above", () => {
    const rows = new Set(outcomes.map(([name]) => path.dirname(name)));
    expect([...rows]).toEqual(names.filter((name) => name !== "segment"));
  });

  it("never crashes on an example", async () => {
    for (const file of patternFiles) {
      const example = await loadPattern(file);
      const built = example.build({ devices: 4, params: example.defaults });
      if (!isFusion(built)) continue;
      for (const name of names.filter((own) => own !== "segment")) {
        expect(outcome(built, { disablePass: [name] }), `${file} without ${name}`).toMatch(/^[a-z-]+$/u);
      }
    }
  });
});

it("segment cannot be left out", async () => {
  const { build } = await fixtureOf("segment/chain");
  expect(diagnosticOf(() => lower(build(), { disablePass: ["segment"] })).message).toBe(
    "pass segment cannot be disabled",
  );
});

it("the name of a pass that was split says which passes replace it", async () => {
  const { build } = await fixtureOf("segment/chain");
  const { code, expected } = diagnosticOf(() => lower(build(), { disablePass: ["decompose-reshardings"] }));
  expect(code).toBe("bad-option");
  const successors = (expected ?? "").replace("one of ", "").split(", ");
  expect(successors).toContain("insert-routes");
  expect(names).toEqual(expect.arrayContaining(successors));
});

it("the observer hears how long each pass took", async () => {
  const { build } = await fixtureOf("segment/chain");
  const times = new Map<string, number>();
  lower(build(), { onPass: ({ pass, milliseconds }) => times.set(pass, milliseconds) });
  expect([...times.keys()]).toEqual(names);
  expect([...times.values()].every((time) => time >= 0)).toBe(true);
  expect([...times.values()].some((time) => time > 0)).toBe(true);
});
