# Times fits of a Gaussian process of two features by Mercer's solvers and by bam of mgcv.
#
#     Rscript bench/spatial_mgcv.R MERCER FOLDER [DATA...]
#
# MERCER is the command, FOLDER has california_housing.csv, skin_segmentation.csv.gz and nycflights13.csv.gz, and DATA are
# numbers of made rows and names of data sets; by default 20000 100000 california skin flights. The data sets are
#
# made        points spread over the unit square, y = sin(10x)cos(8z) + 0.3·noise, matern32(sigma=0.3)
# california  longitude and latitude of california_housing.csv, y = log(target), matern32(sigma=1)
# skin        the three colors of skin_segmentation.csv.gz, standardized, y = ±1, gaussian(sigma=1)
# flights     day of the year, minute of departure and distance of nycflights13.csv.gz, and the delay, all standardized,
#             gaussian(sigma=0.25)
#
# For all, a tenth of the rows, drawn at random, are held out. Mercer solves with all rows, λ is about the variance of the
# noise, 1 for flights and 0.09 otherwise, and the relative residual is at most 1e-6. bam fits s(x, z, bs = "gp", m = c(3, sigma/√3)), the same
# Matérn kernel, or m = c(2, sigma√2, 2), the same Gaussian kernel, with 500 basis functions, and chooses λ itself. The program prints the time of each fit without reading
# the file, and the root of the mean squared error of the held-out rows. Mercer's time is that of its report. It fits by
# the solvers that it chooses, modes, and cg unless there are more than 100,000 rows.

suppressMessages(library(mgcv))
arguments <- commandArgs(trailingOnly = TRUE)
mercer <- arguments[1]
folder <- arguments[2]
sets <- if (length(arguments) > 2) arguments[-(1:2)] else c(20000, 100000, "california", "skin", "flights")
scratch <- tempfile()
dir.create(scratch)
path <- function(name) file.path(scratch, name)

number <- function(report, name) as.numeric(sub(paste0('.*"', name, '": *([-0-9.e+]+).*'), "\\1", report))

fit <- function(solver, kernel, lambda) {
  options <- c("fit", "--learner", "kernel-ridge", "--solver", solver, "--kernel", shQuote(kernel), "--lambda", lambda, "--tol", "1e-6",
    "--no-standardize", "--target", "y", "--model", path("model"), "--json", "--quiet", path("train.csv"))
  report <- suppressWarnings(system2(mercer, options, stdout = TRUE))
  if (!is.null(attr(report, "status"))) return(NULL)
  report <- paste(report, collapse = " ")
  system2(mercer, c("predict", "--model", path("model"), "--out", path("predicted.csv"), "--quiet", path("test.csv")))
  list(solver = sub('^.*?"solver": *"([^"]*)".*', "\\1", report, perl = TRUE), seconds = number(report, "total") - number(report, "read"), residual = number(report, "residual"),
    predicted = utils::tail(as.matrix(read.csv(path("predicted.csv"))), c(NA, 1)))
}

compare <- function(name, data, sigma, kernel = sprintf("matern32(sigma=%g)", sigma), m = c(3, sigma / sqrt(3)), lambda = 0.09) {
  test <- sample(nrow(data), nrow(data) %/% 10)
  write.csv(data[-test, ], path("train.csv"), row.names = FALSE)
  write.csv(data[test, ], path("test.csv"), row.names = FALSE)
  error <- function(predicted) sqrt(mean((predicted - data$y[test])^2))
  n <- nrow(data) - length(test)
  chosen <- ""
  for (solver in c("auto", "modes", if (n <= 1e5) "cg")) {
    if (solver == chosen) next
    f <- fit(solver, kernel, lambda)
    if (is.null(f)) {
      cat(sprintf("%s, %d rows: mercer --solver %s does not reach the residual\n", name, n, solver))
      next
    }
    chosen <- f$solver
    cat(sprintf("%s, %d rows: mercer --solver %s (%s): %.3g s, residual %.2g, error %.5f\n", name, n, solver, f$solver, f$seconds, f$residual, error(f$predicted)))
  }
  smooth <- as.formula(sprintf("y ~ s(%s, bs = 'gp', m = m, k = 500)", paste(setdiff(names(data), "y"), collapse = ", ")))
  seconds <- system.time(model <- bam(smooth, data = data[-test, ], discrete = TRUE, nthreads = 2))[["elapsed"]]
  cat(sprintf("%s, %d rows: mgcv %s, bam with 500 functions: %.3g s, error %.5f\n", name, n, packageVersion("mgcv"), seconds, error(predict(model, data[test, ]))))
}

set.seed(7)
for (set in sets) {
  if (set == "california") {
    houses <- read.csv(file.path(folder, "california_housing.csv"))
    compare(set, data.frame(x = houses[[1]], z = houses[[2]], y = log(houses$target)), 1)
  } else if (set == "skin") {
    pixels <- read.csv(gzfile(file.path(folder, "skin_segmentation.csv.gz")))
    compare(set, data.frame(scale(pixels[1:3]), y = ifelse(pixels$target == "skin", 1, -1)), 1, "gaussian(sigma=1)", c(2, sqrt(2), 2))
  } else if (set == "flights") {
    flights <- read.csv(gzfile(file.path(folder, "nycflights13.csv.gz")))
    columns <- with(flights, data.frame(day = 31 * (month - 1) + day, minute = dep_minute, distance = distance, y = target))
    compare(set, data.frame(scale(columns)), 0.25, "gaussian(sigma=0.25)", c(2, sqrt(2) / 4, 2), "1")
  } else {
    n <- as.integer(set)
    data <- data.frame(x = runif(n), z = runif(n))
    data$y <- sin(10 * data$x) * cos(8 * data$z) + 0.3 * rnorm(n)
    compare("made", data, 0.3)
  }
}
