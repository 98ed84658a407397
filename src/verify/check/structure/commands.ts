/** The commands of a rank: what they name exists, is theirs to use, and fits. */
import { originsOf } from "../../../commands/kernel.ts";
import { collectiveTypes } from "../../../commands/collectives.ts";
import type { Command } from "../../../commands/command.ts";
import type { Program, RankProgram } from "../../../commands/program.ts";
import { sameNumbers, type View } from "../../../commands/view.ts";
import { dtypes } from "../../../numerics/dtype.ts";
import { dispatch, type RuleTable, at } from "../../../support/invariant.ts";
import { demand, demandCounts, isCount, most } from "./demand.ts";
import { checkBox } from "./tables.ts";

/** One rank's commands. */
interface Setting {
  readonly program: Program;
  readonly own: RankProgram;
  readonly where: string;
}

export function checkRank(program: Program, own: RankProgram): void {
  const { rank, streams, commands, origins, transferOf } = own;
  const ids = new Set<number>(streams.map(({ id }) => id));
  const at0 = `ranks[${rank}]`;
  demand(origins.length === commands.length, `${at0}.origins`, origins.length, `${commands.length}, one per command`);
  demand(
    transferOf.length === commands.length,
    `${at0}.transferOf`,
    transferOf.length,
    `${commands.length}, one per command`,
  );
  for (const [index, command] of commands.entries()) {
    const where = `${at0}.commands[${index}]`;
    const { statement, path, iteration } = at(origins, index);
    demand(
      typeof statement === "string" && Array.isArray(path) && Array.isArray(iteration),
      `${at0}.origins[${index}]`,
      statement,
      "a statement, a path and an iteration",
    );
    demand(Object.hasOwn(commandRules, command.kind), `${where}.kind`, command.kind, "a command's kind");
    demand(ids.has(command.stream), `${where}.stream`, command.stream, "a stream of the rank");
    const id = transferOf[index] ?? null;
    demand(
      (id === null) === (command.kind !== "transfer"),
      `${at0}.transferOf[${index}]`,
      id,
      "a transfer's number for transfers only",
    );
    dispatch<Command, void, [Setting]>(commandRules, command, { program, own, where });
    if (id === null) continue;
    const transfer = program.transfers[id];
    const takesPart = transfer?.participants.some((each) => each.rank === rank && each.command === index) ?? false;
    demand(takesPart, `${at0}.transferOf[${index}]`, id, "a transfer in which the command takes part");
  }
}

const commandRules: RuleTable<Command, void, [Setting]> = {
  launch: ({ kernel, inputs, outputs, origins = [], smMargin = 0 }, setting) => {
    const { program, where } = setting;
    demand(isCount(kernel, program.kernels.length), `${where}.kernel`, kernel, "a kernel's number");
    demand(isCount(smMargin), `${where}.smMargin`, smMargin, "a count");
    const spec = at(program.kernels, kernel);
    const count = originsOf(spec);
    demand(origins.length === count, `${where}.origins`, origins.length, `${count}, as in the kernel`);
    demandCounts(origins, `${where}.origins`);
    for (const [side, refs] of Object.entries({ inputs, outputs })) {
      const operands = side === "inputs" ? spec.inputs : spec.outputs;
      demand(refs.length === operands.length, `${where}.${side}`, refs.length, `${operands.length}, as in the kernel`);
      for (const [i, ref] of refs.entries())
        checkView({ ...at(operands, i), ...ref }, setting, `${where}.${side}[${i}]`, true);
    }
  },
  copy: ({ source, destination }, setting) => {
    const { where } = setting;
    checkView(source, setting, `${where}.source`, true);
    checkView(destination, setting, `${where}.destination`, true);
    demand(
      source.dtype === destination.dtype,
      `${where}.destination`,
      destination.dtype,
      `${source.dtype}, as in the source`,
    );
    demand(
      sameNumbers(source.shape, destination.shape),
      `${where}.destination`,
      destination.shape,
      `shape [${source.shape.join(", ")}], as in the source`,
    );
  },
  transfer: ({ operation, communicator }, setting) => {
    const { where, program } = setting;
    demand(typeof communicator === "string", `${where}.communicator`, communicator, "a name");
    if (operation.kind === "collective") {
      demand(collectiveTypes.includes(operation.type), `${where}.type`, operation.type, "a collective's type");
      demandCounts(operation.team, `${where}.team`);
      for (const view of [operation.input, operation.output]) if (view !== null) checkView(view, setting, where, false);
    } else {
      demand(operation.kind === "group", `${where}.operation`, operation, "a collective or a group");
      for (const { type, peer, view } of operation.ops) {
        demand(["send", "recv"].includes(type), `${where}.ops`, type, "send or recv");
        demand(isCount(peer, program.ranks.length), `${where}.ops`, peer, "a rank");
        checkView(view, setting, where, false);
      }
    }
  },
  recordEvent: ({ event }, setting) => checkEvent(event, setting),
  waitEvent: ({ event }, setting) => checkEvent(event, setting),
  signal: ({ slot }, setting) => checkSlot(slot, "signaller", setting),
  waitSignal: ({ slot }, setting) => checkSlot(slot, "waiter", setting),
  alloc: ({ buffer }, setting) => checkLife(buffer, setting),
  free: ({ buffer }, setting) => checkLife(buffer, setting),
};

function checkEvent(event: number, { own, where }: Setting): void {
  demand(isCount(event, own.eventCount), `${where}.event`, event, `less than ${own.eventCount}, the rank's count`);
}

function checkSlot(slot: number, side: "signaller" | "waiter", { program, own, where }: Setting): void {
  demand(isCount(slot, program.slots.length), `${where}.slot`, slot, "a slot's number");
  const owner = at(program.slots, slot)[side];
  demand(owner === own.rank, `${where}.slot`, slot, `a slot of rank ${own.rank}; its ${side} is rank ${owner}`);
}

function checkLife(buffer: number, { program, own, where }: Setting): void {
  const found = isCount(buffer) ? program.buffers[buffer] : undefined;
  demand(
    found?.rank === own.rank && found.role === "temporary",
    `${where}.buffer`,
    buffer,
    `a temporary of rank ${own.rank}`,
  );
}

/** Whether the view reaches outside its buffer is a finding of its own, unless it is absurdly far outside. */
function checkView(view: View, { program, own }: Setting, where: string, mayBePeers: boolean): void {
  demand(isCount(view.buffer, program.buffers.length), `${where}.buffer`, view.buffer, "a buffer's number");
  checkBox(view, where);
  const { rank, arena } = at(program.buffers, view.buffer);
  const isReached = rank === own.rank || (mayBePeers && arena === "symmetric");
  demand(
    isReached,
    `${where}.buffer`,
    view.buffer,
    `a buffer of rank ${own.rank}${mayBePeers ? ", or a peer's in symmetric memory" : ""}`,
  );
  const isAligned = Number.isSafeInteger(view.offset) && view.offset % dtypes[view.dtype].bytes === 0;
  demand(isAligned && Math.abs(view.offset) < most, `${where}.offset`, view.offset, "a multiple of the dtype's size");
}
