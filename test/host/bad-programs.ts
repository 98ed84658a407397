/** Programs with one mistake each, and the complete text of its diagnostic. */
import { DeviceMesh, type HostProgramBuilder, type TensorView } from "@braid-compiler/braid";
import type { SharedPeer } from "../../src/host/build/options.ts";

export interface BadProgram {
  readonly name: string;
  readonly devices: number;
  /** `fix` 0: with the mistake; 1 and on: with a fix that the diagnostic names typed, of `fixes`. */
  readonly build: (h: HostProgramBuilder, rank: number, fix: number) => void;
  /** 1 if not given. */
  readonly fixes?: number;
  readonly said: string;
}

const mesh = DeviceMesh.range(2);

/** An input on both devices, of four elements by default. */
function onBoth(
  h: HostProgramBuilder,
  extents: readonly number[] = [4],
  dtype: "float" | "half" = "float",
): TensorView {
  return h.input(extents, { mesh, dtype });
}

/** One half of a one-sided transfer, its handle shared. */
function shared(h: HostProgramBuilder, half: SharedPeer): ReturnType<HostProgramBuilder["send"]> {
  const [made] = h.shareMemHandles(half);
  if (made === undefined) throw new Error("one handle");
  return made;
}

export const badPrograms: readonly BadProgram[] = [
  {
    name: "a peer outside the run",
    devices: 2,
    fixes: 2,
    build: (h, rank, fix) => {
      const x = onBoth(h);
      if (fix === 2) return;
      if (fix === 1) h.wait(rank === 0 ? h.send(x, { peer: 1 }) : h.recv(x, { peer: 0 }));
      else h.send(x, { peer: h.scalars.add(h.scalars.rank, 1) });
    },
    said: `
error[transfer-mismatch]: rank 0 sends to rank 1, which does not receive it
  at: rank 0, stream 1: P2PCommunication 0 (type=send, buffer=T0_g_float[iS0{4}] (DeviceMesh{0 1}), peer=( rank + 1 ), backend=NCCL)
  found: 1 send on rank 0 and 0 recvs on rank 1 over NCCL world
  expected: as many sends as recvs
  fix: post the recv on rank 1, or remove the send
error[transfer-mismatch]: the peer of a send is not a rank of the run
  at: rank 1, stream 1: P2PCommunication 0 (type=send, buffer=T0_g_float[iS0{4}] (DeviceMesh{0 1}), peer=( rank + 1 ), backend=NCCL)
  found: peer 2
  expected: a rank from 0 to 1
  fix: correct the peer, or run on more devices
`,
  },
  {
    name: "a peer below 0",
    devices: 2,
    build: (h, rank, fix) => {
      const x = onBoth(h);
      if (fix === 1 && rank === 0) h.wait(h.send(x, { peer: 1 }));
      else h.wait(h.recv(x, { peer: h.scalars.sub(h.scalars.rank, 1) }));
    },
    said: `
error[bad-peer]: the peer of a recv is not a rank
  at: P2PCommunication 0 (type=recv, buffer=T0_g_float[iS0{4}] (DeviceMesh{0 1}), peer=( rank - 1 ), backend=NCCL)
  found: peer -1 on rank 0
  expected: a rank from 0
  fix: correct the expression of the peer
  note: on rank 0
`,
  },
  {
    name: "a team outside the run",
    devices: 2,
    build: (h, _, fix) => {
      const x = onBoth(h);
      h.wait(h.communication("Allreduce", { input: x, output: x, team: fix === 1 ? [0, 1] : [0, 1, 2] }));
    },
    said: `
error[transfer-mismatch]: a team names rank 2, which the run does not have
  at: rank 0, stream 1: Communication 0 (type=Allreduce, team=(0 1 2), input=T0_g_float[iS0{4}] (DeviceMesh{0 1}), output=T0_g_float[iS0{4}] (DeviceMesh{0 1}), backend=NCCL)
  found: team [0, 1, 2]
  expected: ranks from 0 to 1
  fix: correct the team, or run on more devices
`,
  },
  {
    name: "a constant root outside the team",
    devices: 2,
    build: (h, rank, fix) => {
      const x = onBoth(h);
      if (fix === 0 || rank === 0) {
        h.wait(h.communication("Broadcast", { input: x, output: x, team: [0], root: fix === 1 ? 0 : 1 }));
      }
    },
    said: `
error[host-program-invalid]: the root is not a position in the team
  at: Communication 0 (type=Broadcast, team=(0), root=1, input=T0_g_float[iS0{4}] (DeviceMesh{0 1}), output=T0_g_float[iS0{4}] (DeviceMesh{0 1}), backend=NCCL) at body[0]
  found: 1
  expected: 0 to 0
  fix: count positions in the team from 0; the root is not a device id
`,
  },
  {
    name: "a root outside the team",
    devices: 2,
    build: (h, _, fix) => {
      const x = onBoth(h);
      h.forLoop(fix === 1 ? 2 : 3, (root) => h.wait(h.communication("Broadcast", { input: x, output: x, root })));
    },
    said: `
error[index-out-of-range]: the root is not a position in the team
  at: Communication 0 (type=Broadcast, team=(0 1), root=i2, input=T0_g_float[iS0{4}] (DeviceMesh{0 1}), output=T0_g_float[iS0{4}] (DeviceMesh{0 1}), backend=NCCL)
  found: root 2 of team (0 1)
  expected: a position from 0 to 1
  fix: count the ranks of the team from 0
  note: on rank 0, iteration 2
`,
  },
  {
    name: "a group left open",
    devices: 2,
    build: (h, rank, fix) => {
      h.startCoalescing();
      const x = onBoth(h);
      if (fix === 1 && rank === 1) h.recv(x, { peer: 0 });
      else h.send(x, { peer: 1 });
      if (fix === 1) h.wait(h.endCoalescing());
    },
    said: `
error[host-program-invalid]: a coalesced group is not closed in its scope
  at: StartCoalescing at body[0]
  found: no EndCoalescing
  expected: StartCoalescing and EndCoalescing in pairs, in one scope
  fix: give every StartCoalescing one EndCoalescing in the same scope
`,
  },
  {
    name: "a group left open in a loop",
    devices: 2,
    build: (h, rank, fix) => {
      const x = onBoth(h);
      h.forLoop(2, () => {
        h.startCoalescing();
        if (fix === 1 && rank === 1) h.recv(x, { peer: 0 });
        else h.send(x, { peer: 1 });
        if (fix === 1) h.wait(h.endCoalescing());
      });
      if (fix === 0) h.wait(h.endCoalescing());
    },
    said: `
error[host-program-invalid]: a coalesced group is not closed in its scope
  at: StartCoalescing at body[0].body[0]
  found: no EndCoalescing
  expected: StartCoalescing and EndCoalescing in pairs, in one scope
  fix: give every StartCoalescing one EndCoalescing in the same scope
error[host-program-invalid]: a coalesced group is closed without being open
  at: EndCoalescing 1 at body[1]
  found: EndCoalescing
  expected: StartCoalescing and EndCoalescing in pairs, in one scope
  fix: give every StartCoalescing one EndCoalescing in the same scope
`,
  },
  {
    name: "EndCoalescing without a start",
    devices: 1,
    build: (h, _, fix) => {
      if (fix === 1) h.startCoalescing();
      h.endCoalescing();
    },
    said: `
error[host-program-invalid]: a coalesced group is closed without being open
  at: EndCoalescing 0 at body[0]
  found: EndCoalescing
  expected: StartCoalescing and EndCoalescing in pairs, in one scope
  fix: give every StartCoalescing one EndCoalescing in the same scope
`,
  },
  {
    name: "a group in a group",
    devices: 2,
    build: (h, rank, fix) => {
      const x = onBoth(h);
      h.startCoalescing();
      if (fix === 0) h.startCoalescing();
      if (fix === 1 && rank === 1) h.recv(x, { peer: 0 });
      else h.send(x, { peer: 1 });
      h.wait(h.endCoalescing());
    },
    said: `
error[host-program-invalid]: a coalesced group is opened inside another
  at: StartCoalescing at body[1]
  found: StartCoalescing
  expected: StartCoalescing and EndCoalescing in pairs, in one scope
  fix: give every StartCoalescing one EndCoalescing in the same scope
`,
  },
  {
    name: "a computation in a group",
    devices: 2,
    fixes: 2,
    build: (h, _, fix) => {
      const x = onBoth(h);
      const compute = (): void => void h.add(x, x, { out: x });
      if (fix === 1) compute();
      h.startCoalescing();
      if (fix === 0) compute();
      h.wait(h.endCoalescing());
      if (fix === 2) compute();
    },
    said: `
error[host-program-invalid]: Binary is inside a coalesced group
  at: T0_g_float[iS0{4}] (DeviceMesh{0 1}) = T0_g_float[iS0{4}] (DeviceMesh{0 1}) + T0_g_float[iS0{4}] (DeviceMesh{0 1}); at body[1]
  found: Binary
  expected: one of P2PCommunication, HirAliasSelect, Allocate, ForLoop, IfThenElse
  fix: move the statement before StartCoalescing or after EndCoalescing
`,
  },
  {
    name: "a Wait for one send of a group",
    devices: 2,
    build: (h, rank, fix) => {
      const x = onBoth(h);
      h.startCoalescing();
      const posted = rank === 0 ? h.send(x, { peer: 1 }) : h.recv(x, { peer: 0 });
      const group = h.endCoalescing();
      h.wait(fix === 1 ? group : posted);
    },
    said: `
error[host-program-invalid]: a Wait names a communication inside a coalesced group
  at: Wait Communication 0 at body[3]
  found: P2PCommunication 0
  expected: the number of the group's EndCoalescing
  fix: wait for the EndCoalescing
`,
  },
  {
    name: "a Wait for what is never posted",
    devices: 2,
    build: (h, rank, fix) => {
      const type = fix === 1 && rank === 1 ? "recv" : "send";
      const half = shared(h, { type, buffer: onBoth(h), peer: h.scalars.sub(1, h.scalars.rank) });
      if (fix === 1) h.post(half);
      h.wait(half);
    },
    said: `
error[not-posted]: communication 0 has not been posted
  at: Wait Communication 0
  found: Wait before any post of 0 in this run
  expected: a post before the Wait
  fix: post the communication on the same path of branches and iterations, before the Wait
  note: on rank 0
`,
  },
  {
    name: "a Wait for what another branch posts",
    devices: 2,
    build: (h, rank, fix) => {
      const x = onBoth(h);
      const posted: ReturnType<HostProgramBuilder["send"]>[] = [];
      if (fix === 0) h.ifThenElse(h.scalars.eq(h.scalars.rank, 0), () => posted.push(h.send(x, { peer: 1 })));
      if (fix === 0) posted.forEach((each) => h.wait(each));
      else h.wait(rank === 0 ? h.send(x, { peer: 1 }) : h.recv(x, { peer: 0 }));
    },
    said: `
error[not-posted]: communication 0 has not been posted
  at: Wait Communication 0
  found: Wait before any post of 0 in this run
  expected: a post before the Wait
  fix: post the communication on the same path of branches and iterations, before the Wait
  note: on rank 1
`,
  },
  {
    name: "a Wait before the post",
    devices: 2,
    build: (h, rank, fix) => {
      const type = fix === 1 && rank === 1 ? "send" : "recv";
      const half = shared(h, { type, buffer: onBoth(h), peer: h.scalars.sub(1, h.scalars.rank) });
      if (fix === 0) h.wait(half);
      h.post(half);
      if (fix === 1) h.wait(half);
    },
    said: `
error[not-posted]: communication 0 has not been posted
  at: Wait Communication 0
  found: Wait before any post of 0 in this run
  expected: a post before the Wait
  fix: post the communication on the same path of branches and iterations, before the Wait
  note: on rank 0
`,
  },
  {
    name: "two Waits for one post",
    devices: 2,
    build: (h, _, fix) => {
      const x = onBoth(h);
      const posted = h.communication("Allreduce", { input: x, output: x });
      h.forLoop(fix === 1 ? 1 : 2, () => h.wait(posted));
    },
    said: `
error[already-waited]: communication 0 is waited for twice
  at: Wait Communication 0
  found: a second Wait since the latest post of 0
  expected: one Wait per post
  fix: remove the second Wait; another stream that needs the result synchronizes with the stream that waited
  note: on rank 0, iteration 1
`,
  },
  {
    name: "a slice past the end",
    devices: 2,
    build: (h, _, fix) => {
      const x = onBoth(h, [4, 2]);
      h.forLoop(fix === 1 ? 4 : h.scalars.add(h.scalars.rank, 4), (i) => void h.select(x, 0, i));
    },
    said: `
error[index-out-of-range]: a slice is outside axis 0
  at: T1_l_float[iS2{2}] (DeviceMesh{0 1}) = HirAliasSelect( T0_g_float[iS0{4}, iS1{2}] (DeviceMesh{0 1}), axis = iS0{4}, index = i4 )
  found: index 4
  expected: indices from 0 to 3
  fix: correct the index, or the bounds of the loop that it comes from
  note: on rank 1, iteration 4
`,
  },
  {
    name: "a slice before the start",
    devices: 1,
    build: (h, _, fix) => {
      const x = h.tensor([4, 2]);
      if (fix === 1) h.set(h.input([4, 2]), { out: x });
      h.output(x);
      h.set(h.select(x, 0, fix === 1 ? h.scalars.rank : h.scalars.sub(h.scalars.rank, 1)));
    },
    said: `
error[index-out-of-range]: a slice is outside axis 0
  at: T1_l_float[iS2{2}] = HirAliasSelect( T0_g_float[iS0{4}, iS1{2}], axis = iS0{4}, index = ( rank - 1 ) )
  found: index -1
  expected: indices from 0 to 3
  fix: correct the index, or the bounds of the loop that it comes from
  note: on rank 0
`,
  },
  {
    name: "a stream that is bound later",
    devices: 1,
    build: (h, _, fix) => {
      const caller = h.stream();
      if (fix === 1) h.getCurrentStream(caller);
      h.setCurrentStream(h.stream(0));
      h.synchronize(caller);
      if (fix === 0) h.getCurrentStream(caller);
    },
    said: `
error[host-program-invalid]: Stream 0 is used before it exists
  at: Synchronize Stream 0 at body[1]
  found: the GetCurrentStream into Stream 0 comes later
  expected: a stream that an earlier GetCurrentStream binds or SetCurrentStream makes current
  fix: move the GetCurrentStream before its first use
`,
  },
  {
    name: "a stream that holds nothing",
    devices: 1,
    build: (h, _, fix) => {
      const stream = h.stream();
      if (fix === 1) h.getCurrentStream(stream);
      h.synchronize(stream);
    },
    said: `
error[host-program-invalid]: Stream 0 is used before it exists
  at: Synchronize Stream 0 at body[0]
  found: nothing has made Stream 0 current
  expected: a stream that an earlier GetCurrentStream binds or SetCurrentStream makes current
  fix: synchronize with a stream that has work
`,
  },
  {
    name: "a one-sided send to itself",
    devices: 2,
    build: (h, _, fix) => {
      const x = onBoth(h);
      if (fix === 1) h.set(x);
      else h.wait(h.post(shared(h, { type: "send", buffer: x, peer: h.scalars.rank })));
    },
    said: `
error[bad-peer]: the peer of a one-sided send is the rank itself
  at: ShareMemHandles(P2PCommunication 0 (type=send, buffer=T0_g_float[iS0{4}] (DeviceMesh{0 1}), peer=rank, backend=CUDA),
  found: peer 0 on rank 0
  expected: another rank
  fix: copy with a Set where the peer is this rank
  note: on rank 0
`,
  },
  {
    name: "a send to itself without a recv",
    devices: 2,
    fixes: 2,
    build: (h, _, fix) => {
      const [x, y] = [onBoth(h), fix === 1 ? onBoth(h) : null];
      if (fix === 2) return;
      if (y !== null) h.startCoalescing();
      const sent = h.send(x, { peer: h.scalars.rank });
      if (y !== null) h.recv(y, { peer: h.scalars.rank });
      h.wait(y === null ? sent : h.endCoalescing());
    },
    said: `
error[transfer-mismatch]: rank 0 sends to rank 0, which does not receive it
  at: rank 0, stream 1: P2PCommunication 0 (type=send, buffer=T0_g_float[iS0{4}] (DeviceMesh{0 1}), peer=rank, backend=NCCL)
  found: 1 send on rank 0 and 0 recvs on rank 0 over NCCL world
  expected: as many sends as recvs
  fix: post the recv on rank 0, or remove the send
error[transfer-mismatch]: rank 1 sends to rank 1, which does not receive it
  at: rank 1, stream 1: P2PCommunication 0 (type=send, buffer=T0_g_float[iS0{4}] (DeviceMesh{0 1}), peer=rank, backend=NCCL)
  found: 1 send on rank 1 and 0 recvs on rank 1 over NCCL world
  expected: as many sends as recvs
  fix: post the recv on rank 1, or remove the send
`,
  },
  {
    name: "one-sided halves whose handles are not shared",
    devices: 2,
    build: (h, rank, fix) => {
      const x = onBoth(h);
      if (fix === 1) {
        const type = rank === 0 ? "send" : "recv";
        h.wait(h.post(shared(h, { type, buffer: x, peer: 1 - rank })));
        return;
      }
      const half = rank === 0 ? h.send(x, { peer: 1, backend: "cuda" }) : h.recv(x, { peer: 0, backend: "cuda" });
      h.wait(half);
    },
    said: `
error[not-shared]: a one-sided send is posted before its handle is shared
  at: P2PCommunication 0 (type=send, buffer=T0_g_float[iS0{4}] (DeviceMesh{0 1}), peer=1, backend=CUDA)
  found: no earlier ShareMemHandles of P2PCommunication 0
  expected: a ShareMemHandles that holds it, earlier on the same path
  fix: share the handles of both halves before the first post
  note: on rank 0
`,
  },
  {
    name: "one-sided halves whose handles are of another slice",
    devices: 2,
    build: (h, rank, fix) => {
      const x = onBoth(h, [2, 4]);
      const row = h.select(x, 0, 0);
      const type = fix === 1 && rank === 1 ? "recv" : "send";
      const share = (): ReturnType<typeof shared> =>
        shared(h, { type, buffer: row, peer: h.scalars.sub(1, h.scalars.rank) });
      const before = fix === 0 ? share() : null;
      h.forLoop(2, (i) => {
        h.select(x, 0, i, { out: row });
        h.wait(h.post(before ?? share()));
      });
    },
    said: `
error[not-shared]: a one-sided send is posted with a different buffer than its shared handle
  at: P2PCommunication 0 (type=send, buffer=T1_l_float[iS2{4}] (DeviceMesh{0 1}), peer=( 1 - rank ), backend=CUDA)
  found: T1 was bound again after the ShareMemHandles
  expected: the buffer and the peer of the latest ShareMemHandles
  fix: share the handles again when the buffer or the peer changes, for example in every iteration of a loop
  note: on rank 0, iteration 1
`,
  },
  {
    name: "one-sided halves whose handles went to another peer",
    devices: 3,
    build: (h, _, fix) => {
      const { add, mod, named, rank, sub } = h.scalars;
      const x = h.input([2, 4], { mesh: DeviceMesh.range(3) });
      const peer = mod(add(add(rank, 1), named("streamIdx")), 3);
      let half: ReturnType<typeof shared> | undefined;
      h.forLoop({ over: x.axis(0) }, () => {
        if (fix === 0) half = shared(h, { type: "send", buffer: x, peer });
        if (fix === 1) {
          const [sent, received] = h.shareMemHandles(
            { type: "send", buffer: h.select(x, 0, 0), peer },
            { type: "recv", buffer: h.select(x, 0, 1), peer: mod(sub(add(rank, 2), named("streamIdx")), 3) },
          );
          for (const each of [sent, received]) if (each !== undefined) h.post(each);
          for (const each of [sent, received]) if (each !== undefined) h.wait(each);
        }
      });
      if (fix === 1) return;
      h.forLoop({ over: x.axis(0) }, () => {
        if (half !== undefined) h.post(half);
      });
    },
    said: `
error[not-shared]: a one-sided send is posted with a different peer than its shared handle
  at: P2PCommunication 0 (type=send, buffer=T0_g_float[iS0{2}, iS1{4}] (DeviceMesh{0 1 2}), peer=( ( ( rank + 1 ) + streamIdx ) % 3 ), backend=CUDA)
  found: peer 1, shared with rank 2
  expected: the buffer and the peer of the latest ShareMemHandles
  fix: share the handles again when the buffer or the peer changes, for example in every iteration of a loop
  note: on rank 0, iteration 0
`,
  },
  {
    name: "ShareMemHandles of nothing",
    devices: 1,
    build: (h, _, fix) => {
      if (fix === 0) h.shareMemHandles();
    },
    said: `
error[host-program-invalid]: ShareMemHandles takes P2PCommunications of the cuda backend
  at: ShareMemHandles( at body[0]
  found: none
  expected: at least one, all of the cuda backend
  fix: remove the statement
`,
  },
  {
    name: "a one-sided half in a group",
    devices: 2,
    fixes: 2,
    build: (h, rank, fix) => {
      const [x, peer] = [onBoth(h), h.scalars.sub(1, h.scalars.rank)];
      const type = fix > 0 && rank === 1 ? "recv" : "send";
      const half = fix === 2 ? null : shared(h, { type, buffer: x, peer });
      if (fix !== 1) h.startCoalescing();
      if (half !== null) h.post(half);
      else if (type === "send") h.send(x, { peer });
      else h.recv(x, { peer });
      if (fix !== 1) h.wait(h.endCoalescing());
      else if (half !== null) h.wait(half);
    },
    said: `
error[host-program-invalid]: only the nccl backend coalesces
  at: P2PCommunication 0 (type=send, buffer=T0_g_float[iS0{4}] (DeviceMesh{0 1}), peer=( 1 - rank ), backend=CUDA) at body[2]
  found: the cuda backend
  expected: the nccl backend
  fix: remove StartCoalescing and EndCoalescing, or change the backend
`,
  },
  {
    name: "a send without a recv",
    devices: 2,
    fixes: 2,
    build: (h, rank, fix) => {
      const x = onBoth(h);
      if (rank === 0 && fix !== 2) h.wait(h.send(x, { peer: 1 }));
      if (rank === 1 && fix === 1) h.wait(h.recv(x, { peer: 0 }));
    },
    said: `
error[transfer-mismatch]: rank 0 sends to rank 1, which does not receive it
  at: rank 0, stream 1: P2PCommunication 0 (type=send, buffer=T0_g_float[iS0{4}] (DeviceMesh{0 1}), peer=1, backend=NCCL)
  found: 1 send on rank 0 and 0 recvs on rank 1 over NCCL world
  expected: as many sends as recvs
  fix: post the recv on rank 1, or remove the send
`,
  },
  {
    name: "a recv of another dtype",
    devices: 2,
    build: (h, rank, fix) => {
      const [x, y] = [onBoth(h), onBoth(h, [4], fix === 1 ? "float" : "half")];
      h.wait(rank === 0 ? h.send(x, { peer: 1 }) : h.recv(y, { peer: 0 }));
    },
    said: `
error[transfer-mismatch]: a send from rank 0 and its recv on rank 1 differ in dtype
  at: rank 1, stream 1: P2PCommunication 0 (type=recv, buffer=T1_g___half[iS1{4}] (DeviceMesh{0 1}), peer=0, backend=NCCL)
  found: half received
  expected: float, as sent
  fix: send and receive the same dtype
  note: on rank 0: P2PCommunication 0 (type=send, buffer=T0_g_float[iS0{4}] (DeviceMesh{0 1}), peer=1, backend=NCCL)
`,
  },
  {
    name: "a recv of another size",
    devices: 2,
    build: (h, rank, fix) => {
      const [x, y] = [onBoth(h), onBoth(h, [fix === 1 ? 4 : 5])];
      h.wait(rank === 0 ? h.send(x, { peer: 1 }) : h.recv(y, { peer: 0 }));
    },
    said: `
error[transfer-mismatch]: a send from rank 0 and its recv on rank 1 differ in size
  at: rank 1, stream 1: P2PCommunication 0 (type=recv, buffer=T1_g_float[iS1{5}] (DeviceMesh{0 1}), peer=0, backend=NCCL)
  found: 5 elements received
  expected: 4 elements, as sent
  fix: send and receive the same size
  note: on rank 0: P2PCommunication 0 (type=send, buffer=T0_g_float[iS0{4}] (DeviceMesh{0 1}), peer=1, backend=NCCL)
`,
  },
  {
    name: "halves of a one-sided pair of different sizes",
    devices: 2,
    build: (h, rank, fix) => {
      const [x, y] = [onBoth(h), onBoth(h, [fix === 1 ? 4 : 5])];
      const ends = [
        { type: "send", buffer: x, peer: 1 },
        { type: "recv", buffer: y, peer: 0 },
      ] as const;
      h.wait(h.post(shared(h, rank === 0 ? ends[0] : ends[1])));
    },
    said: `
error[transfer-mismatch]: a send from rank 0 and its recv on rank 1 differ in size
  at: rank 1, stream 0: P2PCommunication 0 (type=recv, buffer=T1_g_float[iS1{5}] (DeviceMesh{0 1}), peer=0, backend=CUDA)
  found: 5 elements received
  expected: 4 elements, as sent
  fix: send and receive the same size
  note: on rank 0: P2PCommunication 0 (type=send, buffer=T0_g_float[iS0{4}] (DeviceMesh{0 1}), peer=1, backend=CUDA)
`,
  },
  {
    name: "collectives in another order on each rank",
    devices: 2,
    build: (h, rank, fix) => {
      const [x, y] = [onBoth(h), onBoth(h, [2, 4])];
      const reduce = (): void => h.wait(h.communication("Allreduce", { input: x, output: x }));
      const gather = (): void => h.wait(h.communication("Allgather", { input: x, output: y }));
      for (const post of rank === 0 || fix === 1 ? [reduce, gather] : [gather, reduce]) post();
    },
    said: `
error[transfer-mismatch]: ranks 0 and 1 do not agree on the type of a collective
  at: rank 1, stream 1: Communication 0 (type=Allgather, team=(0 1), input=T0_g_float[iS0{4}] (DeviceMesh{0 1}), output=T1_g_float[iS1{2}, iS2{4}] (DeviceMesh{0 1}), backend=NCCL)
  found: type Allgather on rank 1, Allreduce on rank 0
  expected: the same type on every rank of the team
  fix: post the same collectives on a communicator in the same order on all ranks
  note: on rank 0: Communication 0 (type=Allreduce, team=(0 1), input=T0_g_float[iS0{4}] (DeviceMesh{0 1}), output=T0_g_float[iS0{4}] (DeviceMesh{0 1}), backend=NCCL)
`,
  },
  {
    name: "an output of a collective that does not hold a part per member",
    devices: 2,
    build: (h, _, fix) =>
      h.wait(h.communication("Allgather", { input: onBoth(h), output: onBoth(h, [fix === 1 ? 2 : 3, 4]) })),
    said: `
error[size-mismatch]: the output of a communication does not have one slice per rank of its team
  at: Communication 0 (type=Allgather, team=(0 1), input=T0_g_float[iS0{4}] (DeviceMesh{0 1}), output=T1_g_float[iS1{3}, iS2{4}] (DeviceMesh{0 1}), backend=NCCL)
  found: 3 slices of [4]
  expected: 2 parts
  fix: give the axis that is gathered or scattered the size of the team
  note: on rank 0
`,
  },
  {
    name: "a tensor without a mesh in a collective",
    devices: 1,
    build: (h, _, fix) => {
      const x = h.input([4], fix === 1 ? { mesh: DeviceMesh.range(1) } : {});
      h.output(x);
      h.wait(h.communication("Allreduce", { input: x, output: x, team: [0] }));
    },
    said: `
error[host-program-invalid]: T0 takes part in a communication and has no mesh
  at: Communication 0 (type=Allreduce, team=(0), input=T0_g_float[iS0{4}], output=T0_g_float[iS0{4}], backend=NCCL) at body[0]
  found: no mesh
  expected: a mesh on the input and the output
  fix: set the DeviceMesh of both tensors
`,
  },
  {
    name: "a tensor that nothing has bound",
    devices: 1,
    fixes: 2,
    build: (h, _, fix) => {
      const [x, y] = [h.tensor([4]), h.tensor([4])];
      h.output(y);
      if (fix === 1) h.allocate(x, { zeroInit: true });
      if (fix === 2) h.set(h.input([4]), { out: x });
      h.set(x, { out: y });
    },
    said: `
error[host-program-invalid]: T0 is used before it is bound
  at: T1_g_float[iS1{4}] = Set( T0_g_float[iS0{4}], cache_op=Streaming ) at body[0]
  found: T0 never bound
  expected: an input, an output, or a tensor that an earlier statement allocates or computes
  fix: allocate or compute the tensor first
`,
  },
  {
    name: "a slice that is used after its memory was freed",
    devices: 1,
    build: (h, _, fix) => {
      const [x, y] = [h.tensor([2, 4]), h.tensor([4])];
      h.output(y);
      h.allocate(x, { zeroInit: true });
      const row = h.select(x, 0, 1);
      if (fix === 0) h.deallocate(x);
      h.set(row, { out: y });
      if (fix === 1) h.deallocate(x);
    },
    said: `
error[not-bound]: T2 is a slice of memory that was deallocated
  at: T1_g_float[iS2{4}] = Set( T2_l_float[iS3{4}], cache_op=Streaming )
  found: an earlier Deallocate of T0
  expected: memory that lives as long as its slices are used
  fix: move the Deallocate of T0 after the last use of T2
  note: on rank 0
`,
  },
  {
    name: "a loop whose bound has no value",
    devices: 1,
    build: (h, _, fix) => h.forLoop(fix === 1 ? h.scalars.rank : h.scalars.named("steps"), () => {}),
    said: `
error[scalar-missing]: steps has no value
  at: FOR i0 from 0 to steps:
  found: steps with no value for steps
  expected: a loop index in its loop, an extent, rank, numberOfStreams, or a scalar passed in the call
  fix: pass { scalars: { steps: ... } } (--scalar steps=VALUE), or correct the name
  note: on rank 0
`,
  },
  {
    name: "an index divided by 0",
    devices: 2,
    build: (h, _, fix) =>
      h.setCurrentStream(h.stream(h.scalars.mod(3, fix === 1 ? h.scalars.add(h.scalars.rank, 1) : h.scalars.rank))),
    said: `
error[scalar-invalid]: the value of a scalar expression is not a whole number
  at: SetCurrentStream to Stream ( 3 % rank )
  found: ( 3 % rank ) is NaN
  expected: a whole number
  fix: do not divide by 0, and keep numbers below 2^53
  note: on rank 0
`,
  },
  {
    name: "an unjoined stream",
    devices: 1,
    build: (h, _, fix) => {
      const x = h.tensor([4]);
      h.output(x);
      const [caller, worker] = [h.stream(), h.stream(0)];
      h.getCurrentStream(caller);
      h.setCurrentStream(worker);
      if (fix === 1) {
        h.synchronize(caller);
        h.set(h.input([4]), { out: x });
        h.setCurrentStream(caller);
        h.synchronize(worker);
      } else {
        h.allocate(x);
        h.add(x, x, { out: x });
      }
    },
    said: `
error[data-race]: a write and a read of T0 on rank 0 have no order
  at: rank 0, stream 0: the caller reads the outputs
  found: rank 0, worker 0 writes T0[:], and nothing orders it before the caller of rank 0 reads the same
  expected: the first before the second
  fix: Synchronize worker 0 with caller before the program ends
  note: first: rank 0, stream 1 (worker 0), command 0 (launch), of T0 = T0 + T0
  note: second: rank 0, stream 0 (caller): the caller reads the outputs
  note: \`braid verify\` names the statements that a host program lacks
  note: to run it unproven: verify: "off", or --verify off
`,
  },
  {
    name: "a stream that does not wait for the caller",
    devices: 1,
    build: (h, _, fix) => {
      const y = h.tensor([4]);
      h.output(y);
      const [caller, worker] = [h.stream(), h.stream(0)];
      h.getCurrentStream(caller);
      h.setCurrentStream(worker);
      if (fix === 1) h.synchronize(caller);
      h.set(h.input([4]), { out: y });
      h.setCurrentStream(caller);
      h.synchronize(worker);
    },
    said: `
error[data-race]: a write and a read of T1 on rank 0 have no order
  at: rank 0, stream 1: T0 = Set( T1, cache_op=Streaming)
  found: the caller of rank 0 writes T1[:], and nothing orders it before rank 0, worker 0 reads the same
  expected: the first before the second
  fix: Synchronize caller on worker 0 before T0 = Set( T1, cache_op=Streaming)
  note: first: rank 0, stream 0 (caller): the caller writes the inputs
  note: second: rank 0, stream 1 (worker 0), command 0 (copy), of T0 = Set( T1, cache_op=Streaming)
  note: \`braid verify\` names the statements that a host program lacks
  note: to run it unproven: verify: "off", or --verify off
error[data-race]: a read and a write of T0 on rank 0 have no order from one run to the next
  at: rank 0, stream 1: T0 = Set( T1, cache_op=Streaming)
  found: the caller of rank 0 reads T0[:], and nothing orders it before rank 0, worker 0 writes the same
  expected: the first before the second, also from one run to the next
  fix: Synchronize caller on worker 0 before T0 = Set( T1, cache_op=Streaming)
  note: first: rank 0, stream 0 (caller): the caller reads the outputs (run 1)
  note: second: rank 0, stream 1 (worker 0), command 0 (copy), of T0 = Set( T1, cache_op=Streaming) (run 2)
  note: both come after: rank 0, stream 1 (worker 0), command 1 (recordEvent), of Synchronize Stream ( 0 )
`,
  },
];
