/** The hostile agents: one for each kind of attack, by a program of its own or by a model that says what its agent's tools do. */
import type { EventType } from "#schema/Event.ts"
import { AgentId, type SessionId } from "#schema/Ids.ts"

/** What a model's agent is told, the n-th time. */
export type Words = (n: number, session_id: SessionId) => string

export interface Kind {
  readonly id: AgentId
  /** What it tries, in the words of the report. */
  readonly tries: string
  /** Absent where a program takes the place of choir-agent. */
  readonly words?: Words
  /** Its session freezes or its agent is given up. */
  readonly ends?: true
  /** The type of an event that its log holds when the attack was made; any event where it is absent. */
  readonly leaves?: EventType
}

const JOBS = 8
const REPORTS = 30
/** As long as a message with all of them may be. */
const REPORT = "r".repeat(350)
const UNSEEN = "\\u200b".repeat(200)

const job = (n: number, index: number) =>
  `job j${n}-${index}: ${Array.from({ length: REPORTS }, (_, at) => `report progress: ${at} ${REPORT}`).join(", then ")}`

const proposedTool = (n: number) =>
  `call choir.propose.tool {"manifest":{"llm":{"name":"notes.t${n}","description":"counts${UNSEEN}","input_schema":{"type":"object","properties":{"a":{"type":"string","pattern":"^(a+)+$"}}}},"runtime":{"exec_path":"notes.t${n}","effect":"none"}},"files":[{"path":"tools/notes.t${n}","content":"#!/bin/sh\\nwc -l notes\\n","executable":true}],"reason":"because${UNSEEN}"}`

/** The commit of the branch that `branches` proposes; the siege makes it in the agent's repository. */
export const PACKED = "packed"

const program = (id: string, tries: string): Kind => ({ id: AgentId.make(id), tries })
const words = (id: string, tries: string, said: Words): Kind => ({ id: AgentId.make(id), tries, words: said })

export const KINDS: ReadonlyArray<Kind> = [
  program("heartbeats", "legal requests on all of its connections without a pause"),
  program("events", "the largest events, one heartbeat after the other"),
  program("replays", "a stored heartbeat of the largest size, again and again"),
  program("cards", "messages to people in the shape of choird's cards, without end"),
  program("bodies", "malformed, oversized and deeply nested bodies"),
  program("requests", "approvals, host tools and secrets that it has no right to"),
  // These two leave their own heartbeats no connection, and may be taken for dead meanwhile.
  { ...program("tokens", "used, forged and foreign tokens, and epochs that never were"), ends: true },
  { ...program("slow", "heads and bodies that never end, half-closed connections, unread streams"), ends: true },
  program("connections", "connections that are opened and left"),
  // It is waiting for choird to read its lines, and may be taken for dead meanwhile.
  { ...program("output", "lines on its own output without a pause"), ends: true },
  { ...program("crashes", "an exit without a goodbye at every start"), ends: true },
  { ...program("rewrite", "another history under revisions that choird has"), ends: true },
  {
    ...words("jobs", "jobs that report without end", (n) =>
      Array.from({ length: JOBS }, (_, index) => job(n, index)).join("\n")
    ),
    leaves: "CoreStarted"
  },
  words("proposals", "tools with invisible names and patterns that never end", (n) =>
    Array.from({ length: 12 }, (_, index) => proposedTool(100 * n + index)).join("\n")
  ),
  words(
    "branches",
    "a pushed branch of kilobytes that unpacks to 170 MiB",
    (n, session_id) =>
      `call choir.propose.repo_change {"branch":"proposal/${session_id}/x","commit":"${PACKED}","reason":"notes ${n}"}`
  ),
  // Its commands leave its own agent no processor.
  { ...words("processes", "processes, memory and processor time in a command", () => "run sh burn.sh"), ends: true },
  words("disk", "a full workspace, with many files", () => "run timeout 5 sh disk.sh"),
  words(
    "probes",
    "ports of loopback, abstract names, other agents' sockets, the metrics page, setuid files",
    () => "run timeout 5 node probe.mjs"
  ),
  words(
    "hanging",
    "files that never answer, links that never end, patterns",
    () => "run sh hang.sh\nread pipe\nread loop/loop/loop/x\nsearch (a+)+$ in ."
  )
]

/** Files of a hostile workspace, which its commands run. */
export const SCRIPTS: Readonly<Record<string, string>> = {
  "burn.sh": `ulimit -c 0
timeout -s KILL 4 sh -c 'f() { f & f & :; }; f; sleep 4' 2>/dev/null &
timeout -s KILL 4 sh -c 'while :; do :; done' &
timeout -s KILL 4 sh -c 'while :; do :; done' &
timeout -s KILL 4 perl -e '$a = "x" x (1 << 30); sleep 4' 2>/dev/null &
wait 2>/dev/null
exit 0
`,
  "disk.sh": `rm -rf full; mkdir full && cd full || exit 1
head -c 300000000 /dev/zero > large
perl -e 'for (1 .. 5000) { open F, ">", "f$_"; print F "x" }'
cd .. && rm -rf full
`,
  "hang.sh": `rm -f pipe loop; mkfifo pipe; ln -s . loop
perl -e 'print "a" x 100000, "!\\n"' > long
`,
  "probe.mjs": `import { chmodSync, copyFileSync, readFileSync, readdirSync, writeFileSync } from "node:fs"
import { connect, createServer } from "node:net"
const loot = []
setTimeout(() => { writeFileSync("loot", loot.join("\\n")); process.exit(0) }, 4000)
const tried = (name, work) => { try { loot.push(name + " " + work()) } catch (error) { loot.push(name + " " + error.code) } }
tried("setuid", () => { copyFileSync("/bin/true", "sb"); chmodSync("sb", 0o4755) })
for (const pid of readdirSync("/proc").filter((name) => /^[0-9]+$/.test(name)))
  for (const file of ["environ", "cmdline"]) tried(pid, () => readFileSync("/proc/" + pid + "/" + file, "latin1"))
const unix = readFileSync("/proc/net/unix", "utf8").split("\\n").slice(1).map((line) => line.split(/ +/).at(-1)).filter((name) => /^[@/]/.test(name))
const dial = (where, said) => new Promise((resolve) => {
  const socket = connect(where, () => socket.write(said))
  socket.on("data", (data) => loot.push(JSON.stringify(where) + " " + String(data).slice(0, 2000))).on("error", () => resolve()).on("close", () => resolve())
  setTimeout(() => resolve(socket.destroy()), 500)
})
for (const name of unix) {
  const path = name.startsWith("@") ? "\\0" + name.slice(1) : name
  createServer(() => undefined).on("error", () => undefined).listen({ path }).unref()
  await dial({ path }, "GET /status HTTP/1.1\\r\\nhost: x\\r\\n\\r\\n")
}
const tcp = readFileSync("/proc/net/tcp", "utf8").split("\\n").slice(1).map((line) => line.trim().split(/ +/)).filter((row) => row[3] === "0A")
for (const row of tcp) {
  const port = parseInt(row[1].split(":")[1], 16)
  await Promise.all(Array.from({ length: 50 }, () => dial({ host: "127.0.0.1", port }, "GET /metrics HTTP/1.1\\r\\nhost: localhost\\r\\nx-slow: ")))
  await dial({ host: "127.0.0.1", port }, "GET /metrics HTTP/1.1\\r\\nhost: localhost\\r\\n\\r\\n")
}
for (let port = 1; port < 65536; port += 1000)
  await Promise.all(Array.from({ length: 1000 }, (_, at) => new Promise((resolve) => {
    const socket = connect({ host: "127.0.0.1", port: port + at }).on("error", resolve).on("connect", () => resolve(socket.destroy()))
  })))
writeFileSync("loot", loot.join("\\n"))
process.exit(0)
`
}
