/** Everything that the command line prints: help, host programs, lists, verdicts, runs and messages. */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { badCalls, badCommandLines, badFiles } from "./bad-input.ts";
import { argumentsOf, cli, type FlagValues, Page, scratch, textOr, titleOf } from "./page.ts";
import { braid, flags, folders } from "./sources.ts";

const exampleFiles = readdirSync(folders.examples).filter((name) => name.endsWith(".ts"));
export const examples: readonly string[] = exampleFiles.map((name) => name.slice(0, -".ts".length));

function fileOf(example: string): string {
  return `${folders.examples}/${example}.ts`;
}

export async function helpPages(): Promise<void> {
  const page = new Page("help/commands");
  page.add("without arguments", await cli());
  for (const command of ["", "lower", "run", "verify", "bench", "calibrate", "doctor"]) {
    page.add(`braid ${command}`, await cli(...(command === "" ? [] : [command]), "--help"));
  }
  const doctor = JSON.parse(await cli("doctor", "--json")) as { findings: { name: string; gives: string }[] };
  page.add("doctor", doctor.findings.map(({ name, gives }) => `${name}: ${gives}`).join("\n"));
  page.save();
}

const styles = ["2025-04", "2025-05", "2025-10", "2026-01"];

const cuda = { backend: "cuda" } as const;

/** Every value of every lowering option, and combinations. */
const lowerings: readonly FlagValues[] = [
  {},
  cuda,
  { backend: "ucc" },
  { p2p: "linear" },
  { p2p: "broadcast" },
  { ...cuda, p2p: "broadcast" },
  { ...cuda, p2p: "linear" },
  { ...cuda, protocol: "get" },
  { ...cuda, protocol: "put" },
  { ...cuda, protocol: "put", p2p: "broadcast" },
  { backend: "ucc", p2p: "broadcast" },
  { protocol: "get" },
  { noOverlap: true },
  { ...cuda, noOverlap: true },
  { interStreamSync: true },
  { interStreamSync: true, p2p: "linear" },
  { ...cuda, interStreamSync: true },
  { ...cuda, interStreamSync: true, protocol: "put" },
  { reshardingAfter: true },
  { ...cuda, reshardingAfter: true },
  { accumulate: true },
  { ...cuda, accumulate: true },
  { noDeallocate: true },
  { noShrink: true },
  { ...cuda, noShrink: true },
];

/** Every `step`-th, starting at a different position for each number of devices. */
function some<T>(all: readonly T[], step: number, devices: number): readonly T[] {
  return all.filter((_, i) => i % step === devices % step);
}

/** 4 devices run everything, other numbers a part of it. */
function stepOf(devices: number): number {
  return devices === 4 ? 1 : devices === 2 ? 3 : 6;
}

export async function lowerPages(): Promise<void> {
  for (const example of examples) {
    for (const devices of [1, 2, 3, 4, 8]) {
      const page = new Page(`lower/${example}-${devices}`);
      const lower = (...args: readonly string[]) => cli("lower", fileOf(example), "--devices", `${devices}`, ...args);
      for (const values of some(lowerings, Math.ceil(stepOf(devices) / 2), devices))
        page.add(titleOf(values), await lower(...argumentsOf(values)));
      const last = ["--rank", `${devices - 1}`];
      for (const values of [{}, cuda, { p2p: "linear" }, { ...cuda, protocol: "put" }] as const) {
        page.add(`${titleOf(values)}, last rank`, await lower(...last, ...argumentsOf(values)));
        for (const style of devices === 4 ? styles : []) {
          page.add(`${titleOf(values)}, style ${style}`, await lower("--as", `braid:${style}`, ...argumentsOf(values)));
        }
        page.add(`${titleOf(values)}, passes`, await lower("--print", "passes", ...argumentsOf(values)));
      }
      page.add("JSON", await lower("--json", ...last));
      page.save();
    }
  }
}

const rewrites: readonly FlagValues[] = [
  { copyLane: "dedicated" },
  { copyLane: "inline" },
  { streams: "1" },
  { streams: "3" },
  { inPlace: true },
  { ownLast: true },
  { splitChunks: "2" },
  { splitChunks: "3" },
  { computeStreams: "1" },
  { computeStreams: "2" },
  { batchSignals: true },
  { smMargin: "16" },
  { inPlace: true, ownLast: true, copyLane: "dedicated" },
  { inPlace: true, splitChunks: "2", computeStreams: "1", copyLane: "dedicated" },
  { inPlace: true, ownLast: true, computeStreams: "2", batchSignals: true },
  { inPlace: true, computeStreams: "1", smMargin: "8" },
  { ownLast: true, splitChunks: "2", batchSignals: true, copyLane: "dedicated" },
];

/** Command lists, and the verifier's output for the same programs. */
export async function listPages(): Promise<void> {
  const over = (base: FlagValues) => rewrites.map((values) => ({ ...base, ...values }));
  const others = [...over({ ...cuda, protocol: "put" }), ...over({})];
  for (const example of examples) {
    for (const devices of [1, 2, 3, 4, 8]) {
      const [lists, verdicts] = [new Page(`lists/${example}-${devices}`), new Page(`verify/${example}-${devices}`)];
      const step = stepOf(devices);
      const chosen = [
        ...some(lowerings, step, devices),
        ...some(over(cuda), step, devices),
        ...some(others, step * 6, devices),
      ];
      for (const [i, values] of chosen.entries()) {
        const args = [fileOf(example), "--devices", `${devices}`, ...argumentsOf(values)];
        lists.add(titleOf(values), await cli("lower", ...args, "--print", "lists"));
        if (devices === 4 && i % 5 === 0) {
          lists.add(`${titleOf(values)}, last rank`, await cli("lower", ...args, "--print", "lists", "--rank", "3"));
        }
        if (i % 2 === 0) verdicts.add(titleOf(values), await cli("verify", ...args, "--json"));
      }
      lists.save();
      verdicts.save();
    }
  }
}

/** Values of examples' parameters that every number of devices divides. */
const small: Readonly<Record<string, number>> = { M: 192, K: 48, N: 96, H: 24 };

export async function runPages(): Promise<void> {
  for (const example of examples) {
    const page = new Page(`runs/${example}`);
    const source = readFileSync(fileOf(example), "utf8");
    const smaller = Object.entries(small).flatMap(([name, size]) =>
      source.includes(` ${name}: `) ? ["--set", `${name}=${size}`] : [],
    );
    const run = (devices: number, ...args: readonly string[]) =>
      cli("run", fileOf(example), "--devices", `${devices}`, "--json", "--blas", "off", ...args);
    page.add("8 devices, usual sizes", await run(8, "--check"));
    for (const devices of [1, 2, 3, 4]) page.add(`${devices} devices`, await run(devices, "--check", ...smaller));
    const all = [...lowerings, ...rewrites.map((values) => ({ ...cuda, ...values }))];
    for (const devices of [2, 3, 4]) {
      for (const values of some(all, Math.max(2, stepOf(devices)), devices + 1)) {
        const text = await run(devices, ...smaller, flags.order, "seed:1", ...argumentsOf(values));
        page.add(`${devices} devices, ${titleOf(values)}`, text);
      }
    }
    page.save();
  }
}

export async function dumpPages(): Promise<void> {
  const dumps = folders.dumps.flatMap((folder) =>
    readdirSync(folder, { withFileTypes: true })
      .filter((entry) => entry.isFile() && /\.(hir|txt)$/.test(entry.name))
      .map(({ name }) => `${folder}/${name}`),
  );
  for (const file of dumps) {
    const page = new Page(`dumps/${path.basename(file)}`);
    for (const style of styles) page.add(style, await cli("lower", file, "--as", `braid:${style}`));
    page.add("JSON", await cli("lower", file, "--json"));
    for (const args of [
      [],
      ["--entry", "0"],
      ["--as", "nvfuser,roots=devices"],
      ["--as", "nvfuser,roots=positions"],
      ["--schedule", "protocol=put"],
    ]) {
      const text = await cli("verify", file, "--json", ...args);
      page.add(`verify ${args.join(" ")}`, text);
      // The message suggests sizes.
      const sizes = [...new Set(text.match(/--size \w+=\d+/g))].flatMap((size) => size.split(" "));
      if (sizes.length === 0) continue;
      page.add(`verify ${args.join(" ")} with sizes`, await cli("verify", file, "--json", ...args, ...sizes));
      page.add(`lists ${args.join(" ")} with sizes`, await cli("lower", file, "--print", "lists", ...args, ...sizes));
    }
    const lines = readFileSync(file, "utf8").split("\n");
    const read = (text: string) => textOr(() => `read: ${braid.print(braid.parse(text))}`);
    for (const [i, line] of lines.entries()) {
      page.add(`without line ${i + 1}`, await read(lines.toSpliced(i, 1).join("\n")));
      page.add(`line ${i + 1} twice`, await read(lines.toSpliced(i, 0, line).join("\n")));
      const half = line.slice(0, Math.ceil(line.length / 2));
      page.add(`line ${i + 1} cut`, await read(lines.toSpliced(i, 1, half).join("\n")));
      page.add(`to line ${i + 1}`, await read([...lines.slice(0, i), half].join("\n")));
    }
    page.save();
  }
  const findings = new Page("verify/findings");
  for (const name of readdirSync(folders.findings).filter((each) => each.endsWith(".hir"))) {
    const [report, order] = [path.join(scratch, "report.html"), path.join(scratch, "order.txt")];
    writeFileSync(order, "");
    const file = `${folders.findings}/${name}`;
    findings.add(name, await cli("verify", file, "--report", report, "--interleaving", order));
    findings.add(`${name}, JSON`, await cli("verify", file, "--json"));
    findings.add(`${name}, report`, await textOr(() => readFileSync(report, "utf8")));
    findings.add(`${name}, counterexample`, readFileSync(order, "utf8"));
    findings.add(`${name}, run`, await cli("run", file, "--blas", "off", "--json", flags.order, order));
  }
  findings.save();
}

export async function messagePages(): Promise<void> {
  for (const [name, text] of Object.entries(badFiles)) writeFileSync(path.join(scratch, name), text);
  const lines = new Page("diagnostics/command-lines");
  for (const line of badCommandLines) {
    const args = line.split(" ").filter((word) => word !== "");
    lines.add(line, await cli(...args.map((word) => word.replace("SCRATCH", scratch).replaceAll("_", " "))));
  }
  lines.add("JSON", await cli("lower", fileOf("allgather"), "--set", "Q=3", "--json"));
  lines.save();
  const calls = new Page("diagnostics/calls");
  for (const [i, body] of badCalls.entries()) {
    const file = path.join(scratch, `call-${i}.ts`);
    const text = `import * as braid from "@braid-compiler/braid";\nconst { Fusion, DeviceMesh, HostProgramBuilder, Tensor, MultiDeviceExecutor } = braid;
const f = new Fusion();\nconst a = f.input([2, 4, 8], "float");\nconst b = f.input([8, 6], "float");\nconst mesh = DeviceMesh.range(2);
await (async () => { ${body} })();\nexport default braid.program({}, () => f);`;
    writeFileSync(file, text);
    calls.add(body, await cli("lower", file, "--devices", "2"));
  }
  calls.save();
}
