# list these
default:
    @just --list

# unit tests, with few generated cases a law, and a smoke set of whole processes; under a minute once built
test:
    PROPTEST_CASES=16 cargo test --lib
    cargo test --test it -- examples:: context_cli:: cards:: input:: again:: tidy::

# what .ci/run does
ci:
    bash .ci/run

# the page in a real Chromium: every page and verdict, an accessibility checker, pictures
page:
    cargo build
    cd tests/page && npm install --no-audit --no-fund && node test.mjs

# regenerate schemas, generated docs, recordings that are not a model's, and snapshots; a person reads the diff
bless:
    cargo run --quiet -- schema --write
    cargo run --quiet -- cassette import examples/answers --transcripts examples/sessions --to examples/cassette --model recorded-2026-11
    for case in tests/fixtures/cases/*/; do just recording "$(basename "$case")" || exit 1; done
    INSTA_UPDATE=always cargo test --quiet

# the hand-written recording of a prompt test, from its answers.json and the settings in its case.toml
recording case:
    #!/usr/bin/env bash
    set -euo pipefail
    case=tests/fixtures/cases/{{case}} temp=$(mktemp -d)
    trap 'rm -rf "$temp"' EXIT
    sed '/^\[bars\]/,$d; /^\(about\|conversation\|model\) =/d; s/^\[settings\./[/' "$case/case.toml" > "$temp/config.toml"
    cp "$case/answers.json" "$temp/{{case}}.json"
    cargo run --quiet -- --config "$temp/config.toml" cassette import "$temp/{{case}}.json" --transcripts "$case" --to "$case/cassette" --model hand-written

# licences, advisories, sources
deny:
    cargo deny check

# benches by stage; whole processes are in benches/README.md
bench:
    cargo bench

# workers killed at random moments, then many at once, on SQLite and on the PostgreSQL that answers here
chaos kills="200":
    cargo build --release
    tests/chaos.sh {{kills}}
    tests/chaos.sh 0 '' 8 10000
    just chaos-postgres {{kills}} 4 $(({{kills}} * 15 + 40))
    just chaos-postgres 0 8 10000

[private]
chaos-postgres kills workers jobs:
    psql -qX postgres://postgres@127.0.0.1:5432/test -c 'DROP SCHEMA IF EXISTS annalist_chaos CASCADE'
    tests/chaos.sh {{kills}} 'postgres://postgres@127.0.0.1:5432/test?options=-csearch_path%3Dannalist_chaos' {{workers}} {{jobs}}
    psql -qX postgres://postgres@127.0.0.1:5432/test -c 'DROP SCHEMA annalist_chaos CASCADE'

# real clients against a scripted model, with no network but loopback; ANNALIST_CLIENTS=DIR keeps them there
clients:
    cargo build
    ANNALIST_CLIENTS="${ANNALIST_CLIENTS:-$(mktemp -d)}" tests/clients.py --install

# every fuzz target for ten minutes, one after another; the corpus stays in fuzz/corpus
fuzz seconds="600":
    fuzz/run.sh {{seconds}}

# an hour of workers, kills, faults and edits on each store, then the five promises are checked
soak minutes="60":
    cargo build --release
    tests/soak.py {{minutes}}
    psql -qX postgres://postgres@127.0.0.1:5432/test -c 'DROP SCHEMA IF EXISTS annalist_soak CASCADE' -c 'CREATE SCHEMA annalist_soak'
    tests/soak.py {{minutes}} 'postgres://postgres@127.0.0.1:5432/test?options=-csearch_path%3Dannalist_soak'
    psql -qX postgres://postgres@127.0.0.1:5432/test -c 'DROP SCHEMA annalist_soak CASCADE'
