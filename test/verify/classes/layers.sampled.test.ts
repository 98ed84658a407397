/** A Program with one more of its equal layers stands for all that have more of them. */
import { describe, expect, it } from "vitest";
import type { Fusion } from "@braid-compiler/braid";
import type { Program } from "../../../src/commands/program.ts";
import { compile, type CompileOptions } from "../../../src/compile/compile.ts";
import { createRandom } from "../../../src/support/random.ts";
import { at } from "../../../src/support/invariant.ts";
import { compileFewerLayers, withFewerLayers } from "../../../src/tune/regions/fewer-layers.ts";
import { hasOneLayerMore } from "../../../src/verify/layers.ts";
import { exampleFusion } from "../../support/example-program.ts";
import { runs } from "../../support/suite.ts";
import { mlpLayers } from "../../tune/regions/pairs.ts";
import { changes, mutateProgram, type ProgramChange } from "../mutants/mutate-program.ts";

const models = {
  "MLPs, both passes": async (layers: number) => Promise.resolve(mlpLayers(layers)),
  "Llama, forward": async (LAYERS: number) => exampleFusion("hosts/llama.ts", 2, { LAYERS, BACKWARD: 0 }),
  "Llama, both passes": async (LAYERS: number) => exampleFusion("hosts/llama.ts", 2, { LAYERS, BACKWARD: 1 }),
};

/** As NCCL and as copies between peers run them. */
const settings = {
  nccl: { devices: 2, on: "cuda", backend: "nccl" },
  copies: { devices: 2, on: "cuda", backend: "cuda" },
} as const satisfies Record<string, CompileOptions>;

const count = 14;

interface Compiled {
  readonly few: Program;
  readonly more: Program;
  readonly missing: number;
}

function fewOf(fusion: Fusion, options: CompileOptions): Compiled {
  const found = withFewerLayers(fusion.data());
  const layers = found && compileFewerLayers(found, options);
  if (layers === null) throw new Error("its layers stand for each other");
  const { few, more, missing } = layers;
  return { few: few.compilation.program, more: more.compilation.program, missing };
}

// Layers of Llama take longer; test/cli/verify.test.ts has some.
const names = Object.keys(models).slice(0, runs({ quick: 1, long: 3 })) as (keyof typeof models)[];

describe.each(names)("%s", (name) => {
  const build = models[name];

  it.each(Object.keys(settings) as (keyof typeof settings)[])("has the layers of few, by %s", async (setting) => {
    const options = settings[setting];
    const { few, more, missing } = fewOf(await build(count), options);
    expect(hasOneLayerMore(few, more)).toBe(true);
    const programOf = async (layers: number): Promise<Program> =>
      compile(await build(layers), { ...options, verify: "off" }).program;
    const [whole, longer] = [await programOf(count), await programOf(count + 1)];
    expect(hasOneLayerMore(whole, longer)).toBe(true);
    // One layer adds what it adds to few.
    for (const { rank, commands } of whole.ranks) {
      const [own, others] = [few, more].map((program) => at(program.ranks, rank).commands.length);
      expect(commands.length).toBe((others ?? 0) + missing * ((others ?? 0) - (own ?? 0)));
    }
    expect(hasOneLayerMore(few, longer)).toBe(false);
    expect(hasOneLayerMore(more, few)).toBe(false);
  });
});

const mutants = runs({ quick: 240, long: 6000 });

/** Others may change nothing: other strides the same ones, or another input that nothing else reads. */
const seen: readonly ProgramChange[] = changes.filter((each) => !["place", "strides", "buffer"].includes(each));

it(`no change of a command is another layer, in ${mutants} mutants`, async () => {
  const random = createRandom(mutants);
  const compiled = [
    fewOf(await models["Llama, forward"](count), settings.nccl),
    fewOf(await models["Llama, forward"](count), settings.copies),
    fewOf(mlpLayers(count), settings.copies),
  ];
  const passed: string[] = [];
  let tried = 0;
  for (let n = 0; n < mutants; n++) {
    const { few, more } = at(compiled, n % compiled.length);
    const change = at(seen, random.integer(seen.length));
    const mutant = mutateProgram(more, change, random);
    // The order of frees in a row means nothing.
    const isOrder = change === "swap" || change === "move";
    if (mutant === null || (isOrder && /: (?:alloc|free) at/.test(mutant.what))) continue;
    tried++;
    if (hasOneLayerMore(few, mutant.program)) passed.push(`${change}: ${mutant.what}`);
  }
  expect(tried).toBeGreaterThan(mutants / 3);
  expect(passed).toEqual([]);
});
