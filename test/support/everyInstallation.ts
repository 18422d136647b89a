/** The installations that the end-to-end suites run on: both databases, both transports, and each runtime that the machine has. */
import { randomInt } from "node:crypto"
import { describe } from "@effect/vitest"
import { Effect, type Scope } from "effect"
import { inject } from "vitest"
import { allCanaries, type Canary } from "./canary/secrets.ts"
import { makeCertificate, makeCertificateFor } from "./certificate.ts"
import { testEngine } from "./docker.ts"
import { putDatabase } from "./engines.ts"
import type { InstallationOptions } from "./installation.ts"
import { onServer } from "./testInstallation.ts"
import { ensureDebianPackages } from "./packages.ts"
import { lanAddress } from "./reachable.ts"
import { isFull } from "./size.ts"

export type Place = Pick<InstallationOptions, "config" | "database" | "flags" | "postgres" | "runtime" | "secrets"> & {
  /** Secrets of it that must not show when a test has ended. */
  readonly canaries?: ReadonlyArray<Canary>
}

const embedded: Effect.Effect<Place> = Effect.succeed({ runtime: "sandbox" })

/** At size `ci` the first installation alone makes its database. */
const madeBefore: Pick<Place, "database"> = isFull ? {} : { database: putDatabase }

/** Agents that have nothing but TCP, and trust a certificate that was made for this choird. */
const overHttps: Effect.Effect<Place, never, Scope.Scope> = Effect.map(makeCertificate, ({ cert, key }) => ({
  ...madeBefore,
  runtime: "process",
  flags: ["--transport=http", "--listen=127.0.0.1:0", `--tls-cert=${cert}`, `--tls-key=${key}`]
}))

/** Agents as processes of this host, and a database of its own on the shared server. */
const onServerAsProcess: Effect.Effect<Place, never, Scope.Scope> = Effect.map(onServer, (database) => ({
  runtime: "process",
  ...database
}))

/** 40 secrets, of which the model's key is used all the time. */
const withCanaries = (): Pick<Place, "canaries" | "config" | "secrets"> => {
  const canaries = allCanaries(randomInt(2 ** 31)).slice(0, 40)
  const [key] = canaries
  const model = { provider: "test", model: "offline-model", temperature: 0, secret: key?.name ?? "" }
  return {
    canaries,
    secrets: Object.fromEntries(canaries.map(({ name, value }) => [name, value])),
    config: ({ endpoint }) => ({ models: { test: { ...model, endpoint } } })
  }
}

/** Agents in containers of the tests' engine, by the socket that they mount. */
const inDocker = (docker_socket: string): Effect.Effect<Place> =>
  Effect.sync(() => ({ ...madeBefore, runtime: { docker_socket }, ...withCanaries() }))

/** The same over TCP, at an address that containers reach. */
const inDockerOverHttps = (docker_socket: string): Effect.Effect<Place, never, Scope.Scope> =>
  Effect.map(makeCertificateFor(`IP:${lanAddress()}`), ({ cert, key }) => ({
    ...madeBefore,
    runtime: { docker_socket },
    ...withCanaries(),
    flags: ["--transport=http", `--listen=${lanAddress()}:0`, `--tls-cert=${cert}`, `--tls-key=${key}`]
  }))

export type Suite = (place: Effect.Effect<Place, never, Scope.Scope>) => void

/** One suite, unchanged, on the embedded database in the sandbox and, at size `full`, on a Postgres server with the process runtime. */
export const describeInstallations = (name: string, suite: Suite) => {
  describeEmbedded(
    name,
    suite,
    Effect.map(embedded, (place) => ({ ...place, ...madeBefore }))
  )
  if (isFull) describeServer(name, suite)
}

const leftOut = (reason: string | undefined) => (reason === undefined ? "" : ` (left out: ${reason})`)
const unless = (reason: string | undefined) => (reason === undefined ? describe : describe.skip)

const describeEmbedded = (name: string, suite: Suite, place = embedded) => {
  const reason = ensureDebianPackages(["bubblewrap"], `${name}, sandbox`)
  unless(reason)(`${name}, embedded Postgres, sandbox${leftOut(reason)}`, () => suite(place))
}

const describeServer = (name: string, suite: Suite) => {
  const server = inject("postgres")
  const reason = typeof server === "string" ? server : undefined
  unless(reason)(`${name}, Postgres server, process${leftOut(reason)}`, () => suite(onServerAsProcess))
}

/** A suite with its agents in containers, from the operator's own Dockerfiles on. */
const describeDocker = (name: string, suite: Suite, { reason, socket }: ReturnType<typeof testEngine>) => {
  unless(reason)(`${name}, embedded Postgres, docker`, () => suite(inDocker(socket)))
  unless(reason)(`${name}, embedded Postgres, docker, HTTPS`, () => suite(inDockerOverHttps(socket)))
}

/**
 * A suite on all installations: also on a Postgres server, over HTTPS with the embedded database and the process runtime (R30), and in
 * containers. At size `ci` the first has the whole suite, and containers have its `part`; a server with the process runtime is what the other
 * end-to-end suites have, and HTTPS as a process is left to machines without an engine.
 */
export const describeEveryInstallation = (
  name: string,
  { part, whole }: { readonly part: Suite; readonly whole: Suite }
) => {
  const others = isFull ? whole : part
  const engine = testEngine(`${name}, docker`)
  describeEmbedded(name, whole)
  if (isFull) describeServer(name, others)
  if (isFull || engine.reason !== undefined)
    describe(`${name}, embedded Postgres, process, HTTPS`, () => others(overHttps))
  describeDocker(name, others, engine)
}
