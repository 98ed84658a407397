/**
 * Frames on a byte stream: four bytes of length, little-endian, then so many bytes, the first of which says what the frame is.
 * A reader has a limit: a longer frame is refused when its length is read, before anything is stored.
 */

export const frameKinds = {
  /** Hub to rank, first: a nonce. */
  challenge: 1,
  /** Rank to hub: who it is, a nonce, and the proof that it knows the token. */
  hello: 2,
  /** Hub to rank: the proof that the hub knows the token. */
  welcome: 3,
  /** Rank to hub: its bytes of the next exchange. */
  part: 4,
  /** Hub to rank: one rank's bytes of an exchange; worldSize of these make a result. */
  result: 5,
  /** Either way: a rank gives up, and why. */
  abort: 6,
  /** Rank to hub: what it was doing when the world ended. */
  lastWords: 7,
  /** Rank to hub: it has done all it had to do; its connection may close. */
  farewell: 8,
} as const;

export type FrameKind = (typeof frameKinds)[keyof typeof frameKinds];

export interface Frame {
  readonly kind: number;
  readonly body: Uint8Array;
}

/** Of a frame: what a stranger may send, and what a rank may send in one exchange. */
export const handshakeLimit = 512;
export const exchangeLimit = 64 * 1024 * 1024;

const headBytes = 4;

export function encodeFrame(kind: FrameKind, body: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(headBytes + 1 + body.length);
  new DataView(bytes.buffer).setUint32(0, body.length + 1, true);
  bytes[headBytes] = kind;
  bytes.set(body, headBytes + 1);
  return bytes;
}

export interface FrameReader {
  /** The frames that these bytes complete; throws FrameError for one that is empty or longer than the limit. */
  push(bytes: Uint8Array): Frame[];
  setLimit(limit: number): void;
}

/** Bytes that are no frame within the limit. */
export class FrameError extends Error {
  override readonly name = "FrameError";
}

/** Collects frames from pieces of any size; at most one frame's bytes are held. */
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
      const frames: Frame[] = [];
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
