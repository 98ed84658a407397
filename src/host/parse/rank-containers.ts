/**
 * Assigns containers of a dump to ranks. nvFuser prints only device 0's container. If every mesh and every team has all
 * devices, all ranks run the same container. Otherwise the text must have one container per rank, in order.
 */
import type { DiagnosticCode } from "../../diagnostics/codes.ts";
import { type DiagnosticDetails, fail } from "../../diagnostics/diagnostic.ts";
import type { DeviceMesh } from "../../ir/device-mesh.ts";
import { at } from "../../support/invariant.ts";
import { mostDevices } from "../program-file.ts";
import type { HostProgram, Statement } from "../nodes.ts";
import { statementAccess, walk } from "../traverse.ts";
import type { ParsedContainer } from "./container.ts";

export interface RankRequest {
  /** The name of the text in diagnostics. */
  readonly file: string;
  /** Null: all devices that the dump names. */
  readonly devices: number | null;
  /** The container that all ranks run, counted from 0. Null: by the rule above. */
  readonly container: number | null;
}

/** The container of each rank. Throws `dump-container` and `device-count`. */
export function rankContainers(
  containers: readonly ParsedContainer[],
  { file, devices, container }: RankRequest,
): readonly ParsedContainer[] {
  const reject = (code: DiagnosticCode, message: string, details: DiagnosticDetails): never =>
    fail(code, message, {
      ...details,
      place: { kind: "file", path: file, line: containers[container ?? 0]?.line ?? 1 },
    });
  const chosen = container === null ? containers : containers.slice(container, container + 1);
  const [first] = chosen;
  if (first === undefined) {
    return reject("dump-container", `the text has no container ${container ?? 0}`, {
      found: `${containers.length} container${containers.length === 1 ? "" : "s"}`,
      expected: `0 to ${containers.length - 1}`,
      help: "count the containers from 0",
    });
  }
  const named = chosen.reduce((count, { program }) => Math.max(count, devicesOf(program)), 1);
  const count = devices ?? named;
  if (count < named) {
    return reject("device-count", `the dump is for ${named} devices`, {
      found: `${count} devices`,
      expected: `at least ${named}, since its meshes name device ${named - 1}`,
      help: `pass ${named} devices, or omit the number`,
    });
  }
  if (count > mostDevices) {
    return reject("device-count", "the dump names more devices than Braid can run", {
      found: `device ${count - 1}`,
      expected: `at most ${mostDevices} devices, 0 to ${mostDevices - 1}`,
      help: "correct the meshes and teams of the dump",
    });
  }
  if (chosen.length > 1) {
    if (chosen.length === count) return chosen;
    return reject("dump-container", `the text has ${chosen.length} containers, and the run has ${count} devices`, {
      found: `containers in lines ${chosen.map(({ line }) => line).join(", ")}`,
      expected: "one container, or one per rank in order",
      help:
        devices !== null && chosen.length >= named
          ? `pass --devices ${chosen.length}, one for each container`
          : inPlaceOf(containers, count),
    });
  }
  const partial = container === null && count > 1 ? partialIn(first.program, count) : null;
  if (partial === null) return Array.from({ length: count }, () => first);
  return reject("dump-container", "the dump has one rank's program, and other ranks run a different one", {
    found: partial,
    expected: `one container per rank, ${count} in all, or meshes and teams of all devices`,
    help:
      named < count && partialIn(first.program, named) === null
        ? `pass --devices ${named}, as many as the dump names`
        : inPlaceOf(containers, count),
  });
}

/** The fix where the text lacks containers: one of its own runs on all ranks only if it names all of them. */
function inPlaceOf(containers: readonly ParsedContainer[], devices: number): string {
  const all = `write the containers of all ${devices} ranks to one file in rank order`;
  const entry = containers.findIndex(({ program }) => runsOnAll(program, devices));
  return entry < 0 ? all : `${all}, or pass --entry ${entry} to run that container on every rank, counted from 0`;
}

/**
 * Whether each rank runs all statements, except those in branches: a branch may be on the rank. A statement does nothing
 * on a rank outside of its mesh or team, and what reads its result then fails.
 */
function runsOnAll({ tensors, body }: HostProgram, devices: number): boolean {
  return unconditional(body).every((statement) => {
    if (statement.kind === "CollectivePermute") return false;
    const { reads, writes } = statementAccess(statement);
    const meshes = [...reads, ...writes].map((id) => at(tensors, id).mesh);
    const teams = meshes.flatMap((mesh) => (mesh === null ? [] : [mesh.devices]));
    if (statement.kind === "Communication") teams.push(statement.team);
    return teams.every((team) => team.length === devices);
  });
}

function unconditional(body: readonly Statement[]): readonly Statement[] {
  return body.flatMap((statement) =>
    statement.kind === "IfThenElse" ? [] : statement.kind === "ForLoop" ? unconditional(statement.body) : [statement],
  );
}

/** One more than the largest device id in meshes and teams. */
function devicesOf({ tensors, body }: HostProgram): number {
  let count = 1;
  const include = (devices: readonly number[]): void => {
    for (const device of devices) count = Math.max(count, device + 1);
  };
  for (const mesh of meshesOf(tensors)) include(mesh.devices);
  for (const statement of walk(body)) if ("team" in statement) include(statement.team);
  return count;
}

/** Why other ranks have a different program, for a diagnostic; null if they have the same. */
function partialIn({ tensors, body }: HostProgram, devices: number): string | null {
  const mesh = [...meshesOf(tensors)].find((own) => own.devices.length < devices);
  if (mesh !== undefined) return `${mesh.toString()} of ${devices} devices`;
  for (const statement of walk(body)) {
    if (statement.kind === "CollectivePermute") return `peers of CollectivePermute ${statement.id}`;
    if (statement.kind !== "Communication" || statement.team.length === devices) continue;
    return `Communication ${statement.id} among (${statement.team.join(" ")}) of ${devices} devices`;
  }
  return meshesOf(tensors).size === 0 ? `no mesh, with ${devices} devices` : null;
}

/** One of each mesh: most tensors share a few. */
function meshesOf(tensors: HostProgram["tensors"]): ReadonlySet<DeviceMesh> {
  const byText = new Map<string, DeviceMesh>();
  for (const { mesh } of tensors) if (mesh !== null) byText.set(mesh.toString(), mesh);
  return new Set(byText.values());
}
