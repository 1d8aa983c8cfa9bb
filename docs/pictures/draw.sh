#!/bin/bash
# Draws the pictures of docs/learners.md into this folder: make pictures.
set -euo pipefail
cd "$(dirname "$0")"
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
mercer() { "$MERCER" "$@" --quiet >/dev/null; }
data=../../testdata

printf 'x1,x2,class\n0,0,no\n0,1,yes\n1,0,yes\n1,1,no\n' > "$work/xor.csv"
mercer plot boundary --learner svc --kernel 'polynomial(degree=2,c=1)' --C 1000 --target class --out xor.svg "$work/xor.csv"
mercer fit --learner rvm --no-standardize --kernel 'gaussian(sigma=1.5)' --target y --model "$work/rvm.st" sinc.csv
mercer fit --learner svr --no-standardize --kernel 'gaussian(sigma=1.5)' --target y --model "$work/svr.st" sinc.csv
mercer plot curve --model "$work/rvm.st" --model "$work/svr.st" --out curve.svg sinc.csv
mercer plot path --learner lasso --target target --out path.svg $data/diabetes.csv
mercer plot validation --learner kernel-ridge --no-standardize --kernel 'gaussian(sigma=1.5)' --lambda {} --values 0.0001,0.001,0.01,0.1,1,10,100 --bootstrap 50 --target y --out bias-variance.svg sinc.csv
mercer plot validation --learner rvm --no-standardize --kernel 'gaussian(sigma={})' --values 0.3,0.5,0.8,1.2,1.8,2.7,4,6 --target y --out evidence.svg sinc.csv
mercer plot epochs --learner perceptron --epochs 60 --target target --out epochs.svg $data/breast_cancer.csv
mercer plot epochs --learner logistic --solver gradient-descent --target target --out loss.svg $data/breast_cancer.csv
mercer plot curve --target y --kernel 'polynomial(degree={},c=1)' --lambda 1e-7 --no-intercept --values 1,10 --textbook --out degree.svg poly.csv
mercer plot ball --target y --out ball.svg ball.csv
printf 'x1,x2,y\n0,0,-1\n0,1,-1\n1,0,-1\n1,1,1\n' > "$work/and.csv"
mercer plot boundary --learner perceptron --textbook --target y --out and.svg "$work/and.csv"
mercer plot boundary --learner perceptron --textbook --bias {} --values -8,-4,-2,2 --target class --out planes.svg planes.csv
mercer plot boundary --learner svc --kernel 'linear()' --C 1e6 --textbook --target class --out margin.svg planes.csv
mercer fit --learner logistic --target target --model "$work/logistic.st" $data/breast_cancer.csv
mercer plot calibration --model "$work/logistic.st" --out calibration.svg $data/breast_cancer.csv
mercer plot learning --learner svc --target target --out learning.svg $data/breast_cancer.csv
