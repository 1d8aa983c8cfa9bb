"""Scikit-learn behind FastAPI and uvicorn, to compare with mercer serve.

bench/serve_wrk.py starts it with a port. For a benchmark of Go it listens at port 8090:

    /usr/bin/python3 bench/serve_fastapi.py &
    MERCER_SERVE_URL=http://127.0.0.1:8090/predict go test ./internal/serve -run none -bench OneRow -benchtime 5000x

The model is kernel ridge regression on testdata/diabetes.csv with a Gaussian kernel, sigma = 5 and
lambda = 1, on standardized columns. One process answers, as mercer serve is one process. The packages
are Debian's python3-sklearn, python3-fastapi and python3-uvicorn.
"""
import csv
import sys

import numpy as np
import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel
from sklearn.kernel_ridge import KernelRidge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

NAMES = ["age", "sex", "bmi", "bp", "s1", "s2", "s3", "s4", "s5", "s6"]

with open("testdata/diabetes.csv", newline="") as f:
    rows = list(csv.DictReader(f))
x = np.array([[float(r[n]) for n in NAMES] for r in rows])
y = np.array([float(r["target"]) for r in rows])
model = make_pipeline(StandardScaler(), KernelRidge(alpha=1, kernel="rbf", gamma=1 / (2 * 5**2))).fit(x, y)


class Row(BaseModel):
    age: float
    sex: float
    bmi: float
    bp: float
    s1: float
    s2: float
    s3: float
    s4: float
    s5: float
    s6: float


app = FastAPI()


@app.post("/predict")
async def predict(row: Row):
    f = model.predict(np.array([[getattr(row, n) for n in NAMES]]))
    return {"values": {"target": float(f[0])}}


if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]) if len(sys.argv) > 1 else 8090, log_level="warning", access_log=False)
