/** Archives of more than 4 GB, whose positions and sizes do not fit into 32 bits. */
import { expect, it } from "vitest";
import type { ByteSource } from "../../../src/import/byte-source.ts";
import { entryText, openArchive } from "../../../src/import/torch-export/archive.ts";

/** Little-endian numbers of 2, 4 and 8 bytes, and texts. */
function bytesOf(...fields: readonly (string | readonly [bytes: 2 | 4 | 8, value: number])[]): Uint8Array {
  return Uint8Array.from(
    fields.flatMap((field) => {
      if (typeof field === "string") return [...new TextEncoder().encode(field)];
      const [bytes, value] = field;
      return Array.from({ length: bytes }, (_, i) => Math.floor(value / 256 ** i) % 256);
    }),
  );
}

/** A file of which only some bytes are not 0. */
function sparse(size: number, pieces: readonly (readonly [start: number, bytes: Uint8Array])[]): ByteSource {
  return {
    size,
    read: (start, length) => {
      const into = new Uint8Array(Math.max(0, Math.min(length, size - start)));
      for (const [at, bytes] of pieces) {
        bytes.forEach((byte, i) => {
          if (at + i >= start && at + i < start + into.length) into[at + i - start] = byte;
        });
      }
      return into;
    },
  };
}

const far = 5 * 2 ** 30;
const long = 0xffffffff;
const short = 0xffff;
const zeros = (count: number): readonly (readonly [2, number])[] => Array.from({ length: count }, () => [2, 0]);

/** A large entry at the start, and a small one behind it. */
function wideArchive(smallAt = far): ByteSource {
  const header = (name: string, size: number): Uint8Array =>
    bytesOf([4, 0x04034b50], ...zeros(5), [4, 0], [4, size], [4, size], [2, name.length], [2, 0], name);
  const described = (name: string, extra: Uint8Array, size: number, at: number): Uint8Array =>
    Uint8Array.from([
      ...bytesOf([4, 0x02014b50], ...zeros(6), [4, 0], [4, size], [4, size], [2, name.length], [2, extra.length]),
      ...bytesOf(...zeros(3), [4, 0], [4, at], name),
      ...extra,
    ]);
  const content = "small";
  const directory = Uint8Array.from([
    // Of the large one the sizes are wide, of the small one the position.
    ...described("m/large", bytesOf([2, 7], [2, 0], [2, 1], [2, 16], [8, far - 100], [8, far - 100]), long, 0),
    ...described("m/small", bytesOf([2, 1], [2, 8], [8, smallAt]), content.length, long),
  ]);
  const start = far + 1000;
  const wide = start + directory.length;
  const end = bytesOf(
    ...([
      [4, 0x06064b50],
      [8, 44],
      [2, 45],
      [2, 45],
      [4, 0],
      [4, 0],
    ] as const),
    ...([
      [8, 2],
      [8, 2],
      [8, directory.length],
      [8, start],
    ] as const),
    ...([
      [4, 0x07064b50],
      [4, 0],
      [8, wide],
      [4, 1],
    ] as const),
    ...([
      [4, 0x06054b50],
      [2, 0],
      [2, 0],
      [2, short],
      [2, short],
      [4, long],
      [4, long],
      [2, 0],
    ] as const),
  );
  return sparse(wide + end.length, [
    [0, header("m/large", long)],
    [far, Uint8Array.from([...header("m/small", content.length), ...bytesOf(content)])],
    [start, directory],
    [wide, end],
  ]);
}

it("finds entries beyond 4 GB, without reading the others", () => {
  const { entries } = openArchive(wideArchive(), "wide.pt2");
  expect([...entries].map(([name, { size }]) => [name, size])).toEqual([
    ["large", far - 100],
    ["small", 5],
  ]);
  const small = entries.get("small");
  expect(small === undefined ? null : entryText(small)).toBe("small");
});

it("refuses an entry that is not where the directory says", () => {
  const small = openArchive(wideArchive(far + 8), "wide.pt2").entries.get("small");
  expect(() => small?.read()).toThrow(/no entry m\/small where its directory says/u);
});
