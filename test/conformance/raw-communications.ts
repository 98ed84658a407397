/**
 * nvFuser's CommunicationTest of test_multidevice_communications.cpp: every kind of communication, posted by hand eight
 * times in a row, in each back end's idiom. CudaComm: multi-device-programs.ts.
 */
import {
  DeviceMesh,
  Fusion,
  HostProgramBuilder,
  type HostProgram,
  set,
  sum,
  type TensorView,
} from "@braid-compiler/braid";
import type { CommunicationType, CommunicatorBackend } from "../../src/host/collectives.ts";
import { type Reference, referenceOf } from "../support/reference.ts";

const repetitions = 8;

interface Side {
  readonly mesh: readonly number[];
  /** Whether DIDx shards the first axis after the repetitions, or the one after that. */
  readonly sharded: 0 | 1 | null;
}

export interface RawCommunication {
  readonly name: string;
  readonly type: CommunicationType;
  readonly devices: readonly number[];
  /** The axes of input and output between the repetitions and the elements. */
  readonly axes: (devices: number) => readonly number[];
  readonly from: (devices: number) => Side;
  readonly to: (devices: number) => Side;
  readonly team?: readonly number[];
  readonly root?: number;
  readonly reduces?: true;
}

const worlds = [1, 2, 3, 8];
const range = (devices: number): readonly number[] => Array.from({ length: devices }, (_, i) => i);
const all =
  (sharded: Side["sharded"]) =>
  (devices: number): Side => ({ mesh: range(devices), sharded });
const only = (device: number) => (): Side => ({ mesh: [device], sharded: null });
const none = (): readonly number[] => [];
const perDevice = (devices: number): readonly number[] => [devices];

export const rawCommunications: readonly RawCommunication[] = [
  { name: "Gather", type: "Gather", devices: worlds, axes: perDevice, from: all(0), to: only(0), root: 0 },
  { name: "Allgather", type: "Allgather", devices: worlds, axes: perDevice, from: all(0), to: all(null) },
  { name: "Scatter", type: "Scatter", devices: worlds, axes: perDevice, from: only(0), to: all(0), root: 0 },
  { name: "Broadcast", type: "Broadcast", devices: worlds, axes: none, from: only(0), to: all(null), root: 0 },
  {
    name: "SendRecv",
    type: "SendRecv",
    devices: [2, 3],
    axes: none,
    from: only(1),
    to: only(0),
    team: [1, 0],
    root: 0,
  },
  {
    type: "SendRecv",
    name: "SendRecvToSelf",
    devices: [1, 2],
    axes: none,
    from: only(0),
    to: only(0),
    team: [0],
    root: 0,
  },
  {
    name: "Reduce",
    type: "Reduce",
    devices: worlds,
    axes: perDevice,
    from: all(0),
    to: only(0),
    root: 0,
    reduces: true,
  },
  {
    name: "Allreduce",
    type: "Allreduce",
    devices: worlds,
    axes: perDevice,
    from: all(0),
    to: all(null),
    reduces: true,
  },
  {
    name: "ReduceScatter",
    type: "ReduceScatter",
    devices: worlds,
    axes: (devices) => [devices, devices],
    from: all(0),
    to: all(1),
    reduces: true,
  },
];

/** `elements`: of each shard of each repetition. */
export function rawProgram(
  { type, axes, from, to, team, root, reduces }: RawCommunication,
  devices: number,
  backend: CommunicatorBackend,
  elements: number,
): HostProgram {
  const h = new HostProgramBuilder();
  const [source, target] = [from(devices), to(devices)];
  const shape = axes(devices);
  const annotations = ({ mesh, sharded }: Side): Parameters<typeof h.input>[1] => ({
    mesh: new DeviceMesh(mesh),
    parallel: sharded === null ? [] : ["Serial", ...(sharded === 0 ? [] : (["Serial"] as const)), "DIDx"],
  });
  const input = h.input([repetitions, ...shape, elements], annotations(source));
  const kept = shape.map((extent, i) => (reduces === true && i === 0 ? { reduced: extent } : extent));
  const output = h.tensor([repetitions, ...kept, elements], annotations(target));
  h.output(output);
  h.forLoop(repetitions, (repetition) => {
    h.wait(
      h.communication(type, {
        input: h.select(input, 0, repetition),
        output: h.select(output, 0, repetition),
        team: team ?? range(devices),
        ...(root === undefined ? {} : { root }),
        backend,
      }),
    );
  });
  return h.build();
}

export function rawReference({ axes, reduces }: RawCommunication, devices: number, elements: number): Reference {
  const f = new Fusion();
  const x: TensorView = f.input([repetitions, ...axes(devices), elements]);
  f.output(reduces === true ? sum(x, [1]) : set(x));
  return referenceOf(f);
}
