//! What PostgreSQL says went wrong, as our kinds. Neither passwords nor rows are repeated: of what
//! the server said only the first line stays, its details may quote what was written.

use super::super::error::{Fault, Refusal, StoreErrorKind};
use std::error::Error as _;
use tokio_postgres::Error;

/// What the server said.
#[derive(Debug, thiserror::Error)]
#[error("{message} (SQLSTATE {code})")]
struct Said {
    code: String,
    message: String,
}

/// What went wrong on the way.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Lost(String);

impl From<Error> for Fault {
    fn from(error: Error) -> Fault {
        if let Some(said) = error.as_db_error() {
            let code = said.code().code().to_owned();
            let kind = kind_of(&code);
            return Fault::caused(kind, Said { code, message: said.message().to_owned() });
        }
        let cause = || {
            let mut line = error.to_string();
            if let Some(cause) = error.source() {
                line = format!("{line}: {cause}");
            }
            Lost(line)
        };
        Fault::caused(kind_without_code(&error), cause())
    }
}

/// By the codes of PostgreSQL's manual, appendix A.
fn kind_of(code: &str) -> StoreErrorKind {
    match code {
        // Shutting down, crashed, starting up, dropped; too many connections; idle for too long.
        "57P01" | "57P02" | "57P03" | "57P04" | "57P05" | "53300" | "25P03" => {
            StoreErrorKind::Unavailable
        }
        _ if code.starts_with("08") => StoreErrorKind::Unavailable,
        // No lock in time, a deadlock, overtaken, no answer in time.
        "55P03" | "40P01" | "40001" | "57014" => StoreErrorKind::Locked,
        "53100" => StoreErrorKind::Full,
        "25006" => StoreErrorKind::ReadOnly,
        "28P01" => StoreErrorKind::Refused(Refusal::Password),
        _ if code.starts_with("28") => StoreErrorKind::Refused(Refusal::Login),
        "3D000" => StoreErrorKind::Refused(Refusal::Database),
        "3F000" => StoreErrorKind::Refused(Refusal::Schema),
        "42501" => StoreErrorKind::Refused(Refusal::Rights),
        "XX001" | "XX002" => StoreErrorKind::Damaged,
        _ => StoreErrorKind::Other,
    }
}

fn kind_without_code(error: &Error) -> StoreErrorKind {
    if error.is_closed() {
        return StoreErrorKind::Unavailable;
    }
    let Some(cause) = error.source() else { return StoreErrorKind::Other };
    if let Some(io) = cause.downcast_ref::<std::io::Error>() {
        let inner = io.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
        return match inner {
            Some(rustls::Error::InvalidCertificate(_)) => {
                StoreErrorKind::Refused(Refusal::Certificate)
            }
            Some(_) => StoreErrorKind::Refused(Refusal::Tls),
            None => StoreErrorKind::Unavailable,
        };
    }
    // These have no type of their own.
    match (error.to_string().as_str(), cause.to_string().as_str()) {
        (_, "password missing") => StoreErrorKind::Refused(Refusal::Password),
        ("error performing TLS handshake", _) => StoreErrorKind::Refused(Refusal::Tls),
        ("authentication error", _) => StoreErrorKind::Refused(Refusal::Login),
        _ => StoreErrorKind::Other,
    }
}
