/** Every rule of validateHostProgram: programs that break one of them, and the finding. */
import { describe, expect, it } from "vitest";
import {
  type Diagnostic,
  DeviceMesh,
  HostProgramBuilder,
  type HostProgram,
  type Statement,
} from "@braid-compiler/braid";
import { validateHostProgram } from "@braid-compiler/braid/internals";
import { constant, named } from "../../src/ir/scalar/scalar.ts";
import type { Communication, ExprId, StreamId, UnitId } from "../../src/host/nodes.ts";
import type { IterDomain, Tensor, TensorId } from "../../src/ir/domain.ts";
import { makeId } from "../../src/support/invariant.ts";

const mesh = DeviceMesh.range(2);
const tensor = (id: number): TensorId => makeId<TensorId>(id);
const expr = (id: number): ExprId => makeId<ExprId>(id);

/**
 * T0 [2, 4] sharded and T1 [2, 4] whole, both on a mesh and bound; T2 to T4 [4] for slices; one stream; a unit [4] ->
 * [4].
 */
function valid(): HostProgram {
  const h = new HostProgramBuilder();
  const x = h.input([2, 4], { mesh, parallel: ["DIDx"] });
  const y = h.tensor([2, 4], { mesh });
  h.output(y);
  for (let i = 0; i < 3; i++) h.tensor([4]);
  h.setCurrentStream(h.stream());
  h.wait(h.communication("Allgather", { input: x, output: y }));
  return h.build();
}

/** A program with this body; `changes` replace tables. */
function withBody(body: readonly Statement[], changes: Partial<HostProgram> = {}): HostProgram {
  return { ...valid(), exprCount: 8, body, ...changes };
}

function codesAndMessages(program: HostProgram): readonly string[] {
  return validateHostProgram(program).map(({ code, message }) => {
    expect(code).toBe("host-program-invalid");
    return message;
  });
}

function theFinding(program: HostProgram): Diagnostic {
  const findings = validateHostProgram(program);
  expect(findings.map(({ message }) => message)).toHaveLength(1);
  const [finding] = findings;
  if (finding === undefined) throw new Error("no finding");
  for (const part of [finding.place, finding.found, finding.expected, finding.help]) expect(part).toBeDefined();
  return finding;
}

function changed(program: HostProgram, id: number, change: Partial<Tensor>): HostProgram {
  return { ...program, tensors: program.tensors.map((each) => (each.id === id ? { ...each, ...change } : each)) };
}

const set = (input: number, output: number): Statement => ({
  kind: "Set",
  inputs: [tensor(input)],
  output: tensor(output),
});
const select = (input: number, output: number, axis = 0): Statement => ({
  kind: "HirAliasSelect",
  input: tensor(input),
  output: tensor(output),
  axis,
  index: constant(0),
});
const allocate = (id: number): Statement => ({
  kind: "Allocate",
  tensor: tensor(id),
  memory: "global",
  size: constant(4),
  zeroInit: false,
  fresh: false,
});
const deallocate = (id: number): Statement => ({ kind: "Deallocate", tensor: tensor(id) });
const gather: Communication = {
  kind: "Communication",
  id: expr(0),
  type: "Allgather",
  team: [0, 1],
  root: null,
  reduceOp: null,
  input: tensor(0),
  output: tensor(1),
  backend: "nccl",
};
const send = (id: number, backend: "nccl" | "cuda" = "nccl"): Extract<Statement, { kind: "P2PCommunication" }> => ({
  kind: "P2PCommunication",
  id: expr(id),
  type: "send",
  buffer: tensor(0),
  peer: constant(1),
  backend,
});
const wait = (id: number): Statement => ({ kind: "Wait", target: expr(id) });
const start: Statement = { kind: "StartCoalescing" };
const end = (id: number): Statement => ({ kind: "EndCoalescing", id: expr(id) });
const loop = (...body: Statement[]): Statement => ({
  kind: "ForLoop",
  iterDomain: null,
  index: { kind: "symbol", name: "i9" },
  start: constant(0),
  stop: constant(2),
  step: constant(1),
  body,
});
const branch = (then: Statement[], otherwise: Statement[] = []): Statement => ({
  kind: "IfThenElse",
  predicate: named("rank"),
  then,
  else: otherwise,
});

it("finds nothing wrong with a valid program", () => {
  expect(validateHostProgram(valid())).toEqual([]);
});

describe("ids", () => {
  const cases: readonly (readonly [string, HostProgram, RegExp])[] = [
    ["a tensor table out of order", { ...valid(), tensors: valid().tensors.toReversed() }, /ids of the tensor table/u],
    [
      "a stream table out of order",
      { ...valid(), streams: [{ id: makeId<StreamId>(1), index: null }] },
      /stream table/u,
    ],
    ["an input that does not exist", { ...valid(), inputs: [tensor(9)] }, /T9 does not exist/u],
    ["an output twice", { ...valid(), outputs: [tensor(1), tensor(1)] }, /T1 is an output twice/u],
    ["a tensor that does not exist", withBody([set(0, 9)]), /T9 does not exist/u],
    [
      "a stream that does not exist",
      withBody([{ kind: "Synchronize", stream: makeId<StreamId>(3) }]),
      /Stream 3 does not exist/u,
    ],
    [
      "a unit that does not exist",
      withBody([{ kind: "PostOnStream", unit: makeId<UnitId>(2), inputs: [], outputs: [] }]),
      /HostUnit2 does not exist/u,
    ],
    ["a number beyond exprCount", withBody([end(8)]), /expression 8 does not exist/u],
    ["one number for two communications", withBody([gather, send(0)]), /number 0 names two/u],
    ["a Wait for nothing", withBody([gather, wait(1)]), /Wait names no communication/u],
    ["too few operands", withBody([{ kind: "Matmul", inputs: [tensor(0)], output: tensor(1) }]), /number of operands/u],
    ["a slice along an axis that does not exist", withBody([select(0, 2, 2)]), /axis is outside/u],
    [
      "a select along an axis that does not exist",
      withBody([{ kind: "Select", inputs: [tensor(0)], output: tensor(2), axis: -1, index: constant(0) }]),
      /axis is outside/u,
    ],
  ];

  it.each(cases)("reports %s", (_, program, message) => {
    expect(codesAndMessages(program)).toEqual(expect.arrayContaining([expect.stringMatching(message)]));
  });

  it("names the place by its path, in loops and branches too", () => {
    const program = withBody([loop(branch([], [set(0, 9)]))]);
    expect(theFinding(program)).toMatchObject({ place: { text: "Set at body[0].body[0].else[0]" } });
  });

  it("lets one communication stand in several places", () => {
    const post = { ...gather };
    expect(validateHostProgram(withBody([gather, wait(0), post, wait(0)]))).toEqual([]);
  });
});

describe("statements", () => {
  const global = valid();
  const badAxes = (change: (axis: IterDomain) => IterDomain): HostProgram => {
    const own = global.tensors[2]?.domain.logical.map(change) ?? [];
    const domain = { logical: own, loop: own, transforms: [], allocation: null };
    return changed(withBody([allocate(3), set(3, 2)]), 2, { domain });
  };
  const cases: readonly (readonly [string, HostProgram, RegExp])[] = [
    ["memory that differs", changed(withBody([allocate(2)]), 2, { memory: "symmetric" }), /name different memory/u],
    [
      "an op's output of another dtype",
      changed(withBody([set(0, 1)]), 1, { dtype: "double" }),
      /not have the op's dtype/u,
    ],
    ["an op's output of another rank", withBody([set(0, 2)]), /does not have the op's axes/u],
    [
      "an op's output that lacks the reduced axis",
      withBody([{ kind: "Reduction", op: "sum", axes: [0], inputs: [tensor(0)], output: tensor(2) }]),
      /does not have the op's axes/u,
    ],
    [
      "an op's output of another extent",
      badAxes((axis) => ({ ...axis, extent: constant(5) })),
      /does not have the op's axes/u,
    ],
    ["an op's output with a reduced axis", badAxes((axis) => ({ ...axis, iterType: "reduction" })), /the op's axes/u],
    [
      "operands of different dtypes",
      changed(
        withBody([
          allocate(2),
          allocate(3),
          { kind: "Binary", op: "add", inputs: [tensor(2), tensor(3)], output: tensor(4) },
        ]),
        3,
        { dtype: "int" },
      ),
      /operands have different dtypes/u,
    ],
    [
      "reduced axes that do not exist",
      withBody([{ kind: "Reduction", op: "sum", axes: [2], inputs: [tensor(0)], output: tensor(2) }]),
      /axis 2 does not exist/u,
    ],
    [
      "a slice without all ranges",
      withBody([
        { kind: "Slice", ranges: [{ start: constant(0), stop: constant(1) }], inputs: [tensor(0)], output: tensor(1) },
      ]),
      /a start and a stop for every axis/u,
    ],
    [
      "a permute that forgets an axis",
      withBody([{ kind: "Permute", order: [0], inputs: [tensor(0)], output: tensor(1) }]),
      /every axis/u,
    ],
    ["a slice of another rank", withBody([select(0, 1)]), /the input's axes but one/u],
    ["a slice of another dtype", changed(withBody([select(0, 2)]), 2, { dtype: "int" }), /different dtypes/u],
    ["a step of 0", withBody([{ ...loop(), step: constant(0) } as Statement]), /step of a loop/u],
    ["a step that is no constant", withBody([{ ...loop(), step: named("rank") } as Statement]), /step of a loop/u],
    ["handles of nothing", withBody([{ kind: "ShareMemHandles", communications: [] }]), /takes P2PCommunications/u],
    ["handles of nccl", withBody([{ kind: "ShareMemHandles", communications: [send(1)] }]), /takes P2PCommunications/u],
    ["a peer that is no device", withBody([{ ...send(1), peer: constant(-1) }]), /peer is not a device/u],
    ["an empty team", withBody([{ ...gather, team: [] }]), /team is empty/u],
    ["a device twice in a team", withBody([{ ...gather, team: [0, 1, 0] }]), /device 0 is listed twice/u],
    ["a team of something else", withBody([{ ...gather, team: [0, 1.5] }]), /not a device/u],
    [
      "a SendRecv of three",
      withBody([{ ...gather, type: "SendRecv", root: constant(0), team: [0, 1, 2] }]),
      /more than two ranks/u,
    ],
    ["a root without need", withBody([{ ...gather, root: constant(0) }]), /Allgather has no root/u],
    ["a missing root", withBody([{ ...gather, type: "Gather" }]), /Gather needs a root/u],
    [
      "a root outside the team",
      withBody([{ ...gather, type: "Gather", root: constant(2) }]),
      /not a position in the team/u,
    ],
    ["a reduction op without need", withBody([{ ...gather, reduceOp: "sum" }]), /does not reduce/u],
    ["a missing reduction op", withBody([{ ...gather, type: "Allreduce" }]), /needs a reduction op/u],
    ["a communication without mesh", changed(withBody([gather]), 1, { mesh: null }), /T1 .* has no mesh/u],
    ["a communication that converts", changed(withBody([gather]), 1, { dtype: "half" }), /does not convert/u],
  ];

  it.each(cases)("reports %s", (_, program, message) => {
    expect(theFinding(program).message).toMatch(message);
  });

  it("names the statement as it prints, on one line", () => {
    expect(theFinding(withBody([select(0, 1)]))).toMatchObject({
      place: {
        kind: "statement",
        text:
          "T1_g_float[iS2{2}, iS3{4}] (DeviceMesh{0 1}) " +
          "= HirAliasSelect( T0_g_float[ideviceIdx.x0{2}, iS1{4}] (DeviceMesh{0 1}), axis = ideviceIdx.x0{2}, index = 0 ) at body[0]",
      },
    });
  });

  it("reports all that is wrong, in program order", () => {
    const program = withBody([{ ...gather, team: [] }, loop({ ...send(1), peer: constant(-1) }), select(0, 1)]);
    expect(codesAndMessages(program)).toEqual([
      "a team is empty",
      "the peer is not a device",
      "the output of a HirAliasSelect does not have the input's axes but one",
    ]);
  });
});

describe("order", () => {
  it.each<[string, Statement[]]>([
    ["reads what nothing binds", [set(2, 3)]],
    ["slices what nothing binds", [select(2, 3)].map((each) => ({ ...each, output: tensor(3) }) as Statement)],
    ["reads before the write", [set(2, 3), allocate(2)]],
    ["reads what was freed", [allocate(2), deallocate(2), set(2, 3)]],
    ["frees what is not bound", [deallocate(2)]],
    ["frees twice", [allocate(2), deallocate(2), deallocate(2)]],
    ["reads what the same iteration binds later", [loop(set(2, 3), allocate(2))]],
    ["reads what the other branch binds", [branch([allocate(2)], [set(2, 3)])]],
  ])("reports a program that %s", (_, body) => {
    expect(codesAndMessages(withBody(body)).join()).toMatch(/T2 is (?:used before it is bound|freed and not bound)/u);
  });

  it.each<[string, Statement[]]>([
    ["reads an input and an output", [set(0, 1), set(1, 0)]],
    ["reads what an op computed", [allocate(2), set(2, 3), set(3, 4)]],
    ["reads a slice", [select(0, 2), set(2, 3)]],
    ["reads what a branch may have bound", [branch([allocate(2)]), set(2, 3)]],
    ["reads what either branch bound", [branch([allocate(2)], [allocate(2)]), set(2, 3)]],
    ["reads, in a branch, what an earlier iteration bound", [loop(branch([set(2, 3)]), allocate(2))]],
    ["reads, after a loop, what it bound", [loop(allocate(2)), set(2, 3)]],
    ["frees in a branch", [allocate(2), branch([deallocate(2)]), set(2, 3)]],
  ])("accepts a program that %s", (_, body) => {
    expect(codesAndMessages(withBody(body))).toEqual([]);
  });

  it("leaves a tensor on a mesh that nothing binds to record", () => {
    const program = changed(withBody([set(2, 3)]), 2, { mesh: DeviceMesh.range(1) });
    expect(codesAndMessages(program)).toEqual([]);
    expect(codesAndMessages({ ...program, body: [set(2, 3), allocate(2)] })).toHaveLength(1);
  });

  it.each<[string, Statement[], RegExp]>([
    ["a group inside another", [start, start, end(1)], /opened inside another/u],
    ["a group closed without being open", [end(1)], /closed without being open/u],
    ["a group that is not closed", [start, send(1)], /not closed in its scope/u],
    ["a group closed in a loop", [start, loop(end(1))], /EndCoalescing is inside a coalesced group/u],
    ["a computation in a group", [start, set(0, 1), end(1)], /Set is inside a coalesced group/u],
    ["a collective in a group", [start, gather, end(1)], /Communication is inside a coalesced group/u],
    ["a member of the cuda backend", [start, send(1, "cuda"), end(2)], /only the nccl backend coalesces/u],
    ["a Wait for a member of a group", [start, send(1), end(2), wait(1)], /inside a coalesced group/u],
  ])("reports %s", (_, body, message) => {
    expect(codesAndMessages(withBody(body))).toEqual(expect.arrayContaining([expect.stringMatching(message)]));
  });

  it("accepts groups one after another, with slices, loops and branches inside", () => {
    const inside = [select(0, 2), loop(send(1)), branch([send(2)], [send(3)])];
    expect(codesAndMessages(withBody([start, ...inside, end(4), wait(4), loop(start, send(5), end(6))]))).toEqual([]);
  });
});

describe("host units", () => {
  const build = (): { readonly program: HostProgram; readonly post: Extract<Statement, { kind: "PostOnStream" }> } => {
    const unit = new HostProgramBuilder();
    const x = unit.input([4]);
    const y = unit.tensor([4]);
    unit.output(y);
    const set = { kind: "Set", inputs: [x.id], output: y.id } as const;
    const fusion = { ...unit.build(), kind: "Fusion", ops: [set] } as const;
    const program = valid();
    return {
      program: { ...program, units: [{ id: makeId<UnitId>(0), fusion }] },
      post: { kind: "PostOnStream", unit: makeId<UnitId>(0), inputs: [x.id], outputs: [y.id] },
    };
  };

  it.each<[string, Partial<Extract<Statement, { kind: "PostOnStream" }>>, RegExp]>([
    ["too few inputs", { inputs: [] }, /different numbers of inputs/u],
    ["too many outputs", { outputs: [tensor(3), tensor(4)] }, /different numbers of outputs/u],
    ["an input of another rank", { inputs: [tensor(0)] }, /differ in input 0/u],
  ])("reports %s", (_, change, message) => {
    const { program, post } = build();
    const body: Statement[] = [allocate(2), { ...post, inputs: [tensor(2)], outputs: [tensor(3)], ...change }];
    expect(theFinding({ ...program, body }).message).toMatch(message);
  });

  it("accepts what matches, and reports another dtype", () => {
    const { program, post } = build();
    const body: Statement[] = [allocate(2), { ...post, inputs: [tensor(2)], outputs: [tensor(3)] }];
    expect(codesAndMessages({ ...program, body })).toEqual([]);
    expect(theFinding(changed({ ...program, body }, 3, { dtype: "int" })).message).toMatch(/differ in output 0/u);
  });
});
