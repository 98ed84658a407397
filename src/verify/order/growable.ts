/** Growing typed arrays, and lists of numbers stored consecutively: the building blocks of the verifier's tables. */

/** A list of 32-bit integers. */
export interface IntList {
  readonly length: number;
  push(value: number): void;
  /** The pushed values, in a new array. */
  toArray(): Int32Array;
}

export function createIntList(capacity = 64): IntList {
  let values = new Int32Array(capacity);
  let length = 0;
  return {
    get length() {
      return length;
    },
    push: (value) => {
      if (length === values.length) {
        const larger = new Int32Array(2 * length);
        larger.set(values);
        values = larger;
      }
      values[length++] = value;
    },
    toArray: () => values.slice(0, length),
  };
}

/** A list of numbers of any size. */
export interface FloatList {
  push(value: number): void;
  toArray(): Float64Array;
}

export function createFloatList(): FloatList {
  let values = new Float64Array(64);
  let length = 0;
  return {
    push: (value) => {
      if (length === values.length) {
        const larger = new Float64Array(2 * length);
        larger.set(values);
        values = larger;
      }
      values[length++] = value;
    },
    toArray: () => values.slice(0, length),
  };
}

/** Of row r: values[start[r]] to values[start[r + 1] - 1]. */
export interface Rows {
  readonly start: Int32Array;
  readonly values: Int32Array;
}

export interface RowsBuilder {
  /** Adds a value to the open row. */
  add(value: number): void;
  /** Ends the open row. */
  close(): void;
  finish(): Rows;
}

export function createRows(rowCount: number): RowsBuilder {
  const values = createIntList();
  const start = new Int32Array(rowCount + 1);
  let row = 0;
  return {
    add: (value) => values.push(value),
    close: () => {
      start[++row] = values.length;
    },
    finish: () => ({ start, values: values.toArray() }),
  };
}
