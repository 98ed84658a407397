/**
 * Rewrites a probe to compute the same sum with a different kernel. This times combinations of slots beside reductions
 * over an axis.
 *
 *     reduction over [0]: slots [4, n] -> [n]     ->     combine slot 0, .., slot 3 -> [n]
 */
import type { Command } from "../../commands/command.ts";
import type { Kernel } from "../../commands/kernel.ts";
import type { Program } from "../../commands/program.ts";
import { dtypes } from "../../numerics/dtype.ts";
import { at, invariant } from "../../support/invariant.ts";

/** Every launch of `program` must be a reduction over axis 0 only, as in `slotSum`. */
export function combinedSlots(program: Program): Program {
  return {
    ...program,
    kernels: program.kernels.map(combination),
    ranks: program.ranks.map((rank) => ({
      ...rank,
      commands: rank.commands.map((command) => launchOfParts(program.kernels, command)),
    })),
  };
}

function combination(kernel: Kernel): Kernel {
  const { op, inputs, outputs } = requireReduction(kernel);
  const { dtype, shape, strides } = at(inputs, 0);
  const part = { dtype, shape: shape.slice(1), strides: strides.slice(1) };
  return { kind: "combine", op, inputs: Array.from({ length: at(shape, 0) }, () => part), outputs };
}

function launchOfParts(kernels: readonly Kernel[], command: Command): Command {
  if (command.kind !== "launch") return command;
  const { dtype, shape, strides } = at(requireReduction(at(kernels, command.kernel)).inputs, 0);
  const { buffer, offset } = at(command.inputs, 0);
  const bytes = at(strides, 0) * dtypes[dtype].bytes;
  return {
    ...command,
    inputs: Array.from({ length: at(shape, 0) }, (_, i) => ({ buffer, offset: offset + i * bytes })),
  };
}

function requireReduction(kernel: Kernel): Extract<Kernel, { readonly kind: "reduction" }> {
  invariant(kernel.kind === "reduction" && kernel.axes.join() === "0", "a probe of sums reduces axis 0", kernel.kind);
  return kernel;
}
