/**
 * The guarantees of each stage. `checked` checks the user's Fusion, and its findings address the user. A finding of a
 * later stage is a bug in a pass, or in a hand-built program.
 */
import type { Diagnostic } from "../diagnostics/diagnostic.ts";
import { mergedShard } from "../ir/shards.ts";
import { isChunk, isDID, type Tensor } from "../ir/domain.ts";
import type { FusionData } from "../ir/fusion-data.ts";
import type { HostProgram, Statement } from "../host/nodes.ts";
import { isOp, isTeamCommunication, scopesOf, walk, writesOf } from "../host/traverse.ts";
import { validateHostProgram } from "../host/validate/validate.ts";
import { at } from "../support/invariant.ts";
import { axisText, opPlace } from "./op-text.ts";
import type { Stage, StagePrograms } from "./pass.ts";
import { isResharding } from "./routes/layouts.ts";
import { streamAxis } from "../ir/stream.ts";

type Check<S extends Stage> = (program: StagePrograms[S]) => readonly Diagnostic[];

export const stageChecks: { readonly [S in Stage]: readonly Check<S>[] } = {
  fusion: [],
  checked: [hasOutput, hasAllOrNoMeshes, hasNoShardedMerge],
  segmented: [validateHostProgram, isFlat],
  looped: [validateHostProgram, hasNoStreamAxis, hasNoNestedLoop],
  communicating: [validateHostProgram, hasNoStreamAxis, hasNoNestedLoop, hasNoResharding],
};

function hasOutput(fusion: FusionData): readonly Diagnostic[] {
  if (fusion.outputs.length > 0) return [];
  return [
    {
      code: "no-output",
      message: "the Fusion has no output",
      place: { kind: "call", text: "lower(fusion)" },
      found: `${fusion.inputs.length} inputs, no output`,
      expected: "at least one output",
      help: "call fusion.output(tv) for every result",
    },
  ];
}

function usedTensors(fusion: FusionData): readonly Tensor[] {
  const ids = new Set([...fusion.inputs, ...fusion.outputs]);
  for (const { inputs, output } of fusion.ops) {
    for (const input of inputs) ids.add(input);
    ids.add(output);
  }
  return [...ids].map((id) => at(fusion.tensors, id));
}

function hasAllOrNoMeshes(fusion: FusionData): readonly Diagnostic[] {
  const tensors = usedTensors(fusion);
  const missing = tensors.filter((tensor) => tensor.mesh === null);
  if (missing.length === 0) return [];
  if (missing.length === tensors.length) return shardedWithoutMesh(tensors);
  const names = missing.map((tensor) => `T${tensor.id}`).join(", ");
  return [
    {
      code: "mesh-missing",
      message: "some tensors have a DeviceMesh and others have none",
      place: { kind: "tensor", text: names },
      found: `no mesh on ${names}`,
      expected: "a mesh on every tensor, or on none",
      help: "call setDeviceMesh(mesh) on every input, and without propagation on every result of an op",
    },
  ];
}

/** Without a mesh a DID type has no devices. Types spread, so that one annotation would be reported for many tensors. */
function shardedWithoutMesh(tensors: readonly Tensor[]): readonly Diagnostic[] {
  const users = tensors.filter(({ origin }) => origin?.annotations !== undefined);
  for (const tensor of [...users, ...tensors]) {
    const axis = tensor.domain.loop.find(({ parallelType }) => isDID(parallelType));
    if (axis === undefined) continue;
    return [
      {
        code: "mesh-missing",
        message: `${axis.parallelType} is on T${tensor.id}, which has no DeviceMesh`,
        place: { kind: "tensor", text: axisText(tensor, axis) },
        found: "no mesh on any tensor",
        expected: "a mesh on every tensor where axes are sharded",
        help: "call setDeviceMesh(mesh) on every input, and without propagation on every result of an op",
      },
    ];
  }
  return [];
}

function hasNoShardedMerge(fusion: FusionData): readonly Diagnostic[] {
  return usedTensors(fusion).flatMap((tensor): readonly Diagnostic[] => {
    const axis = mergedShard(tensor);
    if (axis === null) return [];
    return [
      {
        code: "did-on-merged-axis",
        message: `${axis.parallelType} is on an axis made by merge: its shards are not rectangular`,
        place: { kind: "tensor", text: axisText(tensor, axis) },
        found: `${axis.parallelType} on a merged axis`,
        expected: `${axis.parallelType} on a logical axis, or on an axis that split made from one`,
        help: "reshape the tensor so that the merged axes are one logical axis, and split that axis",
      },
    ];
  });
}

function finding(message: string, statement: Statement, found: string, expected: string): Diagnostic {
  return {
    code: "pass-validation",
    message,
    place: isOp(statement) ? opPlace(statement) : { kind: "statement", text: statement.kind },
    found,
    expected,
    help: "run the passes in their order; if they were, this is a bug in Braid",
  };
}

function isFlat(program: HostProgram): readonly Diagnostic[] {
  return program.body
    .filter((statement) => scopesOf(statement).length > 0)
    .map((statement) =>
      finding("a segmented program has a scope", statement, statement.kind, "top-level statements only"),
    );
}

function hasNoStreamAxis(program: HostProgram): readonly Diagnostic[] {
  return streamAxesLeft(program).map(({ statement, text }) =>
    finding("a Stream axis is left", statement, text, "only slices without Stream"),
  );
}

interface StreamAxisLeft {
  readonly statement: Statement;
  /** The axis in its tensor. */
  readonly text: string;
  readonly tensor: Tensor;
}

/** The statements that write a whole tensor with a Stream axis, inside loops too. A chunk prints the axis it is of. */
export function streamAxesLeft(program: HostProgram): readonly StreamAxisLeft[] {
  const left: StreamAxisLeft[] = [];
  for (const statement of walk(program.body)) {
    if (!isOp(statement) && statement.kind !== "PostOnStream" && !isTeamCommunication(statement)) continue;
    for (const id of writesOf(statement)) {
      const tensor = at(program.tensors, id);
      const axis = isChunk(tensor) ? null : streamAxis(tensor);
      if (axis !== null) left.push({ statement, tensor, text: axisText(tensor, axis) });
    }
  }
  return left;
}

function hasNoNestedLoop(program: HostProgram): readonly Diagnostic[] {
  // All loops bind the name `streamIdx`: an inner loop would change the outer one's index.
  return program.body.flatMap((statement) =>
    statement.kind === "ForLoop"
      ? walk(statement.body)
          .filter((inner) => inner.kind === "ForLoop" && inner.index.name === statement.index.name)
          .map((inner) =>
            finding("two nested loops bind the same index", inner, "a loop in a loop", "loops side by side"),
          )
      : [],
  );
}

function hasNoResharding(program: HostProgram): readonly Diagnostic[] {
  const findings: Diagnostic[] = [];
  const check = (statement: Statement): void => {
    if (!isOp(statement) || !isResharding(statement, program.tensors)) return;
    findings.push(finding("an op changes the sharding", statement, statement.kind, "a communication"));
  };
  for (const statement of program.body) {
    if (statement.kind === "ForLoop") statement.body.forEach(check);
    else check(statement);
  }
  return findings;
}
