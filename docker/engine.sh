#!/usr/bin/env bash
# engine.sh: makes sure that a Docker engine answers and that it has the Debian image which Dockerfile.base starts from, then prints
#   DOCKER_HOST=unix:///...
# on stdout; everything else goes to stderr. Quick when all is there.   Usage:   export "$(docker/engine.sh [options])"
#
#   --state DIR       where an engine that this script started lives         (default /var/lib/choir-docker)
#   --image REF       base image that Dockerfiles name in FROM              (default debian:bookworm-slim)
#   --suite NAME      Debian suite to bootstrap when REF cannot be pulled   (default bookworm)
#   --mirror URL      Debian mirror                                         (default: the one this host uses)
#   --security URL    security mirror, "" to leave out                      (default: the one this host uses)
#   --packages LIST   extra packages baked into a bootstrapped base, comma separated (default none)
#   --extra-ca DIR    *.crt files to trust inside a bootstrapped base (egress proxies that re-sign TLS)
#   --cache FILE      tarball of the bootstrapped root: imported when it exists, written when it does not
#   --bridge NAME=CIDR  own bridge for the engine instead of docker0 (needed beside another dockerd)
#   --dockerd "ARGS"  further dockerd arguments, e.g. "--userns-remap=default --live-restore"
#   --own             ignore an engine that already answers, always use the one under --state
#   --no-pull         never try a registry
#   --down            stop the engine that this script started under --state (data stays)
set -euo pipefail

STATE=/var/lib/choir-docker IMAGE=debian:bookworm-slim SUITE=bookworm
MIRROR='' SECURITY=default
PACKAGES='' EXTRA_CA='' CACHE='' BRIDGE='' DOCKERD_ARGS='' OWN=0 PULL=1 DOWN=0
while [ $# -gt 0 ]; do
  case $1 in
    --state) STATE=$2; shift 2 ;;        --image) IMAGE=$2; shift 2 ;;
    --suite) SUITE=$2; shift 2 ;;        --mirror) MIRROR=$2; shift 2 ;;
    --security) SECURITY=$2; shift 2 ;;  --packages) PACKAGES=$2; shift 2 ;;
    --extra-ca) EXTRA_CA=$2; shift 2 ;;  --cache) CACHE=$2; shift 2 ;;
    --bridge) BRIDGE=$2; shift 2 ;;      --dockerd) DOCKERD_ARGS=$2; shift 2 ;;
    --own) OWN=1; shift ;;               --no-pull) PULL=0; shift ;;
    --down) DOWN=1; shift ;;
    -h|--help) sed -n '2,/^set /p' "$0" | sed '$d; s/^# \{0,1\}//' >&2; exit 0 ;;
    *) echo "engine.sh: unknown argument: $1" >&2; exit 64 ;;
  esac
done

log() { printf 'engine.sh: %s\n' "$*" >&2; }
die() { log "$*"; exit 1; }
SUDO=; [ "$(id -u)" = 0 ] || SUDO=sudo
SOCK=$STATE/docker.sock PIDFILE=$STATE/dockerd.pid
# one caller at a time (parallel test workers); dockerd is started with this descriptor closed
if command -v flock >/dev/null; then exec 9>"${TMPDIR:-/tmp}/choir-engine.$(id -u).lock"; flock 9; fi

# An engine "answers" when GET /_ping on its socket says OK. curl is not on every slim machine, so
# the docker client is the fallback.
answers() {
  local host=$1
  case $host in unix://*) [ -S "${host#unix://}" ] || return 1 ;; esac
  if command -v curl >/dev/null 2>&1 && [[ $host == unix://* ]]; then
    [ "$(curl -fsS -m 5 --unix-socket "${host#unix://}" http://engine/_ping 2>/dev/null)" = OK ]
  elif command -v docker >/dev/null 2>&1; then
    timeout 10 docker -H "$host" version >/dev/null 2>&1
  else
    return 1
  fi
}

# True when $PIDFILE names a live dockerd that was started on our socket (pids get reused).
ours_alive() {
  local pid; pid=$(cat "$PIDFILE" 2>/dev/null) || return 1
  [ -n "$pid" ] && [ -r "/proc/$pid/cmdline" ] && tr '\0' ' ' <"/proc/$pid/cmdline" | grep -qF -- "unix://$SOCK"
}

if [ $DOWN = 1 ]; then
  if ours_alive; then
    pid=$(cat "$PIDFILE"); $SUDO kill "$pid"
    for _ in $(seq 150); do [ -d "/proc/$pid" ] || { log "stopped $pid"; exit 0; }; sleep 0.1; done
    die "dockerd $pid did not stop within 15s"
  fi
  log "not running"; exit 0
fi

APT_FRESH=0
apt_install() {
  command -v apt-get >/dev/null || die "cannot install $*: no apt-get on this machine"
  export DEBIAN_FRONTEND=noninteractive
  local t=$SECONDS
  if [ $APT_FRESH = 0 ]; then $SUDO apt-get update -qq >&2 || true; APT_FRESH=1; fi
  $SUDO apt-get -o DPkg::Lock::Timeout=120 install -y -qq --no-install-recommends "$@" >&2 </dev/null || die "apt-get install $* failed"
  log "installed $* in $((SECONDS - t))s"
}

# The mirrors that this host installs from. A machine that never ran apt-get update names none.
mirrors() { apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 2>/dev/null | sort -u; }
find_mirrors() {
  [ -n "$(mirrors)" ] || $SUDO apt-get update -qq >&2 || true
  [ -n "$MIRROR" ] || MIRROR=$(mirrors | awk '!/security/ { print; exit }')
  [ "$SECURITY" != default ] || SECURITY=$(mirrors | awk '/security/ { print; exit }')
  [ -n "$MIRROR" ] || die "apt-get knows no mirror on this machine: run apt-get update, or name one with --mirror"
}

mount_cgroups() { # minimal machines without systemd
  grep -qE ' /sys/fs/cgroup(/[a-z]+)? cgroup2? ' /proc/mounts && return 0
  $SUDO mount -t cgroup2 cgroup2 /sys/fs/cgroup || log "no cgroup hierarchy: resource limits will not work"
}

route_mtu() { # containers must not use a larger MTU than the machine's own uplink
  local dev; dev=$(awk '$2 == "00000000" { print $1; exit }' /proc/net/route 2>/dev/null)
  [ -n "$dev" ] && cat "/sys/class/net/$dev/mtu" 2>/dev/null || echo 1500
}

start_engine() {
  $SUDO mkdir -p "$STATE"
  mount_cgroups
  local args=(--data-root "$STATE/data" --exec-root "$STATE/exec" --pidfile "$PIDFILE" -H "unix://$SOCK" --mtu "$(route_mtu)")
  if [ -n "$BRIDGE" ]; then
    local name=${BRIDGE%%=*} cidr=${BRIDGE#*=}
    $SUDO ip link show "$name" >/dev/null 2>&1 || $SUDO ip link add "$name" type bridge
    $SUDO ip addr replace "$cidr" dev "$name"; $SUDO ip link set "$name" up
    args+=(--bridge "$name")
  fi
  # an ordinary caller (sudo) must be able to use the socket without logging in again
  [ -z "$SUDO" ] || args+=(--group "$(id -gn)")
  # A stale pidfile (machine rebooted, process killed) makes dockerd refuse to start.
  ours_alive || $SUDO rm -f "$PIDFILE"
  # setsid: the engine must outlive the shell or CI step that called this script.
  # shellcheck disable=SC2086
  $SUDO env -u TMPDIR setsid dockerd "${args[@]}" $DOCKERD_ARGS </dev/null >"$STATE/dockerd.log" 2>&1 9>&- &
  local t0=${EPOCHREALTIME/./}
  for _ in $(seq 300); do
    answers "unix://$SOCK" && { log "dockerd is up after $(( (${EPOCHREALTIME/./} - t0) / 1000 ))ms"; return 0; }
    if ! kill -0 $! 2>/dev/null && ! ours_alive; then tail -n 5 "$STATE/dockerd.log" >&2; die "dockerd exited, see $STATE/dockerd.log"; fi
    sleep 0.1
  done
  die "dockerd does not answer after 30s, see $STATE/dockerd.log"
}

HOST=
if [ $OWN = 0 ]; then
  for h in ${DOCKER_HOST:+"$DOCKER_HOST"} unix:///var/run/docker.sock ${XDG_RUNTIME_DIR:+"unix://$XDG_RUNTIME_DIR/docker.sock"}; do
    if answers "$h"; then HOST=$h; break; fi
  done
fi
if [ -z "$HOST" ]; then
  HOST=unix://$SOCK
  if ! answers "$HOST"; then
    want=()
    { command -v dockerd && command -v docker; } >/dev/null || want+=(docker.io)
    command -v curl >/dev/null || want+=(curl)
    # one apt transaction for everything that the rest of the script is going to need
    if [ ${#want[@]} -gt 0 ] && { [ -z "$CACHE" ] || [ ! -s "$CACHE" ]; } && ! command -v mmdebstrap >/dev/null; then want+=(mmdebstrap); fi
    [ ${#want[@]} -eq 0 ] || apt_install "${want[@]}"
    start_engine
  fi
fi
export DOCKER_HOST=$HOST

bootstrap_root() { # writes a tarball equivalent to debian:<suite>-slim to $1
  command -v mmdebstrap >/dev/null || apt_install mmdebstrap
  find_mirrors
  local out=$1 hooks tmp; tmp=$(mktemp -d); hooks=$tmp/hook.sh
  # What the official slim image carries besides the packages: no docs/man/locales (for later
  # apt-get installs as well), no cached .debs, no services started by maintainer scripts.
  cat >"$hooks" <<'HOOK'
#!/bin/sh
set -e
r=$1
printf '%s\n' 'path-exclude=/usr/share/doc/*' 'path-include=/usr/share/doc/*/copyright' 'path-exclude=/usr/share/man/*' \
  'path-exclude=/usr/share/info/*' 'path-exclude=/usr/share/locale/*' 'path-exclude=/usr/share/lintian/*' \
  'path-exclude=/usr/share/bug/*' 'path-exclude=/usr/share/groff/*' 'force-unsafe-io' >"$r/etc/dpkg/dpkg.cfg.d/docker-slim"
cat >"$r/etc/apt/apt.conf.d/docker-slim" <<'APT'
Dir::Cache::pkgcache ""; Dir::Cache::srcpkgcache "";
DPkg::Post-Invoke { "rm -f /var/cache/apt/archives/*.deb || true"; };
Acquire::Languages "none";
Acquire::GzipIndexes "true";
Apt::AutoRemove::SuggestsImportant "false";
APT
printf '#!/bin/sh\nexit 101\n' >"$r/usr/sbin/policy-rc.d"; chmod 755 "$r/usr/sbin/policy-rc.d"
rm -rf "$r"/var/lib/apt/lists/* "$r"/var/cache/apt/*.bin "$r"/var/cache/debconf/*-old "$r"/var/log/* \
  "$r"/usr/share/man/* "$r"/usr/share/info/* "$r"/usr/share/locale/* "$r"/usr/share/lintian "$r"/usr/share/bug
find "$r/usr/share/doc" -depth \( -type f -o -type l \) ! -name copyright -delete
find "$r/usr/share/doc" -depth -type d -empty -delete
HOOK
  chmod +x "$hooks"
  local args=(--quiet --variant=minbase --hook-dir=/usr/share/mmdebstrap/hooks/merged-usr
    --include="usr-is-merged${PACKAGES:+,$PACKAGES}${EXTRA_CA:+,ca-certificates}"
    --dpkgopt=force-unsafe-io --aptopt='Acquire::Languages "none"' --aptopt='APT::Install-Recommends "false"')
  if [ -n "$EXTRA_CA" ]; then
    args+=(--customize-hook="cp '$EXTRA_CA'/*.crt \"\$1\"/usr/local/share/ca-certificates/ && chroot \"\$1\" update-ca-certificates >/dev/null")
  fi
  args+=(--customize-hook="'$hooks' \"\$1\"")
  {
    echo "deb $MIRROR $SUITE main"
    case $SUITE in sid|unstable) ;; *)
      echo "deb $MIRROR $SUITE-updates main"
      [ -z "$SECURITY" ] || echo "deb $SECURITY $SUITE-security main" ;;
    esac
  } | $SUDO mmdebstrap "${args[@]}" "$SUITE" "$out.part.tar" - >&2
  rm -rf "$tmp"
  case $out in *.gz|*.tgz) gzip -1 <"$out.part.tar" >"$out.part"; rm -f "$out.part.tar" ;; *) mv "$out.part.tar" "$out.part" ;; esac
  mv "$out.part" "$out"
}

if docker image inspect "$IMAGE" >/dev/null 2>&1; then
  log "image $IMAGE is there"
elif [ $PULL = 1 ] && timeout 300 docker pull -q "$IMAGE" >&2; then
  log "image $IMAGE pulled"
else
  t=$SECONDS tar=$CACHE
  [ -n "$tar" ] || tar=$(mktemp -u)-root.tar
  if [ -s "$tar" ]; then log "importing $tar"; else mkdir -p "$(dirname "$tar")"; bootstrap_root "$tar"; fi
  docker import -c 'CMD ["bash"]' -c 'ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' \
    -c 'LABEL choir.base=bootstrapped' "$tar" "$IMAGE" >&2
  [ -n "$CACHE" ] || rm -f "$tar"
  log "image $IMAGE prepared from $MIRROR $SUITE in $((SECONDS - t))s ($(docker image inspect -f '{{.Size}}' "$IMAGE") bytes)"
fi
echo "DOCKER_HOST=$HOST"
