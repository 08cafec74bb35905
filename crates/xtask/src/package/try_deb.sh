# Installs a package in a minimal system, runs what it installs, and removes it. Each line must succeed.
package=/root/$1
dpkg --purge telpher >/dev/null 2>&1 || true
rm -rf /var/lib/telpher
dpkg -i "$package"
telpher version
telpher config check --config /etc/telpher/telpher.toml
test "$(stat -c '%U %a' /var/lib/telpher)" = "telpher 700"
test -f /usr/share/man/man1/telpher.1.gz
mkdir -p /proc && mount -t proc proc /proc || true
trap 'umount /proc || true' EXIT
run() { su -s /bin/sh -c "$1" telpher; }
run 'telpher serve --config /etc/telpher/telpher.toml --native-listen 127.0.0.1:17400 \
    --http-listen none --kafka-listen none --slim-listen none >/tmp/out 2>&1 & echo $! >/tmp/pid'
for _ in $(seq 100); do
    telpher append acme/demo/log hello --url tcp://127.0.0.1:17400 >/dev/null 2>&1 && break
    sleep 0.1
done
telpher read acme/demo/log --url tcp://127.0.0.1:17400 | grep hello
kill "$(cat /tmp/pid)"
while kill -0 "$(cat /tmp/pid)" 2>/dev/null; do sleep 0.1; done
dpkg --remove telpher
test ! -e /usr/bin/telpher
test -e /etc/telpher/telpher.toml
dpkg --purge telpher
test ! -e /etc/telpher/telpher.toml
# The data of a node outlives its package.
test -d /var/lib/telpher/journal
