/* mercer.h: kernel machines from C. `make libmercer` builds libmercer.so.
 *
 *	const char *parameters[] = {"kernel=gaussian(sigma=2)", "lambda=0.1", NULL};
 *	mercer_learner learner = {.name = "kernel-ridge", .parameters = parameters};
 *	mercer_matrix x = {samples, n, d, d, MERCER_FLOAT64};
 *	mercer_matrix y = {targets, n, 1, 1, MERCER_FLOAT64};
 *	mercer_handle model;
 *	if (mercer_fit(0, &learner, &x, &y, NULL, &model))
 *		fprintf(stderr, "%s\n", mercer_last_error());
 *
 * Every function that returns int returns MERCER_OK or the kind of an error, an
 * enum mercer_status; mercer_last_error returns the text of the error. Results are
 * written only if a function returns MERCER_OK. A defect in the library gives
 * MERCER_PANIC; only a fatal error of Go's runtime ends the process.
 *
 * Several threads may call all functions at once, also with the same handles. A
 * handle may be freed while other threads use it: its memory is freed when their
 * calls have returned, and later calls with it fail. Arguments are read during the
 * call only and are never written; matrices of doubles are not copied. The caller
 * provides the memory of results unless the description of a function differs.
 * If a matrix extends beyond the memory of the process, the call returns
 * MERCER_INVALID and reads no element.
 *
 * Texts are UTF-8 and end with a zero byte. Matrices are row-major. n, d and t are
 * the numbers of samples, features and targets, K is the number of classes. Samples
 * are counted from 0 in arguments and from 1 in the texts of errors. lambda has the
 * unit of k(x, z); deviations and intervals have the unit of y.
 *
 * A program that installs a signal handler while the library is loaded must pass
 * SA_ONSTACK to sigaction, as any program that contains Go code must: otherwise the
 * handler would run on the small stacks of the library's threads. (The library adds
 * the flag to handlers that were installed before; Python 3.10 and later pass it.)
 *
 * The library requires Linux. After a process has called the library, a child made
 * by fork must not use the library, because the child lacks the library's threads. A
 * child that calls exec is safe.
 */
#ifndef MERCER_H
#define MERCER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this interface. It changes when programs that were compiled with an
 * older header would no longer work. mercer_abi returns the version of the library,
 * which must be equal to the MERCER_ABI of the header. */
#define MERCER_ABI 4
int mercer_abi(void);

enum mercer_status {
	MERCER_OK = 0,
	MERCER_INVALID = 1,               /* an invalid argument or invalid data; the text names row and column */
	MERCER_CANCELED = 2,             /* the caller set mercer_watch.cancel */
	MERCER_MEMORY = 3,                /* the call needs more memory than available; the text states both; no work was started */
	MERCER_NOT_POSITIVE_DEFINITE = 4, /* K + lambda I is not positive definite; the text states how large lambda must be, or advises another kernel */
	MERCER_NOT_CONVERGED = 5,         /* the requested residual was not reached; the text says what to change */
	MERCER_UNAVAILABLE = 6,           /* this machine does not have the device; the text says what was probed */
	MERCER_PANIC = 7                  /* a defect in the library */
};

/* Returns the text of the error of the last failed call of this thread, one line of
 * UTF-8, or "" if no call has failed. The text is valid until the next call of this
 * thread fails. */
const char *mercer_last_error(void);

/* Sets the parameter names in the texts of errors and of mercer_describe and mercer_path,
 * for all later calls of this thread. The list names ends with NULL; its elements have the
 * form "parameter=name", such as "iterations=max_iter". The library copies the list. The
 * texts omit advice to change a parameter that is not in the list. If names is NULL, the
 * texts have the library's own names and all advice again. */
int mercer_set_names(const char *const *names);

/* Refers to a device, a model or a factor in the library's memory; 0 refers to no object. */
typedef uintptr_t mercer_handle;

/* Frees the object of a handle. For 0 it does nothing; for a handle that was freed
 * before it returns MERCER_INVALID. */
int mercer_free(mercer_handle handle);

/* Sets *json to a JSON object that describes the object of a handle. For a model it has
 * the learner, shapes, parameters, classes, solver, residual and seconds. For 0 it
 * describes the library: version, devices, learners with their parameters, kernels, and
 * memory_bytes that the process may still take. The caller frees *json by mercer_release. */
int mercer_describe(mercer_handle handle, char **json);

/* Frees memory that mercer_describe, mercer_path or mercer_dump returned. For NULL it
 * does nothing. */
void mercer_release(void *given);

/* Opens the device with the given name, such as "cpu/avx2", or the best available device
 * for "". threads is the number of threads, 0 for all; memory is the limit in bytes for
 * matrices, 0 for 80 % of the memory that the process may use. If the name is unknown or
 * the machine does not have the device, the result is MERCER_UNAVAILABLE. In all other
 * functions, the device handle 0 means the device of "". */
int mercer_open(const char *name, int threads, int64_t memory, mercer_handle *device);

enum mercer_type { MERCER_FLOAT64 = 0, MERCER_FLOAT32 = 1, MERCER_CSR = 2 };

/* A row-major matrix: element (i, j) is data[i*stride + j]. Computations are in double; a
 * matrix of floats is converted to a copy. If the type is MERCER_CSR, the matrix is sparse:
 * data points to a mercer_csr, and stride is not read. */
typedef struct mercer_matrix {
	const void *data;
	int64_t rows, cols, stride;
	int32_t type; /* enum mercer_type */
} mercer_matrix;

/* A sparse matrix in compressed sparse rows, like csr_matrix of SciPy: row i has the elements
 * data[p] in the columns indices[p], counted from 0, for indptr[i] ≤ p < indptr[i+1], and zeros
 * elsewhere. indptr has rows + 1 numbers, and indptr[0] is 0. The columns of a row must
 * increase; otherwise the result is MERCER_INVALID, and the text names row and column.
 *
 * Every function accepts sparse samples x. These make no dense copy: mercer_path, mercer_solve and
 * mercer_factor with a kernel, and the learners whose description has "sparse", with their models.
 * All other functions and learners make a dense copy if it fits in memory. */
typedef struct mercer_csr {
	const int64_t *indptr;
	const int32_t *indices;
	const double *data;
} mercer_csr;

/* Cancels a long call and receives its progress. Set all fields to 0 before the call. The
 * call reads cancel every 10 ms and writes the other fields, which another thread can
 * show. The struct must stay in memory until the call has returned. */
typedef struct mercer_watch {
	volatile int32_t cancel;     /* set it to 1, also in a signal handler, and the call soon returns MERCER_CANCELED */
	volatile int32_t permille;   /* completed work in thousandths */
	const char *volatile stage;  /* "gram", "factor", "solve", …, or NULL before the first stage; never freed */
} mercer_watch;

/* Describes a fit. A field that is 0 has its default; lists end with NULL. */
typedef struct mercer_learner {
	const char *name;              /* "kernel-ridge"; `mercer learners` lists them with their parameters */
	const char *task;              /* "regression", "classification" or "novelty"; default: the learner's first */
	const char *const *parameters; /* "name=value" each */
	const double *weights;         /* of the n rows, ≥ 0; a row of weight 0 is ignored; default: all 1 */
	const char *const *classes;    /* names: y has indices 0, 1, … into this list; default: the values of y */
	const char *const *features;   /* names of x's columns in a saved model; default: x1, x2, … */
	const char *const *targets;    /* names of y's columns; default: y, or y1, y2, … */
	int64_t memory;                /* bytes that the fit may take; default: all free memory */
	const mercer_matrix *centers;  /* the centers of nystrom-ridge, M×d; default: the fit chooses them */
} mercer_learner;

/* Fits a learner to the n×d matrix x and the n×t matrix y, and stores the handle of
 * the model. y is NULL for novelty. With the kernel "precomputed()" x is the n×n matrix
 * of kernel values. watch may be NULL. */
int mercer_fit(mercer_handle device, const mercer_learner *learner, const mercer_matrix *x,
               const mercer_matrix *y, mercer_watch *watch, mercer_handle *model);

enum mercer_wanted {
	MERCER_VALUES = 0,        /* targets, or the number of the predicted class, n×t; for svc with
	                           * probability=true it is the class with the largest probability */
	MERCER_DECISION = 1,      /* decision values: n×1 for two classes, > 0 for the second; n×K for more */
	MERCER_PROBABILITIES = 2, /* of the classes: n×K */
	MERCER_DEVIATIONS = 3     /* standard deviations of new targets, including noise: n×t */
};

/* Writes predictions for the n rows of x to out, row after row. size is the number of
 * elements of out and must be that of the result. x has the columns of the fit; for a
 * model made by `mercer fit`, the numeric columns of the table. The first call for at
 * most 16 rows copies the model to the device until the model is freed; later calls then
 * take a fifth of the time. */
int mercer_predict(mercer_handle device, mercer_handle model, int wanted, const mercer_matrix *x,
                   double *out, size_t size, mercer_watch *watch);

/* Writes the bounds of prediction intervals at the n rows of x to lower and upper,
 * n×t each; size is the number n·t. Models of kernel-ridge, and of ridge with the
 * parameter intervals=true, have jackknife+ intervals for 0.5 ≤ level < 1; models made by
 * mercer_calibrate or `mercer fit --calibrate` have split-conformal intervals for 0 <
 * level < 1. A new target is in its interval with a probability of about level. For any
 * noise, the probability is at least 2 level − 1 (jackknife+) or level (split-conformal)
 * if the new sample and the samples of the fit are exchangeable. Other models with
 * MERCER_DEVIATIONS have the intervals of a normal distribution with these deviations, for
 * 0 < level < 1. The first call for a model of kernel-ridge or gaussian-process computes
 * the Cholesky factor of K + lambda I. */
int mercer_intervals(mercer_handle device, mercer_handle model, double level, const mercer_matrix *x,
                     double *lower, double *upper, size_t size, mercer_watch *watch);

/* Writes predictions for the n rows of x to values, and to bounds proven upper bounds of
 * their distances from the predictions of the exact solution of the model's equations,
 * n×t each; size is the number n·t. The bounds do not include noise. Models of kernel-ridge
 * and gaussian-process have bounds if the kernel is positive semidefinite and lambda > 0;
 * if they were fitted with bound=true, the bounds are smaller and this function is slower.
 * Models of ridge, nystrom-ridge and fourier-ridge have bounds only with bound=true. */
int mercer_bounds(mercer_handle device, mercer_handle model, const mercer_matrix *x,
                  double *values, double *bounds, size_t size, mercer_watch *watch);

/* Computes split-conformal intervals for a model of regression, or prediction sets for a
 * classifier, from samples x, m×d, and y, m×t, that were not used in the fit, and stores
 * the handle of a new model that has them; the given model is not changed. y is as in
 * mercer_fit; a class that the model does not have is in no prediction set. */
int mercer_calibrate(mercer_handle device, mercer_handle model, const mercer_matrix *x, const mercer_matrix *y,
                     mercer_watch *watch, mercer_handle *calibrated);

/* Writes the prediction sets of the n rows of x to out, n×K: 1 if a class is in the set of
 * the row, otherwise 0. The model must be made by mercer_calibrate. The class of a new
 * sample is in its set with a probability of at least level, 0 < level < 1, if the new
 * sample and the samples of the calibration are exchangeable. */
int mercer_sets(mercer_handle device, mercer_handle model, double level, const mercer_matrix *x,
                double *out, size_t size, mercer_watch *watch);

/* mercer_update appends the n rows of x and y to the samples of a model, or removes them if
 * remove is 1, without a refit. It stores the handle of the new model; the given model is not
 * changed. The model must be one of ridge, nystrom-ridge or fourier-ridge with the parameter
 * std=true. weights are the weights of the rows, or NULL for all 1. Up to rounding, the new
 * model is that of a fit with the same kernel, lambda and centers or frequencies.
 *
 * mercer_merge appends the samples of another model that was fitted with the same kernel,
 * lambda and centers or frequencies. */
int mercer_update(mercer_handle device, mercer_handle model, const mercer_matrix *x, const mercer_matrix *y,
                  const double *weights, int remove, mercer_watch *watch, mercer_handle *updated);
int mercer_merge(mercer_handle device, mercer_handle model, mercer_handle other, mercer_watch *watch,
                 mercer_handle *merged);

/* Writes draws of the function from its posterior, without noise, at the n rows of x to
 * out, draws×n×t: size is draws·n·t. The model must be one that mercer_update accepts. The
 * same seed gives the same draws. */
int mercer_sample(mercer_handle device, mercer_handle model, const mercer_matrix *x, int64_t draws, uint64_t seed,
                  double *out, size_t size, mercer_watch *watch);

/* Writes the marginal effects of the d columns of x on the t outputs; the outputs of a classifier
 * are its decision values. The derivatives ∂f/∂x at the n rows go to rows, t×n×d; their averages
 * over the rows to mean, t×d; and the standard errors of the averages to deviations, t×d, NaN if
 * the model has none. size is t·d. rows and deviations may be NULL; standard errors, which may
 * take long, are computed only if deviations is not NULL. binary lists count columns, from 0, that
 * have two values in x. The effect of such a column is f at the larger value minus f at the smaller.
 * Models of kernel-ridge have the standard errors of Hainmueller and Hazlett (2014). Models of
 * gaussian-process, bayes-ridge and rvm have posterior deviations, and so do models of ridge,
 * nystrom-ridge and fourier-ridge with std=true. */
int mercer_effects(mercer_handle device, mercer_handle model, const mercer_matrix *x, const int64_t *binary, size_t count,
                   double *rows, double *mean, double *deviations, size_t size, mercer_watch *watch);

/* Copies an array of the model, such as "coef" or "alpha", to out, row after row;
 * size is the number of its elements. mercer_describe lists them with their shapes. */
int mercer_array(mercer_handle model, const char *name, double *out, size_t size);

/* Write a model to a file and read a model from a file, in the safetensors format of the
 * command mercer. A file is written completely or not at all. For a damaged file, or a file
 * that is not a model, mercer_load returns MERCER_INVALID. */
int mercer_save(mercer_handle model, const char *path);
int mercer_load(const char *path, mercer_handle *model);

/* Write and read the bytes of such a file in memory. The caller frees *bytes by
 * mercer_release. */
int mercer_dump(mercer_handle model, void **bytes, size_t *size);
int mercer_parse(const void *bytes, size_t size, mercer_handle *model);

/* The caller's arrays, row-major, to which mercer_path writes its results. If a field is
 * NULL, its result is not computed. n and t are the numbers of rows and columns of y. */
typedef struct mercer_scores {
	double *gcv;     /* count×t: generalized cross-validation, n ‖W^½(I − H)y‖² / tr(I − H)² */
	double *loo;     /* count×t: Σ w_i e_i² / Σ w_i */
	double *errors;  /* count×n×t: e_i = y_i − f(x_i), where f is fitted to the other samples; 0 if w_i = 0 */
	double *freedom; /* count: tr H, the effective degrees of freedom, where Hy is the fit */
} mercer_scores;

/* Scores kernel ridge regression, (K + lambda W⁻¹) a + b = y, for count lambda ≥ 0
 * from one decomposition of K: O(n³) once and O(n²) for each lambda. kernel is a text
 * such as "gaussian(sigma=2)"; for "precomputed()" x is the n×n matrix of kernel values;
 * NULL is the Gaussian whose sigma is half the median distance of the rows of x. weights
 * are ≥ 0, one for each row, or NULL for all 1. intercept is 1 for an unpenalized b, 0 for
 * b = 0. memory is as in mercer_learner.
 *
 * The scores of a lambda are NaN if K + lambda W⁻¹ is singular to working precision or the
 * effective degrees of freedom are n; the call fails if no lambda has a score. If json is
 * not NULL, *json is set to a JSON object that the caller frees by mercer_release. It has
 * kernel, method, memory_bytes, device, and failed, a list of {lambda, reason}. watch may
 * be NULL. */
int mercer_path(mercer_handle device, const char *kernel, const double *lambdas, size_t count, const mercer_matrix *x,
                const mercer_matrix *y, const double *weights, int intercept, int64_t memory, const mercer_scores *scores,
                char **json, mercer_watch *watch);

/* Solves (K + lambda I) a = y for lambda ≥ 0, with a and y n×t and size = n·t. K = k(x, x)
 * for a kernel such as "gaussian(sigma=2)"; if kernel is NULL or "", x is the symmetric
 * matrix K. If residual is not NULL, *residual is set to the largest ‖(K + lambda I) a − y‖ /
 * ‖y‖ of the columns. If it exceeds 1e-8, the result is MERCER_NOT_CONVERGED. watch may be
 * NULL. */
int mercer_solve(mercer_handle device, const char *kernel, double lambda, const mercer_matrix *x,
                 const mercer_matrix *y, double *a, size_t size, double *residual, mercer_watch *watch);

/* Writes the Gram matrix k(x, z), n×m, to out, or, if v is not NULL, the product k(x, z) v, n×t,
 * for which k(x, z) is not stored. x is n×d, z is m×d, v is m×t; if z is NULL, z is x. x and z
 * are both sparse or both dense. size is the number of elements of the result. watch may be
 * NULL. */
int mercer_gram(mercer_handle device, const char *kernel, const mercer_matrix *x, const mercer_matrix *z,
                const mercer_matrix *v, double *out, size_t size, mercer_watch *watch);

/* Is like mercer_gram for a kernel of texts or trees, such as "spectrum(length=3)". a and b are lists of
 * texts that end with NULL. If b is NULL, the result is k(a, a). */
int mercer_text_gram(const char *kernel, const char *const *a, const char *const *b, double *out, size_t size,
                     mercer_watch *watch);

/* Computes the features of texts, a list that ends with NULL, that the flag --tfidf of mercer fit makes. If
 * vocabulary is not NULL, settings is a JSON object with any of analyzer ("word", "char" or "char_wb"),
 * min_n, max_n, min_df, max_features, sublinear and keep_case, and *vocabulary is set to the n-grams of
 * the texts with their counts, as JSON. If vocabulary is NULL, settings is such a vocabulary. *features
 * is set to *size bytes, the CSR matrix of the features with one row for each of the n texts: n + 1
 * starts of rows (int64_t), all values (double), and their columns (int32_t). Both results are freed by
 * mercer_release. */
int mercer_tfidf(const char *settings, const char *const *texts, char **vocabulary, void **features, size_t *size);

/* Writes the sums of the least squares of y, n×t, on x, n×d: XᵀWX to gram, d×d, YᵀWX to products,
 * t×d, and the means of the columns of x and then of y to means, d + t. If intercept is 1, X and Y are x
 * and y minus their weighted means; if it is 0, they are x and y, and the means are 0. weights are ≥ 0,
 * one for each row, or NULL for all 1. A sparse x is copied into a dense matrix. watch may be NULL. */
int mercer_moments(mercer_handle device, const mercer_matrix *x, const mercer_matrix *y, const double *weights,
                   int intercept, double *gram, double *products, double *means, mercer_watch *watch);

/* Finds the k rows of z, m×d, that are nearest to each of the n rows of x, n×d, in the Euclidean
 * distance. Writes their indices to rows and the squares of their distances to squares, n×k each,
 * the nearest first; size is n·k. Rows at equal distances come in the order of z. A sparse x
 * or z is copied into a dense matrix. watch may be NULL. */
int mercer_neighbors(mercer_handle device, const mercer_matrix *x, const mercer_matrix *z, int64_t k,
                     int64_t *rows, double *squares, size_t size, mercer_watch *watch);

/* Writes factor·cos(x wᵀ + b) to out, n×m, where x is n×d, w is m×d, and the m numbers b are added
 * to each row of x wᵀ: random Fourier features for frequencies w. size is n·m. A sparse x or w is
 * copied into a dense matrix. watch may be NULL. */
int mercer_cosines(mercer_handle device, double factor, const mercer_matrix *x, const mercer_matrix *w,
                   const double *b, double *out, size_t size, mercer_watch *watch);

/* Sets *log to the log marginal likelihood of the t columns of y, n×t, under a Gaussian process with
 * the covariance C = height·k(x, x) + lambda I, lambda > 0:
 * Σ_j −½ y_jᵀC⁻¹y_j − ½ log det C − (n/2) log 2π. If gradient is not NULL, it receives the
 * derivatives with respect to the logarithms of height, of the continuous parameters of the kernel in
 * the order of its text, and of lambda; size is their number. watch may be NULL. */
int mercer_evidence(mercer_handle device, const char *kernel, double height, double lambda, const mercer_matrix *x,
                    const mercer_matrix *y, double *log, double *gradient, size_t size, mercer_watch *watch);

/* Computes the Cholesky factor of K + lambda I, with kernel, lambda and x as in
 * mercer_solve, and stores it for many y. The factor takes at most 8n² bytes, and 8n² more
 * if x is K. The device stays open until the factor is freed. */
int mercer_factor(mercer_handle device, const char *kernel, double lambda, const mercer_matrix *x,
                  mercer_watch *watch, mercer_handle *factor);

/* Solves (K + lambda I) a = y with a factor in O(n²) operations for each column. K is
 * evaluated again to compute the residual, unless residual is NULL. */
int mercer_factor_solve(mercer_handle factor, const mercer_matrix *y, double *a, size_t size,
                        double *residual, mercer_watch *watch);

/* Change a factor. mercer_factor_append adds a sample in O(nd + n²) operations: values are
 * the d features of its point or, if x was K, the n + 1 elements of its row of K, with the
 * diagonal element last. If the matrix would not be positive definite, the call fails and
 * the factor is unchanged. mercer_factor_remove removes sample i, counted from 0, in O(n²)
 * operations; the indices of later samples decrease by one. */
int mercer_factor_append(mercer_handle factor, const double *values, size_t size);
int mercer_factor_remove(mercer_handle factor, int64_t i);

#ifdef __cplusplus
}
#endif
#endif
