/** Old names of options in the API and their present ones. Old flags follow from them. */
const renamedOptions: ReadonlyMap<string, string> = new Map([
  ["communicatorBackend", "backend"],
  ["pointToPoint", "p2p"],
  ["p2pProtocol", "protocol"],
  ["interStreamSynchronization", "interStreamSync"],
  ["shrinkStreamBuffers", "shrink"],
  ["disablePasses", "disablePass"],
  ["numberOfStreams", "streams"],
  ["size", "sizes"],
  ["copyLane", "copyStream"],
  ["choice", "scheduleChoice"],
]);

/** `--schedule inPlace` for `inPlace`. */
export function longFlag(name: string): string {
  return `--${name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}

/** The present flag, if it is one of `known`; else null. */
export function renamedFlag(flag: string, known: readonly string[]): string | null {
  for (const [old, present] of renamedOptions) {
    if (flag === longFlag(old) && known.includes(longFlag(present))) return longFlag(present);
  }
  return null;
}

/** The present name of an option, if it is one of `known`; else null. */
export function renamedOption(name: string, known: readonly string[]): string | null {
  const present = renamedOptions.get(name);
  return present !== undefined && known.includes(present) ? present : null;
}
