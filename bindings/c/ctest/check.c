/* A C program that tests the C interface: it compares results with closed forms and tests
 * misuse, canceling and threads. `make libmercer-test` builds and runs it. */
#include "../mercer.h"

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static int failures;

#define CHECK(condition, ...)                                            \
	do {                                                             \
		if (!(condition)) {                                      \
			failures++;                                      \
			printf("%s:%d: %s: ", __func__, __LINE__, #condition); \
			printf(__VA_ARGS__);                             \
			printf("\n");                                    \
		}                                                        \
	} while (0)

/* OK requires that a call succeeds; otherwise it ends the program. */
#define OK(call)                                                                   \
	do {                                                                       \
		int status = (call);                                               \
		if (status != MERCER_OK) {                                         \
			printf("%s:%d: %s: %d: %s\n", __func__, __LINE__, #call, status, mercer_last_error()); \
			exit(1);                                                   \
		}                                                                  \
	} while (0)

/* FAILS requires that a call fails with the status want and a text that contains part. */
#define FAILS(want, part, call)                                                                           \
	do {                                                                                              \
		int status = (call);                                                                      \
		CHECK(status == (want), "%s: status %d, %s", #call, status, mercer_last_error());         \
		CHECK(strstr(mercer_last_error(), part) != NULL, "%s: %s", #call, mercer_last_error());   \
		CHECK(strchr(mercer_last_error(), '\n') == NULL, "more than one line");                   \
	} while (0)

static const double epsilon = 0x1p-53;

static mercer_matrix doubles(const double *data, int64_t rows, int64_t cols)
{
	return (mercer_matrix){data, rows, cols, cols, MERCER_FLOAT64};
}

/* smooth fills x with points on a curve and y with a smooth function of them. */
static void smooth(double *x, double *y, int n, int d)
{
	for (int i = 0; i < n; i++) {
		y[i] = 0;
		for (int j = 0; j < d; j++) {
			x[i * d + j] = sin(0.7 * i + 1.3 * j) + 0.01 * i / (j + 1);
			y[i] += cos((j + 1) * x[i * d + j]) / (j + 1);
		}
	}
}

/* closed_form fits the linear kernel to one sample x = 2, y = 4.5: alpha = 4.5 / (4 + 5) =
 * 1/2 and f(5) = 1/2 * 2 * 5 = 5. Every operation is exact. */
static void closed_form(void)
{
	double one = 2, target = 4.5, at = 5, f = 0, alpha = 0;
	mercer_matrix x = doubles(&one, 1, 1), y = doubles(&target, 1, 1), z = doubles(&at, 1, 1);
	const char *parameters[] = {"kernel=linear()", "lambda=5", "intercept=false", NULL};
	mercer_learner learner = {.name = "kernel-ridge", .parameters = parameters};
	mercer_handle model;
	OK(mercer_fit(0, &learner, &x, &y, NULL, &model));
	OK(mercer_predict(0, model, MERCER_VALUES, &z, &f, 1, NULL));
	OK(mercer_array(model, "alpha", &alpha, 1));
	CHECK(alpha == 0.5 && f == 5, "alpha %g, f %g", alpha, f);
	FAILS(MERCER_INVALID, "no array", mercer_array(model, "coefficients", &alpha, 1));
	FAILS(MERCER_INVALID, "holds only 2", mercer_predict(0, model, MERCER_VALUES, &z, &f, 2, NULL));
	FAILS(MERCER_INVALID, "no standard deviations", mercer_predict(0, model, MERCER_DEVIATIONS, &z, &f, 1, NULL));
	FAILS(MERCER_INVALID, "no probabilities", mercer_predict(0, model, MERCER_PROBABILITIES, &z, &f, 1, NULL));
	FAILS(MERCER_INVALID, "kind of prediction has the number 9", mercer_predict(0, model, 9, &z, &f, 1, NULL));
	OK(mercer_free(model));
}

/* sparse fits the linear kernel to the samples 2e_1 and 2e_2 of 100 features with y = (4, 8).
 * K + 4I = 8I, alpha = (1/2, 1), f(3e_1) = 3, f(e_1 - e_2) = -1 and f(e_100) = 0. */
static void sparse(void)
{
	int64_t starts[] = {0, 1, 2}, others[] = {0, 1, 3, 4};
	int32_t columns[] = {0, 1}, more[] = {0, 0, 1, 99};
	double values[] = {2, 2}, at[] = {3, 1, -1, 1}, targets[] = {4, 8}, f[3], want[] = {3, -1, 0};
	mercer_csr stored = {starts, columns, values}, rows = {others, more, at};
	mercer_matrix x = {&stored, 2, 100, 0, MERCER_CSR}, z = {&rows, 3, 100, 0, MERCER_CSR};
	mercer_matrix y = doubles(targets, 2, 1);
	const char *parameters[] = {"kernel=linear()", "lambda=4", "intercept=false", NULL};
	mercer_learner learner = {.name = "kernel-ridge", .parameters = parameters};
	mercer_handle model, again;
	OK(mercer_fit(0, &learner, &x, &y, NULL, &model));
	OK(mercer_predict(0, model, MERCER_VALUES, &z, f, 3, NULL));
	for (int i = 0; i < 3; i++)
		CHECK(fabs(f[i] - want[i]) <= 64 * epsilon, "f(z_%d) = %g, not %g", i + 1, f[i], want[i]);
	double dense[300] = {0}, g[3];
	dense[0] = 3, dense[100] = 1, dense[101] = -1, dense[299] = 1;
	mercer_matrix mz = doubles(dense, 3, 100);
	OK(mercer_predict(0, model, MERCER_VALUES, &mz, g, 3, NULL));
	for (int i = 0; i < 3; i++)
		CHECK(fabs(g[i] - want[i]) <= 64 * epsilon, "of a dense matrix f(z_%d) = %g, not %g", i + 1, g[i], want[i]);
	void *bytes;
	size_t size;
	OK(mercer_dump(model, &bytes, &size));
	OK(mercer_parse(bytes, size, &again));
	OK(mercer_predict(0, again, MERCER_VALUES, &z, g, 3, NULL));
	CHECK(memcmp(f, g, sizeof f) == 0, "bytes change predictions of sparse samples");
	mercer_release(bytes);
	OK(mercer_bounds(0, again, &z, g, dense, 3, NULL));
	for (int i = 0; i < 3; i++)
		CHECK(fabs(g[i] - want[i]) <= dense[i] && dense[i] < 1e-6, "the bound of f(z_%d) = %g is %g", i + 1, g[i], dense[i]);

	/* Targets f(z_i) + 1 make intervals of half-width 1. */
	double one_more[] = {4, 0, 1}, upper[3];
	mercer_matrix my = doubles(one_more, 3, 1);
	mercer_handle calibrated;
	OK(mercer_calibrate(0, again, &z, &my, NULL, &calibrated));
	OK(mercer_intervals(0, calibrated, 0.5, &z, g, upper, 3, NULL));
	for (int i = 0; i < 3; i++)
		CHECK(fabs(g[i] - want[i] + 1) <= 64 * epsilon && fabs(upper[i] - want[i] - 1) <= 64 * epsilon, "interval %d is [%g, %g]", i + 1, g[i], upper[i]);
	OK(mercer_free(calibrated));

	/* H = K(K + 4I)^-1 = I/2, so a model without sample i predicts 0 at x_i, with the error y_i. */
	double lambda = 4, errors[2], alpha[2], residual;
	mercer_scores scores = {.errors = errors};
	OK(mercer_path(0, "linear()", &lambda, 1, &x, &y, NULL, 0, 0, &scores, NULL, NULL));
	OK(mercer_solve(0, "linear()", lambda, &x, &y, alpha, 2, &residual, NULL));
	for (int i = 0; i < 2; i++)
		CHECK(fabs(errors[i] - targets[i]) <= 64 * epsilon && fabs(alpha[i] - targets[i] / 8) <= 64 * epsilon, "error %d is %g, alpha %g", i + 1, errors[i], alpha[i]);
	OK(mercer_free(again));

	int32_t twice[] = {0, 1, 1, 99}, falling[] = {0, 1, 0, 99}, negative[] = {0, 0, -1, 99}, beyond[] = {0, 0, 1, 100};
	const struct { int32_t *columns; const char *text; } wrong[] = {
		{twice, "x: row 2: column 2 appears twice"}, {falling, "x: row 2: column 1 comes after column 2"},
		{negative, "x: row 2: the column index of element 2 is not from 1 to 100"}, {beyond, "x: row 3: the column index of element 1 is not from 1 to 100"}};
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		rows.indices = wrong[i].columns;
		FAILS(MERCER_INVALID, wrong[i].text, mercer_predict(0, model, MERCER_VALUES, &z, f, 3, NULL));
	}
	rows.indices = more;
	int64_t late[] = {1, 1, 3, 4}, back[] = {0, 3, 1, 4}, minus[] = {0, 1, 3, -4};
	rows.indptr = late;
	FAILS(MERCER_INVALID, "x: row 1 begins at element 1, not at 0", mercer_predict(0, model, MERCER_VALUES, &z, f, 3, NULL));
	int32_t rising[] = {0, 1, 2, 99};
	rows.indptr = back;
	rows.indices = rising;
	FAILS(MERCER_INVALID, "x: row 2 goes from element 3 to element 1", mercer_predict(0, model, MERCER_VALUES, &z, f, 3, NULL));
	rows.indices = more;
	rows.indptr = minus;
	FAILS(MERCER_INVALID, "x.indices: -4 is not a possible number of elements", mercer_predict(0, model, MERCER_VALUES, &z, f, 3, NULL));
	rows.indptr = others;
	at[2] = NAN;
	FAILS(MERCER_INVALID, "row 2, column 2 is NaN", mercer_predict(0, model, MERCER_VALUES, &z, f, 3, NULL));
	z.rows = 0;
	FAILS(MERCER_INVALID, "x: 0 rows and 100 columns", mercer_predict(0, model, MERCER_VALUES, &z, f, 3, NULL));
	FAILS(MERCER_INVALID, "x is NULL", mercer_predict(0, model, MERCER_VALUES, NULL, f, 3, NULL));
	z.rows = 3;
	z.data = NULL;
	FAILS(MERCER_INVALID, "x.data is NULL", mercer_predict(0, model, MERCER_VALUES, &z, f, 3, NULL));
	OK(mercer_free(model));
	values[1] = INFINITY;
	FAILS(MERCER_INVALID, "row 2, column 2 is +Inf", mercer_fit(0, &learner, &x, &y, NULL, &model));
}

/* models checks that a model restored from bytes or from a file, and a model fitted to the
 * same numbers as floats, predict the same bits. */
static void models(void)
{
	enum { n = 50, d = 3 };
	double x[n * d], y[n], f[n], g[n];
	float narrow[n * (d + 1)];
	smooth(x, y, n, d);
	for (int i = 0; i < n; i++)
		for (int j = 0; j < d; j++) {
			narrow[i * (d + 1) + j] = (float)x[i * d + j];
			x[i * d + j] = narrow[i * (d + 1) + j];
		}
	mercer_matrix mx = doubles(x, n, d), my = doubles(y, n, 1);
	mercer_matrix mf = {narrow, n, d, d + 1, MERCER_FLOAT32};
	const char *parameters[] = {"kernel=gaussian(sigma=1.5)", "lambda=0.01", NULL};
	const char *columns[] = {"a", "b", "c", NULL};
	mercer_learner learner = {.name = "kernel-ridge", .parameters = parameters, .features = columns};
	mercer_handle model, again;
	OK(mercer_fit(0, &learner, &mx, &my, NULL, &model));
	OK(mercer_predict(0, model, MERCER_VALUES, &mx, f, n, NULL));

	void *bytes;
	size_t size;
	OK(mercer_dump(model, &bytes, &size));
	OK(mercer_parse(bytes, size, &again));
	OK(mercer_predict(0, again, MERCER_VALUES, &mf, g, n, NULL));
	CHECK(memcmp(f, g, sizeof f) == 0, "bytes change predictions, or floats do");
	OK(mercer_free(again));
	((char *)bytes)[size - 1] ^= 1;
	FAILS(MERCER_INVALID, "damaged", mercer_parse(bytes, size, &again));
	FAILS(MERCER_INVALID, "truncated", mercer_parse(bytes, 5, &again));
	mercer_release(bytes);

	char path[] = "/tmp/libmercer-XXXXXX";
	close(mkstemp(path));
	OK(mercer_save(model, path));
	OK(mercer_load(path, &again));
	memset(g, 0, sizeof g);
	OK(mercer_predict(0, again, MERCER_VALUES, &mx, g, n, NULL));
	CHECK(memcmp(f, g, sizeof f) == 0, "a file changes predictions");
	unlink(path);
	FAILS(MERCER_INVALID, path, mercer_load(path, &again));

	char *json;
	OK(mercer_describe(model, &json));
	CHECK(strstr(json, "\"learner\":\"kernel-ridge\"") && strstr(json, "\"names\":[\"a\",\"b\",\"c\"]"), "%s", json);
	mercer_release(json);
	OK(mercer_describe(0, &json));
	CHECK(strstr(json, "\"svc\"") && strstr(json, "\"cpu/generic\""), "%.200s", json);
	mercer_release(json);
	OK(mercer_free(again));
	OK(mercer_free(model));
}

/* classes checks that classes can be given by names and that probabilities sum to 1. */
static void classes(void)
{
	enum { n = 60 };
	double x[n], y[n], p[2 * n], label[n], decision[n];
	for (int i = 0; i < n; i++) {
		x[i] = (i - 29.5) / 10;
		y[i] = i >= 30;
	}
	mercer_matrix mx = doubles(x, n, 1), my = doubles(y, n, 1);
	const char *names[] = {"low", "high", NULL}, *parameters[] = {"lambda=0.1", NULL};
	mercer_learner learner = {.name = "logistic", .task = "classification", .parameters = parameters, .classes = names};
	mercer_handle model;
	OK(mercer_fit(0, &learner, &mx, &my, NULL, &model));
	OK(mercer_predict(0, model, MERCER_VALUES, &mx, label, n, NULL));
	OK(mercer_predict(0, model, MERCER_DECISION, &mx, decision, n, NULL));
	OK(mercer_predict(0, model, MERCER_PROBABILITIES, &mx, p, 2 * n, NULL));
	for (int i = 0; i < n; i++) {
		CHECK(label[i] == (decision[i] > 0), "row %d", i);
		/* Each probability is rounded a few times. */
		CHECK(fabs(p[2 * i] + p[2 * i + 1] - 1) <= 8 * epsilon, "row %d", i);
	}
	CHECK(label[0] == 0 && label[n - 1] == 1, "%g %g", label[0], label[n - 1]);
	OK(mercer_free(model));
	learner.weights = y; /* the weights of the first class are 0 */
	FAILS(MERCER_INVALID, "one class only", mercer_fit(0, &learner, &mx, &my, NULL, &model));
}

/* systems solves with K = [[2, 1], [1, 2]] and lambda = 1: the inverse of K + I = [[3, 1],
 * [1, 3]] is [[3, -1], [-1, 3]] / 8. */
static void systems(void)
{
	double k[] = {2, 1, 1, 2}, y[] = {8, 0, 16, 8}, a[4], residual = -1;
	double want[] = {8 * 3. / 8 - 16. / 8, -8. / 8, -8. / 8 + 16 * 3. / 8, 8 * 3. / 8};
	mercer_matrix mk = doubles(k, 2, 2), my = doubles(y, 2, 2);
	/* The condition number 2 doubles several rounding errors of numbers up to 16. */
	double bound = 2 * 16 * 8 * epsilon;
	OK(mercer_solve(0, NULL, 1, &mk, &my, a, 4, &residual, NULL));
	for (int i = 0; i < 4; i++)
		CHECK(fabs(a[i] - want[i]) <= bound, "solve: %d: %g, want %g", i, a[i], want[i]);
	CHECK(residual >= 0 && residual <= 8 * epsilon, "residual %g", residual);

	/* The rows of x = [[1, 0], [1, 1]] have the products [[1, 1], [1, 2]]. */
	double x[] = {1, 0, 1, 1}, products[] = {1, 1, 1, 2}, ones[] = {1, 1}, sums[] = {2, 3};
	mercer_matrix mx = doubles(x, 2, 2), m1 = doubles(ones, 2, 1);
	OK(mercer_gram(0, "linear()", &mx, NULL, NULL, a, 4, NULL));
	for (int i = 0; i < 4; i++)
		CHECK(a[i] == products[i], "gram: %d: %g", i, a[i]);
	OK(mercer_gram(0, "linear()", &mx, &mx, &m1, a, 2, NULL));
	CHECK(a[0] == sums[0] && a[1] == sums[1], "gram: %g %g", a[0], a[1]);
	FAILS(MERCER_INVALID, "holds only 3", mercer_gram(0, "linear()", &mx, NULL, NULL, a, 3, NULL));
	FAILS(MERCER_INVALID, "v has 1 row, but z has 2", mercer_gram(0, "linear()", &mx, NULL, &(mercer_matrix){ones, 1, 1, 1, MERCER_FLOAT64}, a, 2, NULL));

	/* From (0, 0), the row (1, 0) of x has the squared distance 1 and (1, 1) the squared distance 2. */
	double origin[] = {0, 0};
	int64_t rows[2];
	mercer_matrix mo = doubles(origin, 1, 2);
	OK(mercer_neighbors(0, &mo, &mx, 2, rows, a, 2, NULL));
	CHECK(rows[0] == 0 && rows[1] == 1 && a[0] == 1 && a[1] == 2, "neighbors: %d %d, %g %g", (int)rows[0], (int)rows[1], a[0], a[1]);
	FAILS(MERCER_INVALID, "k must be from 1", mercer_neighbors(0, &mo, &mx, 3, rows, a, 2, NULL));
	FAILS(MERCER_INVALID, "holds only 1", mercer_neighbors(0, &mo, &mx, 2, rows, a, 1, NULL));
	/* The rows (1, 0) and (1, 1) have the mean (1, ½), and the targets 2 and 3 the mean 2½. */
	double gram[4], means[3];
	mercer_matrix ms = doubles(sums, 2, 1);
	OK(mercer_moments(0, &mx, &ms, NULL, 1, gram, a, means, NULL));
	CHECK(gram[0] == 0 && gram[1] == 0 && gram[2] == 0 && gram[3] == 0.5 && a[0] == 0 && a[1] == 0.5, "moments: %g %g, %g %g", gram[0], gram[3], a[0], a[1]);
	CHECK(means[0] == 1 && means[1] == 0.5 && means[2] == 2.5, "means: %g %g %g", means[0], means[1], means[2]);
	FAILS(MERCER_INVALID, "y has 1 row, but x has 2", mercer_moments(0, &mx, &(mercer_matrix){sums, 1, 1, 1, MERCER_FLOAT64}, NULL, 1, gram, a, means, NULL));
	FAILS(MERCER_INVALID, "weights: row 2", mercer_moments(0, &mx, &ms, (double[]){1, -1}, 1, gram, a, means, NULL));
	/* For one sample at 0 with k = 1, C = 2·1 + 2 = 4, and log p = −½·4²/4 − ½ log 4 − ½ log 2π with
	 * the derivatives ½(y²/C² − 1/C)·2 for the height and lambda, and 0 for sigma. */
	double four = 4, log_p, slopes[3];
	mercer_matrix m4 = doubles(&four, 1, 1);
	OK(mercer_evidence(0, "gaussian(sigma=1)", 2, 2, &mo, &m4, &log_p, slopes, 3, NULL));
	CHECK(fabs(log_p + 2 + log(4) / 2 + log(2 * M_PI) / 2) <= 16 * epsilon, "evidence: %g", log_p);
	CHECK(fabs(slopes[0] - 0.75) <= 8 * epsilon && slopes[1] == 0 && fabs(slopes[2] - 0.75) <= 8 * epsilon, "gradient: %g %g %g", slopes[0], slopes[1], slopes[2]);
	FAILS(MERCER_INVALID, "there are 3 derivatives", mercer_evidence(0, "gaussian(sigma=1)", 2, 2, &mo, &m4, &log_p, slopes, 2, NULL));
	FAILS(MERCER_INVALID, "lambda", mercer_evidence(0, "gaussian(sigma=1)", 2, 0, &mo, &m4, &log_p, NULL, 0, NULL));
	OK(mercer_cosines(0, 2, &mo, &mx, sums, a, 2, NULL));
	CHECK(fabs(a[0] - 2 * cos(2)) <= 2 * epsilon && fabs(a[1] - 2 * cos(3)) <= 2 * epsilon, "cosines: %g %g", a[0], a[1]);
	FAILS(MERCER_INVALID, "x has 2 columns, but w has 1", mercer_cosines(0, 2, &mo, &m1, sums, a, 2, NULL));

	mercer_handle factor;
	residual = -1;
	OK(mercer_factor(0, "", 1, &mk, NULL, &factor));
	memset(a, 0, sizeof a);
	OK(mercer_factor_solve(factor, &my, a, 4, &residual, NULL));
	for (int i = 0; i < 4; i++)
		CHECK(fabs(a[i] - want[i]) <= bound, "factor: %d: %g, want %g", i, a[i], want[i]);
	CHECK(residual >= 0 && residual <= 8 * epsilon, "residual %g", residual);
	FAILS(MERCER_INVALID, "does not refer to a model", mercer_save(factor, "/tmp/none"));
	/* Without sample 0 the matrix is [[3]]; with a new sample it is [[3, 1], [1, 3]] again. */
	double back[] = {1, 2}, three[] = {6};
	mercer_matrix m3 = doubles(three, 1, 1);
	OK(mercer_factor_remove(factor, 0));
	OK(mercer_factor_solve(factor, &m3, a, 1, &residual, NULL));
	CHECK(fabs(a[0] - 2) <= bound && residual <= 8 * epsilon, "%g, residual %g", a[0], residual);
	OK(mercer_factor_append(factor, back, 2));
	OK(mercer_factor_solve(factor, &my, a, 4, &residual, NULL));
	for (int i = 0; i < 4; i++)
		CHECK(fabs(a[i] - want[i]) <= bound && residual <= 8 * epsilon, "appended: %d: %g, want %g", i, a[i], want[i]);
	FAILS(MERCER_INVALID, "the row has 2 elements, but it must have 3", mercer_factor_append(factor, back, 2));
	FAILS(MERCER_INVALID, "values is NULL", mercer_factor_append(factor, NULL, 3));
	FAILS(MERCER_INVALID, "no sample has index 2", mercer_factor_remove(factor, 2));
	mercer_matrix wrong = doubles(y, 1, 2);
	FAILS(MERCER_INVALID, "order 2", mercer_factor_solve(factor, &wrong, a, 2, NULL, NULL));
	OK(mercer_free(factor));
	FAILS(MERCER_INVALID, "freed", mercer_factor_solve(factor, &my, a, 4, NULL, NULL));
	FAILS(MERCER_INVALID, "freed", mercer_free(factor));

	double indefinite[] = {1, 2, 2, 1};
	mercer_matrix mi = doubles(indefinite, 2, 2);
	FAILS(MERCER_NOT_POSITIVE_DEFINITE, "lambda", mercer_factor(0, NULL, 0.5, &mi, NULL, &factor));
	double skew[] = {1, 2, 3, 1};
	mi.data = skew;
	FAILS(MERCER_INVALID, "", mercer_factor(0, NULL, 0.5, &mi, NULL, &factor));
	FAILS(MERCER_INVALID, "lambda", mercer_factor(0, NULL, -1, &mk, NULL, &factor));
	FAILS(MERCER_INVALID, "", mercer_factor(0, "gaussian(", 1, &mk, NULL, &factor));
}

/* path scores K = I. A model without sample i predicts 0 at x_i, with the error y_i. H =
 * I/(1 + lambda), so the value of GCV is also the mean of y². */
static void path(void)
{
	enum { n = 7, t = 2, count = 3 };
	double identity[n * n] = {0}, targets[n * t], lambdas[count] = {0.5, 1, 20};
	double gcv[count * t], loo[count * t], errors[count * n * t], freedom[count], mean[t] = {0};
	for (int i = 0; i < n; i++) {
		identity[i * n + i] = 1;
		for (int j = 0; j < t; j++) {
			targets[i * t + j] = sin(i + 10.0 * j);
			mean[j] += targets[i * t + j] * targets[i * t + j] / n;
		}
	}
	mercer_matrix x = doubles(identity, n, n), y = doubles(targets, n, t);
	mercer_scores scores = {gcv, loo, errors, freedom};
	char *json;
	OK(mercer_path(0, "precomputed()", lambdas, count, &x, &y, NULL, 0, 0, &scores, &json, NULL));
	CHECK(strstr(json, "\"failed\":[]") && strstr(json, "\"kernel\":\"precomputed()\""), "%s", json);
	mercer_release(json);
	/* The bound allows several rounding errors in each of n terms and n steps of a factorization. */
	double bound = 64 * n * epsilon;
	for (int l = 0; l < count; l++) {
		CHECK(fabs(freedom[l] - n / (1 + lambdas[l])) <= bound * n, "freedom %.17g", freedom[l]);
		for (int j = 0; j < t; j++) {
			CHECK(fabs(loo[l * t + j] - mean[j]) <= bound, "loo %.17g, want %.17g", loo[l * t + j], mean[j]);
			CHECK(fabs(gcv[l * t + j] - mean[j]) <= bound, "gcv %.17g, want %.17g", gcv[l * t + j], mean[j]);
		}
		for (int i = 0; i < n * t; i++)
			CHECK(fabs(errors[l * n * t + i] - targets[i]) <= bound, "error %.17g, want %.17g", errors[l * n * t + i], targets[i]);
	}

	double part[count * t];
	mercer_scores some = {.gcv = part};
	OK(mercer_path(0, "precomputed()", lambdas, count, &x, &y, NULL, 0, 0, &some, NULL, NULL));
	CHECK(fabs(part[0] - gcv[0]) <= bound, "gcv alone %.17g, with the rest %.17g", part[0], gcv[0]);

	double weights[n] = {0};
	FAILS(MERCER_INVALID, "all are 0", mercer_path(0, NULL, lambdas, count, &x, &y, weights, 0, 0, &scores, NULL, NULL));
	FAILS(MERCER_INVALID, "scores is NULL", mercer_path(0, NULL, lambdas, count, &x, &y, NULL, 0, 0, NULL, NULL, NULL));
	FAILS(MERCER_INVALID, "lambdas is NULL", mercer_path(0, NULL, NULL, count, &x, &y, NULL, 0, 0, &scores, NULL, NULL));
	FAILS(MERCER_INVALID, "the list of lambdas is empty", mercer_path(0, NULL, lambdas, 0, &x, &y, NULL, 0, 0, &scores, NULL, NULL));
	FAILS(MERCER_INVALID, "memory", mercer_path(0, NULL, lambdas, SIZE_MAX / 64, &x, &y, NULL, 0, 0, &scores, NULL, NULL));
	lambdas[1] = -1;
	FAILS(MERCER_INVALID, "lambda 2", mercer_path(0, NULL, lambdas, count, &x, &y, NULL, 0, 0, &scores, NULL, NULL));
	double zero = 0;
	for (int i = 0; i < n * n; i++)
		identity[i] = 1; /* all samples are equal */
	FAILS(MERCER_NOT_POSITIVE_DEFINITE, "raise lambda", mercer_path(0, "precomputed()", &zero, 1, &x, &y, NULL, 0, 0, &scores, NULL, NULL));
	FAILS(MERCER_MEMORY, "memory", mercer_path(0, "precomputed()", &zero, 1, &x, &y, NULL, 0, 100, &scores, NULL, NULL));
}

/* bounds fits a model with K = I. The coefficients, and the predictions at the samples, are
 * exactly y/(1 + lambda) = y/2. */
static void bounds(void)
{
	double at[] = {0, 10, 20}, y[] = {1, -2, 3}, value[3], bound[3];
	const char *parameters[] = {"kernel=gaussian(sigma=1e-3)", "lambda=1", "intercept=false", NULL};
	mercer_learner learner = {.name = "kernel-ridge", .parameters = parameters};
	mercer_matrix x = doubles(at, 3, 1), my = doubles(y, 3, 1);
	mercer_handle model;
	OK(mercer_fit(0, &learner, &x, &my, NULL, &model));
	OK(mercer_bounds(0, model, &x, value, bound, 3, NULL));
	/* docs/trust.md: with u = epsilon, errors of kernel values of at most 64u, S = 3 and lambda = 1 a
	 * residual is at most ((64 + n + 33)3 + 16(9 + 1.5))u = 468u, the bound sqrt(3)/2 of that and
	 * (64 + n + 9)3u for the prediction. */
	for (int i = 0; i < 3; i++)
		CHECK(fabs(value[i] - y[i] / 2) <= bound[i] && bound[i] < 640 * epsilon, "%.17g, bound %g", value[i], bound[i]);
	FAILS(MERCER_INVALID, "holds only", mercer_bounds(0, model, &x, value, bound, 2, NULL));
	FAILS(MERCER_INVALID, "bounds is NULL", mercer_bounds(0, model, &x, value, NULL, 3, NULL));
	OK(mercer_free(model));
	parameters[0] = "kernel=sigmoid(a=1)";
	OK(mercer_fit(0, &learner, &x, &my, NULL, &model));
	FAILS(MERCER_INVALID, "not known to be positive semidefinite", mercer_bounds(0, model, &x, value, bound, 3, NULL));
	OK(mercer_free(model));
	const char *ridge[] = {"lambda=1", "intercept=false", "bound=true", NULL}; /* w = xᵀy/(xᵀx + 1) = 40/501, here with 64 bits */
	learner.name = "ridge", learner.parameters = ridge;
	OK(mercer_fit(0, &learner, &x, &my, NULL, &model));
	OK(mercer_bounds(0, model, &x, value, bound, 3, NULL));
	for (int i = 0; i < 3; i++)
		CHECK(fabsl(value[i] - 40.0L * at[i] / 501) <= bound[i] + 0x1p-60L && bound[i] <= 8 * epsilon, "%.17g, bound %g", value[i], bound[i]);
	OK(mercer_free(model));
	learner.name = "svr", learner.parameters = NULL;
	OK(mercer_fit(0, &learner, &x, &my, NULL, &model));
	FAILS(MERCER_INVALID, "svr has no error bounds", mercer_bounds(0, model, &x, value, bound, 3, NULL));
	OK(mercer_free(model));
}

/* intervals checks jackknife+ intervals with K = I: a fit without sample i predicts 0 at x_i. For the
 * level 0.6 = 3.6/6, the interval is from the 2nd smallest of the 5 values −|y| to the 4th
 * smallest of the 5 values |y|. */
static void intervals(void)
{
	enum { n = 5 };
	double identity[n * n] = {0}, y[n] = {3, -1, 4, -2, 5}, cross[n] = {0}, low, high;
	for (int i = 0; i < n; i++)
		identity[i * n + i] = 1;
	const char *parameters[] = {"kernel=precomputed()", "lambda=0.5", "intercept=false", NULL};
	mercer_learner learner = {.name = "kernel-ridge", .parameters = parameters};
	mercer_matrix x = doubles(identity, n, n), my = doubles(y, n, 1), z = doubles(cross, 1, n);
	mercer_handle model;
	char *json;
	OK(mercer_fit(0, &learner, &x, &my, NULL, &model));
	OK(mercer_describe(model, &json));
	CHECK(strstr(json, "\"intervals\"") != NULL, "%s", json);
	mercer_release(json);
	OK(mercer_intervals(0, model, 0.6, &z, &low, &high, 1, NULL));
	CHECK(fabs(low + 4) <= 64 * n * epsilon && fabs(high - 4) <= 64 * n * epsilon, "%.17g to %.17g", low, high);
	FAILS(MERCER_INVALID, "level must be", mercer_intervals(0, model, 0.3, &z, &low, &high, 1, NULL));
	FAILS(MERCER_INVALID, "at least 9 rows", mercer_intervals(0, model, 0.9, &z, &low, &high, 1, NULL));
	FAILS(MERCER_INVALID, "holds only 2", mercer_intervals(0, model, 0.6, &z, y, identity, 2, NULL));
	FAILS(MERCER_INVALID, "upper is NULL", mercer_intervals(0, model, 0.6, &z, &low, NULL, 1, NULL));
	OK(mercer_free(model));

	learner.name = "svr", learner.parameters = NULL;
	OK(mercer_fit(0, &learner, &x, &my, NULL, &model));
	FAILS(MERCER_INVALID, "svr has none", mercer_intervals(0, model, 0.6, &z, &low, &high, 1, NULL));
	/* The split-conformal interval is f ± the 4th smallest error, because 0.6 = 3.6/6. */
	double f, held[n] = {7, -7, 8, 7.5, 6};
	mercer_matrix zx = doubles(identity, n, n), zy = doubles(held, n, 1);
	mercer_handle calibrated;
	double errors[n], predicted[n];
	OK(mercer_predict(0, model, MERCER_VALUES, &zx, predicted, n, NULL));
	OK(mercer_predict(0, model, MERCER_VALUES, &z, &f, 1, NULL));
	for (int i = 0; i < n; i++)
		errors[i] = fabs(held[i] - predicted[i]);
	OK(mercer_calibrate(0, model, &zx, &zy, NULL, &calibrated));
	OK(mercer_intervals(0, calibrated, 0.6, &z, &low, &high, 1, NULL));
	int below = 0, equal = 0;
	for (int i = 0; i < n; i++)
		below += errors[i] < (high - low) / 2 - 1e-12, equal += fabs(errors[i] - (high - low) / 2) <= 1e-12;
	CHECK(below <= 3 && below + equal >= 4, "%d errors are below half the width, %d are equal", below, equal);
	CHECK(fabs((high + low) / 2 - f) <= 64 * n * epsilon, "%.17g to %.17g around %.17g", low, high, f);
	FAILS(MERCER_INVALID, "svr has none", mercer_intervals(0, model, 0.6, &z, &low, &high, 1, NULL)); /* the model is unchanged */
	FAILS(MERCER_INVALID, "numbers, not classes", mercer_sets(0, calibrated, 0.6, &z, &low, 1, NULL));
	FAILS(MERCER_INVALID, "calibrated is NULL", mercer_calibrate(0, model, &zx, &zy, NULL, NULL));
	zy.rows = 4;
	FAILS(MERCER_INVALID, "x has 5 rows, y has 4", mercer_calibrate(0, model, &zx, &zy, NULL, &calibrated));
	OK(mercer_free(calibrated));
	OK(mercer_free(model));
	learner.name = "ridge";
	OK(mercer_fit(0, &learner, &x, &my, NULL, &model));
	FAILS(MERCER_INVALID, "intervals=true", mercer_intervals(0, model, 0.6, &z, &low, &high, 1, NULL));
	OK(mercer_free(model));
}

/* "abab" and "ab" have the substrings ab, ba, ab and ab: the products of the counts are 5, 2 and 1. */
static void texts(void)
{
	const char *const a[] = {"abab", "ab", NULL}, *const b[] = {"ba", NULL};
	double k[4];
	OK(mercer_text_gram("spectrum(length=2,normalized=0)", a, NULL, k, 4, NULL));
	CHECK(k[0] == 5 && k[1] == 2 && k[2] == 2 && k[3] == 1, "%g %g %g %g", k[0], k[1], k[2], k[3]);
	OK(mercer_text_gram("spectrum(length=2,normalized=0)", a, b, k, 2, NULL));
	CHECK(k[0] == 1 && k[1] == 0, "%g %g", k[0], k[1]);
	FAILS(MERCER_INVALID, "the result is 2×1", mercer_text_gram("spectrum(length=2)", a, b, k, 4, NULL));
	FAILS(MERCER_INVALID, "gaussian", mercer_text_gram("gaussian(sigma=1)", a, b, k, 2, NULL));
}

/* Each of the texts "ab ab" and "cd" has one word, whose feature has the norm 1. */
static void features_of_texts(void)
{
	const char *const a[] = {"ab ab", "cd", NULL}, *const b[] = {"cd ef", NULL}, *const none[] = {NULL};
	char *vocabulary;
	void *features;
	size_t size;
	OK(mercer_tfidf("{\"analyzer\": \"word\"}", a, &vocabulary, &features, &size));
	CHECK(strstr(vocabulary, "[\"ab\",\"cd\"]"), "%s", vocabulary);
	const int64_t *starts = features;
	const double *values = (const double *)(starts + 3);
	const int32_t *columns = (const int32_t *)(values + 2);
	CHECK(size == 48 && starts[1] == 1 && starts[2] == 2 && values[0] == 1 && values[1] == 1 && columns[0] == 0 && columns[1] == 1, "%zu", size);
	mercer_release(features);
	OK(mercer_tfidf(vocabulary, b, NULL, &features, &size));
	starts = features, columns = (const int32_t *)(starts + 3);
	CHECK(size == 28 && starts[1] == 1 && *(const double *)(starts + 2) == 1 && columns[0] == 1, "%zu", size);
	mercer_release(features);
	mercer_release(vocabulary);
	FAILS(MERCER_INVALID, "there are no texts", mercer_tfidf("{}", none, &vocabulary, &features, &size));
	FAILS(MERCER_INVALID, "analyzer", mercer_tfidf("{\"analyzer\": \"line\"}", a, &vocabulary, &features, &size));
	FAILS(MERCER_INVALID, "0 n-grams", mercer_tfidf("{\"texts\": 1}", a, NULL, &features, &size));
	FAILS(MERCER_INVALID, "features or size is NULL", mercer_tfidf("{}", a, &vocabulary, NULL, &size));
}

/* With y = x, f(x) = wx with w = Σ w_i x_i² / (Σ w_i x_i² + lambda) over the samples of each model. */
static void updates(void)
{
	double v[] = {1, 2, 3}, weights[] = {1, 0.5, 2}, w, one = 1, draw[6], again[6], xx = 0;
	mercer_matrix first = doubles(v, 2, 1), last = doubles(v + 2, 1, 1), all = doubles(v, 3, 1), point = doubles(&one, 1, 1);
	const char *parameters[] = {"lambda=0.5", "intercept=false", "std=true", NULL};
	mercer_learner learner = {.name = "ridge", .parameters = parameters, .weights = weights};
	mercer_handle model, appended, removed, other, merged;
	for (int i = 0; i < 3; i++)
		xx += weights[i] * v[i] * v[i];
	OK(mercer_fit(0, &learner, &first, &first, NULL, &model));
	OK(mercer_update(0, model, &last, &last, weights + 2, 0, NULL, &appended));
	OK(mercer_predict(0, appended, MERCER_VALUES, &point, &w, 1, NULL));
	CHECK(fabs(w - xx / (xx + 0.5)) <= 64 * epsilon, "appended: w is %.17g", w);
	OK(mercer_update(0, appended, &first, &first, weights, 1, NULL, &removed));
	OK(mercer_predict(0, removed, MERCER_VALUES, &point, &w, 1, NULL));
	CHECK(fabs(w - 18 / 18.5) <= 64 * epsilon, "removed: w is %.17g", w);
	learner.weights = weights + 2;
	OK(mercer_fit(0, &learner, &last, &last, NULL, &other));
	OK(mercer_merge(0, model, other, NULL, &merged));
	OK(mercer_predict(0, merged, MERCER_VALUES, &point, &w, 1, NULL));
	CHECK(fabs(w - xx / (xx + 0.5)) <= 64 * epsilon, "merged: w is %.17g", w);
	OK(mercer_sample(0, merged, &all, 2, 7, draw, 6, NULL));
	OK(mercer_sample(0, merged, &all, 2, 7, again, 6, NULL));
	CHECK(memcmp(draw, again, sizeof draw) == 0, "draws of one seed differ");
	for (int i = 0; i < 6; i += 3) /* lines through 0 */
		CHECK(fabs(draw[i + 1] - 2 * draw[i]) <= 64 * epsilon && fabs(draw[i + 2] - 3 * draw[i]) <= 64 * epsilon, "draw %d is not linear", i / 3);
	double slopes[3], mean, deviation, s;
	OK(mercer_effects(0, merged, &all, NULL, 0, slopes, &mean, &deviation, 1, NULL));
	OK(mercer_predict(0, merged, MERCER_DEVIATIONS, &point, &s, 1, NULL));
	for (int i = 0; i < 3; i++)
		CHECK(fabs(slopes[i] - w) <= 64 * epsilon, "derivative %d is %.17g", i, slopes[i]);
	CHECK(fabs(mean - w) <= 64 * epsilon, "the average derivative is %.17g", mean);
	/* The variance at x = 1 is that of w and of the noise: s²λ/(xx + λ) + s²λ. */
	CHECK(fabs(s * s - deviation * deviation * (1 + xx + 0.5)) <= 256 * epsilon, "the deviations are %.17g and %.17g", deviation, s);
	double alone;
	OK(mercer_effects(0, merged, &all, NULL, 0, NULL, &alone, NULL, 1, NULL));
	CHECK(alone == mean, "the average is %.17g without deviations", alone);
	mercer_matrix two = doubles(v, 2, 1);
	OK(mercer_effects(0, merged, &two, (int64_t[]){0}, 1, NULL, &mean, NULL, 1, NULL));
	CHECK(fabs(mean - w) <= 64 * epsilon, "the average difference is %.17g", mean);
	FAILS(MERCER_INVALID, "the feature with index 0 has 3 values", mercer_effects(0, merged, &all, (int64_t[]){0}, 1, NULL, &mean, NULL, 1, NULL));
	FAILS(MERCER_INVALID, "binary is NULL", mercer_effects(0, merged, &all, NULL, 1, NULL, &mean, NULL, 1, NULL));
	FAILS(MERCER_INVALID, "mean: the result is 1×1", mercer_effects(0, merged, &all, NULL, 0, NULL, slopes, NULL, 3, NULL));
	FAILS(MERCER_INVALID, "out has 6 elements", mercer_sample(0, merged, &all, 3, 7, draw, 6, NULL));
	FAILS(MERCER_INVALID, "out has 6 elements", mercer_sample(0, merged, &all, -2, 7, draw, 6, NULL));
	FAILS(MERCER_INVALID, "no sample of the fit is left", mercer_update(0, model, &first, &first, weights, 1, NULL, &removed));
	FAILS(MERCER_INVALID, "weights: row 1", mercer_update(0, model, &first, &first, (double[]){-1, 1}, 0, NULL, &removed));
	OK(mercer_free(other));
	FAILS(MERCER_INVALID, "freed", mercer_merge(0, model, other, NULL, &merged));
	parameters[2] = NULL;
	OK(mercer_fit(0, &learner, &last, &last, NULL, &other));
	FAILS(MERCER_INVALID, "did not keep its posterior", mercer_merge(0, model, other, NULL, &merged));
	FAILS(MERCER_INVALID, "did not keep its posterior", mercer_update(0, other, &last, &last, NULL, 0, NULL, &merged));
	OK(mercer_free(other));

	/* The centers of nystrom-ridge are the given ones. */
	double center[] = {1.5, 4}, kept[2];
	mercer_matrix centers = doubles(center, 2, 1), none = doubles(center, 1, 2);
	const char *more[] = {"kernel=gaussian(sigma=1)", NULL};
	learner = (mercer_learner){.name = "nystrom-ridge", .parameters = more, .centers = &centers};
	OK(mercer_fit(0, &learner, &all, &all, NULL, &other));
	OK(mercer_array(other, "centers", kept, 2));
	CHECK(kept[0] == 1.5 && kept[1] == 4, "the centers are %g and %g", kept[0], kept[1]);
	learner.centers = &none;
	FAILS(MERCER_INVALID, "centers", mercer_fit(0, &learner, &all, &all, NULL, &merged));
	learner.centers = &centers, learner.name = "kernel-ridge";
	FAILS(MERCER_INVALID, "centers", mercer_fit(0, &learner, &all, &all, NULL, &merged));
	OK(mercer_free(other));
	OK(mercer_free(model));
	OK(mercer_free(appended));
	OK(mercer_free(removed));
	OK(mercer_free(merged));
}

static void misuse(void)
{
	double v[] = {1, 2, NAN, 4};
	mercer_matrix x = doubles(v, 2, 2), y = doubles(v, 2, 1), bad;
	mercer_learner learner = {.name = "ridge"}, none = {0};
	mercer_handle model = 77, device;
	FAILS(MERCER_INVALID, "row 2, column 1 is NaN", mercer_fit(0, &learner, &x, &y, NULL, &model));
	CHECK(model == 77, "a failed call wrote a handle");
	FAILS(MERCER_INVALID, "x is NULL", mercer_fit(0, &learner, NULL, &y, NULL, &model));
	FAILS(MERCER_INVALID, "y is missing", mercer_fit(0, &learner, &y, NULL, NULL, &model));
	FAILS(MERCER_INVALID, "learner is NULL", mercer_fit(0, NULL, &x, &y, NULL, &model));
	FAILS(MERCER_INVALID, "model is NULL", mercer_fit(0, &learner, &x, &y, NULL, NULL));
	FAILS(MERCER_INVALID, "no learner is called", mercer_fit(0, &none, &x, &y, NULL, &model));
	learner.task = "novelty";
	FAILS(MERCER_INVALID, "novelty", mercer_fit(0, &learner, &x, &y, NULL, &model));
	learner.task = NULL;
	const char *parameters[] = {"lambda=-1", NULL};
	learner.parameters = parameters;
	FAILS(MERCER_INVALID, "lambda", mercer_fit(0, &learner, &x, &y, NULL, &model));
	const char *const names[] = {"lambda=alpha", "tol=tol", NULL};
	OK(mercer_set_names(names));
	FAILS(MERCER_INVALID, "alpha: must be", mercer_fit(0, &learner, &x, &y, NULL, &model));
	OK(mercer_set_names(NULL));
	FAILS(MERCER_INVALID, "lambda: must be", mercer_fit(0, &learner, &x, &y, NULL, &model));
	parameters[0] = "lambda";
	FAILS(MERCER_INVALID, "name=value", mercer_fit(0, &learner, &x, &y, NULL, &model));
	learner.parameters = NULL;
	bad = x, bad.stride = 1;
	FAILS(MERCER_INVALID, "stride", mercer_fit(0, &learner, &bad, &y, NULL, &model));
	bad = x, bad.rows = -3;
	FAILS(MERCER_INVALID, "empty", mercer_fit(0, &learner, &bad, &y, NULL, &model));
	bad = x, bad.rows = INT64_MAX, bad.stride = INT64_MAX;
	FAILS(MERCER_INVALID, "possible", mercer_fit(0, &learner, &bad, &y, NULL, &model));
	bad = x, bad.data = NULL;
	FAILS(MERCER_INVALID, "x is NULL", mercer_fit(0, &learner, &bad, &y, NULL, &model));
	bad = x, bad.data = (char *)v + 1, bad.rows = 1;
	FAILS(MERCER_INVALID, "aligned", mercer_fit(0, &learner, &bad, &y, NULL, &model));
	bad = x, bad.type = 5;
	FAILS(MERCER_INVALID, "5 is not an element type", mercer_fit(0, &learner, &bad, &y, NULL, &model));
	FAILS(MERCER_INVALID, "freed", mercer_fit(12345, &learner, &x, &y, NULL, &model));
	FAILS(MERCER_INVALID, "freed", mercer_predict(0, 0, MERCER_VALUES, &x, v, 2, NULL));
	FAILS(MERCER_UNAVAILABLE, "no device is called", mercer_open("abacus", 0, 0, &device));
	FAILS(MERCER_INVALID, "threads", mercer_open("", -1, 0, &device));
	FAILS(MERCER_INVALID, "json is NULL", mercer_describe(0, NULL));
	OK(mercer_free(0));
	mercer_release(NULL);

	/* On a device with too little memory, a fit fails before work starts. */
	enum { n = 400 };
	static double points[n * 2], targets[n];
	smooth(points, targets, n, 2);
	mercer_matrix mp = doubles(points, n, 2), mt = doubles(targets, n, 1);
	const char *exact[] = {"solver=dual", "kernel=gaussian(sigma=1)", NULL};
	mercer_learner big = {.name = "kernel-ridge", .parameters = exact};
	OK(mercer_open("cpu", 1, 100000, &device));
	FAILS(MERCER_MEMORY, "memory", mercer_fit(device, &big, &mp, &mt, NULL, &model));
	FAILS(MERCER_MEMORY, "memory", mercer_factor(device, "gaussian(sigma=1)", 1, &mp, NULL, &model));
	big.memory = 1000;
	FAILS(MERCER_MEMORY, "memory", mercer_fit(0, &big, &mp, &mt, NULL, &model));
	OK(mercer_free(device));
	FAILS(MERCER_INVALID, "freed", mercer_fit(device, &big, &mp, &mt, NULL, &model));
}

/* too_large checks for each argument that a size beyond the memory of the process gives an
 * error before any element is read. */
static void too_large(void)
{
	double v[] = {1, 2, 3, 4}, out[2];
	mercer_matrix x = doubles(v, 2, 2), y = doubles(v, 2, 1), bad;
	const char *parameters[] = {"lambda=1", NULL};
	mercer_learner learner = {.name = "ridge", .parameters = parameters};
	mercer_handle model, other = 77;
	OK(mercer_fit(0, &learner, &x, &y, NULL, &model));
	struct {
		int64_t rows, cols, stride;
	} sizes[] = {
		{(int64_t)1 << 40, 2, 2}, {2, (int64_t)1 << 40, (int64_t)1 << 40},
		{2, 2, (int64_t)1 << 44}, {INT64_MAX / 8, 1, 1}, {INT64_MAX / 32, 2, 4},
	};
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
		for (int type = MERCER_FLOAT64; type <= MERCER_FLOAT32; type++) {
			const char *part = "beyond the memory of the process";
			bad = (mercer_matrix){v, sizes[i].rows, sizes[i].cols, sizes[i].stride, type};
			FAILS(MERCER_INVALID, part, mercer_fit(0, &learner, &bad, &y, NULL, &other));
			FAILS(MERCER_INVALID, part, mercer_fit(0, &learner, &x, &bad, NULL, &other));
			FAILS(MERCER_INVALID, part, mercer_predict(0, model, MERCER_VALUES, &bad, out, 2, NULL));
			FAILS(MERCER_INVALID, part, mercer_solve(0, NULL, 1, &bad, &y, out, 2, NULL, NULL));
			FAILS(MERCER_INVALID, part, mercer_solve(0, NULL, 1, &x, &bad, out, 2, NULL, NULL));
			FAILS(MERCER_INVALID, part, mercer_factor(0, NULL, 1, &bad, NULL, &other));
		}
	FAILS(MERCER_INVALID, "out: ", mercer_predict(0, model, MERCER_VALUES, &x, out, (size_t)1 << 45, NULL));
	FAILS(MERCER_INVALID, "possible", mercer_predict(0, model, MERCER_VALUES, &x, out, SIZE_MAX, NULL));
	FAILS(MERCER_INVALID, "bytes: ", mercer_parse(v, (size_t)1 << 50, &other));

	/* 4 TiB of addresses, which are mapped and take no memory until they are read. */
	size_t size = (size_t)1 << 42;
	float *reserved = mmap(NULL, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	CHECK(reserved != MAP_FAILED, "4 TiB of addresses");
	if (reserved == MAP_FAILED)
		return;
	for (int type = MERCER_FLOAT64; type <= MERCER_FLOAT32; type++) {
		int64_t rows = size / (type == MERCER_FLOAT64 ? sizeof(double) : sizeof(float));
		bad = (mercer_matrix){reserved, rows, 1, 1, type};
		FAILS(MERCER_MEMORY, "memory", mercer_fit(0, &learner, &bad, &bad, NULL, &other));
		FAILS(MERCER_MEMORY, "memory", mercer_solve(0, "linear()", 1, &bad, &bad, out, 2, NULL, NULL));
		FAILS(MERCER_MEMORY, "memory", mercer_factor(0, "linear()", 1, &bad, NULL, &other));
		FAILS(MERCER_MEMORY, "memory", mercer_predict(0, model, MERCER_VALUES, &bad, out, 2, NULL));
	}
	munmap(reserved, size);
	CHECK(other == 77, "a failed call wrote a handle");
	OK(mercer_free(model));
}

static mercer_watch interrupted;

static void on_alarm(int signal)
{
	(void)signal;
	interrupted.cancel = 1;
}

/* A fit of many seconds ends soon after a signal; a watch that was canceled
 * before ends the call at once. */
static void canceled(void)
{
	enum { n = 6000, d = 4 };
	double *x = malloc(n * d * sizeof *x), *y = malloc(n * sizeof *y);
	smooth(x, y, n, d);
	mercer_matrix mx = doubles(x, n, d), my = doubles(y, n, 1);
	/* A tolerance that a thousand products with K do not reach. */
	const char *parameters[] = {"solver=cg", "preconditioner=none", "kernel=gaussian(sigma=3)", "lambda=1e-9", "tol=1e-14", "operator=never64", NULL};
	mercer_learner learner = {.name = "kernel-ridge", .parameters = parameters};
	mercer_handle model;
	/* Without SA_ONSTACK the handler may run on the small stack of a goroutine. */
	struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_ONSTACK};
	sigaction(SIGALRM, &action, NULL);
	ualarm(200000, 0);
	FAILS(MERCER_CANCELED, "canceled", mercer_fit(0, &learner, &mx, &my, &interrupted, &model));
	FAILS(MERCER_CANCELED, "canceled", mercer_fit(0, &learner, &mx, &my, &interrupted, &model));

	mercer_watch seen = {0};
	parameters[0] = "solver=dual", parameters[1] = "lambda=1", parameters[2] = "kernel=gaussian(sigma=3)", parameters[3] = NULL;
	mx.rows = my.rows = 500;
	OK(mercer_fit(0, &learner, &mx, &my, &seen, &model));
	CHECK(seen.permille == 1000 && seen.stage != NULL, "%d", seen.permille);
	OK(mercer_free(model));
	free(x);
	free(y);
}

enum { threads = 8, rounds = 40, shared_n = 80, shared_d = 2 };

static struct {
	mercer_handle model, factor;
	mercer_matrix x, y;
	double f[shared_n], a[shared_n];
} shared;

/* Each thread predicts and solves with shared handles, fits and frees its own, and
 * finds its own errors. */
static void *one_thread(void *number)
{
	long me = (long)number, wrong = 0;
	double f[shared_n], a[shared_n];
	char name[32];
	snprintf(name, sizeof name, "learner-%ld", me);
	const char *parameters[] = {"lambda=0.5", NULL};
	for (int r = 0; r < rounds; r++) {
		mercer_handle own;
		mercer_learner learner = {.name = name};
		wrong += mercer_fit(0, &learner, &shared.x, &shared.y, NULL, &own) != MERCER_INVALID;
		wrong += mercer_predict(0, shared.model, MERCER_VALUES, &shared.x, f, shared_n, NULL) != MERCER_OK;
		wrong += memcmp(f, shared.f, sizeof f) != 0;
		wrong += mercer_factor_solve(shared.factor, &shared.y, a, shared_n, NULL, NULL) != MERCER_OK;
		wrong += memcmp(a, shared.a, sizeof a) != 0;
		wrong += strstr(mercer_last_error(), name) == NULL;
		learner.name = "ridge", learner.parameters = parameters;
		wrong += mercer_fit(0, &learner, &shared.x, &shared.y, NULL, &own) != MERCER_OK;
		wrong += mercer_free(own) != MERCER_OK;
	}
	return (void *)wrong;
}

/* Frees the shared model while others may be using it. */
static void *predict_until_freed(void *unused)
{
	(void)unused;
	double f[shared_n];
	int status;
	while ((status = mercer_predict(0, shared.model, MERCER_VALUES, &shared.x, f, shared_n, NULL)) == MERCER_OK)
		if (memcmp(f, shared.f, sizeof f) != 0)
			return (void *)1;
	return (void *)(long)(status != MERCER_INVALID || strstr(mercer_last_error(), "freed") == NULL);
}

static void in_threads(void)
{
	static double x[shared_n * shared_d], y[shared_n];
	pthread_t thread[threads];
	void *wrong;
	smooth(x, y, shared_n, shared_d);
	shared.x = doubles(x, shared_n, shared_d), shared.y = doubles(y, shared_n, 1);
	const char *parameters[] = {"kernel=gaussian(sigma=1)", "lambda=0.1", NULL};
	mercer_learner learner = {.name = "kernel-ridge", .parameters = parameters};
	mercer_handle device;
	OK(mercer_open("cpu", 2, 0, &device));
	OK(mercer_fit(device, &learner, &shared.x, &shared.y, NULL, &shared.model));
	OK(mercer_factor(device, "gaussian(sigma=1)", 0.1, &shared.x, NULL, &shared.factor));
	OK(mercer_free(device)); /* the factor keeps it open */
	OK(mercer_predict(0, shared.model, MERCER_VALUES, &shared.x, shared.f, shared_n, NULL));
	OK(mercer_factor_solve(shared.factor, &shared.y, shared.a, shared_n, NULL, NULL));
	for (long i = 0; i < threads; i++)
		pthread_create(&thread[i], NULL, one_thread, (void *)i);
	for (long i = 0; i < threads; i++) {
		pthread_join(thread[i], &wrong);
		CHECK(wrong == NULL, "thread %ld: %ld wrong", i, (long)wrong);
	}
	for (long i = 0; i < threads; i++)
		pthread_create(&thread[i], NULL, predict_until_freed, NULL);
	usleep(20000);
	OK(mercer_free(shared.model));
	for (long i = 0; i < threads; i++) {
		pthread_join(thread[i], &wrong);
		CHECK(wrong == NULL, "thread %ld while the model was freed", i);
	}
	OK(mercer_free(shared.factor));
}

int main(void)
{
	CHECK(mercer_abi() == MERCER_ABI, "%d", mercer_abi());
	CHECK(strcmp(mercer_last_error(), "") == 0, "%s", mercer_last_error());
	closed_form();
	sparse();
	models();
	classes();
	systems();
	path();
	bounds();
	intervals();
	updates();
	texts();
	features_of_texts();
	misuse();
	too_large();
	canceled();
	in_threads();
	if (failures > 0) {
		printf("%d failures\n", failures);
		return 1;
	}
	printf("libmercer: the C interface holds\n");
	return 0;
}
