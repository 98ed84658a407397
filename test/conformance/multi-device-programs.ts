/**
 * nvFuser's test_multidevice_host_ir.cpp, items 1 to 5, and CudaComm of test_multidevice_communications.cpp: host
 * programs of several devices, each with what it computes.
 */
import { add, DeviceMesh, Fusion, HostProgramBuilder, type HostProgram, type TensorView } from "@braid-compiler/braid";
import { at } from "../../src/support/invariant.ts";
import { emptyTensor, tensorBytes } from "../../src/numerics/tensor/host-tensor.ts";
import type { ReferenceSetting } from "../support/expect-reference.ts";
import { type Reference, referenceOf } from "../support/reference.ts";

export interface MultiDeviceProgram extends Pick<ReferenceSetting, "protocol" | "runs" | "findings"> {
  readonly name: string;
  readonly devices: readonly number[];
  readonly build: (devices: number, rank: number) => HostProgram;
  readonly reference: (devices: number) => Reference;
}

const worlds = [1, 2, 3, 4, 8];
const several = [2, 3, 4, 8];

/** Twice the input, gathered. */
function doubled(devices: number): Reference {
  const f = new Fusion();
  const x = f.input([devices, 8, 4]);
  f.output(add(x, x));
  return referenceOf(f);
}

interface Steps {
  /** Posts the unit. */
  readonly compute: () => void;
  /** Posts the Allgather; the same one every time. */
  readonly gather: () => void;
  readonly wait: () => void;
}

/** A unit on a shard, and an Allgather of what it makes. Without annotations the shard is a tensor of its own. */
function unitAndGather(annotated: boolean, body: (steps: Steps) => void): MultiDeviceProgram["build"] {
  return (devices) => {
    const unit = new Fusion();
    const operand = unit.input(annotated ? [null, null, null] : [null, null]);
    unit.output(add(operand, operand));
    const h = new HostProgramBuilder();
    const mesh = DeviceMesh.range(devices);
    const sharded = { mesh, parallel: ["DIDx"] } as const;
    const x = h.input([devices, 8, 4], sharded);
    const output = h.tensor([devices, 8, 4], { mesh });
    h.output(output);
    const shard = annotated ? x : h.select(x, 0, 0);
    const made = h.allocate(annotated ? h.tensor([devices, 8, 4], sharded) : h.tensor([8, 4], { mesh }));
    let posted: ReturnType<typeof h.communication> | null = null;
    body({
      compute: () => void h.postOnStream(unit, [shard], [made]),
      gather: () => {
        if (posted === null) posted = h.communication("Allgather", { input: made, output });
        else h.post(posted);
      },
      wait: () => {
        if (posted !== null) h.wait(posted);
      },
    });
    return h.build();
  };
}

const singleComm = ({ compute, gather, wait }: Steps): void => {
  compute();
  gather();
  wait();
};

/** As written the third unit overwrites what the second Allgather still reads; joined, it waits first. */
const twoFusionsAndWait =
  (joined: boolean) =>
  ({ compute, gather, wait }: Steps): void => {
    compute();
    gather();
    wait();
    compute();
    gather();
    if (joined) wait();
    compute();
    if (!joined) wait();
    compute();
  };

const unitPrograms: readonly MultiDeviceProgram[] = [true, false].flatMap((annotated) => {
  const name = annotated ? "withShardingAnnotations" : "withoutShardingAnnotations";
  const common = { devices: worlds, reference: doubled } as const;
  return [
    { ...common, name: `SingleFusionSingleComm, ${name}`, build: unitAndGather(annotated, singleComm) },
    {
      ...common,
      name: `SingleCommTwoFusionAndWait, ${name}`,
      build: unitAndGather(annotated, twoFusionsAndWait(true)),
    },
    {
      ...common,
      name: `SingleCommTwoFusionAndWait, ${name}, as written`,
      build: unitAndGather(annotated, twoFusionsAndWait(false)),
      findings: ["transfer-not-waited"],
    },
  ];
});

/** Row r of the result is row r - 1 of the input. */
function shifted(devices: number): Reference {
  const shape = [devices, 4];
  return {
    inputs: [{ dtype: "int", shape }],
    evaluate: ([input]) => {
      const output = emptyTensor("int", shape);
      const [from, to] = [tensorBytes(input ?? output), tensorBytes(output)];
      const row = to.byteLength / devices;
      for (let rank = 0; rank < devices; rank++) {
        const previous = (rank + devices - 1) % devices;
        to.set(from.subarray(previous * row, (previous + 1) * row), rank * row);
      }
      return { outputs: [output], bounds: [new Float64Array(devices * 4)] };
    },
  };
}

interface Neighbours {
  readonly h: HostProgramBuilder;
  readonly x: TensorView;
  readonly y: TensorView;
  readonly next: number;
  readonly previous: number;
  readonly rank: number;
}

function exchange(body: (neighbours: Neighbours) => void): MultiDeviceProgram["build"] {
  return (devices, rank) => {
    const h = new HostProgramBuilder();
    const sharded = { dtype: "int", mesh: DeviceMesh.range(devices), parallel: ["DIDx"] } as const;
    const [x, y] = [h.input([devices, 4], sharded), h.tensor([devices, 4], sharded)];
    h.output(y);
    body({ h, x, y, rank, next: (rank + 1) % devices, previous: (rank + devices - 1) % devices });
    return h.build();
  };
}

/** Rank 0 sends first, the others receive first. As written nobody waits for a send. */
const pairwise =
  (joined: boolean) =>
  ({ h, x, y, rank, next, previous }: Neighbours): void => {
    const early = rank === 0 ? h.send(x, { peer: next }) : null;
    const recv = h.recv(y, { peer: previous });
    const send = early ?? h.send(x, { peer: next });
    h.wait(recv);
    if (joined) h.wait(send);
  };

const coalesced = ({ h, x, y, next, previous }: Neighbours): void => {
  h.startCoalescing();
  h.send(x, { peer: next });
  h.recv(y, { peer: previous });
  h.wait(h.endCoalescing());
};

/** The reader copies (get), or the writer (put): nvFuser's test writes through the peer's handle. */
const throughHandles =
  (protocol: "get" | "put") =>
  ({ h, x, y, next, previous }: Neighbours): void => {
    const handles = h.shareMemHandles(
      { type: "send", buffer: x, peer: next },
      { type: "recv", buffer: y, peer: previous },
    );
    const [send, recv] = [at(handles, 0), at(handles, 1)];
    for (const half of protocol === "get" ? [send, recv] : [recv, send]) h.post(half);
    h.wait(recv);
    h.wait(send);
  };

const exchanges: readonly MultiDeviceProgram[] = [
  { name: "RingPairwiseExchange", devices: several, build: exchange(pairwise(true)), reference: shifted },
  {
    name: "RingPairwiseExchange, as written",
    devices: several,
    build: exchange(pairwise(false)),
    reference: shifted,
    findings: ["transfer-not-waited"],
  },
  { name: "CoalescedRingPairwiseExchange", devices: worlds, build: exchange(coalesced), reference: shifted },
  ...(["get", "put"] as const).map((protocol) => ({
    name: `ShareIpcMemHandles, and P2PCommunicationTest.CudaComm: ${protocol}`,
    devices: several,
    build: exchange(throughHandles(protocol)),
    reference: shifted,
    protocol,
    runs: 32,
  })),
];

export const multiDevicePrograms: readonly MultiDeviceProgram[] = [...unitPrograms, ...exchanges];
