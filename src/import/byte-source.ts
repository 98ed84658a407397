/** A file of bytes that is read in parts: weights may be larger than any array. */
export interface ByteSource {
  /** In bytes. */
  readonly size: number;
  /** The bytes from `start` on; fewer at the end of the file. */
  readonly read: (start: number, length: number) => Uint8Array;
}

/** Views of the bytes. */
export function sourceOfBytes(bytes: Uint8Array): ByteSource {
  return { size: bytes.length, read: (start, length) => bytes.subarray(start, start + length) };
}
