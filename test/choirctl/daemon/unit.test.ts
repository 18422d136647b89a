import { spawnSync } from "node:child_process"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { unitText } from "#src/choirctl/daemon/unit.ts"
import { CHOIRD_STOP_MS_MAX } from "#src/shared/limits.ts"
import { temporaryFolder } from "../../support/engines.ts"
import { ensureDebianPackages } from "../../support/packages.ts"

const plan = {
  node: process.execPath,
  program: "/opt/choir/dist/choird.js",
  home: "/home/me/.choir.d",
  workspaces: ["/home/me/work"]
}

/** The settings of each section; every other line is refused. */
const settings = (text: string) => {
  const found = new Map<string, string>()
  let section = ""
  for (const line of text.split("\n")) {
    if (line === "" || line.startsWith("#")) continue
    const heading = /^\[(Unit|Service|Install)\]$/u.exec(line)?.[1]
    const [, name, value] = /^([A-Z][A-Za-z]+)=(.+)$/u.exec(line) ?? []
    if (heading !== undefined) section = heading
    else if (name === undefined || value === undefined || found.has(`${section}.${name}`)) throw new Error(line)
    else found.set(`${section}.${name}`, value)
  }
  return found
}

describe("the systemd unit", () => {
  it("hardens choird, limits its restarts and never restarts what needs a person (R76)", () => {
    const unit = settings(unitText(plan))
    const expected = {
      "Unit.StartLimitBurst": "5",
      "Unit.StartLimitIntervalSec": "300",
      "Service.ExecStart": `"${process.execPath}" "--max-semi-space-size=8" "--heap-growing-percent=30" "/opt/choir/dist/choird.js" "--home" "/home/me/.choir.d"`,
      "Service.Environment": "MALLOC_ARENA_MAX=1 MALLOC_MMAP_THRESHOLD_=131072 MALLOC_TRIM_THRESHOLD_=8388608",
      "Service.Restart": "on-failure",
      "Service.RestartPreventExitStatus": "2 78",
      "Service.NoNewPrivileges": "yes",
      "Service.ProtectSystem": "strict",
      "Service.ReadWritePaths": '"/home/me/.choir.d" "-/home/me/work"',
      "Service.PrivateTmp": "yes",
      "Service.MemoryMax": "75%",
      "Service.Delegate": "yes"
    }
    for (const [name, value] of Object.entries(expected)) assert.strictEqual(unit.get(name), value, name)
    assert.isAbove(Number(unit.get("Service.TimeoutStopSec")) * 1000, CHOIRD_STOP_MS_MAX)
    // What would keep sandboxes from starting: see unitText.
    for (const name of [
      "RestrictNamespaces",
      "ProtectKernelTunables",
      "ProtectControlGroups",
      "MemoryDenyWriteExecute"
    ])
      assert.isFalse(unit.has(`Service.${name}`), name)
  })

  it("lets choird leave no core, which would hold every secret", () => {
    assert.strictEqual(settings(unitText(plan)).get("Service.LimitCORE"), "0")
  })

  it("keeps the host's /tmp where something of Choir's is there", () => {
    for (const changed of [{ home: "/tmp/home" }, { workspaces: ["/var/tmp/w"] }])
      assert.strictEqual(settings(unitText({ ...plan, ...changed })).get("Service.PrivateTmp"), "no")
    assert.strictEqual(settings(unitText({ ...plan, home: "/tmpfs/home" })).get("Service.PrivateTmp"), "yes")
  })

  const leftOut = ensureDebianPackages(["systemd"], "the systemd unit")
  it.live.skipIf(leftOut !== undefined)("is what systemd takes, whatever the paths hold", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      const file = join(folder, "choird.service")
      const strange = { home: '/home/a b/100%/"q"/$HOME/\\', workspaces: ["/home/me/my work", "/home/%h"] }
      const verify = (text: string) => {
        writeFileSync(file, text)
        const { status, stderr } = spawnSync("systemd-analyze", ["verify", "--user", "--man=no", file], {
          env: { ...process.env, XDG_RUNTIME_DIR: folder }
        })
        return `${status} ${stderr.toString()}`
      }
      for (const changed of [{}, strange]) assert.strictEqual(verify(unitText({ ...plan, ...changed })), "0 ")
      assert.include(verify(unitText(plan).replace("LockPersonality", "LockNonsense")), "LockNonsense")
    })
  )
})
