/**
 * A registry on this host with the packages of package-lock.json, as they are installed here, and of each of them a release that is newer by one patch: what
 * npm takes where nothing holds it to the version of the lock file.
 */
import { spawn } from "node:child_process"
import { existsSync, readFileSync } from "node:fs"
import { createServer, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { basename, dirname, join } from "node:path"
import { ROOT } from "./installation.ts"

const MODULES = "node_modules/"

interface Entry {
  readonly version?: string
  readonly link?: boolean
  readonly os?: ReadonlyArray<string>
  readonly cpu?: ReadonlyArray<string>
}

export const lockedEntries = (): Readonly<Record<string, Entry>> =>
  (JSON.parse(readFileSync(join(ROOT, "package-lock.json"), "utf8")) as { readonly packages: Record<string, Entry> })
    .packages

export const lockedName = (place: string): string => place.slice(place.lastIndexOf(MODULES) + MODULES.length)

const newer = (version: string): string => version.replace(/\d+$/u, (patch) => String(Number(patch) + 1))

const manifestAt = (place: string, name: string, entry: Entry): object => {
  const path = join(ROOT, place, "package.json")
  if (existsSync(path)) return JSON.parse(readFileSync(path, "utf8")) as object
  return { name, version: entry.version, os: entry.os, cpu: entry.cpu }
}

/** All versions of a package; none where the lock file has no such package. */
const packumentOf = (name: string, base: string): object | undefined => {
  const versions = Object.entries(lockedEntries()).flatMap(([place, entry]) => {
    const { link, version } = entry
    if (link === true || version === undefined || !place.startsWith(MODULES) || lockedName(place) !== name) return []
    const dist = { tarball: `${base}/-/${encodeURIComponent(place)}.tgz` }
    const manifest = { ...manifestAt(place, name, entry), dist }
    return [version, newer(version)].map((version) => [version, { ...manifest, version }] as const)
  })
  const [latest] = versions.at(-1) ?? []
  return latest === undefined ? undefined : { name, "dist-tags": { latest }, versions: Object.fromEntries(versions) }
}

const sendTarball = (place: string, response: ServerResponse) => {
  const folder = join(ROOT, place)
  const name = basename(folder)
  const args = ["--exclude", `${name}/node_modules`, "--transform", `s,^${name},package,`, "-C", dirname(folder)]
  const tar = spawn("tar", ["-cf", "-", "-I", "gzip -1", ...args, name], { stdio: ["ignore", "pipe", "ignore"] })
  tar.stdout.pipe(response)
}

/** Serves until `close` is called. */
export const serveLocked = async (): Promise<{ readonly address: string; close(): void }> => {
  const server = createServer((request, response) => {
    const path = decodeURIComponent((request.url ?? "/").slice(1))
    if (path.startsWith("-/")) return sendTarball(path.slice(2, -".tgz".length), response)
    const packument = packumentOf(path, address())
    response.writeHead(packument === undefined ? 404 : 200, { "content-type": "application/json" })
    return void response.end(JSON.stringify(packument ?? { error: "not found" }))
  })
  const address = () => `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve))
  return {
    address: address(),
    close: () => {
      server.close()
      server.closeAllConnections()
    }
  }
}
