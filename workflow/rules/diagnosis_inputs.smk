"""Which estimates and click logs the reports on propensities take."""


def measured_index():
    """(policy, setting, track, round, seed, method, estimator) of the propensities of the study.

    Each estimate once. The oracle has no error, and a naive reader the same on every log.
    """
    index = []
    for policy in STUDY["policies"]:
        for setting in STUDY["settings"]:
            seen = set()
            for method, last in final_rounds(setting):
                estimator = config["methods"][method].get("estimator")
                kind = config["estimators"][estimator]["kind"] if estimator else None
                track = track_of(method, last)
                key = estimator if kind == "naive" else (track, estimator)
                if (
                    kind in (None, "oracle")
                    or method in controls(setting)
                    or key in seen
                ):
                    continue
                seen.add(key)
                index += [
                    (policy, setting, track, last, seed, method, estimator)
                    for seed in SEEDS
                ]
    return index


def logs_index():
    """(policy, setting, track, round, seed) of the logs that the study's methods learn from."""
    return [
        (policy, setting, track, last, seed)
        for policy in STUDY["policies"]
        for setting in STUDY["settings"]
        for track, last in dict.fromkeys(
            (track_of(method, last), last) for method, last in final_rounds(setting)
        )
        for seed in SEEDS
    ]


def measured_files(wildcards, ending):
    return [
        at(
            f"{THETA}.{ending}",
            wildcards,
            policy=policy,
            setting=setting,
            track=track,
            round=last,
            seed=seed,
            estimator=estimator,
        )
        for policy, setting, track, last, seed, _, estimator in measured_index()
    ]


def files_of_rounds(wildcards, index, files):
    """The files of all logging rounds of each entry of an index, in its order."""
    return [
        at(
            f"{ROUND}/{file}",
            wildcards,
            policy=policy,
            setting=setting,
            seed=seed,
            track=track if track in study.LOGS else track_of(track, round_),
            round=round_,
        )
        for policy, setting, track, last, seed, *_ in index
        for round_ in rounds_used(setting, last)
        for file in files
    ]


def rounds_of(index):
    """How many logging rounds each entry of an index has."""
    return [len(rounds_used(setting, last)) for _, setting, _, last, *_ in index]


# A study of targets alone has no propensities; the report on its logs is always there.
MEASURED = ["propensity_error"] if measured_index() else []


def ledger_rows(setting):
    """(method, naive, oracle, grades) of the methods whose gap is split up, with the ends of it.

    These weight clicks by inverse propensities and are refitted; the ends have the same ranker.
    Only position-based clicks have an expectation that theta and gamma tell.
    """
    entry = config["settings"][setting]
    if "click_log" in entry or entry["click_model"]["kind"] != "pbm":
        return []
    ends, rows = {}, []
    for method in study.study_methods(config, setting):
        about = config["methods"][method]
        kind = config["estimators"].get(about.get("estimator"), {}).get("kind")
        joint = config["rankers"][about["ranker"]]["objective"] == "joint"
        if about.get("target") == "grades":
            ends.setdefault((about["ranker"], "grades"), method)
        if kind in (None, *study.WITHOUT_THETA) or joint or about["weights"] != "ipw":
            continue
        if about["log"] == "initial":
            ends.setdefault((about["ranker"], kind), method)
        if about["log"] != "replica":
            rows.append((method, about["ranker"]))
    return [
        (method, *(ends[ranker, end] for end in ("naive", "oracle", "grades")))
        for method, ranker in rows
        if all((ranker, end) in ends for end in ("naive", "oracle", "grades"))
    ]


LEDGER_SETTINGS = [setting for setting in STUDY["settings"] if ledger_rows(setting)]


def ledger_rankers(setting):
    """(method, round, seed) of the rankers that learn from expected clicks."""
    methods = dict.fromkeys(
        method for row in ledger_rows(setting) for method in row[:3]
    )
    return [
        (method, study.final_round(config, setting, method), seed)
        for method in methods
        for seed in SEEDS
    ]
