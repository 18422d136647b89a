/** Debian packages that a suite needs, installed where that is possible. */
import { execFileSync } from "node:child_process"
import { existsSync } from "node:fs"

const isInstalled = (name: string): boolean => {
  try {
    const text = execFileSync("dpkg-query", ["-W", "-f", "${db:Status-Status}", name], {
      stdio: ["ignore", "pipe", "ignore"]
    })
    return text.toString() === "installed"
  } catch {
    return false
  }
}

/** Of the machine, whatever folder of temporary files this run has. */
const LOCK = "/run/lock/choir-test-packages"
const INSTALL_MS_MAX = 300_000
/** One installation at a time among the workers; another program's, such as the Docker engine's, has apt say no, so it is tried again. */
const INSTALL = `apt="apt-get -qq -o DPkg::Lock::Timeout=120"
for try in 1 2 3 4 5 6 7 8 9 10; do
  $apt update && $apt install -y --no-install-recommends "$@" >/dev/null && exit 0
  sleep 5
done
exit 100`

const install = (names: ReadonlyArray<string>): void => {
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" }
  const line = [LOCK, "bash", "-c", INSTALL, "install", ...names]
  execFileSync("flock", line, { env, stdio: "pipe", timeout: INSTALL_MS_MAX })
}

/**
 * Installs what is missing when this is root on Debian. Answers why a suite has to be left out, or `undefined` when all is there;
 * prints the reason, and with `CI=true` throws instead.
 */
export const ensureDebianPackages = (names: ReadonlyArray<string>, suite: string): string | undefined => {
  const missing = names.filter((name) => !isInstalled(name))
  if (missing.length === 0) return undefined
  if (existsSync("/etc/debian_version") && process.getuid?.() === 0) {
    install(missing)
    return undefined
  }
  return leaveOut(suite, `it needs ${missing.join(", ")}: apt install ${missing.join(" ")}`)
}

/** Prints which suite is left out and why; with `CI=true` nothing may be, so it throws. */
export const leaveOut = (suite: string, reason: string): string => {
  if (process.env["CI"] === "true") throw new Error(`${suite} must not be left out: ${reason}`)
  console.warn(`left out: ${suite}, since ${reason}`)
  return reason
}

/** Why what only root can do is left out here, or `undefined`. */
export const whyNotRoot = (suite: string): string | undefined =>
  process.getuid?.() === 0 ? undefined : leaveOut(suite, "this is not root")
