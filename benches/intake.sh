#!/bin/sh
# Measures how many slice documents a second `annalist serve` accepts durably on SQLite: CLIENTS at a time, each sending
# bodies of BATCH documents of sessions of their own. Builds the release unless ANNALIST names a binary.
set -eu
DOCUMENTS=${DOCUMENTS:-20000} CLIENTS=${CLIENTS:-8} BATCH=${BATCH:-100} PORT=${PORT:-4899}
if [ -z "${ANNALIST:-}" ]; then
    cargo build --release --locked
    ANNALIST=$PWD/target/release/annalist
fi
place=$(mktemp -d)
cd "$place"
mkdir .annalist bodies
token=$("$ANNALIST" token new bench --namespace bench --can write 2>/dev/null)
ANNALIST__QUEUE__INTAKE_JOBS_MAX=10000000 "$ANNALIST" serve --listen "127.0.0.1:$PORT" 2>serve.log &
server=$!
trap 'kill $server; rm -r "$place"' EXIT
awk -v documents="$DOCUMENTS" -v batch="$BATCH" 'BEGIN {
    for (at = 0; at < documents; at++) {
        file = sprintf("bodies/%06d", int(at / batch))
        printf "{\"session\":\"s%d\",\"closed\":true,\"entries\":[{\"speaker\":\"person\",\"text\":\"Roof %d gets slate, not tin: it lasts longer and the rain is not heard.\"},{\"speaker\":\"assistant\",\"text\":\"Slate it is.\"}]}\n", at, at > file
    }
}'
until curl -sf "http://127.0.0.1:$PORT/healthz" >answer; do sleep 0.1; done
begun=$(date +%s%N)
ls bodies/* | xargs -P "$CLIENTS" -I{} curl -sf -o {}.answer -H "Authorization: Bearer $token" \
    --data-binary @{} "http://127.0.0.1:$PORT/v1/slices"
took=$((($(date +%s%N) - begun) / 1000000))
echo "$DOCUMENTS documents in $took ms: $((DOCUMENTS * 1000 / took)) a second, $CLIENTS clients, $BATCH a body"
