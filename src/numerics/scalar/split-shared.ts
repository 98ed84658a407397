/**
 * Splits an expression so that nothing is computed twice: each node that is used several times becomes an expression
 * of its own, whose value is numbered. Calls of library functions become their definitions, which use nodes several
 * times; as a tree, exp would be four times as long. A shared node is computed even if only the branch of a choice
 * that is not taken uses it, so it must not trap.
 */
import { at, unreachable } from "../../support/invariant.ts";
import { definitionOf, type Expression, operand } from "./expression.ts";

/** Appends an expression over values that are numbered; returns the number of its value. */
export type Append = (expression: Expression, ...operands: readonly number[]) => number;

/** `operands[i]` is the number of operand i. Returns the number of the expression's value. */
export function splitShared(expression: Expression, operands: readonly number[], append: Append): number {
  const whole = withDefinitions(expression, new Map());
  const shared = sharedNodes(whole);
  const known = new Map<Expression, number>();
  const valueOf = (node: Expression): number => {
    const before = known.get(node);
    if (before !== undefined) return before;
    const values: number[] = [];
    const read = ({ type }: Expression, value: number): Expression => {
      const position = values.indexOf(value);
      return operand(type, position >= 0 ? position : values.push(value) - 1);
    };
    const rewrite = (inner: Expression): Expression => {
      if (inner.kind === "operand") return read(inner, at(operands, inner.index));
      return shared.has(inner) && inner !== node ? read(inner, valueOf(inner)) : mapSubexpressions(inner, rewrite);
    };
    const value = append(rewrite(node), ...values);
    known.set(node, value);
    return value;
  };
  return valueOf(whole);
}

/** Whether `splitShared` would only append the expression. */
export function isWhole(expression: Expression): boolean {
  return !hasDefinition(expression) && sharedNodes(expression).size === 0;
}

function hasDefinition(expression: Expression): boolean {
  if (expression.kind === "call" && definitionOf(expression) !== undefined) return true;
  return subexpressions(expression).some(hasDefinition);
}

/** A node that is used twice stays one node. */
function withDefinitions(expression: Expression, known: Map<Expression, Expression>): Expression {
  const before = known.get(expression);
  if (before !== undefined) return before;
  const inner = mapSubexpressions(expression, (each) => withDefinitions(each, known));
  const result = inner.kind === "call" ? (definitionOf(inner)?.(at(inner.operands, 0)) ?? inner) : inner;
  known.set(expression, result);
  return result;
}

/** The nodes that are used several times; operands and constants cost nothing. */
function sharedNodes(expression: Expression): ReadonlySet<Expression> {
  const seen = new Set<Expression>();
  const shared = new Set<Expression>();
  const visit = (node: Expression): void => {
    if (node.kind === "operand" || node.kind === "constant") return;
    if (seen.has(node)) {
      shared.add(node);
      return;
    }
    seen.add(node);
    subexpressions(node).forEach(visit);
  };
  visit(expression);
  return shared;
}

// The expressions that an expression is made of.

export function subexpressions(expression: Expression): readonly Expression[] {
  switch (expression.kind) {
    case "operand":
    case "constant":
      return [];
    case "apply":
    case "call":
      return expression.operands;
    case "choose":
      return [expression.left, expression.right, expression.then, expression.otherwise];
    case "convert":
    case "round":
    case "bits":
      return [expression.operand];
    default:
      return unreachable(expression);
  }
}

/** The same operation on other operands; `change` keeps types. */
export function mapSubexpressions(expression: Expression, change: (inner: Expression) => Expression): Expression {
  switch (expression.kind) {
    case "operand":
    case "constant":
      return expression;
    case "apply":
    case "call":
      return { ...expression, operands: expression.operands.map(change) };
    case "choose":
      return {
        ...expression,
        left: change(expression.left),
        right: change(expression.right),
        then: change(expression.then),
        otherwise: change(expression.otherwise),
      };
    case "convert":
    case "round":
    case "bits":
      return { ...expression, operand: change(expression.operand) };
    default:
      return unreachable(expression);
  }
}
