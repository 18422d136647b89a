/**
 * Every place where something that Choir does may end up, brought to where it can be searched (R32): what is compressed is unpacked,
 * what is JSON is searched as it is written and by each of its texts.
 */
import { execFileSync, spawnSync } from "node:child_process"
import { existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { gunzipSync } from "node:zlib"
import { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"
import { Reactivity } from "effect/reactivity"
import { installationOf } from "#src/shared/docker/dockerInstallation.ts"
import { docker } from "../dockerImage.ts"
import type { Shown } from "./ProcessWatch.ts"
import type { Hit, makeSearch } from "./search.ts"

type Search = Effect.Success<ReturnType<typeof makeSearch>>

/** What was found in each sink, an empty list where nothing was. */
export type Found = Readonly<Record<string, ReadonlyArray<Hit>>>

/** A value as its JSON, then each text in it, keys too, as it is. */
const readable = (value: unknown): string => {
  const texts: Array<string> = []
  const whole = JSON.stringify(value, (key, inner: unknown) => {
    texts.push(key)
    if (typeof inner === "string") texts.push(inner)
    return typeof inner === "bigint" ? String(inner) : inner
  })
  return [whole, ...texts, ""].join("\n")
}

const isFolder = (path: string) => lstatSync(path, { throwIfNoEntry: false })?.isDirectory() === true

const below = (folder: string): ReadonlyArray<string> =>
  isFolder(folder) ? readdirSync(folder, { recursive: true, encoding: "utf8" }).map((name) => join(folder, name)) : []

/** Writes what was gathered for one sink; answers the files. */
export const makeEvidence = (folder: string) => {
  let made = 0
  return (...contents: ReadonlyArray<string | Uint8Array>) => {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    return contents.map((content) => {
      const file = join(folder, String(++made))
      writeFileSync(file, content, { mode: 0o600 })
      return file
    })
  }
}
type Evidence = ReturnType<typeof makeEvidence>

/** The names of what lies below folders, which no search of contents shows. */
const names = (...folders: ReadonlyArray<string>) => folders.flatMap(below).join("\n")

/** Every object of every repository below these folders: git compresses what it keeps. */
const gitObjects = (folders: ReadonlyArray<string>): ReadonlyArray<Uint8Array> =>
  folders
    .flatMap((folder) => [folder, ...below(folder)])
    .filter((path) => isFolder(path) && existsSync(join(path, "HEAD")) && existsSync(join(path, "objects")))
    .map((repo) =>
      execFileSync("git", ["-C", repo, "-c", "safe.directory=*", "cat-file", "--batch-all-objects", "--batch"], {
        stdio: ["ignore", "pipe", "ignore"],
        maxBuffer: 256 * 1024 * 1024
      })
    )

/** The folders of an installation. `secrets.json` is where the values belong, and the only file that is left out. */
export const searchHome = (search: Search, keep: Evidence, home: string, remotes: ReadonlyArray<string>): Found => {
  const at = (name: string) => join(home, name)
  const own = new Set(["secrets.json", "logs", "socks", "workspaces"])
  const rest = readdirSync(home).filter((name) => !own.has(name))
  const archives = below(at("logs")).filter((path) => path.endsWith(".gz"))
  const places = (...folders: ReadonlyArray<string>) => search.files([...folders, ...keep(names(...folders))])
  return {
    "logs and their archives": search.files([
      at("logs"),
      ...keep(...archives.map((path) => gunzipSync(readFileSync(path))))
    ]),
    workspace: places(at("workspaces")),
    "folder of sockets": places(at("socks")),
    "state folder": places(...rest.map(at)),
    "objects of clones, proposals and remotes": search.files(keep(...gitObjects([home, ...remotes])))
  }
}

/** Every row of every table: bytes as they are, JSON by its texts as well. */
export const searchDatabase = Effect.fnUntraced(
  function* (search: Search, keep: Evidence, options: PgClient.PgClientConfig) {
    const sql = yield* PgClient.makeClient(options)
    // Vectors and the words of an index arrive in forms of their own: everything but bytes and JSON is read as text.
    const tables = yield* sql.unsafe<{ readonly name: string; readonly columns: string }>(
      `SELECT format('%I.%I', table_schema, table_name) AS name,
         string_agg(format(CASE WHEN udt_name IN ('bytea', 'json', 'jsonb') THEN '%1$I' ELSE '%1$I::text AS %1$I' END, column_name), ', ') AS columns
       FROM information_schema.columns JOIN information_schema.tables USING (table_schema, table_name)
       WHERE table_type = 'BASE TABLE' AND table_schema NOT IN ('pg_catalog', 'information_schema') GROUP BY table_schema, table_name`
    )
    const rows = yield* Effect.forEach(tables, ({ columns, name }) =>
      sql.unsafe<Record<string, unknown>>(`SELECT ${columns} FROM ${name}`)
    )
    const cells = rows.flat().flatMap((row) => Object.values(row))
    const texts = cells.filter((cell) => !(cell instanceof Uint8Array)).map(readable)
    const bytes = cells.filter((cell) => cell instanceof Uint8Array)
    return {
      found: {
        "database, every table": search.files(
          keep(texts.join("\n"), Buffer.concat(bytes.flatMap((cell) => [cell, Buffer.from("\n")])))
        )
      } satisfies Found,
      tables: tables.length,
      cells: cells.length
    }
  },
  Effect.scoped,
  Effect.provide(Reactivity.layer),
  Effect.orDie
)

/** Things of an installation by a command of the engine that lists them. */
const idsOf = (socket: string, home: string, ...args: ReadonlyArray<string>): ReadonlyArray<string> => {
  const ours = `label=choir.home=${installationOf(home).id}`
  const ids = docker(socket, ...args, "--quiet", "--filter", ours)
  return [...new Set(ids.split("\n").filter(Boolean))]
}

const inspected = (socket: string, ids: ReadonlyArray<string>) =>
  ids.length === 0 ? "" : readable(JSON.parse(docker(socket, "inspect", ...ids)))

/** What the engine tells of an installation's containers and networks, and what the containers printed. */
export const searchContainers = (search: Search, keep: Evidence, socket: string, home: string): Found => {
  const containers = idsOf(socket, home, "ps", "--all")
  const logs = containers.flatMap((id) => {
    const { stderr, stdout } = spawnSync("docker", ["-H", `unix://${socket}`, "logs", id])
    return [stdout, stderr]
  })
  return {
    "docker inspect": search.files(keep(inspected(socket, [...containers, ...idsOf(socket, home, "network", "ls")]))),
    "docker logs": search.files(keep(...logs))
  }
}

/** Every file of every layer of an installation's images, and how they were made. */
export const searchImages = (search: Search, keep: Evidence, socket: string, home: string): Found => {
  const images = idsOf(socket, home, "images")
  const [saved = ""] = keep("")
  docker(socket, "save", "--output", saved, ...images)
  const history = images.flatMap((id) =>
    docker(socket, "history", "--no-trunc", "--format", "{{json .}}", id).split("\n")
  )
  const made = readable(history.map((line) => JSON.parse(line) as unknown))
  return {
    "image layers": search.stream(saved),
    "image configuration and history": search.files(keep(inspected(socket, images), made))
  }
}

/** What the container of an agent holds in memory file systems. */
export const searchMemoryFiles = (search: Search, keep: Evidence, agent: number): Found => {
  const folders = ["tmp", "run", "dev/shm"].map((name) => `/proc/${agent}/root/${name}`)
  return { "memory file systems of the container": search.files([...folders, ...keep(names(...folders))]) }
}

/** Arguments and environments that were seen on either side. */
export const searchProcesses = (search: Search, keep: Evidence, shown: ReadonlyArray<Shown>): Found =>
  Object.fromEntries(
    (["host", "container"] as const).map((side) => [
      `processes of the ${side}`,
      search.files(keep(shown.flatMap((one) => (one.side === side ? [one.text] : [])).join("\n")))
    ])
  )

/** What a double of the outside was sent, without what it was meant to be sent. */
export const searchReceived = (search: Search, keep: Evidence, received: Readonly<Record<string, unknown>>): Found =>
  Object.fromEntries(Object.entries(received).map(([sink, value]) => [sink, search.files(keep(readable(value)))]))
