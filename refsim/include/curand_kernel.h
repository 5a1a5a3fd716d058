// cuRAND's Philox4x32-10 generator: integers and uniform numbers bit for bit, normal numbers by the exact sine where
// the device takes its fast one. Other generators are refused.
#pragma once
struct curandStatePhilox4_32_10 {
  uint4 ctr;
  uint4 output;
  uint2 key;
  unsigned int STATE;
  int boxmuller_flag;
  int boxmuller_flag_double;
  float boxmuller_extra;
  double boxmuller_extra_double;
};
typedef curandStatePhilox4_32_10 curandStatePhilox4_32_10_t;
#define REFSIM_UNAVAILABLE __attribute__((unavailable("refsim has the Philox generator only: use curandStatePhilox4_32_10_t")))
struct REFSIM_UNAVAILABLE curandStateXORWOW {};
typedef curandStateXORWOW curandState REFSIM_UNAVAILABLE;
typedef curandStateXORWOW curandState_t REFSIM_UNAVAILABLE;
typedef curandStateXORWOW curandStateXORWOW_t REFSIM_UNAVAILABLE;
struct REFSIM_UNAVAILABLE curandStateMRG32k3a {};
struct REFSIM_UNAVAILABLE curandStateMtgp32 {};
struct REFSIM_UNAVAILABLE curandStateSobol32 {};
#undef REFSIM_UNAVAILABLE
#define REFSIM_F REFSIM_DEVICE inline
REFSIM_F uint4 __refsim_philox(uint4 c, uint2 k) {
#pragma unroll
  for (int i = 0; i < 10; ++i) {
    unsigned int hi0 = __umulhi(0xD2511F53u, c.x), lo0 = 0xD2511F53u * c.x;
    unsigned int hi1 = __umulhi(0xCD9E8D57u, c.z), lo1 = 0xCD9E8D57u * c.z;
    c = uint4{hi1 ^ c.y ^ k.x, lo1, hi0 ^ c.w ^ k.y, lo0};
    k.x += 0x9E3779B9u;
    k.y += 0xBB67AE85u;
  }
  return c;
}
REFSIM_F void __refsim_philox_add(uint4& c, unsigned long long n) {
  unsigned long long low = ((unsigned long long)c.y << 32 | c.x) + n;
  unsigned long long high = ((unsigned long long)c.w << 32 | c.z) + (low < n ? 1u : 0u);
  c = uint4{(unsigned int)low, (unsigned int)(low >> 32), (unsigned int)high, (unsigned int)(high >> 32)};
}
REFSIM_F void skipahead(unsigned long long n, curandStatePhilox4_32_10* s) {
  s->STATE += (unsigned int)(n & 3);
  n /= 4;
  if (s->STATE > 3) {
    n += 1;
    s->STATE -= 4;
  }
  __refsim_philox_add(s->ctr, n);
  s->output = __refsim_philox(s->ctr, s->key);
}
REFSIM_F void skipahead_sequence(unsigned long long n, curandStatePhilox4_32_10* s) {
  unsigned long long high = ((unsigned long long)s->ctr.w << 32 | s->ctr.z) + n;
  s->ctr.z = (unsigned int)high;
  s->ctr.w = (unsigned int)(high >> 32);
  s->output = __refsim_philox(s->ctr, s->key);
}
REFSIM_F void curand_init(unsigned long long seed, unsigned long long sequence, unsigned long long offset,
                          curandStatePhilox4_32_10* s) {
  s->ctr = uint4{0u, 0u, 0u, 0u};
  s->key = uint2{(unsigned int)seed, (unsigned int)(seed >> 32)};
  s->STATE = 0;
  s->boxmuller_flag = 0;
  s->boxmuller_flag_double = 0;
  s->boxmuller_extra = 0.0f;
  s->boxmuller_extra_double = 0.0;
  skipahead_sequence(sequence, s);
  skipahead(offset, s);
}
REFSIM_F unsigned int curand(curandStatePhilox4_32_10* s) {
  unsigned int at = s->STATE++;
  unsigned int r = at == 0 ? s->output.x : at == 1 ? s->output.y : at == 2 ? s->output.z : s->output.w;
  if (s->STATE == 4) {
    __refsim_philox_add(s->ctr, 1);
    s->output = __refsim_philox(s->ctr, s->key);
    s->STATE = 0;
  }
  return r;
}
REFSIM_F uint4 curand4(curandStatePhilox4_32_10* s) {
  uint4 a = s->output;
  __refsim_philox_add(s->ctr, 1);
  s->output = __refsim_philox(s->ctr, s->key);
  uint4 b = s->output;
  if (s->STATE == 1) return uint4{a.y, a.z, a.w, b.x};
  if (s->STATE == 2) return uint4{a.z, a.w, b.x, b.y};
  if (s->STATE == 3) return uint4{a.w, b.x, b.y, b.z};
  return a;
}
REFSIM_F float __refsim_uniform(unsigned int x) { return x * 2.3283064e-10f + (2.3283064e-10f / 2.0f); }
REFSIM_F float curand_uniform(curandStatePhilox4_32_10* s) { return __refsim_uniform(curand(s)); }
REFSIM_F float4 curand_uniform4(curandStatePhilox4_32_10* s) {
  uint4 x = curand4(s);
  return float4{__refsim_uniform(x.x), __refsim_uniform(x.y), __refsim_uniform(x.z), __refsim_uniform(x.w)};
}
REFSIM_F double curand_uniform_double(curandStatePhilox4_32_10* s) {
  unsigned int x = curand(s), y = curand(s);
  unsigned long long z = (unsigned long long)x ^ ((unsigned long long)y << (53 - 32));
  return z * 1.1102230246251565e-16 + (1.1102230246251565e-16 / 2.0);
}
REFSIM_F float2 __refsim_box_muller(unsigned int x, unsigned int y) {
  float u = __refsim_uniform(x);
  float v = y * (2.3283064e-10f * 6.2831855f) + (2.3283064e-10f * 6.2831855f / 2.0f);
  float s = sqrtf(-2.0f * logf(u));
  return float2{s * sinf(v), s * cosf(v)};
}
REFSIM_F float2 curand_normal2(curandStatePhilox4_32_10* s) {
  unsigned int x = curand(s), y = curand(s);
  return __refsim_box_muller(x, y);
}
REFSIM_F float curand_normal(curandStatePhilox4_32_10* s) {
  if (s->boxmuller_flag) {
    s->boxmuller_flag = 0;
    return s->boxmuller_extra;
  }
  float2 v = curand_normal2(s);
  s->boxmuller_extra = v.y;
  s->boxmuller_flag = 1;
  return v.x;
}
REFSIM_F float4 curand_normal4(curandStatePhilox4_32_10* s) {
  uint4 x = curand4(s);
  float2 a = __refsim_box_muller(x.x, x.y), b = __refsim_box_muller(x.z, x.w);
  return float4{a.x, a.y, b.x, b.y};
}
REFSIM_F float curand_log_normal(curandStatePhilox4_32_10* s, float mean, float deviation) {
  return expf(mean + deviation * curand_normal(s));
}
#undef REFSIM_F
