/** What a curve varies, and the points of it. */
import type { Variant } from "../compiler/messages.ts";
import { devicesOf, hostsOf } from "./inputs.ts";
import type { State } from "./state.ts";

export interface CurvePoint {
  readonly x: number;
  readonly variant: Variant;
}

/** The number of devices, by this name, which no parameter has. */
const devicesAxis = "devices";

const counts = [1, 2, 4, 8, 16];

/** Numbers around the present one; chunks from one. `usual`: the parameter's default. */
export function pointsOf(state: State, axis: string, usual: number | string | undefined): readonly CurvePoint[] {
  const devices = devicesOf(state) ?? 1;
  if (axis === devicesAxis)
    return counts.map((x) => ({ x, variant: { devices: x, hosts: hostsOf(state, x), params: state.params } }));
  const present = Number(state.params[axis] ?? usual);
  if (!Number.isFinite(present) || present < 1) return [];
  const values =
    present <= 64 ? [1, 2, 4, 8, 16, 32, 64] : [1 / 8, 1 / 4, 1 / 2, 1, 2, 4].map((by) => Math.round(present * by));
  const all = [...new Set([...values, present])].filter((value) => value >= 1).sort((a, b) => a - b);
  const hosts = hostsOf(state, devices);
  return all.map((x) => ({ x, variant: { devices, hosts, params: { ...state.params, [axis]: String(x) } } }));
}

/** Parameters that are numbers. */
export function axesOf(defaults: Readonly<Record<string, number | string>>): readonly string[] {
  return [...Object.keys(defaults).filter((name) => typeof defaults[name] === "number"), devicesAxis];
}
