/** What stands in a box: `Allgather · 3`, or as much of it as fits. */

/** At most `room` characters. The name is cut before the iteration, which tells boxes of one name apart. */
export function fittedLabel(name: string, iteration: string, room: number): string {
  const full = iteration === "" ? name : `${name} · ${iteration}`;
  if (full.length <= room) return full;
  const end = iteration === "" ? "" : ` ${iteration}`;
  if (name.length + end.length <= room) return name + end;
  const left = room - end.length - 1;
  if (left >= 2) return `${name.slice(0, left)}…${end}`;
  return iteration !== "" && iteration.length <= room ? iteration : `${full.slice(0, room - 1)}…`;
}
