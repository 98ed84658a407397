/**
 * Random host programs of three ranks: workers make, read, exchange and deallocate tensors, and wait for each other now
 * and then. Most are wrong under some model.
 */
import { DeviceMesh, HostProgramBuilder, type HostProgram } from "@braid-compiler/braid";
import { at } from "../../../src/support/invariant.ts";
import type { Random } from "../../../src/support/random.ts";

export const devices = 3;
const workers = 2;

type Step =
  | { readonly kind: "switch"; readonly worker: number }
  | { readonly kind: "synchronize"; readonly worker: number }
  | { readonly kind: "make" | "read" | "deallocate"; readonly tensor: number; readonly row: number }
  | {
      readonly kind: "send";
      readonly tensor: number;
      readonly from: number;
      readonly to: number;
      readonly into: number;
    }
  | { readonly kind: "wait" };

/** The host program of every rank. */
export function randomHosts(random: Random, length: number): (rank: number) => HostProgram {
  const steps = randomSteps(random, length);
  const coalesced = random.integer(3) === 0;
  return (rank) => hostOf(rank, steps, coalesced);
}

function randomSteps(random: Random, length: number): readonly Step[] {
  const steps: Step[] = [];
  const alive: number[] = [];
  let made = 0;
  for (let row = 0; row < length; row++) {
    const index = random.integer(Math.max(1, alive.length));
    const tensor = alive[index];
    switch (random.integer(tensor === undefined ? 3 : 8)) {
      case 0:
        steps.push({ kind: "switch", worker: random.integer(workers) });
        break;
      case 1:
        steps.push({ kind: "synchronize", worker: random.integer(workers) });
        break;
      case 2:
        alive.push(made);
        steps.push({ kind: "make", tensor: made++, row });
        break;
      case 3:
      case 4:
        steps.push({ kind: "read", tensor: tensor ?? 0, row });
        break;
      case 5:
        alive.splice(index, 1);
        steps.push({ kind: "deallocate", tensor: tensor ?? 0, row });
        break;
      case 6: {
        const from = random.integer(devices);
        const to = (from + 1 + random.integer(devices - 1)) % devices;
        alive.push(made);
        steps.push({ kind: "send", tensor: tensor ?? 0, from, to, into: made++ });
        break;
      }
      default:
        steps.push({ kind: "wait" });
    }
  }
  return steps;
}

function hostOf(rank: number, steps: readonly Step[], coalesced: boolean): HostProgram {
  const h = new HostProgramBuilder();
  const mesh = { mesh: DeviceMesh.range(devices) };
  const x = h.input([steps.length, 4], mesh);
  const y = h.tensor([steps.length, 4], mesh);
  h.output(y);
  const tensors = steps.flatMap(({ kind }) => (kind === "make" || kind === "send" ? [h.tensor([4], mesh)] : []));
  const streams = Array.from({ length: workers }, (_, worker) => h.stream(worker));
  h.set(x, { out: y });
  const caller = h.getCurrentStream();
  for (const stream of streams.toReversed()) {
    h.setCurrentStream(stream);
    h.synchronize(caller);
  }
  const posted: (() => void)[] = [];
  for (const step of steps) {
    switch (step.kind) {
      case "switch":
        h.setCurrentStream(at(streams, step.worker));
        break;
      case "synchronize":
        h.synchronize(at(streams, step.worker));
        break;
      case "make":
        h.add(h.select(x, 0, step.row), h.select(x, 0, step.row), { out: h.allocate(at(tensors, step.tensor)) });
        break;
      case "read":
        h.add(at(tensors, step.tensor), at(tensors, step.tensor), { out: h.select(y, 0, step.row) });
        break;
      case "deallocate":
        h.deallocate(at(tensors, step.tensor));
        break;
      case "send": {
        const into = h.allocate(at(tensors, step.into));
        h.set(h.select(x, 0, 0), { out: into });
        if (rank !== step.from && rank !== step.to) break;
        if (coalesced) h.startCoalescing();
        const half =
          rank === step.from ? h.send(at(tensors, step.tensor), { peer: step.to }) : h.recv(into, { peer: step.from });
        const what = coalesced ? h.endCoalescing() : half;
        posted.push(() => h.wait(what));
        break;
      }
      case "wait":
        posted.shift()?.();
    }
  }
  for (const wait of posted) wait();
  h.setCurrentStream(caller);
  for (const stream of streams) h.synchronize(stream);
  return h.build();
}
