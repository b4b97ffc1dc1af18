//! `annalist token`: manages tokens of other machines and agents for `annalist serve`.

use super::arguments::{date, named, named_or_here, namespace_or_here, note_unknown};
use super::output::{self, Failure, Result, Row, json_row, time};
use super::settings;
use crate::adapters::{clock, process};
use crate::domain::Timestamp;
use crate::server::token_digest;
use crate::store::{OpenMode, Token, TokenRight};
use clap::Subcommand;
use std::io;
use std::path::Path;
use std::time::Duration;

/// Maximum length of a name, which is part of the source of everything sent with it.
const NAME_LETTERS_MAX: usize = 64;
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  annalist token new laptop --namespace roofs --can write --expires 90d
  annalist token new agent --namespace roofs --can read,write
  annalist token list
  annalist token revoke laptop

A client of `annalist serve` sends its token as `Authorization: Bearer TOKEN`. A token is printed \
once and stored as a hash. A client writes to and reads from the namespace of its token.")]
pub(super) enum Command {
    /// Create a token and print it once
    New {
        /// Name of the machine or agent: letters, digits, `-`, `_` and `.`
        #[arg(value_parser = name)]
        name: String,
        /// Namespace that the token can access; `.` for the current folder's
        #[arg(long, value_name = "NAME", value_parser = namespace_or_here)]
        namespace: String,
        /// Rights of the token, separated by commas
        #[arg(long, value_name = "RIGHTS", required = true, value_delimiter = ',',
            value_parser = named(TokenRight::ALL, TokenRight::name))]
        can: Vec<TokenRight>,
        /// Expiry: a date, or days from now such as 90d
        #[arg(long, value_name = "DATE", value_parser = end)]
        expires: Option<Timestamp>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// List tokens, without their secrets
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Revoke a token
    Revoke {
        /// Name of the token
        name: String,
    },
}

json_row! {
    /// A token, as JSON and in a list.
    pub(super) struct TokenRow of it: &Token {
        name: String = it.name.clone(),
        namespace: String = it.namespace.clone(),
        can: Vec<TokenRight> = it.rights.clone(),
        created_at: String = it.created_at.to_string(),
        expires_at: Option<String> = time(it.expires_at),
        revoked_at: Option<String> = time(it.revoked_at),
        /// Day of its last use.
        used_on: Option<String> = it.used_at.map(Timestamp::day),
        /// Can be used now: neither revoked nor expired.
        valid: bool = it.is_valid(clock::now()),
        /// The token itself, when it is made.
        #[serde(skip_serializing_if = "Option::is_none")]
        token: Option<String> = None,
    }
}

impl Row for TokenRow {
    const HEADER: &'static [&'static str] = &["name", "namespace", "can", "used", "ends"];

    fn cells(&self) -> Vec<String> {
        let day =
            |at: &Option<String>| at.as_deref().and_then(|at| at.get(..10)).map(str::to_owned);
        let revoked = day(&self.revoked_at).map(|day| format!("revoked {day}"));
        let expired = if self.valid { "" } else { "expired " };
        let end = day(&self.expires_at).map(|day| format!("{expired}{day}"));
        let can: Vec<&str> = self.can.iter().map(|right| right.name()).collect();
        vec![
            self.name.clone(),
            self.namespace.clone(),
            can.join(","),
            self.used_on.clone().unwrap_or_else(|| "never".to_owned()),
            revoked.or(end).unwrap_or_else(|| "never".to_owned()),
        ]
    }
}

pub(super) async fn run(command: Command, file: Option<&Path>) -> Result<()> {
    let config = settings::load(file)?;
    let is_new = matches!(command, Command::New { .. });
    let mode = if is_new { OpenMode::Create } else { OpenMode::Existing };
    let store = settings::open_store(&config, mode)?;
    let now = clock::now();
    match command {
        Command::New { name, namespace, mut can, expires, json } => {
            if expires.is_some_and(|end| end <= now) {
                return Err(Failure::usage("--expires: expected a time in the future"));
            }
            can.sort();
            can.dedup();
            let named = named_or_here(Some(&namespace), Some(&store), &config).await?;
            let namespace = named.unwrap_or(namespace);
            note_unknown(&store, Some(&namespace)).await?;
            let secret = process::secret().map_err(Failure::failed)?;
            let token = Token {
                name,
                namespace,
                rights: can,
                created_at: now,
                expires_at: expires,
                revoked_at: None,
                used_at: None,
            };
            let kept = store.keep_token(token.clone(), token_digest(secret.as_bytes()));
            if !kept.await? {
                return Err(Failure::usage(format!(
                    "`{}`: a token has this name: choose another, or revoke it with \
                     `annalist token revoke`",
                    token.name
                )));
            }
            let text = if json {
                let row = TokenRow { token: Some(secret), ..TokenRow::of(&token) };
                serde_json::to_string_pretty(&row).map_err(io::Error::from)?
            } else {
                secret
            };
            if output::bytes(format!("{text}\n").as_bytes()).is_err() {
                store.revoke_token(token.name, now).await?;
                return Err(Failure::failed("the token could not be printed and was revoked"));
            }
            if !json {
                output::note("the token is not shown again");
            }
        }
        Command::List { json } => {
            let tokens = store.tokens().await?;
            let rows: Vec<TokenRow> = tokens.iter().map(TokenRow::of).collect();
            output::rows(&rows, json, "no tokens: `annalist token new` creates one")?;
        }
        Command::Revoke { name } => {
            if !store.revoke_token(name.clone(), now).await? {
                return Err(Failure::usage(format!(
                    "no active token `{name}`: `annalist token list` lists them"
                )));
            }
            output::note(&format!("revoked: {name}"));
        }
    }
    Ok(())
}

fn name(text: &str) -> Result<String, String> {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    let is_name = (1..=NAME_LETTERS_MAX).contains(&text.len()) && text.chars().all(plain);
    let expected = "letters, digits, `-`, `_` and `.`";
    is_name
        .then(|| text.to_owned())
        .ok_or(format!("expected at most {NAME_LETTERS_MAX} {expected}"))
}

/// Parses a date, or a number of days from now such as `90d`.
fn end(text: &str) -> Result<Timestamp, String> {
    match text.strip_suffix('d').and_then(|days| days.parse::<u32>().ok()) {
        Some(days) => Ok(clock::now().after(DAY.saturating_mul(days))),
        None => date(text),
    }
}
