/** A back end whose ranks run in separate processes. They compare their Programs before any of them prepares one. */
import type { Backend } from "../backends/backend.ts";
import type { World } from "./join-world.ts";
import { CommonError } from "../backends/cuda/world.ts";
import { programHash } from "./exchange.ts";

/** Preparing throws `program-differs` on every rank if one rank has a different Program. */
export function withProgramCheck(
  backend: Backend,
  world: Pick<World, "allGather">,
  options: ProgramIdentity["options"],
): Backend {
  return {
    ...backend,
    open: async (openOptions) => {
      const group = await backend.open(openOptions);
      return {
        prepare: async (program) => {
          await requireSameProgram(world, { hash: programHash(program), options });
          return group.prepare(program);
        },
        close: () => group.close(),
      };
    },
  };
}

/** A rank's Program and the options that made it. */
interface ProgramIdentity {
  /** Equal for equal Programs. */
  readonly hash: string;
  /** Every option that the user set, as text, by the name the user knows. */
  readonly options: Readonly<Record<string, string>>;
}

/**
 * Checks that all ranks are about to run the same Program. Each rank records all ranks' lists. The ranks exchange a
 * hash of their Program, and the options that made it, so that a message can name the difference.
 */
export async function requireSameProgram(world: Pick<World, "allGather">, own: ProgramIdentity): Promise<void> {
  const parts = await world.allGather(new TextEncoder().encode(JSON.stringify(own)));
  const identities = parts.map((bytes) => readIdentity(bytes));
  const [first] = identities;
  const rank = identities.findIndex((identity) => identity?.hash !== first?.hash);
  if (rank < 0) return;
  const other = identities[rank];
  const differing = optionsThatDiffer(first?.options ?? {}, other?.options ?? {}, "on rank 0");
  throw new CommonError([
    {
      code: "program-differs",
      message: `rank ${rank} has a different program than rank 0`,
      found: `hash ${other?.hash ?? "unreadable"} on rank ${rank}, ${first?.hash ?? "unreadable"} on rank 0`,
      expected: "the same program, from the same file, options and version of Braid, on all ranks",
      help:
        differing.length > 0
          ? "give all ranks the same options"
          : "the options are the same: compare the program files and the versions of Braid",
      notes: differing,
    },
  ]);
}

/** Lines such as `--devices: 3, on rank 0: 4`; `where` names the place of `first`. */
export function optionsThatDiffer(
  first: ProgramIdentity["options"],
  other: ProgramIdentity["options"],
  where: string,
): readonly string[] {
  const names = [...new Set([...Object.keys(first), ...Object.keys(other)])];
  return names
    .filter((name) => first[name] !== other[name])
    .map((name) => `${name}: ${other[name] ?? "not given"}, ${where}: ${first[name] ?? "not given"}`);
}

function readIdentity(bytes: Uint8Array): ProgramIdentity | null {
  try {
    const value: unknown = JSON.parse(new TextDecoder().decode(bytes));
    if (typeof value !== "object" || value === null || !("hash" in value) || !("options" in value)) return null;
    const { hash, options } = value;
    if (typeof hash !== "string" || typeof options !== "object" || options === null) return null;
    return { hash, options: Object.fromEntries(Object.entries(options).map(([name, text]) => [name, String(text)])) };
  } catch {
    return null;
  }
}
