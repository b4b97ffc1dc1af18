//! Law: whatever a client hands to a hook, the end of a transcript never says otherwise than the whole, and a session's
//! name is safe in a path or refused.
#![no_main]

use annalist::{HookFolder, last_usage};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (&str, u16, &[u8])| {
    let (session, from, bytes) = input;
    let from = usize::from(from) % (bytes.len() + 1);
    let (whole, tail) = (last_usage(bytes, true), last_usage(&bytes[from..], false));
    let cut_off = last_usage(b"", false);
    assert!(tail == whole || tail == cut_off, "{tail:?} of {whole:?}");
    if HookFolder::is_name(session) {
        assert!(!session.contains(['/', '\\', '.', ':']) && session.len() < 256, "{session:?}");
    }
});
