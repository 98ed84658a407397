/**
 * Transfers between two processes: a program that sends a tensor back and forth, and a ping-pong of plain messages of
 * the same MPI library.
 *
 *     npx jiti bench/mpi.ts [ABI]
 *
 * builds itself into one module and starts it under mpirun. ABI: "Open MPI" (default) or "MPICH".
 */
import { execFileSync } from "node:child_process";
import process from "node:process";
import { createFlightRecorder } from "../src/backends/flight/flight-recorder.ts";
import { mpiAbis } from "../src/backends/mpi/abi.ts";
import { openMpiGroup } from "../src/backends/mpi/mpi-backend.ts";
import { findMpiLibrary } from "../src/backends/mpi/mpi-library.ts";
import { enterMpi, type MpiMessages, type SharedBytes } from "../src/backends/mpi/mpi-messages.ts";
import { compile } from "../src/compile/compile.ts";
import { DeviceMesh } from "../src/ir/device-mesh.ts";
import { Fusion } from "../src/ir/api/fusion.ts";
import { set } from "../src/ir/api/ops.ts";
import { at } from "../src/support/invariant.ts";
import { median } from "./harness/figures.ts";

const bytes = 2 ** 20;
const hops = 100;
const rounds = 25;

if (process.argv[2] === "--rank") await asRank(Number(process.argv[3]));
else await launch(process.argv[2] ?? "Open MPI");

async function launch(abi: string): Promise<void> {
  const { nodeScript } = await import("../test/support/node-script.ts");
  const { launchers, rootVariables } = await import("../test/mpi/under-mpi.ts");
  const launcher = launchers.find((each) => each.abi === abi);
  if (launcher === undefined || launcher.obstacle !== "") throw new Error(`no launcher of ${abi}`);
  const script = await nodeScript("bench/mpi.ts");
  const number = mpiAbis.findIndex(({ name }) => name === abi);
  const args = [...launcher.flags, "-np", "2", process.execPath, script, "--rank", String(number)];
  // oxlint-disable-next-line node/no-process-env -- what the command inherits
  execFileSync(launcher.file, args, { stdio: "inherit", env: { ...process.env, ...rootVariables } });
}

async function asRank(abi: number): Promise<void> {
  const library = findMpiLibrary(at(mpiAbis, abi));
  if (library === null) throw new Error("no library");
  const messages = enterMpi(library);
  const { program } = compile(backAndForth(), { devices: 2 });
  const group = openMpiGroup({
    transport: messages,
    processOf: [0, 1],
    pool: { workers: 1 },
    blas: null,
    flight: createFlightRecorder(),
  });
  const prepared = await group.prepare(program);
  for (const { id, rank, role, bytes: length } of program.buffers) {
    if (role === "input" && rank === messages.rank) prepared.write(id, new Uint8Array(length).fill(1));
  }
  const [plain, own]: [number[], number[]] = [[], []];
  for (let round = 0; round < rounds; round++) {
    plain.push(pingPong(messages) / hops);
    const { milliseconds } = await prepared.execute({ timeout: 20 });
    own.push(milliseconds / hops);
  }
  await group.close();
  messages.close();
  if (messages.rank !== 0) return;
  const [a, b] = [median(plain), median(own)];
  const rate = (milliseconds: number): string => `${(bytes / milliseconds / 1e6).toFixed(2)} GB/s`;
  console.log(`${library.version}, 1 MiB between two processes, medians of ${rounds} rounds of ${hops} messages`);
  console.log(`plain messages ${rate(a)}, a program's transfers ${rate(b)}: ${((100 * a) / b).toFixed(0)} %`);
}

/** A tensor that moves between two devices `hops` times. */
function backAndForth(): Fusion {
  const f = new Fusion();
  let tensor = f.input([bytes / 4], "float");
  tensor.setDeviceMesh(DeviceMesh.range(1));
  for (let hop = 0; hop < hops; hop++) {
    tensor = set(tensor);
    tensor.setDeviceMesh(new DeviceMesh([(hop + 1) % 2]));
  }
  f.output(tensor);
  return f;
}

/** Milliseconds. */
function pingPong(messages: MpiMessages): number {
  const buffer: SharedBytes = new Uint8Array(new SharedArrayBuffer(bytes));
  const peer = 1 - messages.rank;
  const tag = 1;
  const start = performance.now();
  for (let hop = 0; hop < hops; hop++) {
    const number = hop % 2 === messages.rank ? messages.send(buffer, peer, tag) : messages.receive(buffer, peer, tag);
    while (!messages.completed().includes(number));
  }
  return performance.now() - start;
}
