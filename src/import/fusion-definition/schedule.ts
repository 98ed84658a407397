/** How a definition places its tensors: meshes, splits of axes, parallel types, the order in memory. */
import { DeviceMesh } from "../../ir/device-mesh.ts";
import type { ParallelType } from "../../ir/domain.ts";
import type { OpRow } from "./ops.ts";
import {
  argument,
  type Call,
  flagIn,
  invalidAt,
  kindText,
  listIn,
  none,
  numberIn,
  tensorIn,
  unsupportedAt,
  type Value,
} from "./value.ts";

const parallelTypes: ReadonlyMap<string, ParallelType> = new Map([
  ["mesh_x", "DIDx"],
  ["mesh_y", "DIDy"],
  ["mesh_z", "DIDz"],
  ["stream", "Stream"],
  ["serial", "Serial"],
]);

function parallelTypeIn(call: Call, parameter: string): ParallelType {
  const value = argument(call, parameter);
  const name = value.kind === "path" ? (/ParallelType\.(\w+)$/u.exec(value.path)?.[1] ?? "") : "";
  return (
    parallelTypes.get(name) ??
    unsupportedAt(
      call.definition.source,
      call.position,
      `Braid has no parallel type ${name === "" ? kindText(value) : name}`,
      [...parallelTypes.keys()].map((each) => `ParallelType.${each}`).join(", "),
      "leave out how a kernel uses its blocks and threads: Braid makes its own kernels",
    )
  );
}

function meshIn(call: Call, parameter: string): DeviceMesh {
  const value = argument(call, parameter);
  if (value.kind === "mesh") return value.mesh;
  return invalidAt(call.definition.source, call.position, `${call.name} takes a mesh`, kindText(value), "a DeviceMesh");
}

/** A mesh of one list, or of a list of lists. */
export function meshOf(call: Call): Value {
  const rows = listIn(call, "devices");
  const numbers = (items: readonly Value[]): readonly number[] =>
    items.map((each) =>
      each.kind === "number"
        ? each.value
        : invalidAt(call.definition.source, call.position, "a mesh has another device", kindText(each), "a number"),
    );
  const isFlat = rows.every(({ kind }) => kind === "number");
  const mesh = isFlat
    ? new DeviceMesh(numbers(rows))
    : new DeviceMesh(rows.map((row) => numbers(row.kind === "list" ? row.items : [row])));
  return { kind: "mesh", mesh };
}

function split(call: Call, isInner: boolean): Value {
  tensorIn(call, "self").split(numberIn(call, "axis"), numberIn(call, "factor"), { inner: isInner });
  return none;
}

/** Methods of tensors; `self` is the tensor. */
const methods: Readonly<Record<string, OpRow>> = {
  set_device_mesh: {
    parameters: ["self", "mesh"],
    make: (call) => {
      tensorIn(call, "self").setDeviceMesh(meshIn(call, "mesh"));
      return none;
    },
  },
  split: {
    parameters: ["self", "axis", "factor", "inner_split"],
    make: (call) => split(call, flagIn(call, "inner_split", true)),
  },
  outer_split: { parameters: ["self", "axis", "factor"], make: (call) => split(call, false) },
  inner_split: { parameters: ["self", "axis", "factor"], make: (call) => split(call, true) },
  merge: {
    parameters: ["self", "axis", "inner_axis"],
    make: (call) => {
      tensorIn(call, "self").merge(numberIn(call, "axis"));
      return none;
    },
  },
  axis: {
    parameters: ["self", "axis"],
    make: (call) => ({ kind: "axis", axis: tensorIn(call, "self").axis(numberIn(call, "axis")) }),
  },
  get_loop_domain: { parameters: ["self"], make: loopDomain },
  set_allocation_domain: {
    parameters: ["self", "allocation_domain", "contiguity"],
    make: (call) => {
      const axes = listIn(call, "allocation_domain").map((each) =>
        each.kind === "axis"
          ? each.axis
          : invalidAt(
              call.definition.source,
              call.position,
              "an allocation domain has axes",
              kindText(each),
              "axes of the tensor",
            ),
      );
      tensorIn(call, "self").setAllocationDomain(axes);
      return none;
    },
  },
};

function loopDomain(call: Call): Value {
  const tensor = tensorIn(call, "self");
  return {
    kind: "list",
    items: Array.from({ length: tensor.nDims }, (_, axis) => ({ kind: "axis", axis: tensor.axis(axis) })),
  };
}

/** What an older nvFuser has as functions: `fd.sched.parallelize(T0, 0, ParallelType.mesh_x)`. */
const scheduleRows: Readonly<Record<string, OpRow>> = {
  _set_device_mesh: methods["set_device_mesh"] ?? { parameters: [], make: () => none },
  _create_device_mesh: { parameters: ["devices"], make: meshOf },
  split: {
    parameters: ["self", "axis", "factor", "inner_split"],
    make: (call) => split(call, flagIn(call, "inner_split", true)),
  },
  parallelize: {
    parameters: ["self", "axis", "parallel_type"],
    make: (call) => {
      tensorIn(call, "self").axis(numberIn(call, "axis")).parallelize(parallelTypeIn(call, "parallel_type"));
      return none;
    },
  },
  set_allocation_as_loop: {
    parameters: ["self"],
    make: (call) => {
      const tensor = tensorIn(call, "self");
      tensor.setAllocationDomain(Array.from({ length: tensor.nDims }, (_, axis) => axis));
      return none;
    },
  },
};

/** Of an axis; `self` is the axis. */
const parallelize: OpRow = {
  parameters: ["self", "parallel_type"],
  make: (call) => {
    const self = argument(call, "self");
    if (self.kind === "axis") self.axis.parallelize(parallelTypeIn(call, "parallel_type"));
    return none;
  },
};

export function methodRow(of: Value["kind"], name: string): OpRow | undefined {
  if (of === "axis") return name === "parallelize" ? parallelize : undefined;
  return of === "tensor" && Object.hasOwn(methods, name) ? methods[name] : undefined;
}

export function scheduleRow(name: string): OpRow | undefined {
  return Object.hasOwn(scheduleRows, name) ? scheduleRows[name] : undefined;
}

export const methodNames: readonly string[] = [...Object.keys(methods), "parallelize"].toSorted();
