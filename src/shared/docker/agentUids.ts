/** The uids of agents among the ids that an engine maps, and why agents of an engine have one uid together. */
import { type EngineFacts, type EngineProblem, REMAP } from "./dockerInfo.ts"

/** The first uid and gid of agents in a container: above the users of images and of Debian's packages. */
export const AGENT_UID_FIRST = 10_000
/** How many agents of one home have a number, and with it a uid: Debian gives an engine's user 65,536 ids, and the last ones have meanings. */
export const AGENT_NUMBERS_MAX = 50_000
/** The ids that an engine has to map for that. */
const MAPPED_IDS_MIN = AGENT_UID_FIRST + AGENT_NUMBERS_MAX

const ROOTFUL = "run agents in an engine that root runs, with userns-remap in its /etc/docker/daemon.json"

/** Why the agents of an engine have one uid together, or `undefined` where each has its own. */
export const sharedUid = ({ root }: EngineFacts, choird_uid: number): EngineProblem | undefined => {
  switch (root.type) {
    case "rootless":
      return { problem: "all agents of a rootless Docker engine run as the user that runs it", fix: ROOTFUL }
    case "none":
      return choird_uid === 0 ? undefined : { problem: "all agents run as choird's own user", fix: REMAP }
    case "remapped":
      if (root.uid === choird_uid)
        return { problem: "the Docker engine maps root to choird's own user, as whom all agents run", fix: REMAP }
      if (root.ids >= MAPPED_IDS_MIN) return undefined
      return {
        problem: `the Docker engine maps ${root.ids} ids and agents need ${MAPPED_IDS_MIN}, so all of them run as uid ${root.uid}`,
        fix: `give its user at least ${MAPPED_IDS_MIN} ids in /etc/subuid and /etc/subgid (Debian gives 65536), and run: systemctl restart docker`
      }
  }
}
