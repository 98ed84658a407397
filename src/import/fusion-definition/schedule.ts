/** How a definition places its tensors: meshes, splits of axes, parallel types, the order in memory. */
import { DeviceMesh } from "../../ir/device-mesh.ts";
import type { ParallelType } from "../../ir/domain.ts";
import {
  argument,
  type FusionCall,
  flagIn,
  invalidCall,
  kindText,
  fusionList,
  type FusionOpRow,
  madeBy,
  none,
  fusionNumber,
  tensorIn,
  refuseCall,
  type FusionValue,
} from "./value.ts";

const parallelTypes: ReadonlyMap<string, ParallelType> = new Map([
  ["mesh_x", "DIDx"],
  ["mesh_y", "DIDy"],
  ["mesh_z", "DIDz"],
  ["stream", "Stream"],
  ["serial", "Serial"],
]);

function parallelTypeIn(call: FusionCall): ParallelType {
  const value = argument(call, "parallel_type");
  const name = value.kind === "path" ? (/ParallelType\.(\w+)$/u.exec(value.path)?.[1] ?? "") : "";
  return (
    parallelTypes.get(name) ??
    refuseCall(
      call,
      `Braid has no parallel type ${name === "" ? kindText(value) : name}`,
      [...parallelTypes.keys()].map((each) => `ParallelType.${each}`).join(", "),
      "leave out how a kernel uses its blocks and threads: Braid makes its own kernels",
    )
  );
}

function meshIn(call: FusionCall, parameter: string): DeviceMesh {
  const value = argument(call, parameter);
  if (value.kind === "mesh") return value.mesh;
  return invalidCall(call, `${call.name} takes a mesh`, kindText(value), "a DeviceMesh");
}

/** A mesh of one list, or of a list of lists. */
export function meshOf(call: FusionCall): FusionValue {
  const rows = fusionList(call, "devices");
  const numbers = (items: readonly FusionValue[]): readonly number[] =>
    items.map((each) =>
      each.kind === "number" ? each.value : invalidCall(call, "a mesh has another device", kindText(each), "a number"),
    );
  const isFlat = rows.every(({ kind }) => kind === "number");
  const mesh = isFlat
    ? new DeviceMesh(numbers(rows))
    : new DeviceMesh(rows.map((row) => numbers(row.kind === "list" ? row.items : [row])));
  return { kind: "mesh", mesh };
}

const mostAxes = 1024;

function split(call: FusionCall, isInner: boolean): FusionValue {
  const tensor = tensorIn(call, "self");
  if (tensor.nDims >= mostAxes)
    refuseCall(call, "a tensor is split into too many axes", `${mostAxes} axes`, "split it less often");
  tensor.split(fusionNumber(call, "axis"), fusionNumber(call, "factor"), { inner: isInner });
  return none;
}

/** A row that makes nothing. */
export function effect(parameters: readonly string[], run: (call: FusionCall) => void): FusionOpRow {
  return madeBy(parameters, (call) => {
    run(call);
    return none;
  });
}

/** Methods of tensors; `self` is the tensor. */
const methods: Readonly<Record<string, FusionOpRow>> = {
  set_device_mesh: effect(["self", "mesh"], (call) => {
    tensorIn(call, "self").setDeviceMesh(meshIn(call, "mesh"));
  }),
  split: madeBy(["self", "axis", "factor", "inner_split"], (call) => split(call, flagIn(call, "inner_split", true))),
  outer_split: { parameters: ["self", "axis", "factor"], make: (call) => split(call, false) },
  inner_split: { parameters: ["self", "axis", "factor"], make: (call) => split(call, true) },
  merge: effect(["self", "axis", "inner_axis"], (call) => {
    tensorIn(call, "self").merge(fusionNumber(call, "axis"));
  }),
  axis: madeBy(["self", "axis"], (call) => ({
    kind: "axis",
    axis: tensorIn(call, "self").axis(fusionNumber(call, "axis")),
  })),
  get_loop_domain: { parameters: ["self"], make: loopDomain },
  set_allocation_domain: effect(["self", "allocation_domain", "contiguity"], (call) => {
    const axes = fusionList(call, "allocation_domain").map((each) =>
      each.kind === "axis"
        ? each.axis
        : invalidCall(call, "an allocation domain has axes", kindText(each), "axes of the tensor"),
    );
    tensorIn(call, "self").setAllocationDomain(axes);
  }),
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
  split: madeBy(["self", "axis", "factor", "inner_split"], (call) => split(call, flagIn(call, "inner_split", true))),
  parallelize: effect(["self", "axis", "parallel_type"], (call) => {
    tensorIn(call, "self").axis(fusionNumber(call, "axis")).parallelize(parallelTypeIn(call));
  }),
  set_allocation_as_loop: effect(["self"], (call) => {
    const tensor = tensorIn(call, "self");
    tensor.setAllocationDomain(Array.from({ length: tensor.nDims }, (_, axis) => axis));
  }),
};

/** Of an axis; `self` is the axis. */
const parallelize: FusionOpRow = {
  parameters: ["self", "parallel_type"],
  make: (call) => {
    const self = argument(call, "self");
    if (self.kind === "axis") self.axis.parallelize(parallelTypeIn(call));
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
