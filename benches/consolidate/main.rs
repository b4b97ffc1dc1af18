//! Consolidation by rule as whole runs, with figures: `cargo bench --bench consolidate`, or with the number of records
//! and memories, `-- 10000 100000`. One core; the peak of memory is that of the process so far.
#![expect(clippy::print_stdout, reason = "a bench prints its figures")]

mod material;

use annalist::{Memories, Verdicts, consolidate};
use annalist::{MemoryMap, RecordId};
use material::{Dice, records};
use std::error::Error;
use std::time::Instant;

/// Records and memories of each run, unless others are named.
const COUNTS: [usize; 4] = [10_000, 30_000, 100_000, 200_000];

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let test = args.iter().any(|arg| arg == "--test");
    let mut counts: Vec<usize> = args.iter().filter_map(|arg| arg.parse().ok()).collect();
    if counts.is_empty() {
        counts = if test { vec![500] } else { COUNTS.to_vec() };
    }
    println!("records  memories  index s  plan s  us/record  peak MB  dispositions");
    for count in counts {
        run(count, test)?;
    }
    Ok(())
}

/// `count` records against about as many memories, both from one seed.
fn run(count: usize, check: bool) -> Result<(), Box<dyn Error>> {
    let mut dice = Dice(0x5eed_1234_5678_9abc);
    let names = count as u64 / 4;
    let state = memories(count, &mut dice, names)?;
    let new = records(count, 2 * count, &mut dice, names);
    let ids: Vec<RecordId> = new.iter().map(|record| record.id).collect();

    let started = Instant::now();
    let expected = state.len();
    let known = check.then(|| state.clone());
    let mut memories = Memories::new("bench");
    // As a store hands them over: one by one, and not kept beside the index.
    state.into_values().for_each(|memory| assert!(memories.insert(memory)));
    let indexed = started.elapsed().as_secs_f64();

    let started = Instant::now();
    let (plan, _) = consolidate(&new, &memories, &Verdicts::none());
    let planned = started.elapsed().as_secs_f64();
    if let Some(mut known) = known {
        assert_eq!(plan.check(&ids, &known), []);
        plan.apply(&mut known).map_err(|moved| format!("{moved:?}"))?;
        let mut after = Memories::of("bench", &known);
        ids.iter().for_each(|id| after.take(*id));
        assert!(consolidate(&new, &after, &Verdicts::none()).0.is_empty());
    }
    println!(
        "{count:7}  {expected:8}  {indexed:7.2}  {planned:6.2}  {:9.1}  {:7}  {:?}, {} left open",
        planned * 1e6 / count as f64,
        peak().unwrap_or(0),
        plan.counts(),
        plan.left_open.len(),
    );
    Ok(())
}

/// About `count` memories, made of records as all memories are.
fn memories(count: usize, dice: &mut Dice, names: u64) -> Result<MemoryMap, Box<dyn Error>> {
    /// Records of one batch.
    const BATCH: usize = 10_000;
    let (mut state, mut made) = (MemoryMap::new(), 0);
    while state.len() < count {
        let batch = records(BATCH.min(count), made, dice, names);
        made += batch.len();
        let memories = Memories::of("bench", &state);
        let (plan, _) = consolidate(&batch, &memories, &Verdicts::none());
        plan.apply(&mut state).map_err(|moved| format!("{moved:?}"))?;
    }
    while state.len() > count {
        state.pop_last();
    }
    Ok(state)
}

/// The most memory that the process held, in megabytes.
fn peak() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().trim_end_matches(" kB").parse::<u64>().ok()? / 1024)
}
