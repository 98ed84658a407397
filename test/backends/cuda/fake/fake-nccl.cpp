// NCCL between processes of one machine on the CPU, for tests without GPUs: every pair of ranks has a queue of messages in shared memory, and collectives are sends and
// receives. A group is work of a stream of the fake driver, by which graphs hold it; inside it all sends go first.
#include "cuda-on-cpu.hpp"
#include <atomic>
#include <chrono>
#include <fcntl.h>
#include <memory>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

#define API extern "C" __attribute__((visibility("default"))) int

constexpr int depth = 8;
constexpr size_t messageBytes = 1 << 18;
struct Queue {
  std::atomic<uint32_t> written, read;
  size_t bytes[depth];
  char data[depth][messageBytes];
};
struct Communicator {
  Queue *queues;
  int ranks, rank;
  Queue &queue(int from, int to) { return queues[from * ranks + to]; }
};
struct UniqueId { char name[128]; };
struct Operation { Communicator *communicator; bool sends; char *data; size_t bytes; int peer; };

static std::vector<Operation> group;
static int groups = 0;
// Reductions end with work after the transfers of their group.
static std::vector<std::function<void()>> afterwards;
int enqueue(std::function<int()> work);
enum { success = 0, systemError = 2, invalid = 4 };

static bool wait(std::function<bool()> done) {
  const char *patience = getenv("FAKE_NCCL_PATIENCE");
  auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(patience ? atoi(patience) : 20000);
  while (!done()) {
    if (std::chrono::steady_clock::now() > end) return false;
    usleep(10);
  }
  return true;
}
static int transfer(const Operation &each) {
  Communicator &c = *each.communicator;
  if (each.bytes > messageBytes) return invalid;
  Queue &queue = each.sends ? c.queue(c.rank, each.peer) : c.queue(each.peer, c.rank);
  if (each.sends) {
    if (!wait([&] { return queue.written.load() - queue.read.load() < depth; })) return systemError;
    uint32_t slot = queue.written.load() % depth;
    queue.bytes[slot] = each.bytes;
    memcpy(queue.data[slot], each.data, each.bytes);
    queue.written++;
    return success;
  }
  if (!wait([&] { return queue.written.load() != queue.read.load(); })) return systemError;
  uint32_t slot = queue.read.load() % depth;
  if (queue.bytes[slot] != each.bytes) return invalid;
  memcpy(each.data, queue.data[slot], each.bytes);
  queue.read++;
  return success;
}
static int flush() {
  std::vector<Operation> all;
  std::vector<std::function<void()>> last;
  std::swap(all, group), std::swap(last, afterwards);
  return enqueue([=] {
    for (bool sends : {true, false})
      for (auto &each : all)
        if (each.sends == sends)
          if (int status = transfer(each)) return status;
    for (auto &work : last) work();
    return (int)success;
  });
}
static int post(Operation operation) {
  group.push_back(operation);
  return groups == 0 ? flush() : success;
}

API ncclGetVersion(int *version) { *version = 22800; return success; }
API ncclGetUniqueId(UniqueId *id) {
  static int count = 0;
  memset(id, 0, sizeof *id);
  snprintf(id->name, sizeof id->name, "/braid-fake-nccl-%d-%d", getpid(), count++);
  return success;
}
extern "C" const char *ncclGetErrorString(int) { return "a fake NCCL error"; }
extern "C" const char *ncclGetLastError(void *) { return ""; }
struct Config { size_t size; unsigned magic, version; int blocking; };
API ncclCommInitRankConfig(Communicator **made, int ranks, UniqueId id, int rank, Config *config) {
  if (config->magic != 0xcafebeef || config->blocking != 0 || config->size != 48 || rank < 0 || rank >= ranks) return invalid;
  size_t bytes = sizeof(Queue) * ranks * ranks;
  int file = shm_open(id.name, O_CREAT | O_RDWR, 0600);
  if (file < 0 || ftruncate(file, bytes)) return systemError;
  void *memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (memory == MAP_FAILED) return systemError;
  *made = new Communicator{(Queue *)memory, ranks, rank};
  // A message to and from everybody: all have arrived.
  static char nothing;
  for (int peer = 0; peer < ranks; peer++) group.push_back({*made, true, &nothing, 0, peer}), group.push_back({*made, false, &nothing, 0, peer});
  int status = flush();
  if (rank == 0) shm_unlink(id.name);
  return status;
}
API ncclCommGetAsyncError(Communicator *, int *status) { *status = success; return success; }
API ncclCommFinalize(Communicator *) { return success; }
API ncclCommDestroy(Communicator *) { return success; }
// The real one may block for a while where a peer has died.
API ncclCommAbort(Communicator *) {
  if (const char *milliseconds = getenv("FAKE_NCCL_ABORT")) usleep(1000 * atoi(milliseconds));
  return success;
}
API ncclGroupStart() { groups++; return success; }
API ncclGroupEnd() { return --groups > 0 ? (int)success : flush(); }

API ncclSend(char *from, size_t count, int type, int peer, Communicator *c, void *) { return type == 1 ? post({c, true, from, count, peer}) : invalid; }
API ncclRecv(char *to, size_t count, int type, int peer, Communicator *c, void *) { return type == 1 ? post({c, false, to, count, peer}) : invalid; }
API ncclAllGather(char *from, char *to, size_t bytes, int type, Communicator *c, void *) {
  if (type != 1 || groups == 0) return invalid;
  for (int peer = 0; peer < c->ranks; peer++) {
    post({c, true, from, bytes, peer});
    post({c, false, to + peer * bytes, bytes, peer});
  }
  return success;
}
API ncclBroadcast(char *from, char *to, size_t bytes, int type, int root, Communicator *c, void *) {
  if (type != 1 || groups == 0) return invalid;
  if (c->rank == root)
    for (int peer = 0; peer < c->ranks; peer++) post({c, true, from, bytes, peer});
  post({c, false, to, bytes, root});
  return success;
}

template <class T> static T combined(int op, T x, T y) { return op == 0 ? x + y : op == 1 ? x * y : op == 2 ? (x > y ? x : y) : (x < y ? x : y); }
template <class T> static void fold(T *sum, const T *value, size_t count, int op) {
  for (size_t i = 0; i < count; i++) sum[i] = combined(op, sum[i], value[i]);
}
static float widened(unsigned short x, int type) { return type == 6 ? emulate_half_to_float(x) : bits<float>((unsigned)x << 16); }
static unsigned short narrowed(float x, int type) { return type == 6 ? emulate_float_to_half(x) : emulate_float_to_bfloat16(x); }
static size_t sizeOf(int type) { return type == 1 ? 1 : type == 6 || type == 9 ? 2 : type == 2 || type == 7 ? 4 : 8; }
static void combine(char *to, const std::vector<std::vector<char>> &parts, size_t count, int type, int op) {
  std::vector<char> sum = parts[0];
  for (size_t i = 1; i < parts.size(); i++) {
    const char *value = parts[i].data();
    if (type == 7) fold((float *)sum.data(), (const float *)value, count, op);
    if (type == 8) fold((double *)sum.data(), (const double *)value, count, op);
    if (type == 2) fold((int *)sum.data(), (const int *)value, count, op);
    if (type == 4) fold((long long *)sum.data(), (const long long *)value, count, op);
    if (type == 1) fold((unsigned char *)sum.data(), (const unsigned char *)value, count, op);
    if (type == 6 || type == 9)
      for (size_t k = 0; k < count; k++) {
        auto *words = (unsigned short *)sum.data();
        words[k] = narrowed(combined(op, widened(words[k], type), widened(((const unsigned short *)value)[k], type)), type);
      }
  }
  memcpy(to, sum.data(), sum.size());
}
/** Every rank of `receivers` gets the parts that all have for it; `from` holds one part for each of them, or one for all. */
static int reduce(char *from, char *to, size_t count, int type, int op, Communicator *c, int first, int last, bool split) {
  if (groups == 0) return invalid;
  size_t bytes = count * sizeOf(type);
  for (int peer = first; peer <= last; peer++) post({c, true, from + (split ? peer * bytes : 0), bytes, peer});
  if (c->rank < first || c->rank > last) return success;
  auto parts = std::make_shared<std::vector<std::vector<char>>>(c->ranks, std::vector<char>(bytes));
  for (int peer = 0; peer < c->ranks; peer++) post({c, false, (*parts)[peer].data(), bytes, peer});
  afterwards.push_back([=] { combine(to, *parts, count, type, op); });
  return success;
}
API ncclAllReduce(char *from, char *to, size_t count, int type, int op, Communicator *c, void *) { return reduce(from, to, count, type, op, c, 0, c->ranks - 1, false); }
API ncclReduceScatter(char *from, char *to, size_t count, int type, int op, Communicator *c, void *) { return reduce(from, to, count, type, op, c, 0, c->ranks - 1, true); }
API ncclReduce(char *from, char *to, size_t count, int type, int op, int root, Communicator *c, void *) { return reduce(from, to, count, type, op, c, root, root, false); }
