/**
 * test_multidevice_lower_communication.cpp: its table, and, with test_multidevice_lower_communication_cuda.cpp,
 * collectives of up to 256 MiB. A smaller mesh leaves devices of the world without work.
 */
import { DeviceMesh } from "../../../src/ir/device-mesh.ts";
import { Fusion } from "../../../src/ir/api/fusion.ts";
import { set, sum } from "../../../src/ir/api/ops.ts";
import { loopSplitCollectives } from "../../support/loop-split-fusions.ts";
import { devicesOf, loweredCommunications, loweredFusion } from "../../support/lowered-communications.ts";
import { movedExpectations, sumOfRows } from "./moved-tensors.ts";
import { cuda, fusionCase, nccl, onAnyNumber, type ReferenceCase } from "./reference-case.ts";

const collectives = [nccl, cuda];

const table = loweredCommunications
  // One device communicates with nobody.
  .filter((lowered) => devicesOf(lowered) > 1)
  .map((lowered) =>
    fusionCase(
      `${lowered.name}, ${lowered.from.mesh.join(" ")} to ${lowered.to.mesh.join(" ")}, [${lowered.shape.join(", ")}]`,
      collectives,
      () => loweredFusion(lowered),
      (devices) => devicesOf(lowered) <= devices,
    ),
  );

const loopSplits = loopSplitCollectives.map(({ name, build, sizes }) =>
  fusionCase(name, collectives, build, onAnyNumber, sizes),
);

const [kib, mib] = [2 ** 10, 2 ** 20];

interface Sized {
  readonly name: string;
  /** The inputs' rows and elements per row, for a message of so many elements. */
  readonly shape: (devices: number, elements: number) => readonly [number, number];
  readonly reduces: boolean;
  readonly rootedInput: boolean;
  readonly rootedOutput: boolean;
  readonly mostBytes: number;
}

const sized: readonly Sized[] = [
  {
    name: "Allgather",
    shape: (devices, elements) => [devices, elements / devices],
    reduces: false,
    rootedInput: false,
    rootedOutput: false,
    mostBytes: 256 * mib,
  },
  {
    name: "Broadcast",
    shape: (_, elements) => [1, elements],
    reduces: false,
    rootedInput: true,
    rootedOutput: false,
    mostBytes: 256 * mib,
  },
  {
    name: "Reduce",
    shape: (devices, elements) => [devices, elements],
    reduces: true,
    rootedInput: false,
    rootedOutput: true,
    mostBytes: 64 * mib,
  },
  {
    name: "Allreduce",
    shape: (devices, elements) => [devices, elements],
    reduces: true,
    rootedInput: false,
    rootedOutput: false,
    mostBytes: 64 * mib,
  },
];

const root = new DeviceMesh([0]);

function sizedFusion({ shape, reduces, rootedInput, rootedOutput }: Sized, elements: number, devices: number): Fusion {
  const f = new Fusion();
  const x = f.input(shape(devices, elements));
  const y = reduces ? sum(x, [0]) : set(x);
  f.output(y);
  x.setDeviceMesh(rootedInput ? root : DeviceMesh.range(devices));
  y.setDeviceMesh(rootedOutput ? root : DeviceMesh.range(devices)).setMemoryType("symmetric");
  if (!rootedInput) x.axis(0).parallelize("DIDx");
  return f;
}

/**
 * The numbers of bytes of nvFuser's CUDA tests that differ in kind: one piece, LowerCollectiveCudaTest's, several
 * chunks, the largest.
 */
const messages = [128 * kib, 2 * mib, 64 * mib, 256 * mib];

const large: readonly ReferenceCase[] = sized.flatMap((each) =>
  messages
    .filter((bytes) => bytes <= each.mostBytes)
    .map((bytes) => ({
      name: `LowerCollectiveCudaAndNcclTest.${each.name}, ${bytes / kib} KiB`,
      runsOn: onAnyNumber,
      lowerings: collectives,
      source: (devices) => sizedFusion(each, bytes / 4, devices),
      expectations: (devices) => {
        const [rows, columns] = each.shape(devices, bytes / 4);
        return movedExpectations(rows, columns, each.reduces ? sumOfRows : (input) => input);
      },
      // LowerCollectiveCudaTest runs ten times.
      repeat: bytes <= 2 * mib ? 5 : 2,
    })),
);

export const loweredCommunicationCases: readonly ReferenceCase[] = [...table, ...loopSplits, ...large];
