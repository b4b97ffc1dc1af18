//! Whether the words that gold quotes stand in the transcript. They are for people; a quote that is nowhere is most
//! often one of another transcript, or of memory.

use super::judge::problem;
use super::prepare::Prepared;
use crate::score::Problem;

/// The quotes of a case that are in none of its entries: warnings.
pub(super) fn problems(case: &Prepared) -> Vec<Problem> {
    let cut = case.conversations.iter().flat_map(|it| &it.slices);
    let cut = cut.flat_map(|(cutting, _)| &cutting.entries);
    let skipped = case.conversations.iter().flat_map(|it| &it.skipped);
    let texts: Vec<&str> = cut.chain(skipped).map(|entry| entry.text.as_str()).collect();
    let stands = |quote: &str| texts.iter().any(|text| text.contains(quote));
    let quoted = case.gold.items.iter().filter_map(|it| Some((&it.id, it.quote.as_deref()?)));
    // Of a Markdown transcript a line may be quoted with what marks who speaks, which no entry keeps.
    let bare = |quote: &str| quote.trim_end().trim_start_matches(['#', '>', ' ', '\n']).to_owned();
    let missing = quoted.filter(|(_, quote)| !stands(quote.trim()) && !stands(&bare(quote)));
    let what = "its quote is in no entry of the transcript: expected words as they stand there";
    missing.map(|(id, _)| problem("quote-not-found", false, format!("{id}: {what}"))).collect()
}
