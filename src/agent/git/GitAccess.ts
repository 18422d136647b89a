/**
 * The git identity that the agent leases, as commands of a call use it: name and e-mail from a configuration file without
 * secrets, credentials from this process by the helper, or a key from an ssh-agent.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Context, Effect, Layer, Redacted, Scope, Semaphore } from "effect"
import type { GitIdentity } from "#schema/GitIdentity.ts"
import type { CallId } from "#schema/Ids.ts"
import { AgentSettings } from "#src/agent/settings/AgentSettings.ts"
import { ProcessRunner } from "#src/agent/process/ProcessRunner.ts"
import { SecretStore } from "#src/agent/settings/SecretStore.ts"
import { makeScrub } from "#src/agent/settings/scrub.ts"
import { serveCredentials } from "./credentials.ts"
import { makeSshAgent } from "./SshAgent.ts"
import { shellQuoted } from "#src/shared/text/shellQuoted.ts"

/** The git access of one call. */
export interface CallGit {
  readonly env: Readonly<Record<string, string>>
  /** Takes the credentials out of what the call printed: it can ask git for them. */
  scrub(text: string): string
}

const NONE: CallGit = { env: {}, scrub: (text) => text }
const KEY = /^-----BEGIN [A-Z ]*PRIVATE KEY-----/u

export class GitAccess extends Context.Service<
  GitAccess,
  {
    /** Prepares a call whose commands may run git. Without a bound identity there is nothing to do. */
    forCall(call_id: CallId): Effect.Effect<CallGit>
  }
>()("choir/agent/GitAccess") {
  /** `helper` starts git's credential helper; its last argument is the socket to ask. */
  static readonly layer = (options: { readonly helper: ReadonlyArray<string> }) =>
    Layer.effect(GitAccess, make(options))

  /** For agents that run no commands. */
  static readonly layerNone = Layer.succeed(GitAccess, GitAccess.of({ forCall: () => Effect.succeed(NONE) }))
}

/** A folder for sockets and for files that hold no secret; it goes with the agent. */
const privateFolder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "choir-git-"))),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
)

const open = Effect.fnUntraced(function* (helper: ReadonlyArray<string>) {
  const secrets = yield* SecretStore
  const processes = yield* ProcessRunner
  const folder = yield* privateFolder
  const socket = join(folder, "credentials")
  const config = join(folder, "config")
  const paths: GitPaths = {
    helper: [...helper, socket],
    sshConfig: join(folder, "ssh_config"),
    sshAgent: join(folder, "agent"),
    knownHosts: join(folder, "known_hosts")
  }
  yield* serveCredentials(socket)
  const ssh = yield* makeSshAgent(paths.sshAgent, processes)
  const oneAtATime = yield* Semaphore.make(1)
  let written: GitIdentity | undefined

  const write = (identity: GitIdentity) =>
    Effect.sync(() => {
      if (written === identity) return
      writeFileSync(config, gitConfigText(identity, paths), { mode: 0o600 })
      writeFileSync(paths.sshConfig, sshConfigText(identity, paths), { mode: 0o600 })
      if (identity.known_hosts !== undefined)
        writeFileSync(paths.knownHosts, `${identity.known_hosts.join("\n")}\n`, { mode: 0o600 })
      written = identity
    })

  return Effect.fnUntraced(function* (call_id: CallId, identity: GitIdentity) {
    yield* write(identity)
    const secret = yield* secrets.get(identity.secret)
    const value = secret === undefined ? "" : Redacted.value(secret)
    if (secret !== undefined && KEY.test(value))
      yield* ssh.load(call_id, secret).pipe(
        oneAtATime.withPermits(1),
        Effect.catch(({ message }) => Effect.logWarning(message))
      )
    return {
      env: { GIT_CONFIG_GLOBAL: config, GIT_TERMINAL_PROMPT: "0" },
      scrub: value === "" ? NONE.scrub : makeScrub([value])
    }
  })
})

const make = Effect.fnUntraced(function* (options: { readonly helper: ReadonlyArray<string> }) {
  const settings = yield* AgentSettings
  const scope = yield* Effect.scope
  const context = yield* Effect.context<AgentSettings | SecretStore | ProcessRunner>()
  // An agent without an identity pays nothing for it.
  const opened = yield* Effect.cached(
    open(options.helper).pipe(Effect.provideService(Scope.Scope, scope), Effect.provide(context))
  )
  return GitAccess.of({
    forCall: Effect.fn("GitAccess.forCall")(
      function* (call_id) {
        const identity = settings.current().config.git_identity
        if (identity === undefined) return NONE
        const prepare = yield* opened
        return yield* prepare(call_id, identity)
      },
      Effect.catch(({ message }) => Effect.as(Effect.logWarning(`git has no identity here: ${message}`), NONE))
    )
  })
})

const gitQuoted = (text: string) => `"${text.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`

/** Where the files of one agent lie. */
interface GitPaths {
  /** Starts the credential helper: a program and its first arguments. */
  readonly helper: ReadonlyArray<string>
  readonly sshConfig: string
  readonly sshAgent: string
  readonly knownHosts: string
}

/** An empty `helper` first: whatever the image's own configuration names is not asked. */
const gitConfigText = ({ email, name }: GitIdentity, { helper, sshConfig }: GitPaths): string =>
  [
    "[user]",
    `\tname = ${gitQuoted(name)}`,
    `\temail = ${gitQuoted(email)}`,
    "[credential]",
    "\thelper =",
    // exec, so that the helper's parent is git itself.
    `\thelper = ${gitQuoted(`!exec ${helper.map(shellQuoted).join(" ")}`)}`,
    "\tuseHttpPath = true",
    "[core]",
    `\tsshCommand = ${gitQuoted(`ssh -F ${shellQuoted(sshConfig)}`)}`,
    ""
  ].join("\n")

/** Only the hosts of `remotes` see the key; ssh takes the first value that it finds. */
const sshConfigText = ({ known_hosts, remotes }: GitIdentity, { knownHosts, sshAgent }: GitPaths): string => {
  const hosts = (remotes ?? [])
    .filter((remote) => remote.startsWith("ssh:"))
    .flatMap((remote) => {
      const { hostname, port, username } = new URL(remote)
      return [
        `Host ${hostname}`,
        ...(username === "" ? [] : [`  User ${username}`]),
        ...(port === "" ? [] : [`  Port ${port}`]),
        `  IdentityAgent ${sshAgent}`
      ]
    })
  return [
    ...hosts,
    "Host *",
    "  IdentityAgent none",
    "  IdentityFile none",
    "  ForwardAgent no",
    "  BatchMode yes",
    `  UserKnownHostsFile ${knownHosts}`,
    `  StrictHostKeyChecking ${known_hosts === undefined ? "accept-new" : "yes"}`,
    ""
  ].join("\n")
}
