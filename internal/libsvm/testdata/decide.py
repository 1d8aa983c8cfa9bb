"""Prints the decision values and the predictions of LIBSVM's library for rows of a LIBSVM file.

python3 decide.py ROWS MODEL...

For each model it prints a JSON object: labels, predicted, values and probabilities (a list for each
row, which is empty without probabilities)."""

import ctypes
import json
import sys


class Node(ctypes.Structure):
    _fields_ = [("index", ctypes.c_int), ("value", ctypes.c_double)]


lib = ctypes.CDLL("libsvm.so.3")
lib.svm_load_model.restype = ctypes.c_void_p
lib.svm_predict_values.restype = ctypes.c_double
lib.svm_predict_values.argtypes = [ctypes.c_void_p, ctypes.POINTER(Node), ctypes.POINTER(ctypes.c_double)]
lib.svm_predict_probability.restype = ctypes.c_double
lib.svm_predict_probability.argtypes = lib.svm_predict_values.argtypes
lib.svm_check_probability_model.argtypes = [ctypes.c_void_p]
lib.svm_get_nr_class.argtypes = [ctypes.c_void_p]
lib.svm_get_svm_type.argtypes = [ctypes.c_void_p]
lib.svm_get_labels.argtypes = [ctypes.c_void_p, ctypes.POINTER(ctypes.c_int)]

rows = []
for line in open(sys.argv[1]):
    nodes = [w.split(":") for w in line.split()[1:]]
    rows.append((Node * (len(nodes) + 1))(*[Node(int(i), float(v)) for i, v in nodes], Node(-1, 0)))
for path in sys.argv[2:]:
    model = lib.svm_load_model(path.encode())
    k = lib.svm_get_nr_class(model)
    labels, pairs = [], 1
    if lib.svm_get_svm_type(model) < 2:  # classes
        found, pairs = (ctypes.c_int * k)(), k * (k - 1) // 2
        lib.svm_get_labels(model, found)
        labels = list(found)
    values, predicted, probabilities = [], [], []
    for row in rows:
        out = (ctypes.c_double * pairs)()
        predicted.append(lib.svm_predict_values(model, row, out))
        values.append(list(out))
        p = (ctypes.c_double * (k if labels and lib.svm_check_probability_model(model) else 0))()
        if p:
            predicted[-1] = lib.svm_predict_probability(model, row, p)
        probabilities.append(list(p))
    print(json.dumps({"labels": labels, "values": values, "predicted": predicted, "probabilities": probabilities}))
