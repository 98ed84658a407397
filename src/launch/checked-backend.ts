/** A back end whose ranks, in processes of their own, compare their Programs before any of them prepares one. */
import type { Backend } from "../backends/backend.ts";
import type { Program } from "../commands/program.ts";
import type { World } from "./join-world.ts";
import { programHash, type ProgramIdentity, requireSameProgram } from "./same-program.ts";

/** Preparing throws `program-differs` on every rank when one has another Program. */
export function withProgramCheck(
  backend: Backend,
  world: Pick<World, "allGather">,
  options: ProgramIdentity["options"],
): Backend {
  return {
    name: backend.name,
    open: async (openOptions) => {
      const group = await backend.open(openOptions);
      return {
        prepare: async (program) => {
          await requireSameProgram(world, { hash: programHash(programText(program)), options });
          return group.prepare(program);
        },
        close: () => group.close(),
      };
    },
  };
}

/** Programs are plain data, made in one order on every rank. */
function programText(program: Program): string {
  return JSON.stringify(program, (_, value: unknown) =>
    value instanceof Map || value instanceof Set ? [...value] : value,
  );
}
