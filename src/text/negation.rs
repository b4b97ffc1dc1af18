//! Words that say no, in the languages that agents are talked to in. Every comparison of statements uses these.

use std::collections::HashSet;
use std::sync::LazyLock;

/// Words that say no, folded and separated by bars.
const WORDS: &str = "not|no|never|nothing|none|nobody|neither|nor|don't|doesn't|didn't|won't|can't|cannot|shouldn't|isn't|aren't|wasn't|weren't|\
     without|nicht|nichts|kein|keine|keinen|nie|niemals|ohne|değil|yok|asla|olmadan|nunca|jamás|sin|pas|\
     jamais|sans|aucun|n'est|ningún|ninguno|ninguna|nessun|nessuna|нет|non|niet|geen|não|не";

/// All of them.
pub(crate) static NEGATIONS: LazyLock<HashSet<&str>> = LazyLock::new(|| WORDS.split('|').collect());
