/** One point of growth.ts, as a process: `node BUNDLE AXIS SIZE [STAGE...]`, without these stages. */
import { readFileSync, writeSync } from "node:fs";
import process from "node:process";
import hostsExample from "../examples/hosts/allgather-matmul.ts";
import { link } from "../src/commands/link/link.ts";
import type { Program } from "../src/commands/program.ts";
import { lowerRanks } from "../src/compile/lower.ts";
import { recordAll } from "../src/compile/record.ts";
import { Fusion, matmul, set, type TensorView } from "../src/index.ts";
import { DeviceMesh } from "../src/ir/device-mesh.ts";
import { applySchedule } from "../src/schedule/schedule.ts";
import { parseProfile } from "../src/simulate/parse-profile.ts";
import { simulate } from "../src/simulate/simulate.ts";
import { verify } from "../src/verify/verify.ts";
import type { Stage } from "./growth-plot.ts";
import { mixedChain } from "./harness/programs.ts";

const axisNames = ["ops", "layers", "ranks", "hosts", "uneven"] as const;
type Axis = (typeof axisNames)[number];

/** From the root of the checkout, where growth.ts runs. */
const profilePath = (axis: Axis): string => `profiles/${axis === "hosts" ? "8xH100" : "4xH200"}.json`;

const devicesPerHost = 8;

function on(tensor: TensorView, mesh: DeviceMesh, axis: number | null, type: "DIDx" | "Stream" = "DIDx"): TensorView {
  tensor.setDeviceMesh(mesh);
  if (axis !== null) tensor.axis(axis).parallelize(type);
  return tensor;
}

/** Per layer: rows gathered in a loop over the devices and multiplied; the result is sharded again. */
function gathers(layers: number, devices: number): Fusion {
  const f = new Fusion();
  const mesh = DeviceMesh.range(devices);
  let x = on(f.input([devices, 4, 8], "float"), mesh, 0);
  for (let layer = 0; layer < layers; layer++) {
    const weight = on(f.input([8, 8], "float"), mesh, null);
    x = on(set(on(matmul(x, weight), mesh, 0, "Stream")), mesh, 0);
  }
  f.output(x);
  return f;
}

/** Rows gathered in chunks: most devices have none of a chunk's, and send and receive as one group. */
function uneven(devices: number): Fusion {
  const f = new Fusion();
  const mesh = DeviceMesh.range(devices);
  const x = on(f.input([2 * devices, 8], "float"), mesh, null);
  const y = on(set(x), mesh, null);
  f.output(y);
  x.outerSplit(0, devices).parallelize("DIDx");
  y.outerSplit(0, 4).parallelize("Stream");
  return f;
}

interface Problem {
  readonly fusion: Fusion;
  readonly devices: number;
  readonly devicesPerHost?: number;
}

/** Allgather + matmul in chunks, between hosts and within them. */
function hierarchical(hosts: number): Problem {
  const devices = devicesPerHost * hosts;
  const fusion = hostsExample.build({ devices, hosts, params: { M: 4 * 128 * devices, K: 8192, N: 1024 } });
  return { fusion, devices, devicesPerHost };
}

function problem(axis: Axis, size: number): Problem {
  if (axis === "hosts") return hierarchical(size);
  if (axis === "ops") return { fusion: mixedChain(size, [4, 2, 4]), devices: 2 };
  if (axis === "uneven") return { fusion: uneven(size), devices: size };
  if (axis === "layers") return { fusion: gathers(size, 8), devices: 8 };
  return { fusion: gathers(1, size), devices: size };
}

/** Prints the seconds of each stage, and the megabytes so far, when it ends. */
function measure(axis: Axis, size: number, leaveOut: readonly string[]): void {
  const { fusion, devices, ...machine } = problem(axis, size);
  // One-sided, every piece is a copy with signals of its own.
  const backend = axis === "uneven" ? "nccl" : "cuda";
  const timed = <T>(stage: Stage, run: () => T): T => {
    const before = process.cpuUsage();
    const result = run();
    const { user, system } = process.cpuUsage(before);
    writeSync(1, `${stage} ${(user + system) / 1e6} ${process.resourceUsage().maxRSS / 1024}\n`);
    return result;
  };
  const { classes } = timed("lower", () => lowerRanks(fusion, devices, { backend, ...machine }));
  const lists = timed("record", () => recordAll(classes, { devices, streams: 8 }));
  const program: Program = { ...timed("link", () => link(lists)), ...machine };
  const file = profilePath(axis);
  const profile = parseProfile(readFileSync(file, "utf8"), file);
  const rest: Readonly<Record<Exclude<Stage, "lower" | "record" | "link">, () => unknown>> = {
    verify: () => verify(program, { notes: false }),
    simulate: () => simulate(program, profile, { graph: true }),
    rewrite: () => applySchedule(program, { inPlace: true, computeStreams: 1 }),
  };
  for (const stage of ["verify", "simulate", "rewrite"] as const) {
    if (!leaveOut.includes(stage)) timed(stage, rest[stage]);
  }
}

const [axis, size, ...leaveOut] = process.argv.slice(2);
const found = axisNames.find((each) => each === axis);
if (found === undefined) throw new Error(`no axis ${axis}`);
measure(found, Number(size), leaveOut);
