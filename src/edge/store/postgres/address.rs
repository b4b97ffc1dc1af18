//! Where the server is, out of a URL. What is shown of it never holds the password.

use super::super::error::{Fault, StoreErrorKind};
use super::tls::{Proof, Tls};
use std::fmt::Write as _;
use std::time::Duration;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

/// How long we try to reach one address of the server, in seconds, unless the URL says otherwise.
pub(super) const CONNECT_SECS: u64 = 10;
/// How long we wait until the server has let us in, in seconds: it may have many addresses, and be
/// busy starting up.
pub(super) const LOGIN_SECS: u64 = 30;
/// A connection that is silent for this long is asked whether it is alive, in seconds.
const KEEPALIVE_SECS: u64 = 30;
/// How often it is asked before it counts as dead, and after how many seconds again.
const KEEPALIVE_ASKS: u32 = 3;
const KEEPALIVE_AGAIN_SECS: u64 = 10;
/// How long what was sent may stay without a receipt, in seconds.
const RECEIPT_SECS: u64 = 30;
/// What tokio-postgres takes where the URL says nothing.
const KEEPALIVE_UNSET: Duration = Duration::from_secs(2 * 60 * 60);

const _: () = assert!(CONNECT_SECS < LOGIN_SECS);

/// How a server is reached.
#[derive(Clone, Debug)]
pub(in crate::edge::store) struct Address {
    pub(super) config: Config,
    pub(super) tls: Tls,
    shown: String,
}

impl Address {
    /// Reads `postgres://USER:PASSWORD@HOST:PORT/DATABASE?OPTION=VALUE`, with the options of
    /// tokio-postgres and `sslmode=verify-full`.
    pub(in crate::edge::store) fn of_url(url: &str) -> Result<Address, Fault> {
        // Nothing of the URL is repeated: with a slip in it, any part may be the password's.
        let unreadable = || Fault::from(StoreErrorKind::BadUrl("postgres".to_owned()));
        let (url, proof) = proof_of(url);
        let mut config: Config = url.parse().map_err(|_| unreadable())?;
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            config.host("localhost");
        }
        if config.get_application_name().is_none() {
            config.application_name("annalist");
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(Duration::from_secs(CONNECT_SECS));
        }
        if config.get_tcp_user_timeout().is_none() {
            config.tcp_user_timeout(Duration::from_secs(RECEIPT_SECS));
        }
        if config.get_keepalives_idle() == KEEPALIVE_UNSET {
            config.keepalives_idle(Duration::from_secs(KEEPALIVE_SECS));
            config.keepalives_interval(Duration::from_secs(KEEPALIVE_AGAIN_SECS));
            config.keepalives_retries(KEEPALIVE_ASKS);
        }
        let asked = proof == Proof::Asked || config.get_ssl_mode() == SslMode::Require;
        let tls = Tls::new(if asked { Proof::Asked } else { Proof::NotAsked })
            .map_err(|error| Fault::caused(StoreErrorKind::Other, error))?;
        let shown = shown(&config);
        Ok(Address { config, tls, shown })
    }

    /// For people: user, host, port, database and options.
    pub(in crate::edge::store) fn shown(&self) -> &str {
        &self.shown
    }
}

/// libpq's `verify-full` is what we do for `require` too: encryption that anybody may end is little
/// worth. tokio-postgres does not know the word.
fn proof_of(url: &str) -> (String, Proof) {
    const FULL: &str = "sslmode=verify-full";
    let Some((before, options)) = url.split_once('?') else {
        return (url.to_owned(), Proof::NotAsked);
    };
    if !options.split('&').any(|option| option == FULL) {
        return (url.to_owned(), Proof::NotAsked);
    }
    let options: Vec<&str> = options
        .split('&')
        .map(|option| if option == FULL { "sslmode=require" } else { option })
        .collect();
    (format!("{before}?{}", options.join("&")), Proof::Asked)
}

fn shown(config: &Config) -> String {
    let mut shown = "postgres://".to_owned();
    if let Some(user) = config.get_user() {
        let _ = write!(shown, "{user}@");
    }
    let ports = config.get_ports();
    let hosts = config.get_hosts().iter().map(|host| match host {
        Host::Tcp(name) => name.clone(),
        #[cfg(unix)]
        Host::Unix(folder) => folder.display().to_string(),
    });
    let addresses = config.get_hostaddrs().iter().map(ToString::to_string);
    let mut names: Vec<String> = hosts.collect();
    if names.is_empty() {
        names = addresses.collect();
    }
    for (at, name) in names.iter().enumerate() {
        let comma = if at == 0 { "" } else { "," };
        let port = ports.get(at).or(ports.first()).copied().unwrap_or(5432);
        let _ = write!(shown, "{comma}{name}:{port}");
    }
    let _ = write!(shown, "/{}", config.get_dbname().or(config.get_user()).unwrap_or_default());
    if let Some(options) = config.get_options() {
        let _ = write!(shown, "?options={options}");
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(url: &str, expected: &str) {
        assert_eq!(Address::of_url(url).unwrap().shown(), expected);
    }

    #[test]
    fn what_is_shown_of_an_address_never_holds_the_password() {
        check("postgres://u:hunter@h/d", "postgres://u@h:5432/d");
        check("postgresql://u@h:6000/d?password=hunter", "postgres://u@h:6000/d");
        check("postgres://u:hunter@a,b:7/d", "postgres://u@a:5432,b:7/d");
        check(
            "postgres://u@%2Frun/d?options=-csearch_path%3Dx",
            "postgres://u@/run:5432/d?options=-csearch_path=x",
        );
        check("postgres:///d", "postgres://localhost:5432/d");
        for wrong in
            ["postgres://u:hunter@h:x/d", "postgres://h/d?hunter=1", "postgres://h?sslmode=no"]
        {
            let error = Address::of_url(wrong).unwrap_err().at("opening", "there");
            assert!(!format!("{error} {error:?}").contains("hun"), "{error:?}");
        }
    }

    #[test]
    fn who_asks_for_proof_gets_a_connection_that_must_be_secret() {
        for word in ["verify-full", "require"] {
            let url = format!("postgres://u@h/d?application_name=x&sslmode={word}");
            let address = Address::of_url(&url).unwrap();
            assert_eq!(address.config.get_ssl_mode(), SslMode::Require);
            assert_eq!(address.config.get_application_name(), Some("x"));
        }
    }
}
