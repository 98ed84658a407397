/** Which thread continues a stream: `takeParked` gives a parked queue to its caller, and no other one. */
import { expect, it } from "vitest";
import {
  beginSchedule,
  createScheduler,
  finishQueue,
  isOver,
  parkQueue,
  releaseRun,
  requeue,
  type Scheduler,
  schedulerWords,
  takeParked,
  takeQueue,
  wakeQueue,
} from "../../../src/backends/cpu/threads/scheduler.ts";

/** Of one queue, in a run that is held open. */
function held(): Scheduler {
  const scheduler = createScheduler(new Int32Array(new SharedArrayBuffer(4 * schedulerWords(1))), 1);
  beginSchedule(scheduler, [1], 1, true);
  return scheduler;
}

it("a queue is taken once it is parked, and then is not ready for others", () => {
  const scheduler = held();
  expect(takeParked(scheduler, 0)).toBe(false);
  expect(takeQueue(scheduler)).toBe(0);
  expect(parkQueue(scheduler, 0)).toBe(true);
  expect(takeParked(scheduler, 0)).toBe(true);
  expect(takeParked(scheduler, 0)).toBe(false);
  wakeQueue(scheduler, 0);
  expect(takeQueue(scheduler)).toBe(null);
});

it("a running queue is not parked when someone tried to take it meanwhile", () => {
  const scheduler = held();
  takeQueue(scheduler);
  expect(takeParked(scheduler, 0)).toBe(false);
  expect(parkQueue(scheduler, 0)).toBe(false);
  expect(parkQueue(scheduler, 0)).toBe(true);
});

it("a run does not end while a queue that was taken is running", () => {
  const scheduler = held();
  takeQueue(scheduler);
  parkQueue(scheduler, 0);
  takeParked(scheduler, 0);
  releaseRun(scheduler);
  expect(isOver(scheduler)).toBe(false);
  requeue(scheduler, 0);
  expect(takeQueue(scheduler)).toBe(0);
  finishQueue(scheduler, 0);
  expect(isOver(scheduler)).toBe(true);
});
