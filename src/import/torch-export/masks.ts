/**
 * Masks of attention: what the index arithmetic of their nodes shows (index-forms.ts), and what is left of them. A mask of
 * a causal model with padding is `causal & padding`, stretched to all queries: the padding alone, of one row, is added to
 * the scores.
 */
import type { SeenKeys } from "../../ir/ops/kinds/attention/attention.ts";
import { type IndexForm, knownConditions, maskIn } from "../index-forms.ts";
import { type GraphNode, isValue, type TensorMeta } from "./graph.ts";

export interface KnownMask {
  readonly seen: SeenKeys;
  /** Values that stretch to the scores and hide more of them: all have to show a key, or one is added. */
  readonly rest: readonly string[];
}

export interface MaskNodes {
  readonly nodeOf: (value: string) => GraphNode | undefined;
  readonly metaOf: (value: string) => TensorMeta | undefined;
  readonly formOf: (value: string) => IndexForm | null;
}

export function knownMask(value: string, nodes: MaskNodes): KnownMask {
  const sizes = nodes.metaOf(value)?.sizes ?? [];
  const conditions = conditionsOf(value, nodes);
  const { form, rest } = knownConditions(conditions, nodes.formOf, sizes.length);
  const seen = form && maskIn(form, sizes);
  return seen === null ? { seen: { causal: null, window: null }, rest: conditions } : { seen, rest };
}

const joins = /^torch\.ops\.aten\.(?:__and__\.Tensor|bitwise_and\.Tensor|logical_and\.default)$/u;
const stretches =
  /^torch\.ops\.aten\.(?:expand\.default|to\.\w+|_to_copy\.default|alias\.default|detach\.default|contiguous\.default|clone\.default)$/u;

/** The conditions that a mask joins, before they are stretched; a mask of numbers is itself. */
function conditionsOf(value: string, nodes: MaskNodes): readonly string[] {
  const [node, isBool] = [nodes.nodeOf(value), isCondition(value, nodes)];
  if (node === undefined) return [value];
  const operands = ["self", "other"].flatMap((name) => {
    const given = node.inputs.get(name) ?? null;
    return isValue(given) ? [given.name] : [];
  });
  const isSame = operands.every((operand) => isCondition(operand, nodes) === isBool);
  const isOpen =
    isSame && ((isBool && joins.test(node.target) && operands.length === 2) || stretches.test(node.target));
  return isOpen && operands.length > 0 ? operands.flatMap((operand) => conditionsOf(operand, nodes)) : [value];
}

function isCondition(value: string, { metaOf }: MaskNodes): boolean {
  return metaOf(value)?.dtype.braid === "bool";
}
