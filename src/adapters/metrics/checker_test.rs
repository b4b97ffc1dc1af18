//! Parses a page like a strict scraper: the subset of OpenMetrics text that annalist writes.

use std::collections::{BTreeMap, BTreeSet};

/// Samples of a page, by name with labels.
pub(super) type Samples = BTreeMap<String, f64>;

/// Family that was announced.
struct Family<'a> {
    name: &'a str,
    kind: &'a str,
}

/// Returns the samples, or the first line that breaks a rule, with the rule.
pub(super) fn check(page: &str) -> Result<Samples, String> {
    let body = page.strip_suffix("# EOF\n").ok_or("does not end with # EOF")?;
    let (mut samples, mut names) = (Samples::new(), BTreeSet::new());
    let (mut helped, mut family): (Option<&str>, Option<Family<'_>>) = (None, None);
    for line in body.lines() {
        let wrong = |what: &str| Err(format!("{what}: {line}"));
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let Some((name, help)) = rest.split_once(' ') else { return wrong("no help") };
            if !names.insert(name) || help.trim().is_empty() || !name.starts_with("annalist_") {
                return wrong("announced twice, for nothing or under a foreign name");
            }
            (helped, family) = (Some(name), None);
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let Some((name, kind)) = rest.split_once(' ') else { return wrong("no type") };
            if helped.take() != Some(name) || name.ends_with("_total") {
                return wrong("TYPE without its HELP, or with the suffix of a sample");
            }
            family = Some(Family { name, kind });
        } else {
            let Some(family) = &family else { return wrong("a sample that was not announced") };
            let Some((series, value)) = line.rsplit_once(' ') else { return wrong("no value") };
            let name = series.split('{').next().unwrap();
            if !suffixes(family.kind).contains(&name.strip_prefix(family.name)) {
                return wrong("a sample of another kind or family");
            }
            let Ok(value) = value.parse::<f64>() else { return wrong("no number") };
            if family.kind != "gauge" && !(0.0..).contains(&value) || !labels_are_well(series) {
                return wrong("a count below zero, or broken labels");
            }
            if samples.insert(series.to_owned(), value).is_some() {
                return wrong("the same series twice");
            }
        }
    }
    buckets_add_up(body)?;
    Ok(samples)
}

/// Suffixes of sample names for a kind of family.
fn suffixes(kind: &str) -> &'static [Option<&'static str>] {
    match kind {
        "counter" => &[Some("_total")],
        "gauge" => &[Some("")],
        "info" => &[Some("_info")],
        "histogram" => &[Some("_bucket"), Some("_sum"), Some("_count")],
        _ => &[],
    }
}

fn labels_are_well(series: &str) -> bool {
    let Some((_, labels)) = series.split_once('{') else { return true };
    let Some(labels) = labels.strip_suffix('}') else { return false };
    labels.split(',').all(|label| {
        let Some((name, value)) = label.split_once('=') else { return false };
        let value = value.strip_prefix('"').and_then(|value| value.strip_suffix('"'));
        let named = name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
        named && value.is_some_and(|value| !value.is_empty() && !value.contains(['"', '\\']))
    })
}

/// Checks that a histogram's buckets and bounds increase, and that the last is the total.
fn buckets_add_up(body: &str) -> Result<(), String> {
    let (mut bound, mut count) = (f64::NEG_INFINITY, 0.0);
    let mut counts = None;
    for line in body.lines() {
        if line.contains("_count ") {
            counts = line.rsplit_once(' ').map(|(_, count)| count.parse::<f64>().unwrap());
        }
        let Some((_, rest)) = line.split_once("_bucket{le=\"") else { continue };
        let Some((next, value)) = rest.split_once("\"} ") else { return Err(line.to_owned()) };
        let next: f64 = next.parse().map_err(|_| line.to_owned())?;
        let value: f64 = value.parse().map_err(|_| line.to_owned())?;
        if next <= bound || value < count {
            return Err(format!("buckets fall: {line}"));
        }
        (bound, count) = (next, value);
        if next.is_infinite() {
            if counts != Some(value) {
                return Err(format!("the last bucket is not the count: {line}"));
            }
            (bound, count) = (f64::NEG_INFINITY, 0.0);
        }
    }
    if bound.is_finite() { Err("a histogram without +Inf".to_owned()) } else { Ok(()) }
}

#[test]
fn what_is_wrong_is_seen() {
    let head = "# HELP annalist_x Said.\n# TYPE annalist_x counter\n";
    let good = format!("{head}annalist_x_total{{a=\"b\"}} 1\n# EOF\n");
    assert_eq!(check(&good).unwrap()["annalist_x_total{a=\"b\"}"], 1.0);
    let histogram = |buckets: &str| {
        format!(
            "# HELP annalist_h H.\n# TYPE annalist_h histogram\nannalist_h_sum 1\n\
             annalist_h_count 2\n{buckets}# EOF\n"
        )
    };
    check(&histogram("annalist_h_bucket{le=\"1.0\"} 1\nannalist_h_bucket{le=\"+Inf\"} 2\n"))
        .unwrap();
    for wrong in [
        format!("{head}annalist_x_total 1\n"),
        format!("{head}annalist_x 1\n# EOF\n"),
        format!("{head}annalist_x_total -1\n# EOF\n"),
        format!("{head}annalist_x_total one\n# EOF\n"),
        format!("{head}annalist_x_total 1\nannalist_x_total 2\n# EOF\n"),
        format!("{head}annalist_x_total{{a=\"b}} 1\n# EOF\n"),
        format!("{head}garbage\n# EOF\n"),
        "annalist_x_total 1\n# EOF\n".to_owned(),
        "# TYPE annalist_x counter\nannalist_x_total 1\n# EOF\n".to_owned(),
        histogram("annalist_h_bucket{le=\"1.0\"} 3\nannalist_h_bucket{le=\"+Inf\"} 2\n"),
        histogram("annalist_h_bucket{le=\"1.0\"} 1\nannalist_h_bucket{le=\"+Inf\"} 1\n"),
        histogram("annalist_h_bucket{le=\"1.0\"} 2\n"),
    ] {
        assert!(check(&wrong).is_err(), "{wrong}");
    }
}
