/**
 * The register of diagnostic codes: every code with what it means. A code is stable: tools match on it.
 * docs/diagnostics.md is generated from this table.
 */
export const diagnosticCodes = {
  // Fusion IR
  "axis-out-of-range": "An axis number lies outside the tensor's rank",
  "axis-repeated": "The same axis is named twice in one list",
  "shape-mismatch": "The shapes of the operands do not fit each other",
  "dtype-mismatch": "The dtypes of the operands do not fit each other or the op",
  "bad-extent": "An extent is not a whole number of at least 1",
  "bad-argument": "An argument has a value that the call does not take",
  "foreign-tensor": "A tensor of another Fusion is used",
  "mesh-duplicate-device": "A device stands twice in one DeviceMesh",
  "mesh-bad-device": "A DeviceMesh has no devices, or a device that is no whole number of at least 0",
  "mesh-not-rectangular": "The rows of a DeviceMesh have different lengths",
  "mesh-axis-missing": "A DIDx, DIDy or DIDz is used that the mesh does not have",
  "mesh-missing": "A tensor has no DeviceMesh where one is needed",
  "mesh-too-large": "A mesh names more devices than the run has",
  "did-repeated": "The same DID type stands twice on one tensor",
  "stream-repeated": "Stream stands twice on one tensor",
  "size-contradicts-mesh": "A sharded axis has another size than the mesh along its parallel type",
  "uneven-split": "An extent does not divide by the factor of a split",
  "no-output": "A Fusion has no output",
  // lowering
  "resharding-unsupported": "No collective carries this change of sharding",
  "stream-on-input": "Stream stands on a fusion input that feeds no form which admits it",
  "stream-on-split-axis": "Stream stands on an axis made by split or merge",
  "stream-on-reduction-axis": "Stream stands on a reduction or contraction axis",
  "stream-on-matmul-axis": "Stream stands on M or N of a matmul with batched operands",
  "stream-on-cut-axis": "Stream stands on an axis that a slice cuts",
  "stream-on-host-unit": "Stream stands on the output of an op that cannot run as a standalone host op",
  "did-on-split-axis": "A DID type stands on an axis made by split or merge, which is not lowered yet",
  "point-to-point-unsupported": "A DID axis becomes a Stream axis, which needs the point-to-point forms",
  "bad-option": "An option has a value that it does not take",
  // host programs
  "host-program-invalid": "A host program breaks a rule of the Host IR",
  "pass-validation": "A pass left something that its stage forbids",
  // sizes, record, link
  "size-missing": "A symbolic extent has no size",
  "size-unknown": "A size is given for an extent that the program does not have",
  "size-mismatch": "Two extents that must be equal have different sizes",
  "scalar-missing": "A scalar has no value at run time",
  "scalar-invalid": "A scalar expression has no whole number as its value",
  "allocation-on-split-axis": "An allocation domain has an axis made by split or merge, which is not recorded yet",
  "index-out-of-range": "A slice index lies outside its axis",
  "not-posted": "A Wait names a communication that was not posted in this run",
  "not-bound": "A tensor is read that nothing has written or bound",
  "recording-too-long": "The loops of a host program have too many iterations to record",
  "bad-peer": "A send or receive names a peer that it cannot have",
  "transfer-mismatch": "The ranks do not agree on a transfer",
  "rank-missing": "The command list of a rank is missing or stands twice",
  "memory-limit": "The program needs more memory than the back end can address",
  // executor and command line
  "input-count": "The number of inputs or outputs is wrong",
  "input-shape": "An input or output has the wrong shape or dtype",
  "device-count": "The number of devices is wrong",
  "file-unreadable": "A file cannot be read",
  "program-invalid": "A program file has no default export that returns a Fusion",
  "program-threw": "A program file threw an error",
  "option-unknown": "An option or parameter does not exist",
  "option-value": "An option or parameter has a bad value",
  "backend-unavailable": "A back end is not available on this machine",
  "schedule-invalid": "A schedule is not understood or names a step that cannot run",
  // run time
  stuck: "No stream can go on",
  "slot-overrun": "A slot is signalled again before its last signal was waited for",
  "command-threw": "A command of a run threw an error",
  "worker-died": "A worker thread ended during a run",
  "timed-out": "A run did not end in its time",
  "check-failed": "A result differs from the oracle by more than the bound",
} as const;

export type DiagnosticCode = keyof typeof diagnosticCodes;
