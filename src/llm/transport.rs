//! One HTTP attempt: sends, reads the body within its bound, and passes on only JSON. Runs below async-openai, so
//! that reply text never reaches its errors or its log.
//! Also the waits that an endpoint asks for, and exponential backoff, whose randomness is an argument.

use super::error::{ERROR_BYTES_MAX, Failure, ServerError, WEB_PAGE};
use crate::domain::{REPLY_BYTES_MAX, Timestamp};
use crate::text::lenient_json::decode;
use async_openai::error::OpenAIError;
use async_openai::middleware::HttpRequestFactory;
use reqwest::header::{AUTHORIZATION, HeaderMap};
use serde::de::IgnoredAny;
use serde_json::Value;
use std::time::Duration;

/// Maximum bytes reserved for a body in advance, since `Content-Length` is only a claim.
const RESERVE_BYTES_MAX: usize = 256 * 1024;
/// Maximum number of error causes that are inspected.
const CAUSES_MAX: usize = 8;

#[derive(Clone, Debug)]
pub(super) struct Transport {
    pub(super) http: reqwest::Client,
    /// True if a key is sent. Otherwise the header is removed, since some servers reject an empty one.
    pub(super) keyed: bool,
    pub(super) now: fn() -> Timestamp,
}

impl Transport {
    /// The service that async-openai calls.
    pub(super) async fn send(
        self,
        factory: HttpRequestFactory,
    ) -> Result<reqwest::Response, OpenAIError> {
        let request = factory.build().await?;
        let body = self.fetch(request).await;
        let body = body.map_err(|failure| OpenAIError::Boxed(failure.into()))?;
        Ok(http::Response::new(body).into())
    }

    /// Body of a successful response, validated as complete JSON.
    async fn fetch(&self, request: reqwest::Request) -> Result<Vec<u8>, Failure> {
        let response = self.open(request).await?;
        let body = read(response, REPLY_BYTES_MAX).await?;
        if body.is_empty() {
            return Err(Failure::InvalidReply { what: "no body" });
        }
        let body = String::from_utf8(body)
            .unwrap_or_else(|broken| String::from_utf8_lossy(broken.as_bytes()).into_owned());
        if serde_json::from_str::<Value>(&body).is_ok() {
            return Ok(body.into_bytes());
        }
        if serde_json::from_str::<IgnoredAny>(&body).is_ok() {
            // Only lone surrogates make it invalid; the rest of the reply is still usable.
            return Ok(decode(&body, &["choices", "error", "data"]).0.to_string().into_bytes());
        }
        let html = body.trim_start().starts_with('<');
        Err(Failure::InvalidReply { what: if html { WEB_PAGE } else { "broken JSON" } })
    }

    /// Sends the request; returns a successful response with its body unread.
    async fn open(&self, mut request: reqwest::Request) -> Result<reqwest::Response, Failure> {
        if !self.keyed {
            request.headers_mut().remove(AUTHORIZATION);
        }
        let response = self.http.execute(request).await.map_err(|error| broken(&error))?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let headers = response.headers().clone();
        // The status is known, so a truncated body is still useful.
        let body = read(response, ERROR_BYTES_MAX).await.unwrap_or_default();
        let said = Box::new(ServerError::of(&body));
        let wait = wait_of(&headers, &said.text, (self.now)());
        Err(Failure::Status { status: status.as_u16(), wait, said })
    }
}

/// Reads the body. Beyond `bytes_max` an error's body is truncated and a reply's is an error.
async fn read(mut response: reqwest::Response, bytes_max: usize) -> Result<Vec<u8>, Failure> {
    let success = response.status().is_success();
    let claimed = response.content_length().and_then(|length| usize::try_from(length).ok());
    let mut body = Vec::with_capacity(claimed.unwrap_or(0).min(RESERVE_BYTES_MAX));
    while let Some(chunk) = response.chunk().await.map_err(|error| broken(&error))? {
        body.extend_from_slice(&chunk);
        if body.len() > bytes_max {
            if success {
                return Err(Failure::InvalidReply { what: "a body larger than 32 MiB" });
            }
            body.truncate(bytes_max);
            break;
        }
    }
    Ok(body)
}

pub(super) fn broken(error: &reqwest::Error) -> Failure {
    let what = if error.is_timeout() {
        "timed out; raise `timeout_secs`"
    } else if error.is_connect() {
        why_not_connected(error)
    } else if error.is_body() || error.is_decode() {
        "the connection was lost while the answer was read; try again later"
    } else {
        "the connection was lost before an answer arrived; try again later"
    };
    Failure::Transport { what, is_sent: !error.is_connect() }
}

fn why_not_connected(error: &reqwest::Error) -> &'static str {
    let mut cause: Option<&dyn std::error::Error> = Some(error);
    for _ in 0..CAUSES_MAX {
        let Some(error) = cause else { break };
        let text = error.to_string();
        if text.contains("certificate") {
            return "this machine does not trust the server's certificate; install its certificate authority";
        }
        if text.contains("dns error") || text.contains("lookup address") {
            return "unknown host; correct `base_url`";
        }
        if text.contains("InvalidContentType") {
            return "the server does not use TLS on that port; begin `base_url` with http://";
        }
        cause = error.source();
    }
    "could not connect; start the server or correct `base_url`"
}

const _: () = assert!(ERROR_BYTES_MAX < REPLY_BYTES_MAX && REPLY_BYTES_MAX == 32 * 1024 * 1024);

/// A day. For long waits the caller returns the job to the queue.
pub(super) const WAIT_SECS_MAX: f64 = 86_400.0;
/// Maximum components of a duration such as `1h6m0.5s`.
const PIECES_MAX: usize = 4;
/// Pause after the first failure, in milliseconds.
const FIRST_MS: u64 = 500;
/// Maximum pause, in milliseconds, so that the end of an outage is noticed within a minute.
const LONGEST_MS: u64 = 60_000;
/// Doublings that reach the longest pause, with margin.
const DOUBLINGS_MAX: u32 = 10;

const _: () = assert!(LONGEST_MS <= FIRST_MS << DOUBLINGS_MAX);

/// Wait that the headers ask for, else the message. `text` is in lower case.
pub(super) fn wait_of(headers: &HeaderMap, text: &str, now: Timestamp) -> Option<Duration> {
    let header = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    let millis = header("retry-after-ms").and_then(|value| value.parse::<f64>().ok());
    // LiteLLM forwards its upstream's header under its own name.
    let mut others = ["retry-after", "llm_provider-retry-after"].into_iter().filter_map(header);
    millis
        .and_then(|ms| bounded(ms / 1000.0))
        .or_else(|| others.find_map(|value| seconds_or_date(value, now)))
        .or_else(|| in_words(text))
}

fn seconds_or_date(value: &str, now: Timestamp) -> Option<Duration> {
    if let Ok(secs) = value.parse::<f64>() {
        return bounded(secs);
    }
    if let Some(wait) = written(value) {
        return Some(wait);
    }
    let date = jiff::fmt::rfc2822::parse(value).ok()?.timestamp().as_millisecond();
    bounded(date.saturating_sub(now.0).max(0) as f64 / 1000.0)
}

/// `try again in 5 seconds`, `retry after 1.5s`, `try again in 1m20s`, `"retrydelay": "31s"`.
fn in_words(text: &str) -> Option<Duration> {
    let marks =
        ["try again in ", "retry after ", "retry in ", "retrydelay\": \"", "retrydelay\":\""];
    marks.iter().find_map(|mark| {
        let (_, rest) = text.split_once(mark)?;
        written(rest)
    })
}

/// Parses a duration such as `1m20s` at the start of `text`.
fn written(text: &str) -> Option<Duration> {
    let (mut rest, mut total, mut found) = (text, 0.0, false);
    for _ in 0..PIECES_MAX {
        let digits = rest.bytes().take_while(|b| b.is_ascii_digit() || *b == b'.').count();
        let Some((number, after)) = rest.split_at_checked(digits) else { break };
        let Ok(number) = number.trim_end_matches('.').parse::<f64>() else { break };
        let after = after.trim_start();
        let letters = after.bytes().take_while(u8::is_ascii_alphabetic).count();
        let Some((unit, next)) = after.split_at_checked(letters) else { break };
        let secs = match unit {
            "ms" | "millisecond" | "milliseconds" => 0.001,
            "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
            "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
            "h" | "hour" | "hours" => 3600.0,
            _ => break,
        };
        (total, found, rest) = (total + number * secs, true, next);
    }
    found.then(|| bounded(total)).flatten()
}

fn bounded(secs: f64) -> Option<Duration> {
    let sane = secs.is_finite() && secs >= 0.0;
    sane.then(|| Duration::from_secs_f64(secs.min(WAIT_SECS_MAX)))
}

/// Pause after `failures` consecutive failures (1 is the first). Doubles up to a minute; `seed`
/// picks a point between half of that and the whole, so that workers do not retry at once.
pub(crate) fn back_off(failures: u32, seed: u64) -> Duration {
    let doublings = failures.saturating_sub(1).min(DOUBLINGS_MAX);
    let whole = (FIRST_MS << doublings).min(LONGEST_MS);
    let half = whole / 2;
    let chance = mixed(seed ^ u64::from(failures).rotate_left(32));
    Duration::from_millis(half + chance % (whole - half + 1))
}

/// Final step of SplitMix64: similar seeds give unrelated numbers.
fn mixed(seed: u64) -> u64 {
    let mut bits = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    mod wait {
        use super::super::*;
        use reqwest::header::{HeaderName, HeaderValue};

        #[track_caller]
        fn check(headers: &[(&'static str, &str)], text: &str, expected_ms: Option<u64>) {
            let mut map = HeaderMap::new();
            for (name, value) in headers {
                let value = HeaderValue::from_str(value).unwrap();
                map.insert(HeaderName::from_static(name), value);
            }
            let now = Timestamp::parse("2026-11-21T09:00:00Z").unwrap();
            let wait = wait_of(&map, text, now);
            assert_eq!(wait, expected_ms.map(Duration::from_millis), "{headers:?} {text}");
        }

        #[test]
        fn every_header_is_read() {
            check(&[("retry-after", "7")], "", Some(7_000));
            check(&[("retry-after", " 0.25 ")], "", Some(250));
            check(&[("retry-after", "20s")], "", Some(20_000));
            check(&[("retry-after", "1"), ("retry-after-ms", "1250")], "", Some(1_250));
            check(&[("llm_provider-retry-after", "3")], "", Some(3_000));
            check(&[("retry-after", "Sat, 21 Nov 2026 09:00:10 GMT")], "", Some(10_000));
            check(&[("retry-after", "Sat, 21 Nov 2026 08:00:00 GMT")], "", Some(0));
        }

        #[test]
        fn nonsense_is_no_wait_and_long_waits_are_bounded() {
            for nonsense in ["soon", "-1", "NaN", "inf", ""] {
                check(&[("retry-after", nonsense)], "", None);
            }
            check(&[("retry-after", "9999999999")], "", Some(86_400_000));
            check(&[], "rate limit reached", None);
            check(&[], "try again in a while", None);
        }

        #[test]
        fn message_is_read_where_headers_are_silent() {
            check(&[], "no deployments, try again in 5 seconds. cooldown", Some(5_000));
            check(&[], "please try again in 20ms.", Some(20));
            check(&[], "please retry after 1.5s", Some(1_500));
            check(&[], "please try again in 1m20s.", Some(80_000));
            check(&[], "{\"retrydelay\": \"31s\"}", Some(31_000));
            check(&[("retry-after", "2")], "try again in 5 seconds", Some(2_000));
        }
    }

    mod back_off {
        use super::super::*;
        use std::collections::BTreeSet;

        proptest::proptest! {
            #[test]
            fn pause_lies_between_half_and_whole(failures: u32, seed: u64) {
                let doubled = FIRST_MS << failures.saturating_sub(1).min(DOUBLINGS_MAX);
                let whole = Duration::from_millis(doubled.min(LONGEST_MS));
                let pause = back_off(failures, seed);
                assert!(whole / 2 <= pause && pause <= whole);
                assert_eq!(pause, back_off(failures, seed), "same seed, same pause");
            }
        }

        #[test]
        fn workers_do_not_come_back_at_once() {
            let pauses: BTreeSet<Duration> = (0..100).map(|seed| back_off(4, seed)).collect();
            assert!(pauses.len() > 90);
        }
    }
}
