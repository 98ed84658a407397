/**
 * Programs with one bad annotation each, and the same with the fix that the diagnostic names. The line that the
 * diagnostic must name ends with a comment that names the row.
 */
import {
  add,
  crossEntropy,
  cumsum,
  DeviceMesh,
  type DiagnosticCode,
  embedding,
  type Fusion,
  iota,
  linear,
  lt,
  type LowerOptions,
  matmul,
  amax,
  relu,
  reshape,
  set,
  slice,
  sum,
  type TensorView,
  unsqueeze,
  where,
} from "@braid-compiler/braid";

export interface BadAnnotation {
  readonly what: string;
  readonly code: DiagnosticCode;
  readonly devices: number;
  readonly options?: LowerOptions;
  /** What the fix says. */
  readonly help: RegExp;
  /** With `isFixed`, as the fix says. */
  readonly program: (f: Fusion, isFixed: boolean) => TensorView;
  /** For the fixed program, if the fix is an option. */
  readonly fixedOptions?: LowerOptions;
  /** A program that runs, but not as it says. */
  readonly isWarning?: true;
}

const two = DeviceMesh.range(2);
const four = DeviceMesh.range(4);
const named = DeviceMesh.of({ dp: 2, tp: 2 });
const grid = new DeviceMesh([
  [0, 1],
  [2, 3],
]);

function on(mesh: DeviceMesh, ...tensors: readonly TensorView[]): void {
  for (const tensor of tensors) tensor.setDeviceMesh(mesh);
}

/** As of JavaScript, where no types refuse the arguments. */
function untypedMesh(name: "range" | "ofShape", ...args: readonly number[]): DeviceMesh {
  const make = Reflect.get(DeviceMesh, name) as (...values: readonly number[]) => DeviceMesh;
  return make(...args); // here
}

export const badAnnotations: readonly BadAnnotation[] = [
  {
    what: "a whole axis of another size than the mesh",
    code: "size-contradicts-mesh",
    devices: 2,
    help: /^T0\.outerSplit\(0, 2\)\.parallelize\("DIDx"\)$/u,
    program: (f, isFixed) => {
      const x = f.input([8, 4]);
      on(two, x);
      (isFixed ? x.outerSplit(0, 2) : x.axis(0)).parallelize("DIDx"); // here
      return relu(x);
    },
  },
  {
    what: "more parts than devices",
    code: "size-contradicts-mesh",
    devices: 2,
    help: /^split into 2 parts instead of 4, or give the mesh 4 devices along DIDx$/u,
    program: (f, isFixed) => {
      const x = f.input([8, 4]);
      on(two, x);
      x.outerSplit(0, isFixed ? 2 : 4).parallelize("DIDx"); // here
      return relu(x);
    },
  },
  {
    what: "more parts than devices, the mesh last",
    code: "size-contradicts-mesh",
    devices: 2,
    help: /^split into 2 parts instead of 4, or give the mesh 4 devices along DIDx$/u,
    program: (f, isFixed) => {
      const x = f.input([8, 4]);
      x.outerSplit(0, isFixed ? 2 : 4).parallelize("DIDx");
      x.setDeviceMesh(two); // here
      return relu(x);
    },
  },
  {
    what: "DIDy on a mesh of one dimension",
    code: "mesh-axis-missing",
    devices: 2,
    help: /use DIDx/u,
    program: (f, isFixed) => {
      const x = f.input([8, 4]);
      on(two, x);
      x.outerSplit(0, 2).parallelize(isFixed ? "DIDx" : "DIDy"); // here
      return relu(x);
    },
  },
  {
    what: "a name that the mesh lacks",
    code: "bad-argument",
    devices: 4,
    help: /use one of these names/u,
    program: (f, isFixed) => {
      const x = f.input([8, 4]);
      on(named, x);
      x.outerSplit(0, 2).parallelize(isFixed ? "tp" : "cp"); // here
      return relu(x);
    },
  },
  {
    what: "a name before its mesh",
    code: "bad-argument",
    devices: 4,
    help: /^before parallelize, call setDeviceMesh/u,
    program: (f, isFixed) => {
      const x = f.input([8, 4]);
      if (isFixed) on(named, x);
      x.outerSplit(0, 2).parallelize("tp"); // here
      on(named, x);
      return relu(x);
    },
  },
  {
    what: "a name that a second mesh has elsewhere",
    code: "mesh-axis-missing",
    devices: 4,
    help: /set the mesh once/u,
    program: (f, isFixed) => {
      const x = f.input([8, 4]).setDeviceMesh(named);
      x.outerSplit(0, 2).parallelize("tp");
      if (!isFixed) x.setDeviceMesh(DeviceMesh.of({ tp: 2, dp: 2 })); // here
      return relu(x);
    },
  },
  {
    what: "a name on two axes",
    code: "did-repeated",
    devices: 4,
    help: /use another parallel type/u,
    program: (f, isFixed) => {
      const x = f.input([8, 4]).setDeviceMesh(named);
      x.outerSplit(0, 2).parallelize("tp");
      x.outerSplit(2, 2).parallelize(isFixed ? "dp" : "tp"); // here
      return relu(x);
    },
  },
  {
    what: "a DID type as a name",
    code: "mesh-bad-name",
    devices: 4,
    help: /such as dp and tp/u,
    program: (f, isFixed) => {
      const mesh = DeviceMesh.of(isFixed ? { dp: 2, tp: 2 } : { DIDx: 2, tp: 2 }); // here
      return relu(f.input([8, 4]).setDeviceMesh(mesh));
    },
  },
  {
    what: "DIDz on a mesh of two dimensions, the mesh last",
    code: "mesh-axis-missing",
    devices: 4,
    help: /nest the device list deeper, or use DIDx or DIDy/u,
    program: (f, isFixed) => {
      const x = f.input([8, 4]);
      x.outerSplit(0, 2).parallelize("DIDz");
      x.setDeviceMesh(isFixed ? new DeviceMesh([[[0, 1]], [[2, 3]]]) : grid); // here
      return relu(x);
    },
  },
  {
    what: "DIDx on two axes",
    code: "did-repeated",
    devices: 4,
    help: /another parallel type/u,
    program: (f, isFixed) => {
      const x = f.input([8, 4]);
      on(grid, x);
      x.outerSplit(0, 2).parallelize("DIDx");
      x.outerSplit(2, 2).parallelize(isFixed ? "DIDy" : "DIDx"); // here
      return relu(x);
    },
  },
  {
    what: "DIDx twice on one axis",
    code: "did-repeated",
    devices: 4,
    help: /another parallel type/u,
    program: (f, isFixed) => {
      const x = f.input([8, 4]);
      on(grid, x);
      x.outerSplit(0, 2).parallelize("DIDx");
      x.outerSplit(1, 2).parallelize(isFixed ? "DIDy" : "DIDx"); // here
      return relu(x);
    },
  },
  {
    what: "Stream on two axes",
    code: "stream-repeated",
    devices: 1,
    help: /make axis 0 Serial first, T1\.axis\(0\)\.parallelize\("Serial"\)/u,
    program: (f, isFixed) => {
      const y = relu(f.input([8, 4]));
      const rows = y.outerSplit(0, 2).parallelize("Stream");
      if (isFixed) rows.parallelize("Serial");
      y.outerSplit(2, 2).parallelize("Stream"); // here
      return y;
    },
  },
  {
    what: "Stream in a device's part in Stream",
    code: "stream-repeated",
    devices: 2,
    help: /Serial first/u,
    program: (f, isFixed) => {
      const x = f.input([8, 4]);
      on(two, x);
      const y = relu(x);
      const chunks = y.outerSplit(0, 2).parallelize("Stream");
      y.outerSplit(1, 2).parallelize("DIDx");
      if (isFixed) chunks.parallelize("Serial");
      else y.outerSplit(2, 2).parallelize("Stream"); // here
      return y;
    },
  },
  {
    what: "Stream in a part without a type",
    code: "stream-on-split-axis",
    devices: 1,
    help: /outerSplit\(\) with the number of chunks first/u,
    program: (f, isFixed) => {
      const y = relu(f.input([8, 4]));
      if (isFixed) y.outerSplit(0, 4).parallelize("Stream");
      else {
        y.outerSplit(0, 2);
        y.outerSplit(1, 2).parallelize("Stream"); // here
      }
      return y;
    },
  },
  {
    what: "Stream in each device's share of an input, for a sum over devices that has it from there",
    code: "stream-on-split-axis",
    devices: 2,
    help: /^split the axis by the number of chunks first, and its inner part by the devices/u,
    program: (f, isFixed) => {
      const [x, w, v] = [f.input([8, 4]), f.input([6, 4]), f.input([4, 6])];
      on(two, x, w, v);
      w.outerSplit(0, 2).parallelize("DIDx");
      v.outerSplit(1, 2).parallelize("DIDx");
      if (isFixed) x.outerSplit(0, 2).parallelize("Stream");
      x.outerSplit(isFixed ? 1 : 0, 2).parallelize("DIDx");
      if (!isFixed) x.outerSplit(1, 2).parallelize("Stream"); // here
      return add(x, linear(relu(linear(x, w)), v));
    },
  },
  {
    what: "Stream on a merged axis",
    code: "stream-on-split-axis",
    devices: 1,
    help: /one of the axes instead of merging/u,
    program: (f, isFixed) => {
      const y = relu(f.input([8, 4]));
      if (!isFixed) y.merge(0);
      y.axis(0).parallelize("Stream"); // here
      return y;
    },
  },
  {
    what: "Stream on the contracted axis of a linear",
    code: "stream-on-reduction-axis",
    devices: 1,
    help: /--schedule accumulate/u,
    fixedOptions: { accumulate: true },
    program: (f) => {
      const y = linear(f.input([8, 4]), f.input([6, 4]));
      y.outerSplit(2, 2).parallelize("Stream"); // here
      return y;
    },
  },
  {
    what: "Stream on an axis that max reduces",
    code: "stream-on-reduction-axis",
    devices: 1,
    help: /another axis of the output/u,
    program: (f, isFixed) => {
      const y = amax(relu(f.input([8, 4])), [1]);
      if (isFixed) y.outerSplit(0, 2).parallelize("Stream");
      else y.outerSplit(1, 2).parallelize("Stream"); // here
      return y;
    },
  },
  {
    what: "Stream on an axis that a slice cuts",
    code: "stream-on-cut-axis",
    devices: 1,
    help: /put set\(\) after the op/u,
    program: (f, isFixed) => {
      const cut = slice(f.input([8, 4]), [1, 0], [7, 4]);
      const y = isFixed ? set(cut) : cut;
      y.outerSplit(0, 2).parallelize("Stream"); // here
      return y;
    },
  },
  {
    what: "Stream on the axis of a cumsum",
    code: "stream-on-cut-axis",
    devices: 1,
    help: /put set\(\) after the op/u,
    program: (f, isFixed) => {
      const sums = cumsum(f.input([8, 4]), 0);
      const y = isFixed ? set(sums) : sums;
      y.outerSplit(0, 2).parallelize("Stream"); // here
      return y;
    },
  },
  {
    what: "Stream on rows of a batched matmul",
    code: "stream-on-matmul-axis",
    devices: 1,
    help: /batch axis/u,
    program: (f, isFixed) => {
      const y = matmul(f.input([3, 4, 2]), f.input([3, 2, 5]));
      (isFixed ? y.axis(0) : y.axis(1)).parallelize("Stream"); // here
      return y;
    },
  },
  ...[0, -2, 1.5, NaN].map((parts): BadAnnotation => ({
    what: `${parts} parts`,
    code: "bad-extent",
    devices: 1,
    help: /./u,
    program: (f, isFixed) => {
      const y = relu(f.input([8, 4]));
      y.outerSplit(0, isFixed ? 2 : parts).parallelize("Stream"); // here
      return y;
    },
  })),
  {
    what: "a split of an axis that the tensor does not have",
    code: "axis-out-of-range",
    devices: 1,
    help: /./u,
    program: (f, isFixed) => {
      const y = relu(f.input([8, 4]));
      y.outerSplit(isFixed ? 1 : 2, 2).parallelize("Stream"); // here
      return y;
    },
  },
  {
    what: "a split of a part with a type",
    code: "bad-argument",
    devices: 2,
    help: /split first/u,
    program: (f, isFixed) => {
      const x = f.input([8, 4]);
      on(two, x);
      x.outerSplit(0, 2).parallelize("DIDx");
      if (!isFixed) x.outerSplit(0, 2); // here
      return relu(x);
    },
  },
  {
    what: "a merge of a part with a type",
    code: "bad-argument",
    devices: 2,
    help: /merge first/u,
    program: (f, isFixed) => {
      const x = f.input([8, 4]);
      on(two, x);
      x.outerSplit(0, 2).parallelize("DIDx");
      if (!isFixed) x.merge(0); // here
      return relu(x);
    },
  },
  {
    what: "a type on an axis that was split",
    code: "bad-argument",
    devices: 2,
    help: /axis\(i\)/u,
    program: (f, isFixed) => {
      const x = f.input([2, 4]);
      on(two, x);
      const rows = x.axis(0);
      x.outerSplit(0, 2);
      (isFixed ? x.axis(0) : rows).parallelize("DIDx"); // here
      return relu(x);
    },
  },
  {
    what: "a DID type on a merged axis",
    code: "did-on-merged-axis",
    devices: 2,
    help: /reshape/u,
    program: (f, isFixed) => {
      const x = f.input(isFixed ? [8] : [2, 4]);
      on(two, x);
      if (!isFixed) x.merge(0);
      x.outerSplit(0, 2).parallelize("DIDx"); // here
      return relu(x);
    },
  },
  {
    what: "a DID type without any mesh",
    code: "mesh-missing",
    devices: 2,
    help: /setDeviceMesh\(mesh\) on every input/u,
    program: (f, isFixed) => {
      const x = f.input([8, 4]);
      x.outerSplit(0, 2).parallelize("DIDx"); // here
      if (isFixed) x.setDeviceMesh(two);
      return relu(relu(x));
    },
  },
  {
    what: "a DID type without a mesh on an intermediate",
    code: "mesh-missing",
    devices: 2,
    help: /setDeviceMesh\(mesh\) on every input/u,
    program: (f, isFixed) => {
      const x = f.input([8, 4]);
      const y = relu(x);
      y.outerSplit(0, 2).parallelize("DIDx"); // here
      if (isFixed) x.setDeviceMesh(two);
      return relu(y);
    },
  },
  {
    what: "a mesh on one tensor of two without propagation",
    code: "mesh-missing",
    devices: 2,
    options: { propagate: false },
    help: /every result of an op/u,
    program: (f, isFixed) => {
      const x = f.input([8, 4]);
      x.setDeviceMesh(two);
      const y = relu(x); // here
      if (isFixed) y.setDeviceMesh(two);
      return y;
    },
  },
  {
    what: "a mesh with a device twice",
    code: "mesh-duplicate-device",
    devices: 2,
    help: /remove the second 0/u,
    program: (f, isFixed) => {
      const x = f.input([8, 4]);
      x.setDeviceMesh(new DeviceMesh(isFixed ? [0, 1] : [0, 1, 0])); // here
      return relu(x);
    },
  },
  {
    what: "a mesh without devices",
    code: "mesh-bad-device",
    devices: 1,
    help: /list the device ids/u,
    program: (f, isFixed) => {
      const x = f.input([8, 4]);
      x.setDeviceMesh(new DeviceMesh(isFixed ? [0] : [])); // here
      return relu(x);
    },
  },
  {
    what: "a range that begins at another device",
    code: "mesh-bad-device",
    devices: 4,
    help: /new DeviceMesh\(\[2, 3\]\)/u,
    program: (f, isFixed) => {
      const x = f.input([8, 4]);
      x.setDeviceMesh(isFixed ? new DeviceMesh([2, 3]) : untypedMesh("range", 2, 2));
      return relu(x);
    },
  },
  {
    what: "sizes of a mesh that are no list",
    code: "mesh-bad-device",
    devices: 8,
    help: /DeviceMesh\.ofShape\(\[2, 4\]\)/u,
    program: (f, isFixed) => {
      const x = f.input([8, 4]);
      x.setDeviceMesh(isFixed ? DeviceMesh.ofShape([2, 4]) : untypedMesh("ofShape", 2, 4));
      return relu(x);
    },
  },
  {
    what: "a mesh with device -1",
    code: "mesh-bad-device",
    devices: 2,
    help: /list the device ids/u,
    program: (f, isFixed) => {
      const x = f.input([8, 4]);
      x.setDeviceMesh(new DeviceMesh([0, isFixed ? 1 : -1])); // here
      return relu(x);
    },
  },
  {
    what: "a mesh of rows of different lengths",
    code: "mesh-not-rectangular",
    devices: 4,
    help: /every row the same number/u,
    program: (f, isFixed) => {
      const x = f.input([8, 4]);
      const second = isFixed ? [2, 3] : [2];
      x.setDeviceMesh(new DeviceMesh([[0, 1], second])); // here
      return relu(x);
    },
  },
  {
    what: "a mesh with more devices than the run",
    code: "mesh-too-large",
    devices: 2,
    help: /use a smaller mesh/u,
    program: (f, isFixed) => {
      const x = f.input([8, 4]);
      x.setDeviceMesh(isFixed ? two : four); // here
      return relu(x);
    },
  },
  {
    what: "a name twice",
    code: "bad-argument",
    devices: 1,
    help: /hidden2/u,
    program: (f, isFixed) => {
      const x = f.input([8, 4]).named("hidden");
      return relu(x).named(isFixed ? "hidden2" : "hidden"); // here
    },
  },
  {
    what: "an allocation domain with an axis twice",
    code: "axis-repeated",
    devices: 1,
    help: /remove one/u,
    program: (f, isFixed) => {
      const x = f.input([8, 4]);
      x.setAllocationDomain(isFixed ? [1, 0] : [0, 0]); // here
      return relu(x);
    },
  },
  {
    what: "a reshape to another number of elements",
    code: "shape-mismatch",
    devices: 1,
    help: /./u,
    program: (f, isFixed) => reshape(f.input([8, 4]), isFixed ? [2, 16] : [2, 15]), // here
  },
  {
    what: "Stream on a whole axis of an input whose reader has none",
    code: "stream-on-input",
    devices: 1,
    help: /remove Stream/u,
    program: (f, isFixed) => {
      const x = f.input([8, 4]);
      if (!isFixed) x.axis(0).parallelize("Stream"); // here
      return sum(x, [0]);
    },
  },
  {
    what: "Stream on a whole axis of an input whose reader loops over another",
    code: "stream-on-input",
    devices: 1,
    help: /^remove Stream from T0: the loop over axis 1 of T1 \(Stream\) stays$/u,
    program: (f, isFixed) => {
      const x = f.input([8, 4]);
      if (!isFixed) x.axis(0).parallelize("Stream"); // here
      const y = relu(x);
      y.axis(1).parallelize("Stream");
      return y;
    },
  },
  {
    what: "chunks of an input's axis that the op reduces",
    code: "stream-on-input",
    devices: 1,
    isWarning: true,
    help: /axis that the op keeps/u,
    program: (f, isFixed) => {
      const x = f.input([8, 4]);
      x.outerSplit(isFixed ? 1 : 0, 2).parallelize("Stream"); // here
      return sum(x, [0]);
    },
  },
  {
    what: "chunks of an input's axis that a slice cuts",
    code: "stream-on-input",
    devices: 1,
    isWarning: true,
    help: /remove Stream/u,
    program: (f, isFixed) => {
      const x = f.input([8, 4]);
      if (!isFixed) x.outerSplit(0, 2).parallelize("Stream"); // here
      return slice(x, [1, 0], [7, 4]);
    },
  },
  {
    what: "chunks of the axis that devices would share of a result",
    code: "stream-keeps-whole",
    devices: 2,
    isWarning: true,
    help: /leave out the Stream of T1 \(0 bytes move in all, now 64 bytes\)/u,
    program: (f, isFixed) => {
      const x = f.input([8, 4]);
      on(two, x);
      x.outerSplit(0, 2).parallelize("DIDx");
      const y = relu(x);
      if (!isFixed) y.outerSplit(0, 2).parallelize("Stream"); // here
      return y;
    },
  },
  {
    what: "chunks of the axis that devices would share of a sum, as a reader has it",
    code: "stream-keeps-whole",
    devices: 2,
    isWarning: true,
    help: /leave out the Stream of T3 \(64 bytes move in all, now 128 bytes\)/u,
    program: (f, isFixed) => {
      const [a, b, x] = [f.input([8, 4]), f.input([4, 4]), f.input([8, 4])];
      for (const tensor of [a, b, x]) on(two, tensor);
      a.outerSplit(1, 2).parallelize("DIDx");
      b.outerSplit(0, 2).parallelize("DIDx");
      x.outerSplit(0, 2).parallelize("DIDx");
      const y = matmul(a, b);
      if (!isFixed) y.outerSplit(0, 2).parallelize("Stream"); // here
      return add(x, y);
    },
  },
  {
    what: "two inputs with different numbers of chunks",
    code: "stream-on-input",
    devices: 1,
    isWarning: true,
    help: /the same number of chunks/u,
    program: (f, isFixed) => {
      const [a, b] = [f.input([8, 4]), f.input([8, 4])];
      a.outerSplit(0, 2).parallelize("Stream");
      b.outerSplit(0, isFixed ? 2 : 4).parallelize("Stream"); // here
      return add(a, b);
    },
  },
  {
    what: "two inputs with chunks of different axes",
    code: "stream-on-input",
    devices: 1,
    isWarning: true,
    help: /of the same axis/u,
    program: (f, isFixed) => {
      const [a, b] = [f.input([8, 4]), f.input([8, 4])];
      a.outerSplit(0, 2).parallelize("Stream");
      b.outerSplit(isFixed ? 0 : 1, 2).parallelize("Stream"); // here
      return add(a, b);
    },
  },
  {
    what: "chunks of an input whose reader has a mesh and no Stream",
    code: "stream-on-input",
    devices: 2,
    isWarning: true,
    help: /parallelize that axis of T1 too/u,
    program: (f, isFixed) => {
      const x = f.input([8, 4]);
      on(two, x);
      x.outerSplit(0, 2).parallelize("Stream"); // here
      const y = relu(x);
      on(two, y);
      if (isFixed) y.outerSplit(0, 2).parallelize("Stream");
      return y;
    },
  },
  {
    what: "a table of 10 rows on 4 devices",
    code: "indexed-axis-gathered",
    devices: 4,
    isWarning: true,
    help: /^give the inputs 12 instead of 10 \(a pad\(\) would gather it, too\)$/u,
    program: (f, isFixed) => {
      const [table, index] = [f.input([isFixed ? 12 : 10, 3]), f.input([2], "int64")]; // here
      on(four, table, index);
      table.outerSplit(0, 4).parallelize("DIDx");
      return embedding(table, index);
    },
  },
  {
    what: "logits of 10 classes on 4 devices",
    code: "indexed-axis-gathered",
    devices: 4,
    isWarning: true,
    help: /; if these are logits, read where\(unsqueeze\(lt\(iota\(f, 12\), 10\), 0\), T3, -Infinity\) in place of T3$/u,
    program: (f, isFixed) => {
      const [x, w, target] = [f.input([6, 3]), f.input([isFixed ? 12 : 10, 3]), f.input([6], "int64")];
      on(four, x, w, target);
      w.outerSplit(0, 4).parallelize("DIDx");
      const logits = linear(x, w); // here
      const isClass = unsqueeze(lt(iota(f, 12), 10), 0);
      return crossEntropy(isFixed ? where(isClass, logits, -Infinity) : logits, target);
    },
  },
  {
    what: "two operands sharded along different axes",
    code: "annotations-conflict",
    devices: 2,
    isWarning: true,
    help: /^annotate T1 as T0 \(0 bytes move in all, now 32 bytes\), or annotate T0 as T1 \(0 bytes/u,
    program: (f, isFixed) => {
      const [a, b] = [f.input([8, 4]), f.input([8, 4])];
      on(two, a, b);
      a.outerSplit(0, 2).parallelize("DIDx");
      b.outerSplit(isFixed ? 0 : 1, 2).parallelize("DIDx"); // here
      return add(a, b);
    },
  },
  {
    what: "the first operand against two others: the cheapest annotation comes first",
    code: "annotations-conflict",
    devices: 2,
    isWarning: true,
    help: /^annotate T0 as T1 \(0 bytes move in all, now 64 bytes\), or annotate T1 as T0 \(32 bytes/u,
    program: (f, isFixed) => {
      const [a, b, c] = [f.input([8, 4]), f.input([8, 4]), f.input([8, 4])];
      on(two, a, b, c);
      b.outerSplit(1, 2).parallelize("DIDx"); // here
      c.outerSplit(1, 2).parallelize("DIDx");
      a.outerSplit(isFixed ? 1 : 0, 2).parallelize("DIDx");
      return add(add(a, b), c);
    },
  },
  {
    what: "a weight whose rows the result has on every device",
    code: "annotations-conflict",
    devices: 2,
    isWarning: true,
    help: /^annotate T1 whole on DeviceMesh\{0 1\} \(0 bytes move in all, now 48 bytes\), or put set\(T1\)/u,
    program: (f, isFixed) => {
      const [x, w] = [f.input([8, 4]), f.input([6, 4])];
      on(two, x, w);
      x.outerSplit(0, 2).parallelize("DIDx");
      if (!isFixed) w.outerSplit(0, 2).parallelize("DIDx"); // here
      const y = linear(x, w);
      on(two, y);
      y.outerSplit(0, 2).parallelize("DIDx");
      return y;
    },
  },
  {
    what: "two operands on different meshes",
    code: "annotations-conflict",
    devices: 4,
    isWarning: true,
    help: /annotate T1 as T0/u,
    program: (f, isFixed) => {
      const [a, b] = [f.input([8, 4]), f.input([8, 4])];
      on(two, a);
      b.setDeviceMesh(isFixed ? two : new DeviceMesh([2, 3])); // here
      return add(a, b);
    },
  },
  ...[true, false].map((isSet): BadAnnotation => ({
    what: `a stage whose weight leaves its mesh, ${isSet ? "after a set" : "without a set"}`,
    code: "annotations-conflict",
    devices: 4,
    isWarning: true,
    help: isSet ? /^annotate T4 on the mesh of T2, cut/u : /^put set\(T3\) before the op, and annotate it on/u,
    program: (f, isFixed) => {
      const [x, w0, w1] = [f.input([64, 8]), f.input([8, 8]), f.input([2, 8])];
      on(two, x, w0);
      w0.outerSplit(0, 2).parallelize("DIDx");
      const second = new DeviceMesh([2, 3]);
      w1.setDeviceMesh(second);
      w1.outerSplit(1, 2).parallelize("DIDx"); // here
      const hidden = linear(x, w0);
      const moved = isSet || isFixed ? set(hidden) : hidden;
      if (isFixed) {
        moved.setDeviceMesh(second);
        moved.outerSplit(1, 2).parallelize("DIDx");
      }
      return linear(moved, w1);
    },
  })),
  {
    // The weight is gathered, and cut again on the device: two steps.
    what: "a stage whose weight leaves its mesh for a smaller one",
    code: "annotations-conflict",
    devices: 3,
    isWarning: true,
    help: /put set\(T3\) before the op/u,
    program: (f, isFixed) => {
      const [x, w0, w1] = [f.input([64, 8]), f.input([8, 8]), f.input([2, 8])];
      on(new DeviceMesh([0]), x, w0);
      w0.outerSplit(0, 1).parallelize("DIDx");
      const second = new DeviceMesh([1, 2]);
      w1.setDeviceMesh(second);
      w1.outerSplit(1, 2).parallelize("DIDx"); // here
      const hidden = linear(x, w0);
      if (!isFixed) return linear(hidden, w1);
      const moved = set(hidden);
      moved.setDeviceMesh(second);
      moved.outerSplit(1, 2).parallelize("DIDx");
      return linear(moved, w1);
    },
  },
  {
    what: "an intermediate against its producer",
    code: "annotations-conflict",
    devices: 2,
    isWarning: true,
    help: /leave out the mesh of T1/u,
    program: (f, isFixed) => {
      const x = f.input([8, 4]);
      on(two, x);
      x.outerSplit(0, 2).parallelize("DIDx");
      const y = relu(x);
      if (!isFixed) y.setDeviceMesh(two); // here
      return relu(y);
    },
  },
  {
    what: "a result against its weight",
    code: "annotations-conflict",
    devices: 2,
    isWarning: true,
    help: /put set\(T1\) before the op/u,
    program: (f, isFixed) => {
      const [x, w] = [f.input([8, 4]), f.input([6, 4])];
      on(two, x, w);
      w.outerSplit(0, 2).parallelize("DIDx");
      const whole = isFixed ? set(w) : w;
      if (isFixed) on(two, whole);
      const y = linear(x, whole);
      y.setDeviceMesh(two); // here
      return y;
    },
  },
];
