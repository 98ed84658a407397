// cuBLASLt on the CPU, for tests on machines without a GPU. It knows no algorithm, so that GEMMs run as generated
// kernels; with FAKE_CUBLASLT=1 it knows two, which take what the documentation allows on Hopper: column-major matrices,
// transposed or not, strided batches, alpha and beta, a bias for each row of the result, and operands of 8 bits with
// scales of tensors, of rows and columns, and of blocks of 1 x 128 and 128 x 128. Fast accumulation changes nothing.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <vector>

using U64 = uint64_t;
#define API extern "C" __attribute__((visibility("default"))) int

// Of the fake driver: now, or at every launch of the graph that is being captured.
int enqueue(std::function<int()> work);
int record(const char *name);

enum { SUCCESS = 0, INVALID_VALUE = 7, NOT_SUPPORTED = 15 };
enum { FLOAT = 0, DOUBLE = 1, HALF = 2, BFLOAT16 = 14, E4M3 = 28, E5M2 = 29 };
enum { TRANSA = 3, TRANSB = 4, EPILOGUE = 7, BIAS_POINTER = 8 };
enum { SCALE_POINTER = 17, FAST_ACCUMULATION = 25, SCALE_MODE = 31 };
enum { OF_TENSOR = 0, OF_ROWS = 3, OF_1x128 = 4, OF_128x128 = 5 };
enum { BATCH_COUNT = 5, BATCH_STRIDE = 6 };
enum { EPILOGUE_BIAS = 4 };
// Of a preference, and of an algorithm.
enum { REDUCTIONS = 3, ALGORITHM_KERNELS = 0, ALGORITHM_PARTS = 2 };

struct Descriptor {
  int scaleType;
  std::map<int, U64> attributes;
  U64 get(int attribute) const {
    auto found = attributes.find(attribute);
    return found == attributes.end() ? 0 : found->second;
  }
};
struct Layout { int type; U64 rows, columns; int64_t leading; U64 batch = 1, stride = 0; };

static bool isByte(int type) { return type == E4M3 || type == E5M2; }
static U64 bytesOf(int type) { return type == DOUBLE ? 8 : type == FLOAT ? 4 : isByte(type) ? 1 : 2; }

static double decodeByte(unsigned char byte, int fraction, int bias, bool hasInfinity) {
  const int magnitude = byte & 0x7f, exponent = magnitude >> fraction, rest = magnitude & ((1 << fraction) - 1);
  const int scale = (exponent == 0 ? 1 : exponent) - bias - fraction;
  double value = std::ldexp(exponent == 0 ? rest : rest + (1 << fraction), scale);
  if (hasInfinity ? exponent == 31 : magnitude == 0x7f) value = hasInfinity && rest == 0 ? INFINITY : NAN;
  return byte & 0x80 ? -value : value;
}
static double read(int type, U64 address, U64 element) {
  const char *at = (const char *)address + element * bytesOf(type);
  if (type == DOUBLE) return *(const double *)at;
  if (type == FLOAT) return *(const float *)at;
  if (type == HALF) return (float)*(const _Float16 *)at;
  if (isByte(type)) return decodeByte(*at, type == E4M3 ? 3 : 2, type == E4M3 ? 7 : 15, type == E5M2);
  const unsigned word = (unsigned)*(const unsigned short *)at << 16;
  float value;
  memcpy(&value, &word, 4);
  return value;
}
static void write(int type, U64 address, U64 element, double value) {
  char *at = (char *)address + element * bytesOf(type);
  if (type == DOUBLE) *(double *)at = value;
  else if (type == FLOAT) *(float *)at = value;
  else if (type == HALF) *(_Float16 *)at = (_Float16)(float)value;
  else {
    const float single = value;
    unsigned word;
    memcpy(&word, &single, 4);
    *(unsigned short *)at = single != single ? 0x7fff : (word + 0x7fff + (word >> 16 & 1)) >> 16;
  }
}

// The scale of an operand at `index`, a row of the result for A and a column for B, and `k`. Scales of 1 x 128 lie with
// those of all rows side by side, scales of 128 x 128 with those along k, in lines that begin at multiples of 4: with NaN
// between the lines, an H200 gave the products.
static double scaleAt(const float *scales, U64 mode, U64 index, U64 k, U64 extent, U64 terms) {
  auto line = [](U64 count) { return (count + 3) / 4 * 4; };
  if (scales == nullptr) return 1;
  if (mode == OF_ROWS) return scales[index];
  if (mode == OF_1x128) return scales[k / 128 * line(extent) + index];
  if (mode == OF_128x128) return scales[index / 128 * line((terms + 127) / 128) + k / 128];
  return scales[0];
}

static bool isSupported(const Descriptor &descriptor, const Layout &a, const Layout &b, const Layout &c) {
  if (!isByte(a.type) && !isByte(b.type)) return a.type == b.type && a.type == c.type;
  const U64 modes[] = {descriptor.get(SCALE_MODE), descriptor.get(SCALE_MODE + 1)};
  const bool inBlocks = modes[0] == OF_1x128 || modes[0] == OF_128x128;
  const bool bothInBlocks = inBlocks && (modes[1] == OF_1x128 || modes[1] == OF_128x128);
  const bool modesFit = inBlocks ? bothInBlocks && modes[0] + modes[1] != 2 * OF_128x128 : modes[0] == modes[1];
  const bool linesFit = a.leading % 16 == 0 && b.leading % 16 == 0 && c.leading * bytesOf(c.type) % 16 == 0;
  const bool sizesFit = a.rows % 16 == 0 && a.columns % 16 == 0 && linesFit;
  const bool typesFit = isByte(a.type) && isByte(b.type) && !(a.type == E5M2 && b.type == E5M2);
  return typesFit && descriptor.get(TRANSA) == 1 && descriptor.get(TRANSB) == 0 && modesFit && sizesFit;
}

// The elements of an operand times their scales: `terms` of them for each row of A or column of B.
static std::vector<double> scaledElements(
  const Layout &of, bool alongTerms, U64 address, U64 batch, U64 count, U64 terms, const float *scales, U64 mode
) {
  std::vector<double> elements(count * terms);
  for (U64 index = 0; index < count; index++)
    for (U64 k = 0; k < terms; k++) {
      const U64 place = batch * of.stride + (alongTerms ? index * of.leading + k : k * of.leading + index);
      elements[index * terms + k] = read(of.type, address, place) * scaleAt(scales, mode, index, k, count, terms);
    }
  return elements;
}
static int multiply(
  const Descriptor &descriptor, bool inParts, double alpha, U64 a, const Layout &ofA, U64 b, const Layout &ofB, double beta, U64 c,
  U64 d, const Layout &ofC
) {
  const bool turnsA = descriptor.get(TRANSA) == 1, turnsB = descriptor.get(TRANSB) == 1;
  const U64 rows = ofC.rows, columns = ofC.columns, terms = turnsA ? ofA.rows : ofA.columns;
  const U64 bias = descriptor.get(EPILOGUE) == EPILOGUE_BIAS ? descriptor.get(BIAS_POINTER) : 0;
  auto scales = [&](int i) { return isByte(ofA.type) ? (const float *)descriptor.get(SCALE_POINTER + i) : nullptr; };
  for (U64 batch = 0; batch < ofC.batch; batch++) {
    const auto left = scaledElements(ofA, turnsA, a, batch, rows, terms, scales(0), descriptor.get(SCALE_MODE));
    const auto right = scaledElements(ofB, !turnsB, b, batch, columns, terms, scales(1), descriptor.get(SCALE_MODE + 1));
    for (U64 column = 0; column < columns; column++) {
      for (U64 row = 0; row < rows; row++) {
        double sum = 0;
        for (U64 k = 0; k < terms; k++) {
          sum += left[row * terms + k] * right[column * terms + k];
          if (descriptor.scaleType != DOUBLE) sum = (float)sum;
        }
        const U64 place = batch * ofC.stride + column * ofC.leading + row;
        sum *= alpha;
        // With beta = 0, C is not read.
        if (beta != 0) sum += beta * read(ofC.type, c, place);
        // As on an H200: a sum of parts is rounded before the bias is added.
        if (inParts) {
          write(ofC.type, d, place, sum);
          sum = read(ofC.type, d, place);
        }
        if (bias != 0) sum += read(ofC.type, bias, row);
        write(ofC.type, d, place, sum);
      }
    }
  }
  return SUCCESS;
}

API cublasLtCreate(U64 *handle) { *handle = 1; return SUCCESS; }
API cublasLtDestroy(U64) { return SUCCESS; }
extern "C" size_t cublasLtGetVersion() { return 130000; }
extern "C" const char *cublasLtGetStatusName(int) { return "CUBLAS_STATUS_FAKE"; }
extern "C" const char *cublasLtGetStatusString(int) { return "a fake status"; }
API cublasLtMatmulDescCreate(U64 *made, int, int scaleType) {
  *made = (U64) new Descriptor{scaleType};
  return SUCCESS;
}
API cublasLtMatmulDescDestroy(U64 descriptor) { delete (Descriptor *)descriptor; return SUCCESS; }
API cublasLtMatmulDescSetAttribute(U64 descriptor, int attribute, const void *value, size_t bytes) {
  U64 word = 0;
  const bool isPointer = attribute == BIAS_POINTER || attribute == SCALE_POINTER || attribute == SCALE_POINTER + 1;
  const size_t needed = isPointer ? 8 : attribute == FAST_ACCUMULATION ? 1 : 4;
  if (bytes != needed) return INVALID_VALUE;
  memcpy(&word, value, bytes);
  ((Descriptor *)descriptor)->attributes[attribute] = word;
  return SUCCESS;
}
API cublasLtMatrixLayoutCreate(U64 *made, int type, U64 rows, U64 columns, int64_t leading) {
  *made = (U64) new Layout{type, rows, columns, leading};
  return SUCCESS;
}
API cublasLtMatrixLayoutDestroy(U64 layout) { delete (Layout *)layout; return SUCCESS; }
API cublasLtMatrixLayoutSetAttribute(U64 layout, int attribute, const void *value, size_t bytes) {
  auto *of = (Layout *)layout;
  if (attribute != BATCH_COUNT && attribute != BATCH_STRIDE) return INVALID_VALUE;
  if (bytes != (attribute == BATCH_COUNT ? 4 : 8)) return INVALID_VALUE;
  memcpy(attribute == BATCH_COUNT ? &of->batch : &of->stride, value, bytes);
  return SUCCESS;
}
// What callers promise about addresses: the attributes of a preference, which is one for the process.
static std::map<int, unsigned> preferred;
API cublasLtMatmulPreferenceCreate(U64 *made) { *made = 1; return SUCCESS; }
API cublasLtMatmulPreferenceDestroy(U64) { return SUCCESS; }
API cublasLtMatmulPreferenceSetAttribute(U64, int attribute, const void *value, size_t) {
  memcpy(&preferred[attribute], value, 4);
  return SUCCESS;
}
struct Algorithm { unsigned alignments[4], parts, kernels, rest[10]; };
static_assert(sizeof(Algorithm) == 64, "as in cublasLt.h");
API cublasLtMatmulAlgoConfigGetAttribute(const Algorithm *of, int attribute, int *value, size_t bytes, size_t *) {
  if (bytes != 4 || (attribute != ALGORITHM_KERNELS && attribute != ALGORITHM_PARTS)) return INVALID_VALUE;
  *value = attribute == ALGORITHM_KERNELS ? of->kernels : of->parts;
  return SUCCESS;
}
// Where sums of parts of k are allowed, the first algorithm cuts k, by kernels that are older than Hopper's.
API cublasLtMatmulAlgoGetHeuristic(
  U64, U64 descriptor, U64 a, U64 b, U64 c, U64, U64, int, void *results, int *returned
) {
  *returned = 0;
  if (getenv("FAKE_CUBLASLT") == nullptr) return SUCCESS;
  const Layout &ofA = *(Layout *)a, &ofB = *(Layout *)b, &ofC = *(Layout *)c;
  if (!isSupported(*(Descriptor *)descriptor, ofA, ofB, ofC)) return NOT_SUPPORTED;
  Algorithm algorithm = {};
  for (int i = 0; i < 4; i++) {
    algorithm.alignments[i] = preferred[5 + i];
    if (isByte(ofA.type) && preferred[5 + i] < 16) return NOT_SUPPORTED;
  }
  algorithm.kernels = 24;
  if (preferred[REDUCTIONS] != 0) {
    algorithm.parts = 4;
    memcpy(results, &algorithm, sizeof algorithm);
    results = (char *)results + 96;
    ++*returned;
  }
  // An odd number of rows has no other algorithm, unless parts are not allowed.
  if (preferred[REDUCTIONS] != 0 && ofC.rows % 2 == 1) return SUCCESS;
  algorithm.parts = 1;
  memcpy(results, &algorithm, sizeof algorithm);
  ++*returned;
  return SUCCESS;
}
API cublasLtMatmul(
  U64, U64 descriptor, U64 alpha, U64 a, U64 layoutA, U64 b, U64 layoutB, U64 beta, U64 c, U64 layoutC, U64 d,
  U64 layoutD, U64 algorithm, U64, size_t, U64
) {
  const Descriptor of = *(Descriptor *)descriptor;
  const Layout ofA = *(Layout *)layoutA, ofB = *(Layout *)layoutB, ofC = *(Layout *)layoutC;
  const U64 addresses[] = {a, b, c, d};
  for (int i = 0; i < 4; i++)
    if (addresses[i] % ((Algorithm *)algorithm)->alignments[i] != 0) return INVALID_VALUE;
  const bool turnsA = of.get(TRANSA) == 1, turnsB = of.get(TRANSB) == 1;
  const U64 terms = turnsA ? ofA.rows : ofA.columns;
  const bool rowsFit = (turnsA ? ofA.columns : ofA.rows) == ofC.rows;
  const bool columnsFit = (turnsB ? ofB.rows : ofB.columns) == ofC.columns;
  if (!rowsFit || !columnsFit || (turnsB ? ofB.columns : ofB.rows) != terms || layoutC != layoutD) return INVALID_VALUE;
  for (const Layout *each : {&ofA, &ofB, &ofC})
    if (each->leading < (int64_t)each->rows || each->batch != ofC.batch) return INVALID_VALUE;
  for (int i = 0; i < 2; i++)
    if (of.get(SCALE_MODE + i) >= OF_1x128 && of.get(SCALE_POINTER + i) % 16 != 0) return INVALID_VALUE;
  auto number = [&](U64 at) { return of.scaleType == DOUBLE ? *(double *)at : *(float *)at; };
  const double one = number(alpha), other = number(beta);
  record("cublasLtMatmul");
  const bool inParts = ((Algorithm *)algorithm)->parts > 1;
  return enqueue([=] { return multiply(of, inParts, one, a, ofA, b, ofB, other, c, d, ofC); });
}
