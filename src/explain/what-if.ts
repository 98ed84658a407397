/**
 * Other machines and numbers of devices, for `braid explain --what-if`: the measured profile with faster or slower GEMMs,
 * links, memories or networks. Latencies stay as they were measured: a rate changes only what each further byte costs.
 */
import { fail } from "../diagnostics/diagnostic.ts";
import { type BetweenHosts, type MachineProfile, networkOf, type Timing } from "../simulate/machine-profile.ts";
import { isOneOf } from "../support/invariant.ts";
import { suggestion } from "../support/wording.ts";

/** The devices of a run; `devicesPerHost` omitted: all on one host. */
export interface Machines {
  readonly devices: number;
  readonly devicesPerHost?: number | undefined;
}

const names = ["gemm", "link", "memory", "network", "devices", "hosts"] as const;

/** Microseconds of a small transfer between two hosts, where none was measured: usual of InfiniBand and NCCL. */
export const usualLatency = 25;

/** Network interfaces of a host, where none were counted: one per GPU, as in most hosts of eight. */
const usualNics = 8;

/** The machine with other rates. Throws `option-value` for a name or a unit that it does not know. */
export function changed(profile: MachineProfile, changes: ReadonlyMap<string, string>): MachineProfile {
  let result = profile;
  for (const [name, text] of changes) {
    const value = Number.parseFloat(text);
    const unit = text.replace(/^[\d.]+/u, "");
    if (countOf(name, text) !== null) continue;
    if (name === "gemm" && unit === "x" && value > 0) result = withGemms(result, value);
    else if (name === "link" && unit === "x" && value > 0) result = withLinks(result, value);
    else if (name === "link" && unit === "GB/s" && value > 0) result = withLinks(result, value / linkRate(result));
    else if (name === "memory" && unit === "x" && value > 0) result = withMemory(result, value);
    else if (name === "network" && unit === "x" && value > 0 && result.betweenHosts !== undefined) {
      result = withNetwork(result, result.betweenHosts, value);
    } else if (name === "network" && unit === "GB/s" && value > 0) {
      const { nics } = result.betweenHosts ?? { nics: usualNics };
      result = { ...result, betweenHosts: networkOf({ rate: value, latency: latencyOf(result), nics }) };
    } else unknownChange(name, text);
  }
  return result;
}

/** A machine on which only latencies take time. */
export function withEndlessRates(profile: MachineProfile): MachineProfile {
  const within = withMemory(withLinks(withGemms(profile, endless), endless), endless);
  return within.betweenHosts === undefined ? within : withNetwork(within, within.betweenHosts, endless);
}

const endless = 1e6;

/** More or fewer devices, or hosts of as many devices. Throws `option-value`. */
export function changedMachines(machines: Machines, changes: ReadonlyMap<string, string>): Machines {
  const { devices, devicesPerHost = devices } = machines;
  const counts = new Map<string, number>();
  for (const name of ["devices", "hosts"] as const) {
    const text = changes.get(name);
    if (text === undefined) continue;
    const count = countOf(name, text);
    if (count === null) unknownChange(name, text);
    counts.set(name, count);
  }
  const hosts = counts.get("hosts");
  if (hosts === undefined) return { ...machines, devices: counts.get("devices") ?? devices };
  if (counts.has("devices")) bothCounts(hosts);
  return { devices: hosts * Math.min(devices, devicesPerHost), devicesPerHost };
}

function bothCounts(hosts: number): never {
  return fail("option-value", "hosts and devices contradict each other", {
    place: { kind: "option", text: "--what-if" },
    found: `hosts=${hosts} and devices`,
    expected: "hosts, each with the devices of --devices-per-host or else of --devices; or devices alone",
    help: "leave one of them out, and give --devices-per-host if hosts are to have other devices",
  });
}

/** Null for other changes, and for a number that is none. */
function countOf(name: string, text: string): number | null {
  const count = Number(text);
  return (name === "devices" || name === "hosts") && Number.isSafeInteger(count) && count > 0 ? count : null;
}

function latencyOf({ betweenHosts }: MachineProfile): number {
  return betweenHosts?.transfers[0]?.timings[0]?.microseconds ?? usualLatency;
}

function withNetwork(profile: MachineProfile, network: BetweenHosts, factor: number): MachineProfile {
  const transfers = network.transfers.map((each) => ({ ...each, timings: faster(each.timings, factor) }));
  return { ...profile, betweenHosts: { ...network, transfers } };
}

/** GB/s of a long copy between two devices, in one direction. */
export function linkRate({ peerCopies }: MachineProfile): number {
  return 1e-3 / costPerByte(peerCopies);
}

function withGemms(profile: MachineProfile, factor: number): MachineProfile {
  const products = profile.products.map((grid) => ({
    ...grid,
    teraflops: grid.teraflops.map((each) => each * factor),
  }));
  if (profile.attention === undefined) return { ...profile, products };
  const attention = profile.attention.map((each) => ({
    ...each,
    forward: each.forward.map((rate) => rate * factor),
    backward: each.backward.map((rate) => rate * factor),
  }));
  return { ...profile, products, attention };
}

function withLinks(profile: MachineProfile, factor: number): MachineProfile {
  const { reductionsInPeers } = profile;
  return {
    ...profile,
    peerCopies: faster(profile.peerCopies, factor),
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
  return fail("option-value", "this is no change of a machine", {
    place: { kind: "option", text: "--what-if" },
    found: `${name}=${text}`,
    expected: "gemm=1.2x, link=2x, link=900GB/s, memory=1.5x, network=50GB/s, devices=16 or hosts=16",
    help:
      name === "network"
        ? "give the rate of a network interface with GB/s; a factor with x needs a profile with betweenHosts"
        : isOneOf(names, name)
          ? "give a factor with x, a rate with GB/s, or for devices and hosts a whole number"
          : suggestion(name, names, `use ${names.slice(0, -1).join(", ")} or ${names.at(-1)}`),
  });
}
