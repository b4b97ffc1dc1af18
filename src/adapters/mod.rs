//! Adapters: clock, file system, git, HTTP, NATS (feature `nats`), metrics, traces.

pub(crate) mod client_files;
pub(crate) mod clock;
pub(crate) mod code;
pub(crate) mod files;
pub(crate) mod hook_folder;
pub(crate) mod http_server;
pub(crate) mod memory_files;
pub(crate) mod metrics;
#[cfg(feature = "nats")]
pub(crate) mod nats;
pub(crate) mod otel;
pub(crate) mod process;
pub(crate) mod repository;
pub(crate) mod spool;
pub(crate) mod walk;
pub(crate) mod watch;

use reqwest::{Client, ClientBuilder, Url, redirect};
use std::net::IpAddr;

/// Returns a builder of HTTP clients for `url` that follow no redirects: a redirected POST becomes a GET. Proxies come from the
/// environment; requests to this machine never use one.
pub(crate) fn http_client(url: &Url) -> ClientBuilder {
    // Fails only if a provider is already installed.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = Client::builder()
        .user_agent(concat!("annalist/", env!("CARGO_PKG_VERSION")))
        .http1_only()
        .redirect(redirect::Policy::none());
    if url.scheme() == "http" {
        // Otherwise the machine's certificates are read, and it may have none.
        builder = builder.tls_certs_only([]);
    }
    if is_loopback(url) { builder.no_proxy() } else { builder }
}

/// True if the host of a URL is this machine.
pub(crate) fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    let name = host.trim_end_matches('.');
    let address = host.parse().map(|address: IpAddr| address.to_canonical().is_loopback());
    address.unwrap_or(name == "localhost" || name.ends_with(".localhost"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(hosts: &[&str], expected: bool) {
        for host in hosts {
            let url = Url::parse(&format!("http://{host}:8080/v1")).unwrap();
            assert_eq!(is_loopback(&url), expected, "{host}");
        }
    }

    #[test]
    fn addresses_of_this_machine_have_no_proxy() {
        check(&["127.0.0.1", "127.8.9.1", "127.1", "2130706433", "[::1]"], true);
        check(&["[::ffff:127.0.0.1]", "LocalHost", "localhost.", "models.localhost"], true);
        check(&["10.0.0.1", "[::2]", "0.0.0.0", "example.org", "localhost.example.org"], false);
    }
}
