//! What the gate lets through, and what it counts: `cargo run --example gate`.
#![expect(clippy::print_stdout, reason = "an example prints")]

use annalist::{Gate, Pii, RedactionReport};
use std::error::Error;

const RAW: &str = "\
Deploy as before, with postgres://ledger:correct-horse@db.example.com/payouts.
<private>
Mira is on leave until Thursday.
</private>
export API_KEY=\"kx81-Zp04-qq7\"
Ask ada@example.com or call +1 (555) 010-4477 if it fails.
";

fn main() -> Result<(), Box<dyn Error>> {
    let gate = Gate::new(&Pii::ALL);
    let mut report = RedactionReport::default();
    let text = gate.redact_into(RAW, &mut report);
    println!("{}", text.as_str());

    // The report knows rules and counts, never values; so does what `Debug` shows.
    println!("masked {} in {text:?}:", report.total());
    for (rule, count) in &report.counts {
        println!("  {count} {rule}");
    }
    if gate.redact(text.as_str()) != text {
        return Err("passing the gate twice changes nothing".into());
    }
    Ok(())
}
