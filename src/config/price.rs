//! Token prices, from the settings or else a dated list of well-known hosted models. Other models on this machine are free.

use crate::adapters::is_loopback;
use reqwest::Url;
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use std::sync::LazyLock;

const LIST: &str = include_str!("prices.toml");

/// Price of tokens, in US dollars per million.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Price {
    pub(crate) sent: f64,
    /// Tokens sent that the provider had cached.
    pub(crate) cached: f64,
    pub(crate) answered: f64,
    /// Date of the list price; `None` for prices from the settings and free models.
    pub(crate) read_on: Option<&'static str>,
}

impl Price {
    /// Returns the cost of tokens sent and answered in US dollars, with none cached.
    pub(crate) fn of(self, sent: u64, answered: u64) -> f64 {
        (sent as f64 * self.sent + answered as f64 * self.answered) / 1e6
    }
}

/// Prices of the settings, in US dollars; `None` leaves one to the list.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq)]
pub struct PriceSettings {
    /// US dollars for a million tokens sent.
    #[serde(rename = "usd_per_million_sent", deserialize_with = "set")]
    pub sent: Option<f64>,
    /// US dollars for a million tokens sent that the provider had cached.
    #[serde(rename = "usd_per_million_cached", deserialize_with = "set")]
    pub cached: Option<f64>,
    /// US dollars for a million tokens answered.
    #[serde(rename = "usd_per_million_answered", deserialize_with = "set")]
    pub answered: Option<f64>,
}

fn set<'de, D: Deserializer<'de>>(value: D) -> Result<Option<f64>, D::Error> {
    Ok(Some(f64::deserialize(value)?).filter(|dollars| *dollars >= 0.0))
}

impl PriceSettings {
    /// Returns the price of `model` at `base_url`; `None` if neither the settings nor the list have it.
    pub(super) fn of(self, base_url: &str, model: &str) -> Option<Price> {
        let listed = listed(base_url, model);
        if self == PriceSettings::default() {
            return listed;
        }
        let sent = self.sent.or(listed.map(|it| it.sent))?;
        let answered = self.answered.or(listed.map(|it| it.answered))?;
        // The discount on a configured price is unknown.
        let discounted = listed.filter(|_| self.sent.is_none()).map(|it| it.cached);
        let cached = self.cached.or(discounted).unwrap_or(sent);
        Some(Price { sent, cached, answered, read_on: None })
    }
}

#[derive(Deserialize)]
struct PriceList {
    host: Vec<HostPrices>,
}

#[derive(Deserialize)]
struct HostPrices {
    host: String,
    read_on: String,
    models: BTreeMap<String, [f64; 3]>,
}

/// Hosts that pass on calls at the provider's price.
const GATEWAYS: [&str; 1] = ["openrouter.ai"];

/// A model's name without the date of its snapshot: `-2024-07-18`, `-20250929`.
fn undated(model: &str) -> &str {
    let is_date = |tail: &str| {
        let digits = tail.bytes().filter(u8::is_ascii_digit).count();
        let others = tail.bytes().filter(|byte| !byte.is_ascii_digit()).all(|byte| byte == b'-');
        digits == 8 && others && tail.contains("20")
    };
    ["-2024-07-18".len(), "-20250929".len()]
        .into_iter()
        .filter_map(|tail| model.split_at_checked(model.len().checked_sub(tail)?))
        .find(|(_, tail)| tail.starts_with('-') && is_date(tail))
        .map_or(model, |(name, _)| name)
}

fn listed(base_url: &str, model: &str) -> Option<Price> {
    static HOSTS: LazyLock<Vec<HostPrices>> =
        LazyLock::new(|| toml::from_str(LIST).map_or(Vec::new(), |list: PriceList| list.host));
    let url = Url::parse(base_url).ok()?;
    let name = url.host_str()?;
    let is_local = is_loopback(&url);
    let is_gateway = is_local || GATEWAYS.contains(&name);
    if is_gateway && model.ends_with(":free") {
        return Some(Price::default());
    }
    // A gateway puts the provider in front.
    let model = if is_gateway { model.rsplit('/').next().unwrap_or(model) } else { model };
    let dashed = model.replace('.', "-");
    let names = [model, undated(model), &dashed];
    let listed = HOSTS.iter().filter(|host| is_gateway || host.host == name).find_map(|host| {
        let &[sent, cached, answered] = names.iter().find_map(|name| host.models.get(*name))?;
        Some(Price { sent, cached, answered, read_on: Some(&host.read_on) })
    });
    listed.or(is_local.then(Price::default))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPENAI: &str = "https://api.openai.com/v1";

    fn set(sent: Option<f64>, answered: Option<f64>) -> PriceSettings {
        PriceSettings { sent, cached: None, answered }
    }

    #[test]
    fn listed_models_have_a_dated_price() {
        let price = PriceSettings::default().of(OPENAI, "gpt-5-mini").unwrap();
        assert_eq!((price.sent, price.cached, price.answered), (0.25, 0.025, 2.0));
        assert!(price.read_on.is_some_and(|day| day.len() == "2026-01-01".len()));
    }

    #[test]
    fn models_that_are_not_listed_have_no_price() {
        let of = |url: &str, model: &str| PriceSettings::default().of(url, model);
        assert_eq!(of(OPENAI, "gpt-5-mini-preview"), None);
        assert_eq!(of("https://llm.example.com/v1", "gpt-5-mini"), None);
        assert_eq!(of("http://10.0.0.5:8000/v1", "qwen3:8b"), None);
    }

    #[test]
    fn hosted_models_behind_a_gateway_on_this_machine_cost_what_they_cost() {
        for model in ["gpt-5-mini", "openai/gpt-5-mini"] {
            let price = PriceSettings::default().of("http://127.0.0.1:4000/v1", model);
            assert_eq!(price, PriceSettings::default().of(OPENAI, "gpt-5-mini"), "{model}");
        }
    }

    #[test]
    fn snapshots_and_gateways_cost_what_the_model_costs() {
        let of = |url: &str, model: &str| PriceSettings::default().of(url, model);
        let price = of(OPENAI, "gpt-5-mini");
        assert_eq!(of(OPENAI, "gpt-5-mini-2025-08-07"), price);
        let gateway = "https://openrouter.ai/api/v1";
        assert_eq!(of(gateway, "openai/gpt-5-mini"), price);
        assert_eq!(of(gateway, "qwen/qwen3-8b:free"), Some(Price::default()));
        assert_eq!(of(gateway, "nobody/nothing"), None);
    }

    #[test]
    fn models_on_this_machine_are_free() {
        for host in ["127.0.0.1:11434", "127.8.0.1", "localhost", "localhost.", "[::1]:80"] {
            let price = PriceSettings::default().of(&format!("http://{host}/v1"), "any");
            assert_eq!(price, Some(Price::default()), "{host}");
        }
    }

    #[test]
    fn settings_go_before_the_list() {
        let price = |sent, cached, answered| Some(Price { sent, cached, answered, read_on: None });
        assert_eq!(set(Some(3.0), Some(9.0)).of(OPENAI, "other"), price(3.0, 3.0, 9.0));
        assert_eq!(set(None, Some(9.0)).of(OPENAI, "gpt-5-mini"), price(0.25, 0.025, 9.0));
        assert_eq!(set(Some(3.0), None).of(OPENAI, "other"), None);
        assert_eq!(set(Some(0.0), Some(0.0)).of(OPENAI, "gpt-5"), price(0.0, 0.0, 0.0));
    }
}
