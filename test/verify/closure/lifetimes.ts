/** The lifetimes of buffers over the order of all commands: alloc and free mark them, and one buffer's marks are ordered. */
import type { Program } from "../../../src/commands/program.ts";
import { at } from "../../../src/support/invariant.ts";
import type { Order, Visit } from "./order.ts";
import { placesOf, type Touched } from "./touched-bytes.ts";

/** A use before alloc or after free, a second alloc or free, or bytes of two buffers that live at once. */
export function hasWrongLifetimes(
  program: Program,
  visits: readonly Visit[],
  touched: readonly Touched[],
  { before }: Order,
): boolean {
  const marks = program.buffers.map((): number[] => []);
  for (const [v, { command }] of visits.entries()) {
    if (typeof command !== "string" && (command.kind === "alloc" || command.kind === "free"))
      at(marks, command.buffer).push(v);
  }
  const isAllocated = (buffer: number): boolean =>
    at(marks, buffer).some((v) => {
      const { command } = at(visits, v);
      return typeof command !== "string" && command.kind === "alloc";
    });
  /** Whether the buffer lives when the visit starts. What a run does not free ends with it. */
  const lives = (buffer: number, visit: number): boolean => {
    if (!isAllocated(buffer)) return true;
    const earlier = at(marks, buffer).filter(
      (mark) => at(visits, mark).run === at(visits, visit).run && before(mark, visit),
    );
    const last = earlier.find((mark) => earlier.every((other) => other === mark || before(other, mark)));
    if (last === undefined) return false;
    const { command } = at(visits, last);
    return typeof command !== "string" && command.kind === "alloc";
  };
  const places = placesOf(program);
  const share = (a: number, b: number): boolean => {
    const [[first, firstEnd], [second, secondEnd]] = [at(places, a), at(places, b)];
    return a !== b && first < secondEnd && second < firstEnd;
  };
  const ids = [...program.buffers.keys()];
  if (ids.some((a) => !isAllocated(a) && ids.some((b) => b < a && share(a, b) && !isAllocated(b)))) return true;
  return visits.some(({ command }, v) => {
    if (typeof command === "string") return false;
    if (command.kind === "alloc") {
      return lives(command.buffer, v) || ids.some((other) => share(other, command.buffer) && lives(other, v));
    }
    if (command.kind === "free") return !lives(command.buffer, v) || !isAllocated(command.buffer);
    const { reads, writes } = at(touched, v);
    return operandsOf(command).some((buffer) => {
      const [start, end] = at(places, buffer);
      const touches = [...reads, ...writes].some((byte) => byte >= start && byte < end);
      return touches && !lives(buffer, v);
    });
  });
}

function operandsOf(command: Exclude<Visit["command"], string>): readonly number[] {
  switch (command.kind) {
    case "launch":
      return [...command.inputs, ...command.outputs].map(({ buffer }) => buffer);
    case "copy":
      return [command.source.buffer, command.destination.buffer];
    case "transfer": {
      const { operation } = command;
      if (operation.kind === "group") return operation.ops.map(({ view }) => view.buffer);
      return [operation.input, operation.output].flatMap((view) => (view === null ? [] : [view.buffer]));
    }
    default:
      return [];
  }
}
