/**
 * Host programs that are right under one model of memory or communicators and wrong under the other. Inputs differ, so
 * a value in the wrong place shows.
 */
import { DeviceMesh, HostProgramBuilder, type HostProgram, type TensorView } from "@braid-compiler/braid";
import type { HostStream } from "../../../src/host/nodes.ts";

/** Two worker streams that start after the caller, which waits for both at the end. */
function onTwoWorkers(h: HostProgramBuilder, body: (one: HostStream, two: HostStream) => void): HostProgram {
  const [one, two] = [h.stream(0), h.stream(1)];
  const caller = h.getCurrentStream();
  for (const worker of [one, two]) {
    h.setCurrentStream(worker);
    h.synchronize(caller);
  }
  body(one, two);
  h.setCurrentStream(caller);
  for (const worker of [one, two]) h.synchronize(worker);
  return h.build();
}

/** An input, `outputs` outputs and `temporaries` temporaries of 8 floats. */
function tensors(
  h: HostProgramBuilder,
  outputs: number,
  temporaries: number,
): { readonly x: TensorView; readonly y: readonly TensorView[]; readonly t: readonly TensorView[] } {
  const x = h.input([8]);
  const y = Array.from({ length: outputs }, () => h.tensor([8]));
  for (const each of y) h.output(each);
  return { x, y, t: Array.from({ length: temporaries }, () => h.tensor([8])) };
}

/**
 * Stream 0 makes t. Stream 1 waits for it, reads it and deallocates it; what stream 0 then makes may lie where t is.
 * `joined`: stream 0 waits for the reader first.
 */
export function freedByReader(joined: boolean): HostProgram {
  const h = new HostProgramBuilder();
  const { x, y, t } = tensors(h, 2, 2);
  const [read, last] = [y[0] ?? x, y[1] ?? x];
  const [first, next] = [t[0] ?? x, t[1] ?? x];
  return onTwoWorkers(h, (one, two) => {
    h.setCurrentStream(one);
    h.add(x, x, { out: h.allocate(first) });
    h.setCurrentStream(two);
    h.synchronize(one);
    h.add(first, first, { out: read });
    if (joined) {
      h.setCurrentStream(one);
      h.synchronize(two);
      h.setCurrentStream(two);
    }
    h.deallocate(first);
    h.setCurrentStream(one);
    h.mul(x, x, { out: h.allocate(next) });
    h.mul(next, x, { out: last });
  });
}

/** Stream 0 makes and reads t. It is deallocated while stream 1 is current, which then makes another tensor. */
export function freedFromElsewhere(): HostProgram {
  const h = new HostProgramBuilder();
  const { x, y, t } = tensors(h, 2, 2);
  const [read, last] = [y[0] ?? x, y[1] ?? x];
  const [first, next] = [t[0] ?? x, t[1] ?? x];
  return onTwoWorkers(h, (one, two) => {
    h.setCurrentStream(one);
    h.add(x, x, { out: h.allocate(first) });
    h.add(first, first, { out: read });
    h.setCurrentStream(two);
    h.deallocate(first);
    h.mul(x, x, { out: h.allocate(next) });
    h.mul(next, x, { out: last });
  });
}

/** t is deallocated while a slice of it is still read. */
export function sliceOutlives(): HostProgram {
  const h = new HostProgramBuilder();
  const x = h.input([2, 4]);
  const y = h.tensor([4]);
  h.output(y);
  const t = h.allocate(h.tensor([2, 4]));
  h.add(x, x, { out: t });
  const row = h.select(t, 0, 1);
  h.deallocate(t);
  h.add(row, row, { out: y });
  return h.build();
}

const mesh = (devices: number): { readonly mesh: DeviceMesh } => ({ mesh: DeviceMesh.range(devices) });

/**
 * Stream 0 makes t and posts an Allreduce of it; t is deallocated at once. Stream 1 waits for the Allreduce, and stream
 * 0 makes another tensor. `waits`: stream 0 also waits for stream 1 before that.
 */
export function waitedForElsewhere(): HostProgram {
  const h = new HostProgramBuilder();
  const x = h.input([8], mesh(2));
  const [sum, last] = [h.tensor([8], mesh(2)), h.tensor([8], mesh(2))];
  h.output(sum);
  h.output(last);
  const [t, next] = [h.tensor([8], mesh(2)), h.tensor([8], mesh(2))];
  return onTwoWorkers(h, (one, two) => {
    h.setCurrentStream(one);
    h.add(x, x, { out: h.allocate(t) });
    const posted = h.communication("Allreduce", { input: t, output: sum, team: [0, 1] });
    h.deallocate(t);
    h.setCurrentStream(two);
    h.wait(posted);
    h.setCurrentStream(one);
    h.mul(x, x, { out: h.allocate(next) });
    h.mul(next, x, { out: last });
  });
}

/** Every rank sends to the next one and receives from the one before, the send first. */
export function ring(devices: number, coalesced: boolean): HostProgram {
  const h = new HostProgramBuilder();
  const [x, y] = [h.input([4], mesh(devices)), h.tensor([4], mesh(devices))];
  h.output(y);
  const { add, mod, rank } = h.scalars;
  if (coalesced) h.startCoalescing();
  const send = h.send(x, { peer: mod(add(rank, 1), devices) });
  const recv = h.recv(y, { peer: mod(add(rank, devices - 1), devices) });
  if (coalesced) h.wait(h.endCoalescing());
  else for (const half of [send, recv]) h.wait(half);
  return h.build();
}

/** Rank 0 sends to 1, which sends the same on to 2. `waits`: after the Wait for its recv. */
export function relay(rank: number, waits: boolean): HostProgram {
  const h = new HostProgramBuilder();
  const [x, y] = [h.input([4], mesh(3)), h.tensor([4], mesh(3))];
  h.output(y);
  h.set(x, { out: y });
  if (rank === 0) h.wait(h.send(x, { peer: 1 }));
  if (rank === 1) {
    const recv = h.recv(y, { peer: 0 });
    if (waits) h.wait(recv);
    const send = h.send(y, { peer: 2 });
    if (!waits) h.wait(recv);
    h.wait(send);
  }
  if (rank === 2) h.wait(h.recv(y, { peer: 1 }));
  return h.build();
}

/** Rank 0 sends two tensors, the second in a group; rank 1 receives in a group first. */
export function groupAndSingle(rank: number): HostProgram {
  const h = new HostProgramBuilder();
  const x = h.input([2, 4], mesh(2));
  const y = h.tensor([2, 4], mesh(2));
  h.output(y);
  h.set(x, { out: y });
  const single = (row: number): void => {
    h.wait(rank === 0 ? h.send(h.select(x, 0, row), { peer: 1 }) : h.recv(h.select(y, 0, row), { peer: 0 }));
  };
  const inGroup = (row: number): void => {
    h.startCoalescing();
    if (rank === 0) h.send(h.select(x, 0, row), { peer: 1 });
    else h.recv(h.select(y, 0, row), { peer: 0 });
    h.wait(h.endCoalescing());
  };
  if (rank === 0) {
    single(0);
    inGroup(1);
  } else {
    inGroup(0);
    single(1);
  }
  return h.build();
}

/** Rank 0 sends a tensor alone, rank 1 receives it in a group. */
export function groupMeetsSingle(rank: number): HostProgram {
  const h = new HostProgramBuilder();
  const [x, y] = [h.input([4], mesh(2)), h.tensor([4], mesh(2))];
  h.output(y);
  h.set(x, { out: y });
  if (rank === 0) h.wait(h.send(x, { peer: 1 }));
  else {
    h.startCoalescing();
    h.recv(y, { peer: 0 });
    h.wait(h.endCoalescing());
  }
  return h.build();
}

/** Ranks exchange y in a group and add it up over all ranks, without a Wait in between. */
export function groupThenAllreduce(): HostProgram {
  const h = new HostProgramBuilder();
  const [x, y, z] = [h.input([4], mesh(2)), h.tensor([4], mesh(2)), h.tensor([4], mesh(2))];
  h.output(z);
  h.allocate(y);
  const { rank, sub } = h.scalars;
  h.startCoalescing();
  h.send(x, { peer: sub(1, rank) });
  h.recv(y, { peer: sub(1, rank) });
  const group = h.endCoalescing();
  const sum = h.communication("Allreduce", { input: y, output: z, team: [0, 1] });
  h.wait(group);
  h.wait(sum);
  return h.build();
}
