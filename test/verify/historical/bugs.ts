/** All of them. */
import type { HistoricalBug } from "./bug.ts";
import { earlyFree } from "./early-free.ts";
import { missingFinalSync } from "./missing-final-sync.ts";
import { missingInitialSync } from "./missing-initial-sync.ts";
import { missingRecvJoin } from "./missing-recv-join.ts";
import { recvBeforeSend } from "./recv-before-send.ts";
import { sharedSlots } from "./shared-slots.ts";
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
];
