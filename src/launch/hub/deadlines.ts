/** Deadlines by which all ranks must arrive. The first missed deadline names the missing ranks. */

export interface Deadlines {
  /**
   * If the deadline is not settled in time, `missed` receives `what` and the ranks that are missing. `arrived` returns
   * the ranks that have arrived by then.
   */
  expect(what: string, arrived: () => Iterable<number>): Deadline;
  /** Cancels all deadlines. */
  clear(): void;
}

export interface Deadline {
  settle(): void;
}

/** `timeout` in milliseconds, counted from each `expect`. */
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
