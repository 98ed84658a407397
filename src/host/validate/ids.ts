/**
 * The rules that come first. Ids are the positions in their tables. Every id, operand and axis that a statement names
 * exists. An input or output is listed once. An ExprId names one Communication, P2PCommunication or EndCoalescing,
 * which may be posted in several places. A statement that breaks one of these rules can be neither checked further nor
 * printed.
 */
import type { Diagnostic } from "../../diagnostics/diagnostic.ts";
import { type IterDomain, type Tensor, type TensorId, withoutReductions } from "../../ir/domain.ts";
import type { Op } from "../../ir/ops/op.ts";
import { rowOf } from "../../ir/ops/rows.ts";
import type { ExprId, HostProgram, Statement } from "../nodes.ts";
import { statementAccess, isOp, pathOf } from "../traverse.ts";

/** The findings about the ids of a program; empty if every id is valid. */
export function checkIds(program: HostProgram, statements: readonly Statement[]): readonly Diagnostic[] {
  const { tensors, streams, units, inputs, outputs } = program;
  return [
    ...tableFindings("tensor", tensors),
    ...tableFindings("stream", streams),
    ...tableFindings("unit", units),
    ...listFindings("input", inputs, tensors),
    ...listFindings("output", outputs, tensors),
    ...statementFindings(program, statements),
  ];
}

function finding(place: string, message: string, found: string, expected: string, help: string): Diagnostic {
  return { code: "host-program-invalid", message, place: { kind: "statement", text: place }, found, expected, help };
}

function missing(place: string, name: string, expected: string): Diagnostic {
  return finding(place, `${name} does not exist`, name, expected, "use an id from the program's tables");
}

function tableFindings(name: string, rows: readonly { readonly id: number }[]): readonly Diagnostic[] {
  const position = rows.findIndex(({ id }, i) => id !== i);
  const row = rows[position];
  if (row === undefined) return [];
  return [
    finding(
      "%HostIrContainer",
      `the ids of the ${name} table are not its positions`,
      `id ${row.id} at position ${position}`,
      `id ${position}`,
      `number the ${name}s from 0 in the order of the table`,
    ),
  ];
}

function listFindings(role: string, ids: readonly TensorId[], tensors: readonly Tensor[]): readonly Diagnostic[] {
  return ids.flatMap((id, position) => {
    if (tensors[id] === undefined) {
      return [missing(`${role} ${position}`, `T${id}`, `one of ${tensors.length} tensors`)];
    }
    if (ids.indexOf(id) === position) return [];
    return [
      finding(
        "%HostIrContainer",
        `T${id} is an ${role} twice`,
        `${role}s ${ids.indexOf(id)} and ${position}`,
        `each ${role} once`,
        "remove one of the two, or copy the tensor with a Set",
      ),
    ];
  });
}

/** The state of a check, statement by statement. */
interface Check {
  readonly program: HostProgram;
  readonly findings: Diagnostic[];
  /** The posts so far, by number. */
  readonly posts: Map<ExprId, Post>;
}

function placeIn({ program: { body } }: Check, statement: Statement): string {
  return `${statement.kind} at ${pathOf(body, statement) ?? "body"}`;
}

function statementFindings(program: HostProgram, statements: readonly Statement[]): readonly Diagnostic[] {
  const check: Check = { program, findings: [], posts: new Map() };
  for (const statement of statements) {
    checkRows(check, statement);
    if (isOp(statement)) checkOperandCount(check, statement);
    checkAxis(check, statement);
    for (const post of postsOf(statement)) checkNumber(check, statement, post);
  }
  for (const statement of statements) checkWait(check, statement);
  return check.findings;
}

/** Every id is a row of its table. */
function checkRows(check: Check, statement: Statement): void {
  const { tensors, streams, units } = check.program;
  const { reads, writes } = statementAccess(statement);
  for (const id of reads) requireRow(check, statement, tensors, id, `T`, "tensors");
  for (const id of writes) requireRow(check, statement, tensors, id, `T`, "tensors");
  switch (statement.kind) {
    case "GetCurrentStream":
    case "SetCurrentStream":
    case "Synchronize":
      requireRow(check, statement, streams, statement.stream, "Stream ", "streams");
      break;
    case "PostOnStream":
      requireRow(check, statement, units, statement.unit, "HostUnit", "host units");
      break;
    default:
  }
}

function requireRow(
  check: Check,
  statement: Statement,
  rows: readonly unknown[],
  id: number,
  prefix: string,
  plural: string,
): void {
  if (rows[id] !== undefined) return;
  check.findings.push(missing(placeIn(check, statement), `${prefix}${id}`, `one of ${rows.length} ${plural}`));
}

function checkOperandCount(check: Check, op: Op): void {
  const [least, most] = rowOf(op).operands;
  const count = op.inputs.length;
  if (count >= least && count <= most) return;
  check.findings.push(
    finding(
      placeIn(check, op),
      "an op has the wrong number of operands",
      `${count} operands`,
      least === most ? String(least) : `${least} or ${most}`,
      "give it its operands",
    ),
  );
}

/** The axis of a slice exists. `HirAliasSelect` counts the whole logical domain, `Select` leaves reduced axes out. */
function checkAxis(check: Check, statement: Statement): void {
  const { tensors } = check.program;
  if (statement.kind === "HirAliasSelect") {
    const axes = tensors[statement.input]?.domain.logical;
    requireAxis(check, statement, statement.axis, axes, "axes in its logical domain, reduced ones included");
  } else if (statement.kind === "Select") {
    const [input = -1] = statement.inputs;
    const logical = tensors[input]?.domain.logical;
    requireAxis(check, statement, statement.axis, logical && withoutReductions(logical), "axes");
  }
}

function requireAxis(
  check: Check,
  statement: Statement,
  axis: number,
  axes: readonly IterDomain[] | undefined,
  what: string,
): void {
  // A missing tensor has already been reported.
  if (axes === undefined || (Number.isSafeInteger(axis) && axis >= 0 && axis < axes.length)) return;
  check.findings.push(
    finding(
      placeIn(check, statement),
      "an axis is outside the tensor",
      `axis ${axis} of a tensor with ${axes.length} ${what}`,
      axes.length === 0 ? "a tensor with an axis" : `an axis from 0 to ${axes.length - 1}`,
      `count the ${what} from 0`,
    ),
  );
}

type Post = Extract<Statement, { readonly id: ExprId }>;

const none: readonly never[] = [];

function postsOf(statement: Statement): readonly Post[] {
  switch (statement.kind) {
    case "Communication":
    case "P2PCommunication":
    case "CollectivePermute":
    case "EndCoalescing":
      return [statement];
    case "ShareMemHandles":
      return statement.communications;
    default:
      return none;
  }
}

/** Checks that the number of a post is below exprCount and names only this communication. */
function checkNumber(check: Check, statement: Statement, post: Post): void {
  const { program, findings, posts } = check;
  if (post.id >= program.exprCount) {
    const expected = `a number below exprCount, ${program.exprCount}`;
    findings.push(missing(placeIn(check, statement), `expression ${post.id}`, expected));
  }
  const other = posts.get(post.id);
  if (other === undefined) posts.set(post.id, post);
  if (other === undefined || other === post || JSON.stringify(other) === JSON.stringify(post)) return;
  findings.push(
    finding(
      placeIn(check, statement),
      `number ${post.id} names two different communications`,
      `${other.kind} ${post.id} and ${post.kind} ${post.id}`,
      "one number per communication",
      "give each Communication, P2PCommunication and EndCoalescing a unique number",
    ),
  );
}

function checkWait(check: Check, statement: Statement): void {
  if (statement.kind !== "Wait" || check.posts.has(statement.target)) return;
  check.findings.push(
    finding(
      placeIn(check, statement),
      "a Wait names no communication",
      `Wait Communication ${statement.target}`,
      "the number of a Communication, P2PCommunication or EndCoalescing of this program",
      "wait for a communication that the program posts",
    ),
  );
}

/** A fault of a statement, before it has a code and a place. */
export type Fault = Omit<Diagnostic, "code" | "place"> & Required<Pick<Diagnostic, "found" | "expected" | "help">>;

/** Null where there is none. */
export type Faults = Fault | null | readonly (Fault | null)[];

export type Report = (statement: Statement, fault: Fault) => void;
