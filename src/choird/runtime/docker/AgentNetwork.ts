/** The network of an installation's agents: a bridge of its own on which they do not see each other, and its egress rules (D22). */
import { readFileSync } from "node:fs"
import { Context, Effect, Layer, Option, Schema } from "effect"
import type { RuntimeConfig } from "#schema/Config.ts"
import { ContainerError } from "#src/choird/runtime/ContainerRuntime.ts"
import { RUNTIME_COMMAND_MS_MAX, HOST_PATH, run } from "#src/choird/runtime/HostProcess.ts"
import {
  EGRESS_TABLE,
  egressChains,
  egressJumps,
  type EgressPlan,
  egressRules,
  nameserversIn
} from "#src/shared/wire/egress.ts"
import type { AllowedHosts } from "./AllowedHosts.ts"
import { DockerEngine, type DockerError, engineIsAway } from "./DockerEngine.ts"
import { HOME_LABEL, MANAGED_LABEL } from "./imageNames.ts"
import type { Installation } from "#src/shared/docker/dockerInstallation.ts"

/** The egress of the bridge, as config.json says it. */
export interface Egress {
  readonly policy: RuntimeConfig["network"]
  /** With `allowlist` the only way out. */
  readonly allowed: AllowedHosts
}

/** The network of one installation. */
export class AgentNetwork extends Context.Service<
  AgentNetwork,
  {
    /** Creates the network and the rules where they are missing; before each start, since others may have changed them. */
    ensure(choird_port: number | undefined): Effect.Effect<void, ContainerError | DockerError>
    /**
     * Lines of a container's /etc/hosts, where it may not ask for names itself, else `undefined`. The names are looked up each time, and
     * {@link ensure} opens their addresses.
     */
    readonly hosts: Effect.Effect<ReadonlyArray<string> | undefined>
    /** The reasons why agents reach more than they should, and the listed places that they cannot reach. */
    readonly warnings: Effect.Effect<ReadonlyArray<string>>
  }
>()("choir/choird/AgentNetwork") {
  /** Removes the network when the scope closes, unless containers are left in it. */
  static readonly layer = (installation: Installation, egress: Egress) =>
    Layer.effect(
      AgentNetwork,
      Effect.suspend(() => make(installation, egress))
    )
}

const BRIDGE_NAME = "com.docker.network.bridge.name"
const ICC = "com.docker.network.bridge.enable_icc"

const Inspected = Schema.Struct({
  Driver: Schema.String,
  EnableIPv6: Schema.optionalKey(Schema.Boolean),
  Labels: Schema.NullOr(Schema.Record(Schema.String, Schema.String)),
  Options: Schema.NullOr(Schema.Record(Schema.String, Schema.String))
})
const decode = Schema.decodeUnknownOption(Inspected)

/** The resolvers that the engine hands to containers are those of the host. */
const RESOLVERS = ["/etc/resolv.conf", "/run/systemd/resolve/resolv.conf"]

const nameservers = Effect.forEach(RESOLVERS, (path) =>
  Effect.orElseSucceed(
    Effect.try(() => nameserversIn(readFileSync(path, "utf8"))),
    () => []
  )
).pipe(Effect.map((lists) => [...new Set(lists.flat())]))

const hostCommand = (program: string, args: ReadonlyArray<string>, input?: string) => {
  const fed = ["sh", "-c", 'exec "$0" "$@" <&4', program, ...args]
  const [first = "", ...rest] = input === undefined ? [program, ...args] : fed
  const inputs = input === undefined ? {} : { inputs: [input] }
  return run({ program: first, args: rest, cwd: "/", env: { PATH: HOST_PATH }, ...inputs }).pipe(
    Effect.timeoutOrElse({
      duration: RUNTIME_COMMAND_MS_MAX,
      orElse: () => Effect.succeed({ code: null, signal: null, text: `${program} did not finish in time` })
    }),
    Effect.orElseSucceed(() => ({ code: 127, signal: null, text: `${program} cannot be started` }))
  )
}

/** Seconds that iptables waits for another program that changes the rules. */
const WAIT = ["-w", "5"]

const iptables = (...words: ReadonlyArray<string>) => hostCommand("iptables", [...WAIT, "-t", EGRESS_TABLE, ...words])

const firstLine = (text: string) => text.split("\n", 1)[0] ?? ""

/** Sets the rules; returns the reason where that fails. */
const setRules = Effect.fnUntraced(function* (plan: EgressPlan) {
  const restored = yield* hostCommand("iptables-restore", [...WAIT, "--noflush"], egressRules(plan))
  if (restored.code !== 0) return firstLine(restored.text) || `iptables-restore ended with ${restored.code}`
  for (const rule of egressJumps(plan.bridge)) {
    if ((yield* iptables("-C", ...rule)).code === 0) continue
    const inserted = yield* iptables("-I", ...rule)
    if (inserted.code !== 0) return firstLine(inserted.text) || `iptables ended with ${inserted.code}`
  }
  return undefined
})

const dropRules = Effect.fnUntraced(function* (bridge: string) {
  for (const rule of egressJumps(bridge)) yield* iptables("-D", ...rule)
  for (const chain of Object.values(egressChains(bridge))) {
    yield* iptables("-F", chain)
    yield* iptables("-X", chain)
  }
})

const dropBridge = (bridge: string) => hostCommand("ip", ["link", "delete", bridge, "type", "bridge"])

const isRoot = () => process.getuid?.() === 0

const isOurs = ({ id, network }: Installation, found: unknown) =>
  Option.match(decode(found), {
    onNone: () => false,
    onSome: ({ Driver, EnableIPv6, Labels, Options }) =>
      Driver === "bridge" &&
      EnableIPv6 !== true &&
      Labels?.[HOME_LABEL] === id &&
      Options?.[BRIDGE_NAME] === network &&
      Options[ICC] === "false"
  })

const create = ({ id, network }: Installation) =>
  Effect.flatMap(DockerEngine, ({ use }) =>
    use(`the network ${network} could not be created`, (docker, abortSignal) =>
      docker.createNetwork({
        Name: network,
        Driver: "bridge",
        CheckDuplicate: true,
        EnableIPv6: false,
        Options: { [BRIDGE_NAME]: network, [ICC]: "false" },
        Labels: { [MANAGED_LABEL]: "true", [HOME_LABEL]: id },
        abortSignal
      })
    )
  ).pipe(
    Effect.asVoid,
    // Another start was quicker.
    Effect.catchIf(
      (error) => error.reason === "conflict",
      () => Effect.void
    ),
    // An engine that fails half-way leaves the bridge behind, and one that finds a bridge never removes it.
    Effect.tapError((error) => (isRoot() && !engineIsAway(error) ? dropBridge(network) : Effect.void))
  )

const remove = ({ network }: Installation) =>
  Effect.flatMap(DockerEngine, ({ use }) =>
    Effect.asVoid(use(`the network ${network} could not be removed`, (docker) => docker.getNetwork(network).remove()))
  )

/** Creates the bridge where it is missing, and replaces one with other settings. */
const ensureBridge = Effect.fnUntraced(function* (installation: Installation) {
  const { network } = installation
  const engine = yield* DockerEngine
  const found = yield* engine
    .use(`the network ${network} could not be inspected`, (docker) => docker.getNetwork(network).inspect())
    .pipe(
      Effect.catchIf(
        (error) => error.reason === "missing",
        () => Effect.undefined
      )
    )
  if (found === undefined) return yield* create(installation)
  if (isOurs(installation, found)) return
  yield* Effect.logWarning(`the network ${network} has unexpected settings; recreating it`)
  yield* Effect.mapError(
    remove(installation),
    ({ detail }) =>
      new ContainerError({
        reason: "refused",
        problem: `the network ${network} has unexpected settings and could not be removed: ${detail}`,
        fix: `Run: docker network rm --force ${network}`
      })
  )
  yield* create(installation)
})

const make = Effect.fnUntraced(function* (installation: Installation, { allowed, policy }: Egress) {
  const engine = yield* DockerEngine
  const { network } = installation
  /** The reason why the rules are not set. */
  let unguarded: string | undefined
  let opened = false

  const ensureRules = Effect.fnUntraced(function* (choird_port: number | undefined) {
    if (policy === "open") {
      // A choird that was killed may have left those of another policy.
      if (isRoot() && !opened) yield* dropRules(network)
      opened = true
      return
    }
    const listed = policy === "allowlist" ? { allowed: allowed.allowed() } : {}
    const plan = { bridge: network, nameservers: yield* nameservers, choird_port, ...listed }
    unguarded = isRoot() ? yield* setRules(plan) : "choird is not root"
    if (unguarded !== undefined && policy === "allowlist")
      return yield* new ContainerError({
        reason: "refused",
        problem: `runtime.allow cannot be enforced: ${unguarded}`,
        fix: "Run choird as root with iptables, or set runtime.network to public"
      })
    if (unguarded !== undefined) yield* Effect.logWarning(`agents can reach this host and its networks: ${unguarded}`)
  })

  const close = Effect.gen(function* () {
    // Containers that are left keep the network; then the rules stay, too.
    yield* remove(installation)
    if (isRoot()) yield* dropRules(network)
  })
  yield* Effect.addFinalizer(() => Effect.ignore(Effect.provideService(close, DockerEngine, engine)))

  return AgentNetwork.of({
    ensure: (choird_port) =>
      Effect.all([ensureBridge(installation), ensureRules(choird_port)], { concurrency: 2, discard: true }).pipe(
        Effect.provideService(DockerEngine, engine)
      ),
    hosts: policy === "allowlist" ? Effect.andThen(allowed.refresh, Effect.sync(allowed.hosts)) : Effect.undefined,
    warnings: Effect.sync(() => [
      ...(unguarded === undefined || policy === "allowlist"
        ? []
        : [
            `Agents can reach this host and its networks, since the rules for their bridge could not be set (${unguarded}). choirctl doctor prints them.`
          ]),
      ...allowed.problems()
    ])
  })
})
