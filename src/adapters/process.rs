//! Unique process names, checks whether a process has ended, and unguessable secrets.

use super::clock;
use crate::domain::Digest;
use rustls::crypto::ring::default_provider;
use std::path::Path;
use std::sync::LazyLock;

/// Number of digits of a digest in a name.
const LETTERS: usize = 8;

/// Unique name of this process: host, PID, and digests of boot and start time.
pub(crate) fn name() -> &'static str {
    static NAME: LazyLock<String> = LazyLock::new(|| {
        let (pid, began) = (std::process::id(), clock::now());
        let (host, place) = (host(), place());
        let began = Digest::of(&["process", &place, &pid.to_string(), &began.to_string()]);
        let place = if place.is_empty() { "-".repeat(LETTERS) } else { place };
        format!("{host}:{pid}:{place}{:.LETTERS$}", began.to_string())
    });
    &NAME
}

/// True only if the process has surely ended; other hosts, containers and boots count as alive.
pub(crate) fn is_gone(name: &str) -> bool {
    let mut parts = name.rsplitn(3, ':');
    let (Some(digests), Some(pid)) = (parts.next(), parts.next()) else { return false };
    let place = place();
    let is_here = !place.is_empty() && digests.starts_with(&place);
    let is_pid = !pid.is_empty() && pid.bytes().all(|byte| byte.is_ascii_digit());
    is_here && is_pid && has_ended(pid)
}

/// True if there is no process `pid`, or only the remains of one that its parent has not noticed yet.
fn has_ended(pid: &str) -> bool {
    let folder = Path::new("/proc").join(pid);
    let stat = std::fs::read(folder.join("stat")).unwrap_or_default();
    // The name in parentheses before the state may contain anything.
    let state = stat.rsplit(|byte| *byte == b')').next().and_then(|rest| rest.trim_ascii().first());
    matches!(state, Some(b'Z' | b'X')) || !folder.exists()
}

/// Digest of boot and PID namespace, common to processes that see one another; may be empty.
fn place() -> String {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id");
    let space = std::fs::read_link("/proc/self/ns/pid");
    match (boot, space) {
        (Ok(boot), Ok(space)) => {
            let digest = Digest::of(&["place", boot.trim(), &space.display().to_string()]);
            format!("{:.LETTERS$}", digest.to_string())
        }
        (Ok(_) | Err(_), Ok(_) | Err(_)) => String::new(),
    }
}

pub(crate) fn host() -> &'static str {
    static HOST: LazyLock<String> = LazyLock::new(|| {
        let named = std::env::var_os("HOSTNAME").and_then(|name| name.into_string().ok());
        let told = || std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
        let name = named.or_else(told).unwrap_or_default();
        let plain: String = name.trim().chars().filter(|c| !c.is_control()).take(64).collect();
        if plain.is_empty() { "here".to_owned() } else { plain }
    });
    &HOST
}

/// Returns 256 random bits as 64 hexadecimal digits.
///
/// # Errors
/// If the system's random number generator fails.
pub(crate) fn secret() -> Result<String, String> {
    let mut bytes = [0; 32];
    let filled = default_provider().secure_random.fill(&mut bytes);
    filled.map_err(|_| "the system provides no random numbers".to_owned())?;
    Ok(blake3::Hash::from_bytes(bytes).to_hex().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_not_gone_and_names_of_others_are_not_judged() {
        assert!(!is_gone(name()));
        for strange in ["", "host", "host:1", "host:4000000000:deadbeefdeadbeef", "::", "a:b:c"] {
            assert!(!is_gone(strange), "{strange}");
        }
    }

    #[test]
    fn a_process_of_this_place_that_has_ended_is_gone() {
        let mut ended = std::process::Command::new("true").spawn().unwrap();
        let pid = ended.id();
        ended.wait().unwrap();
        let digests = name().rsplit(':').next().unwrap();
        // On systems without /proc every process counts as alive.
        assert_eq!(is_gone(&format!("some:host:{pid}:{digests}")), !place().is_empty());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_process_that_has_ended_unnoticed_is_gone() {
        let mut ended = std::process::Command::new("true").spawn().unwrap();
        let digests = name().rsplit(':').next().unwrap();
        let name = format!("some:host:{}:{digests}", ended.id());
        // Terminates: it ends by itself, and nobody waits for it until then.
        while !is_gone(&name) {
            std::thread::yield_now();
        }
        assert!(Path::new("/proc").join(ended.id().to_string()).exists());
        ended.wait().unwrap();
    }

    #[test]
    fn no_secret_comes_twice() {
        let [one, other] = [secret().unwrap(), secret().unwrap()];
        assert_eq!(one.len(), 64);
        assert_ne!(one, other);
    }
}
