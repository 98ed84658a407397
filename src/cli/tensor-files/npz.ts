/**
 * Files of named arrays as `numpy.savez` writes them: a zip archive with a .npy file for each. Members are stored or
 * deflated. Nothing is unpacked that is larger than its entry says.
 */
import { inflateRawSync } from "node:zlib";
import { npyTensor } from "./npy.ts";
import { invalidFile, type StoredTensor, type TensorFile } from "./stored-tensor.ts";

/** A tensor of an archive. `bytes`: its member, with the header of the .npy file. */
export interface ArchivedTensor {
  readonly stored: StoredTensor;
  readonly bytes: Uint8Array;
}

const [endMark, entryMark] = [0x06_05_4b_50, 0x02_01_4b_50];
/** The end of an archive has a comment of at most 65,535 bytes. */
const mostEndBytes = 65_557;

/** The members by name, each read when it is asked for. Throws `tensor-file-invalid`. */
export async function npzTensors(file: TensorFile): Promise<ReadonlyMap<string, () => Promise<ArchivedTensor>>> {
  const { path, bytes, read } = file;
  const tail = viewOf(await read(Math.max(0, bytes - mostEndBytes), mostEndBytes));
  let end = tail.byteLength - 22;
  while (end >= 0 && tail.getUint32(end, true) !== endMark) end--;
  if (end < 0) return notNpz(path, "no directory at the end of the file");
  const [count, size, start] = [
    tail.getUint16(end + 10, true),
    tail.getUint32(end + 12, true),
    tail.getUint32(end + 16, true),
  ];
  if (start + size > bytes) return notNpz(path, "a directory outside of the file");
  const directory = await read(start, size);
  const view = viewOf(directory);
  const found = new Map<string, () => Promise<ArchivedTensor>>();
  let position = 0;
  for (let i = 0; i < count; i++) {
    if (position + 46 > size || view.getUint32(position, true) !== entryMark)
      return notNpz(path, "a damaged directory");
    const [nameBytes, extra, comment] = [28, 30, 32].map((each) => view.getUint16(position + each, true));
    const name = new TextDecoder().decode(directory.subarray(position + 46, position + 46 + (nameBytes ?? 0)));
    const member: Member = {
      name: name.replace(/\.npy$/u, ""),
      isDeflated: view.getUint16(position + 10, true) === 8,
      packed: view.getUint32(position + 20, true),
      unpacked: view.getUint32(position + 24, true),
      start: view.getUint32(position + 42, true),
    };
    if (!member.isDeflated && view.getUint16(position + 10, true) !== 0)
      return notNpz(path, `${name}, packed by another method`);
    found.set(member.name, () => readMember(file, member));
    position += 46 + (nameBytes ?? 0) + (extra ?? 0) + (comment ?? 0);
  }
  return found;
}

interface Member {
  readonly name: string;
  readonly isDeflated: boolean;
  readonly packed: number;
  readonly unpacked: number;
  readonly start: number;
}

async function readMember({ path, read }: TensorFile, member: Member): Promise<ArchivedTensor> {
  const local = viewOf(await read(member.start, 30));
  if (local.byteLength < 30) return notNpz(path, `${member.name} outside of the file`);
  const first = member.start + 30 + local.getUint16(26, true) + local.getUint16(28, true);
  const packed = await read(first, member.packed);
  const bytes = member.isDeflated ? inflated(path, member, packed) : packed;
  if (bytes.length !== member.unpacked) return notNpz(path, `${member.name} of another size than its entry says`);
  const within = (start: number, length: number): Promise<Uint8Array> =>
    Promise.resolve(bytes.slice(start, start + length));
  const stored = await npyTensor({ path: `${path} (${member.name})`, bytes: bytes.length, read: within });
  return { stored: { ...stored, name: member.name }, bytes };
}

function inflated(path: string, { name, unpacked }: Member, packed: Uint8Array): Uint8Array {
  try {
    return inflateRawSync(packed, { maxOutputLength: Math.max(unpacked, 1) });
  } catch {
    return notNpz(path, `${name}, which cannot be unpacked to its ${unpacked} bytes`);
  }
}

function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

function notNpz(path: string, found: string): never {
  return invalidFile(path, {
    found,
    expected: "a .npz file as numpy.savez writes it",
    help: "save the arrays with np.savez(path, in0=x, in1=w)",
  });
}
