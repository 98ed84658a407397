// cuDNN's graph API on the CPU, for tests on machines without a GPU. Descriptors take the attributes that the table has for their type, with its types and counts,
// refer to finalized descriptors, and are not destroyed before what refers to them. A plan runs the operations of its graph one by one. The first engine refuses
// every graph, so that callers have to try the second one.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

using U64 = uint64_t;
#define API extern "C" __attribute__((visibility("default")))

// Of the fake driver: now, or at every launch of the graph that is being captured.
int enqueue(std::function<int()> work);
int record(const char *name);

enum { POINTWISE = 0, ENGINECFG = 3, HEUR = 4, PLAN = 5, OP_POINTWISE = 13, GRAPH = 15, PACK = 16, TENSOR = 17, MATMUL = 18, OP_MATMUL = 19, REDUCTION = 21, OP_REDUCTION = 22, OP_RESHAPE = 31 };
enum { T_HANDLE = 0, T_DATA_TYPE, T_BOOLEAN, T_INT64, T_FLOAT, T_VOID_PTR = 6, T_HEUR = 8, T_POINTWISE = 14, T_DESCRIPTOR = 15, T_REDUCTION = 18 };
enum { FLOAT = 0, HALF = 2, INT32 = 4, BFLOAT16 = 9, BOOLEAN = 11 };
enum { SUCCESS = 0, BAD_PARAM = 2000, MISALIGNED = 2003, NOT_FINALIZED = 2004, WRONG_TYPE = 2010, WRONG_DESCRIPTOR = 2012, NOT_SUPPORTED = 3000 };

struct Rule { int attribute, type; int64_t least, most; bool required; int refersTo; };
static const std::map<int, std::vector<Rule>> rules = {
  {POINTWISE, {{0, T_POINTWISE, 1, 1, true, -1}, {1, T_DATA_TYPE, 1, 1, true, -1}, {9, T_INT64, 1, 1, false, -1}}},
  {ENGINECFG, {}},
  {HEUR, {{200, T_HEUR, 1, 1, true, -1}, {201, T_DESCRIPTOR, 1, 1, true, GRAPH}}},
  {PLAN, {{401, T_DESCRIPTOR, 1, 1, true, ENGINECFG}}},
  {OP_POINTWISE, {{750, T_DESCRIPTOR, 1, 1, true, POINTWISE}, {751, T_DESCRIPTOR, 1, 1, true, TENSOR}, {752, T_DESCRIPTOR, 1, 1, false, TENSOR}, {753, T_DESCRIPTOR, 1, 1, true, TENSOR},
                  {754, T_FLOAT, 1, 1, false, -1}, {755, T_FLOAT, 1, 1, false, -1}, {758, T_DESCRIPTOR, 1, 1, false, TENSOR}}},
  {GRAPH, {{800, T_HANDLE, 1, 1, true, -1}, {801, T_DESCRIPTOR, 1, 100, true, -2}}},
  {PACK, {{1000, T_INT64, 1, 100, true, -1}, {1001, T_VOID_PTR, 1, 100, true, -1}, {1003, T_VOID_PTR, 1, 1, true, -1}}},
  {TENSOR, {{900, T_INT64, 1, 1, true, -1}, {901, T_DATA_TYPE, 1, 1, true, -1}, {902, T_INT64, 4, 4, true, -1}, {903, T_INT64, 4, 4, true, -1}, {906, T_INT64, 1, 1, true, -1},
            {907, T_BOOLEAN, 1, 1, false, -1}, {908, T_BOOLEAN, 1, 1, false, -1}}},
  {MATMUL, {{1500, T_DATA_TYPE, 1, 1, true, -1}}},
  {OP_MATMUL, {{1520, T_DESCRIPTOR, 1, 1, true, TENSOR}, {1521, T_DESCRIPTOR, 1, 1, true, TENSOR}, {1522, T_DESCRIPTOR, 1, 1, true, TENSOR}, {1523, T_DESCRIPTOR, 1, 1, true, MATMUL}}},
  {REDUCTION, {{1600, T_REDUCTION, 1, 1, true, -1}, {1601, T_DATA_TYPE, 1, 1, true, -1}}},
  {OP_REDUCTION, {{1610, T_DESCRIPTOR, 1, 1, true, TENSOR}, {1611, T_DESCRIPTOR, 1, 1, true, TENSOR}, {1612, T_DESCRIPTOR, 1, 1, true, REDUCTION}}},
  {OP_RESHAPE, {{2200, T_DESCRIPTOR, 1, 1, true, TENSOR}, {2201, T_DESCRIPTOR, 1, 1, true, TENSOR}}},
};

struct Descriptor {
  int type;
  bool finalized = false;
  int users = 0;
  std::map<int, std::vector<int64_t>> values;
  Descriptor *engineOf = nullptr;
  int engine = -1;
  int64_t get(int attribute, int64_t otherwise = 0) const {
    auto found = values.find(attribute);
    return found == values.end() ? otherwise : found->second[0];
  }
  Descriptor *at(int attribute) const { return (Descriptor *)get(attribute); }
};
static std::set<Descriptor *> alive;
static std::map<U64, U64> streams;
static U64 nextHandle = 1;
static char message[512];
static int refuse(int status, const std::string &text) {
  snprintf(message, sizeof message, "%s", text.c_str());
  return status;
}
// Descriptors that are not given back, and ones that are while something refers to them, are in the log.
static struct Leaving {
  ~Leaving() {
    if (!alive.empty()) record("cudnn: descriptors are left");
    if (!streams.empty()) record("cudnn: handles are left");
  }
} leaving;

API size_t cudnnGetVersion() { return getenv("FAKE_CUDNN_VERSION") ? atoi(getenv("FAKE_CUDNN_VERSION")) : 91900; }
API const char *cudnnGetErrorString(int status) { return status == NOT_SUPPORTED ? "CUDNN_STATUS_NOT_SUPPORTED" : "CUDNN_STATUS_BAD_PARAM"; }
API void cudnnGetLastErrorString(char *text, size_t bytes) { snprintf(text, bytes, "%s", message); }
API int cudnnCreate(U64 *handle) { streams[*handle = nextHandle++] = ~0ull; return record("cudnnCreate"); }
API int cudnnDestroy(U64 handle) { return streams.erase(handle) ? SUCCESS : BAD_PARAM; }
API int cudnnSetStream(U64 handle, U64 stream) { streams[handle] = stream; return SUCCESS; }

API int cudnnBackendCreateDescriptor(int type, Descriptor **made) {
  if (!rules.count(type)) return refuse(NOT_SUPPORTED, "no such descriptor");
  alive.insert(*made = new Descriptor{type});
  return SUCCESS;
}
API int cudnnBackendDestroyDescriptor(Descriptor *descriptor) {
  if (!alive.count(descriptor)) return record("cudnn: destroyed twice"), BAD_PARAM;
  if (descriptor->users) record("cudnn: destroyed in use");
  for (auto &[attribute, values] : descriptor->values)
    for (auto &rule : rules.at(descriptor->type))
      if (rule.attribute == attribute && rule.type == T_DESCRIPTOR)
        for (int64_t value : values) ((Descriptor *)value)->users--;
  alive.erase(descriptor);
  delete descriptor;
  return SUCCESS;
}
API int cudnnBackendSetAttribute(Descriptor *descriptor, int attribute, int type, int64_t count, const void *elements) {
  if (!alive.count(descriptor) || descriptor->finalized) return refuse(BAD_PARAM, "the descriptor is finalized or none");
  const Rule *rule = nullptr;
  for (auto &each : rules.at(descriptor->type)) if (each.attribute == attribute) rule = &each;
  if (rule == nullptr) return refuse(BAD_PARAM, "the descriptor has no such attribute");
  if (rule->type != type) return refuse(WRONG_TYPE, "the attribute has another type");
  if (count < rule->least || count > rule->most) return refuse(BAD_PARAM, "the attribute has another number of elements");
  std::vector<int64_t> values;
  for (int64_t i = 0; i < count; i++) {
    int64_t value = 0;
    if (type == T_BOOLEAN) value = ((const uint8_t *)elements)[i];
    else if (type == T_FLOAT) value = ((const float *)elements)[i] == 1.0f ? 1 : 0;
    else if (type == T_DATA_TYPE || type == T_POINTWISE || type == T_REDUCTION || type == T_HEUR) value = ((const int *)elements)[i];
    else value = ((const int64_t *)elements)[i];
    values.push_back(value);
    if (type != T_DESCRIPTOR) continue;
    auto *other = (Descriptor *)value;
    if (!alive.count(other)) return refuse(BAD_PARAM, "the attribute refers to no descriptor");
    if (!other->finalized) return refuse(NOT_FINALIZED, "the attribute refers to a descriptor that is not finalized");
    bool isOp = other->type == OP_POINTWISE || other->type == OP_MATMUL || other->type == OP_REDUCTION || other->type == OP_RESHAPE;
    if (rule->refersTo == -2 ? !isOp : other->type != rule->refersTo) return refuse(WRONG_DESCRIPTOR, "the attribute refers to another type of descriptor");
    other->users++;
  }
  descriptor->values[attribute] = values;
  return SUCCESS;
}

using Index = std::array<int64_t, 4>;
static int64_t dim(const Descriptor *tensor, int axis) { return tensor->values.at(902)[axis]; }
static int64_t stride(const Descriptor *tensor, int axis) { return tensor->values.at(903)[axis]; }
static bool isVirtual(const Descriptor *tensor) { return tensor->get(907); }
static bool isNumber(const Descriptor *tensor) { return tensor->get(908); }

static int finalizeTensor(Descriptor *tensor) {
  int type = tensor->get(901);
  if (tensor->get(900) != 16) return refuse(BAD_PARAM, "tensors are aligned to 16 bytes");
  if (isVirtual(tensor) && isNumber(tensor)) return refuse(BAD_PARAM, "a virtual tensor is given by value");
  for (int axis = 0; axis < 4; axis++)
    if (dim(tensor, axis) < 1 || stride(tensor, axis) < 0) return refuse(BAD_PARAM, "dimensions are positive, and strides are not negative");
  return SUCCESS;
}
static int checkMatrix(Descriptor *tensor) {
  int type = tensor->get(901);
  if ((type != HALF && type != BFLOAT16) || isVirtual(tensor)) return SUCCESS;
  int contiguous = stride(tensor, 3) == 1 ? 3 : 2;
  for (int axis = 0; axis < 4; axis++) {
    int64_t step = stride(tensor, axis);
    bool isLaid = axis == contiguous ? step == 1 : dim(tensor, axis) == 1 || (step > 0 && step % 8 == 0);
    if (!isLaid) return refuse(NOT_SUPPORTED, "rows of matrices are aligned to 16 bytes");
  }
  return SUCCESS;
}
static int finalizeGraph(Descriptor *graph) {
  std::set<Descriptor *> written;
  if (!streams.count(graph->get(800))) return refuse(BAD_PARAM, "the graph has no handle");
  int matmuls = 0;
  for (int64_t each : graph->values[801]) matmuls += ((Descriptor *)each)->type == OP_MATMUL;
  for (int64_t each : graph->values[801]) {
    auto *op = (Descriptor *)each;
    // The sum of scores and a bias is not one of matrices. Gradients take one row of it for another.
    bool isBias = op->type == OP_POINTWISE && op->at(750)->get(0) == 0 && !isVirtual(op->at(752)) && !isNumber(op->at(752));
    bool hasRows = !isBias || dim(op->at(752), 2) == dim(op->at(753), 2);
    if (!hasRows && matmuls > 2) return refuse(BAD_PARAM, "the bias of a gradient has all rows");
    for (int attribute : {751, 752, 753, 1520, 1521, 1522})
      if (auto *tensor = op->at(attribute))
        if (int status = isBias ? SUCCESS : checkMatrix(tensor)) return status;
    for (int attribute : {751, 752, 758, 1520, 1521, 1610, 2200})
      if (auto *input = op->at(attribute))
        if (isVirtual(input) && !written.count(input)) return refuse(BAD_PARAM, "an operation reads a virtual tensor that no one before it writes");
    for (int attribute : {753, 1522, 1611, 2201})
      if (auto *output = op->at(attribute))
        if (isNumber(output) || !written.insert(output).second) return refuse(BAD_PARAM, "an operation writes a number, or a tensor again");
  }
  return SUCCESS;
}
API int cudnnBackendFinalize(Descriptor *descriptor) {
  if (!alive.count(descriptor) || descriptor->finalized) return refuse(BAD_PARAM, "the descriptor is finalized or none");
  for (auto &rule : rules.at(descriptor->type))
    if (rule.required && !descriptor->values.count(rule.attribute)) return refuse(BAD_PARAM, "attribute " + std::to_string(rule.attribute) + " is not set");
  int status = descriptor->type == TENSOR ? finalizeTensor(descriptor) : descriptor->type == GRAPH ? finalizeGraph(descriptor) : SUCCESS;
  if (descriptor->type == HEUR && descriptor->get(200) != 3) status = refuse(NOT_SUPPORTED, "the mode is not A");
  if (descriptor->type == PLAN && (descriptor->at(401)->engine == 0 || getenv("FAKE_CUDNN_REFUSES"))) status = refuse(NOT_SUPPORTED, "this engine takes no graph");
  if (descriptor->type == PACK && descriptor->values[1000].size() != descriptor->values[1001].size()) status = refuse(BAD_PARAM, "not as many pointers as ids");
  if (status) return status;
  if (descriptor->type == PLAN) record("cudnn: a plan");
  descriptor->finalized = true;
  return SUCCESS;
}
static const int64_t workspaceBytes = 3 << 20;
API int cudnnBackendGetAttribute(Descriptor *descriptor, int attribute, int type, int64_t requested, int64_t *count, int64_t *elements) {
  if (!alive.count(descriptor) || !descriptor->finalized) return refuse(NOT_FINALIZED, "the descriptor is not finalized");
  if (descriptor->type == PLAN && attribute == 402 && type == T_INT64 && requested == 1) {
    *elements = workspaceBytes;
    *count = 1;
    return SUCCESS;
  }
  if (descriptor->type != HEUR || attribute != 202 || type != T_DESCRIPTOR) return refuse(BAD_PARAM, "no such attribute");
  *count = std::min<int64_t>(requested, 2);
  for (int64_t i = 0; i < *count; i++) {
    auto *config = (Descriptor *)elements[i];
    if (!alive.count(config) || config->type != ENGINECFG) return refuse(BAD_PARAM, "results go into engine configurations");
    config->finalized = true;
    config->engine = i;
    config->engineOf = descriptor->at(201);
  }
  return SUCCESS;
}

// The memory of a tensor while a plan runs: of the pack, or of the plan.
struct Storage { char *memory = nullptr; int type = FLOAT; std::vector<float> own; };
static float roundTo(int type, float value) {
  if (type == HALF) return (float)(_Float16)value;
  if (type != BFLOAT16 || std::isnan(value)) return value;
  uint32_t bits;
  memcpy(&bits, &value, 4);
  bits = (bits + 0x7fff + ((bits >> 16) & 1)) & 0xffff0000;
  memcpy(&value, &bits, 4);
  return value;
}
struct Run {
  std::map<const Descriptor *, Storage> storages;
  static int64_t place(const Descriptor *tensor, Index index) {
    int64_t flat = 0;
    for (int axis = 0; axis < 4; axis++) flat += (dim(tensor, axis) == 1 ? 0 : index[axis]) * stride(tensor, axis);
    return flat;
  }
  float load(const Descriptor *tensor, Index index) {
    Storage &from = storages.at(tensor);
    int64_t flat = place(tensor, index);
    if (from.memory == nullptr) return from.own[flat];
    if (from.type == FLOAT) return ((float *)from.memory)[flat];
    if (from.type == INT32) return ((int32_t *)from.memory)[flat];
    if (from.type == HALF) return (float)((_Float16 *)from.memory)[flat];
    uint32_t bits = (uint32_t)((uint16_t *)from.memory)[flat] << 16;
    float value;
    memcpy(&value, &bits, 4);
    return value;
  }
  void store(const Descriptor *tensor, Index index, float value) {
    Storage &to = storages[tensor];
    int64_t flat = place(tensor, index);
    value = roundTo(tensor->get(901), value);
    if (to.memory == nullptr) {
      if (to.own.size() <= (size_t)flat) to.own.resize(flat + 1);
      to.own[flat] = value;
    } else if (to.type == FLOAT) ((float *)to.memory)[flat] = value;
    else if (to.type == HALF) ((_Float16 *)to.memory)[flat] = (_Float16)value;
    else {
      uint32_t bits;
      memcpy(&bits, &value, 4);
      ((uint16_t *)to.memory)[flat] = bits >> 16;
    }
  }
  static void each(const Descriptor *tensor, const std::function<void(Index)> &run) {
    for (int64_t b = 0; b < dim(tensor, 0); b++)
      for (int64_t h = 0; h < dim(tensor, 1); h++)
        for (int64_t i = 0; i < dim(tensor, 2); i++)
          for (int64_t j = 0; j < dim(tensor, 3); j++) run({b, h, i, j});
  }
  void matmul(const Descriptor *a, const Descriptor *b, const Descriptor *c) {
    each(c, [&](Index at) {
      float sum = 0;
      for (int64_t k = 0; k < dim(a, 3); k++)
        sum += load(a, {at[0], at[1] * dim(a, 1) / dim(c, 1), at[2], k}) * load(b, {at[0], at[1] * dim(b, 1) / dim(c, 1), k, at[3]});
      store(c, at, sum);
    });
  }
  void pointwise(const Descriptor *how, const Descriptor *x, const Descriptor *b, const Descriptor *t, const Descriptor *y) {
    each(y, [&](Index at) {
      float p = load(x, at), q = b ? load(b, at) : 0;
      switch (how->get(0)) {
        case 0: return store(y, at, p + q);
        case 1: return store(y, at, p * q);
        // A row whose scores are all -infinity gives 0.
        case 6: return store(y, at, q == 0 ? 0 : p / q);
        case 9: return store(y, at, p == -INFINITY && q == -INFINITY ? p : p - q);
        case 13: return store(y, at, std::exp(p));
        case 15: return store(y, at, std::log(p));
        case 302: return store(y, at, p > q);
        case 303: return store(y, at, p >= q);
        case 501: return store(y, at, at[how->get(9)]);
        default: return store(y, at, load(t, at) != 0 ? p : q);
      }
    });
  }
  void reduce(int64_t op, const Descriptor *x, const Descriptor *y) {
    std::map<Index, float> results;
    each(x, [&](Index at) {
      Index to;
      for (int axis = 0; axis < 4; axis++) to[axis] = at[axis] * dim(y, axis) / dim(x, axis);
      float value = load(x, at);
      auto [found, isFirst] = results.insert({to, value});
      if (!isFirst) found->second = op == 0 ? found->second + value : std::max(found->second, value);
    });
    for (auto &[to, value] : results) store(y, to, value);
  }
};
static int run(Descriptor *graph, const std::map<int64_t, char *> &pointers) {
  Run run;
  for (int64_t each : graph->values[801]) {
    auto *op = (Descriptor *)each;
    for (int attribute : {751, 752, 753, 758, 1520, 1521, 1522, 1610, 1611, 2200, 2201})
      if (auto *tensor = op->at(attribute))
        if (!isVirtual(tensor)) run.storages[tensor] = {pointers.at(tensor->get(906)), (int)tensor->get(901), {}};
    if (op->type == OP_MATMUL) run.matmul(op->at(1520), op->at(1521), op->at(1522));
    if (op->type == OP_POINTWISE) run.pointwise(op->at(750), op->at(751), op->at(752), op->at(758), op->at(753));
    if (op->type == OP_REDUCTION) run.reduce(op->at(1612)->get(1600), op->at(1610), op->at(1611));
    if (op->type != OP_RESHAPE) continue;
    auto *to = op->at(2201);
    run.storages[to] = run.storages.at(op->at(2200));
    for (float &value : run.storages[to].own) value = roundTo(to->get(901), value);
  }
  return 0;
}
API int cudnnBackendExecute(U64 handle, Descriptor *plan, Descriptor *pack) {
  if (!streams.count(handle) || streams[handle] == ~0ull) return refuse(BAD_PARAM, "the handle has no stream");
  if (!alive.count(plan) || plan->type != PLAN || !alive.count(pack) || pack->type != PACK || !plan->finalized || !pack->finalized) return refuse(BAD_PARAM, "no plan, or no pack");
  auto *graph = plan->at(401)->engineOf;
  std::map<int64_t, char *> pointers;
  for (size_t i = 0; i < pack->values[1000].size(); i++) pointers[pack->values[1000][i]] = (char *)pack->values[1001][i];
  for (int64_t each : graph->values[801])
    for (int attribute : {751, 752, 753, 758, 1520, 1521, 1522, 1610, 1611, 2200, 2201})
      if (auto *tensor = ((Descriptor *)each)->at(attribute)) {
        auto found = pointers.find(tensor->get(906));
        if (isVirtual(tensor) != (found == pointers.end())) return refuse(BAD_PARAM, "the pack has other tensors than the graph");
        if (!isVirtual(tensor) && (U64)found->second % (isNumber(tensor) ? 4 : 16)) return refuse(MISALIGNED, "a pointer is not aligned");
      }
  auto *workspace = (char *)pack->get(1003);
  record("cudnnBackendExecute");
  return enqueue([=] {
    memset(workspace, 0x5a, workspaceBytes);
    return run(graph, pointers);
  });
}
