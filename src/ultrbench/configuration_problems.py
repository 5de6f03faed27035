"""What is wrong with a configuration, in sentences: which key, what was given, what is allowed."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ultrbench.own_code import own_file, own_problem
from ultrbench.reporting.names import display_name
from ultrbench.study import BASELINES, JOINT, LOGS, WITHOUT_THETA

NAME_RULE = (
    "a name becomes a folder and takes up to 64 lower-case letters, digits, - and _, a letter or "
    "digit first"
)
# Snakemake takes such an end for a rule that feeds itself, and stops in its middle.
ENDLESS_NAME = re.compile(r"(?!.{65}).*?(.{1,3})\1{19}")
RESERVED_METHODS = frozenset(LOGS + BASELINES)
NAMED = ("policies", "settings", "methods", "estimators", "rankers")
KINDS_FOR_WEIGHTS = {"affine": ("trust", "oracle"), "dcm": ("last_clicks", "oracle")}
MOVED_DOCUMENTS = ("harvest", "fixed_effects")
SIMULATION_KEYS = (
    "click_model",
    "eta",
    "eps",
    "examination",
    "empty_sessions",
    "traffic_exponent",
    "display",
    "temperature",
    "randomized_share",
    "lists_per_query",
)
# What the study itself passes to a function of one's own, or notes beside its parameters.
OWN_ARGUMENTS = {
    "policies": ("splits", "order", "ymax", "seed"),
    "click_model": ("attraction", "contexts", "eta", "examination"),
    "estimators": (
        *("log", "features", "truth", "columns", "seed"),
        *("estimate", "table", "report", "estimator", "converged", "identified", "notes", "trace"),
    ),
}
WITHOUT_EFFECT = {
    "ubm": ("examination",),
    "cascade": ("eta", "examination"),
    "dcm": ("eta", "examination"),
    "contextual": ("eta",),
}


class Problem(NamedTuple):
    """A mistake: the keys that lead to it, its sentence, and whether something is just missing."""

    path: tuple
    sentence: str
    missing: bool = False


def schema_problems(config: Any, schema: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield what the schema refuses.

    Examples
    --------
    >>> schema = {"properties": {"eta": {"type": "number", "minimum": 0}}}
    >>> [problem] = schema_problems({"eta": -1}, schema)
    >>> problem.sentence
    'eta: a number of at least 0 is wanted, got -1.'
    """
    from jsonschema import Draft202012Validator, validators

    def number(_: Any, value: Any) -> bool:
        # NaN passes every comparison with a limit, and infinity each that has no upper one.
        return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300

    # What is no number is measured by no limit, so that no whole number may be beyond it either.
    usual = Draft202012Validator.TYPE_CHECKER
    checker = usual.redefine_many(
        {
            "number": number,
            "integer": lambda _, value: number(_, value) and usual.is_type(value, "integer"),
        }
    )
    validator = validators.extend(Draft202012Validator, type_checker=checker)(schema)
    for error in validator.iter_errors(config):
        yield from _explained(error, schema)


def contradictions(
    config: Mapping[str, Any], schema: Mapping[str, Any], registry: Mapping[str, Any] | None
) -> Iterator[Problem]:
    """Yield what the schema cannot say: what a key allows by the value of another.

    Examples
    --------
    >>> config = {"training": {"validation": ["fixed", "grades"]}}
    >>> [problem.sentence for problem in contradictions(config, {}, None)]
    ['training.validation: fixed stands alone, as it keeps all trees; got fixed, grades.']
    """
    study, training = config.get("study", {}), config.get("training", {})
    policies, settings, methods, estimators, rankers = (config.get(name, {}) for name in NAMED)

    def refusal(path: tuple, sentence: str) -> Problem:
        return Problem(path, f"{_where(path)}: {sentence}")

    yield from _undefined_names(config, registry)

    names: list[tuple] = [("study", "datasets", name) for name in study.get("datasets", [])]
    names += [(part, name) for part in (*NAMED, "sweeps") for name in config.get(part, {})]
    for path in names:
        if ENDLESS_NAME.fullmatch(str(path[-1])):
            yield refusal(path, "a name must not end in 20 times the same; take another.")

    reference = study.get("reference")
    for name in study.get("settings", []):
        listed = settings.get(name, {}).get("methods", [reference])
        defined = reference is None or reference in config.get("methods", [reference])
        if reference is not None and defined and reference not in listed:
            yield refusal(
                ("study", "reference"),
                f"{reference} is not in settings.{name}.methods, where the others are tested "
                "against it; add it there or choose another reference.",
            )

        yield from _equal_labels(name, listed, methods)

    for section in ("methods", "sweeps"):
        for name, entry in config.get(section, {}).items():
            label = entry.get("label", "-")
            if not (label.isprintable() and label.strip()):
                yield refusal(
                    (section, name, "label"),
                    f"a line of characters that can be printed is wanted, got {label[:60]!r}.",
                )

    for path, entry in _kinds(config):
        yield from _own_function_problems(path, entry)

    queries = config.get("policy_queries", {})
    for name, policy in policies.items():
        if own_file(policy.get("kind", "")):
            continue
        mode = policy.get("policy_queries", queries.get("mode"))
        if mode == "disjoint" and policy.get("share", 0) > queries["pool"]:
            yield refusal(
                ("policies", name, "share"),
                f"at most policy_queries.pool ({queries['pool']}) is wanted while "
                f"policy_queries.mode is disjoint, got {policy['share']}.",
            )

    for name, setting in settings.items():
        if "click_log" in setting:
            yield from _click_log_problems(name, config, schema)
        else:
            yield from _click_model_problems(name, setting, schema)
            yield from _unmoved_documents(name, config)

    for name in sorted(RESERVED_METHODS & set(methods)):
        yield refusal(
            ("methods", name),
            f"the name is kept for a click log or a row of the tables (kept are "
            f"{', '.join(sorted(RESERVED_METHODS))}); take another.",
        )
    for name, method in methods.items():
        randomized = method.get("log") == "randomized"
        estimator = estimators.get(method.get("estimator"), {})
        if estimator.get("kind") in ("randomization", "trust") and not randomized:
            yield refusal(
                ("methods", name, "log"),
                f"randomized is wanted, got {method['log']}: the estimator {method['estimator']} "
                f"is of kind {estimator['kind']} and needs shuffled lists.",
            )
        if method.get("lists") == "randomized" and not randomized:
            yield refusal(
                ("methods", name, "lists"),
                f"randomized needs `log: randomized`, as there are no shuffled lists in the "
                f"{method['log']} log.",
            )
        joint = rankers.get(method.get("ranker"), {}).get("objective") == "joint"
        yield from _method_problems(name, method, estimator.get("kind"), joint)

    if "truth" in estimators:
        yield refusal(
            ("estimators", "truth"), "the name is kept for training.validation_theta; take another."
        )
    validation = training.get("validation", [])
    if "fixed" in validation and len(validation) > 1:
        yield refusal(
            ("training", "validation"),
            f"fixed stands alone, as it keeps all trees; got {', '.join(validation)}.",
        )
    theta = training.get("validation_theta")
    kind = estimators.get(theta, {}).get("kind")
    if "clicks" in validation and kind in WITHOUT_THETA:
        yield refusal(
            ("training", "validation_theta"),
            f"{theta} is of kind {kind}, which gives no propensities; take truth or another "
            "estimator.",
        )
    if "clicks" in validation and kind == "randomization":
        yield refusal(
            ("training", "validation_theta"),
            f"{theta} is of kind randomization and needs shuffled lists, which the validation "
            "clicks do not have; take truth or another estimator.",
        )

    evaluation = config.get("evaluation", {})
    for name in evaluation.get("metrics", []):
        sentence = _metric_problem(name)
        if sentence:
            yield refusal(("evaluation", "metrics"), sentence)
    largest = max(evaluation.get("cutoffs", [0]))
    if "truncated" in evaluation.get("candidates", []) and largest > config.get("list_size", 63):
        yield refusal(
            ("evaluation", "cutoffs"),
            f"at most list_size ({config['list_size']}) is wanted for the truncated candidates, "
            f"got {largest}.",
        )


def _kinds(config: Mapping[str, Any]) -> Iterator[tuple[tuple, Mapping[str, Any]]]:
    """Every definition that may be a function of one's own, with the keys that lead to it."""
    for section in ("policies", "estimators"):
        for name, entry in config.get(section, {}).items():
            yield (section, name), entry
    for name, setting in config.get("settings", {}).items():
        yield ("settings", name, "click_model"), setting.get("click_model", {})


def _own_function_problems(path: tuple, entry: Mapping[str, Any]) -> Iterator[Problem]:
    """A file that has not the function, and arguments that the study passes itself."""
    kind = entry.get("kind", "")
    if not own_file(kind):
        return
    problem = own_problem(kind)
    if problem:
        # As with a missing key: it does not matter where the study uses no such definition.
        yield Problem((*path, "kind"), f"{_where((*path, 'kind'))}: {problem}", True)
    given = OWN_ARGUMENTS[path[-1] if path[0] == "settings" else path[0]]
    for key in (key for key in entry if key in given):
        where = _where((*path, key))
        yield Problem((*path, key), f"{where}: the study passes this itself; take another name.")


def _metric_problem(name: str) -> str | None:
    from ultrbench.errors import UserError
    from ultrbench.evaluation.metrics import parse_metric

    try:
        canonical = parse_metric(name).name
    except UserError as error:
        return str(error)
    return None if canonical == name else f"write {canonical} for {name}, as the tables do."


def allowed(schema: Mapping[str, Any]) -> str:
    """Return in words what a schema allows.

    Examples
    --------
    >>> allowed({"type": "integer", "minimum": 1, "maximum": 63})
    'a whole number from 1 to 63'
    >>> allowed({"type": "array", "items": {"enum": ["zero", "drop"]}})
    'a list, each item zero or drop'
    """
    if "enum" in schema:
        *most, last = schema["enum"]
        return f"{', '.join(most)} or {last}" if most else last
    if not schema:
        return "a value"
    if "examples" in schema:
        return f"a function in a file ({schema['examples'][0]})"
    kind = schema.get("type", "object")
    if kind == "array":
        return f"a list, each item {allowed(schema['items'])}"
    if kind == "string":
        most = f" of up to {schema['maxLength']} characters" if "maxLength" in schema else ""
        return "a name" if "pattern" in schema else f"a text{most}"
    if kind == "object":
        return "a mapping"
    if kind == "boolean":
        return "true or false"
    number = "a whole number" if kind == "integer" else "a number"
    if "minimum" in schema and "maximum" in schema:
        return f"{number} from {schema['minimum']} to {schema['maximum']}"
    words = {
        "minimum": "of at least",
        "exclusiveMinimum": "above",
        "maximum": "up to",
        "exclusiveMaximum": "below",
    }
    limits = [f"{word} {schema[key]}" for key, word in words.items() if key in schema]
    return " ".join([number, " and ".join(limits)]).strip()


def branch(schema: Mapping[str, Any], value: Mapping[str, Any]) -> int | None:
    """Return the number of the alternative under ``oneOf`` that a value means, if just one fits.

    Examples
    --------
    >>> branch({"oneOf": [{"required": ["estimator"]}, {"required": ["target"]}]}, {"target": 1})
    1
    """
    fitting = []
    for number, option in enumerate(schema["oneOf"]):
        key, kinds = _telling(option)
        if key in value and (not kinds or _is_kind(value[key], kinds)):
            fitting.append(number)
    return fitting[0] if len(fitting) == 1 else None


def _telling(option: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """The key that tells an alternative from the others, and its schema (none: being there)."""
    key = option["required"][0]
    return key, option.get("properties", {}).get(key, {}) if key == "kind" else {}


def _is_kind(value: Any, kinds: Mapping[str, Any]) -> bool:
    if "enum" in kinds:
        return value in kinds["enum"]
    return isinstance(value, str) and bool(re.search(kinds["pattern"], value))


def _explained(error: Any, root: Mapping[str, Any]) -> Iterator[Problem]:
    """Turn an error of jsonschema into sentences."""
    path, value, schema = tuple(error.absolute_path), error.instance, error.schema
    where, rule = _where(path), error.validator

    if rule == "oneOf" and isinstance(value, Mapping):
        chosen = branch(schema, value)
        if chosen is None:
            yield _undecided(path, value, schema)
        for inner in error.context:
            if inner.schema_path[0] == chosen:
                yield from _explained(inner, root)
    elif "propertyNames" in error.absolute_schema_path:
        yield Problem(
            (*path, value),
            f"{_where((*path, str(value)))}: {NAME_RULE}.",
        )
    elif rule == "additionalProperties":
        known = schema["properties"]
        elsewhere = {} if path else _nested_keys(root)
        for key in (key for key in value if key not in known):
            hint = _choice(key, known)
            if key in elsewhere:
                hint = f" Did you mean {elsewhere[key]}, in a file given to --configfile?"
            where = _where((*path, str(key)))
            yield Problem((*path, key), f"{where} is not a key of the configuration.{hint}")
    elif rule == "required":
        for key in (key for key in error.validator_value if key not in value):
            wanted = allowed(schema["properties"][key])
            yield Problem(
                (*path, key), f"{_where((*path, key))} is missing: {wanted} is wanted.", True
            )
    elif rule == "pattern":
        yield Problem(path, f"{where}: {NAME_RULE}, got {_shown(value)}.")
    elif rule == "uniqueItems":
        twice = next(item for n, item in enumerate(value) if item in value[:n])
        yield Problem(path, f"{where} lists {twice} twice; name each once.")
    elif rule in ("minItems", "minLength", "minProperties"):
        yield Problem(path, f"{where} is empty: {allowed(schema)} is wanted.")
    else:
        hint = _text_hint(schema, value) if isinstance(value, str) else ""
        yield Problem(path, f"{where}: {allowed(schema)} is wanted, got {_shown(value)}.{hint}")


def _undecided(path: tuple, value: Mapping[str, Any], schema: Mapping[str, Any]) -> Problem:
    """Say which key would tell the alternatives apart."""
    telling = [_telling(option) for option in schema["oneOf"]]
    keys = list(dict.fromkeys(key for key, _ in telling))
    present = [key for key in keys if key in value]
    if len(keys) == 1:
        kinds = {"enum": [kind for _, k in telling for kind in k.get("enum", [allowed(k)])]}
        where = _where((*path, keys[0]))
        if not present:
            return Problem(path, f"{where} is missing: {allowed(kinds)} is wanted.", True)
        given = value[keys[0]]
        hint = _nearest(given, kinds["enum"])
        return Problem(path, f"{where}: {allowed(kinds)} is wanted, got {_shown(given)}.{hint}")
    if not present:
        return Problem(path, f"{_where(path)} needs {' or '.join(keys)}.", True)
    return Problem(
        path,
        f"{_where(path)} has {' and '.join(present)}, which exclude each other. A file laid over "
        "another takes no key away: give the new definition a name of its own.",
    )


def _equal_labels(
    setting: str, listed: Iterable[str], methods: Mapping[str, Any]
) -> Iterator[Problem]:
    """Methods of a setting whose rows and lines would bear one name."""
    labels = {name: entry["label"] for name, entry in methods.items() if "label" in entry}
    first: dict[str, str] = {}
    for method in (*BASELINES, *listed):
        label = " ".join(display_name(method, labels).split())  # as tables print it
        other = first.setdefault(label, method)
        if other != method:
            path = ("methods", method, "label")
            yield Problem(
                path,
                f"{_where(path)}: {label} is also what {other} is called in the tables of "
                f"{setting}; take another.",
            )


def _undefined_names(
    config: Mapping[str, Any], registry: Mapping[str, Any] | None
) -> Iterator[Problem]:
    """Names that no definition bears. A section that is missing or wrong is reported as such."""
    study = config.get("study", {})
    theta = config.get("training", {}).get("validation_theta", "truth")
    uses: list[tuple[tuple, str, list, Mapping | None]] = [
        (("study", "datasets"), "data set", study.get("datasets", []), registry),
        (("study", "policies"), "policy", study.get("policies", []), config.get("policies")),
        (("study", "settings"), "setting", study.get("settings", []), config.get("settings")),
        (
            ("study", "reference"),
            "method",
            [study["reference"]] if study.get("reference") is not None else [],
            config.get("methods"),
        ),
        (
            ("training", "validation_theta"),
            "estimator",
            [theta] if theta != "truth" else [],
            config.get("estimators"),
        ),
    ]
    for name, setting in config.get("settings", {}).items():
        uses.append(
            (
                ("settings", name, "methods"),
                "method",
                setting.get("methods", []),
                config.get("methods"),
            )
        )
    for name, method in config.get("methods", {}).items():
        for key in ("estimator", "ranker"):
            names = [method[key]] if key in method else []
            uses.append((("methods", name, key), key, names, config.get(f"{key}s")))
    for path, noun, names, known in uses:
        for name in names:
            if known is not None and name not in known:
                choice = _choice(name, known)
                yield Problem(path, f"{_where(path)}: no {noun} {name} is defined.{choice}")


def _set_keys(
    setting: Mapping[str, Any], keys: Iterable[str], schema: Mapping[str, Any]
) -> list[str]:
    """Which of some keys of a setting have another value than their default."""
    known = schema["properties"]["settings"]["additionalProperties"]["properties"]
    return [key for key in keys if setting[key] != known[key]["default"]]


def _click_model_problems(
    name: str, setting: Mapping[str, Any], schema: Mapping[str, Any]
) -> Iterator[Problem]:
    """Keys that a click model or a display does not use."""
    kind = setting["click_model"].get("kind")
    reasons = dict.fromkeys(WITHOUT_EFFECT.get(kind, ()), f"click_model is {kind}")
    if setting["display"] != "plackett_luce":
        reasons["temperature"] = f"display is {setting['display']}"
    for key in _set_keys(setting, reasons, schema):
        path = ("settings", name, key)
        yield Problem(path, f"{_where(path)}: without effect, as {reasons[key]}; leave it out.")


def _unmoved_documents(name: str, config: Mapping[str, Any]) -> Iterator[Problem]:
    """Estimators that compare a document with itself, where the rounds in use move none."""
    setting = config["settings"][name]
    if setting["display"] != "policy":
        return
    if setting["rounds"] == 1:
        when = "the one round"
    elif setting["training_rounds"] == "last":
        when = "a round, and `training_rounds: last` uses no other"
    else:
        return
    for method in setting.get("methods", []):
        entry = config.get("methods", {}).get(method, {})
        estimator = entry.get("estimator")
        kind = config.get("estimators", {}).get(estimator, {}).get("kind")
        if kind in MOVED_DOCUMENTS and entry.get("log") != "randomized":
            yield Problem(
                ("settings", name, "methods"),
                f"{_where(('settings', name, 'methods'))}: {method} has an estimator of kind {kind}"
                " and needs documents that were seen at several positions, and the"
                f" {entry.get('log')} log shows one list a query in {when}; give the method `log:"
                " randomized`, or the setting `display: plackett_luce`.",
            )


def _method_problems(
    name: str, method: Mapping[str, Any], kind: str | None, joint: bool
) -> Iterator[Problem]:
    """Estimators, weights and rankers that do not go together."""

    def refusal(key: str, sentence: str) -> Problem:
        path = ("methods", name, key)
        return Problem(path, f"{_where(path)}: {sentence}")

    if joint and "target" in method:
        yield refusal("ranker", "joint is the ranker of an estimator, and a target has none.")
    elif kind is None:
        return
    elif joint and kind not in JOINT:
        yield refusal(
            "ranker",
            f"joint is the ranker of an estimator of kind {_either(JOINT)}, and "
            f"{method['estimator']} is of kind {kind}; take another ranker.",
        )
    elif kind in JOINT and not joint:
        yield refusal(
            "ranker",
            f"an estimator of kind {kind} trains its own ranker; take one of objective joint.",
        )
    elif joint:
        for key, usual in (("weights", "ipw"), ("lists", "all")):
            if method[key] != usual:
                yield refusal(
                    key,
                    "without effect, as a joint ranker is trained already; leave it out.",
                )
    else:
        wanted = KINDS_FOR_WEIGHTS.get(method["weights"])
        if wanted and kind not in wanted:
            yield refusal(
                "weights",
                f"{method['weights']} needs an estimator of kind {_either(wanted)}, and "
                f"{method['estimator']} is of kind {kind}.",
            )
        elif not wanted and kind in WITHOUT_THETA:
            served = next(weights for weights, kinds in KINDS_FOR_WEIGHTS.items() if kind in kinds)
            yield refusal(
                "weights",
                f"{served} is wanted, got {method['weights']}: an estimator of kind {kind} gives "
                "no propensities.",
            )


def _either(kinds: Sequence[str]) -> str:
    return " or ".join([", ".join(kinds[:-1]), kinds[-1]] if len(kinds) > 1 else kinds)


def _click_log_problems(
    name: str, config: Mapping[str, Any], schema: Mapping[str, Any]
) -> Iterator[Problem]:
    """What a click log of one's own rules out in its setting."""
    setting, study, training = config["settings"][name], config.get("study", {}), config["training"]
    where = _where(("settings", name))

    def refusal(key: str, sentence: str) -> Problem:
        return Problem(("settings", name, key), f"{where}.{key}: {sentence}")

    if setting["rounds"] != 1:
        yield refusal("rounds", f"a click_log has 1 round, got {setting['rounds']}.")
    for key in _set_keys(setting, SIMULATION_KEYS, schema):
        yield refusal(key, "without effect, as click_log replaces the simulation; leave it out.")
    used = [
        (method, config.get("methods", {}).get(method, {})) for method in setting.get("methods", [])
    ]
    for method, entry in used:
        if entry.get("log") == "replica":
            yield refusal("methods", f"{method} wants a second draw, and a click_log is one.")
        if entry.get("target", "grades") != "grades":
            yield refusal("methods", f"{method} has a target that only a simulation knows.")

    if name not in study.get("settings", []):
        return
    if len(study.get("datasets", [])) > 1:
        yield refusal(
            "click_log",
            "it belongs to one data set, and study.datasets has "
            f"{', '.join(study['datasets'])}; run them apart.",
        )
    kinds = [
        config.get("estimators", {}).get(entry.get("estimator"), {}).get("kind")
        for _, entry in used
    ]
    clicks = "clicks" in training["validation"]
    wanted = dict.fromkeys(["train.lists.parquet", "train.clicks.parquet"], "")
    if clicks:
        why = " (wanted by training.validation: clicks)"
        wanted |= dict.fromkeys(["vali.lists.parquet", "vali.clicks.parquet"], why)
    if clicks and training["validation_theta"] == "truth":
        wanted["truth.csv"] = " (wanted by training.validation_theta: truth)"
    if "oracle" in kinds:
        wanted["truth.csv"] = " (wanted by the estimator oracle)"
    absent = [
        f"{file}{why}"
        for file, why in wanted.items()
        if not (Path(setting["click_log"]) / file).is_file()
    ]
    if absent:
        yield refusal(
            "click_log",
            f"{', '.join(absent)} not found in {setting['click_log']}; config/README.md says what "
            "each file holds and when it is needed.",
        )


def _where(path: Sequence) -> str:
    """Write a path of keys as ``study.seeds[0]``."""
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return "".join(steps).lstrip(".") or "the configuration"


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return f"the text {value[:60]!r}"
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return "a mapping"
    return "a list" if isinstance(value, list) else str(value)[:60]


def _text_hint(schema: Mapping[str, Any], text: str) -> str:
    """Say what helps where text stands for something else."""
    kind = schema.get("type", "object" if "oneOf" in schema else "string")
    if kind in ("array", "object"):
        return (
            " --config passes a list or mapping as text: write it into a file and give that to "
            "--configfile."
        )
    if kind in ("integer", "number") and text.replace(".", "").strip("+-")[:1].isdigit():
        return (
            " Write a number without quotes, a power of ten as 1.0e-3 or 2.5e+6, and a list of "
            "numbers into a file for --configfile, as --config passes them as text."
        )
    return _nearest(text, schema.get("enum", []))


def _nearest(word: Any, options: Iterable) -> str:
    from difflib import get_close_matches

    close = get_close_matches(str(word), map(str, options), n=1)
    return f" Did you mean {close[0]}?" if close else ""


def _choice(word: Any, options: Iterable) -> str:
    """Name the nearest option, or list them all."""
    listed = ", ".join(map(str, options)) or "none"
    return _nearest(word, options) or f" There is: {listed}."


def _nested_keys(schema: Mapping[str, Any], path: tuple = ()) -> dict[str, str]:
    """Map the keys inside the fixed sections to their full names."""
    keys = {}
    for key, part in schema.get("properties", {}).items():
        if path:
            keys[key] = _where((*path, key))
        keys = _nested_keys(part, (*path, key)) | keys
    return keys
