#!/bin/sh
# What kcat does with its defaults: kcat.sh HOST:PORT
set -eu
broker=$1
run=$(date +%s)-$$
topic=kcat-$run
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
exec 3>&1

# A minute is enough for anything; 124 is what ends when it is over.
ask() {
    timeout 60 kcat -b "$broker" "$@" || {
        echo "failed: kcat $* ends with $?" >&3
        exit 1
    }
}

# Says that a part went well if two files are the same.
same() {
    part=$1
    shift
    if ! cmp -s "$@"; then
        echo "failed $part:"
        diff "$@" | head
        exit 1
    fi
    echo "ok $part"
}

seq 1000 >"$work/sent"

# Nobody has made the topic.
for compression in none gzip snappy lz4 zstd; do
    ask -P -t "$topic-$compression" -z "$compression" -X enable.idempotence=true <"$work/sent"
    ask -C -t "$topic-$compression" -o beginning -e -q | sort -n >"$work/found"
    same "$compression" "$work/sent" "$work/found"
done
ask -L -J >"$work/listed"
grep -q "\"topic\":\"$topic-none\"" "$work/listed" || { echo 'failed metadata'; exit 1; }
echo 'ok metadata'

printf 'key:value\n' | ask -P -t "$topic" -p 0 -K : -H 'name=it'
echo 'key value name=it' >"$work/sent"
ask -C -t "$topic" -p 0 -o beginning -e -q -f '%k %s %h\n' >"$work/found"
same header "$work/sent" "$work/found"
echo "$topic [0] offset 1" >"$work/sent"
ask -Q -t "$topic:0:-1" >"$work/found"
same offset "$work/sent" "$work/found"

# A group reads on where it was.
seq 100 >"$work/sent"
ask -P -t "$topic-group" <"$work/sent"
ask -G "group-$run" -c 100 -q -X auto.offset.reset=earliest "$topic-group" 2>"$work/told" | sort -n >"$work/found"
same group "$work/sent" "$work/found"
seq 101 120 >"$work/sent"
ask -P -t "$topic-group" <"$work/sent"
ask -G "group-$run" -c 20 -q -X auto.offset.reset=earliest "$topic-group" 2>"$work/told" | sort -n >"$work/found"
same 'group again' "$work/sent" "$work/found"

seq 10 >"$work/sent"
ask -P -t "$topic-transaction" -X transactional.id="kcat-$run" <"$work/sent"
ask -C -t "$topic-transaction" -o beginning -e -q -X isolation.level=read_committed | sort -n >"$work/found"
same transaction "$work/sent" "$work/found"
