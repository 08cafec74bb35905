#!/bin/sh
# Builds the floors and the peers into bench/peers/bin.
#
#   build.sh [--install] [floors] [rust] [zmq] [nats] [postgres] [redis] [durable-streams] [k6]
#            [quota-express] [throttlecrab] [kafka] [slim] [slimctl]
#
# Without names it builds everything. What is missing on the machine is named with the Debian
# package that has it; --install installs those packages first. A part that cannot be built does not
# keep the others from being built; at the end those that are missing are named, and the status is 1.
# Everything takes about two hours on two CPUs: slimctl alone takes most of it.
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
bin=$here/bin
install=no
one=no
parts=
all="floors rust zmq nats postgres redis durable-streams k6 quota-express throttlecrab kafka slim slimctl"

# Fixed, so that two results are of the same programs.
durable_streams=0.1.5
throttlecrab=0.4.40
k6=v1.8.1
slim_bindings=3.3.8
slimctl=3.4.6

for argument in "$@"; do
    case $argument in
        --install) install=yes ;;
        --one) one=yes ;; # how the script calls itself for each part
        floors | rust | zmq | nats | postgres | redis | durable-streams | k6 | quota-express | throttlecrab | kafka | slim | slimctl)
            parts="$parts $argument"
            ;;
        *)
            echo "build.sh: $argument is neither --install nor one of: $all" >&2
            exit 2
            ;;
    esac
done
parts=${parts:-$all}

# Each part in a process of its own, so that one that fails ends nothing else.
if [ "$one" = no ]; then
    mkdir -p "$bin"
    options=--one
    [ "$install" = no ] || options="$options --install"
    failed=
    for part in $parts; do
        echo "build.sh: $part" >&2
        # shellcheck disable=SC2086 # a list of options
        sh "$here/build.sh" $options "$part" || failed="$failed $part"
    done
    ls "$bin"
    if [ -n "$failed" ]; then
        echo "build.sh: not built:$failed; what went wrong is said above for each" >&2
        exit 1
    fi
    exit 0
fi
part=${parts# }

have() { command -v "$1" >/dev/null 2>&1; }

# Where Debian puts PostgreSQL's programs, the newest version of several.
postgres_bin() {
    for bins in /usr/lib/postgresql/*/bin; do
        [ -x "$bins/postgres" ] && echo "$bins"
    done | sort -V | tail -n 1
}

# Whether the library is there that bindings to C are made with. libclang-cpp is another one.
have_libclang() {
    for library in /usr/lib/llvm-*/lib/libclang.so* /usr/lib/llvm-*/lib/libclang-[0-9]*.so* \
        /usr/lib/*/libclang.so* /usr/lib/*/libclang-[0-9]*.so*; do
        [ -e "$library" ] && return 0
    done
    return 1
}

# Prints the Debian packages that the part needs and the machine does not have.
missing_packages() {
    case $part in
        floors | rust | durable-streams | throttlecrab) have cc || echo gcc libc6-dev ;;
        zmq)
            have cc || echo gcc libc6-dev
            have make || echo make
            have pkg-config || echo pkg-config
            { have pkg-config && pkg-config --exists libzmq; } || echo libzmq3-dev
            ;;
        postgres) [ -n "$(postgres_bin)" ] || echo postgresql ;;
        redis) have redis-server || echo redis-server ;;
        quota-express)
            have redis-server || echo redis-server
            have npm || echo nodejs npm
            ;;
        kafka) { have mvn && have java; } || echo maven openjdk-17-jre-headless ;;
        slim) have python3 || echo python3 python3-venv ;;
        slimctl)
            have cc || echo gcc libc6-dev
            have_libclang || echo libclang-dev
            ;;
        nats | k6) have go || echo golang-go ca-certificates ;;
    esac
    case $part in throttlecrab | slimctl) have protoc || echo protobuf-compiler ;; esac
}

packages=$(missing_packages | tr '\n' ' ')
if [ -n "$packages" ]; then
    if [ "$install" = no ]; then
        echo "build.sh: missing: $packages" >&2
        echo "hint: apt-get install $packages(or run build.sh --install)" >&2
        exit 1
    fi
    as_root=
    [ "$(id -u)" = 0 ] || as_root=sudo
    $as_root apt-get update
    # shellcheck disable=SC2086 # a list of packages
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $packages
fi

case $part in
    floors | rust | durable-streams | throttlecrab | slimctl)
        if ! have cargo; then
            echo "build.sh: missing: cargo" >&2
            echo "hint: install a Rust toolchain, 1.90 or later, with rustup" >&2
            exit 1
        fi
        ;;
esac

# A Go from 1.21 on fetches the newer toolchain that nats-server asks for; an older one cannot.
case $part in
    nats | k6)
        minor=$(go env GOVERSION | sed -n 's/^go1\.\([0-9]*\).*/\1/p')
        if [ "${minor:-0}" -lt 21 ]; then
            echo "build.sh: $(go version) is too old for nats-server and k6" >&2
            echo "hint: install Go 1.21 or later, for instance golang-go from Debian's backports" >&2
            exit 1
        fi
        wanted=$(sed -n 's/^go 1\.\([0-9]*\).*/\1/p' "$here/nats/go.mod")
        [ "$minor" -ge "$wanted" ] || export GOTOOLCHAIN=auto
        ;;
esac

# Puts a program into bin, also while an earlier build of it still runs.
put() {
    for program in "$@"; do
        cp "$program" "$bin/.new"
        mv "$bin/.new" "$bin/${program##*/}"
    done
}

cargo_build() {
    cargo build --release --locked --manifest-path "$1/Cargo.toml" --target-dir "$1/target"
}

case $part in
    floors)
        cargo_build "$here/../floors"
        put "$here/../floors/target/release/floors"
        ;;
    rust)
        cargo_build "$here/rust"
        put "$here/rust/target/release/peer-tonic" "$here/rust/target/release/peer-tarpc"
        ;;
    zmq)
        make -s -C "$here/zmq"
        put "$here/zmq/peer-zmq"
        ;;
    nats)
        (cd "$here/nats" && go build -trimpath -buildvcs=false -mod=readonly \
            -o target/ . github.com/nats-io/nats-server/v2)
        put "$here/nats/target/peer-nats" "$here/nats/target/nats-server"
        ;;
    postgres)
        # initdb and postgres look for each other where they really are.
        bins=$(postgres_bin)
        for program in postgres initdb psql pgbench; do
            ln -sfn "$bins/$program" "$bin/$program"
        done
        ;;
    redis) ln -sfn "$(command -v redis-server)" "$bin/redis-server" ;;
    durable-streams)
        cargo install durable-streams --version "$durable_streams" --locked --quiet \
            --root "$here/target/durable-streams" --target-dir "$here/rust/target"
        put "$here/target/durable-streams/bin/durable-streams-server"
        ;;
    quota-express)
        # The versions of package-lock.json, no scripts of packages, nothing about funding.
        (cd "$here/quota-express" && npm ci --omit=dev --ignore-scripts --no-audit --no-fund --loglevel=error)
        printf '#!/bin/sh\nexec node "%s" "$@"\n' "$here/quota-express/server.js" >"$bin/.new"
        chmod +x "$bin/.new"
        mv "$bin/.new" "$bin/quota-express"
        ln -sfn "$(command -v redis-server)" "$bin/redis-server"
        ;;
    throttlecrab)
        cargo install throttlecrab-server --version "$throttlecrab" --locked --quiet \
            --root "$here/target/throttlecrab" --target-dir "$here/rust/target"
        put "$here/target/throttlecrab/bin/throttlecrab-server"
        ;;
    kafka)
        # The versions of pom.xml, and of what those name. A file that is no longer named must not stay.
        rm -rf "$here/kafka/target/lib"
        mvn -q -B -f "$here/kafka/pom.xml" dependency:copy-dependencies \
            -DincludeScope=runtime -DoutputDirectory="$here/kafka/target/lib"
        cp "$here/kafka/kafka.sh" "$bin/.new"
        mv "$bin/.new" "$bin/kafka"
        ;;
    slim)
        python3 -m venv --clear "$here/target/slim-python"
        "$here/target/slim-python/bin/python" -m pip install --quiet --disable-pip-version-check \
            "slim-bindings==$slim_bindings"
        printf '#!/bin/sh\nexec "%s" "%s" "$@"\n' "$here/target/slim-python/bin/python" \
            "$here/slim/peer_slim.py" >"$bin/.new"
        chmod +x "$bin/.new"
        mv "$bin/.new" "$bin/peer-slim"
        ;;
    slimctl)
        # Node and clients are one program.
        cargo install agntcy-slimctl --version "$slimctl" --locked --quiet \
            --root "$here/target/slim" --target-dir "$here/rust/target"
        put "$here/target/slim/bin/slimctl"
        ;;
    k6)
        GOBIN=$here/target go install "go.k6.io/k6@$k6"
        put "$here/target/k6"
        ;;
esac
