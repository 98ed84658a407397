/**
 * A DeviceMesh is an immutable n-dimensional arrangement of device ids. As in nvFuser, DIDx is the innermost dimension,
 * then DIDy, then DIDz. Dimensions may have names of the user, which messages print and programs may use in place of
 * DID types. A tensor's axes store DID types alone, so names change nothing but messages.
 */
import { fail } from "../diagnostics/diagnostic.ts";
import { at } from "../support/invariant.ts";
import { counted } from "../support/wording.ts";
import { type DIDType, type DimensionName, didTypes, parallelTypes } from "./parallel-type.ts";

/** A list of device ids, nested once per mesh dimension: `[0, 1]` or `[[0, 1], [2, 3]]`. */
export type NestedDevices = readonly (number | NestedDevices)[];

const dimensions = `1 to ${didTypes.length} dimensions`;

/**
 * Device ids in 1 to 6 dimensions: `new DeviceMesh([0, 1])`, `new DeviceMesh([[0, 1], [2, 3]])`, `DeviceMesh.range(8)`,
 * `DeviceMesh.ofShape([2, 4])`, `DeviceMesh.of({ dp: 2, tp: 4 })`.
 */
export class DeviceMesh {
  /** The length of each mesh dimension, outermost first. */
  readonly shape: readonly number[];
  /** The device ids in row-major order. */
  readonly devices: readonly number[];
  /** The user's names of the dimensions, outermost first; empty if they have none. */
  readonly names: readonly string[];
  /** Made once: every tensor of a dump prints its mesh. */
  #text: string | undefined;
  /** The position of each device: programs for thousands of ranks ask for each of them. */
  readonly #positions: ReadonlyMap<number, number>;
  /** The level of each DID type and name: 0 for the innermost dimension. */
  readonly #levels: ReadonlyMap<string, number>;
  /** The teams along the dimension of a level, made once: one list for all devices of a team. */
  readonly #teams = new Map<number, readonly (readonly number[])[]>();

  /**
   * `names` are those of the dimensions, outermost first. Throws `mesh-duplicate-device`, `mesh-bad-device`,
   * `mesh-not-rectangular`, `mesh-bad-name`.
   */
  constructor(devices: NestedDevices, names: readonly string[] = []) {
    const given = names.length === 0 ? "" : `, ${JSON.stringify(names)}`;
    const place = { kind: "call", text: `new DeviceMesh(${JSON.stringify(devices)}${given})` } as const;
    requireList(place.text, devices);
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
      fail("mesh-not-rectangular", "the rows of a DeviceMesh have different lengths", {
        place,
        found: JSON.stringify(devices),
        expected: `every list of shape ${JSON.stringify(this.shape)}`,
        help: "give every row the same number of devices",
      });
    }
    const bad = this.devices.find((device) => !Number.isSafeInteger(device) || device < 0);
    if (this.devices.length === 0 || bad !== undefined || this.shape.length > didTypes.length) {
      fail("mesh-bad-device", `a DeviceMesh takes ${dimensions} of device ids`, {
        place,
        found:
          this.shape.length > didTypes.length
            ? `${this.shape.length} dimensions`
            : bad === undefined
              ? "no device"
              : String(bad),
        expected: "at least one device, each a whole number of at least 0",
        help: "list the device ids, for example new DeviceMesh([0, 1])",
      });
    }
    const repeated = firstRepeated(this.devices);
    if (repeated !== undefined) {
      fail("mesh-duplicate-device", `device ${repeated} is listed twice in a DeviceMesh`, {
        place,
        found: `(${this.devices.join(" ")})`,
        expected: "each device at most once",
        help: `remove the second ${repeated}`,
      });
    }
    if (names.length > 0) requireNames(names, this.shape.length, place.text);
    this.names = Object.freeze([...names]);
    this.#positions = new Map(this.devices.map((device, position) => [device, position]));
    this.#levels = new Map([
      ...didTypes.slice(0, this.shape.length).map((type, level) => [type, level] as const),
      ...names.toReversed().map((name, level) => [name, level] as const),
    ]);
    Object.freeze(this);
  }

  /** The 1-D mesh of devices 0 .. count-1. Throws `mesh-bad-device`, also for a range that begins elsewhere. */
  static range(count: number, ...none: readonly []): DeviceMesh {
    const call = `DeviceMesh.range(${[count, ...none].join(", ")})`;
    requireSizes(call, [count]);
    if (none.length > 0) notFromZero(call);
    return new DeviceMesh(devicesFrom(0, [count]));
  }

  /**
   * The mesh of these sizes, outermost first, with its devices numbered row by row: `DeviceMesh.ofShape([hosts, devices /
   * hosts])` has a row per host, so DIDy counts hosts and DIDx the devices of a host. Throws `mesh-bad-device`.
   */
  static ofShape(shape: readonly number[]): DeviceMesh {
    const call = `DeviceMesh.ofShape(${JSON.stringify(shape)})`;
    requireList(call, shape, "list the sizes, for example DeviceMesh.ofShape([2, 4])");
    requireSizes(call, shape);
    return new DeviceMesh(devicesFrom(0, shape));
  }

  /**
   * The mesh with these sizes and names of dimensions, outermost first, and its devices numbered row by row:
   * `DeviceMesh.of({ dp: 2, tp: 4 })`. Its innermost dimension, `tp`, is DIDx. Throws `mesh-bad-device`,
   * `mesh-bad-name`.
   */
  static of(sizes: Readonly<Record<string, number>>): DeviceMesh {
    const call = `DeviceMesh.of(${JSON.stringify(sizes)})`;
    const [names, shape] = [Object.keys(sizes), Object.values(sizes)];
    requireSizes(call, shape);
    requireNames(names, shape.length, call);
    return new DeviceMesh(devicesFrom(0, shape), names);
  }

  has(device: number): boolean {
    return this.#positions.has(device);
  }

  /** Whether the mesh has a dimension with this DID type or name. */
  hasAxis(dimension: DIDType | DimensionName): boolean {
    return this.#levels.has(dimension);
  }

  /** The DID type of the dimension with this DID type or name. Throws `mesh-axis-missing`. */
  didType(dimension: DIDType | DimensionName): DIDType {
    return at(didTypes, this.#level(dimension, "didType"));
  }

  /** The user's name of the dimension; without one, its DID type. */
  nameOf(type: DIDType): DIDType | DimensionName {
    return this.names.at(-1 - didTypes.indexOf(type)) ?? type;
  }

  /** The number of devices along a dimension. Throws `mesh-axis-missing`. */
  size(dimension: DIDType | DimensionName): number {
    return at(this.shape, this.shape.length - 1 - this.#level(dimension, "size"));
  }

  /**
   * The devices that differ from `device` only along a dimension, in mesh order (nvFuser's getSlice). Throws
   * `mesh-axis-missing` and `mesh-bad-device`.
   */
  slice(device: number, dimension: DIDType | DimensionName): readonly number[] {
    const level = this.#level(dimension, "slice");
    const position = this.#positionOf(device);
    const size = this.size(dimension);
    if (size === this.devices.length) return this.devices;
    const stride = this.#stride(level);
    const teams = this.#teams.get(level) ?? this.#teamsAlong(stride, size);
    this.#teams.set(level, teams);
    return at(teams, Math.floor(position / (stride * size)) * stride + (position % stride));
  }

  #teamsAlong(stride: number, size: number): readonly (readonly number[])[] {
    return Array.from({ length: this.devices.length / size }, (_, team) => {
      const first = Math.floor(team / stride) * stride * size + (team % stride);
      return Object.freeze(Array.from({ length: size }, (_, i) => at(this.devices, first + i * stride)));
    });
  }

  /** The coordinate of `device` along a dimension, from 0. Throws `mesh-axis-missing` and `mesh-bad-device`. */
  coordinate(device: number, dimension: DIDType | DimensionName): number {
    const stride = this.#stride(this.#level(dimension, "coordinate"));
    return Math.floor(this.#positionOf(device) / stride) % this.size(dimension);
  }

  /** Whether devices are arranged alike. Names do not matter. */
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

  #stride(level: number): number {
    return this.shape.slice(this.shape.length - level).reduce((product, size) => product * size, 1);
  }

  #positionOf(device: number): number {
    const position = this.#positions.get(device);
    if (position === undefined) {
      fail("mesh-bad-device", `device ${device} is not in the mesh`, {
        place: { kind: "tensor", text: this.toString() },
        found: String(device),
        expected: `one of (${this.devices.join(" ")})`,
        help: "ask only for devices of the mesh",
      });
    }
    return position;
  }

  #level(dimension: string, call: string): number {
    const level = this.#levels.get(dimension);
    if (level !== undefined) return level;
    fail("mesh-axis-missing", `the mesh has no dimension ${dimension}`, {
      place: { kind: "call", text: `${this.toString()}.${call}(${JSON.stringify(dimension)})` },
      found: `a mesh of shape ${meshShapeText(this)}`,
      expected: [...this.#levels.keys()].join(", "),
      help: "use a dimension of the mesh, or make the mesh with this dimension",
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

/** `2 devices along tp of a mesh of shape [dp 4, tp 2]`. Not all devices: a mesh may have thousands. */
export function devicesAlong(mesh: DeviceMesh, type: DIDType): string {
  return `${counted(mesh.size(type), "device")} along ${mesh.nameOf(type)} of a mesh of shape ${meshShapeText(mesh)}`;
}

/** `[dp 4, tp 2]`; without names, `[DIDy 4, DIDx 2]`. */
export function meshShapeText(mesh: DeviceMesh): string {
  const types = didTypes.filter((type) => mesh.hasAxis(type)).toReversed();
  return listText(types.map((type) => `${mesh.nameOf(type)} ${mesh.size(type)}`));
}

function listText(entries: readonly (number | string)[]): string {
  return `[${entries.join(", ")}]`;
}

/** Of a program without types. */
function requireList(call: string, given: unknown, help = "list the device ids, for example new DeviceMesh([0, 1])") {
  if (Array.isArray(given)) return;
  fail("mesh-bad-device", "what a DeviceMesh is made of is not a list", {
    place: { kind: "call", text: call },
    found: String(given),
    expected: "a list of numbers",
    help,
  });
}

function notFromZero(call: string): never {
  return fail("mesh-bad-device", "DeviceMesh.range counts devices from 0", {
    place: { kind: "call", text: call },
    found: "another argument",
    expected: "the number of devices",
    help: "list other devices: new DeviceMesh([2, 3])",
  });
}

function requireSizes(call: string, shape: readonly number[]): void {
  const isShape = shape.length >= 1 && shape.length <= didTypes.length;
  const bad = shape.find((size) => !Number.isSafeInteger(size) || size < 1);
  if (isShape && bad === undefined) return;
  fail({
    code: "mesh-bad-device",
    message: isShape ? "a size of a DeviceMesh is not a number of devices" : `a DeviceMesh has ${dimensions}`,
    place: { kind: "call", text: call },
    found: bad === undefined ? `${shape.length} dimensions` : String(bad),
    expected: "sizes that are whole numbers of at least 1, outermost first",
    help: "pass the number of devices along each dimension; their product is the number of devices of the mesh",
  });
}

/** A name that begins with a digit would change places in `DeviceMesh.of({ ... })`. */
function requireNames(names: readonly string[], dimensionCount: number, call: string): void {
  const reserved: ReadonlySet<string> = new Set(parallelTypes);
  const isBad = (name: string, i: number): boolean =>
    !/^[A-Za-z_]\w{0,63}$/u.test(name) || reserved.has(name) || names.indexOf(name) < i;
  const list: unknown = names;
  const bad = Array.isArray(list) ? names.find(isBad) : String(list);
  if (bad === undefined && names.length === dimensionCount) return;
  fail("mesh-bad-name", "names of a DeviceMesh do not fit its dimensions", {
    place: { kind: "call", text: call },
    found:
      bad === undefined ? `${names.length} names for ${counted(dimensionCount, "dimension")}` : JSON.stringify(bad),
    expected: "a name for each dimension: a letter or _, then letters, digits and _; no parallel type; each name once",
    help: "choose names such as dp and tp",
  });
}

/** The first number that occurs a second time; undefined if each occurs once. Ascending lists, the usual ones, need no set. */
export function firstRepeated(numbers: readonly number[]): number | undefined {
  if (numbers.every((number, i) => i === 0 || number > (numbers[i - 1] ?? NaN))) return undefined;
  const seen = new Set<number>();
  return numbers.find((number) => seen.size === seen.add(number).size);
}

/** Whether the meshes have as many devices along each dimension. */
export function sameMeshShape({ shape: a }: DeviceMesh, { shape: b }: DeviceMesh): boolean {
  return a.length === b.length && a.every((size, i) => size === b[i]);
}
