/** Attention "auto" on a machine: which attention of a program runs as one kernel there, and notes on the other. */
import type { Diagnostic } from "../diagnostics/diagnostic.ts";
import { printTensor } from "../ir/print-tensor.ts";
import { gradientHeadsOf, hasLengths, isAttentionOp, obstacleOfOp } from "../ir/ops/kinds/attention/cudnn-obstacle.ts";
import { at } from "../support/invariant.ts";
import type { AnyCompilation } from "./compile.ts";
import type { ProgramSource, Lowered } from "./lower-all.ts";
import { type GivenOptions, type LoweringName, loweringNames, type OptionValue } from "./options.ts";
import { loweringOn, pickOptions } from "./options/resolve.ts";

type Given = GivenOptions<LoweringName> & { readonly on: OptionValue<"on"> };

/**
 * The options to lower with: attention "ops" if no attention runs as one kernel, for which `missing` has the reason.
 * Programs that are lowered already, and without attention, keep theirs.
 */
export function chooseAttention<O extends Given>(
  source: ProgramSource | Lowered | AnyCompilation,
  options: O,
  missing: ((gradientHeads: number) => string | null) | undefined,
): { readonly options: O; readonly notes: readonly Diagnostic[] } {
  const { attention } = loweringOn(pickOptions(loweringNames, options), options.on);
  if (attention !== "auto" || typeof source !== "object" || !("data" in source)) return { options, notes: [] };
  const fusion = source.data();
  const ops = fusion.ops.filter(isAttentionOp);
  if (ops.length === 0) return { options, notes: [] };
  const needsCudnn = ops.some((op) => !hasLengths(fusion, op));
  const gradientHeads = Math.max(0, ...ops.map((op) => gradientHeadsOf(fusion, op)));
  const reason = needsCudnn ? (missing?.(gradientHeads) ?? null) : null;
  const notes = ops.flatMap((op): readonly Diagnostic[] => {
    const obstacle = reason === null ? obstacleOfOp(fusion, op) : { found: reason, expected: "cuDNN (braid doctor)" };
    if (obstacle === null) return [];
    const isForward = op.kind === "Sdpa";
    const output = at(fusion.tensors, op.output);
    return [
      {
        code: "gpu-unsupported",
        severity: "note",
        message: `${isForward ? "attention" : "the gradient of attention"} runs as matmuls and a softmax`,
        place: { kind: "tensor", text: printTensor(output) },
        ...obstacle,
        help: "pass --schedule attention=ops for the same without this note",
      },
    ];
  });
  if (reason === null) return { options, notes };
  return { options: { ...options, attention: "ops" }, notes: notes.slice(0, 1) };
}
