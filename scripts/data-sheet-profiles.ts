/**
 * Writes profiles of machines that have not been measured, from the figures of public data sheets: `npx jiti
 * scripts/data-sheet-profiles.ts`. Each is the measured profile of 4 x H200, with rates in proportion to the data
 * sheets, so it reaches as much of its data sheet as H200 does of its own. Latencies stay as they were measured; that of
 * the network, which was not measured, is a usual one. Copy a row to make a profile of another machine.
 */
import { readFileSync, writeFileSync } from "node:fs";
import prettier from "prettier";
import { changed, linkRate, usualLatency } from "../src/explain/what-if.ts";
import { byCommandClass } from "../src/simulate/command-class.ts";
import { type MachineProfile, networkOf, type Timing, type TransferTimings } from "../src/simulate/machine-profile.ts";
import { committedErrors } from "../src/simulate/mean-errors.ts";
import { parseProfile } from "../src/simulate/parse-profile.ts";

/** Of one GPU. */
export interface DataSheet {
  /** Dense bfloat16, in 1e12 operations a second. */
  readonly teraflops: number;
  /** Of its memory, in GB/s. */
  readonly memory: number;
  /** NVLink in one direction, in GB/s: half of what data sheets say. */
  readonly link: number;
}

/** Of a DGX host: one interface per GPU. */
interface NetworkSheet {
  /** In one direction, in GB/s. */
  readonly network: number;
  readonly networkSource: string;
}

export const measuredSheet: DataSheet = { teraflops: 989.5, memory: 4800, link: 450 };

const devices = 8;

export const dataSheets: Readonly<Record<string, DataSheet & NetworkSheet & { readonly source: string }>> = {
  A100: {
    teraflops: 312,
    memory: 2039,
    link: 300,
    source: "NVIDIA A100 80GB SXM data sheet",
    network: 25,
    networkSource: "NVIDIA DGX A100 data sheet (8 x 200 Gb/s)",
  },
  H100: {
    teraflops: 989.5,
    memory: 3350,
    link: 450,
    source: "NVIDIA H100 SXM data sheet",
    network: 50,
    networkSource: "NVIDIA DGX H100 data sheet (8 x 400 Gb/s)",
  },
  B200: {
    teraflops: 2250,
    memory: 8000,
    link: 900,
    source: "NVIDIA HGX B200 data sheet",
    network: 50,
    networkSource: "NVIDIA DGX B200 data sheet (8 x 400 Gb/s)",
  },
};

/** Nothing of such a profile was measured: errors are twice those of a measured one, and at least this. */
const leastError = 0.15;

export function dataSheetProfile(name: string, measured: MachineProfile): MachineProfile {
  const sheet = dataSheets[name];
  if (sheet === undefined) throw new Error(`no data sheet of ${name}`);
  const factors = new Map([
    ["gemm", `${sheet.teraflops / measuredSheet.teraflops}x`],
    ["link", `${sheet.link / measuredSheet.link}x`],
    ["memory", `${sheet.memory / measuredSheet.memory}x`],
  ]);
  // How many SMs a GEMM leaves free depends on their number.
  const { margins: _, ...scaled } = changed(measured, factors);
  const reached = linkRate(measured) / measuredSheet.link;
  return {
    ...scaled,
    machine: `${devices} x NVIDIA ${name}, not measured: ${sheet.source}, and what 4 x H200 reach of theirs; between hosts: ${sheet.networkSource}`,
    betweenHosts: networkOf({ rate: reached * sheet.network, latency: usualLatency, nics: devices }),
    transfers: scaled.transfers.map(ofAllDevices),
    residuals: byCommandClass((of) => Math.max(leastError, 2 * committedErrors.classes[of])),
  };
}

/** Of D ranks, each moves (D - 1) / D of the bytes. A group is of two ranks. */
function ofAllDevices({ type, ranks, timings }: TransferTimings): TransferTimings {
  if (type === "group") return { type, ranks, timings };
  const more = (1 - 1 / devices) / (1 - 1 / ranks) - 1;
  const perByte = costPerByte(timings);
  return {
    type,
    ranks: devices,
    timings: timings.map(({ bytes, microseconds }) => ({ bytes, microseconds: microseconds + more * perByte * bytes })),
  };
}

function costPerByte(timings: readonly Timing[]): number {
  const [before, last] = timings.slice(-2);
  if (before === undefined || last === undefined) throw new Error("a measured profile has several sizes");
  return (last.microseconds - before.microseconds) / (last.bytes - before.bytes);
}

/** As `braid calibrate` writes it: four digits, except of whole numbers. */
export function profileText(profile: MachineProfile): string {
  return JSON.stringify(profile, (_, value: unknown) =>
    typeof value === "number" && !Number.isInteger(value) ? Number(value.toPrecision(4)) : value,
  );
}

const folder = new URL("../profiles/", import.meta.url);

if (process.argv[1] === import.meta.filename) {
  const measured = parseProfile(readFileSync(new URL("4xH200.json", folder), "utf8"), "4xH200.json");
  for (const name of Object.keys(dataSheets)) {
    const file = new URL(`${devices}x${name}.json`, folder);
    const options = { ...(await prettier.resolveConfig(import.meta.filename)), parser: "json" };
    writeFileSync(file, await prettier.format(profileText(dataSheetProfile(name, measured)), options));
  }
}
