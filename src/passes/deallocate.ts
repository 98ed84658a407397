/**
 * Frees every intermediate after its last use, in the innermost scope that holds all its uses.
 *
 *   T1 = ALLOCATE(...); T1 = Set(T0); T2 = Set(T1); T3 = Set(T0)
 * becomes
 *   T1 = ALLOCATE(...); T1 = Set(T0); T2 = Set(T1); Deallocate T1; T3 = Set(T0)
 *
 * A view (HirAliasSelect) is a use of what it views, and waiting for a communication is a use of its operands. Inputs and outputs
 * stay, as does what is freed already. nvFuser's counterpart runs on its other path only (AllocateAndDeallocate).
 */
import type { TensorId } from "../ir/domain.ts";
import type { HostProgram, Statement } from "../host/nodes.ts";
import { statementReads, statementWrites } from "../host/traverse.ts";
import { at } from "../support/invariant.ts";
import type { Pass } from "./pass.ts";
