/**
 * What is under way at a time of a simulated run: who holds which resource, who waits for it, and when each thing ends. Ends move: products and transfers of
 * one rank share its device, and beside each other both go slower.
 *
 *     product   [=====......====]          each beside the other at 1 / slowdown of its rate,
 *     transfer        [......]             alone at its own
 */
/**
 * What only one command at a time can have. compute: a rank's device. room: what a kernel that leaves no multiprocessors free has of it. local: its copies within itself. out, in: a rank's link, for each
 * direction; that copies share it evenly or follow one another, the last one ends at the same time.
 */
export type Resource = `${"compute" | "room" | "local" | "out" | "in"} ${number}`;

/** How a thing uses its rank's device: as a product, beside products, or not so that one notices the other. */
export type DeviceUse = "product" | "beside" | "none";

export interface Work<Q> {
  readonly queue: Q;
  readonly rank: number;
  readonly deviceUse: DeviceUse;
  readonly resources: readonly Resource[];
  /** Microseconds. */
  readonly start: number;
  /** As far as it can be told. */
  readonly end: number;
}

interface Running<Q> extends Work<Q> {
  end: number;
  /** Microseconds that it would still take alone, at the time `since`. */
  left: number;
  since: number;
  isSlow: boolean;
}

export interface UnderWay<Q> {
  /** One of the resources that is held; null if all are free. */
  readonly held: (resources: readonly Resource[]) => Resource | null;
  /** `queue` is called when the resource is free; `isFirst`: before those that have waited longer. */
  readonly wait: (queue: Q, resource: Resource, isFirst?: boolean) => void;
  readonly begin: (work: Omit<Work<Q>, "start" | "end">, start: number, busy: number) => void;
  /** Called at an end that was announced: null where it has moved or is past, else who waited for what is free now. */
  readonly finish: (work: Work<Q>, time: number) => readonly Q[] | null;
}

/** `announce` is told of each end, and again of each that has moved. `slowdown`: how many times as long things take beside each other. */
export function createUnderWay<Q>(slowdown: number, announce: (end: number, work: Work<Q>) => void): UnderWay<Q> {
  const holders = new Set<Resource>();
  const waiting = new Map<Resource, Q[]>();
  const sharing = new Map<number, Running<Q>[]>();

  /** Sets the rates of what shares the device of `rank` from `time` on. */
  const pace = (rank: number, time: number): void => {
    const all = sharing.get(rank) ?? [];
    const isShared =
      all.some(({ deviceUse }) => deviceUse === "product") && all.some(({ deviceUse }) => deviceUse === "beside");
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
    held: (resources) => resources.find((resource) => holders.has(resource)) ?? null,
    wait: (queue, resource, isFirst = false) => {
      const others = waiting.get(resource) ?? [];
      waiting.set(resource, isFirst ? [queue, ...others] : [...others, queue]);
    },
    begin: (begun, start, busy) => {
      for (const resource of begun.resources) holders.add(resource);
      const work = { ...begun, start, end: start + busy, left: busy, since: start, isSlow: false };
      announce(work.end, work);
      if (begun.deviceUse === "none") return;
      sharing.set(begun.rank, [...(sharing.get(begun.rank) ?? []), work]);
      pace(begun.rank, start);
    },
    finish: (work, time) => {
      if (work.end !== time) return null;
      const { rank, deviceUse, resources } = work;
      if (deviceUse !== "none") {
        const all = sharing.get(rank) ?? [];
        if (!all.some((each) => each === work)) return null;
        sharing.set(
          rank,
          all.filter((each) => each !== work),
        );
        pace(rank, time);
      }
      return resources.flatMap((resource) => {
        holders.delete(resource);
        const queues = waiting.get(resource) ?? [];
        waiting.delete(resource);
        return queues;
      });
    },
  };
}
