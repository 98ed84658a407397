/**
 * Other machines and numbers of devices, for `braid explain --what-if`: the measured profile with faster or slower GEMMs,
 * links or memories. Latencies stay as they were measured: a link's rate changes only what each further byte costs.
 */
import { fail } from "../diagnostics/diagnostic.ts";
import type { MachineProfile, Timing } from "../simulate/machine-profile.ts";
import { isOneOf } from "../support/is-one-of.ts";
import { suggestion } from "../support/nearest.ts";

export interface Changes {
  /** The number of devices; null for the same. */
  readonly devices: number | null;
  readonly profile: MachineProfile;
}

const names = ["gemm", "link", "memory", "devices"] as const;

/** Throws `option-value` for a name or a unit that it does not know. */
export function changed(profile: MachineProfile, changes: ReadonlyMap<string, string>): Changes {
  let result: Changes = { devices: null, profile };
  for (const [name, text] of changes) {
    const value = Number.parseFloat(text);
    const unit = text.replace(/^[\d.]+/u, "");
    if (name === "gemm" && unit === "x" && value > 0) {
      result = { ...result, profile: withGemms(result.profile, value) };
    } else if (name === "link" && unit === "x" && value > 0) {
      result = { ...result, profile: withLinks(result.profile, value) };
    } else if (name === "link" && unit === "GB/s" && value > 0) {
      result = { ...result, profile: withLinks(result.profile, value / linkRate(result.profile)) };
    } else if (name === "memory" && unit === "x" && value > 0) {
      result = { ...result, profile: withMemory(result.profile, value) };
    } else if (name === "devices" && unit === "" && Number.isSafeInteger(value) && value > 0) {
      result = { ...result, devices: value };
    } else unknownChange(name, text);
  }
  return result;
}

/** GB/s of a long copy between two devices, in one direction. */
function linkRate({ peerCopies }: MachineProfile): number {
  return 1e-3 / costPerByte(peerCopies);
}

function withGemms(profile: MachineProfile, factor: number): MachineProfile {
  const products = profile.products.map((grid) => ({
    ...grid,
    teraflops: grid.teraflops.map((each) => each * factor),
  }));
  return { ...profile, products };
}

function withLinks(profile: MachineProfile, factor: number): MachineProfile {
  const { reductionsInPeers } = profile;
  return {
    ...profile,
    peerCopies: faster(profile.peerCopies, factor),
    kernelCopies: faster(profile.kernelCopies, factor),
    ...(reductionsInPeers === undefined ? {} : { reductionsInPeers: faster(reductionsInPeers, factor) }),
    transfers: profile.transfers.map((each) => ({ ...each, timings: faster(each.timings, factor) })),
  };
}

function withMemory(profile: MachineProfile, factor: number): MachineProfile {
  const { reductions } = profile;
  return {
    ...profile,
    memory: faster(profile.memory, factor),
    localCopies: faster(profile.localCopies, factor),
    ...(reductions === undefined
      ? {}
      : { reductions: reductions.map((each) => ({ ...each, timings: faster(each.timings, factor) })) }),
  };
}

/** Each byte takes 1 / factor of what it takes in long copies; the rest of a time is latency. */
function faster(timings: readonly Timing[], factor: number): readonly Timing[] {
  const saved = costPerByte(timings) * (1 - 1 / factor);
  return timings.map(({ bytes, microseconds }) => ({
    bytes,
    microseconds: Math.max(microseconds - saved * bytes, microseconds / Math.max(1, factor)),
  }));
}

/** Microseconds for each further byte of a long one. */
function costPerByte(timings: readonly Timing[]): number {
  const [before, last] = timings.slice(-2);
  if (before === undefined) return 0;
  if (last === undefined) return before.microseconds / Math.max(1, before.bytes);
  return (last.microseconds - before.microseconds) / (last.bytes - before.bytes);
}

function unknownChange(name: string, text: string): never {
  return fail({
    code: "option-value",
    message: "this is no change of a machine",
    place: { kind: "option", text: "--what-if" },
    found: `${name}=${text}`,
    expected: "gemm=1.2x, link=2x, link=900GB/s, memory=1.5x or devices=16",
    help: isOneOf(names, name)
      ? "give a factor with x, a rate with GB/s, or for devices a whole number"
      : suggestion(name, names, "use gemm, link, memory or devices"),
  });
}
