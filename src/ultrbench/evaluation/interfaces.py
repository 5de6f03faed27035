"""Which metric is the headline of which interface; apart, so that the configuration can read it."""

INTERFACES = {
    "result_page": "nDCG@10",
    "feed": "RBP(p=.8)@10",
    "navigation": "ERR@10",
    "single_answer": "RR@10",
    "carousel": "Hit@5",
    "exhaustive": "AP",
}
