# Times fits of a Gaussian process of two features by Mercer's solvers and by bam of mgcv.
#
#     Rscript bench/spatial_mgcv.R MERCER FOLDER [ROWS...]
#
# MERCER is the command, FOLDER has california_housing.csv and skin_segmentation.csv.gz, and ROWS are numbers of made rows; by default 20000 and
# 100000. The data sets are
#
# made        points spread over the unit square, y = sin(10x)cos(8z) + 0.3·noise, matern32(sigma=0.3)
# california  longitude and latitude of california_housing.csv, y = log(target), matern32(sigma=1)
# skin        the three colors of skin_segmentation.csv.gz, standardized, y = ±1, gaussian(sigma=1)
#
# For all, a tenth of the rows, drawn at random, are held out. Mercer solves with all rows, λ is the variance of the
# noise, 0.09, and the relative residual is at most 1e-6. bam fits s(x, z, bs = "gp", m = c(3, sigma/√3)), the same
# Matérn kernel, or m = c(2, sigma√2, 2), the same Gaussian kernel, with 500 basis functions, and chooses λ itself. The program prints the time of each fit without reading
# the file, and the root of the mean squared error of the held-out rows. Mercer's time is that of its report. It fits by
# the solvers that it chooses, modes, and cg unless there are more than 50,000 rows.

suppressMessages(library(mgcv))
arguments <- commandArgs(trailingOnly = TRUE)
mercer <- arguments[1]
folder <- arguments[2]
rows <- if (length(arguments) > 2) as.integer(arguments[-(1:2)]) else c(20000, 100000)
scratch <- tempfile()
dir.create(scratch)
path <- function(name) file.path(scratch, name)

number <- function(report, name) as.numeric(sub(paste0('.*"', name, '": *([-0-9.e+]+).*'), "\\1", report))

fit <- function(solver, kernel) {
  options <- c("fit", "--learner", "kernel-ridge", "--solver", solver, "--kernel", shQuote(kernel), "--lambda", "0.09", "--tol", "1e-6",
    "--no-standardize", "--target", "y", "--model", path("model"), "--json", "--quiet", path("train.csv"))
  report <- suppressWarnings(system2(mercer, options, stdout = TRUE))
  if (!is.null(attr(report, "status"))) return(NULL)
  report <- paste(report, collapse = " ")
  system2(mercer, c("predict", "--model", path("model"), "--out", path("predicted.csv"), "--quiet", path("test.csv")))
  list(solver = sub('^.*?"solver": *"([^"]*)".*', "\\1", report, perl = TRUE), seconds = number(report, "total") - number(report, "read"), residual = number(report, "residual"),
    predicted = utils::tail(as.matrix(read.csv(path("predicted.csv"))), c(NA, 1)))
}

compare <- function(name, data, sigma, kernel = sprintf("matern32(sigma=%g)", sigma), m = c(3, sigma / sqrt(3))) {
  test <- sample(nrow(data), nrow(data) %/% 10)
  write.csv(data[-test, ], path("train.csv"), row.names = FALSE)
  write.csv(data[test, ], path("test.csv"), row.names = FALSE)
  error <- function(predicted) sqrt(mean((predicted - data$y[test])^2))
  n <- nrow(data) - length(test)
  for (solver in c("auto", "modes", if (n <= 50000) "cg")) {
    f <- fit(solver, kernel)
    if (is.null(f)) {
      cat(sprintf("%s, %d rows: mercer --solver %s does not reach the residual\n", name, n, solver))
      next
    }
    cat(sprintf("%s, %d rows: mercer --solver %s (%s): %.3g s, residual %.2g, error %.5f\n", name, n, solver, f$solver, f$seconds, f$residual, error(f$predicted)))
  }
  smooth <- as.formula(sprintf("y ~ s(%s, bs = 'gp', m = m, k = 500)", paste(setdiff(names(data), "y"), collapse = ", ")))
  seconds <- system.time(model <- bam(smooth, data = data[-test, ], discrete = TRUE, nthreads = 2))[["elapsed"]]
  cat(sprintf("%s, %d rows: mgcv %s, bam with 500 functions: %.3g s, error %.5f\n", name, n, packageVersion("mgcv"), seconds, error(predict(model, data[test, ]))))
}

set.seed(7)
for (n in rows) {
  data <- data.frame(x = runif(n), z = runif(n))
  data$y <- sin(10 * data$x) * cos(8 * data$z) + 0.3 * rnorm(n)
  compare("made", data, 0.3)
}
houses <- read.csv(file.path(folder, "california_housing.csv"))
compare("california", data.frame(x = houses[[1]], z = houses[[2]], y = log(houses$target)), 1)
pixels <- read.csv(gzfile(file.path(folder, "skin_segmentation.csv.gz")))
compare("skin", data.frame(scale(pixels[1:3]), y = ifelse(pixels$target == "skin", 1, -1)), 1, "gaussian(sigma=1)", c(2, sqrt(2), 2))
