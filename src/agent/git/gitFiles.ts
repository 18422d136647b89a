/** The texts that git and ssh read as their configuration. They name the identity and hold no secret. Pure. */
import type { GitIdentity } from "#schema/GitIdentity.ts"
import { shellQuoted } from "#src/shared/text/shellQuoted.ts"

const gitQuoted = (text: string) => `"${text.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`

/** Where the files of one agent lie. */
export interface GitPaths {
  /** Starts the credential helper: a program and its first arguments. */
  readonly helper: ReadonlyArray<string>
  readonly sshConfig: string
  readonly sshAgent: string
  readonly knownHosts: string
}

/** An empty `helper` first: whatever the image's own configuration names is not asked. */
export const gitConfigText = ({ email, name }: GitIdentity, { helper, sshConfig }: GitPaths): string =>
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
export const sshConfigText = ({ known_hosts, remotes }: GitIdentity, { knownHosts, sshAgent }: GitPaths): string => {
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
