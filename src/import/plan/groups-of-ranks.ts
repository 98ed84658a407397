/** How the groups of ranks of a model that was exported in parallel lie on a mesh. */
import { fail } from "../../diagnostics/diagnostic.ts";
import { DeviceMesh } from "../../ir/device-mesh.ts";
import { elementCount } from "../../numerics/tensor/storage.ts";
import { siteText } from "../../support/call-site.ts";
import { at } from "../../support/invariant.ts";
import { jsonPlaceText } from "../json.ts";
import { type ManualSizes, sizesAlong } from "../manual/parts.ts";
import type { GroupCollective } from "../torch-export/group-collective.ts";
import { invalidPlan, type ShardingPlan } from "./parse-plan.ts";

/** A mesh, and the dimensions of each group. */
export interface Ranks {
  readonly mesh: DeviceMesh;
  readonly sizes: ManualSizes;
  /** Of the plan, for messages. */
  readonly path: string;
  readonly dimsOf: (collective: GroupCollective) => readonly string[];
}

/**
 * `devices`: the size of the group where neither plan nor file says it. Throws `model-unsupported`, `model-invalid`,
 * `sharding-plan-invalid`.
 */
export function groupsOfRanks(
  collectives: readonly GroupCollective[],
  plan: ShardingPlan | null,
  devices: number,
): Ranks {
  const names = [...new Set(collectives.map(({ group }) => group))];
  const size = collectives.find((each) => each.size !== null)?.size ?? devices;
  if (plan === null && names.length > 1) {
    return atNode(at(collectives, 0), "model-unsupported", {
      message: "the file does not say how its groups of ranks lie",
      found: `the groups ${names.join(", ")}`,
      expected: "a plan with their mesh",
      help: `pass --plan with { "mesh": { "dp": 2, "tp": 4 }, "groups": { "${names[0] ?? ""}": "dp", "${names[1] ?? ""}": "tp" } }`,
    });
  }
  const mesh = DeviceMesh.of(plan?.mesh ?? { ranks: size });
  const sizes: ManualSizes = new Map(mesh.names.map((name, i) => [name, at(mesh.shape, i)]));
  const unknown = Object.keys(plan?.groups ?? {}).find((name) => !names.includes(name));
  if (plan !== null && unknown !== undefined) {
    invalidPlan(plan.path, `groups.${unknown}`, {
      message: `the model has no group ${unknown}`,
      found: unknown,
      expected: names.join(", "),
      help: "remove the line",
    });
  }
  const dimsOf = (collective: GroupCollective): readonly string[] => {
    const { group } = collective;
    const dims =
      plan?.groups[group] ?? (mesh.names.length === 1 ? mesh.names : mesh.names.filter((name) => name === group));
    if (plan !== null && dims.length === 0) {
      invalidPlan(plan.path, "groups", {
        message: `the plan does not say along which dimensions the group ${group} lies`,
        found: `a mesh of ${mesh.names.join(", ")}`,
        expected: `the dimensions of ${names.join(", ")}`,
        help: `add "groups": { "${group}": "${mesh.names.at(-1) ?? ""}" }`,
      });
    }
    const count = elementCount(sizesAlong(sizes, dims));
    if (collective.size !== null && collective.size !== count) {
      atNode(collective, plan === null ? "model-invalid" : "sharding-plan-invalid", {
        message: `the group ${group} has another size than the mesh says`,
        found: `${collective.size} ranks`,
        expected: `${count}, along ${dims.join(", ")}`,
        help: "give the mesh the sizes with which the model was exported",
      });
    }
    return dims;
  };
  return { mesh, sizes, path: plan?.path ?? "--plan", dimsOf };
}

function atNode(
  { node }: GroupCollective,
  code: "model-invalid" | "model-unsupported" | "sharding-plan-invalid",
  fault: { readonly message: string; readonly found: string; readonly expected: string; readonly help: string },
): never {
  return fail({
    code,
    ...fault,
    place: { kind: "file", path: jsonPlaceText(node.json) },
    ...(node.source === null ? {} : { source: siteText(node.source) }),
  });
}
