// Gram matrices: statistics of pairs of points, and the kernel's program on these statistics.

// index returns the row number 0 … d−3 that v encodes, or −1 if v encodes none.
__device__ static int FN(index)(T v, int d) { return v >= 0 && v < d - 2 && v == (T)(int)v ? (int)v : -1; }

// entry is an element of a Gram matrix that was computed elsewhere; see
// kernels.Precomputed.
__device__ static T FN(entry)(const T *x, const T *z, int d)
{
	int i = FN(index)(z[0], d);
	if (i >= 0)
		return x[2 + i];
	i = FN(index)(x[0], d);
	if (i >= 0)
		return z[2 + i];
	for (int p = 0; p < d; p++)
		if (x[p] != z[p])
			return (T)nan_();
	return x[1];
}

// chi2 returns the term of one feature in the χ² distance of histograms.
__device__ static __noinline__ T FN(chi2)(T x, T z)
{
	T diff = x - z, sum = x + z;
	if (x < 0 || z < 0)
		return (T)nan_();
	return x == 0 && z == 0 ? (T)0 : diff / sum * diff;
}

// angle returns the term of one feature in a statistic of angles. Both precisions compute it in
// float64. It is not inlined, because its callers would contain a copy of it for every pair.
__device__ static __noinline__ T FN(angle)(int kind, int count, const double *freqs, double diff)
{
	double sum = 0;
	if (kind == SINC)
		sum = diff == 0 ? 6.283185307179586 : sin(6.283185307179586 * diff) / diff;
	else
		for (int w = 0; w < count; w++)
			sum += kind == COSSUM ? cos(freqs[w] * diff) : freqs[w] * diff * sin(freqs[w] * diff);
	return (T)sum;
}

// statistics computes one statistic of 64 × 64 pairs; acc receives those of the calling thread.
// All threads of the block must call it. Rows beyond n and m count as zeros.
__device__ static __forceinline__ void FN(statistics)(const struct Stat &s, int d, const T *X, i64 xs, i64 n, i64 i0, const T *Z, i64 zs, i64 m, i64 j0, T acc[EACH][EACH])
{
	__shared__ T Xs[DEPTH][TILE + 1], Zs[DEPTH][TILE + 1], scale[DEPTH];
	int tx = threadIdx.x % SIDE, ty = threadIdx.x / SIDE, id = threadIdx.x;
	const T *factor = (const T *)s.scale;
	const double *freqs = (const double *)s.freqs;
	if (s.kind >= ENTRY) {
#pragma unroll 1
		for (int e = 0; e < EACH * EACH; e++) {
			int r = e / EACH, c = e % EACH;
			i64 i = i0 + ty + SIDE * r, j = j0 + tx + SIDE * c;
			T value = 0;
			if (i < n && j < m) {
				if (s.kind == ENTRY)
					value = FN(entry)(X + i * xs, Z + j * zs, d);
				else if (s.kind == SELFX || s.kind == ROOTX)
					value = ((const T *)s.x)[i];
				else
					value = ((const T *)s.z)[j];
			}
			acc[r][c] = value;
		}
		return;
	}
	T sum[EACH][EACH];
#pragma unroll
	for (int r = 0; r < EACH; r++)
#pragma unroll
		for (int c = 0; c < EACH; c++)
			sum[r][c] = 0;
	for (int p0 = 0; p0 < d; p0 += DEPTH) {
#pragma unroll 1
		for (int e = id; e < TILE * DEPTH; e += THREADS) {
			int i = e / DEPTH, p = e % DEPTH;
			Xs[p][i] = i0 + i < n && p0 + p < d ? X[(i0 + i) * xs + p0 + p] : (T)0;
			Zs[p][i] = j0 + i < m && p0 + p < d ? Z[(j0 + i) * zs + p0 + p] : (T)0;
		}
		if (id < DEPTH)
			scale[id] = factor && p0 + id < d ? factor[p0 + id] : (T)1;
		__syncthreads();
		int depth = d - p0 < DEPTH ? d - p0 : DEPTH;
#pragma unroll 1
		for (int p = 0; p < depth; p++) {
			T x[EACH], z[EACH], f = scale[p];
#pragma unroll
			for (int r = 0; r < EACH; r++) {
				x[r] = Xs[p][ty + SIDE * r];
				z[r] = Zs[p][tx + SIDE * r];
			}
#define EVERY _Pragma("unroll") for (int r = 0; r < EACH; r++) _Pragma("unroll") for (int c = 0; c < EACH; c++)
			T diff;
			switch (s.kind) {
			case DOT:
				EVERY sum[r][c] += (x[r] * f) * (z[c] * f);
				break;
			case SQDIST:
				EVERY diff = (x[r] - z[c]) * f, sum[r][c] += diff * diff;
				break;
			case L1:
				EVERY sum[r][c] += abs_((x[r] - z[c]) * f);
				break;
			case CHI2:
				EVERY sum[r][c] += FN(chi2)(x[r], z[c]);
				break;
			default:
				EVERY sum[r][c] += FN(angle)(s.kind, s.count, freqs, (double)x[r] - (double)z[c]);
			}
#undef EVERY
		}
		__syncthreads();
	}
#pragma unroll
	for (int r = 0; r < EACH; r++)
#pragma unroll
		for (int c = 0; c < EACH; c++)
			acc[r][c] = sum[r][c];
}

// pairs does the same as statistics, for one kind of statistic, with all values in registers. The
// most common programs use it. SCALED tells that the coordinates have factors.
template <int KIND, bool SCALED>
__device__ __forceinline__ void FN(pairs)(const T *factor, int d, const T *X, i64 xs, i64 n, i64 i0, const T *Z, i64 zs, i64 m, i64 j0, T acc[EACH][EACH])
{
	__shared__ T Xs[DEPTH][TILE + 1], Zs[DEPTH][TILE + 1], scale[DEPTH];
	int tx = threadIdx.x % SIDE, ty = threadIdx.x / SIDE, id = threadIdx.x;
#pragma unroll
	for (int r = 0; r < EACH; r++)
#pragma unroll
		for (int c = 0; c < EACH; c++)
			acc[r][c] = 0;
	for (int p0 = 0; p0 < d; p0 += DEPTH) {
#pragma unroll
		for (int e = 0; e < TILE * DEPTH; e += THREADS) {
			int i = (e + id) / DEPTH, p = (e + id) % DEPTH;
			Xs[p][i] = i0 + i < n && p0 + p < d ? X[(i0 + i) * xs + p0 + p] : (T)0;
			Zs[p][i] = j0 + i < m && p0 + p < d ? Z[(j0 + i) * zs + p0 + p] : (T)0;
		}
		if (SCALED && id < DEPTH)
			scale[id] = p0 + id < d ? factor[p0 + id] : (T)1;
		__syncthreads();
		int depth = d - p0 < DEPTH ? d - p0 : DEPTH;
#pragma unroll 4
		for (int p = 0; p < depth; p++) {
			T x[EACH], z[EACH], f = SCALED ? scale[p] : (T)1;
#pragma unroll
			for (int r = 0; r < EACH; r++) {
				x[r] = Xs[p][ty + SIDE * r];
				z[r] = Zs[p][tx + SIDE * r];
			}
#pragma unroll
			for (int r = 0; r < EACH; r++)
#pragma unroll
				for (int c = 0; c < EACH; c++) {
					if (KIND == DOT) {
						acc[r][c] += x[r] * z[c];
					} else {
						T diff = x[r] - z[c];
						if (SCALED)
							diff *= f;
						acc[r][c] += diff * diff;
					}
				}
		}
		__syncthreads();
	}
}

// run evaluates the program on the statistics of one pair.
__device__ static T FN(run)(const struct Program &p, const T *stats)
{
	T stack[MAX_DEPTH];
	int top = -1;
	for (int pc = 0; pc < p.code; pc++) {
		const struct Instr &in = p.instr[pc];
		T t = top >= 0 ? stack[top] : (T)0;
		switch (in.op) {
		case LOAD:
			stack[++top] = stats[in.arg];
			continue;
		case CONST:
			stack[++top] = (T)in.a;
			continue;
		case AFFINE:
			t = (T)in.a * t + (T)in.b;
			break;
		case ADD:
		case MUL: {
			T u = stack[--top];
			t = in.op == ADD ? u + t : u * t;
			break;
		}
		case POWINT: {
			T r = 1;
			for (int e = in.arg; e > 1; e >>= 1) {
				if (e & 1)
					r *= t;
				t *= t;
			}
			t *= r;
			break;
		}
		case SQRT:
			t = root_(t > 0 || t != t ? t : (T)0);
			break;
		case EXP:
			t = exp_(t);
			break;
		case POW:
			t = t >= 0 ? (T)pow((double)t, in.a) : (T)nan_();
			break;
		case TANH:
			t = (T)tanh((double)t);
			break;
		case COS:
			t = (T)cos((double)t);
			break;
		case SIN:
			t = (T)sin((double)t);
			break;
		case LOG:
			t = (T)log((double)t);
			break;
		}
		stack[top] = t;
	}
	return stack[0];
}

// power returns (1 + a·s)^b for s ≥ 0.
__device__ static __noinline__ T FN(power)(T a, T b, T s) { return exp_(b * log_(1 + a * s)); }

// matern returns (1 + b·t + c·t²) exp(−t) with t = a√s.
__device__ static __forceinline__ T FN(matern)(T a, T b, T c, T s)
{
	T t = a * root_(s > 0 || s != s ? s : (T)0);
	if (t > (T)800)
		return 0;
	return (1 + t * (b + t * c)) * exp_(-t);
}

// form evaluates a program whose form is not GENERAL on its only statistic.
__device__ static __forceinline__ T FN(form)(const struct Program &p, T s)
{
	if (p.form == EXPONENTIAL)
		return exp_((T)p.form_a * s);
	if (p.form == MATERN)
		return FN(matern)((T)p.form_a, (T)p.form_b, (T)p.form_c, s);
	if (p.form == RATIONAL)
		return FN(power)((T)p.form_a, (T)p.form_b, s);
	return s;
}

// form_of does the same as form and is not inlined: a caller that contained it for each of its 16
// pairs would take seconds to compile, and a call costs less than exp.
__device__ static __noinline__ T FN(form_of)(int form, T a, T b, T c, T s)
{
	if (form == EXPONENTIAL)
		return exp_(a * s);
	if (form == RATIONAL)
		return FN(power)(a, b, s);
	return FN(matern)(a, b, c, s);
}

// form_call is form for a statistic of the kind KIND. In float32 the exponential of a distance,
// which is at most 1, is computed in place by exp2, in two instructions. The rounding of its
// argument t gives an error of t·exp(−t)·2⁻²⁴, which is less than the rounding error of 1.
template <int KIND> __device__ static __forceinline__ T FN(form_call)(const struct Program &p, T s)
{
	if (sizeof(T) == 4 && KIND == SQDIST && p.form == EXPONENTIAL)
		return FN(base_exp)(p.exponent * s);
	return p.form == IDENTITY ? s : FN(form_of)(p.form, (T)p.form_a, (T)p.form_b, (T)p.form_c, s);
}

// values evaluates the kernel for the pairs of the calling thread in a tile.
__device__ static __forceinline__ void FN(values)(const struct Program &p, int d, const T *X, i64 xs, i64 n, i64 i0, const T *Z, i64 zs, i64 m, i64 j0, T k[EACH][EACH])
{
	T stats[MAX_STATS][EACH][EACH];
	int count = p.form == GENERAL ? p.stats : 1;
#pragma unroll 1
	for (int s = 0; s < count; s++)
		FN(statistics)(p.stat[s], d, X, xs, n, i0, Z, zs, m, j0, stats[s]);
#pragma unroll 1
	for (int e = 0; e < EACH * EACH; e++) {
		int r = e / EACH, c = e % EACH;
		if (p.form != GENERAL) {
			k[r][c] = FN(form_call)<DOT>(p, stats[0][r][c]);
			continue;
		}
		T of[MAX_STATS];
		for (int s = 0; s < count; s++)
			of[s] = stats[s][r][c];
		k[r][c] = FN(run)(p, of);
	}
}

// gram computes K ← k(X, Z) on a part of K, which is n × m.
extern "C" __global__ void __launch_bounds__(THREADS)
FN(gram)(int n, int m, int d, const T *X, i64 xs, const T *Z, i64 zs, T *K, i64 krs, i64 kcs, int part, const struct Program p)
{
	i64 i0 = (i64)blockIdx.y * TILE, j0 = (i64)blockIdx.x * TILE;
	if (part == LOWER && i0 + TILE - 1 < j0 || part == UPPER && j0 + TILE - 1 < i0)
		return;
	T k[EACH][EACH];
	FN(values)(p, d, X, xs, n, i0, Z, zs, m, j0, k);
	int tx = threadIdx.x % SIDE, ty = threadIdx.x / SIDE;
	for (int r = 0; r < EACH; r++)
		for (int c = 0; c < EACH; c++) {
			i64 i = i0 + ty + SIDE * r, j = j0 + tx + SIDE * c;
			if (i < n && j < m && IN_PART(part, i, j))
				K[i * krs + j * kcs] = k[r][c];
		}
}

// gram_dot, gram_sqdist and gram_scaled do the same as gram for programs of a form, with one
// statistic: xᵀz, ‖x − z‖², and ‖x − z‖² with factors of the coordinates.
#define FORMED(NAME, KIND, SCALED)                                                                                           \
	extern "C" __global__ void __launch_bounds__(THREADS)                                                                \
	FN(gram_##NAME)(int n, int m, int d, const T *X, i64 xs, const T *Z, i64 zs, T *K, i64 krs, i64 kcs, int part,       \
		const struct Program p)                                                                                      \
	{                                                                                                                    \
		i64 i0 = (i64)blockIdx.y * TILE, j0 = (i64)blockIdx.x * TILE;                                                \
		if (part == LOWER && i0 + TILE - 1 < j0 || part == UPPER && j0 + TILE - 1 < i0)                              \
			return;                                                                                              \
		T k[EACH][EACH];                                                                                             \
		FN(pairs)<KIND, SCALED>((const T *)p.stat[0].scale, d, X, xs, n, i0, Z, zs, m, j0, k);                       \
		int tx = threadIdx.x % SIDE, ty = threadIdx.x / SIDE;                                                        \
		_Pragma("unroll") for (int r = 0; r < EACH; r++) _Pragma("unroll") for (int c = 0; c < EACH; c++)            \
		{                                                                                                            \
			i64 i = i0 + ty + SIDE * r, j = j0 + tx + SIDE * c;                                                  \
			if (i < n && j < m && IN_PART(part, i, j))                                                           \
				K[i * krs + j * kcs] = FN(form_call)<KIND>(p, k[r][c]);                                           \
		}                                                                                                            \
	}

FORMED(dot, DOT, false)
FORMED(sqdist, SQDIST, false)
FORMED(scaled, SQDIST, true)
#undef FORMED

// self computes a statistic of each of n points with itself: k(x, x) or, if root is set,
// 1/√k(x, x), which is replaced by 0 if k(x, x) is 0.
extern "C" __global__ void __launch_bounds__(THREADS)
FN(self)(int n, int d, const T *X, i64 xs, T *dst, int root, const struct Program p)
{
	i64 i = (i64)blockIdx.x * THREADS + threadIdx.x;
	if (i >= n)
		return;
	T stats[MAX_STATS];
	for (int s = 0; s < p.stats; s++) {
		const struct Stat &st = p.stat[s];
		const T *factor = (const T *)st.scale;
		T sum = 0;
		for (int q = 0; q < d; q++) {
			T x = X[i * xs + q], f = factor ? factor[q] : (T)1;
			switch (st.kind) {
			case DOT:
				sum += (x * f) * (x * f);
				break;
			case COSSUM:
				sum += st.count;
				break;
			case SINC:
				sum += (T)6.283185307179586;
				break;
			case CHI2:
				if (x < 0)
					sum += (T)nan_();
				break;
			case SQDIST:
			case L1:
			case SINSUM:
				sum += x - x; // a NaN in x makes the sum NaN
			}
		}
		if (st.kind == ENTRY)
			sum = FN(entry)(X + i * xs, X + i * xs, d);
		else if (st.kind >= SELFX)
			sum = ((const T *)st.x)[i];
		stats[s] = sum;
	}
	T v = FN(run)(p, stats);
	if (root)
		v = v == 0 ? (T)0 : 1 / root_(v);
	dst[i] = v;
}
