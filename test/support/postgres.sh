#!/bin/bash
# Prepares PostgreSQL 15 with pgvector below PREFIX, for root on Debian 12: postgres.sh PREFIX. Changes nothing else on the machine,
# except that it installs postgresql-15, gcc and make when they are missing. The second time there is nothing left to do.
set -euo pipefail

prefix=$1
vector=pgvector_0.8.0.orig.tar.gz
vector_sha256=867a2c328d4928a5a9d6f052cd3bc78c7d60228a9b914ad32aa3db88e9de27b0
[ -e "$prefix/ready" ] && exit 0
mkdir -p "$(dirname "$prefix")"
exec 9>"$prefix.lock"
flock 9
[ -e "$prefix/ready" ] && exit 0

lists_updated=
add() {
  [ -n "$lists_updated" ] || apt-get -qq update
  lists_updated=yes
  DEBIAN_FRONTEND=noninteractive apt-get -qq install --no-install-recommends "$@" >/dev/null
}

[ -x /usr/lib/postgresql/15/bin/postgres ] || add postgresql-15
{ command -v gcc && command -v make; } >/dev/null || add gcc libc6-dev make

# A copy of the server, because it looks for extensions beside itself and the machine's own is not ours to change.
rm -rf "$prefix"
mkdir -p "$prefix/build" "$prefix/usr/lib/postgresql" "$prefix/usr/share/postgresql"
cp -a /usr/lib/postgresql/15 "$prefix/usr/lib/postgresql/"
cp -a /usr/share/postgresql/15 "$prefix/usr/share/postgresql/"

cd "$prefix/build"
version=$(dpkg-query -W -f '${Version}' postgresql-15)
headers=postgresql-server-dev-15
apt-get -qq -o APT::Sandbox::User=root download "$headers=$version" 2>/dev/null ||
  { apt-get -qq update && apt-get -qq -o APT::Sandbox::User=root download "$headers"; }
dpkg -x "$headers"_*.deb "$prefix"

# Debian 12 has no pgvector. The mirror that this machine uses keeps the source of a later release.
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Component: main' | grep -v -- -security | head -1)
/usr/lib/apt/apt-helper -qq -o APT::Sandbox::User=root download-file "${mirror%/}/pool/main/p/pgvector/$vector" \
  "$vector" "SHA256:$vector_sha256" >/dev/null
tar xzf "$vector"
config=$prefix/usr/lib/postgresql/15/bin/pg_config
make -s -C pgvector-*/ -j2 with_llvm=no OPTFLAGS= PG_CONFIG="$config" >/dev/null
make -s -C pgvector-*/ install with_llvm=no PG_CONFIG="$config" >/dev/null
cd /
rm -rf "$prefix/build"

# The data folder that each run copies.
install -d -o postgres -g postgres -m 700 "$prefix/data"
setpriv --reuid=postgres --regid=postgres --clear-groups "$prefix/usr/lib/postgresql/15/bin/initdb" -D "$prefix/data" \
  -U choir -A trust --no-sync -E UTF8 --locale=C.UTF-8 >/dev/null
touch "$prefix/ready"
