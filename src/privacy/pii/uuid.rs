//! Identifiers that are made of hex digits and dashes, 8-4-4-4-12: the digits in them are nobody's
//! number, though they may look like a card or a phone.

use super::cursor::{Cursor, Found};
use crate::privacy::letter::is_digit;

/// Bytes of an identifier.
const LENGTH: usize = 36;
/// Where the dashes of an identifier stand.
const DASHES: [usize; 4] = [8, 13, 18, 23];

/// The clusters without what lies in an identifier.
pub(super) fn outside(text: &str, clusters: Vec<Found>) -> Vec<Found> {
    let bytes = text.as_bytes();
    let mut outside = Vec::with_capacity(clusters.len());
    for cluster in clusters {
        let mut kept_to = cluster.start;
        // An identifier may begin before the cluster, with letters.
        let from = cluster.start.saturating_sub(LENGTH);
        let near = bytes.get(from..cluster.end).unwrap_or_default();
        let mut id_end = 0;
        for dash in memchr::memchr_iter(b'-', near) {
            let Some(start) = (from + dash).checked_sub(8).filter(|start| id_end <= *start) else {
                continue;
            };
            if !is_id(text, start) {
                continue;
            }
            id_end = start + LENGTH;
            outside.extend(trimmed(text, kept_to..start));
            kept_to = kept_to.max(id_end);
        }
        outside.extend(trimmed(text, kept_to..cluster.end));
    }
    outside
}

/// From the first digit on, so that no digit of an identifier is next to it.
fn trimmed(text: &str, piece: Found) -> Option<Found> {
    let digits = text.get(piece.clone())?;
    let opens = |letter| is_digit(letter) || letter == '+' || letter == '(';
    let start = piece.start + digits.find(opens)?;
    Some(start..piece.end)
}

/// Whether an identifier stands here, and no word goes on at either side.
fn is_id(text: &str, start: usize) -> bool {
    let end = start + LENGTH;
    let fits = |(at, byte): (usize, &u8)| match DASHES.contains(&at) {
        true => *byte == b'-',
        false => byte.is_ascii_hexdigit(),
    };
    let id = text.as_bytes().get(start..end);
    id.is_some_and(|id| id.iter().enumerate().all(fits))
        && Cursor::new(text, start).word_starts()
        && Cursor::new(text, end).word_ends()
}
