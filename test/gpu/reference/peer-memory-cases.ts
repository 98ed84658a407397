/**
 * Items 6 and 7 of test_multidevice_host_ir.cpp. Item 6 reads the parts of all devices through a
 * SymmetricContiguousView, which Braid lacks: here an Allgather in symmetric memory gives every device the same tensor.
 * Item 7 is a loop that leaves out a chunk on each device.
 */
import { DeviceMesh } from "../../../src/ir/device-mesh.ts";
import { Fusion } from "../../../src/ir/api/fusion.ts";
import { set } from "../../../src/ir/api/ops.ts";
import { HostProgramBuilder } from "../../../src/host/build/builder.ts";
import type { HostProgram } from "../../../src/host/nodes.ts";
import { dtypes } from "../../../src/numerics/dtype.ts";
import { emptyTensor, tensorBytes } from "../../../src/numerics/tensor/host-tensor.ts";
import { at } from "../../../src/support/invariant.ts";
import type { Reference } from "../../support/reference.ts";
import { expectationsFrom } from "../expectation.ts";
import { movedExpectations } from "./moved-tensors.ts";
import { cuda, onAnyNumber, type ReferenceCase } from "./reference-case.ts";

const columns = 2 << 20;

function gatheredInSymmetricMemory(devices: number): Fusion {
  const f = new Fusion();
  const x = f.input([devices, columns]);
  const y = set(x);
  f.output(y);
  for (const tensor of [x, y]) tensor.setDeviceMesh(DeviceMesh.range(devices)).setMemoryType("symmetric");
  x.axis(0).parallelize("DIDx");
  return f;
}

const elements = 32;

/** Device d copies rows d, d + 1, ... of its column but for the last, which stays zero. */
function swizzled(devices: number): HostProgram {
  const h = new HostProgramBuilder();
  const options = { mesh: DeviceMesh.range(devices), parallel: ["Serial", "DIDx"] } as const;
  const x = h.input([devices, devices, elements], options);
  const y = h.tensor([devices, devices, elements], options);
  h.output(y);
  // An output is the caller's memory, which nothing zeroes.
  const made = h.allocate(h.tensor([devices, devices, elements], options), { zeroInit: true });
  const { add, mod, rank } = h.scalars;
  h.forLoop(devices - 1, (step) => {
    const row = mod(add(rank, step), devices);
    h.set(h.select(x, 0, row), { out: h.select(made, 0, row) });
  });
  h.set(made, { out: y });
  return h.build();
}

function swizzledReference(devices: number): Reference {
  const shape = [devices, devices, elements];
  return {
    inputs: [{ dtype: "float", shape }],
    evaluate: (inputs) => {
      const input = at(inputs, 0);
      const output = emptyTensor("float", shape);
      const bytes = tensorBytes(output);
      bytes.set(tensorBytes(input));
      const piece = elements * dtypes.float.bytes;
      for (let device = 0; device < devices; device++) {
        const left = ((device + devices - 1) % devices) * devices + device;
        bytes.fill(0, left * piece, (left + 1) * piece);
      }
      return { outputs: [output], bounds: [new Float64Array(output.data.length)] };
    },
  };
}

export const peerMemoryCases: readonly ReferenceCase[] = [
  {
    name: "AllgatherInSymmetricMemory",
    runsOn: onAnyNumber,
    lowerings: [cuda],
    source: gatheredInSymmetricMemory,
    expectations: (devices) => movedExpectations(devices, columns, (input) => input),
    repeat: 3,
  },
  {
    name: "SwizzleWithParallelType",
    runsOn: onAnyNumber,
    lowerings: [cuda],
    source: swizzled,
    expectations: (devices) => expectationsFrom(swizzledReference(devices)),
    repeat: 3,
  },
];
