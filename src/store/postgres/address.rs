//! Address of a PostgreSQL server and its TLS settings, parsed from a URL. The password is never shown.

use crate::store::{Fault, Result, StoreErrorKind};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, SignatureScheme};
use rustls_platform_verifier::Verifier;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::{Client, Config, Connection, Socket};
use tokio_postgres_rustls::MakeRustlsConnect;

/// Connect timeout per server address, in seconds, unless the URL sets one.
const CONNECT_SECS: u64 = 10;
/// Timeout for connecting and logging in, in seconds: a server may have many addresses, or be starting up.
const LOGIN_SECS: u64 = 30;
const KEEPALIVE_SECS: u64 = 30;
const KEEPALIVE_PROBES: u32 = 3;
const KEEPALIVE_INTERVAL_SECS: u64 = 10;
/// Maximum time that sent data may stay unacknowledged, in seconds.
const ACKNOWLEDGE_SECS: u64 = 30;
/// Default of tokio-postgres.
const KEEPALIVE_UNSET: Duration = Duration::from_secs(2 * 60 * 60);

const _: () = assert!(CONNECT_SECS < LOGIN_SECS);

type TlsStream = <MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream;

#[derive(Clone)]
pub(in crate::store) struct Address {
    config: Config,
    tls: MakeRustlsConnect,
    shown: String,
}

impl Address {
    /// Parses `postgres://USER:PASSWORD@HOST:PORT/DATABASE?OPTION=VALUE` with the options of tokio-postgres and
    /// `sslmode=verify-full`. `sslmode=require` verifies the certificate too, unlike in libpq.
    pub(in crate::store) fn of_url(url: &str) -> Result<Address> {
        // The error repeats nothing of the URL: any part of a mistyped one may be the password.
        let unreadable = || Fault::from(StoreErrorKind::BadUrl("postgres".to_owned()));
        let mut config: Config = without_verify_full(url).parse().map_err(|_| unreadable())?;
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
            config.tcp_user_timeout(Duration::from_secs(ACKNOWLEDGE_SECS));
        }
        if config.get_keepalives_idle() == KEEPALIVE_UNSET {
            config.keepalives_idle(Duration::from_secs(KEEPALIVE_SECS));
            config.keepalives_interval(Duration::from_secs(KEEPALIVE_INTERVAL_SECS));
            config.keepalives_retries(KEEPALIVE_PROBES);
        }
        let tls = tls(config.get_ssl_mode())
            .map_err(|error| Fault::caused(StoreErrorKind::Other, error))?;
        let shown = shown(&config);
        Ok(Address { config, tls, shown })
    }

    /// Connects and logs in.
    pub(in crate::store) async fn connect(
        &self,
    ) -> Result<(Client, Connection<Socket, TlsStream>)> {
        let login = self.config.connect(self.tls.clone());
        let login = timeout(Duration::from_secs(LOGIN_SECS), login).await;
        Ok(login.map_err(|late| Fault::caused(StoreErrorKind::Unavailable, late))??)
    }

    /// User, host, port, database and options, for display.
    pub(in crate::store) fn shown(&self) -> &str {
        &self.shown
    }
}

/// Replaces `sslmode=verify-full`, unknown to tokio-postgres, with `require`, which means the same here.
fn without_verify_full(url: &str) -> String {
    let Some((before, options)) = url.split_once('?') else { return url.to_owned() };
    let known = |option| if option == "sslmode=verify-full" { "sslmode=require" } else { option };
    format!("{before}?{}", options.split('&').map(known).collect::<Vec<_>>().join("&"))
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
    let mut names: Vec<String> = hosts.collect();
    if names.is_empty() {
        names = config.get_hostaddrs().iter().map(ToString::to_string).collect();
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

/// TLS through rustls with ring. Without `require` the certificate is not verified, as in libpq.
fn tls(mode: SslMode) -> Result<MakeRustlsConnect, rustls::Error> {
    let provider = Arc::new(ring::default_provider());
    let verifier: Arc<dyn ServerCertVerifier> = if mode == SslMode::Require {
        Arc::new(Verifier::new(Arc::clone(&provider))?)
    } else {
        Arc::new(AnyCertificate(Arc::clone(&provider)))
    };
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    // Needed for `sslnegotiation=direct`.
    config.alpn_protocols = vec![b"postgresql".to_vec()];
    Ok(MakeRustlsConnect::new(config))
}

/// Accepts any certificate whose private key the server holds.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
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
            let error = Address::of_url(wrong).map(drop).unwrap_err().at("opening", "there");
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
