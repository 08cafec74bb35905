#!/bin/sh
# Reads a topic with kcat, plaintext and over TLS in turns, and prints for each read the rate and the CPU
# time of the node. Each read is the first after a start, in which checksums are verified. Needs
# target/release/telpher, kcat and openssl. All data is in a directory of target/.
#
#   sh bench/consume-tls.sh [REPEATS]
set -eu
cd "$(dirname "$0")/.."
repeats=${1:-5}
telpher=$PWD/target/release/telpher
messages=4000000
size=1024
port=$((20000 + $$ % 20000))
dir=$(mktemp -d target/consume-tls.XXXXXX)
node=

stop() {
    [ -z "$node" ] || { kill "$node" && wait "$node" || true; }
    node=
}
trap 'stop; rm -rf "$dir"' EXIT
trap 'exit 1' INT TERM

# start ARGUMENT...: a node, which answers when this returns
start() {
    "$telpher" serve --data "$dir/data" --kafka-listen 127.0.0.1:$port --native-listen none \
        --http-listen none --slim-listen none "$@" >"$dir/log" 2>&1 &
    node=$!
    for _ in $(seq 100); do
        read_topic -L >/dev/null 2>&1 && return
        sleep 0.1
    done
    cat "$dir/log" >&2
    exit 1
}

# read_topic ARGUMENT...: kcat with the security of the running node
read_topic() {
    # shellcheck disable=SC2086
    timeout 120 kcat -b 127.0.0.1:$port $security "$@"
}

# cpu: CPU time of the node, in clock ticks
cpu() {
    awk '{ print $14 + $15 }' "/proc/$node/stat"
}

openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost \
    -addext subjectAltName=IP:127.0.0.1 -keyout "$dir/key.pem" -out "$dir/chain.pem" 2>/dev/null
plain="-X security.protocol=plaintext"
tls="-X security.protocol=ssl -X ssl.ca.location=$dir/chain.pem"

security=$plain
start
"$telpher" bench kafka -b 127.0.0.1:$port --mode bulk --acks all -t filled --create-topic \
    -w 0s -d 60s -n $messages --repeats 1 --verify=false >"$dir/fill" 2>&1 || { cat "$dir/fill"; exit 1; }
stop
for repeat in $(seq "$repeats"); do
    for kind in plaintext TLS; do
        case $kind in
            plaintext) security=$plain && start ;;
            TLS) security=$tls && start --tls-certificate "$dir/chain.pem" --tls-key "$dir/key.pem" ;;
        esac
        before=$(cpu)
        begin=$(date +%s%N)
        read=$(read_topic -C -t filled -o beginning -e -q -f '.' -X fetch.message.max.bytes=10000000 \
            -X queued.max.messages.kbytes=200000 | wc -c)
        end=$(date +%s%N)
        ticks=$(($(cpu) - before))
        awk -v kind="$kind" -v repeat="$repeat" -v read="$read" -v ns=$((end - begin)) \
            -v ticks="$ticks" -v hz="$(getconf CLK_TCK)" -v size=$size 'BEGIN {
                printf "%d %-9s %d messages, %.2f GB/s, node CPU %.3f s/GB\n", repeat, kind, read,
                    read * size / ns, ticks / hz / (read * size / 1e9) }'
        stop
    done
done
