//! Tests of the settings.

use super::*;

#[track_caller]
fn check(text: &str, expected: &str) {
    let error = Config::load(Some(Layer { name: "config.toml", text }), &[]).unwrap_err();
    assert_eq!(error.to_string(), expected);
}

fn load(text: &str, env: &[(&str, &str)]) -> Result<Config, ConfigError> {
    let env: Vec<_> = env.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    Config::load(Some(Layer { name: "config.toml", text }), &env)
}

#[test]
fn the_shipped_file_is_the_defaults() {
    let config = Config::load(None, &[]).unwrap();
    assert_eq!(load(DEFAULT, &[]), Ok(config.clone()));
    assert_eq!((config.slice.tokens, config.namespace), (6000, None));
}

#[test]
fn every_key_of_the_shipped_file_says_why_it_is_there() {
    let mut commented = false;
    for line in DEFAULT.lines() {
        let is_key = line.contains(" = ") && !line.starts_with('#');
        let is_price = line.starts_with("usd_per_million")
            || line.starts_with("day_")
            || line.starts_with("namespace_day_");
        assert!(!is_key || commented || is_price, "{line}");
        commented = line.starts_with('#') || (is_key && is_price);
    }
}

#[test]
fn an_unknown_key_names_the_nearest_known_one_and_its_line() {
    check(
        "[model]\nbase_ulr = \"x\"",
        "config.toml:2: unknown key `model.base_ulr`: did you mean `model.base_url`?",
    );
    check("langage = \"x\"", "config.toml:1: unknown key `langage`: did you mean `language`?");
    check("\n[stor]\nurl = \"x\"", "config.toml:2: unknown key `stor`: did you mean `store`?");
    check(
        "[slice]\ntokens = 900\nbase_url = \"x\"",
        "config.toml:3: unknown key `slice.base_url`: did you mean `model.base_url`?",
    );
    check("zzzz = 1", "config.toml:1: unknown key `zzzz`: `annalist init --print` shows every key");
}

#[test]
fn a_wrong_type_says_what_was_expected() {
    check(
        "[slice]\ntokens = \"many\"",
        "config.toml:2: slice.tokens: expected a whole number, found a string in quotes",
    );
    check("model = 3", "config.toml:1: model: expected a section, found a whole number");
}

#[test]
fn text_that_is_not_toml_says_where() {
    let error = load("[model]\nbase_url = ", &[]).unwrap_err();
    assert!(error.place == "config.toml:2" && error.what.starts_with("invalid TOML"), "{error}");
}

#[test]
fn values_out_of_bounds_are_refused() {
    check(
        "[slice]\ntokens = 10",
        "config.toml:2: slice.tokens: expected a number of at least 400, found 10",
    );
    check(
        "[model]\nbase_url = \"localhost\"",
        "config.toml:2: model.base_url: expected a URL such as http://127.0.0.1:11434/v1",
    );
    let error = load("[slice]\ntokens = 600", &[]).unwrap_err();
    assert!(error.what.starts_with("slice.tool_tokens: 300 is too much"), "{error}");
    let error = load("[privacy]\npii = [\"mail\"]", &[]).unwrap_err();
    assert!(error.what.contains("mail") && error.what.contains("email"), "{error}");
}

#[test]
fn a_model_out_of_bounds_is_refused() {
    check(
        "[model]\nconcurrency = -3",
        "config.toml:2: model.concurrency: expected a number from 1 to 4096, found -3",
    );
    check(
        "[model]\ntemperature = 2.5",
        "config.toml:2: model.temperature: expected a number from 0 to 2, found 2.5",
    );
    for key in ["timeout_secs", "connect_timeout_secs"] {
        check(
            &format!("[model]\n{key} = 0"),
            &format!("config.toml:2: model.{key}: expected 1 to 86400 seconds, found 0"),
        );
    }
}

#[test]
fn a_variable_with_too_few_underscores_is_reported_and_others_are_not_settings() {
    for name in ["ANNALIST_MODEL__MODEL", "ANNALIST_MODEL_MODEL", "ANNALIST__MODEL_MODEL"] {
        let error = load("", &[(name, "small")]).unwrap_err();
        assert!(error.place.contains(name) && error.what.contains("did you mean"), "{error}");
    }
    let meant = load("", &[("ANNALIST_LANGUAGE", "German")]).unwrap_err().what;
    assert!(meant.ends_with("did you mean `ANNALIST__LANGUAGE`?"), "{meant}");
    for name in ["ANNALIST_LOG", "ANNALIST_LOG_FORMAT", "ANNALIST_TEST_POSTGRES", "ANNALIST_SEARCH"]
    {
        assert!(load("", &[(name, "x")]).is_ok(), "{name}");
    }
}

#[test]
fn a_queue_out_of_bounds_is_refused() {
    check(
        "[queue]\ngather_tokens = 9000",
        "config.toml:2: queue.gather_tokens: expected at most slice.tokens, 6000, found 9000: \
         a full slice never waits for more",
    );
    check(
        "[queue]\nlease_secs = 0",
        "config.toml:2: queue.lease_secs: expected 1 to 3600 seconds, found 0",
    );
    check(
        "[queue]\ngrace_secs = 900000",
        "config.toml:2: queue.grace_secs: expected 0 to 86400 seconds, found 900000",
    );
    check(
        "[queue]\nattempts_max = 0",
        "config.toml:2: queue.attempts_max: expected a number from 1 to 100, found 0",
    );
}

#[test]
fn a_memory_out_of_bounds_is_refused() {
    check(
        "[conversation]\nstrategy = \"vector\"",
        "config.toml:2: conversation.strategy: unsupported memory type `vector`: allowed are \
         buffer, window, summary, entity",
    );
    for key in ["max_messages", "window_size", "summary_threshold", "max_entities"] {
        check(
            &format!("[conversation]\n{key} = 0"),
            &format!(
                "config.toml:2: conversation.{key}: {key} must be at least 1: allowed are 1 to \
                 4294967295, found 0"
            ),
        );
    }
    check(
        "[conversation]\nkeep_recent = 10",
        "config.toml:2: conversation.keep_recent: keep_recent must be below summary_threshold: \
         allowed are 0 to 9, found 10",
    );
}

#[test]
fn the_model_that_extracts_judges_memory_unless_another_or_none_is_named() {
    let check = |file: &str, expected: Option<&str>| {
        let consolidate = load(file, &[]).unwrap().consolidate;
        assert_eq!(consolidate.model_name("extracting"), expected, "{file}");
    };
    check("", Some("extracting"));
    check("[consolidate]\nmodel = \"  \"", None);
    check("[consolidate]\nmodel = \"m\"", Some("m"));
}

#[test]
fn the_environment_is_laid_over_the_file() {
    let file = "[model]\nbase_url = \"http://a/v1\"\nmodel = \"m\"";
    let env =
        [("ANNALIST__MODEL__BASE_URL", "http://b/v1/"), ("ANNALIST__LIMITS__DAY_USD_MAX", "2")];
    let config = load(file, &env).unwrap();
    assert_eq!((config.model.base_url.as_str(), config.model.model.as_str()), ("http://b/v1", "m"));
    assert_eq!(config.limits.day_micros, Some(2_000_000));
    let error = load("", &[("ANNALIST__MODEL__MODLE", "x")]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "environment variable ANNALIST__MODEL__MODLE: unknown key `model.modle`: did you mean `model.model`?"
    );
    let error = load("", &[("ANNALIST__STORE", "sqlite:x.db")]).unwrap_err();
    assert!(
        error.to_string().starts_with(
            "environment variable ANNALIST__STORE: `store` is a section: expected ANNALIST__STORE__ and one of URL"
        ),
        "{error}"
    );
    let error = load("", &[("ANNALIST__SLICE__TOKENS", "x")]).unwrap_err();
    assert!(error.what.contains("expected a whole number, found `x`"), "{error}");
}

#[test]
fn a_case_lays_over_how_transcripts_are_read_and_nothing_else() {
    let config =
        load("language = \"German\"\n[slice]\ntokens = 900\ntool_tokens = 100\n", &[]).unwrap();
    let over = |text: &str| config.with(&text.parse().unwrap(), "case.toml: settings");
    let laid = over("[slice]\ntool_tokens = 50\n[dialog]\ntokens = 0\n").unwrap();
    assert_eq!((laid.slice.tokens, laid.slice.tool_tokens), (900, 50));
    assert_eq!((laid.dialog.tokens_max, laid.language.as_str()), (0, "German"));
    assert_eq!(laid.with(&toml::Table::new(), "x"), Ok(laid.clone()));
    let error = over("[slice]\ntoken = 3\n").unwrap_err().to_string();
    assert!(error.starts_with("case.toml: settings: unknown key `slice.token`"), "{error}");
}

#[test]
fn settings_of_another_tool_are_told_from_ours() {
    for text in
        ["", "[model]\n", "language = \"x\"\nconcurency = 3\n", "[model]\nmodel = x\n", DEFAULT]
    {
        assert!(is_ours(text), "{text}");
    }
    for text in [
        "no = 1\n",
        "baseURL = \"x\"\ntitle = \"y\"\n",
        "[store]\n[server]\n",
        "[models]\n",
        "title = {{ name }}\n",
    ] {
        assert!(!is_ours(text), "{text}");
    }
}
