/**
 * Fixes about machines, networks, processes and values, typed in this process: by what stands for the other hosts, GPUs
 * and ranks. What needs a process or a library of its own is in process-rows.ts.
 */
import {
  cast,
  compile,
  div,
  exp,
  Fusion,
  linear,
  mul,
  scaledLinear,
  sdpa,
  sum,
  Tensor,
  type TensorView,
  verify,
} from "@braid-compiler/braid";
import { openThreadedGroup } from "../../src/backends/cpu/threads/threaded-group.ts";
import { requireReachable } from "../../src/backends/cuda/cuda-backend.ts";
import { createDeviceMemory, type MemoryCalls } from "../../src/backends/cuda/memory/device-memory.ts";
import { deviceOps } from "../../src/backends/cuda/ops/device-ops.ts";
import { programNotes } from "../../src/backends/cuda/ops/list-notes.ts";
import { checkOutputs } from "../../src/cli/run/outputs.ts";
import { chooseAttention } from "../../src/compile/choose-attention.ts";
import { compareTorchRecords } from "../../src/import/flight-records/compare-records.ts";
import { compareFlights } from "../../src/trace/flight/compare-flights.ts";
import { smallRing } from "../backends/cpu/small-ring.ts";
import { recordsOf, type WrittenEntry, type WrittenGroups } from "../import/flight-records/written-records.ts";
import { ring } from "../support/peer-fusions.ts";
import { arrived, record, reducing, signalling } from "../trace/written-flights.ts";
import { type MachineRow, partOf, row, throwAll } from "./machine-row.ts";
import { meetings } from "./meeting-rows.ts";

// Records of other frameworks' runs, and of Braid's.

const reduce = (more: Partial<WrittenEntry> = {}): WrittenEntry => ({ op: "all_reduce", line: 1, ...more });
const pair: WrittenGroups = { "0": ["default_pg", [0, 1]] };

function torch(lists: readonly (readonly WrittenEntry[])[], firstId = 0, groups = pair): void {
  throwAll(compareTorchRecords(recordsOf(lists, groups, { firstId })).findings);
}

const waits = reduce({ state: "started" });

const records: readonly MachineRow[] = [
  row("record-incomplete", /pass the files of all ranks/u, (fix) =>
    torch(fix === null ? [[reduce()]] : twice(reduce())),
  ),
  row("record-incomplete", /set TORCH_FR_BUFFER_SIZE to more entries/u, (fix) =>
    torch(twice(reduce({ number: fix === null ? 7 : 1 })), fix === null ? 6 : 0),
  ),
  row("record-incomplete", /dump all ranks at once/u, (fix) =>
    torch([[reduce(), reduce()], fix === null ? [reduce()] : [reduce(), reduce()]]),
  ),
  row("rank-failed", /pass its file, too/u, (fix) => torch(fix === null ? [[waits]] : twice(reduce()))),
  row("rank-behind", /what the host of rank 1 does after that/u, (fix) =>
    // Its host issued nothing more; once it does, both sides complete.
    torch(fix === null ? [[reduce(), waits], [reduce()]] : twice(reduce(), reduce())),
  ),
  row("rank-behind", /a kernel of rank 1 that does not end/u, (fix) =>
    torch(
      [[waits], [reduce({ group: "1" }), reduce({ state: "scheduled" })]].map((list) =>
        list.map((entry) => (fix === null ? entry : { ...entry, state: "completed" })),
      ),
      0,
      { ...pair, "1": ["own", [1]] },
    ),
  ),
  row("rank-failed", /the end of rank 1: its own message/u, (fix) => {
    const others = [0, 2].map((rank) => record(reducing, rank, arrived));
    throwAll(compareFlights(fix === null ? others : [...others, record(reducing, 1, arrived)]).findings);
  }),
  row("rank-behind", /look at what rank 1 does there/u, (fix) => {
    const own = record(reducing, 1, fix === null ? [["begun", 0]] : arrived);
    throwAll(compareFlights([record(reducing, 0, arrived), own, record(reducing, 2, arrived)]).findings);
  }),
  row("rank-behind", /what the host of ranks 1, 2 does between two runs/u, (fix) => {
    const late = [1, 2].map((rank) =>
      fix === null
        ? record(reducing, rank, [], { run: 1, finished: true })
        : record(reducing, rank, arrived, { run: 2 }),
    );
    throwAll(compareFlights([record(reducing, 0, arrived, { run: 2 }), ...late]).findings);
  }),
  row("rank-behind", /braid verify FILE find the signal that the program lacks/u, (fix) => {
    const program = signalling(fix !== null);
    // As the fix says: the verifier names the missing signal, and nothing once it is there.
    const { findings } = verify(program);
    if ((fix === null) !== findings.some(({ code }) => code === "signal-unbalanced")) throw new Error("not found");
    const done = fix === null ? [] : ([["ended", 0]] as const);
    const finished = { finished: fix !== null };
    throwAll(
      compareFlights([record(program, 0, done, finished), record(program, 1, done, { finished: true })]).findings,
    );
  }),
];

function twice(...entries: readonly WrittenEntry[]): readonly (readonly WrittenEntry[])[] {
  return [entries, entries];
}

// GPUs.

const target = { capability: 90, multiprocessors: 132 };
const gib = 2 ** 30;

/** `free` bytes are free on a GPU of 8 GiB. */
function allocate(bytes: number, free: number): void {
  const gpu: MemoryCalls = {
    rank: 0,
    ordinal: 0,
    name: "NVIDIA Test",
    memoryBytes: 8 * gib,
    check: () => {},
    raw: { cuMemAlloc_v2: (_, wanted) => (wanted > free ? 2 : 0) },
    call: {
      cuMemFree_v2: () => {},
      cuMemGetInfo_v2: (value) => {
        value[0] = free;
      },
    },
  };
  createDeviceMemory(gpu).allocate(bytes, "the inputs");
}

async function onTwoHosts(options: Omit<Parameters<typeof compile>[1], "devices">): Promise<void> {
  const { program } = compile(ring(4, [8, 16, 4], "float"), { on: "cuda", devices: 4, ...options });
  const list = (joined: boolean) => deviceOps(program, 0, target, { joined });
  await requireReachable(
    { ops: list(true), unjoined: () => list(false), notes: programNotes(program, 0) },
    { rank: 0, hosts: [0, 0, 1, 1], hostNames: ["a", "b"], allGather: (own) => Promise.resolve([own]) },
  );
}

function attention(options: { readonly attention: "auto" | "ops" }): void {
  const f = new Fusion();
  const [q, k, v] = [0, 1, 2].map(() => f.input([2, 16, 64], "float"));
  if (q === undefined || k === undefined || v === undefined) return;
  f.output(sdpa(q, k, v).output);
  throwAll(chooseAttention(f, { on: "cuda", ...options }, undefined).notes);
}

/** What the code at the end of a fix makes of tensors by these names. */
function printed(fix: string, tensors: Readonly<Record<string, TensorView>>): TensorView {
  const names = { mul, linear, cast, ...tensors };
  // oxlint-disable-next-line typescript/no-implied-eval, typescript/no-unsafe-type-assertion -- the code that the fix prints
  const run = new Function(...Object.keys(names), `return ${partOf(fix, /mul\(.*\)$/u)}`) as (
    ...values: readonly unknown[]
  ) => TensorView;
  return run(...Object.values(names));
}

const gpus: readonly MachineRow[] = [
  ...(["smaller sizes", "other processes"] as const).map((what) =>
    row("gpu-memory", new RegExp(what, "u"), (fix) =>
      allocate(
        fix !== null && what === "smaller sizes" ? gib / 2 : 2 * gib,
        fix !== null && what !== "smaller sizes" ? 4 * gib : gib,
      ),
    ),
  ),
  ...([[], [16, 1]] as const).map((shape) =>
    row("gpu-unsupported", /linear\(cast\(x, "bfloat16"\), cast\(weight, "bfloat16"\)\)/u, (fix) => {
      const f = new Fusion();
      const [x, weight] = [f.input([16, 32], "float8_e4m3fn"), f.input([16, 32], "float8_e5m2")];
      const scaleX = f.input(shape, "float");
      const scaleW = f.input(shape.length === 0 ? [] : fix === null ? [16, 1] : [1, 16], "float");
      f.output(fix === null ? scaledLinear(x, weight, scaleX, scaleW) : printed(fix, { x, weight, scaleX, scaleW }));
      deviceOps(compile(f, { devices: 1, on: "cuda" }).program, 0, { ...target, capability: 86 });
    }),
  ),
  row("gpu-unsupported", /--devices-per-host \d/u, (fix) =>
    onTwoHosts({
      backend: "cuda",
      ...(fix === null ? {} : { devicesPerHost: Number(partOf(fix, /(?<=--devices-per-host )\d/u)) }),
    }),
  ),
  row("gpu-unsupported", /with --backend nccl/u, (fix) => onTwoHosts({ backend: fix === null ? "cuda" : "nccl" })),
  row("gpu-unsupported", /--schedule attention=ops/u, (fix) => attention({ attention: fix === null ? "auto" : "ops" })),
];

// Runs and values.

/** The built worker, but worker 1 ends as its third run begins. */
const dying = `
  import { parentPort, workerData } from "node:worker_threads";
  let runs = 0;
  const on = parentPort.on.bind(parentPort);
  parentPort.on = (event, listener) =>
    on(event, (message) => {
      if (workerData.number === 1 && message.kind === "run" && ++runs === 3) process.exit(7);
      listener(message);
    });
  await import(${JSON.stringify(new URL("../../dist/backends/cpu/threads/worker.js", import.meta.url).href)});
`;

function checked(
  build: (x: TensorView) => TensorView,
  input: Tensor,
  result: Tensor,
  suspect: "program" | "unverified" = "program",
): void {
  const f = new Fusion();
  f.output(build(f.input([...input.shape], "float")));
  const checks = checkOutputs(f.data(), [input], new Map(), [[{ tensor: result, ranks: [0] }]], suspect);
  throwAll(checks.flatMap(({ failure }) => failure ?? []));
}

const two = Tensor.from([
  [1, -1],
  [2, -2],
]);

const runs: readonly MachineRow[] = [
  row("worker-died", /run again: the next run starts new workers/u, async (fix) => {
    const worker = new URL(`data:text/javascript,${encodeURIComponent(dying)}`);
    const group = openThreadedGroup({ workers: 2, worker });
    try {
      const prepared = await group.prepare(smallRing(3));
      await prepared.execute();
      await prepared.execute();
      const failed = prepared.execute({ timeout: 10 });
      await (fix === null ? failed : failed.catch(() => prepared.execute({ timeout: 10 })));
    } finally {
      await group.close();
    }
  }),
  row("check-failed", /compare the statements that write this output with the reference/u, (fix) =>
    checked(
      (x) => mul(x, x),
      two,
      Tensor.from(
        fix === null
          ? [
              [1, 1],
              [4, -4],
            ]
          : [
              [1, 1],
              [4, 4],
            ],
      ),
    ),
  ),
  row("not-checked", /a reference whose result is bounded/u, (fix) => {
    const s = (x: TensorView): TensorView => sum(x, [1]);
    const [ratio, product] = [(x: TensorView) => div(s(x), s(x)), (x: TensorView) => mul(s(x), s(x))];
    checked(fix === null ? ratio : product, two, Tensor.from(fix === null ? [5, 5] : [0, 0]));
  }),
  row("not-checked", /use smaller sizes/u, (fix) => {
    // The exponential of eight is as large as floats are, and of four it is not.
    const x = Array<number>(fix === null ? 8 : 4).fill(11.0903549);
    const total = x.reduce((a, b) => a + b);
    checked((each) => exp(sum(each, [0])), Tensor.from(x), Tensor.from(Math.exp(total)));
  }),
];

export const machineRows: readonly MachineRow[] = [...records, ...meetings, ...gpus, ...runs];
