/**
 * The first rules: ids are dense, every id, operand and axis that a statement names exists, inputs and outputs stand once, and
 * an ExprId names one Communication, P2PCommunication or EndCoalescing (which may stand in several places).
 */
import type { Diagnostic } from "../../diagnostics/diagnostic.ts";
import { type IterDomain, type Tensor, type TensorId, withoutReductions } from "../../ir/domain.ts";
import { rowOf } from "../../ir/ops/rows.ts";
import type { ExprId, HostProgram, Statement, StreamId } from "../nodes.ts";
import { isOp } from "../statement-kinds.ts";
import { pathOf } from "../statement-paths.ts";
import { accessesOf, walk } from "../traverse.ts";

/** What is wrong with the ids of a program; empty where all of them lead somewhere. */
export function checkIds(program: HostProgram): readonly Diagnostic[] {
  return [
    ...tableFindings(program),
    ...listFindings("input", program.inputs, program),
    ...listFindings("output", program.outputs, program),
    ...statementFindings(program),
  ];
}

function finding(message: string, place: string, found: string, expected: string, help: string): Diagnostic {
  return { code: "host-program-invalid", message, place: { kind: "statement", text: place }, found, expected, help };
}

function tableFindings({ tensors, streams, units }: HostProgram): readonly Diagnostic[] {
  const tables = { tensor: tensors, stream: streams, unit: units };
  return Object.entries(tables).flatMap(([name, rows]) => {
    const position = rows.findIndex(({ id }, i) => id !== i);
    const row = rows[position];
    if (row === undefined) return [];
    return [
      finding(
        `the ids of the ${name} table are not its positions`,
        "%HostIrContainer",
        `id ${row.id} at position ${position}`,
        `id ${position}`,
        `number the ${name}s from 0 in the order of the table`,
      ),
    ];
  });
}

function listFindings(role: string, ids: readonly TensorId[], { tensors }: HostProgram): readonly Diagnostic[] {
  return ids.flatMap((id, position) => {
    if (tensors[id] === undefined) {
      return [missing(`T${id}`, `${role} ${position}`, `one of ${tensors.length} tensors`)];
    }
    if (ids.indexOf(id) === position) return [];
    return [
      finding(
        `T${id} is an ${role} twice`,
        "%HostIrContainer",
        `${role}s ${ids.indexOf(id)} and ${position}`,
        `each ${role} once`,
        "remove one of the two, or copy the tensor with a Set",
      ),
    ];
  });
}

function missing(name: string, place: string, expected: string): Diagnostic {
  return finding(`${name} does not exist`, place, name, expected, "name what the program's tables hold");
}

function statementFindings(program: HostProgram): readonly Diagnostic[] {
  const findings: Diagnostic[] = [];
  const posts = new Map<ExprId, Statement>();
  const awaited: { readonly target: ExprId; readonly place: () => string }[] = [];
  for (const statement of walk(program.body)) {
    const place = (): string => `${statement.kind} at ${pathOf(program.body, statement) ?? "body"}`;
    const { reads, writes } = accessesOf(statement);
    const requireTensor = (id: TensorId): void => {
      if (program.tensors[id] !== undefined) return;
      findings.push(missing(`T${id}`, place(), `one of ${program.tensors.length} tensors`));
    };
    reads.forEach(requireTensor);
    writes.forEach(requireTensor);
    for (const id of streamsOf(statement)) {
      if (program.streams[id] === undefined) {
        findings.push(missing(`Stream ${id}`, place(), `one of ${program.streams.length} streams`));
      }
    }
    if (statement.kind === "PostOnStream" && program.units[statement.unit] === undefined) {
      findings.push(missing(`HostUnit${statement.unit}`, place(), `one of ${program.units.length} host units`));
    }
    findings.push(...shapeFindings(statement, program, place));
    if (statement.kind === "Wait") awaited.push({ target: statement.target, place });
    for (const post of postsOf(statement)) {
      const other = posts.get(post.id);
      posts.set(post.id, other ?? post);
      if (post.id >= program.exprCount) {
        findings.push(missing(`expression ${post.id}`, place(), `a number below exprCount, ${program.exprCount}`));
      }
      if (other === undefined || other === post || JSON.stringify(other) === JSON.stringify(post)) continue;
      findings.push(
        finding(
          `number ${post.id} names two different communications`,
          place(),
          `${other.kind} ${post.id} and ${post.kind} ${post.id}`,
          "one number per communication",
          "give each Communication, P2PCommunication and EndCoalescing a number of its own",
        ),
      );
    }
  }
  for (const { target, place } of awaited) {
    if (posts.has(target)) continue;
    findings.push(
      finding(
        "a Wait names no communication",
        place(),
        `Wait Communication ${target}`,
        "the number of a Communication, P2PCommunication or EndCoalescing of this program",
        "wait for what the program posts",
      ),
    );
  }
  return findings;
}

/** Operands and axis numbers without which a statement cannot even be printed. */
function shapeFindings(statement: Statement, { tensors }: HostProgram, place: () => string): readonly Diagnostic[] {
  if (isOp(statement)) {
    const [least, most] = rowOf(statement).operands;
    const count = statement.inputs.length;
    if (count < least || count > most) {
      const expected = least === most ? String(least) : `${least} or ${most}`;
      return [
        finding(
          "an op has the wrong number of operands",
          place(),
          `${count} operands`,
          expected,
          "give it its operands",
        ),
      ];
    }
  }
  const counted = countedAxes(statement, tensors);
  if (counted === null || (Number.isSafeInteger(counted.axis) && counted.axis >= 0 && counted.axis < counted.rank)) {
    return [];
  }
  return [
    finding(
      "an axis lies outside the tensor",
      place(),
      `axis ${counted.axis} of a tensor with ${counted.rank} ${counted.what}`,
      counted.rank === 0 ? "a tensor with an axis" : `an axis from 0 to ${counted.rank - 1}`,
      `count the ${counted.what} from 0`,
    ),
  ];
}

/** The axis number of a statement that prints one, and what it counts. */
function countedAxes(
  statement: Statement,
  tensors: readonly Tensor[],
): { readonly axis: number; readonly rank: number; readonly what: string } | null {
  const logicalOf = (id: TensorId | undefined): readonly IterDomain[] | undefined =>
    id === undefined ? undefined : tensors[id]?.domain.logical;
  if (statement.kind === "HirAliasSelect") {
    const logical = logicalOf(statement.input);
    const what = "axes in its logical domain, reduced ones included";
    return logical === undefined ? null : { axis: statement.axis, rank: logical.length, what };
  }
  if (statement.kind === "Select") {
    const logical = logicalOf(statement.inputs[0]);
    if (logical === undefined) return null;
    return { axis: statement.axis, rank: withoutReductions(logical).length, what: "axes" };
  }
  return null;
}

type Post = Extract<Statement, { readonly id: ExprId }>;

function postsOf(statement: Statement): readonly Post[] {
  switch (statement.kind) {
    case "Communication":
    case "P2PCommunication":
    case "EndCoalescing":
      return [statement];
    case "ShareMemHandles":
      return statement.communications;
    default:
      return none;
  }
}

/** Most statements post nothing and name no stream. */
const none: readonly never[] = [];

function streamsOf(statement: Statement): readonly StreamId[] {
  switch (statement.kind) {
    case "GetCurrentStream":
    case "SetCurrentStream":
    case "Synchronize":
      return [statement.stream];
    default:
      return none;
  }
}
