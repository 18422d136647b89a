/** Images for tests of containers: a base with the programs of an agent and no network needed, and images of rigs on it. */
import { execFileSync } from "node:child_process"
import {
  chmodSync,
  copyFileSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync
} from "node:fs"
import { basename, join } from "node:path"
import { rgPath } from "@vscode/ripgrep"
import { partsOf } from "#src/choird/runtime/AgentCommand.ts"

export const BASE = "choir-test-base:1"

/** The docker program, as it comes with the engine. */
export const docker = (socket: string, ...args: ReadonlyArray<string>): string =>
  execFileSync("docker", ["-H", `unix://${socket}`, ...args], {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, DOCKER_BUILDKIT: "0" }
  }).trim()

const inContext = <A>(use: (folder: string) => A): A => {
  const folder = mkdtempSync("/tmp/choir-test-image-")
  try {
    return use(folder)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

const has = (socket: string, image: string) => docker(socket, "images", "--quiet", image) !== ""

/** Node and tini as an agent's base has them: to be run and not to be read, by anybody in the container (D13). */
const BASE_FILE = `FROM debian:bookworm-slim
COPY --chown=65534:65534 node /opt/choir/bin/node
COPY --chown=65534:65534 tini /usr/bin/tini
COPY rg /usr/bin/rg
`

/** The base of {@link buildTestImage}, which a Dockerfile.base may name where no network is wanted. */
export const ensureBase = (socket: string) => {
  if (has(socket, BASE)) return
  inContext((folder) => {
    copyFileSync(realpathSync(process.execPath), join(folder, "node"))
    // The engine's package brings it.
    copyFileSync("/usr/bin/docker-init", join(folder, "tini"))
    copyFileSync(realpathSync(rgPath), join(folder, "rg"))
    for (const name of ["node", "tini"]) chmodSync(join(folder, name), 0o111)
    chmodSync(join(folder, "rg"), 0o755)
    writeFileSync(join(folder, "Dockerfile"), BASE_FILE)
    docker(socket, "build", "--quiet", "--tag", BASE, folder)
  })
}

export interface TestImage {
  /** The name in the engine. */
  readonly tag: string
  /** Holds `choir/`. */
  readonly image: string
  /** A bundle, with its parts beside it where there are any. */
  readonly program: string
  /** Further lines of the Dockerfile. */
  readonly lines?: ReadonlyArray<string>
}

/** Builds an image of a folder, as choird's own builder lays it out. */
export const buildTestImage = (socket: string, { image, lines = [], program, tag }: TestImage) => {
  ensureBase(socket)
  inContext((folder) => {
    mkdirSync(join(folder, "bundle"))
    for (const path of [program, ...Object.values(partsOf(program))])
      cpSync(path, join(folder, "bundle", basename(path)))
    cpSync(join(image, "choir"), join(folder, "choir"), { recursive: true })
    const copies = ["COPY bundle/ /opt/choir/", "COPY choir/ /choir/"]
    writeFileSync(join(folder, "Dockerfile"), [`FROM ${BASE}`, ...copies, ...lines, ""].join("\n"))
    docker(socket, "build", "--quiet", "--force-rm", "--tag", tag, folder)
  })
}

export const removeTestImage = (socket: string, tag: string) => docker(socket, "rmi", "--force", tag)

/** Removes what choird built for an agent of a home; its base stays, so that the next build is quick. */
export const removeImagesOf = (socket: string, agent: string, home: string) => {
  const labels = [`label=choir.agent=${agent}`, `label=choir.home=${home}`].flatMap((label) => ["--filter", label])
  const found = docker(socket, "images", "--quiet", ...labels)
    .split("\n")
    .filter(Boolean)
  if (found.length > 0) docker(socket, "rmi", "--force", ...new Set(found))
}

/** The host's pid of the agent in a container, whose first process is tini; `undefined` while there is none. */
export const agentInside = (socket: string, container: string): number | undefined => {
  try {
    const init = docker(socket, "inspect", "--format", "{{.State.Pid}}", container).trim()
    const [agent] = readFileSync(`/proc/${init}/task/${init}/children`, "utf8").split(" ").filter(Boolean).map(Number)
    return agent
  } catch {
    return undefined
  }
}
