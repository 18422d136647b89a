/** Puts a canary into every sink on purpose, in every form, by the way that the sink is filled: what a search does not find there, it cannot find. */
import { execFileSync, spawn } from "node:child_process"
import { mkdirSync, mkdtempSync, openSync, rmSync, writeFileSync, writeSync, closeSync } from "node:fs"
import { request } from "node:https"
import { connect } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { gzipSync } from "node:zlib"
import { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"
import { Reactivity } from "effect/reactivity"
import { installationOf } from "#src/shared/docker/dockerInstallation.ts"
import { docker } from "../dockerImage.ts"
import { makeGitRepo } from "../gitRepo.ts"
import { type Canary, formsOf } from "./secrets.ts"

const LIFE_S = "0.4"

const lines = (canary: Canary) => Object.values(formsOf(canary.needle))
const page = (canary: Canary) => `${lines(canary).join("\n")}\n`

export const plantFiles = (canary: Canary, home: string) => {
  const folder = (name: string) => {
    const path = join(home, name)
    mkdirSync(path, { recursive: true })
    return path
  }
  for (const name of ["workspaces/main", "socks/agents", "repos"])
    writeFileSync(join(folder(name), "planted"), page(canary))
  writeFileSync(join(folder("logs"), "planted.log.gz"), gzipSync(page(canary)))
  makeGitRepo(folder("planted")).commit({ planted: page(canary) })
}

export const plantRows = (canary: Canary, options: PgClient.PgClientConfig) =>
  Effect.gen(function* () {
    const sql = yield* PgClient.makeClient(options)
    yield* sql`CREATE TABLE planted (written text, structured jsonb, raw bytea)`
    const forms = lines(canary)
    // Each form in one kind of column after another, so that no kind stands in for another.
    for (const [index, form] of forms.entries())
      for (const kind of ["written", "structured", "raw"] as const) {
        const value = { written: form, structured: sql.json({ [form]: index }), raw: Buffer.from(form) }[kind]
        yield* sql`INSERT INTO planted ${sql.insert({ [kind]: value })}`
      }
  }).pipe(Effect.scoped, Effect.provide(Reactivity.layer), Effect.orDie)

/** An image of the installation with a layer of its own, and a container of it that never runs. */
export const plantInEngine = (canary: Canary, socket: string, home: string, image: string) => {
  const context = mkdtempSync(join(tmpdir(), "choir-planted-"))
  const label = `choir.home=${installationOf(home).id}`
  try {
    writeFileSync(join(context, "planted"), page(canary))
    writeFileSync(join(context, "Dockerfile"), `FROM ${image}\nCOPY planted /planted\n`)
    const labels = ["--label", label, "--label", "choir.agent=demo", "--label", `planted=${page(canary)}`]
    docker(socket, "build", "--quiet", "--force-rm", ...labels, "--tag", `choir-planted:${process.pid}`, context)
    return docker(
      socket,
      "create",
      "--label",
      label,
      "--env",
      `PLANTED=${page(canary)}`,
      `choir-planted:${process.pid}`
    )
  } finally {
    rmSync(context, { recursive: true, force: true })
  }
}

/** Processes on both sides that show it in arguments and environment, a file in memory, and a line of the agent's output. */
export const plantInContainer = (canary: Canary, socket: string, container: string, init: number) => {
  const env = { ...process.env, PLANTED: page(canary) }
  spawn("sh", ["-c", `exec sleep ${LIFE_S}`, ...lines(canary)], { env, stdio: "ignore" })
  const inside = ["exec", "--interactive", "--env", `PLANTED=${page(canary)}`, container, "sh", "-c"]
  execFileSync(
    "docker",
    ["-H", `unix://${socket}`, ...inside, `cat > /tmp/planted; sleep ${LIFE_S}`, ...lines(canary)],
    {
      input: page(canary)
    }
  )
  const output = openSync(`/proc/${init}/fd/1`, "w")
  writeSync(output, page(canary))
  closeSync(output)
}

/** Requests of a stranger to the doubles, with the forms in a JSON text. */
export const plantRequests = (canary: Canary, urls: ReadonlyArray<string>) =>
  Effect.forEach(
    urls,
    (url) =>
      Effect.promise(() =>
        fetch(url, {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: JSON.stringify({ chat_id: 1, text: page(canary), model: page(canary) })
        }).then((response) => response.text())
      ),
    { discard: true }
  )

/** A request to the git server with a form in each header. */
export const plantInGitServer = (canary: Canary, host: string) =>
  Effect.callback<void>((resume) => {
    const headers = Object.fromEntries(
      lines(canary).map((form, index) => [`x-planted-${index}`, Buffer.from(form).toString("latin1")])
    )
    const asked = request(`https://${host}/`, { headers, rejectUnauthorized: false }, (response) => {
      response.resume().on("end", () => resume(Effect.void))
    })
    asked.end()
  })

/** Strangers who do not speak ssh: sshd tells what they said instead, with control characters, backslashes and all but ASCII escaped. */
export const plantInSshd = (canary: Canary, address: string, port: number) =>
  Effect.forEach(
    lines(canary),
    (form) =>
      Effect.callback<void>((resume) => {
        const socket = connect(port, address, () => socket.end(`${form}\r\n`))
        socket
          .resume()
          .on("error", () => undefined)
          .on("close", () => resume(Effect.void))
      }),
    { discard: true }
  )
