/**
 * The judge: says what is wrong with a Program by running it, without a graph, a clock or a rule about edges. To know
 * whether two commands are ordered it holds the completion of one and looks whether the other can start; two commands
 * race when each can start while the other is held and they touch one byte, at least one of them writing. It is slow,
 * and the verifier is tested against it.
 */
import { at } from "../../../src/support/invariant.ts";
import type { Program } from "../../../src/commands/program.ts";
import { createMemory, fill, type Memory, type Ranges, some } from "./bytes.ts";
import { runWorld } from "./run.ts";
import { createWorld, type Node, type World } from "./world.ts";

export interface Verdict {
  readonly ok: boolean;
  /** Stuck with synchronous transfers, every stream a queue. */
  readonly deadlock: boolean;
  /** Stuck when every rank is one queue, though not otherwise. */
  readonly needsConcurrency: boolean;
  readonly overrun: boolean;
  /** Pairs of nodes, smaller first, as `a b`. */
  readonly races: readonly string[];
  /** A read of bytes that nothing wrote in this run, a caller's read of such output bytes included. */
  readonly uninitialised: boolean;
  /** A use before alloc or after free, a second free, or two buffers that live in the same bytes. */
  readonly lifetime: boolean;
  /** Signals and waits of a slot differ in number. */
  readonly unbalanced: boolean;
}

export function judge(program: Program, runs = 2): Verdict {
  const world = createWorld(program, runs);
  const deadlock = !runWorld(world, "synchronous", -1).finished;
  const needsConcurrency = !deadlock && !runWorld(createWorld(program, runs, true), "synchronous", -1).finished;
  const memory = createMemory(program);
  const accesses = accessRanges(world, memory);
  const { races, overrun } = findRaces(world, accesses, memory);
  const unbalanced = isUnbalanced(world);
  // One order shows what is read only if all orders give the same memory.
  const settled = !deadlock && races.length === 0 && !overrun && !unbalanced;
  const { uninitialised, lifetime } = settled ? lookAtMemory(world, accesses, memory) : nothingSeen;
  const ok =
    !deadlock && !needsConcurrency && !overrun && races.length === 0 && !uninitialised && !lifetime && !unbalanced;
  return { ok, deadlock, needsConcurrency, overrun, races, uninitialised, lifetime, unbalanced };
}

const nothingSeen = { uninitialised: false, lifetime: false };

interface NodeRanges {
  readonly reads: Ranges;
  readonly writes: Ranges;
}

function accessRanges({ nodes }: World, memory: Memory): readonly NodeRanges[] {
  return nodes.map(({ reads, writes }) => ({ reads: memory.ranges(reads), writes: memory.ranges(writes) }));
}

function findRaces(
  world: World,
  accesses: readonly NodeRanges[],
  memory: Memory,
): { readonly races: readonly string[]; readonly overrun: boolean } {
  const { nodes } = world;
  const startedWhile = new Map<number, Uint8Array>();
  let overrun = runWorld(world, "eager", -1).overrun;
  nodes.forEach(({ work }, id) => {
    const touches = at(accesses, id).reads.length + at(accesses, id).writes.length > 0;
    if (!touches && work.kind !== "take") return;
    const outcome = runWorld(world, "eager", id);
    overrun ||= outcome.overrun;
    if (touches) startedWhile.set(id, outcome.started);
  });
  const races: string[] = [];
  const stamps = new Uint8Array(memory.bytes);
  for (const [id, started] of startedWhile) {
    const { reads, writes } = at(accesses, id);
    fill(stamps, reads, 1);
    fill(stamps, writes, 2);
    for (const [other, otherStarted] of startedWhile) {
      if (other <= id || started[other] !== 1 || otherStarted[id] !== 1) continue;
      const theirs = at(accesses, other);
      if (some(stamps, theirs.writes, (stamp) => stamp !== 0) || some(stamps, theirs.reads, (stamp) => stamp === 2)) {
        races.push(`${id} ${other}`);
      }
    }
    fill(stamps, reads, 0);
    fill(stamps, writes, 0);
  }
  return { races, overrun };
}

function isUnbalanced({ nodes, slotCount }: World): boolean {
  const balance = new Int32Array(slotCount);
  for (const { work, run } of nodes) {
    if (run !== 0) continue;
    if (work.kind === "signal") balance[work.slot] = at(balance, work.slot) + 1;
    if (work.kind === "take") balance[work.slot] = at(balance, work.slot) - 1;
  }
  return balance.some((count) => count !== 0);
}

const undefinedByte = 255;

/**
 * Every byte holds the number of the run that wrote it, from 1; what a caller wrote holds that of the run that follows.
 */
function lookAtMemory(
  world: World,
  accesses: readonly NodeRanges[],
  memory: Memory,
): { readonly uninitialised: boolean; readonly lifetime: boolean } {
  const { nodes, program } = world;
  const written = new Uint8Array(memory.bytes).fill(undefinedByte);
  const allocated = allocatedBuffers(program);
  /**
   * The run in which a buffer was allocated and not yet freed; what a list never frees is given back when its run is
   * over.
   */
  const liveIn = new Map<number, number>();
  /** A buffer that is never allocated lives all the time. */
  const lives = (buffer: number, run: number): boolean => !allocated.has(buffer) || liveIn.get(buffer) === run;
  const sharing = (buffer: number): readonly number[] => sharersOf(program, memory, buffer);
  let uninitialised = false;
  let lifetime = false;
  for (const id of runWorld(world, "eager", -1).completed) {
    const node = at(nodes, id);
    const { reads, writes } = at(accesses, id);
    const command = commandOf(program, node);
    if (command?.kind === "alloc" || command?.kind === "free") {
      if ((liveIn.get(command.buffer) === node.run) === (command.kind === "alloc")) lifetime = true;
      if (command.kind === "alloc" && sharing(command.buffer).some((other) => lives(other, node.run))) lifetime = true;
      if (command.kind === "alloc") liveIn.set(command.buffer, node.run);
      else liveIn.delete(command.buffer);
      fill(written, writes, undefinedByte);
      continue;
    }
    for (const { buffer } of [...node.reads, ...node.writes]) {
      if (allocated.has(buffer) && liveIn.get(buffer) !== node.run) lifetime = true;
    }
    const run = node.command === null ? node.run : node.run + 1;
    if (some(written, reads, (by) => by !== run)) uninitialised = true;
    fill(written, writes, node.run + 1);
  }
  return { uninitialised, lifetime };
}

/** Other buffers that have some of its bytes. */
function sharersOf({ buffers }: Program, memory: Memory, buffer: number): readonly number[] {
  const [start, end] = memory.buffer(buffer);
  return buffers.flatMap(({ id }) => {
    const [first, last] = memory.buffer(id);
    return id !== buffer && first < end && start < last ? [id] : [];
  });
}

function allocatedBuffers(program: Program): ReadonlySet<number> {
  return new Set(
    program.ranks.flatMap(({ commands }) => commands.flatMap((c) => (c.kind === "alloc" ? [c.buffer] : []))),
  );
}

function commandOf(program: Program, { rank, command }: Node): Program["ranks"][number]["commands"][number] | null {
  return command === null ? null : (program.ranks[rank]?.commands[command] ?? null);
}
