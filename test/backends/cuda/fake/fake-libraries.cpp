// A CUDA driver and NVRTC that run on the CPU, for tests on machines without a GPU. Streams execute at once, in the order
// of their issue: a verified program completes that way too (docs/commands.md, one queue). Device memory is shared memory,
// so that processes map it as they map peers' memory. Kernels are their sources, compiled by g++ with cuda-on-cpu.hpp.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>
#include <vector>

using U64 = uint64_t;
#define API extern "C" __attribute__((visibility("default"))) int

static const char *setting(const char *name, const char *otherwise) {
  const char *value = getenv(name);
  return value ? value : otherwise;
}
int record(const char *name) {
  // What was called, for tests that count calls.
  if (const char *file = getenv("FAKE_CUDA_LOG")) {
    if (FILE *log = fopen(file, "a")) {
      fprintf(log, "%s\n", name);
      fclose(log);
    }
  }
  return 0;
}

struct Shared { std::string name; size_t bytes; };
static std::map<U64, Shared> allocations;
// The memory of this process and what it has mapped, by address: a name that does not depend on where it lies.
struct Named { std::string name; size_t bytes; };
static std::map<U64, Named> places;
static std::string placeOf(U64 address) {
  auto after = places.upper_bound(address);
  if (after == places.begin()) return std::to_string(address);
  auto &[start, named] = *--after;
  return address < start + named.bytes ? named.name + "+" + std::to_string(address - start) : std::to_string(address);
}
// Every call with its arguments, in a file for each rank, for tests that compare them.
static void detail(const std::string &line) {
  const char *prefix = getenv("FAKE_CUDA_CALLS");
  if (prefix == nullptr) return;
  if (FILE *log = fopen((std::string(prefix) + setting("RANK", "0")).c_str(), "a")) {
    fprintf(log, "%s\n", line.c_str());
    fclose(log);
  }
}
static std::map<U64, int> streamNumbers, eventNumbers;
static std::string onStream(U64 stream) { return " stream " + (streamNumbers.count(stream) ? std::to_string(streamNumbers[stream]) : "?"); }
// What a process that ends has not freed would stay in the machine's memory. One that was killed leaves it to the next.
static struct Leaving {
  Leaving() {
    DIR *folder = opendir("/dev/shm");
    while (dirent *entry = folder ? readdir(folder) : nullptr) {
      int owner = 0;
      if (sscanf(entry->d_name, "braid-fake-%d-", &owner) != 1 && sscanf(entry->d_name, "braid-fake-nccl-%d-", &owner) != 1) continue;
      if (kill(owner, 0) != 0 && errno == ESRCH) shm_unlink((std::string("/") + entry->d_name).c_str());
    }
    if (folder) closedir(folder);
  }
  ~Leaving() { for (auto &each : allocations) shm_unlink(each.second.name.c_str()); }
} leaving;
static U64 nextHandle = 1000;
static std::map<U64, std::chrono::steady_clock::time_point> events;

// What a stream is to do: now, or, while a capture is under way, at every launch of the graph.
using Work = std::function<int()>;
using Graph = std::vector<Work>;
static Graph *capture = nullptr;
int enqueue(Work work) {
  if (capture == nullptr) return work();
  capture->push_back(work);
  return 0;
}

API cuInit(unsigned) { return record("cuInit"); }
API cuDriverGetVersion(int *version) { *version = 13000; return 0; }
API cuGetErrorName(int status, const char **text) { *text = status == 999 ? "CUDA_ERROR_UNKNOWN" : "CUDA_ERROR_FAKE"; return 0; }
API cuGetErrorString(int, const char **text) { *text = "a fake error"; return 0; }
API cuDeviceGetCount(int *count) { *count = atoi(setting("FAKE_CUDA_DEVICES", "8")); return 0; }
API cuDeviceGet(int *device, int ordinal) { *device = ordinal; return 0; }
API cuDeviceGetName(char *name, int length, int) { snprintf(name, length, "Fake GPU"); return 0; }
API cuDeviceGetAttribute(int *value, int attribute, int) { *value = attribute == 75 ? atoi(setting("FAKE_CUDA_MAJOR", "9")) : attribute == 76 ? 0 : attribute == 16 ? 132 : 4; return 0; }
API cuDeviceTotalMem_v2(size_t *bytes, int) { *bytes = 8ull << 30; return 0; }
API cuDeviceCanAccessPeer(int *can, int, int) { *can = 1; return 0; }
API cuDeviceGetPCIBusId(char *id, int length, int) { snprintf(id, length, "0000:00:00.0"); return 0; }
API cuDevicePrimaryCtxRetain(U64 *context, int) { *context = 1; return 0; }
API cuDevicePrimaryCtxRelease_v2(int) { return 0; }
API cuCtxSetCurrent(U64) { return record("cuCtxSetCurrent"); }
API cuCtxGetStreamPriorityRange(int *least, int *greatest) { *least = 0; *greatest = -5; return 0; }
API cuMemGetInfo_v2(size_t *free, size_t *total) { *free = 4ull << 30; *total = 8ull << 30; return 0; }
API cuMemAlloc_v2(U64 *address, size_t bytes) {
  if (bytes > (4ull << 30)) return 2;
  static int count = 0;
  std::string name = "/braid-fake-" + std::to_string(getpid()) + "-" + std::to_string(count++);
  int file = shm_open(name.c_str(), O_CREAT | O_RDWR, 0600);
  if (file < 0 || ftruncate(file, bytes)) return 999;
  void *memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (memory == MAP_FAILED) return 999;
  memset(memory, 0xa5, bytes);
  *address = (U64)memory;
  allocations[*address] = {name, bytes};
  places[*address] = {"device " + std::to_string(count - 1), bytes};
  return 0;
}
API cuMemFree_v2(U64 address) {
  auto found = allocations.find(address);
  if (found == allocations.end()) return 1;
  munmap((void *)address, found->second.bytes);
  shm_unlink(found->second.name.c_str());
  allocations.erase(found);
  places.erase(address);
  return 0;
}
API cuMemHostAlloc(U64 *address, size_t bytes, unsigned) {
  static int count = 0;
  *address = (U64)aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  places[*address] = {"host " + std::to_string(count++), bytes};
  return 0;
}
API cuMemFreeHost(U64 address) {
  places.erase(address);
  free((void *)address);
  return 0;
}
struct IpcHandle { char bytes[64]; };
API cuIpcGetMemHandle(IpcHandle *handle, U64 address) {
  auto found = allocations.find(address);
  if (found == allocations.end()) return 1;
  memset(handle, 0, sizeof *handle);
  memcpy(handle->bytes, &found->second.bytes, 8);
  strncpy(handle->bytes + 8, found->second.name.c_str(), 55);
  return 0;
}
API cuIpcOpenMemHandle_v2(U64 *address, IpcHandle handle, unsigned) {
  size_t bytes;
  memcpy(&bytes, handle.bytes, 8);
  int file = shm_open(handle.bytes + 8, O_RDWR, 0600);
  if (file < 0) return 999;
  void *memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (memory == MAP_FAILED) return 999;
  *address = (U64)memory;
  static int count = 0;
  places[*address] = {"peer " + std::to_string(count++), bytes};
  return record("cuIpcOpenMemHandle");
}
API cuIpcCloseMemHandle(U64) { return record("cuIpcCloseMemHandle"); }
API cuMemsetD8Async(U64 address, unsigned char value, size_t count, U64) {
  return enqueue([=] { memset((void *)address, value, count); return 0; });
}
static int move(U64 to, U64 from, size_t bytes) { memcpy((void *)to, (void *)from, bytes); return 0; }
API cuMemcpyHtoDAsync_v2(U64 to, U64 from, size_t bytes, U64) { return enqueue([=] { return move(to, from, bytes); }); }
API cuMemcpyDtoHAsync_v2(U64 to, U64 from, size_t bytes, U64) { return enqueue([=] { return move(to, from, bytes); }); }
API cuMemcpyDtoDAsync_v2(U64 to, U64 from, size_t bytes, U64 stream) {
  record("cuMemcpyDtoDAsync");
  detail("copy " + placeOf(from) + " to " + placeOf(to) + ", " + std::to_string(bytes) + onStream(stream));
  return enqueue([=] { return move(to, from, bytes); });
}
struct Side { size_t x, y; int type; U64 host, device, array; size_t pitch; };
struct Copy2D { Side source, destination; size_t width, height; };
API cuMemcpy2DAsync_v2(const Copy2D *given, U64 stream) {
  const Copy2D copy = *given;
  if (copy.source.type != 2 || copy.destination.type != 2) return 1;
  record("cuMemcpy2DAsync");
  detail("copy2d " + placeOf(copy.source.device) + " pitch " + std::to_string(copy.source.pitch) + " to " + placeOf(copy.destination.device) + " pitch " +
         std::to_string(copy.destination.pitch) + ", " + std::to_string(copy.height) + " x " + std::to_string(copy.width) + onStream(stream));
  return enqueue([=] {
    for (size_t i = 0; i < copy.height; i++)
      move(copy.destination.device + i * copy.destination.pitch, copy.source.device + i * copy.source.pitch, copy.width);
    return 0;
  });
}
API cuStreamCreateWithPriority(U64 *stream, unsigned, int) {
  *stream = nextHandle++;
  streamNumbers[*stream] = streamNumbers.size();
  return 0;
}
API cuStreamDestroy_v2(U64) { return 0; }
// Streams that wait for longer than FAKE_CUDA_PATIENCE milliseconds, where it is set: they never end, and no later memory operation of theirs is done.
static std::set<U64> stuck;
API cuStreamQuery(U64 stream) {
  record("cuStreamQuery");
  return stuck.count(stream) ? 600 : 0;
}
API cuStreamWaitEvent(U64 stream, U64 event, unsigned) {
  record("cuStreamWaitEvent");
  detail("wait event " + std::to_string(eventNumbers[event]) + onStream(stream));
  return events.count(event) ? 0 : 1;
}
enum { STUCK = -1 };
struct MemoryOperation { int type; U64 address; uint32_t value, high, flags, padding; U64 alias, rest; };
static_assert(sizeof(MemoryOperation) == 48, "as in cuda.h");
static int perform(const MemoryOperation &each) {
  auto &word = *(std::atomic<uint32_t> *)each.address;
  if (each.type == 2) {
    word.store(each.value);
    return 0;
  }
  if (each.type != 1 || each.flags != 1) return 1;
  const char *patience = getenv("FAKE_CUDA_PATIENCE");
  auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(patience ? atoi(patience) : 20000);
  while (word.load() != each.value) {
    if (std::chrono::steady_clock::now() > end) return patience ? STUCK : 702;
    usleep(20);
  }
  return 0;
}
API cuStreamBatchMemOp_v2(U64 stream, unsigned count, const MemoryOperation *operations, unsigned) {
  record("cuStreamBatchMemOp");
  std::vector<MemoryOperation> batch(operations, operations + count);
  std::string line = "batch";
  for (auto &each : batch) line += (each.type == 2 ? " write " : " wait ") + placeOf(each.address) + " = " + std::to_string(each.value);
  detail(line + onStream(stream));
  return enqueue([=] {
    if (stuck.count(stream)) return 0;
    for (auto &each : batch) {
      int status = perform(each);
      if (status == STUCK) stuck.insert(stream);
      if (status) return status == STUCK ? 0 : status;
    }
    return 0;
  });
}
API cuStreamBeginCapture_v2(U64, int) { capture = new Graph; return record("cuStreamBeginCapture"); }
API cuStreamEndCapture(U64, U64 *graph) { *graph = (U64)capture; capture = nullptr; return 0; }
API cuEventCreate(U64 *event, unsigned) {
  *event = nextHandle++;
  eventNumbers[*event] = eventNumbers.size();
  return 0;
}
API cuEventDestroy_v2(U64) { return 0; }
API cuEventRecord(U64 event, U64 stream) {
  record("cuEventRecord");
  detail("record event " + std::to_string(eventNumbers[event]) + onStream(stream));
  events[event] = std::chrono::steady_clock::now();
  return enqueue([=] { events[event] = std::chrono::steady_clock::now(); return 0; });
}
API cuEventQuery(U64 event) { return events.count(event) ? 0 : 600; }
API cuEventElapsedTime(float *milliseconds, U64 start, U64 end) {
  *milliseconds = std::chrono::duration<float, std::milli>(events[end] - events[start]).count();
  return 0;
}
API cuGraphInstantiateWithFlags(U64 *exec, U64 graph, U64) { *exec = (U64) new Graph(*(Graph *)graph); return 0; }
API cuGraphUpload(U64, U64) { return 0; }
API cuGraphLaunch(U64 exec, U64 stream) {
  record("cuGraphLaunch");
  detail("graph" + onStream(stream));
  for (auto &work : *(Graph *)exec)
    if (int status = work()) return status;
  return 0;
}
API cuGraphExecDestroy(U64 exec) { delete (Graph *)exec; return 0; }
API cuGraphDestroy(U64 graph) { delete (Graph *)graph; return 0; }

using Kernel = void (*)(const unsigned *grid, unsigned threads, void **parameters);
static std::string nameOf(const std::string &source) {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (unsigned char each : source) hash = (hash ^ each) * 0x100000001b3;
  return "kernel-" + std::to_string(hash) + "-" + std::to_string(source.size());
}
API cuModuleLoadData(U64 *module, const char *image) {
  // The fake NVRTC's image: an ELF mark, the length, the folder of the header, then the source as a C++ file.
  uint64_t length;
  memcpy(&length, image + 8, 8);
  std::string source(image + 16, length);
  // g++ takes half a second: the first process that needs a kernel compiles it, the others wait for that, and later
  // runs find it. Its name is of its source, which has the path of the header, which is of the header and of g++.
  std::string path = std::string(setting("FAKE_CUDA_KERNELS", "/tmp")) + "/" + nameOf(source);
  int lock = open((path + ".lock").c_str(), O_CREAT | O_RDWR, 0600);
  if (lock < 0 || flock(lock, LOCK_EX)) return 999;
  int status = 0;
  std::string built = std::string(setting("FAKE_CUDA_COMPILED", setting("FAKE_CUDA_KERNELS", "/tmp"))) + "/" + nameOf(source) + ".so";
  std::ofstream(path + ".cpp") << source;
  if (utimes(built.c_str(), nullptr)) {
    std::string flags = "-std=c++17 -O1 -w -shared -fPIC -ffp-contract=off -fno-strict-aliasing ";
    std::string part = built + "." + std::to_string(getpid());
    status = system(("g++ " + flags + path + ".cpp -o " + part + " && mv " + part + " " + built).c_str());
  }
  close(lock);
  void *library = status == 0 ? dlopen(built.c_str(), RTLD_NOW | RTLD_LOCAL) : nullptr;
  if (library == nullptr) return 200;
  *module = (U64)library;
  return 0;
}
API cuModuleUnload(U64) { return 0; }
static std::map<U64, std::pair<std::string, unsigned>> functions;
API cuModuleGetFunction(U64 *fn, U64 module, const char *) {
  *fn = (U64)dlsym((void *)module, "run");
  auto *name = (const char **)dlsym((void *)module, "kernelHash");
  auto *count = (const unsigned *)dlsym((void *)module, "parameterCount");
  if (*fn) functions[*fn] = {*name, *count};
  return *fn ? 0 : 500;
}
API cuFuncSetAttribute(U64, int, int) { return 0; }
API cuLaunchKernel(U64 fn, unsigned x, unsigned y, unsigned z, unsigned threads, unsigned, unsigned, unsigned, U64 stream, void **parameters, U64) {
  record("cuLaunchKernel");
  auto &[name, count] = functions[fn];
  std::string line = "launch " + name + " grid";
  for (unsigned each : {x, y, z}) line += " " + std::to_string(each);
  line += " of " + std::to_string(threads) + " (";
  for (unsigned i = 0; i < count; i++) line += (i ? ", " : "") + placeOf(*(U64 *)parameters[i]);
  detail(line + ")" + onStream(stream));
  if (x == 0 || y == 0 || z == 0 || threads == 0) return 1; // CUDA_ERROR_INVALID_VALUE
  return enqueue([=] {
    unsigned grid[] = {x, y, z};
    ((Kernel)fn)(grid, threads, parameters);
    return 0;
  });
}

static std::map<U64, std::string> programs;
static std::string log;
API nvrtcVersion(int *major, int *minor) { *major = 13; *minor = 0; return 0; }
extern "C" const char *nvrtcGetErrorString(int) { return "NVRTC_ERROR_FAKE"; }
API nvrtcCreateProgram(U64 *program, const char *source, const char *, int, U64, U64) { programs[*program = nextHandle++] = source; return 0; }
API nvrtcDestroyProgram(U64 *program) { programs.erase(*program); *program = 0; return 0; }
static void replaceAll(std::string &text, const std::string &from, const std::string &to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) text.replace(at, from.size(), to);
}
static void replaceLine(std::string &text, const std::string &start, const std::string &to) {
  for (size_t at = text.find(start); at != std::string::npos; at = text.find(start)) text.replace(at, text.find('\n', at) - at, to);
}
API nvrtcCompileProgram(U64 program, int count, const char **options) {
  if (count < 1 || strncmp(options[0], "-arch=sm_", 9)) return 5;
  std::string &text = programs[program];
  std::string hash = nameOf(text);
  replaceLine(text, "asm(\"max.NaN.f32 ", "z = emulate_max(x, y);");
  replaceLine(text, "asm(\"min.NaN.f32 ", "z = emulate_min(x, y);");
  replaceLine(text, "asm(\"rcp.approx.ftz.f32 ", "y = 1.0f / x;");
  replaceLine(text, "asm(\"cvt.f32.f16 ", "y = emulate_half_to_float(x);");
  replaceLine(text, "asm(\"cvt.rn.f16.f32 ", "y = emulate_float_to_half(x);");
  replaceLine(text, "asm(\"cvt.rn.bf16.f32 ", "y = emulate_float_to_bfloat16(x);");
  replaceLine(text, "asm(\"cvt.rn.satfinite.e4m3x2.f32 ", "y = emulate_float_to_e4m3(x);");
  replaceLine(text, "asm(\"cvt.rn.satfinite.e5m2x2.f32 ", "y = emulate_float_to_e5m2(x);");
  replaceLine(text, "asm volatile(\"st.release.sys.global.u32 ", "__atomic_store_n(word, 1u, __ATOMIC_RELEASE);");
  replaceLine(text, "asm volatile(\"ld.acquire.sys.global.u32 ", "x = emulate_look(word);");
  bool barriers = false;
  for (const char *name : {"__syncthreads", "__shfl", "__ballot"}) barriers |= text.find(name) != std::string::npos;
  size_t open = text.find("braid_kernel(") + 13;
  std::string list = text.substr(open, text.find(") {", open) - open);
  size_t parameters = list.empty() ? 0 : 1;
  for (char each : list) parameters += each == ',';
  replaceAll(text, "extern \"C\" ", "static ");
  std::string arguments;
  for (size_t i = 0; i < parameters; i++) arguments += (i ? ", " : "") + ("Any{*(char **)parameters[" + std::to_string(i) + "]}");
  std::string described = "\nextern \"C\" const char *kernelHash = \"" + hash + "\";\nextern \"C\" const unsigned parameterCount = " + std::to_string(parameters) + ";\n";
  text = "#include \"" + std::string(setting("FAKE_CUDA_HEADER", "cuda-on-cpu.hpp")) + "\"\n#define __CUDA_ARCH__ " + std::to_string(10 * atoi(options[0] + 9)) + "\nstruct Any { char *at; template <class T> operator T *() const { return (T *)at; } operator unsigned long long() const { return (unsigned long long)at; } };\n" + text +
         "\nextern \"C\" void run(const unsigned *grid, unsigned threads, void **parameters) { emulation::launch({grid[0], grid[1], grid[2]}, threads, " +
         (barriers ? "true" : "false") + ", [=] { braid_kernel(" + arguments + "); }); }\n" + described;
  return 0;
}
API nvrtcGetProgramLogSize(U64, size_t *bytes) { *bytes = 1; return 0; }
API nvrtcGetProgramLog(U64, char *text) { *text = 0; return 0; }
API nvrtcGetCUBINSize(U64 program, size_t *bytes) { *bytes = programs[program].size() + 16; return 0; }
API nvrtcGetCUBIN(U64 program, char *image) {
  const std::string &text = programs[program];
  uint64_t length = text.size();
  memcpy(image, "\x7f" "ELFfake", 8);
  memcpy(image + 8, &length, 8);
  memcpy(image + 16, text.data(), length);
  return 0;
}
