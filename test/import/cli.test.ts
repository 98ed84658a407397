/** Model files on the command line, with the framework's arguments and results. */
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { deflateRawSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { cli } from "../cli/captured-cli.ts";
import { ownFolder } from "../cli/own-folder.ts";

const models = path.join(import.meta.dirname, "jax");
const [mlp, arrays] = [path.join(models, "mlp-tp.mlir"), path.join(models, "mlp-tp.npz")];

const folder = ownFolder();

/** The archive with the members that `change` answers with; null leaves a member out. */
function repacked(change: (name: string, bytes: Buffer) => Buffer | null, deflate = false): Buffer {
  const archive = readFileSync(arrays);
  const end = archive.lastIndexOf(Buffer.from([0x50, 0x4b, 5, 6]));
  const [parts, entries]: [Buffer[], Buffer[]] = [[], []];
  let [position, offset] = [archive.readUInt32LE(end + 16), 0];
  for (let i = archive.readUInt16LE(end + 10); i > 0; i--) {
    const nameBytes = archive.readUInt16LE(position + 28);
    const rest = archive.readUInt16LE(position + 30) + archive.readUInt16LE(position + 32);
    const name = archive.subarray(position + 46, position + 46 + nameBytes);
    const local = archive.readUInt32LE(position + 42);
    const start = local + 30 + archive.readUInt16LE(local + 26) + archive.readUInt16LE(local + 28);
    const bytes = change(name.toString(), archive.subarray(start, start + archive.readUInt32LE(position + 20)));
    position += 46 + nameBytes + rest;
    if (bytes === null) continue;
    const packed = deflate ? deflateRawSync(bytes) : bytes;
    const head = Buffer.alloc(30);
    head.writeUInt32LE(0x04034b50, 0);
    head.writeUInt16LE(name.length, 26);
    const entry = Buffer.alloc(46);
    entry.writeUInt32LE(0x02014b50, 0);
    entry.writeUInt16LE(deflate ? 8 : 0, 10);
    entry.writeUInt32LE(packed.length, 20);
    entry.writeUInt32LE(bytes.length, 24);
    entry.writeUInt16LE(name.length, 28);
    entry.writeUInt32LE(offset, 42);
    parts.push(head, name, packed);
    entries.push(entry, name);
    offset += 30 + name.length + packed.length;
  }
  const directory = Buffer.concat(entries);
  const tail = Buffer.alloc(22);
  tail.writeUInt32LE(0x06054b50, 0);
  tail.writeUInt16LE(entries.length / 2, 10);
  tail.writeUInt32LE(directory.length, 12);
  tail.writeUInt32LE(offset, 16);
  return Buffer.concat([...parts, directory, tail]);
}

function write(name: string, bytes: Buffer): string {
  const file = path.join(folder.path, name);
  writeFileSync(file, bytes);
  return file;
}

describe("run of a model", () => {
  it("compares with what the framework computed, on the devices of the file", async () => {
    const { status, out } = await cli("run", mlp, "--inputs", arrays, "--expect", arrays);
    expect(out).toMatch(/mlp-tp\.mlir: 4 devices/u);
    expect(out).toMatch(/^result: as in .*mlp-tp\.npz, largest error \d/mu);
    expect(status).toBe(0);
  });

  it("reads deflated archives, and ends with 1 where an element differs", async () => {
    const file = write(
      "other.npz",
      repacked((name, bytes) => {
        if (name !== "out0.npy") return bytes;
        const changed = Buffer.from(bytes);
        changed.writeFloatLE(changed.readFloatLE(changed.length - 4) + 0.001, changed.length - 4);
        return changed;
      }, true),
    );
    const { status, err } = await cli("run", mlp, "--inputs", file, "--expect", file);
    expect(status).toBe(1);
    expect(err).toMatch(
      /error\[check-failed\]: an output differs from the file of --expect\n {2}at: result, element \[31, 63\]/u,
    );
    expect(err).toMatch(/off by 0\.00100/u);
  });

  it("adds the gradients of arguments, which are the slopes", async () => {
    const { status, out } = await cli("run", mlp, "--gradients", "dy", "--check");
    expect([status, out]).toEqual([0, expect.stringMatching(/3 gradients were compared with slopes/u)]);
    const lacking = await cli("run", mlp, "--gradients", "dy=arg1", "--inputs", arrays);
    expect([lacking.status, lacking.err]).toEqual([2, expect.stringMatching(/expected: in3, dy/u)]);
  });

  it.each([
    ["an input that is missing", "in1.npy", "--inputs", /no tensor for input in1/u],
    ["an output that is missing", "out0.npy", "--expect", /has none of the outputs/u],
  ])("refuses %s", async (_, left, flag, message) => {
    const file = write(
      `${flag}.npz`,
      repacked((name, bytes) => (name === left ? null : bytes)),
    );
    const other = flag === "--inputs" ? [] : ["--inputs", arrays];
    const { status, err } = await cli("run", mlp, ...other, flag, file);
    expect([status, err]).toEqual([2, expect.stringMatching(message)]);
  });

  it.each([
    ["cut", (bytes: Buffer) => bytes.subarray(0, 5000), /no directory/u],
    ["without its first bytes", (bytes: Buffer) => bytes.subarray(40), /outside of the file|damaged|other bytes/u],
  ])("refuses an archive that is %s", async (_, damage, message) => {
    const file = write("damaged.npz", damage(readFileSync(arrays)));
    const { status, err } = await cli("run", mlp, "--inputs", file);
    expect([status, err]).toEqual([2, expect.stringMatching(message)]);
  });

  it("refuses a member that unpacks to more than it says", async () => {
    const bomb = repacked(() => Buffer.alloc(1_000_000), true);
    const at = bomb.lastIndexOf(Buffer.from([0x50, 0x4b, 1, 2]));
    for (let entry = bomb.indexOf(Buffer.from([0x50, 0x4b, 1, 2])); entry >= 0 && entry <= at;) {
      bomb.writeUInt32LE(1000, entry + 24);
      entry = bomb.indexOf(Buffer.from([0x50, 0x4b, 1, 2]), entry + 4);
    }
    const { status, err } = await cli("run", mlp, "--inputs", write("bomb.npz", bomb));
    expect([status, err]).toEqual([2, expect.stringMatching(/cannot be unpacked to its 1000 bytes/u)]);
  });

  it("names the line of a model that it refuses, and a file that is not there", async () => {
    const bad = folder.write("bad.mlir", readFileSync(mlp, "utf8").replace("stablehlo.tanh", "stablehlo.fft"));
    const refused = await cli("verify", bad);
    expect([refused.status, refused.err]).toEqual([2, expect.stringMatching(/bad\.mlir:14:10/u)]);
    const absent = await cli("run", "absent.mlir");
    expect([absent.status, absent.err]).toEqual([2, expect.stringMatching(/error\[file-unreadable\]/u)]);
  });
});
