/** Access for an agent's uid where choird is not root and can give nothing away: by lists (acl(5)), which the owner of a file may set (D11). */
import { Effect } from "effect"
import { ContainerError } from "./ContainerRuntime.ts"
import { HOST_PATH, run, RUNTIME_COMMAND_MS_MAX } from "./HostProcess.ts"
import type { UidRange } from "./Ownership.ts"

const failed = (problem: string, fix: string) => new ContainerError({ reason: "failed", problem, fix })

const started = (what: string, program: string, args: ReadonlyArray<string>) =>
  run({ program, args, cwd: "/", env: { PATH: HOST_PATH } }).pipe(
    Effect.timeoutOrElse({
      duration: RUNTIME_COMMAND_MS_MAX,
      orElse: () => failed(`${what}: it takes too long`, "Remove what the agent does not need from the workspace")
    })
  )

const helper = Effect.fnUntraced(function* (what: string, program: string, args: ReadonlyArray<string>) {
  const { code, text } = yield* started(what, program, args)
  if (code !== 0) return yield* failed(`${what}: ${text}`, "Look at its file system, and run: apt install acl")
  return text
})

/** Lets a uid connect to the socket in this folder. */
export const letIntoSocket = Effect.fn("accessLists.letIntoSocket")(function* (uid: number, socket_dir: string) {
  const socket = "the agent's socket cannot be opened to it"
  yield* helper(socket, "setfacl", ["-m", `u:${uid}:rx`, "--", socket_dir])
  yield* helper(socket, "setfacl", ["-m", `u:${uid}:rw`, "--", `${socket_dir}/choird.sock`])
})

/** The uids of a range that a folder's own list names, as getfacl(1) prints it. */
const listedUids = (list: string, { count, first }: UidRange): ReadonlyArray<number> =>
  [...list.matchAll(/^user:([0-9]+):/gmu)]
    .map(([, uid]) => Number(uid))
    .filter((uid) => uid >= first && uid < first + count)

/** The users that may work in a workspace: the agent, and root of its namespace, as whom choird's own containers empty it and hand it over. */
interface Admitted {
  readonly uid: number
  readonly root: number
  /** The ids that the engine maps. The first of them is root's. */
  readonly mapped: UidRange
}

const entries = (uids: ReadonlyArray<number>, access: string, prefix = "") =>
  uids.map((uid) => `${prefix}u:${uid}${access}`)

/** Options of setfacl(1) that let the one in and take the others out; a folder passes its list on. */
const changes = (let_in: ReadonlyArray<number>, take_out: ReadonlyArray<number>, isFolder: boolean) => {
  const own = process.getuid?.() ?? 0
  const access = isFolder ? ":rwx" : ":rwX"
  const inherited = isFolder ? [...entries(let_in, ":rwx", "d:"), `d:u:${own}:rwx`] : []
  const dropped = [...entries(take_out, ""), ...(isFolder ? entries(take_out, "", "d:") : [])]
  return [
    ...(dropped.length === 0 ? [] : ["-x", dropped.join(",")]),
    "-m",
    [...entries(let_in, access), ...inherited].join(",")
  ]
}

/**
 * Lets an agent's uid into a workspace, and takes out the agents that were let in before. What the agent and choird make there is open to both.
 * Not beside an agent that runs: setfacl(1) follows a link that took a file's place. The list of the workspace's own folder is
 * changed last, so that a start that was cut short is done again.
 *
 * @param handOver gives what other uids of the namespace own there to the agent's, where there is such a thing.
 */
export const letIntoWorkspace = Effect.fn("accessLists.letIntoWorkspace")(function* (
  { mapped, root, uid }: Admitted,
  workspace: string,
  handOver: Effect.Effect<void, ContainerError>
) {
  const what = `${workspace} cannot be opened to its agent`
  const own = process.getuid?.() ?? 0
  const top = yield* helper(what, "getfacl", ["--absolute-names", "--numeric", "--omit-header", "--", workspace])
  const listed = listedUids(top, mapped)
  const let_in = [...new Set([root, uid])]
  const take_out = listed.filter((other) => !let_in.includes(other))
  yield* helper(what, "setfacl", ["-m", `u:${root}:rwx`, "--", workspace])
  // Files of the agents' uids are not choird's to change.
  const folders = ["-type", "d", "-execdir", "setfacl", ...changes(let_in, take_out, true), "{}", "+"]
  const files = ["-type", "f", "-links", "1", "-execdir", "setfacl", ...changes(let_in, take_out, false), "{}", "+"]
  // A folder that its agent keeps for itself is not choird's to look into.
  const shut = "( -type d ! ( -readable -executable ) -prune )".split(" ")
  const inside = ["-mindepth", "1", "-xdev", ...shut, "-o", "-user", String(own), "(", ...folders, "-o", ...files, ")"]
  yield* helper(what, "find", ["-P", workspace, ...inside])
  if (!listed.includes(uid) || take_out.length > 0) {
    const range = ["-uid", `+${mapped.first - 1}`, "-uid", `-${mapped.first + mapped.count}`, "!", "-uid", String(uid)]
    const { code, text } = yield* started(what, "find", ["-P", workspace, "-xdev", ...range, "-print", "-quit"])
    // What choird may not look into is somebody else's.
    if (code !== 0 || text !== "") yield* handOver
  }
  yield* helper(what, "setfacl", [...changes(let_in, take_out, true), "-m", "o::---", "--", workspace])
})
