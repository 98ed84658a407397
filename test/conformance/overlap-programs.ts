/**
 * nvFuser's test_multidevice_host_ir_overlap.cpp without rings, as hand-built programs: matmul and a collective per
 * chunk on alternating streams. Each has the matmul whose result it computes from the same inputs.
 */
import { DeviceMesh, Fusion, HostProgramBuilder, type HostProgram, matmul, sum } from "@braid-compiler/braid";
import { type Ending, onWorkers, workers } from "./on-workers.ts";

/** The sizes of the original: M, K, N, and S chunks. */
export const sizes = { M: 64, K: 32, N: 16, S: 8 };

export interface OverlapProgram {
  readonly name: string;
  readonly devices: readonly number[];
  readonly build: (devices: number, ending: Ending) => HostProgram;
  readonly reference: (devices: number) => Fusion;
  /**
   * The verifier's findings in the program as nvFuser's test has it: its workers wait for nothing before they begin,
   * and nothing waits for them. (Here the caller allocates the buffers that the test gives as inputs.) null: the test
   * has no such form.
   */
  readonly foundAsWritten: readonly string[] | null;
}

/** Item 2: a ReduceScatter per chunk, its partial sums in as many buffers as there are streams. K is sharded. */
function reduceScatterPipelining(devices: number, ending: Ending): HostProgram {
  const h = new HostProgramBuilder();
  const mesh = DeviceMesh.range(devices);
  const { M, K, N, S } = sizes;
  const rows = M / (S * devices);
  const a = h.input([S, devices, devices, rows, K / devices], { mesh, parallel: ["Serial", "DIDx"] });
  const b = h.input([devices, 1, K / devices, N], { mesh, parallel: ["DIDx"] });
  const c = h.tensor([S, { reduced: devices }, devices, rows, N], { mesh, parallel: ["Serial", "Serial", "DIDx"] });
  h.output(c);
  const perStream = [workers, devices, devices, rows, N, { reduced: K / devices }];
  const partials = h.allocate(h.tensor(perStream, { mesh, parallel: ["Serial", "DIDx"] }));
  onWorkers(h, ending, (worker) => {
    h.forLoop(S, (step) => {
      h.setCurrentStream(worker(step));
      const partial = h.select(partials, 0, h.scalars.mod(step, workers));
      h.matmul(h.select(a, 0, step), b, { out: partial });
      h.wait(h.communication("ReduceScatter", { input: partial, output: h.select(c, 0, step) }));
    });
  });
  return h.build();
}

function reduceScatterReference(devices: number): Fusion {
  const f = new Fusion();
  const { M, K, N, S } = sizes;
  const a = f.input([S, devices, devices, M / (S * devices), K / devices]);
  const b = f.input([devices, 1, K / devices, N]);
  f.output(sum(matmul(a, b), [1]));
  return f;
}

/** Item 6: an Allgather per chunk, then its GEMM. */
function allgatherPipelining(devices: number, ending: Ending): HostProgram {
  const h = new HostProgramBuilder();
  const mesh = DeviceMesh.range(devices);
  const { M, K, N, S } = sizes;
  const rows = M / (S * devices);
  const a = h.input([S, devices, rows, K], { mesh, parallel: ["Serial", "DIDx"] });
  const b = h.input([K, N], { mesh });
  const c = h.tensor([S, devices, rows, N, { reduced: K }], { mesh });
  h.output(c);
  onWorkers(h, ending, (worker) => {
    h.forLoop(S, (step) => {
      h.setCurrentStream(worker(step));
      const gathered = h.allocate(h.tensor([devices, rows, K], { mesh }));
      h.wait(h.communication("Allgather", { input: h.select(a, 0, step), output: gathered }));
      h.matmul(gathered, b, { out: h.select(c, 0, step) });
      h.deallocate(gathered);
    });
  });
  return h.build();
}

function allgatherReference(devices: number): Fusion {
  const f = new Fusion();
  const { M, K, N, S } = sizes;
  f.output(matmul(f.input([S, devices, M / (S * devices), K]), f.input([K, N])));
  return f;
}

export const overlapPrograms: readonly OverlapProgram[] = [
  {
    name: "CollectiveBasedOverlapTest.ReduceScatterBasedPipeliningHostIr",
    devices: [1, 2, 4, 8],
    build: reduceScatterPipelining,
    reference: reduceScatterReference,
    foundAsWritten: ["data-race", "used-before-alloc"],
  },
  {
    name: "AllgatherOverlapTest.AllgatherBasedPipeliningHostIr",
    devices: [1, 2, 4, 8],
    build: allgatherPipelining,
    reference: allgatherReference,
    foundAsWritten: ["data-race"],
  },
];
