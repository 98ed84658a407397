/** The reason why a world of ranks ended early, and its encoding in frames. */

export interface WorldEnd {
  /** The rank that aborted, died, or is missing. */
  readonly rank: number;
  readonly reason: string;
}

/** A rank's report of what it was doing when the world ended, as lines of text. */
export interface LastWords {
  readonly rank: number;
  readonly text: string;
}

/** Longer texts are cut: a reason is a message rather than a log. */
const mostCharacters = 16_384;

export function encodeText({ rank, reason }: WorldEnd): Uint8Array {
  return new TextEncoder().encode(JSON.stringify({ rank, reason: reason.slice(0, mostCharacters) }));
}

/** Null for malformed bytes, because they come from another process. */
export function decodeText(bytes: Uint8Array): WorldEnd | null {
  try {
    const value: unknown = JSON.parse(new TextDecoder().decode(bytes));
    if (typeof value !== "object" || value === null) return null;
    if (!("rank" in value) || !("reason" in value)) return null;
    const { rank, reason } = value;
    return typeof rank === "number" && typeof reason === "string" ? { rank, reason } : null;
  } catch {
    return null;
  }
}
