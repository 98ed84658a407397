/** `einsum` as contractions, two operands at a time. */
import { sum } from "../../../ir/api/ops/reductions.ts";
import type { TensorView } from "../../../ir/api/tensor-view.ts";
import { at } from "../../../support/invariant.ts";
import { contract } from "../../contractions.ts";
import { permutedTo } from "../../views.ts";
import type { NodeOperands } from "../operands.ts";

/** A tensor whose axes have labels, each once. */
interface Labelled {
  readonly tensor: TensorView;
  readonly labels: readonly string[];
}

export function einsum(o: NodeOperands): TensorView {
  const equation = o.text("equation", "").replaceAll(" ", "");
  const tensors = o.tensors("tensors");
  const [given = "", written] = equation.split("->");
  const sides = given.split(",");
  // `...` stands for the axes that no label has, counted from the last one.
  const unnamed = sides.map((side, i) => at(tensors, i).rank - side.replace("...", "").length);
  const most = Math.max(0, ...sides.map((side, i) => (side.includes("...") ? at(unnamed, i) : 0)));
  const labelsOf = (side: string, count: number): readonly string[] =>
    (side.match(/\.\.\.|[a-z]/giu) ?? []).flatMap((label) =>
      label === "..." ? Array.from({ length: count }, (_, i) => `.${most - count + i}`) : [label],
    );
  const operands = sides.map((side, i): Labelled => {
    const labels = labelsOf(side, at(unnamed, i));
    if (new Set(labels).size !== labels.length) o.refuse(`a diagonal, ${equation}`, "each index once in an operand");
    return { tensor: at(tensors, i), labels };
  });
  const all = operands.flatMap(({ labels }) => labels);
  const implied = [...new Set(all)].filter(
    (label) => label.startsWith(".") || all.indexOf(label) === all.lastIndexOf(label),
  );
  const wanted = written === undefined ? implied.toSorted() : labelsOf(written, most);
  const result = operands.reduce((left, right, i) => {
    const later = operands.slice(i + 1).flatMap(({ labels }) => labels);
    return product(left, right, new Set([...wanted, ...later]));
  });
  const { tensor, labels } = summed(result, new Set(wanted));
  return permutedTo(
    tensor,
    wanted.map((label) => labels.indexOf(label)),
  );
}

/** Sums over axes whose labels are not needed. */
function summed({ tensor, labels }: Labelled, needed: ReadonlySet<string>): Labelled {
  const axes = labels.flatMap((label, axis) => (needed.has(label) ? [] : [axis]));
  const kept = labels.filter((label) => needed.has(label));
  return axes.length === 0 ? { tensor, labels } : { tensor: sum(tensor, axes), labels: kept };
}

function product(a: Labelled, b: Labelled, needed: ReadonlySet<string>): Labelled {
  const left = summed(a, new Set([...needed, ...b.labels]));
  const right = summed(b, new Set([...needed, ...a.labels]));
  const shared = left.labels.filter((label) => right.labels.includes(label));
  const [batch, contracted] = [true, false].map((isNeeded) => shared.filter((label) => needed.has(label) === isNeeded));
  const pairs = (labels: readonly string[] = []) => ({
    left: labels.map((label) => left.labels.indexOf(label)),
    right: labels.map((label) => right.labels.indexOf(label)),
  });
  const free = [...left.labels, ...right.labels].filter((label) => !shared.includes(label));
  return {
    tensor: contract(left.tensor, right.tensor, pairs(batch), pairs(contracted)),
    labels: [...(batch ?? []), ...free],
  };
}
