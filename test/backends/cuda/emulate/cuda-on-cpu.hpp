// Enough of CUDA C++ to run generated kernels on the CPU: blocks one after the other, the threads of a block as fibers that take turns at
// barriers. Instructions that kernels name in PTX are replaced by the emulate_ functions here before compiling.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <sched.h>
#include <ucontext.h>
#include <vector>

struct uint2 { unsigned x, y; };
struct alignas(16) uint4 { unsigned x, y, z, w; };
struct Dim { unsigned x, y, z; };

static Dim threadIdx, blockIdx;

#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(threads)
// Blocks run one after the other, so that one copy serves all.
#define __shared__ static

// Says on stderr what a GPU says too, and goes on.
static void __assertfail(const char *message, const char *, unsigned, const char *function, size_t) {
  std::fprintf(stderr, "%s: %s\n", function, message);
}

template <class T> static T min(T a, T b) { return a < b ? a : b; }

template <class To, class From> static To bits(From value) {
  To result;
  std::memcpy(&result, &value, sizeof result);
  return result;
}
static float __int_as_float(int x) { return bits<float>(x); }
static unsigned __float_as_uint(float x) { return bits<unsigned>(x); }
static float __uint_as_float(unsigned x) { return bits<float>(x); }
static double __longlong_as_double(long long x) { return bits<double>(x); }
static long long __double_as_longlong(double x) { return bits<long long>(x); }

template <class Int, class Float> static Int saturated(Float x) {
  if (x >= -2.0 * (Float)(std::numeric_limits<Int>::min() / 2)) return std::numeric_limits<Int>::max();
  if (x <= (Float)std::numeric_limits<Int>::min()) return std::numeric_limits<Int>::min();
  return (Int)x;
}
static int __float2int_rz(float x) { return saturated<int>(x); }
static int __double2int_rz(double x) { return saturated<int>(x); }
static long long __float2ll_rz(float x) { return saturated<long long>(x); }
static long long __double2ll_rz(double x) { return saturated<long long>(x); }

static double normcdf(double x) { return 0.5 * std::erfc(-x * std::sqrt(0.5)); }
static float normcdff(float x) { return (float)normcdf(x); }

static float emulate_max(float x, float y) {
  if (x != x || y != y) return bits<float>(0x7fffffff);
  if (x == y) return bits<float>(bits<int>(x) & bits<int>(y));
  return x > y ? x : y;
}
static float emulate_min(float x, float y) {
  if (x != x || y != y) return bits<float>(0x7fffffff);
  if (x == y) return bits<float>(bits<int>(x) | bits<int>(y));
  return x < y ? x : y;
}
static float emulate_half_to_float(unsigned short x) { return (float)bits<_Float16>(x); }
static unsigned short emulate_float_to_half(float x) { return bits<unsigned short>((_Float16)x); }
static unsigned short emulate_float_to_bfloat16(float x) {
  if (x != x) return 0x7fff;
  unsigned word = bits<unsigned>(x);
  return (unsigned short)((word + 0x7fff + ((word >> 16) & 1)) >> 16);
}
// Of the finite magnitudes of 8 bits the nearest, of two the even one; larger numbers are the largest.
static unsigned short emulate_float_to_byte(float x, int fraction, int bias, unsigned largest) {
  if (x != x) return 0x7f;
  auto magnitude = [=](unsigned byte) {
    const int exponent = byte >> fraction, rest = byte & ((1 << fraction) - 1);
    return exponent == 0 ? std::ldexp(rest, 1 - bias - fraction) : std::ldexp(rest + (1 << fraction), exponent - bias - fraction);
  };
  const double wanted = std::fabs((double)x);
  unsigned byte = 0;
  for (; byte < largest; byte++) {
    const double middle = (magnitude(byte) + magnitude(byte + 1)) / 2;
    if (wanted < middle || (wanted == middle && byte % 2 == 0)) break;
  }
  return (unsigned short)(bits<unsigned>(x) >> 24 & 0x80 | byte);
}
static unsigned short emulate_float_to_e4m3(float x) { return emulate_float_to_byte(x, 3, 7, 0x7e); }
static unsigned short emulate_float_to_e5m2(float x) { return emulate_float_to_byte(x, 2, 15, 0x7b); }

// Words that other processes write, and blocks before this one.
static unsigned emulate_look(const unsigned *word) {
  unsigned x = __atomic_load_n(word, __ATOMIC_ACQUIRE);
  if (x != 1) sched_yield();
  return x;
}
static long long clock64() {
  static long long ticks;
  return ticks++;
}
static void __threadfence_system() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
static void __threadfence() { __threadfence_system(); }
template <class T> static T atomicAdd(T *word, T added) { return __atomic_fetch_add(word, added, __ATOMIC_SEQ_CST); }

namespace emulation {
static ucontext_t scheduler;
static std::vector<ucontext_t> fibers;
static std::vector<char> stacks;
static std::vector<char> finished;
static std::function<void()> body;
static unsigned current;
constexpr size_t stackBytes = 64 << 10;

static void enter() {
  body();
  finished[current] = 1;
  swapcontext(&fibers[current], &scheduler);
}

// Runs every thread of a block up to its next barrier, in turns, until all have ended.
static void runBlock(unsigned threads) {
  fibers.resize(threads);
  stacks.resize(threads * stackBytes);
  finished.assign(threads, 0);
  for (unsigned i = 0; i < threads; i++) {
    getcontext(&fibers[i]);
    fibers[i].uc_stack.ss_sp = stacks.data() + i * stackBytes;
    fibers[i].uc_stack.ss_size = stackBytes;
    fibers[i].uc_link = nullptr;
    makecontext(&fibers[i], enter, 0);
  }
  for (unsigned left = threads; left > 0;) {
    left = 0;
    for (current = 0; current < threads; current++) {
      if (finished[current]) continue;
      threadIdx = {current, 0, 0};
      swapcontext(&scheduler, &fibers[current]);
      if (!finished[current]) left++;
    }
  }
}

static void launch(Dim grid, unsigned threads, bool barriers, std::function<void()> kernel) {
  body = kernel;
  for (blockIdx.z = 0; blockIdx.z < grid.z; blockIdx.z++)
    for (blockIdx.y = 0; blockIdx.y < grid.y; blockIdx.y++)
      for (blockIdx.x = 0; blockIdx.x < grid.x; blockIdx.x++) {
        if (barriers) {
          runBlock(threads);
          continue;
        }
        for (unsigned i = 0; i < threads; i++) {
          threadIdx = {i, 0, 0};
          kernel();
        }
      }
}
} // namespace emulation

static void __syncthreads() { swapcontext(&emulation::fibers[emulation::current], &emulation::scheduler); }

// All threads of a block shuffle together, as at a barrier. `from` is a thread of the block.
template <class T> static T emulate_shuffle(T value, unsigned from) {
  static T values[1024];
  values[emulation::current] = value;
  __syncthreads();
  const T other = values[from];
  __syncthreads();
  return other;
}
template <class T> static T __shfl_xor_sync(unsigned, T value, unsigned mask) {
  return emulate_shuffle(value, emulation::current ^ mask);
}
template <class T> static T __shfl_up_sync(unsigned, T value, unsigned by) {
  const unsigned own = emulation::current;
  return emulate_shuffle(value, own % 32 < by ? own : own - by);
}
template <class T> static T __shfl_sync(unsigned, T value, unsigned lane) {
  return emulate_shuffle(value, emulation::current / 32 * 32 + lane);
}
static unsigned __ballot_sync(unsigned, bool value) {
  static bool values[1024];
  values[emulation::current] = value;
  __syncthreads();
  unsigned votes = 0;
  for (unsigned lane = 0; lane < 32; lane++) votes |= unsigned(values[emulation::current / 32 * 32 + lane]) << lane;
  __syncthreads();
  return votes;
}
static int __ffs(unsigned value) { return __builtin_ffs(int(value)); }
