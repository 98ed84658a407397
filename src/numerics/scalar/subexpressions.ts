/** The expressions that an expression is made of. */
import { unreachable } from "../../support/unreachable.ts";
import type { Expression } from "./expression.ts";

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
