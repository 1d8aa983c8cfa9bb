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
 * Every function that returns int returns MERCER_OK or the kind of an error,
 * whose text mercer_last_error returns; results are written only on MERCER_OK.
 * A defect in the library is MERCER_PANIC, also one in a worker of the processor's
 * backend; only a fatal error of Go's runtime ends the process.
 *
 * All functions may be called by several threads at once, with the same handles
 * too. A handle may be freed while other threads use it: its memory is freed when
 * they have ended, and later calls with it fail. The memory of arguments is read
 * during the call only, never written, and not copied where its elements are
 * doubles; the memory of results is the caller's unless a function says otherwise.
 * Sizes that reach beyond what is mapped into the process are MERCER_INVALID before
 * anything is read.
 *
 * Texts are UTF-8 and end with a zero byte. Matrices are row-major. n, d and t are
 * the numbers of samples, features and targets, K the number of classes; samples
 * count from 0 in arguments and from 1 in the texts of errors. Numbers have the units
 * of the caller's data: lambda that of k(x, z), deviations and intervals that of y.
 *
 * A program that installs a signal handler while the library is loaded must give
 * sigaction SA_ONSTACK, as any program with Go in it: the threads of the library
 * have small stacks, which the handler would run on. (The library adds it to
 * handlers that were there before; Python does from 3.10 on.)
 *
 * Linux. A process that has called the library must not fork and use it in the
 * child: the threads of the library are not there. fork and exec is fine.
 */
#ifndef MERCER_H
#define MERCER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The number of this interface: it changes when a program that was compiled
 * with an older header would no longer work. mercer_abi returns the library's, which
 * must be equal to MERCER_ABI of the header. */
#define MERCER_ABI 3
int mercer_abi(void);

enum mercer_status {
	MERCER_OK = 0,
	MERCER_INVALID = 1,               /* an argument or the data: the text names row and column */
	MERCER_CANCELED = 2,             /* the caller set mercer_watch.cancel */
	MERCER_MEMORY = 3,                /* does not fit; refused before work starts; the text says what is needed and there */
	MERCER_NOT_POSITIVE_DEFINITE = 4, /* K + lambda I; the text says how large lambda must be, or to take another kernel */
	MERCER_NOT_CONVERGED = 5,         /* the residual that was asked for is not reached; the text says what to change */
	MERCER_UNAVAILABLE = 6,           /* this machine lacks the device; the text says what it probed */
	MERCER_PANIC = 7                  /* a defect in the library */
};

/* The text of the last call of this thread that failed, one line of UTF-8; ""
 * when none has. It is valid until the next call of this thread fails. */
const char *mercer_last_error(void);

/* Gives the library's parameters the names of the caller in the texts of errors and of
 * mercer_describe and mercer_path, for this thread from now on: "parameter=name" each, such
 * as "iterations=max_iter", up to NULL, of which the library keeps a copy. Advice to change
 * a parameter that is not in the list is left out of these texts. Where names is NULL the
 * names are the library's own again, and nothing is left out. */
int mercer_set_names(const char *const *names);

/* A device, a model or a factor in the library's memory. 0 is none. */
typedef uintptr_t mercer_handle;

/* Frees what a handle stands for. 0 is no error; a handle that was freed before is
 * MERCER_INVALID. */
int mercer_free(mercer_handle handle);

/* Describes what a handle stands for, as a JSON object: of a model its learner, shapes,
 * parameters, classes, solver, residual and seconds; of 0 the library: version,
 * memory_bytes that the process may still take, devices, all learners with their
 * parameters, all kernels. *json is the caller's, who frees it by mercer_release. */
int mercer_describe(mercer_handle handle, char **json);

/* Frees what mercer_describe, mercer_path and mercer_dump returned. NULL is no error. */
void mercer_release(void *given);

/* Opens a device: "" is the best there is, "cpu/avx2" that one and no other. threads
 * ≥ 0 and memory ≥ 0 (bytes for matrices) are 0 for all threads and 80 % of what the
 * process may use. Where a function takes a device, 0 stands for "". A device that
 * the machine lacks, or an unknown name, is MERCER_UNAVAILABLE. */
int mercer_open(const char *name, int threads, int64_t memory, mercer_handle *device);

enum mercer_type { MERCER_FLOAT64 = 0, MERCER_FLOAT32 = 1, MERCER_CSR = 2 };

/* A row-major matrix: element (i, j) is data[i*stride + j]. Work is in double;
 * elements of type float are widened, which takes a copy. For the type MERCER_CSR the matrix
 * is sparse: data points to a mercer_csr, and stride is not read. */
typedef struct mercer_matrix {
	const void *data;
	int64_t rows, cols, stride;
	int32_t type; /* enum mercer_type */
} mercer_matrix;

/* The elements of a sparse matrix in compressed sparse rows, as csr_matrix of SciPy has them: row
 * i has the elements data[p] in the columns indices[p], from 0, for indptr[i] ≤ p < indptr[i+1],
 * and zeros elsewhere. indptr has rows + 1 numbers, the first of which is 0. In every row the
 * columns increase; others are MERCER_INVALID, and the text names row and column.
 *
 * Every function takes sparse samples x. Learners whose description has "sparse", and their
 * models, work on them without a dense copy, and so do mercer_path, mercer_solve and mercer_factor
 * with a kernel; elsewhere a dense copy is made where it fits into the memory. */
typedef struct mercer_csr {
	const int64_t *indptr;
	const int32_t *indices;
	const double *data;
} mercer_csr;

/* Cancels a call that takes long and receives its progress. Zero it before the call,
 * which reads cancel every 10 ms and writes the rest, so that another thread can
 * show it. It must stay until the call has returned. */
typedef struct mercer_watch {
	volatile int32_t cancel;     /* set to 1, also in a signal handler: the call soon returns MERCER_CANCELED */
	volatile int32_t permille;   /* thousandths of the work that are done */
	const char *volatile stage;  /* "gram", "factor", "solve", …; NULL at first; never freed */
} mercer_watch;

/* What to fit. Fields that are 0 stand for their defaults; lists end with NULL. */
typedef struct mercer_learner {
	const char *name;              /* "kernel-ridge"; `mercer learners` lists them with their parameters */
	const char *task;              /* "regression", "classification" or "novelty"; default: the learner's first */
	const char *const *parameters; /* "name=value" each */
	const double *weights;         /* of the n rows, ≥ 0; a row of weight 0 is left out; default: all 1 */
	const char *const *classes;    /* names: y holds places 0, 1, … in this list; default: y's values */
	const char *const *features;   /* names of x's columns in a saved model; default: x1, x2, … */
	const char *const *targets;    /* names of y's columns; default: y, or y1, y2, … */
	int64_t memory;                /* bytes that the fit may take; default: what is free */
} mercer_learner;

/* Fits a learner to the n×d matrix x and the n×t matrix y, and stores the handle of
 * the model. y is NULL for novelty. With the kernel "precomputed()" x is the n×n matrix
 * of kernel values. watch may be NULL. */
int mercer_fit(mercer_handle device, const mercer_learner *learner, const mercer_matrix *x,
               const mercer_matrix *y, mercer_watch *watch, mercer_handle *model);

enum mercer_wanted {
	MERCER_VALUES = 0,        /* targets, or the number of the class: n×t; of svc with the
	                           * parameter probability=true that of the largest probability */
	MERCER_DECISION = 1,      /* decision values: n×1 for two classes, > 0 is the second; n×K for more */
	MERCER_PROBABILITIES = 2, /* of the classes: n×K */
	MERCER_DEVIATIONS = 3     /* standard deviations of new targets, noise included: n×t */
};

/* Writes predictions for the n rows of x to out, row after row. size is the
 * number of doubles there, exactly that of the result. x has the columns of the
 * fit; of a model that `mercer fit` made, the table's columns of numbers. The
 * first call for at most 16 rows makes the model ready on the device, with a copy
 * of it there until the model is freed: later ones take a fifth of the time. */
int mercer_predict(mercer_handle device, mercer_handle model, int wanted, const mercer_matrix *x,
                   double *out, size_t size, mercer_watch *watch);

/* Writes the bounds of prediction intervals at the n rows of x to lower and upper,
 * n×t each, of size numbers: jackknife+ intervals of a regression by kernel-ridge, or
 * by ridge with the parameter intervals=true, for 0.5 ≤ level < 1; split-conformal
 * ones of a model that mercer_calibrate or `mercer fit --calibrate` made, for 0 < level < 1. A new
 * target is between them with a probability of about level, and of 2 level − 1
 * (split-conformal: level) at least, whatever the noise, if it and the samples are
 * drawn alike. Other models with MERCER_DEVIATIONS have the intervals of a normal
 * distribution with these deviations, for 0 < level < 1. The first call for a model of
 * kernel-ridge or gaussian-process factors K + lambda I. */
int mercer_intervals(mercer_handle device, mercer_handle model, double level, const mercer_matrix *x,
                     double *lower, double *upper, size_t size, mercer_watch *watch);

/* Writes predictions for the n rows of x to values, and to bounds how far each may be from
 * the prediction of the exact solution of the model's equations, n×t each, of size
 * numbers. It is proven, and says nothing about noise. Models of kernel-ridge and
 * gaussian-process have bounds if the kernel is positive semidefinite and lambda > 0;
 * the parameter bound=true of the fit makes them sharp, and this function slow. Models
 * of ridge, nystrom-ridge and fourier-ridge have bounds if that parameter was given. */
int mercer_bounds(mercer_handle device, mercer_handle model, const mercer_matrix *x,
                  double *values, double *bounds, size_t size, mercer_watch *watch);

/* Makes split-conformal intervals for a model of any learner of regression, or sets of
 * classes, by samples x, m×d, and y, m×t, that it was not fitted to, and stores the handle
 * of a model with them; the one given stays as it is. y is as in mercer_fit; of classes a
 * value that the model does not know counts as one that no set contains. */
int mercer_calibrate(mercer_handle device, mercer_handle model, const mercer_matrix *x, const mercer_matrix *y,
                     mercer_watch *watch, mercer_handle *calibrated);

/* Writes to out, n×K, 1 for each class that is in the set of a row of x, otherwise 0, of
 * a model that mercer_calibrate made. The class of a new sample is in its set with
 * probability level at least, 0 < level < 1, if it and the samples of the calibration are
 * drawn alike. */
int mercer_sets(mercer_handle device, mercer_handle model, double level, const mercer_matrix *x,
                double *out, size_t size, mercer_watch *watch);

/* Copies an array of the model, such as "coef" or "alpha", to out, row after row;
 * size is the number of its elements. mercer_describe lists them with their shapes. */
int mercer_array(mercer_handle model, const char *name, double *out, size_t size);

/* Writes a model to a file and reads one, in the safetensors format that the command
 * reads and writes too. A file appears as a whole or not at all; one that is damaged,
 * or no model, is MERCER_INVALID. */
int mercer_save(mercer_handle model, const char *path);
int mercer_load(const char *path, mercer_handle *model);

/* The same with bytes in memory. *bytes is the caller's, who frees it by
 * mercer_release. */
int mercer_dump(mercer_handle model, void **bytes, size_t *size);
int mercer_parse(const void *bytes, size_t size, mercer_handle *model);

/* Where mercer_path stores its results, row-major; the caller's memory. A field
 * that is NULL is not computed. n and t are the rows and columns of y. */
typedef struct mercer_scores {
	double *gcv;     /* count×t: generalized cross-validation, n ‖W^½(I − H)y‖² / tr(I − H)² */
	double *loo;     /* count×t: Σ w_i e_i² / Σ w_i */
	double *errors;  /* count×n×t: e_i = y_i − f(x_i), f being fitted to the other samples; 0 where w_i = 0 */
	double *freedom; /* count: tr H, the effective degrees of freedom, H being the matrix from y to the fit */
} mercer_scores;

/* Scores kernel ridge regression, (K + lambda W⁻¹) a + b = y, for count lambda ≥ 0
 * from one decomposition of K: O(n³) once and O(n²) for each lambda. The kernel is
 * the text of one; of "precomputed()" x is the n×n matrix of its values; NULL is the
 * Gaussian of half the median distance of the rows of x. weights are those of the n rows,
 * ≥ 0, NULL for all 1; intercept is 1 for an unpenalized b, 0 for none; memory is
 * as in mercer_learner.
 *
 * A lambda for which K + lambda W⁻¹ is singular to working precision, or whose fit
 * leaves no degree of freedom, has NaN; where none has a score the call fails.
 * *json, unless json is NULL, becomes a JSON object that the caller frees by
 * mercer_release: kernel, method, memory_bytes, device, and failed, a list of
 * {lambda, reason}. watch may be NULL. */
int mercer_path(mercer_handle device, const char *kernel, const double *lambdas, size_t count, const mercer_matrix *x,
                const mercer_matrix *y, const double *weights, int intercept, int64_t memory, const mercer_scores *scores,
                char **json, mercer_watch *watch);

/* Solves (K + lambda I) a = y for lambda ≥ 0, a and y n×t, size = n·t. K = k(x, x)
 * for a kernel such as "gaussian(sigma=2)"; where kernel is NULL or "", x is K,
 * symmetric. *residual, unless NULL, becomes ‖(K + lambda I) a − y‖ / ‖y‖, the largest
 * of the columns; one above 1e-8 is MERCER_NOT_CONVERGED. watch may be NULL. */
int mercer_solve(mercer_handle device, const char *kernel, double lambda, const mercer_matrix *x,
                 const mercer_matrix *y, double *a, size_t size, double *residual, mercer_watch *watch);

/* Makes the Cholesky factor of K + lambda I, kernel, lambda and x being those of
 * mercer_solve, and keeps it for many y: at most 8n² bytes, and as many for K where
 * x is K. Its device stays open until it is freed. */
int mercer_factor(mercer_handle device, const char *kernel, double lambda, const mercer_matrix *x,
                  mercer_watch *watch, mercer_handle *factor);

/* Solves with a factor as mercer_solve does, in O(n²) operations for each column. For
 * the residual K is evaluated again; NULL saves that. */
int mercer_factor_solve(mercer_handle factor, const mercer_matrix *y, double *a, size_t size,
                        double *residual, mercer_watch *watch);

/* Changes a factor in O(n²) operations: mercer_factor_append adds a sample, of which
 * values are the d numbers of its point or, where x was K, the n + 1 of its row of K,
 * the last with itself; one that would make it not positive definite leaves it what it
 * was. mercer_factor_remove takes sample i out, from 0; those behind it move up. */
int mercer_factor_append(mercer_handle factor, const double *values, size_t size);
int mercer_factor_remove(mercer_handle factor, int64_t i);

#ifdef __cplusplus
}
#endif
#endif
