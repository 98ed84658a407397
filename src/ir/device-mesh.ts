/**
 * A DeviceMesh is an immutable n-dimensional arrangement of device ids. As in nvFuser, DIDx is the innermost dimension,
 * then DIDy, then DIDz.
 */
import { fail } from "../diagnostics/diagnostic.ts";
import { firstRepeated } from "../support/first-repeated.ts";
import { at } from "../support/invariant.ts";
import { keysOf } from "../support/keys-of.ts";
import { counted } from "../support/wording.ts";

/** The dimensions of a mesh, innermost first. */
export type DIDType = "DIDx" | "DIDy" | "DIDz";

/** A list of device ids, nested once per mesh dimension: `[0, 1]` or `[[0, 1], [2, 3]]`. */
export type NestedDevices = readonly (number | NestedDevices)[];

const didDimension: { readonly [K in DIDType]: number } = { DIDx: 1, DIDy: 2, DIDz: 3 };

/**
 * Device ids in 1 to 3 dimensions: `new DeviceMesh([0, 1])`, `new DeviceMesh([[0, 1], [2, 3]])`, `DeviceMesh.range(8)`,
 * `DeviceMesh.ofShape([2, 4])`.
 */
export class DeviceMesh {
  /** The length of each mesh dimension, outermost first. */
  readonly shape: readonly number[];
  /** The device ids in row-major order. */
  readonly devices: readonly number[];
  /** Made once: every tensor of a dump prints its mesh. */
  #text: string | undefined;
  /** The position of each device: programs for thousands of ranks ask for each of them. */
  readonly #positions: ReadonlyMap<number, number>;

  /** Throws `mesh-duplicate-device`, `mesh-bad-device`, `mesh-not-rectangular`. */
  constructor(devices: NestedDevices) {
    const place = { kind: "call", text: `new DeviceMesh(${JSON.stringify(devices)})` } as const;
    this.shape = Object.freeze(shapeOf(devices));
    this.devices = Object.freeze(flatten(devices));
    const rectangular = (level: NestedDevices, depth: number): boolean =>
      level.length === this.shape[depth] &&
      level.every((entry) =>
        depth + 1 === this.shape.length
          ? typeof entry === "number"
          : typeof entry !== "number" && rectangular(entry, depth + 1),
      );
    if (!rectangular(devices, 0)) {
      fail({
        code: "mesh-not-rectangular",
        message: "the rows of a DeviceMesh have different lengths",
        place,
        found: JSON.stringify(devices),
        expected: `every list of shape ${JSON.stringify(this.shape)}`,
        help: "give every row the same number of devices",
      });
    }
    const bad = this.devices.find((device) => !Number.isSafeInteger(device) || device < 0);
    if (this.devices.length === 0 || bad !== undefined || this.shape.length > 3) {
      fail({
        code: "mesh-bad-device",
        message: "a DeviceMesh takes 1 to 3 dimensions of device ids",
        place,
        found:
          this.shape.length > 3 ? `${this.shape.length} dimensions` : bad === undefined ? "no device" : String(bad),
        expected: "at least one device, each a whole number of at least 0",
        help: "list the device ids, for example new DeviceMesh([0, 1])",
      });
    }
    const repeated = firstRepeated(this.devices);
    if (repeated !== undefined) {
      fail({
        code: "mesh-duplicate-device",
        message: `device ${repeated} is listed twice in a DeviceMesh`,
        place,
        found: `(${this.devices.join(" ")})`,
        expected: "each device at most once",
        help: `remove the second ${repeated}`,
      });
    }
    this.#positions = new Map(this.devices.map((device, position) => [device, position]));
    Object.freeze(this);
  }

  /** The 1-D mesh of devices 0 .. count-1. Throws `mesh-bad-device`. */
  static range(count: number): DeviceMesh {
    requireSizes(`DeviceMesh.range(${count})`, [count]);
    return new DeviceMesh(devicesFrom(0, [count]));
  }

  /**
   * The mesh of these sizes, outermost first, with its devices numbered row by row: `DeviceMesh.ofShape([hosts, devices /
   * hosts])` has a row per host, so DIDy counts hosts and DIDx the devices of a host. Throws `mesh-bad-device`.
   */
  static ofShape(shape: readonly number[]): DeviceMesh {
    requireSizes(`DeviceMesh.ofShape(${listText(shape)})`, shape);
    return new DeviceMesh(devicesFrom(0, shape));
  }

  has(device: number): boolean {
    return this.#positions.has(device);
  }

  hasAxis(type: DIDType): boolean {
    return didDimension[type] <= this.shape.length;
  }

  /** The number of devices along `type`. Throws `mesh-axis-missing`. */
  size(type: DIDType): number {
    this.#requireAxis(type, "size");
    return at(this.shape, this.shape.length - didDimension[type]);
  }

  /**
   * The devices that differ from `device` only along `type`, in mesh order (nvFuser's getSlice). Throws
   * `mesh-axis-missing` and `mesh-bad-device`.
   */
  slice(device: number, type: DIDType): readonly number[] {
    this.#requireAxis(type, "slice");
    const position = this.#positionOf(device);
    const stride = this.#stride(type);
    const size = this.size(type);
    // One list for all devices, not one for each.
    if (size === this.devices.length) return this.devices;
    const first = position - this.coordinate(device, type) * stride;
    return Array.from({ length: size }, (_, i) => at(this.devices, first + i * stride));
  }

  /** The coordinate of `device` along `type`: 0 .. size(type)-1. Throws `mesh-axis-missing` and `mesh-bad-device`. */
  coordinate(device: number, type: DIDType): number {
    this.#requireAxis(type, "coordinate");
    return Math.floor(this.#positionOf(device) / this.#stride(type)) % this.size(type);
  }

  equals(other: DeviceMesh): boolean {
    const same = (a: readonly number[], b: readonly number[]): boolean =>
      a.length === b.length && a.every((value, i) => value === b[i]);
    return this === other || (same(this.shape, other.shape) && same(this.devices, other.devices));
  }

  /** nvFuser's text: `DeviceMesh{0 1 2}`, `DeviceMesh{{0 1}{2 3}}`. */
  toString(): string {
    this.#text ??= `DeviceMesh${this.#levelText(0, 0, this.devices.length)}`;
    return this.#text;
  }

  #levelText(depth: number, offset: number, span: number): string {
    if (depth + 1 === this.shape.length) return `{${this.devices.slice(offset, offset + span).join(" ")}}`;
    const length = at(this.shape, depth);
    const inner = span / length;
    const parts = Array.from({ length }, (_, i) => this.#levelText(depth + 1, offset + i * inner, inner));
    return `{${parts.join("")}}`;
  }

  #stride(type: DIDType): number {
    return this.shape.slice(this.shape.length - didDimension[type] + 1).reduce((product, size) => product * size, 1);
  }

  #positionOf(device: number): number {
    const position = this.#positions.get(device);
    if (position === undefined) {
      fail({
        code: "mesh-bad-device",
        message: `device ${device} is not in the mesh`,
        place: { kind: "tensor", text: this.toString() },
        found: String(device),
        expected: `one of (${this.devices.join(" ")})`,
        help: "ask only for devices of the mesh",
      });
    }
    return position;
  }

  #requireAxis(type: DIDType, call: string): void {
    if (this.hasAxis(type)) return;
    fail({
      code: "mesh-axis-missing",
      message: `the mesh has no ${type} dimension`,
      place: { kind: "call", text: `${this.toString()}.${call}("${type}")` },
      found: `a mesh of ${this.shape.length} dimension${this.shape.length === 1 ? "" : "s"}`,
      expected: `at least ${didDimension[type]} dimensions`,
      help: `nest the device list ${didDimension[type]} levels deep, or use another DID type`,
    });
  }
}

function shapeOf(devices: NestedDevices): number[] {
  const first = devices[0];
  return first === undefined || typeof first === "number" ? [devices.length] : [devices.length, ...shapeOf(first)];
}

function flatten(devices: NestedDevices): number[] {
  return devices.flatMap((entry) => (typeof entry === "number" ? [entry] : flatten(entry)));
}

/** Device ids from `first` on, row by row. */
function devicesFrom(first: number, [size = 0, ...inner]: readonly number[]): NestedDevices {
  const span = inner.reduce((product, each) => product * each, 1);
  return Array.from({ length: size }, (_, i) =>
    inner.length === 0 ? first + i : devicesFrom(first + i * span, inner),
  );
}

/** `2 devices along DIDx of a mesh of shape [DIDy 4, DIDx 2]`. Not all devices: a mesh may have thousands. */
export function devicesAlong(mesh: DeviceMesh, type: DIDType): string {
  const size = mesh.size(type);
  const dimensions = keysOf(didDimension).filter((each) => mesh.hasAxis(each));
  const shape = dimensions.toReversed().map((each) => `${each} ${mesh.size(each)}`);
  return `${counted(size, "device")} along ${type} of a mesh of shape ${listText(shape)}`;
}

function listText(entries: readonly (number | string)[]): string {
  return `[${entries.join(", ")}]`;
}

function requireSizes(call: string, shape: readonly number[]): void {
  const isShape = shape.length >= 1 && shape.length <= 3;
  const bad = shape.find((size) => !Number.isSafeInteger(size) || size < 1);
  if (isShape && bad === undefined) return;
  fail({
    code: "mesh-bad-device",
    message: isShape ? "a size of a DeviceMesh is not a number of devices" : "a DeviceMesh has 1 to 3 dimensions",
    place: { kind: "call", text: call },
    found: bad === undefined ? `${shape.length} dimensions` : String(bad),
    expected: "sizes that are whole numbers of at least 1, outermost first",
    help: "pass the number of devices along each dimension; their product is the number of devices of the mesh",
  });
}
