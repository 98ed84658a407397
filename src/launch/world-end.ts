/** The reason why a world of ranks ended early, and its encoding in frames. */

export interface WorldEnd {
  /** The rank that aborted, died, or is missing. */
  readonly rank: number;
  readonly reason: string;
  /** Whether the user ended the run by a signal to its launcher; then no rank has failed. */
  readonly interrupted?: true;
}

/** A rank's report of what it was doing when the world ended, as lines of text. */
export interface LastWords {
  readonly rank: number;
  readonly text: string;
}

/**
 * Control characters, except tabs and ends of lines, and those that reorder text: on a terminal they could hide or fake
 * what it shows.
 */
// oxlint-disable-next-line no-control-regex -- that is what it looks for
const unprintable = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

/** Longer texts are cut: a reason is a message rather than a log. */
const mostCharacters = 16_384;

export function encodeText(end: WorldEnd): Uint8Array {
  return new TextEncoder().encode(JSON.stringify({ ...end, reason: end.reason.slice(0, mostCharacters) }));
}

function printable(text: string): string {
  return text.replace(unprintable, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** Null for malformed bytes, because they come from another process. */
export function decodeText(bytes: Uint8Array): WorldEnd | null {
  try {
    const value: unknown = JSON.parse(new TextDecoder().decode(bytes));
    if (typeof value !== "object" || value === null) return null;
    if (!("rank" in value) || !("reason" in value)) return null;
    const { rank, reason } = value;
    if (typeof rank !== "number" || typeof reason !== "string") return null;
    const interrupted = "interrupted" in value && value.interrupted === true;
    return { rank, reason: printable(reason.slice(0, mostCharacters)), ...(interrupted ? { interrupted } : {}) };
  } catch {
    return null;
  }
}
