//! The only source of randomness: unguessable secrets.

use rustls::crypto::ring::default_provider;

/// Returns 256 random bits as 64 hexadecimal digits.
///
/// # Errors
/// If the system's random number generator fails.
pub(crate) fn secret() -> Result<String, String> {
    let mut bytes = [0; 32];
    let filled = default_provider().secure_random.fill(&mut bytes);
    filled.map_err(|_| "the system gives no random numbers".to_owned())?;
    Ok(blake3::Hash::from_bytes(bytes).to_hex().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_secret_comes_twice() {
        let [one, other] = [secret().unwrap(), secret().unwrap()];
        assert_eq!(one.len(), 64);
        assert_ne!(one, other);
    }
}
