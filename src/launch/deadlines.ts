/** Deadlines by which all ranks have to arrive somewhere; the first that passes names those that are missing. */

export interface Deadlines {
  /** Unless settled in time, `missed` is called with what lacks whom. `arrived`: the ranks that are there by then. */
  expect(what: string, arrived: () => Iterable<number>): Deadline;
  /** Lets all go. */
  clear(): void;
}

export interface Deadline {
  settle(): void;
}

/** `timeout` in milliseconds, from each `expect` on. */
export function createDeadlines(
  worldSize: number,
  timeout: number,
  missed: (rank: number, reason: string) => void,
): Deadlines {
  const timers = new Set<NodeJS.Timeout>();
  return {
    expect(what, arrived) {
      const timer = setTimeout(() => {
        const there = new Set(arrived());
        const missing = Array.from({ length: worldSize }, (_, rank) => rank).filter((rank) => !there.has(rank));
        missed(missing[0] ?? 0, `${namesOf(missing)} did not reach ${what} within ${timeout / 1000} s`);
      }, timeout);
      timers.add(timer);
      return {
        settle() {
          clearTimeout(timer);
          timers.delete(timer);
        },
      };
    },
    clear() {
      for (const timer of timers) clearTimeout(timer);
      timers.clear();
    },
  };
}

function namesOf(ranks: readonly number[]): string {
  return ranks.length === 1 ? `rank ${ranks.join("")}` : `ranks ${ranks.join(", ")}`;
}
