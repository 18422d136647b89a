/** The program that a hostile agent runs in the place of choir-agent: it says hello, keeps its heartbeat, and attacks while it may. */
import { existsSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { ATTACKS } from "./attacks.ts"
import { begin, count, counts, emptyBeat, listen, post, seen, workspace } from "./peer.ts"
import { GO, KIND, TOLD } from "./places.ts"

const LOOK_MS = 100
const TELL_MS = 1000

const kind = readFileSync(join(workspace, KIND), "utf8")
const attack = ATTACKS[kind]
if (attack === undefined) throw new Error(`there is no attack ${kind}`)
const interval_ms = await begin()
void listen().catch(() => undefined)
setInterval(() => void post("HEARTBEAT", emptyBeat()), interval_ms)
setInterval(() => writeFileSync(join(workspace, TOLD), JSON.stringify({ counts, seen: [...seen] })), TELL_MS)
for (;;) {
  if (existsSync(join(workspace, GO))) {
    await attack()
    count("attacks")
  } else await new Promise((resolve) => setTimeout(resolve, LOOK_MS))
}
