/** Meshes in dump text: ` (DeviceMesh{0 1})`, ` (DeviceMesh{{0 1}{2 3}})`. */
import { DiagnosticError } from "../../diagnostics/diagnostic.ts";
import { DeviceMesh, type NestedDevices } from "../../ir/device-mesh.ts";
import { at } from "../../support/invariant.ts";
import { failAt } from "./parse-error.ts";
import { expectNumber, failExpected, peek, type Scanner, skipBlanks, take } from "./scanner.ts";
import type { TensorTable } from "./tensor-table.ts";

/** Null where none stands. */
export function parseMesh(scanner: Scanner, { meshes }: TensorTable): DeviceMesh | null {
  if (!take(scanner, " (DeviceMesh")) return null;
  const start = scanner.position;
  const close = scanner.text.indexOf(")", start) + 1;
  const known = close === 0 ? undefined : meshes.get(scanner.text.slice(start, close));
  if (known !== undefined) {
    scanner.position = close;
    return known;
  }
  const devices = parseDevices(scanner, 1);
  if (!take(scanner, ")")) failExpected(scanner, '")" after the mesh');
  try {
    const mesh = new DeviceMesh(devices);
    meshes.set(scanner.text.slice(start, scanner.position), mesh);
    return mesh;
  } catch (error) {
    if (!(error instanceof DiagnosticError)) throw error;
    const { code, message, found = "", expected = "", help = "" } = at(error.diagnostics, 0);
    return failAt(scanner.source, start, { code, message, found, expected, help });
  }
}

function parseDevices(scanner: Scanner, depth: number): NestedDevices {
  if (!take(scanner, "{")) failExpected(scanner, '"{" and device ids');
  const devices: (number | NestedDevices)[] = [];
  for (;;) {
    skipBlanks(scanner);
    if (take(scanner, "}")) return devices;
    if (peek(scanner) !== 123) devices.push(expectNumber(scanner, 'a device id or "}"'));
    else if (depth < 3) devices.push(parseDevices(scanner, depth + 1));
    else failExpected(scanner, "a mesh of at most 3 dimensions");
  }
}
