"""Writes predictions.json: what scikit-learn predicts for the texts of docs/pictures/messages.csv
and newmessages.csv from tf-idf features, by kernel ridge regression and by a support vector machine.

    python3 cmd/mercer/testdata/tfidf/predictions.py
"""

import csv
import json
import pathlib

from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.kernel_ridge import KernelRidge
from sklearn.svm import SVC

here = pathlib.Path(__file__).parent
tables = here.parents[3] / "docs" / "pictures"


def column(table, name):
    with open(tables / table, newline="", encoding="utf-8") as f:
        return [row[name] for row in csv.DictReader(f)]


texts, new = column("messages.csv", "message"), column("newmessages.csv", "message")
hours, topics = [float(v) for v in column("messages.csv", "hours")], column("messages.csv", "topic")
cases = []
for flags, settings in [
    (["--tfidf", "word"], {}),
    (["--tfidf", "word", "--ngrams", "1,2", "--min-df", "2", "--sublinear"], {"ngram_range": (1, 2), "min_df": 2, "sublinear_tf": True}),
    (["--tfidf", "char", "--ngrams", "3"], {"analyzer": "char", "ngram_range": (3, 3)}),
    (["--tfidf", "char_wb", "--ngrams", "2,4", "--min-df", "0.05"], {"analyzer": "char_wb", "ngram_range": (2, 4), "min_df": 0.05}),
]:
    vectorizer = TfidfVectorizer(**settings)
    x = vectorizer.fit_transform(texts)
    z = vectorizer.transform(new)
    ridge = KernelRidge(alpha=0.5, kernel="linear").fit(x, hours)
    machine = SVC(C=10, kernel="linear", tol=1e-8).fit(x, topics)
    cases.append({
        "flags": flags, "features": x.shape[1],
        "hours": ridge.predict(x).tolist() + ridge.predict(z).tolist(),
        "topics": machine.predict(x).tolist() + machine.predict(z).tolist(),
    })
(here / "predictions.json").write_text(json.dumps(cases, indent=1) + "\n")
