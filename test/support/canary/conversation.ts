/** What happens in an installation full of canaries: a person's talk, attempts to get them out, crashes and changes (R32). */
import { createHash } from "node:crypto"
import { cpSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { PgClient } from "@effect/sql-pg"
import { assert } from "@effect/vitest"
import { Effect, Option } from "effect"
import { Reactivity } from "effect/reactivity"
import { ResourceName } from "#schema/Ids.ts"
import { newestCommit } from "../gitServers.ts"
import { answer, callTools, failing } from "../testing/Provider.ts"
import { makeCanaryInstallation, USER } from "./installation.ts"
import { FORMS_PROGRAM } from "./leaks.ts"
import { tokensInMemory } from "./memory.ts"
import { formsOf } from "./secrets.ts"

const name = ResourceName.make
const BOUND = { dm: name("phone"), notion: name("notion-a"), email: name("email-a"), voice_profile: name("voice") }

/** Those words of a process's memory whose digests choird keeps as lease tokens. */
const leaseTokens = (options: PgClient.PgClientConfig, pid: number) =>
  Effect.gen(function* () {
    const sql = yield* PgClient.makeClient(options)
    const rows = yield* sql<{ readonly lease_hash: Buffer | null }>`SELECT lease_hash FROM choir_control.sessions`
    const digests = new Set(rows.map(({ lease_hash }) => Buffer.from(lease_hash ?? []).toString("hex")))
    return [...tokensInMemory(pid)].filter((word) => digests.has(createHash("sha256").update(word).digest("hex")))
  }).pipe(Effect.scoped, Effect.provide(Reactivity.layer), Effect.orDie)

export type Place = Effect.Success<ReturnType<typeof startCanaries>>

/** A running agent, and a person who talks with it at Telegram. */
export const startCanaries = Effect.fnUntraced(function* (seed: number, docker_socket: string) {
  const choir = yield* makeCanaryInstallation(seed, docker_socket)
  const choird = yield* choir.start
  yield* choir.build
  const { session_id } = yield* choir.api.agents.start({ params: choir.params, payload: BOUND })
  const options = { ...choir.database, username: choir.database.user }
  const pid = Effect.map(choird.agent, Option.getOrThrow)
  const lease = Effect.flatMap(pid, (pid) => leaseTokens(options, pid))
  const { bot } = choir
  let said = 0
  /** Says something, and waits until the model's answer to all of it is there. */
  const say = Effect.fnUntraced(function* (text: string) {
    const mark = `over-${++said}`
    yield* bot.text(USER, `${text}\nsay ${mark}`)
    yield* bot.sent.first((message) => message.text?.includes(mark) === true)
  })
  /** Says something that the model does not answer as it is told. */
  const provoke = Effect.fnUntraced(function* (text: string) {
    const sent = (yield* bot.sent.all).length
    yield* bot.text(USER, text)
    yield* bot.sent.at(sent)
  })
  /** Until a job's report is there: what its lane asks the model would otherwise take what is scripted next. */
  const reported = (job: string) => bot.sent.first((message) => message.text?.startsWith(`${job} is done`) === true)
  const run = (...commands: ReadonlyArray<string>) => say(commands.map((command) => `run ${command}`).join("\n"))
  return { ...choir, choird, lease, options, pid, provoke, reported, run, say, session_id: session_id ?? "" }
})

const TRUSTING = "export GIT_SSL_CAINFO=/workspace/server.pem"
const work = (url: string, folder: string) =>
  `git clone -q ${url} ${folder} && cd ${folder} && echo more >> README && git commit -qam second && git push -q origin main`

/** Clones, pushes, jobs: what secrets are there for. */
export const useSecrets = Effect.fnUntraced(function* ({ https, repos, reported, run, say, workspace }: Place) {
  cpSync(https.cert, join(workspace, "server.pem"))
  writeFileSync(join(workspace, "forms.py"), FORMS_PROGRAM)
  yield* run(`${TRUSTING}; ${work(`https://${https.host}/app.git`, "app")}`)
  assert.include(newestCommit(repos.https), "second")
  yield* say("job alpha: write a.txt: one, then run wc -w a.txt")
  yield* reported("alpha")
})

/** Commands that look everywhere, a command that asks git for its password, and a tool that tells what it was given. */
export const leakByTools = Effect.fnUntraced(function* ({ https, reported, run, say }: Place) {
  const asked = `protocol=https\\nhost=${https.host}\\npath=app.git\\n`
  const password = `printf "${asked}" | git credential fill | sed -n s/^password=//p | tr -d "\\n"`
  yield* run(
    "env; cat /proc/*/environ /proc/*/cmdline; ps axe; set; git config --list; find / -newer forms.py",
    `${password} | python3 forms.py; ${password} | python3 forms.py >&2; exit 3`,
    `${password} | python3 forms.py 400000`,
    `${TRUSTING}; cd app && GIT_TRACE_CURL=1 GIT_TRACE_REDACT=0 GIT_TRACE=1 git fetch`
  )
  yield* say(["output", "error", "text", "long"].map((how) => `call secrets.tell {"how":"${how}"}`).join("\n"))
  yield* say('job beta: call secrets.tell {"how":"output"}')
  yield* reported("beta")
})

/** A provider that repeats the key: in an answer, in errors, in the arguments of calls. */
export const leakByModel = Effect.fnUntraced(function* (
  { made, provider, provoke, reported, say }: Place,
  key: string
) {
  const told = Object.values(formsOf(key)).join("\n")
  yield* provider.script(answer(told))
  yield* provoke("tell me your key")
  yield* provider.script(failing(401, told))
  yield* provoke("tell it in an error")
  const calls = [
    { name: "choir-exec", input: { command: `echo '${key}' | python3 forms.py` } },
    { name: "choir-fs-write", input: { path: "key", content: told, mode: "overwrite" } },
    { name: "choir-core-spawn", input: { job_name: "key", task_spec: `say ${key}` } },
    { name: "choir-fs-read", input: told }
  ]
  yield* provider.script(callTools(calls, told), answer(told))
  yield* provoke("use your key")
  yield* reported("key")
  yield* provider.script(failing(500, told))
  yield* say("let the fallback take over")
  const keys = (yield* provider.requests.all).map(({ headers }) => headers["authorization"])
  for (const { value } of [made.used.edge, made.used.core, made.used.fallback]) assert.include(keys, `Bearer ${value}`)
})

const TOOL = {
  manifest: {
    llm: { name: "notes.count", description: "Counts the notes", input_schema: { type: "object" } },
    runtime: { exec_path: "notes.count", effect: "none" }
  },
  files: [{ path: "tools/notes.count", content: "#!/bin/sh\necho 3\n", executable: true }],
  reason: "the user counts notes every day"
}

/** A change that a person approves: choird commits it, pushes it with the agent's password, builds, and starts the agent anew. */
const change = Effect.fnUntraced(function* ({ api, bot, root, say }: Place) {
  yield* say(`call choir.propose.tool ${JSON.stringify(TOOL)}`)
  const [asked] = yield* api.approvals.list({ query: {} })
  if (asked === undefined) return assert.fail("nothing waits for approval")
  const at = { params: { id: asked.approval_id } }
  const { hash } = yield* api.approvals.show(at)
  yield* api.approvals.approve({ ...at, payload: { hash: hash.slice(0, 8) } })
  yield* bot.sent.first((message) => message.text?.startsWith("◆ Done: tool notes.count") === true)
  assert.include(newestCommit(join(root, "agent.git")), "tool notes.count")
})

/** Crashes, a key that is replaced, a new image, another git identity. Answers the lease tokens of each epoch. */
export const restart = Effect.fnUntraced(function* (place: Place) {
  const { api, home, lease, made, params, provider, provoke, repos, run, say, sshUrl } = place
  const { edge, replaced } = made.used
  const leases = [yield* lease]
  process.kill(yield* place.pid, "SIGKILL")
  yield* say("say still there")
  leases.push(yield* lease)
  writeFileSync(join(home, "secrets.json"), JSON.stringify({ ...place.values, [edge.name]: replaced.value }))
  yield* api.configuration.applySecrets()
  yield* say("say with the new key")
  yield* provider.script(answer(`${edge.needle} ${replaced.needle}`))
  yield* provoke("tell me both")
  yield* change(place)
  leases.push(yield* lease)
  yield* place.choird.signal("SIGKILL")
  yield* place.choird.exited
  yield* place.start
  yield* say("call notes.count {}")
  leases.push(yield* lease)
  yield* api.agents.stop({ params })
  yield* api.agents.start({ params, payload: { ...BOUND, git_identity: name("key") } })
  yield* run(work(`${sshUrl}${repos.ssh}`, "deep"), "ssh-add -L; cat /tmp/choir-git-*/*")
  assert.include(newestCommit(repos.ssh), "second")
  yield* say('call secrets.tell {"how":"output"}')
  return [...leases, yield* lease]
})
