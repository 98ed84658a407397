/**
 * Frames on a byte stream: four bytes of length (little-endian), then as many bytes, the first of which is the kind of
 * frame. A reader has a limit. It rejects a longer frame when it reads the length, before storing anything.
 */

export const frameKinds = {
  /** Hub to rank, the first frame: a nonce. */
  challenge: 1,
  /** Rank to hub: its claim, a nonce, and the proof that it knows the token. */
  hello: 2,
  /** Hub to rank: the proof that the hub knows the token. */
  welcome: 3,
  /** Rank to hub: the rank's bytes of the next exchange. */
  part: 4,
  /** Hub to rank: one rank's bytes of an exchange; worldSize of them make a result. */
  result: 5,
  /** In both directions: a rank gives up, with its reason. */
  abort: 6,
  /** Rank to hub: what it was doing when the world ended. */
  lastWords: 7,
  /** Rank to hub: the rank has finished, and its connection may close. */
  farewell: 8,
  /**
   * Hub to rank instead of a welcome: the rank may not join; the proof that the hub knows the token, and the reason.
   */
  refusal: 9,
} as const;

export type FrameKind = (typeof frameKinds)[keyof typeof frameKinds];

export interface WireFrame {
  readonly kind: number;
  readonly body: Uint8Array;
}

/** Largest frame during the handshake, and largest frame that a rank may send in one exchange. */
export const handshakeLimit = 512;
export const exchangeLimit = 64 * 1024 * 1024;

const headBytes = 4;

/**
 * After this time without data the system asks the other host whether it is there, ten times, once a second. A host
 * that has lost its power or network never closes a connection.
 */
export const keepAliveMilliseconds = 1000;

export function encodeFrame(kind: FrameKind, body: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(headBytes + 1 + body.length);
  new DataView(bytes.buffer).setUint32(0, body.length + 1, true);
  bytes[headBytes] = kind;
  bytes.set(body, headBytes + 1);
  return bytes;
}

export interface FrameReader {
  /** The frames that these bytes complete. Throws FrameError for an empty frame or one above the limit. */
  push(bytes: Uint8Array): WireFrame[];
  setLimit(limit: number): void;
}

/** Bytes that are not a frame within the limit. */
export class FrameError extends Error {
  override readonly name = "FrameError";
}

/** Collects frames from chunks of any size. It holds at most one frame's bytes. */
export function frameReader(limit: number): FrameReader {
  let most = limit;
  const head = new Uint8Array(headBytes);
  let headFilled = 0;
  let content: Uint8Array | null = null;
  let filled = 0;
  return {
    setLimit(next) {
      most = next;
    },
    push(bytes) {
      const frames: WireFrame[] = [];
      let at = 0;
      while (at < bytes.length) {
        if (content === null) {
          const taken = Math.min(headBytes - headFilled, bytes.length - at);
          head.set(bytes.subarray(at, at + taken), headFilled);
          headFilled += taken;
          at += taken;
          if (headFilled < headBytes) break;
          const length = new DataView(head.buffer).getUint32(0, true);
          if (length === 0 || length > most)
            throw new FrameError(`a frame of ${length} bytes, at most ${most} expected`);
          content = new Uint8Array(length);
          filled = 0;
        }
        const taken = Math.min(content.length - filled, bytes.length - at);
        content.set(bytes.subarray(at, at + taken), filled);
        filled += taken;
        at += taken;
        if (filled === content.length) {
          frames.push({ kind: content[0] ?? 0, body: content.subarray(1) });
          content = null;
          headFilled = 0;
        }
      }
      return frames;
    },
  };
}
