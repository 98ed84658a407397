/** How a definition places its tensors: meshes, splits of axes, parallel types, the order in memory. */
import { DeviceMesh } from "../../ir/device-mesh.ts";
import type { ParallelType } from "../../ir/domain.ts";
import type { FusionOpRow } from "./ops.ts";
import {
  argument,
  type FusionCall,
  flagIn,
  invalidAt,
  kindText,
  fusionList,
  none,
  fusionNumber,
  tensorIn,
  unsupportedAt,
  type FusionValue,
} from "./value.ts";

const parallelTypes: ReadonlyMap<string, ParallelType> = new Map([
  ["mesh_x", "DIDx"],
  ["mesh_y", "DIDy"],
  ["mesh_z", "DIDz"],
  ["stream", "Stream"],
  ["serial", "Serial"],
]);

function parallelTypeIn(call: FusionCall, parameter: string): ParallelType {
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

function meshIn(call: FusionCall, parameter: string): DeviceMesh {
  const value = argument(call, parameter);
  if (value.kind === "mesh") return value.mesh;
  return invalidAt(call.definition.source, call.position, `${call.name} takes a mesh`, kindText(value), "a DeviceMesh");
}

/** A mesh of one list, or of a list of lists. */
export function meshOf(call: FusionCall): FusionValue {
  const rows = fusionList(call, "devices");
  const numbers = (items: readonly FusionValue[]): readonly number[] =>
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

function split(call: FusionCall, isInner: boolean): FusionValue {
  tensorIn(call, "self").split(fusionNumber(call, "axis"), fusionNumber(call, "factor"), { inner: isInner });
  return none;
}

/** Methods of tensors; `self` is the tensor. */
const methods: Readonly<Record<string, FusionOpRow>> = {
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
      tensorIn(call, "self").merge(fusionNumber(call, "axis"));
      return none;
    },
  },
  axis: {
    parameters: ["self", "axis"],
    make: (call) => ({ kind: "axis", axis: tensorIn(call, "self").axis(fusionNumber(call, "axis")) }),
  },
  get_loop_domain: { parameters: ["self"], make: loopDomain },
  set_allocation_domain: {
    parameters: ["self", "allocation_domain", "contiguity"],
    make: (call) => {
      const axes = fusionList(call, "allocation_domain").map((each) =>
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

function loopDomain(call: FusionCall): FusionValue {
  const tensor = tensorIn(call, "self");
  return {
    kind: "list",
    items: Array.from({ length: tensor.nDims }, (_, axis) => ({ kind: "axis", axis: tensor.axis(axis) })),
  };
}

/** What an older nvFuser has as functions: `fd.sched.parallelize(T0, 0, ParallelType.mesh_x)`. */
const scheduleRows: Readonly<Record<string, FusionOpRow>> = {
  _set_device_mesh: methods["set_device_mesh"] ?? { parameters: [], make: () => none },
  _create_device_mesh: { parameters: ["devices"], make: meshOf },
  split: {
    parameters: ["self", "axis", "factor", "inner_split"],
    make: (call) => split(call, flagIn(call, "inner_split", true)),
  },
  parallelize: {
    parameters: ["self", "axis", "parallel_type"],
    make: (call) => {
      tensorIn(call, "self").axis(fusionNumber(call, "axis")).parallelize(parallelTypeIn(call, "parallel_type"));
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
const parallelize: FusionOpRow = {
  parameters: ["self", "parallel_type"],
  make: (call) => {
    const self = argument(call, "self");
    if (self.kind === "axis") self.axis.parallelize(parallelTypeIn(call, "parallel_type"));
    return none;
  },
};

export function methodRow(of: FusionValue["kind"], name: string): FusionOpRow | undefined {
  if (of === "axis") return name === "parallelize" ? parallelize : undefined;
  return of === "tensor" && Object.hasOwn(methods, name) ? methods[name] : undefined;
}

export function scheduleRow(name: string): FusionOpRow | undefined {
  return Object.hasOwn(scheduleRows, name) ? scheduleRows[name] : undefined;
}

export const methodNames: readonly string[] = [...Object.keys(methods), "parallelize"].toSorted();
