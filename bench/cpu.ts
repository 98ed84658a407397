/**
 * Times the whole CPU back end: AG+matmul with m = k = n = 2048 on 8 ranks by number of workers, with the share of the
 * workers' time in kernels and copies; one large Allreduce and Allgather, which two workers share; the cost of a
 * command that only orders streams; and what the executor copies, beside a memcpy. Run it from the built package (`npm run bench`), because worker threads run the
 * built files.
 */
import {
  DeviceMesh,
  Fusion,
  HostProgramBuilder,
  link,
  MultiDeviceExecutor,
  record,
  relu,
  set,
  sum,
  type ExecutorReport,
  type RunReport,
  type Program,
  Tensor,
} from "@braid-compiler/braid";
import { createCpuBackend } from "@braid-compiler/braid/cpu";
import { median } from "./harness/figures.ts";
import { gathered } from "./harness/programs.ts";
import type { Suite, Task } from "./harness/suite.ts";

const devices = 8;
const chunks = 8;
const size = 2048;
const collectiveElements = 2 ** 21;

/** One collective of 8 MiB on every rank: an Allreduce of all elements, or an Allgather of an eighth from each. */
function collective(type: "Allreduce" | "Allgather"): Fusion {
  const f = new Fusion();
  const parts = f.input([devices, type === "Allreduce" ? collectiveElements : collectiveElements / devices], "float");
  const whole = type === "Allreduce" ? sum(parts, [0]) : set(parts);
  f.output(whole);
  for (const tensor of [parts, whole]) tensor.setDeviceMesh(DeviceMesh.range(devices));
  parts.axis(0).parallelize("DIDx");
  return f;
}

/**
 * Milliseconds of launches and copies, summed over all streams. Transfers are not counted, because ranks also wait in
 * them.
 */
function busy({ trace }: RunReport, { ranks }: Program): number {
  const works = (event: RunReport["trace"][number]): boolean => {
    const kind = ranks[event.rank]?.commands[event.command]?.kind;
    return kind === "launch" || kind === "copy";
  };
  return trace.filter(works).reduce((sum, event) => sum + event.end - event.start, 0);
}

export async function cpuSuite(): Promise<Suite> {
  const tasks: Task[] = [];
  const shares = new Map<number, number[]>();
  const executors: MultiDeviceExecutor[] = [];
  const moved = new Map<string, number[]>();
  const inputs = [Tensor.zeros([chunks, devices, size / (chunks * devices), size]), Tensor.zeros([size, size])];
  for (const { data } of inputs) data.forEach((_, i) => (data[i] = (i % 7) / 8));
  for (const workers of [1, 2]) {
    const fusion = gathered([chunks, devices, size / (chunks * devices), size], 1, size);
    const on = createCpuBackend({ workers });
    const executor = await MultiDeviceExecutor.create(fusion, { devices, on, timeout: 120 });
    executors.push(executor);
    const share: number[] = [];
    shares.set(workers, share);
    const onReport = (report: ExecutorReport, program: Program): number =>
      share.push(busy(report, program) / (workers * report.milliseconds));
    tasks.push({
      name: `AG+matmul ${size}^3, 8 ranks, ${workers} worker${workers === 1 ? "" : "s"}`,
      run: () => executor.run(inputs, { gather: false, onReport }),
    });
  }
  for (const type of ["Allreduce", "Allgather"] as const) {
    for (const workers of [1, 2]) {
      const executor = await MultiDeviceExecutor.create(collective(type), {
        devices,
        on: createCpuBackend({ workers }),
      });
      executors.push(executor);
      const elements = type === "Allreduce" ? collectiveElements : collectiveElements / devices;
      const values = [Tensor.zeros([devices, elements])];
      const reports: number[] = [];
      moved.set(`${type}, 8 MiB, 8 ranks, ${workers} worker${workers === 1 ? "" : "s"}`, reports);
      for (let run = 0; run < 30; run++) {
        await executor.run(values, { gather: false, onReport: ({ milliseconds }) => reports.push(milliseconds) });
      }
    }
  }
  const commands = 20_000;
  const program = orderingOnly(commands);
  for (const workers of [0, 1]) {
    const group = await createCpuBackend({ workers }).open({ world: 1, localRanks: [0] });
    const prepared = await group.prepare(program);
    tasks.push({
      name: `${commands} commands that only order, ${workers === 0 ? "machine" : "1 worker"}`,
      run: () => prepared.execute(),
    });
  }
  const after = async (): Promise<void> => {
    for (const [workers, share] of shares) {
      const percent = (100 * median(share)).toFixed(0);
      console.log(`${workers} worker(s): ${percent} % of their time in kernels and copies (median)`);
    }
    for (const [name, times] of moved)
      console.log(`${name}: ${median(times).toFixed(2)} ms (median of the runs alone)`);
    await Promise.all(executors.map((executor) => executor.close()));
    await printCopies();
  };
  const options = { iterations: 5, time: 0, warmupIterations: 1, warmupTime: 0 };
  return { name: "CPU back end", options, tasks, after };
}

/** Relu of 64 MiB: the least time of the copies of its input and output over ten runs, beside that of a memcpy. */
async function printCopies(): Promise<void> {
  const shape = [1024, 2 ** 14];
  const bytes = 4 * 2 ** 24;
  const [from, to] = [new Uint8Array(bytes).fill(1), new Uint8Array(bytes).fill(2)];
  const memcpy = Math.min(
    ...Array.from({ length: 10 }, () => {
      const start = performance.now();
      to.set(from);
      return performance.now() - start;
    }),
  );
  const x = Tensor.zeros(shape);
  x.data.fill(1.5);
  const y = Tensor.zeros(shape);
  for (const replicas of [1, 4]) {
    const f = new Fusion();
    const input = f.input(shape, "float");
    f.output(relu(input));
    input.setDeviceMesh(DeviceMesh.range(replicas));
    const executor = await MultiDeviceExecutor.create(f, { devices: replicas, on: createCpuBackend({ workers: 2 }) });
    for (const [where, outputs] of [
      ["a given tensor", [y]],
      ["a new tensor", undefined],
    ] as const) {
      const copies: number[] = [];
      const onReport = ({ copyMilliseconds }: ExecutorReport): number => copies.push(copyMilliseconds);
      for (let run = 0; run < 10; run++) {
        if (outputs === undefined) await executor.run([x], { trace: false, onReport });
        else await executor.run([x], { trace: false, onReport, outputs });
      }
      const times = (Math.min(...copies) / memcpy).toFixed(1);
      console.log(`relu of 64 MiB on ${replicas} device(s) to ${where}: copies ${times} times a memcpy`);
    }
    await executor.close();
  }
}

/** Two streams that wait for each other in turn: a recordEvent and a waitEvent each time. */
function orderingOnly(commands: number): Program {
  const h = new HostProgramBuilder();
  const x = h.input([1]);
  h.output(x);
  const streams = [h.stream(0), h.stream(1)] as const;
  h.forLoop(commands / 4, () => {
    h.setCurrentStream(streams[0]);
    h.synchronize(streams[1]);
    h.setCurrentStream(streams[1]);
    h.synchronize(streams[0]);
  });
  return link([record(h.build(), { rank: 0 })]);
}
