import { invariant, getOrMake, pushTo } from "../support/invariant.ts";

/**
 * The state of a simulated run: which command holds which resource, what waits for it, and when each command ends. Ends
 * move: GEMMs and transfers of one rank share its device, and each is slower beside the other.
 *
 *     GEMM      [=====......====]          each beside the other at 1 / slowdown of its rate,
 *     transfer        [......]             alone at its own
 */
/**
 * Resources that one command at a time can hold. compute: a rank's device. sms: the SMs that a GEMM leaves free, held
 * by a GEMM that leaves none. local: copies within the rank. out, in: a rank's link in each direction; whether copies
 * share it evenly or follow one another, the last one ends at the same time.
 */
export type Resource = `${"compute" | "sms" | "local" | "out" | "in"} ${number}`;

/** The resources of a rank in the combinations that commands hold, made once for all of them. */
export interface RankResources {
  readonly sms: readonly Resource[];
  readonly compute: readonly Resource[];
  /** Of a kernel that leaves no SMs free. */
  readonly kernel: readonly Resource[];
  readonly local: readonly Resource[];
  readonly out: Resource;
  readonly in: Resource;
}

export function resourcesOfRanks(count: number): readonly RankResources[] {
  return Array.from({ length: count }, (_, rank) => ({
    sms: [`sms ${rank}`],
    compute: [`compute ${rank}`],
    kernel: [`sms ${rank}`, `compute ${rank}`],
    local: [`local ${rank}`],
    out: `out ${rank}`,
    in: `in ${rank}`,
  }));
}

/** How a command uses its rank's device: as a GEMM; beside GEMMs, which slows both; or without affecting others. */
export type DeviceUse = "gemm" | "beside" | "none";

export interface WaitingWork<Q> {
  readonly queue: Q;
  readonly rank: number;
  readonly deviceUse: DeviceUse;
  readonly resources: readonly Resource[];
  /** Microseconds. */
  readonly start: number;
  /** As known so far: it moves when the rate changes. */
  readonly end: number;
}

interface Running<Q> extends WaitingWork<Q> {
  end: number;
  /** Microseconds that it would still take alone, at time `since`. */
  left: number;
  since: number;
  isSlow: boolean;
}

export interface Occupancy<Q> {
  /** One of the resources that is held; null if all are free. */
  readonly held: (resources: readonly Resource[]) => Resource | null;
  /** `queue` is called when the resource is free; `isFirst` puts it before queues that have waited longer. */
  readonly wait: (queue: Q, resource: Resource, isFirst?: boolean) => void;
  readonly begin: (work: Omit<WaitingWork<Q>, "start" | "end">, start: number, busy: number) => void;
  /**
   * Called at an announced end. Returns the queues that waited for the freed resources; null if the end has moved or is
   * past.
   */
  readonly finish: (work: WaitingWork<Q>, time: number) => readonly Q[] | null;
}

/**
 * `announce` receives each end, and again each end that has moved. `slowdown`: how many times longer commands take
 * beside each other.
 */
export function createOccupancy<Q>(
  slowdown: number,
  announce: (end: number, work: WaitingWork<Q>) => void,
): Occupancy<Q> {
  const holders = new Set<Resource>();
  const waiting = new Map<Resource, Q[]>();
  const sharing = new Map<number, Running<Q>[]>();

  /** Sets the rates of the commands that share the device of `rank` from `time` on. */
  const pace = (rank: number, time: number): void => {
    const all = sharing.get(rank) ?? [];
    const isShared =
      all.some(({ deviceUse }) => deviceUse === "gemm") && all.some(({ deviceUse }) => deviceUse === "beside");
    for (const work of all) {
      if (work.isSlow === isShared) continue;
      work.left -= (time - work.since) / (work.isSlow ? slowdown : 1);
      work.since = time;
      work.isSlow = isShared;
      work.end = time + Math.max(0, work.left) * (isShared ? slowdown : 1);
      announce(work.end, work);
    }
  };

  return {
    held: (resources) => {
      for (const resource of resources) if (holders.has(resource)) return resource;
      return null;
    },
    wait: (queue, resource, isFirst = false) => {
      const others = getOrMake(waiting, resource, () => []);
      if (isFirst) others.unshift(queue);
      else others.push(queue);
    },
    begin: ({ queue, rank, resources, deviceUse }, start, busy) => {
      for (const resource of resources) holders.add(resource);
      const end = start + busy;
      const work = { queue, rank, resources, deviceUse, start, end, left: busy, since: start, isSlow: false };
      announce(end, work);
      if (deviceUse === "none") return;
      pushTo(sharing, rank, work);
      pace(rank, start);
    },
    finish: (work, time) => {
      if (work.end !== time) return null;
      const { rank, deviceUse, resources } = work;
      if (deviceUse !== "none") {
        const all = sharing.get(rank) ?? [];
        const place = all.findIndex((each) => each === work);
        if (place === -1) return null;
        all.splice(place, 1);
        pace(rank, time);
      }
      let freed: readonly Q[] = [];
      for (const resource of resources) {
        holders.delete(resource);
        const queues = waiting.get(resource);
        if (queues === undefined) continue;
        waiting.delete(resource);
        freed = freed.length === 0 ? queues : [...freed, ...queues];
      }
      return freed;
    },
  };
}

// Future events by time; events at the same time come first in, first out. A binary heap whose times and turns are
// typed arrays, so that an event makes no garbage. Most events are added at the time of the one that was taken last:
// they wait in a list of their own, after all that were in the heap at that time.

export interface Calendar<T> {
  add(time: number, what: T): void;
  /** Removes and returns the first; null if nothing is left. */
  next(): T | null;
  /** The time of the one that was taken last. */
  time(): number;
}

export function createCalendar<T>(): Calendar<T> {
  let times = new Float64Array(64);
  /** The number of events that were added earlier. */
  let turns = new Float64Array(64);
  const whats: T[] = [];
  let added = 0;
  /** Events at `now`, in order; those before `first` are past. */
  const soon: T[] = [];
  let [now, first, taken] = [-Infinity, 0, -Infinity];
  const isBefore = (time: number, turn: number, place: number): boolean => {
    const other = times[place] ?? 0;
    return time < other || (time === other && turn < (turns[place] ?? 0));
  };
  const put = (place: number, time: number, turn: number, what: T): void => {
    times[place] = time;
    turns[place] = turn;
    whats[place] = what;
  };
  const move = (from: number, to: number): void => {
    const what = whats[from];
    invariant(what !== undefined, "a calendar has no empty events");
    put(to, times[from] ?? 0, turns[from] ?? 0, what);
  };
  /** Puts an event in the place of the first. */
  const sink = (time: number, turn: number, what: T): void => {
    let place = 0;
    for (let child = 1; child < whats.length; child = 2 * place + 1) {
      if (child + 1 < whats.length && isBefore(times[child + 1] ?? 0, turns[child + 1] ?? 0, child)) child++;
      if (isBefore(time, turn, child)) break;
      move(child, place);
      place = child;
    }
    put(place, time, turn, what);
  };
  return {
    add: (time, what) => {
      if (time === now) {
        soon.push(what);
        return;
      }
      let place = whats.length;
      if (place === times.length) [times, turns] = [twice(times), twice(turns)];
      const turn = added++;
      while (place > 0) {
        const parent = (place - 1) >> 1;
        if (!isBefore(time, turn, parent)) break;
        move(parent, place);
        place = parent;
      }
      put(place, time, turn, what);
    },
    next: () => {
      const last = whats.length - 1;
      const earliest = last < 0 ? Infinity : (times[0] ?? 0);
      if (first < soon.length && now < earliest) {
        const what = soon[first++];
        invariant(what !== undefined, "a calendar has no empty events");
        if (first === soon.length) first = soon.length = 0;
        taken = now;
        return what;
      }
      const [top, what] = [whats[0], whats.pop()];
      if (top === undefined || what === undefined) return null;
      if (last > 0) sink(times[last] ?? 0, turns[last] ?? 0, what);
      if (soon.length === 0) now = earliest;
      taken = earliest;
      return top;
    },
    time: () => taken,
  };
}

function twice(array: Float64Array): Float64Array<ArrayBuffer> {
  const longer = new Float64Array(2 * array.length);
  longer.set(array);
  return longer;
}
