// The kernels of peer_kernels.py in OpenCL C: the same blocks, tiles and barriers.

#define TILE 16
#define WIDE 64
#define ROWS 4
#define BLOCK 128
#define HEAD 64
#define KEYS 32
#define BINS 256
#define SYNC barrier(CLK_LOCAL_MEM_FENCE)

__kernel __attribute__((reqd_work_group_size(TILE, TILE, 1)))
void gemm(__global const float *a, __global const float *b, __global float *out, int n) {
    __local float tile_a[TILE][TILE], tile_b[TILE][TILE];
    int tx = get_local_id(0), ty = get_local_id(1), column = get_global_id(0), row = get_global_id(1);
    float total = 0;
    for (int k0 = 0; k0 < n; k0 += TILE) {
        tile_a[ty][tx] = row < n && k0 + tx < n ? a[row * n + k0 + tx] : 0;
        tile_b[ty][tx] = k0 + ty < n && column < n ? b[(k0 + ty) * n + column] : 0;
        SYNC;
        for (int k = 0; k < TILE; ++k) total += tile_a[ty][k] * tile_b[k][tx];
        SYNC;
    }
    if (row < n && column < n) out[row * n + column] = total;
}

__kernel __attribute__((reqd_work_group_size(TILE, TILE, 1)))
void gemm_registers(__global const float *a, __global const float *b, __global float *out, int n) {
    __local float tile_a[WIDE][TILE], tile_b[TILE][WIDE];
    int tx = get_local_id(0), ty = get_local_id(1), row0 = get_group_id(1) * WIDE, column0 = get_group_id(0) * WIDE;
    float sums[ROWS][ROWS] = {{0}}, left[ROWS], right[ROWS];
    for (int k0 = 0; k0 < n; k0 += TILE) {
        for (int r = 0; r < ROWS; ++r) {
            tile_a[ty + TILE * r][tx] = a[(row0 + ty + TILE * r) * n + k0 + tx];
            tile_b[ty][tx + TILE * r] = b[(k0 + ty) * n + column0 + tx + TILE * r];
        }
        SYNC;
        for (int k = 0; k < TILE; ++k) {
            for (int r = 0; r < ROWS; ++r) {
                left[r] = tile_a[ty + TILE * r][k];
                right[r] = tile_b[k][tx + TILE * r];
            }
            for (int r = 0; r < ROWS; ++r)
                for (int c = 0; c < ROWS; ++c) sums[r][c] += left[r] * right[c];
        }
        SYNC;
    }
    for (int r = 0; r < ROWS; ++r)
        for (int c = 0; c < ROWS; ++c) out[(row0 + ty + TILE * r) * n + column0 + tx + TILE * c] = sums[r][c];
}

__kernel __attribute__((reqd_work_group_size(BLOCK, 1, 1)))
void softmax(__global const float *x, __global float *out, int n) {
    __local float cells[BLOCK];
    int t = get_local_id(0), row = get_group_id(0);
    float top = -INFINITY;
    for (int c = t; c < n; c += BLOCK) top = fmax(top, x[row * n + c]);
    cells[t] = top;
    SYNC;
    for (int half_ = BLOCK / 2; half_ > 0; half_ /= 2) {
        if (t < half_) cells[t] = fmax(cells[t], cells[t + half_]);
        SYNC;
    }
    top = cells[0];
    SYNC;
    float total = 0;
    for (int c = t; c < n; c += BLOCK) total += exp(x[row * n + c] - top);
    cells[t] = total;
    SYNC;
    for (int half_ = BLOCK / 2; half_ > 0; half_ /= 2) {
        if (t < half_) cells[t] += cells[t + half_];
        SYNC;
    }
    total = cells[0];
    for (int c = t; c < n; c += BLOCK) out[row * n + c] = exp(x[row * n + c] - top) / total;
}

__kernel __attribute__((reqd_work_group_size(BLOCK, 1, 1)))
void rmsnorm(__global const float *x, __global const float *weight, __global float *out, int n) {
    __local float cells[BLOCK];
    int t = get_local_id(0), row = get_group_id(0);
    float total = 0;
    for (int c = t; c < n; c += BLOCK) total += x[row * n + c] * x[row * n + c];
    cells[t] = total;
    SYNC;
    for (int half_ = BLOCK / 2; half_ > 0; half_ /= 2) {
        if (t < half_) cells[t] += cells[t + half_];
        SYNC;
    }
    float scale = 1.0f / sqrt(cells[0] / n + 1e-6f);
    for (int c = t; c < n; c += BLOCK) out[row * n + c] = x[row * n + c] * scale * weight[c];
}

__kernel __attribute__((reqd_work_group_size(WIDE, 1, 1)))
void attention(__global const float *q, __global const float *k, __global const float *v, __global float *out,
               float scale, int head) {
    int n = get_global_size(0) / 16;  // queries of 16 heads share the keys
    __local float keys[KEYS][HEAD], values[KEYS][HEAD];
    float query[HEAD], sums[HEAD];
    int t = get_local_id(0), row = get_global_id(0);
    for (int d = 0; d < HEAD; ++d) {
        query[d] = q[row * HEAD + d];
        sums[d] = 0;
    }
    float top = -INFINITY, total = 0;
    for (int start = 0; start < n; start += KEYS) {
        for (int j = t; j < KEYS * HEAD; j += WIDE) {
            keys[j / HEAD][j % HEAD] = k[(start + j / HEAD) * HEAD + j % HEAD];
            values[j / HEAD][j % HEAD] = v[(start + j / HEAD) * HEAD + j % HEAD];
        }
        SYNC;
        for (int j = 0; j < KEYS; ++j) {
            float score = 0;
            for (int d = 0; d < HEAD; ++d) score += query[d] * keys[j][d];
            score *= scale;
            float higher = fmax(top, score), old = exp(top - higher), fresh = exp(score - higher);
            total = total * old + fresh;
            for (int d = 0; d < HEAD; ++d) sums[d] = sums[d] * old + fresh * values[j][d];
            top = higher;
        }
        SYNC;
    }
    for (int d = 0; d < HEAD; ++d) out[row * HEAD + d] = sums[d] / total;
}

__kernel __attribute__((reqd_work_group_size(TILE, TILE, 1)))
void transpose(__global const float *x, __global float *out, int n) {
    __local float tile[TILE][TILE + 1];
    int tx = get_local_id(0), ty = get_local_id(1), bx = get_group_id(0), by = get_group_id(1);
    tile[ty][tx] = x[(by * TILE + ty) * n + bx * TILE + tx];
    SYNC;
    out[(bx * TILE + ty) * n + by * TILE + tx] = tile[tx][ty];
}

__kernel __attribute__((reqd_work_group_size(BLOCK, 1, 1)))
void scan(__global const float *x, __global float *out, int n) {
    __local float cells[2][BLOCK];
    int t = get_local_id(0), i = get_global_id(0), here = 0;
    cells[0][t] = x[i];
    SYNC;
    for (int distance = 1; distance < BLOCK; distance *= 2) {
        cells[1 - here][t] = t >= distance ? cells[here][t] + cells[here][t - distance] : cells[here][t];
        here = 1 - here;
        SYNC;
    }
    out[i] = cells[here][t];
}

__kernel __attribute__((reqd_work_group_size(BLOCK, 1, 1)))
void histogram(__global const int *x, __global int *counts, int n) {
    __local int bins[BINS];
    int t = get_local_id(0);
    for (int b = t; b < BINS; b += BLOCK) bins[b] = 0;
    SYNC;
    for (int i = get_global_id(0); i < n; i += get_global_size(0)) atomic_add(&bins[x[i]], 1);
    SYNC;
    for (int b = t; b < BINS; b += BLOCK) atomic_add(&counts[b], bins[b]);
}

__kernel __attribute__((reqd_work_group_size(BLOCK, 1, 1)))
void bitonic_sort(__global const float *x, __global float *out, int n) {
    __local float cells[BLOCK];
    int t = get_local_id(0), i = get_global_id(0);
    cells[t] = x[i];
    SYNC;
    for (int size = 2; size <= BLOCK; size *= 2)
        for (int stride = size / 2; stride > 0; stride /= 2) {
            int partner = t ^ stride;
            if (partner > t) {
                int up = (t & size) == 0;
                if ((cells[t] > cells[partner]) == up) {
                    float other = cells[t];
                    cells[t] = cells[partner];
                    cells[partner] = other;
                }
            }
            SYNC;
        }
    out[i] = cells[t];
}

__kernel __attribute__((reqd_work_group_size(BLOCK, 1, 1)))
void saxpy_grid_stride(float alpha, __global const float *x, __global float *y, int n) {
    for (int i = get_global_id(0); i < n; i += get_global_size(0)) y[i] += alpha * x[i];
}

__kernel __attribute__((reqd_work_group_size(TILE, TILE, 1)))
void mandelbrot(__global int *counts, int limit, int n) {
    int column = get_global_id(0), row = get_global_id(1), steps = 0;
    float re = -2.0f + 3.0f * column / n, im = -1.5f + 3.0f * row / n, x = 0, y = 0;
    while (steps < limit && x * x + y * y < 4.0f) {
        float wide = x * x - y * y + re;
        y = 2.0f * x * y + im;
        x = wide;
        steps += 1;
    }
    counts[row * n + column] = steps;
}
