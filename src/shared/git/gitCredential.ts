/**
 * How git gets a credential without it being in an argument, an environment or a file: through a pipe that its children inherit, which
 * the one that needs it reads. Pure.
 */
import { Redacted } from "effect"

/** The agent's program under this name, or with it as its first argument, is git's credential helper. */
export const GIT_CRED_HELPER = "git-cred-helper"

/** A user and password for one host of https. */
export interface GitPassword {
  readonly type: "password"
  /** With the port, where the url has one: of the characters of host names alone. */
  readonly host: string
  readonly user: string
  readonly password: Redacted.Redacted
}

/** A private SSH key. */
export interface GitKey {
  readonly type: "key"
  readonly key: Redacted.Redacted
  /** Lines of a known_hosts file that count alone; without them those of the user that runs choird do. */
  readonly known_hosts?: ReadonlyArray<string>
}

export type GitCredential = GitPassword | GitKey

/** The parts that a call of git is started with; `pipe` is its descriptor 3. */
export interface HandedOver {
  readonly settings: ReadonlyArray<string>
  readonly env: Readonly<Record<string, string>>
  readonly pipe: Uint8Array
}

/** Answers one question about one host. A redirect asks for another host and gets nothing. */
const credentialHelper = ({ host }: GitPassword) => {
  const asked = `case "$line" in "host=${host}") host=yes ;; protocol=https) protocol=yes ;; esac`
  const read = `while read -r line; do [ -z "$line" ] && break; ${asked}; done`
  return `!f() { [ "$1" = get ] || exit 0; ${read}; [ "$host$protocol" = yesyes ] && cat <&3; }; f`
}

/** The options of every connection by ssh: nobody is asked and nothing is forwarded. */
export const SSH_OPTIONS =
  "-o BatchMode=yes -o ConnectTimeout=10 -o ForwardAgent=no -o PermitLocalCommand=no -o ClearAllForwardings=yes"

/**
 * An ssh-agent that lives as long as this one connection and holds this one key. No configuration and no key of the user that runs choird
 * counts: a host is reached with what the identity has, or not at all.
 */
const sshCommand = (known_hosts_file: string | undefined) => {
  const hosts =
    known_hosts_file === undefined
      ? ""
      : String.raw` -o GlobalKnownHostsFile=none -o "UserKnownHostsFile=\"$CHOIR_KNOWN_HOSTS\""`
  const ssh = `ssh -F none ${SSH_OPTIONS} -o IdentityFile=none -o StrictHostKeyChecking=yes${hosts} "$@"`
  return `ssh-agent sh -c 'ssh-add -q - <&3 && exec 3<&- && exec ${ssh}' ssh`
}

/** @param known_hosts_file holds a key's `known_hosts`. */
export const handedOver = (credential: GitCredential, known_hosts_file?: string): HandedOver => {
  if (credential.type === "password")
    return {
      settings: ["-c", `credential.helper=${credentialHelper(credential)}`, "-c", "http.followRedirects=false"],
      env: {},
      pipe: Buffer.from(`username=${credential.user}\npassword=${Redacted.value(credential.password)}\n`)
    }
  return {
    settings: [],
    env: {
      GIT_SSH_COMMAND: sshCommand(known_hosts_file),
      // What is started is ssh-agent, and git would try out whether that understands ssh's options.
      GIT_SSH_VARIANT: "ssh",
      ...(known_hosts_file === undefined ? {} : { CHOIR_KNOWN_HOSTS: known_hosts_file })
    },
    // Without the line break at its end a key is none.
    pipe: Buffer.from(`${Redacted.value(credential.key).trimEnd()}\n`)
  }
}
