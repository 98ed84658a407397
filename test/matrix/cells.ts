/** Every pattern under every combination of lowering options: what becomes of it. */
import {
  DiagnosticError,
  type Fusion,
  type HostProgram,
  link,
  MultiDeviceExecutor,
  print,
  record,
} from "@braid-compiler/braid";
import { createCpuBackend } from "@braid-compiler/braid/cpu";
import { loadPattern, patternFiles } from "../support/example-program.ts";
import { shapeOf, sizesFromMeshes } from "../../src/ir/sizes.ts";
import { compare } from "../../src/oracle/value.ts";
import { evaluateFusion } from "../../src/oracle/evaluate.ts";
import { randomInputs } from "../../src/oracle/random-inputs.ts";
import { lowerAll } from "../../src/compile/lower-all.ts";
import { flagOf, loweringNames, options as schema, optionRow } from "../../src/compile/options.ts";
import type { LoweringOptions } from "../../src/passes/options.ts";
import { at } from "../../src/support/invariant.ts";
import { createRandom } from "../../src/support/random.ts";
import { verify } from "../../src/verify/verify.ts";

export const devices = 4;
export const streams = 3;

/** Small, and every axis divides by devices and chunks. */
const parameters: Readonly<Record<string, number>> = { S: 2, M: 2 * devices * devices, K: 2 * devices, N: 4 };

/** The patterns that are Fusions; one that is a host program already has nothing to lower. */
export async function patternFusions(): Promise<readonly { readonly name: string; readonly fusion: Fusion }[]> {
  const fusions: { readonly name: string; readonly fusion: Fusion }[] = [];
  for (const file of patternFiles) {
    const program = await loadPattern(file);
    const params = Object.fromEntries(Object.entries(parameters).filter(([known]) => known in program.defaults));
    const fusion = program.build({ devices, params });
    if ("data" in fusion) fusions.push({ name: file.replace(/\.ts$/, ""), fusion });
  }
  return fusions;
}

type Options = Partial<LoweringOptions>;

/** The options that choose an idiom: rows of the matrix. A protocol may also be left out. */
export const idioms: readonly Options[] = schema.backend.kind.choices.flatMap((backend) =>
  schema.p2p.kind.choices.flatMap((p2p) => [
    { backend, p2p },
    ...schema.protocol.kind.choices.map((protocol) => ({
      backend,
      p2p,
      protocol,
    })),
  ]),
);

export const switchNames = loweringNames.filter((name) => schema[name].kind.argument === null);

/** Every combination of the options that are on or off. */
export const allSwitches: readonly Options[] = Array.from({ length: 2 ** switchNames.length }, (_, bits) =>
  Object.fromEntries(switchNames.map((name, i) => [name, ((bits >> i) & 1) === 1])),
);

/** Those of which at most two are on, or all. */
export const switches = allSwitches.filter((options) => {
  const on = Object.values(options).filter((value) => value === true).length;
  return on <= 2 || on === switchNames.length;
});

/** The outcome of an idiom that no pattern has; such an idiom has no row. */
export const refused = "bad-option";

/** `ok`: it lowers, verifies and runs to the oracle's result. Else the code of the diagnostic. */
export type Outcome = (options: Options) => Promise<string>;

/** Options that lower a Fusion to the same host programs share one outcome: most switches change few programs. */
export function outcomesOf(fusion: Fusion): Outcome {
  const known = new Map<string, Promise<string>>();
  return async (options) => {
    const hosts = codeOr(() => lowerAll(fusion, { ...options, devices }).hosts);
    if (typeof hosts === "string") return hosts;
    const protocol = options.protocol ?? "get";
    // Ranks that lower alike share a host program.
    const programs = [...new Set(hosts)];
    const key = [protocol, ...hosts.map((host) => programs.indexOf(host)), ...programs.map((host) => print(host))].join(
      "\n",
    );
    const outcome = known.get(key) ?? outcomeOf(fusion, hosts, protocol);
    known.set(key, outcome);
    return outcome;
  };
}

async function outcomeOf(fusion: Fusion, hosts: readonly HostProgram[], protocol: "get" | "put"): Promise<string> {
  const data = fusion.data();
  const sizes = sizesFromMeshes(data.tensors);
  const program = codeOr(() => link(hosts.map((host, rank) => record(host, { rank, sizes, streams, protocol }))));
  if (typeof program === "string") return program;
  const error = verify(program).findings.find(({ severity }) => severity === "error");
  if (error !== undefined) return error.code;
  const shapes = data.inputs.map((id) => {
    const tensor = at(data.tensors, id);
    return { dtype: tensor.dtype, shape: shapeOf(tensor, sizes) };
  });
  const inputs = randomInputs(shapes, createRandom(1), "uniform");
  const on = createCpuBackend({ interleaving: { kind: "turns" }, blas: "off" });
  const executor = await MultiDeviceExecutor.create(hosts, { devices, streams, protocol, on, verify: "off" });
  const outputs = await executor.run(inputs);
  await executor.close();
  const expected = evaluateFusion(data, inputs);
  const wrong = outputs.some((output, i) => {
    if (!("data" in output)) return true;
    return compare(output, at(expected.outputs, i), at(expected.bounds, i)).firstBad !== null;
  });
  return wrong ? "check-failed" : "ok";
}

/** What `make` makes, or the code of the diagnostic that it throws. */
function codeOr<T extends object>(make: () => T): T | string {
  try {
    return make();
  } catch (error) {
    if (error instanceof DiagnosticError) return at(error.diagnostics, 0).code;
    throw error;
  }
}

/** The flags of an idiom as docs/matrix.md writes them. */
export function flagsOf(given: Partial<LoweringOptions>): string {
  const names = loweringNames.filter((name) => given[name] !== undefined);
  const isScheduled = (name: string): boolean => name === "p2p" || name === "protocol";
  const scheduled = names.filter(isScheduled).map((name) => `${name}=${String(given[name])}`);
  return [
    ...names.filter((name) => !isScheduled(name)).map((name) => `${flagOf(name)} ${String(given[name])}`),
    ...(scheduled.length === 0 ? [] : [`--schedule ${scheduled.join(",")}`]),
  ]
    .map((text) => `\`${text}\``)
    .join(" ");
}

/** The flag that turns a switch of `switchNames` from its default. */
export function switchFlag(name: (typeof switchNames)[number]): string {
  if (name === "nvfuserLimits") return "--as nvfuser";
  return optionRow(name).default === true ? `${flagOf(name)}=false` : flagOf(name);
}
