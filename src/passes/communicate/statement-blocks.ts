/** What moves as one among the top-level statements of a host program, and the memory that it uses. */
import type { TensorId } from "../../ir/domain.ts";
import type { TeamCommunication, HostProgram, Statement } from "../../host/nodes.ts";
import { isSlicing, ownersOf, statementAccess, walk } from "../../host/traverse.ts";

/** The owners of the memory that statements use. */
export interface BlockUses {
  readonly reads: ReadonlySet<TensorId>;
  readonly writes: ReadonlySet<TensorId>;
}

/** PyTorch's FSDP limits its gathers to two for the same reason: their memory. */
export const mostUnderWay = 2;

/** A team of one moves nothing between devices. */
export function hasPeers({ team }: TeamCommunication): boolean {
  return team.length > 1;
}

/** The CUDA backend communicates on the current stream. */
export function runsBeside(communication: TeamCommunication): boolean {
  return communication.backend !== "cuda" && hasPeers(communication);
}

/** The loops that directly follow a GetCurrentStream are in one block with it; each other statement is a block. */
export function blocksOf(body: readonly Statement[]): readonly (readonly Statement[])[] {
  const blocks: Statement[][] = [];
  for (const statement of body) {
    const last = blocks.at(-1);
    if (statement.kind === "ForLoop" && last?.[0]?.kind === "GetCurrentStream") last.push(statement);
    else blocks.push([statement]);
  }
  return blocks;
}

/** The uses of statements and those inside of them. Binding a slice is none. */
export function usesIn({ body }: HostProgram): (statements: readonly Statement[]) => BlockUses {
  const ownerOf = ownersOf(body);
  return (statements) => {
    const [reads, writes] = [new Set<TensorId>(), new Set<TensorId>()];
    for (const statement of walk(statements)) {
      if (isSlicing(statement)) continue;
      const accesses = statementAccess(statement);
      const changed = statement.kind === "Deallocate" ? accesses.reads : accesses.writes;
      for (const tensor of accesses.reads) reads.add(ownerOf(tensor));
      for (const tensor of changed) writes.add(ownerOf(tensor));
    }
    return { reads, writes };
  };
}

/** Whether the later one has to stay after the earlier one. */
export function usesConflict(earlier: BlockUses, later: BlockUses): boolean {
  const isChanged = [...earlier.reads, ...earlier.writes].some((tensor) => later.writes.has(tensor));
  return isChanged || [...earlier.writes].some((tensor) => later.reads.has(tensor));
}

export function both(a: BlockUses, b: BlockUses): BlockUses {
  return { reads: new Set([...a.reads, ...b.reads]), writes: new Set([...a.writes, ...b.writes]) };
}
