import { spawn } from "node:child_process"
import { once } from "node:events"
import { mkdtempSync, readdirSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { text } from "node:stream/consumers"
import { assert, describe, it } from "@effect/vitest"
import { ROOT } from "../support/installation.ts"

/** The acts, each as a part of its heading and of its closing line. */
const ACTS = [
  [/^1\. You talk/u, "the agent answered"],
  [/^2\. Two background jobs/u, "two jobs shared one folder"],
  [/^3\. The agent reads a stranger's letter/u, "until a person approved that very call"],
  [/^4\. The agent is killed/u, "the agent came back and the job did its remaining steps"],
  [/^5\. The work is there/u, "the files of the first job"],
  [/^6\. The log of it all/u, "events in one order"]
] as const

describe("npm run demo", () => {
  it("closes each act with what was seen and ends with the next two steps", async () => {
    const folder = mkdtempSync(join(tmpdir(), "choir-demo-test-"))
    const child = spawn(process.execPath, [join(ROOT, "demo/demo.ts")], {
      env: { ...process.env, HOME: folder, TMPDIR: folder },
      stdio: ["ignore", "pipe", "pipe"]
    })
    const [[code], out, err] = await Promise.all([once(child, "exit"), text(child.stdout), text(child.stderr)])
    assert.strictEqual(code, 0, `${out}\n${err}`)
    assert.strictEqual(err, "")
    const acts = out.split(/\n(?=\d\. )/u).slice(1)
    assert.strictEqual(acts.length, ACTS.length, out)
    for (const [index, [heading, closing]] of ACTS.entries()) {
      const act = acts[index] ?? ""
      assert.match(act, heading)
      const [, seen, ...more] = act.split("\nYou saw: ")
      assert.include(seen, closing)
      assert.lengthOf(more, 0, "one closing line an act")
    }
    const last = acts.at(-1) ?? ""
    assert.match(last, /\n {2}npm start .*\n {2}npm run link .*\n$/u)
    assert.notMatch(out, /[0-9a-f]{17}/u, "hashes are shortened")
    assert.notMatch(out, /\b(?:edge|lane|lag|epoch)\b/u)
    assert.deepStrictEqual(
      readdirSync(folder).filter((name) => name.startsWith("choir-demo-")),
      []
    )
    rmSync(folder, { recursive: true })
  })
})
