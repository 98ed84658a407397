/** Programs of the tests, through the public API: the result of every stage, and the verifier's output. */
import path from "node:path";
import fc from "fast-check";
import { hash, load, Page, textOr } from "./page.ts";
import { braid, internals, folders, programModules, verifyLists } from "./sources.ts";

type Source = braid.Fusion | braid.HostProgram;
type Options = braid.LowerOptions;
/** The program of a rank. */
type SourceOf = (rank: number) => Source;

function hostOf(source: Source, rank: number, options: Options): braid.HostProgram {
  return "data" in source ? braid.lower(source, { ...options, rank }) : source;
}

function devicesOf(source: Source): number {
  const { tensors } = "data" in source ? source.data() : source;
  return Math.max(0, ...tensors.flatMap(({ mesh }) => mesh?.devices ?? [])) + 1;
}

/** Host programs, command lists and findings on `given` devices, or else on those of the meshes. */
async function whole(of: SourceOf, options: Options = {}, given?: number): Promise<string> {
  return textOr(() => {
    const devices = given ?? devicesOf(of(0));
    const ranks = Array.from({ length: devices }, (_, rank) => rank);
    const hosts = ranks.map((rank) => hostOf(of(rank), rank, options));
    const texts = new Set(hosts.map((host) => braid.print(host)));
    const lists = hosts.map((host, rank) =>
      braid.record(host, {
        rank,
        sizes: new Map(),
        streams: 3,
        protocol: options.protocol ?? "get",
      }),
    );
    const { ok, findings, size } = verifyLists(lists);
    const said = findings.map(braid.renderDiagnostic);
    const program = ok ? internals.printProgram(braid.link(lists)) : "";
    return [
      ...texts,
      `lists: ${hash(program)}, ${program.split("\n").length} lines`,
      ...(devices === 2 ? [program] : []),
      JSON.stringify(size),
      ...said,
      "",
    ].join("\n");
  });
}

interface Fixture {
  readonly options?: Options;
  readonly build: () => braid.Fusion;
}

async function fixturePages(): Promise<void> {
  for (const { name: pass } of Object.values(internals.passes)) {
    const folder = path.join(folders.passFixtures, pass);
    const page = new Page(`programs/${pass}`);
    const { default: fixtures } = await load<{ readonly default: Readonly<Record<string, Fixture>> }>(
      path.join(folder, "fixtures.ts"),
    );
    for (const [name, fixture] of Object.entries(fixtures)) {
      const file = `${name}.ts`;
      const { options = {} } = fixture;
      const stages: string[] = [];
      const onPass: Options["onPass"] = ({ pass: ran, changed, program }) => {
        stages.push(`after ${ran}${changed ? `\n${internals.printProgramOfStage(program)}` : ": unchanged"}`);
      };
      const failed = await textOr(() => (braid.lower(fixture.build(), { ...options, onPass }), ""));
      page.add(`${file}, stages`, [...stages, failed].join("\n"));
      const variants = [{}, { backend: "cuda" }, { overlap: false }, { insertReshardingAfter: true }] as const;
      for (const more of variants) {
        page.add(`${file} ${JSON.stringify(more)}`, await whole(() => fixture.build(), { ...options, ...more }));
      }
      page.add(`${file}, Fusion`, await textOr(() => internals.printFusion(fixture.build().data())));
    }
    page.save();
  }
}

interface Written {
  readonly fusion: () => braid.Fusion;
  readonly options?: Options;
}

interface Refused {
  readonly what: string;
  readonly refused: readonly Written[];
  readonly rewrites: readonly Written[];
}

interface Named {
  readonly name: string;
  readonly devices?: number | readonly number[];
  readonly protocol?: "get" | "put";
}

interface Handwritten extends Named {
  readonly build: (devices?: number, more?: unknown) => braid.HostProgram;
}

interface Bad extends Named {
  readonly devices: number;
  readonly build: (h: braid.HostProgramBuilder, rank: number) => void;
}

async function handwrittenPages(): Promise<void> {
  for (const name of ["hostIrs", "multiDevice", "overlap", "rings"] as const) {
    const page = new Page(`programs/${name}`);
    const lists = Object.values(await load<object>(programModules[name])).filter(Array.isArray) as Handwritten[][];
    for (const { name: title, devices = 1, build, protocol = "get" } of lists.flat()) {
      for (const count of typeof devices === "number" ? [devices] : devices) {
        // The second argument is a rank, or how a program ends.
        const of = (more: unknown) => whole((rank) => build(count, more ?? rank), { protocol }, count);
        page.add(`${title}, ${count} devices`, await of(undefined));
        for (const ending of ["joined", "as written"]) {
          if (name === "overlap" || name === "rings")
            page.add(`${title}, ${count} devices, ${ending}`, await of(ending));
        }
      }
    }
    page.save();
  }
  const bad = new Page("diagnostics/bad-programs");
  const { badPrograms } = await load<{ readonly badPrograms: readonly Bad[] }>(programModules.bad);
  for (const { name, devices, build } of badPrograms) {
    const of: SourceOf = (rank) => {
      const h = new braid.HostProgramBuilder();
      build(h, rank);
      return h.build();
    };
    bad.add(name, await whole(of, {}, devices));
  }
  bad.save();
  const refused = new Page("diagnostics/refused-programs");
  for (const rows of Object.values(await load<Record<string, readonly Refused[]>>(programModules.refused))) {
    for (const { what, refused: first, rewrites } of rows) {
      for (const [i, { fusion, options }] of [...first, ...rewrites].entries()) {
        refused.add(`${what} ${i}`, await whole(fusion, options));
      }
    }
  }
  refused.save();
}

/** A module with an arbitrary of recipes, and what builds their Fusions. */
type Random = Readonly<Record<string, unknown>>;

const idioms: readonly Options[] = [
  {},
  { backend: "cuda", protocol: "put" },
  { backend: "cuda", p2p: "broadcast" },
  { p2p: "linear", interStreamSync: true },
  { overlap: false, insertReshardingAfter: true },
];

async function randomPages(): Promise<void> {
  const modules = [
    ["fusions", "recipes", "buildFusion"],
    ["reshardings", "reshardingRecipes", "buildResharding"],
    ["pointToPoint", "pointToPointRecipes", "buildPointToPoint"],
  ] as const;
  for (const [name, recipes, build] of modules) {
    const page = new Page(`programs/random-${name}`);
    const module = await load<Random>(programModules[name]);
    const samples = fc.sample(module[recipes] as fc.Arbitrary<unknown>, { seed: 7, numRuns: 60 });
    const make = module[build] as (recipe: unknown) => braid.Fusion;
    for (const [i, recipe] of samples.entries()) {
      const options = idioms[i % idioms.length] ?? {};
      const title = `${i} ${JSON.stringify(options)}`;
      page.add(`${title}, Fusion`, await textOr(() => internals.printFusion(make(recipe).data())));
      page.add(title, await whole(() => make(recipe), options));
    }
    page.save();
  }
}

export async function programPages(): Promise<void> {
  await fixturePages();
  await handwrittenPages();
  await randomPages();
}
