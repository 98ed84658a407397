/** All of them. */
import type { HistoricalBug } from "./bug.ts";
import { bucketedDependency } from "./bucketed-dependency.ts";
import { earlyFree } from "./early-free.ts";
import { freedWhileSent } from "./freed-while-sent.ts";
import { lostGemmOrder } from "./lost-gemm-order.ts";
import { missingFinalSync } from "./missing-final-sync.ts";
import { missingInitialSync } from "./missing-initial-sync.ts";
import { missingRecvJoin } from "./missing-recv-join.ts";
import { recvBeforeSend } from "./recv-before-send.ts";
import { skewedBarriers } from "./skewed-barriers.ts";
import { sharedSlots } from "./shared-slots.ts";
import { sharedWorkspace } from "./shared-workspace.ts";
import { exchangeOnTwoStreams, uncoalescedExchange } from "./uncoalesced-exchange.ts";
import { unevenReallocation } from "./uneven-reallocation.ts";

export const historicalBugs: readonly HistoricalBug[] = [
  missingInitialSync,
  missingFinalSync,
  unevenReallocation,
  recvBeforeSend,
  uncoalescedExchange,
  exchangeOnTwoStreams,
  missingRecvJoin,
  sharedSlots,
  earlyFree,
  skewedBarriers,
  sharedWorkspace,
  lostGemmOrder,
  bucketedDependency,
  freedWhileSent,
];
