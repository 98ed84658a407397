/** The kernels that a rank of a Program launches, with the shapes of what they read and write. */
import type { Program } from "@braid-compiler/braid";

export interface Launch {
  readonly kind: string;
  readonly stream: number;
  readonly inputs: readonly (readonly number[])[];
  readonly outputs: readonly (readonly number[])[];
}

/** In the order of the rank's list. */
export function launchesOf(program: Program, rank: number): readonly Launch[] {
  const { commands = [] } = program.ranks[rank] ?? {};
  return commands.flatMap((command) => {
    const kernel = command.kind === "launch" ? program.kernels[command.kernel] : undefined;
    if (kernel === undefined) return [];
    const shapes = (views: readonly { readonly shape: readonly number[] }[]): readonly (readonly number[])[] =>
      views.map(({ shape }) => shape);
    const { kind, inputs, outputs } = kernel;
    return [{ kind, stream: command.stream, inputs: shapes(inputs), outputs: shapes(outputs) }];
  });
}
