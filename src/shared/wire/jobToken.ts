/**
 * The proof that a call is a running core job's (D35): `id.exp.mac`, where the MAC is made with the lease token. It counts while choird
 * knows that the job runs, and an agent that loses the lease loses every job's token with it (R21). No clock is asked: the agent
 * and choird may run on machines whose clocks differ, and either clock may be set while the job runs.
 */
import { createHmac, timingSafeEqual } from "node:crypto"
import { CallId } from "#schema/Ids.ts"

const macOf = (lease: string, job_id: CallId, exp: string): Buffer =>
  createHmac("sha256", lease).update(`${job_id}.${exp}`).digest()

/** The latest time that the form holds: a choird that compares it with its clock takes the token as well. */
const EXP = "9".repeat(15)

/** A job's token, as `x-choir-job` carries it. */
export const jobToken = (lease: string, job_id: CallId): string =>
  `${job_id}.${EXP}.${macOf(lease, job_id, EXP).toString("hex")}`

const FORM = /^(?<id>[a-z0-9-]{1,40})\.(?<exp>[0-9]{1,15})\.(?<mac>[0-9a-f]{64})$/u

/** The job that a token names, if it was made with this lease. Whether the job runs is for choird to know. */
export const jobOfToken = (lease: string, token: string): CallId | undefined => {
  const { exp, id, mac } = FORM.exec(token)?.groups ?? {}
  if (id === undefined || exp === undefined || mac === undefined) return undefined
  const job_id = CallId.make(id)
  return timingSafeEqual(macOf(lease, job_id, exp), Buffer.from(mac, "hex")) ? job_id : undefined
}
